"""The embedded knowledge base and corpus keep their promises."""

import importlib.util
import json
from collections import Counter, defaultdict

import pytest

from spacy_xel.formats import read_corpus
from spacy_xel.kb.normalize import normalize_name
from spacy_xel.kb.schema import parse_entity
from tests.conftest import ASSETS

SPLITS = ("train", "dev", "test")


@pytest.fixture(scope="module")
def entities():
    return [parse_entity(line) for line in (ASSETS / "kb.jsonl").open("rb")]


@pytest.fixture(scope="module")
def corpus():
    return {split: list(read_corpus(ASSETS / f"{split}.jsonl")) for split in SPLITS}


def test_size_and_ambiguity(entities, corpus):
    assert len(entities) >= 1000
    names = defaultdict(set)
    for entity in entities:
        assert len(entity.description.split()) >= 4, entity
        for name in entity.names:
            names[normalize_name(name)].add(entity.kb_id)
    assert sum(len(ids) > 1 for ids in names.values()) >= 250
    assert {"Q90", "Q167646", "Q830149"} <= names["paris"]
    assert sum(map(len, corpus.values())) >= 1500
    for texts in corpus.values():
        assert any(not mention.kb_ids for text in texts for mention in text.mentions)


def test_annotations_fit(entities, corpus):
    known = {entity.kb_id for entity in entities}
    seen = set()
    for texts in corpus.values():
        for text in texts:
            assert text.text not in seen, "no text twice, and none in two splits"
            seen.add(text.text)
            assert text.mentions
            ends = 0
            for mention in text.mentions:
                assert mention.start >= ends
                ends = mention.end
                surface = text.text[mention.start : mention.end]
                assert surface == surface.strip()
                assert set(mention.kb_ids) <= known


def test_sentences_are_varied(corpus):
    texts = [text.text for split in corpus.values() for text in split]
    openings = Counter(" ".join(text.lower().split()[:3]) for text in texts)
    assert openings.most_common(1)[0][1] <= 12
    five_grams = Counter()
    for text in texts:
        words = text.lower().split()
        five_grams.update({tuple(words[i : i + 5]) for i in range(len(words) - 4)})
    assert five_grams.most_common(1)[0][1] <= 8


def test_every_id_is_known_to_the_reference(data, capsys):
    path = data.parent / "tools" / "check_ids.py"
    if not path.exists():
        pytest.skip(f"no {path}")
    spec = importlib.util.spec_from_file_location("check_ids", path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["check_ids.py", str(ASSETS / "kb.jsonl")])
        with pytest.raises(SystemExit) as exit_code:
            spec.loader.exec_module(importlib.util.module_from_spec(spec))
    assert exit_code.value.code == 0, capsys.readouterr().out


def test_descriptions_are_our_own(entities, data):
    import gzip

    with gzip.open(data / "wikidata" / "kb_closed.jsonl.gz", "rt", encoding="utf8") as lines:
        reference = {e["id"]: e["description"] for e in map(json.loads, lines)}
    for entity in entities:
        ours, theirs = (set(_runs(t)) for t in (entity.description, reference[entity.kb_id]))
        assert not ours & theirs, entity


def _runs(text, length=5):
    words = normalize_name(text).split()
    return [tuple(words[i : i + length]) for i in range(len(words) - length + 1)]
