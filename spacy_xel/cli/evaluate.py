"""The command `xel evaluate`."""

import json
import time
from pathlib import Path

import spacy
import typer
from wasabi import msg

from spacy_xel.cli.common import friendly_errors, peak_memory
from spacy_xel.errors import Errors
from spacy_xel.evaluation.evaluate import Evaluation, evaluate
from spacy_xel.formats import read_corpus
from spacy_xel.storage import new_file


@friendly_errors
def evaluate_cli(
    pipeline: str = typer.Argument(..., help="Name or path of a pipeline"),
    corpus: Path = typer.Argument(
        ..., help="Annotated texts: .jsonl, .jsonl.gz, .spacy, .pubtator"
    ),
    gold_mentions: bool = typer.Option(
        False, "--gold-mentions", "-g", help="Link the annotated mentions instead of finding them"
    ),
    train: Path | None = typer.Option(
        None, "--train", "-t", help="Training corpus, to split scores into seen and unseen ids"
    ),
    json_file: Path | None = typer.Option(None, "--json", "-j", help="Write all scores here"),
    seed: int = typer.Option(0, "--seed", help="Seed of the confidence intervals"),
) -> None:
    """
    Evaluate the links of a pipeline on an annotated corpus.

    End to end, a link counts if its span and its id are right (InKB micro scores). With
    --gold-mentions, accuracy and recall@k over the annotated mentions. The intervals are 95%
    bootstrap intervals over documents.
    """
    start = time.perf_counter()
    nlp = spacy.load(pipeline)
    load_seconds = time.perf_counter() - start
    texts = list(read_corpus(corpus))
    if not texts:
        raise ValueError(Errors.XE022.format(path=corpus))
    training_ids = None
    if train is not None:
        seen = (m.kb_ids for text in read_corpus(train) for m in text.mentions)
        training_ids = frozenset(kb_id for kb_ids in seen for kb_id in kb_ids)
    result = evaluate(nlp, texts, gold_mentions=gold_mentions, training_ids=training_ids, seed=seed)
    result.speed["load_seconds"] = round(load_seconds, 2)
    result.speed["peak_megabytes"] = round(peak_memory() / 1e6)
    _print(result, gold_mentions)
    if json_file is not None:
        content = {"pipeline": pipeline, "corpus": str(corpus), "gold_mentions": gold_mentions}
        with new_file(json_file) as scratch:
            scratch.write_text(json.dumps({**content, **result.to_json()}, indent=2) + "\n")
        msg.good(f"Wrote {json_file}")


def _print(result: Evaluation, gold_mentions: bool) -> None:
    msg.table(result.sizes.items())
    hidden = ("xel_weak", "xel_micro", "xel_strict", "xel_mention") if gold_mentions else ()
    rows = []
    for name, score in result.scores.items():
        if not name.startswith(hidden):
            low, high = result.intervals[name]
            rows.append((name, f"{score:.4f}", f"{low:.4f} - {high:.4f}"))
    msg.table(rows, header=("score", "value", "95% interval"), divider=True)
    msg.table(result.speed.items())
