"""The command `xel kb import`."""

import json
from pathlib import Path
from typing import cast

import typer
from wasabi import msg

from spacy_xel.cli.common import check_paths_differ, friendly_errors, split_column
from spacy_xel.errors import Errors
from spacy_xel.formats import KB_FORMATS
from spacy_xel.formats.importing import ImportReport, KBFormat, import_kb
from spacy_xel.formats.reading import OnError, Options

_KINDS_OF_IDS = {
    "wikipedia": ("title", "page"),
    "cirrus": ("title", "wikidata"),
    "kilt": ("page", "title", "wikidata"),
    "skos": ("iri", "local"),
}
_NAMES = {"langs": "--lang", "columns": "--column", "only_pages": "--only-pages"}


@friendly_errors
def import_cli(
    source: Path = typer.Argument(..., help="The dump, plain, .gz, .bz2 or .xz, or a folder of it"),
    target: Path = typer.Argument(..., help="KB file to write: .jsonl or .jsonl.gz"),
    from_format: str = typer.Option(..., "--from", help=f"One of {', '.join(KB_FORMATS)}"),
    corpus: Path | None = typer.Option(
        None, "--corpus", "-c", help="Write the texts with their links here"
    ),
    lang: list[str] = typer.Option(
        [], "--lang", "-l", help="Language of the names; may be repeated, the first is the title's"
    ),
    column: list[str] = typer.Option(
        [], "--column", help="Take a field from a column, e.g. title=name; may be repeated"
    ),
    delimiter: str = typer.Option("", "--delimiter", help="What separates the columns"),
    ids: str = typer.Option("", "--ids", help="Which ids to take, e.g. title or page"),
    only_pages: bool = typer.Option(
        False, "--only-pages", help="Only items with a page in the first language, titled like it"
    ),
    min_count: int = typer.Option(
        2, "--min-count", help="Texts of links become names if there are so many of them", min=1
    ),
    on_error: str = typer.Option("stop", "--on-error", help="At a bad record: stop or skip"),
    restart: bool = typer.Option(False, "--restart", help="Begin anew, not where a run stopped"),
    as_json: bool = typer.Option(False, "--json", help="Print the report as JSON"),
) -> None:
    """
    Turn a dump or an ontology into a KB file, which `kb build` takes.

    The file appears only when it is complete. An import that was stopped goes on where it was when
    it is started again.
    """
    if on_error not in ("stop", "skip"):
        raise typer.BadParameter("choose stop or skip", param_hint="--on-error")
    if from_format not in KB_FORMATS:
        raise ValueError(Errors.XE061.format(format=from_format, known=", ".join(KB_FORMATS)))
    check_paths_differ([source], [target, corpus])
    kb_format = KB_FORMATS[from_format]
    options = Options(
        langs=tuple(lang) or ("en",),
        columns=dict(split_column(value) for value in column),
        delimiter=delimiter.replace("\\t", "\t"),
        ids=ids,
        texts=corpus is not None,
        only_pages=only_pages,
    )
    given: dict[str, object] = {"langs": lang, "columns": column, "delimiter": delimiter}
    given |= {"ids": ids, "corpus": corpus, "only_pages": only_pages}
    _check_options(from_format, kb_format, [name for name, value in given.items() if value])
    known = _KINDS_OF_IDS.get(from_format, ())
    if ids and ids not in known:
        raise ValueError(Errors.XE062.format(ids=ids, format=from_format, known=", ".join(known)))
    report = import_kb(
        kb_format.find_source(source),
        target,
        kb_format,
        options,
        corpus=corpus,
        on_error=cast(OnError, on_error),
        min_count=min_count,
        restart=restart,
    )
    if as_json:
        typer.echo(json.dumps(vars(report), indent=2))
    else:
        _print_report(report, target, corpus)


def _check_options(name: str, kb_format: KBFormat, given: list[str]) -> None:
    for option in given:
        if option not in kb_format.options:
            taking = [other for other, known in KB_FORMATS.items() if option in known.options]
            help_text = f"It means something for {', '.join(taking)}."
            shown = _NAMES.get(option, f"--{option}")
            raise ValueError(Errors.XE060.format(format=name, option=shown, help=help_text))


def _print_report(report: ImportReport, target: Path, corpus: Path | None) -> None:
    if report.resumed_at:
        msg.info(f"Went on after {report.resumed_at:,} entities of an earlier run")
    for problem in report.first_problems:
        msg.warn(problem)
    skipped = sum(report.problems.values())
    if skipped:
        msg.warn(f"{skipped:,} records were left out; all are listed in {target}.problems.jsonl")
    for reason, count in sorted(report.left_out.items()):
        msg.text(f"Left out: {count:,} {reason}")
    if report.redirects:
        msg.text(f"{report.redirects:,} redirects")
    if report.rare_names:
        msg.text(f"{report.rare_names:,} texts of links are too rare to be names (--min-count)")
    if corpus is not None:
        if report.unknown_targets:
            msg.text(f"{report.unknown_targets:,} links lead to no entity; they are NIL")
        msg.good(f"{report.texts:,} texts with {report.mentions:,} mentions: {corpus}")
    msg.good(f"{report.entities:,} entities: {target}")
