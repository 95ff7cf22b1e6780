"""Commands for knowledge bases: build, look, change."""

import json
from pathlib import Path
from typing import cast

import typer
from wasabi import msg

from spacy_xel.cli.common import friendly_errors, parse_size
from spacy_xel.cli.kb_diff import diff_cli
from spacy_xel.cli.kb_import import import_cli
from spacy_xel.cli.kb_join import join_cli
from spacy_xel.errors import Errors
from spacy_xel.formats import read_corpus
from spacy_xel.jsonlines import BadLine, read_lines
from spacy_xel.kb.build import BuildReport, OnError, build_store
from spacy_xel.kb.knowledge_base import XelKnowledgeBase
from spacy_xel.kb.schema import parse_entity
from spacy_xel.pipeline.locate import store_folder
from spacy_xel.types import Entity

HELP = "Import, build, look into and change knowledge bases, also while they are in use."
kb_app = typer.Typer(name="kb", help=HELP, no_args_is_help=True, rich_markup_mode=None)
kb_app.command("import")(import_cli)
kb_app.command("diff")(diff_cli)
kb_app.command("join")(join_cli)

_STORE = typer.Argument(..., help="Folder of the knowledge base, or a pipeline that has one")


@kb_app.command("build")
@friendly_errors
def build_cli(
    source: Path = typer.Argument(..., help="KB file: JSON Lines, plain or .gz"),
    target: Path = typer.Argument(..., help="Folder to write"),
    corpus: list[Path] = typer.Option(
        [], "--corpus", "-c", help="Annotated texts whose mentions are counted as names"
    ),
    only_ids: str = typer.Option(
        "", "--only-ids", help="Keep only the ids in this file, one per line"
    ),
    lang: str = typer.Option("", "--lang", "-l", help="Language of the names, e.g. tr"),
    on_error: str = typer.Option("stop", "--on-error", help="At a bad line: stop or skip"),
    max_ram: str = typer.Option("2G", "--max-ram", help="About how much memory to use"),
    force: bool = typer.Option(False, "--force", "-F", help="Replace an existing folder"),
) -> None:
    """
    Build a knowledge base from a file of entities.

    The result is a folder of memory-mapped arrays that opens in milliseconds, whatever its size.
    It appears only when it is complete.
    """
    if on_error not in ("stop", "skip"):
        raise typer.BadParameter("choose stop or skip", param_hint="--on-error")
    texts = (text for path in corpus for text in read_corpus(path))
    report = build_store(
        source,
        target,
        corpus=texts,
        only_ids=Path(only_ids) if only_ids else None,
        lang=lang,
        on_error=cast(OnError, on_error),
        max_ram=parse_size(max_ram),
        force=force,
    )
    _print_report(report, target)


@kb_app.command("info")
@friendly_errors
def info_cli(
    store: str = _STORE,
    verify: bool = typer.Option(False, "--verify", help="Compare every file with its checksum"),
    as_json: bool = typer.Option(False, "--json", help="Print JSON"),
) -> None:
    """
    Show what is in a knowledge base.
    """
    kb = XelKnowledgeBase.open(store_folder(store), verify=True if verify else None)
    manifest = kb.built.manifest
    info = {
        "path": str(kb.path),
        "entities": len(kb),
        "names": len(kb.built.names_uncased),
        "ambiguous_names": kb.built.names_uncased.count_ambiguous(),
        "cased_names": len(kb.built.names_cased),
        "language": kb.built.lang or "any",
        "version": kb.version,
        "revision": kb.revision,
        "megabytes": round(sum(f["bytes"] for f in manifest["files"].values()) / 1e6, 1),
        "made_by": manifest["made_by"],
        "source": manifest["source"],
        "build": manifest["report"],
    }
    if as_json:
        typer.echo(json.dumps(info, indent=2))
        return
    build = cast(dict[str, object], info.pop("build"))
    msg.table(info.items())
    left_out = {key: value for key, value in build.items() if value and key not in info}
    if left_out:
        msg.text("From the build:")
        msg.table(left_out.items())


