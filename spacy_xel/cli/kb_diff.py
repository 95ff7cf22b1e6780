"""The command `xel kb diff`."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import typer
from wasabi import msg

from spacy_xel.cli.common import friendly_errors
from spacy_xel.kb.diff import Change, at_version, diff
from spacy_xel.kb.knowledge_base import XelKnowledgeBase
from spacy_xel.pipeline.locate import store_folder
from spacy_xel.storage import new_file


@friendly_errors
def diff_cli(
    old: str = typer.Argument(..., help="Knowledge base or pipeline; NAME@2 is its version 2"),
    new: str | None = typer.Argument(None, help="What to compare with; without it, OLD@0 with OLD"),
    output: Path | None = typer.Option(
        None, "--output", "-o", help="Write every difference here, as JSON Lines"
    ),
    limit: int = typer.Option(20, "--limit", "-n", help="Show so many differences at most"),
) -> None:
    """
    Show what was added, removed and changed between two knowledge bases or versions of one.
    """
    first, second = (f"{_split(old)[0]}@0", old) if new is None else (old, new)
    changes = diff(_open(first), _open(second))
    if output is not None:
        changes = _written(changes, output)
    counts: Counter[str] = Counter()
    rows: list[tuple[str, ...]] = []
    for change in changes:
        counts[change.kind] += 1
        if len(rows) < limit:
            rows.append(_row(change))
    if rows:
        msg.table(rows, header=("change", "id", "title", "what"), divider=True)
    if counts.total() > len(rows):
        msg.text(f"… and {counts.total() - len(rows):,} more (--limit, --output)")
    kinds = ", ".join(f"{counts[kind]:,} {kind}" for kind in ("added", "removed", "changed"))
    msg.good(f"{first} to {second}: {kinds}")


def _written(changes: Iterable[Change], output: Path) -> Iterator[Change]:
    with new_file(output) as scratch, scratch.open("w", encoding="utf8") as file:
        for change in changes:
            file.write(json.dumps(change.to_json(), ensure_ascii=False) + "\n")
            yield change
    msg.good(f"Wrote {output}")


def _open(name: str) -> XelKnowledgeBase:
    base, version = _split(name)
    kb = XelKnowledgeBase.open(store_folder(base))
    return kb if version is None else at_version(kb, version)


def _split(name: str) -> tuple[str, int | None]:
    """Return a name and its version, from NAME@VERSION."""
    base, _, version = name.rpartition("@")
    if base and version.isdigit() and not Path(name).exists():
        return base, int(version)
    return name, None


def _row(change: Change) -> tuple[str, ...]:
    entity = change.new or change.old
    title = "" if entity is None else entity.title
    return change.kind, change.kb_id, title, ", ".join(change.fields)
