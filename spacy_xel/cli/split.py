"""The command `xel split`."""

from contextlib import ExitStack
from pathlib import Path

import typer
from wasabi import msg

from spacy_xel.cli.common import check_paths_differ, friendly_errors
from spacy_xel.formats import read_corpus
from spacy_xel.formats.importing import LineWriter
from spacy_xel.formats.jsonl import to_json
from spacy_xel.formats.sampling import Sample
from spacy_xel.storage import new_file


@friendly_errors
def split_cli(
    corpus: Path = typer.Argument(..., help="Annotated texts"),
    train: Path = typer.Argument(..., help="Paragraphs to train on: .jsonl or .jsonl.gz"),
    dev: Path = typer.Argument(..., help="Paragraphs to test with: .jsonl or .jsonl.gz"),
    dev_share: float = typer.Option(
        0.01, "--dev-share", min=0, max=1, help="Share of the texts to test with"
    ),
    dev_texts: int = typer.Option(
        0, "--dev-texts", min=0, help="Paragraphs to test with at most; 0 for all"
    ),
    per_entity: int = typer.Option(
        0, "--per-entity", min=0, max=60_000, help="Enough mentions of an entity; 0 takes all"
    ),
) -> None:
    """
    Cut texts into paragraphs, and divide these into those to train on and those to test with.

    A text goes to one side as a whole, by its id, so the same ones do in every run. Paragraphs
    without a link to an entity are left out, and counted.
    """
    check_paths_differ([corpus], [train, dev])
    counts = {"train": [0, 0], "dev": [0, 0]}
    sample = Sample(dev_share, per_entity, dev_texts)
    with ExitStack() as stack:
        paths = {"train": train, "dev": dev}
        scratch = {side: stack.enter_context(new_file(path)) for side, path in paths.items()}
        with ExitStack() as files:
            writers = {s: files.enter_context(LineWriter(path)) for s, path in scratch.items()}
            for is_dev, text in sample.divide(read_corpus(corpus)):
                side = "dev" if is_dev else "train"
                writers[side].write(to_json(text))
                counts[side][0] += 1
                counts[side][1] += len(text.mentions)
    if sample.unlinked:
        msg.text(f"{sample.unlinked:,} paragraphs have no link to an entity and were left out")
    for side, (texts, mentions) in counts.items():
        msg.good(f"{side}: {texts:,} paragraphs with {mentions:,} mentions: {paths[side]}")