@kb_app.command("find")
@friendly_errors
def find_cli(
    store: str = _STORE,
    name: str = typer.Argument(..., help="A name, or the id of an entity"),
    cased: bool = typer.Option(False, "--cased", help="Distinguish upper and lower case"),
    limit: int = typer.Option(20, "--limit", "-n", help="Show so many entities at most"),
) -> None:
    """
    Show the entities that a name may mean, the most probable first.
    """
    kb = XelKnowledgeBase.open(store_folder(store))
    found = kb.lookup(name, cased=cased)
    if not found and kb.contains_entity(name):
        found = [(kb.row(name), 1.0)]
    if not found:
        msg.warn(f"No entity has the name or id {name!r}.", exits=1)
    rows = []
    for row, probability in found[:limit]:
        entity = kb.entity(row)
        rows.append((entity.kb_id, f"{probability:.3f}", entity.title, entity.description[:70]))
    msg.table(rows, header=("id", "P(id|name)", "title", "description"), divider=True)
    if len(found) > limit:
        msg.text(f"… and {len(found) - limit} more (--limit)")


@kb_app.command("add")
@friendly_errors
def add_cli(
    store: str = _STORE,
    source: Path | None = typer.Argument(None, help="KB file with the entities to add"),
    kb_id: str = typer.Option("", "--id", help="Add one entity with this id"),
    title: str = typer.Option("", "--title", help="Its title"),
    alias: list[str] = typer.Option([], "--alias", help="Another name; may be repeated"),
    description: str = typer.Option("", "--description", help="Its description"),
    prior: float = typer.Option(0.0, "--prior", help="Its prior"),
    replace: bool = typer.Option(False, "--replace", help="Replace entities that are there"),
) -> None:
    """
    Add entities, from a file or from options. Running pipelines see them at once.
    """
    if (source is None) == (not kb_id):
        raise typer.BadParameter("give either a KB file or --id and --title")
    if source is not None:
        entities = list(_read_entities(source))
    else:
        fields = {"id": kb_id, "title": title, "aliases": alias}
        fields |= {"description": description, "prior": prior}  # type: ignore[dict-item]
        try:
            entities = [parse_entity(json.dumps(fields).encode())]
        except BadLine as error:
            raise ValueError(Errors.XE009.format(where="the options", problem=error)) from error
    version = XelKnowledgeBase.open(store_folder(store)).add(entities, replace=replace)
    msg.good(f"Added {len(entities)} entities: version {version}")


@kb_app.command("remove")
@friendly_errors
def remove_cli(
    store: str = _STORE,
    kb_ids: list[str] = typer.Argument(..., help="Ids of the entities to remove"),
) -> None:
    """
    Remove entities. Running pipelines stop linking to them at once.
    """
    version = XelKnowledgeBase.open(store_folder(store)).remove(kb_ids)
    msg.good(f"Removed {len(kb_ids)} entities: version {version}")


@kb_app.command("rollback")
@friendly_errors
def rollback_cli(
    store: str = _STORE,
    to: int | None = typer.Option(None, "--to", help="Version to go back to; 0 is as built"),
) -> None:
    """
    Undo changes: go back to an earlier version, by default the one before the last change.
    """
    version = XelKnowledgeBase.open(store_folder(store)).rollback(to)
    msg.good(f"Rolled back: version {version}")


def _read_entities(source: Path) -> list[Entity]:
    entities = []
    for line in read_lines(source, "Reading entities"):
        try:
            if line.problem:
                raise BadLine(line.problem)
            entities.append(parse_entity(line.data))
        except BadLine as error:
            where = f"{source}, line {line.number}"
            raise ValueError(Errors.XE009.format(where=where, problem=error)) from error
    return entities


def _print_report(report: BuildReport, target: Path) -> None:
    for problem in report.first_problems:
        msg.warn(problem)
    skipped = sum(report.problems.values())
    if skipped > len(report.first_problems):
        msg.warn(f"… and {skipped - len(report.first_problems)} more")
    if skipped:
        msg.warn(f"{skipped} lines were left out; all are listed in {target / 'problems.jsonl'}")
    if report.missing_ids:
        shown = ", ".join(report.missing_ids[:5])
        msg.warn(f"{len(report.missing_ids)} ids of --only-ids are not in the file: {shown} …")
    if report.empty_names:
        msg.warn(f"{report.empty_names} names were empty and left out")
    if report.mentions_unknown_id:
        msg.warn(f"{report.mentions_unknown_id} mentions have ids that are not in the file")
    names = f"{report.names:,} names, {report.ambiguous_names:,} of them ambiguous"
    msg.good(f"{report.entities:,} entities, {names}: {target}")
