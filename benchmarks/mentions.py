"""Names found in text: xel_mentions against spaCy's entity_ruler, tokenizer included.

python benchmarks/mentions.py

Both look for the same 50,000 names in the same real texts (106 Wikipedia articles and 400 nLab
pages), in turns; then xel_mentions looks for all 5,902,572 titles of scale/.
"""

import gzip
import json
import random
from pathlib import Path

import spacy
from common import DATA, best_of, parse_arguments, run_measured, write_result
from kb import TITLES, write_titles
from spacy.language import Language

from spacy_xel.kb.build import build_store
from spacy_xel.kb.knowledge_base import knowledge_base_loader

N_NAMES = 50_000
ARTICLES = DATA / "scale" / "enwiki_sample_wikitext.jsonl.gz"
PAGES = DATA / "nlab" / "dev.jsonl.gz"

MEMORY = """
import spacy
from spacy_xel.kb.knowledge_base import knowledge_base_loader
nlp = spacy.blank("en")
nlp.max_length = 10_000_000
pipe = nlp.add_pipe("xel_mentions")
pipe.initialize(nlp=nlp, kb_loader=knowledge_base_loader(sys.argv[1]))
texts = json.loads(Path(sys.argv[2]).read_text())
result = {"mentions": sum(len(doc.ents) for doc in nlp.pipe(texts))}
"""


def read_texts() -> list[str]:
    """Return real texts, the longest cut to 100,000 characters."""
    texts = []
    for path, key, limit in ((ARTICLES, "wikitext", 106), (PAGES, "text", 400)):
        with gzip.open(path, "rt", encoding="utf8") as lines:
            found = [json.loads(line).get(key, "") for line in lines]
        texts += [text[:100_000] for text in found if text][:limit]
    return texts


def sample_names(seed: int) -> list[str]:
    with gzip.open(TITLES, "rt", encoding="utf8") as lines:
        titles = [line.rstrip("\n").replace("_", " ") for line in lines]
    return sorted(set(random.Random(seed).sample(titles, N_NAMES)))


def mention_pipeline(store: Path) -> Language:
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe("xel_mentions", config={"min_length": 1})  # all names, like the ruler
    pipe.initialize(nlp=nlp, kb_loader=knowledge_base_loader(store), stop_names=[])
    return nlp


def ruler_pipeline(names: list[str]) -> Language:
    nlp = spacy.blank("en")
    ruler = nlp.add_pipe("entity_ruler", config={"phrase_matcher_attr": "LOWER"})
    ruler.add_patterns([{"label": "ENTITY", "pattern": name} for name in names])
    return nlp


def main() -> None:
    arguments = parse_arguments("xel_mentions against entity_ruler")
    work = arguments.work
    texts = read_texts()
    names = sample_names(arguments.seed)
    small, full = work / "kb_50k", work / "kb_titles"
    with (work / "names.jsonl").open("w", encoding="utf8") as file:
        for i, name in enumerate(names):
            file.write(json.dumps({"id": f"T{i}", "title": name}) + "\n")
    build_store(work / "names.jsonl", small, force=True)
    if not full.exists():
        write_titles(work / "titles.jsonl")
        build_store(work / "titles.jsonl", full)

    pipelines = {
        "tokenizer": spacy.blank("en"),
        "tokenizer + entity_ruler, 50k names": ruler_pipeline(names),
        "tokenizer + xel_mentions, 50k names": mention_pipeline(small),
        "tokenizer + xel_mentions, 5.9M names": mention_pipeline(full),
    }
    counts: dict[str, int] = {}
    words = sum(len(doc) for doc in pipelines["tokenizer"].pipe(texts))

    def run(name: str) -> None:
        counts[name] = sum(len(doc.ents) for doc in pipelines[name].pipe(texts))

    for name in pipelines:  # once to warm the tokenizer's caches and compile
        run(name)
    times = best_of(arguments.repeats, *(lambda name=name: run(name) for name in pipelines))
    rates = {name: words / seconds for name, seconds in zip(pipelines, times, strict=True)}
    _, peer, ours, ours_full = rates.values()
    (work / "texts.json").write_text(json.dumps(texts), encoding="utf8")
    result = {
        "texts": len(texts),
        "words": words,
        "words_per_second": {name: round(rate) for name, rate in rates.items()},
        "mentions": counts,
        "ratio_to_entity_ruler": {
            "50k names": round(ours / peer, 2),
            "5.9M names": round(ours_full / peer, 2),
        },
        "whole process with 5.9M names": run_measured(MEMORY, full, work / "texts.json"),
    }
    write_result("mentions", arguments.seed, [TITLES, ARTICLES, PAGES], result)


if __name__ == "__main__":
    main()
