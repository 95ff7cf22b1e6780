"""The command `xel convert`."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import cast

import typer
from wasabi import msg

from spacy_xel.cli.common import check_paths_differ, friendly_errors
from spacy_xel.errors import Errors
from spacy_xel.formats import FORMATS, read_corpus, write_corpus
from spacy_xel.formats.faults import Faults
from spacy_xel.formats.reading import OnError
from spacy_xel.types import AnnotatedText

WRITTEN = [name for name, known in FORMATS.items() if known.write is not None]


@friendly_errors
def convert_cli(
    source: Path = typer.Argument(..., help="Corpus to read"),
    target: Path = typer.Argument(..., help="Corpus to write"),
    from_format: str | None = typer.Option(None, "--from", help=f"One of {', '.join(FORMATS)}"),
    to_format: str | None = typer.Option(None, "--to", help=f"One of {', '.join(WRITTEN)}"),
    on_error: str = typer.Option(
        "stop", "--on-error", help="At a text that cannot be read: stop or skip"
    ),
) -> None:
    """
    Convert an annotated corpus from one format to another.

    Some formats are known by the files' names: .jsonl, .jsonl.gz, .spacy, .pubtator, .ttl (nif).
    """
    check_paths_differ([source], [target])
    for path, name in ((source, from_format), (target, to_format)):
        if name is not None and name not in FORMATS:
            problem = f"there is no format {name!r}"
            raise ValueError(
                Errors.XE015.format(path=path, format=name, problem=problem, known=list(FORMATS))
            )
    if on_error not in ("stop", "skip"):
        raise typer.BadParameter("choose stop or skip", param_hint="--on-error")
    faults = Faults(cast(OnError, on_error))
    counts = {"texts": 0, "mentions": 0}
    texts = read_corpus(source, from_format, faults)
    write_corpus(_counted(texts, counts), target, to_format)
    for fault in faults.first:
        msg.warn(fault)
    if faults.count:
        msg.warn(f"{faults.count:,} faults; the texts that have them were left out")
    msg.good(f"{counts['texts']:,} texts with {counts['mentions']:,} mentions: {target}")


def _counted(texts: Iterable[AnnotatedText], counts: dict[str, int]) -> Iterator[AnnotatedText]:
    for text in texts:
        counts["texts"] += 1
        counts["mentions"] += len(text.mentions)
        yield text
