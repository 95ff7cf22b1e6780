"""The command `xel quickstart`."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from wasabi import msg

from spacy_xel.cli.common import friendly_errors, split_column
from spacy_xel.errors import Errors
from spacy_xel.quickstart import package
from spacy_xel.quickstart.workspace import check_output, read_state, work_folder

if TYPE_CHECKING:
    from spacy_xel.quickstart.run import Plan, Result
    from spacy_xel.quickstart.survey import Survey

_WIDEST = 40


@friendly_errors
def quickstart_cli(
    kb: Path = typer.Argument(..., help="A table (CSV, TSV) or JSON Lines, plain or compressed"),
    corpus: Path | None = typer.Argument(None, help="Annotated texts, in a format of `convert`"),
    name: str = typer.Option("", "--name", "-n", help="Of the pipeline; by default the file's"),
    output: Path | None = typer.Option(
        None, "--output", "-o", help="Folder to write; by default quickstart/NAME"
    ),
    column: list[str] = typer.Option(
        [], "--column", help="Take a field from a column, e.g. title=Name; '-' for none, id=# for "
        "row numbers; may be repeated",
    ),
    separator: list[str] = typer.Option(
        [], "--separator", help="What is between several values, e.g. 'aliases=;'"
    ),
    delimiter: str = typer.Option("", "--delimiter", help="What separates the columns"),
    header: bool | None = typer.Option(
        None, "--header/--no-header", help="Whether the first row has the names of the columns"
    ),
    corpus_format: str | None = typer.Option(None, "--from", help="Format of the corpus"),
    recipe: str = typer.Option("", "--recipe", help="names or tree, instead of what seems to fit"),
    lang: str = typer.Option("en", "--lang", "-l", help="Language of the texts"),
    held_out: float = typer.Option(0.1, "--held-out", help="Share of texts to judge by", max=0.9),
    seed: int = typer.Option(0, "--seed", help="Of what is held out", min=0),
    yes: bool = typer.Option(False, "--yes", "-y", help="Do not ask"),
    no_install: bool = typer.Option(False, "--no-install", help="Make the wheel, do not install"),
    force: bool = typer.Option(False, "--force", "-F", help="Replace output and package"),
    anyway: bool = typer.Option(False, "--anyway", help="Begin even if memory or disk is short"),
) -> None:  # fmt: skip
    """
    Make an installed pipeline from a table of your own.

    Shows which column it takes for what, and what memory, disk and time it expects; then builds the
    knowledge base, trains, evaluates on a held-out part (without a corpus: on changed names),
    makes a wheel and installs it. A run that was stopped goes on where it was.
    """
    from spacy_xel.quickstart.run import run

    if recipe not in ("", "names", "tree"):
        raise typer.BadParameter("choose names or tree", param_hint="--recipe")
    started = time.perf_counter()
    package.check_tools(not no_install)
    full_name = package.package_name(name, kb)
    target = output or Path("quickstart") / full_name
    check_output(target, force)
    going_on = read_state(work_folder(target)) is not None
    if not (no_install or force or going_on) and package.is_installed(full_name):
        raise ValueError(Errors.XE097.format(package=full_name))
    survey = _look(kb, column, separator, delimiter.replace("\\t", "\t"), header)
    _check_language(survey, lang)
    plan = _plan(survey, full_name, target, corpus, corpus_format, recipe, lang, held_out, seed)
    _show_estimate(plan, anyway)
    if sys.stdin.isatty() and not yes and not typer.confirm("Shall I begin?", default=True):
        raise typer.Exit(1)
    result = run(plan, msg.info)
    _show_result(plan, result)
    if not no_install:
        msg.info("Installing the wheel")
        package.install(result.wheel, target / "install.log")
    msg.good(f"Done in {time.perf_counter() - started:,.0f} seconds: {target}")
    _show_usage(plan, result, no_install)


def _look(
    kb: Path, column: list[str], separator: list[str], delimiter: str, header: bool | None
) -> "Survey":
    from spacy_xel.quickstart.survey import survey

    found = survey(
        kb,
        columns=dict(split_column(value) for value in column),
        separators=dict(split_column(value, "--separator") for value in separator),
        delimiter=delimiter,
        header=header,
    )
    if found.guess is None:
        msg.info(f"{kb} is JSON Lines with {found.rows:,} lines")
        return found
    how = {"\t": "tabs", ",": "commas", ";": "semicolons", "|": "bars"}
    separated = how.get(found.options.delimiter, repr(found.options.delimiter))
    first = "has a header" if found.options.header else "has no header: columns have numbers"
    msg.info(f"{kb} is a table with {found.rows:,} rows, cut at {separated}; it {first}")
    fields = {column: field for field, column in found.guess.columns.items()}
    rows = []
    for c in found.columns:
        field = fields.get(c.name, "")
        reason = found.guess.reasons.get(field, "")
        between = found.guess.separators.get(field, "")
        rows.append((c.name, field or "(not used)", between, reason, c.example[:_WIDEST]))
    msg.table(rows, header=("column", "taken for", "between", "because of", "e.g."), divider=True)
    if found.numbered:
        msg.warn("No column has ids, so the numbers of the rows are the ids: 1, 2, 3 …")
    msg.text("If that is wrong: --column FIELD=COLUMN, --separator FIELD=SIGN, --no-header")
    return found


def _check_language(survey: "Survey", lang: str) -> None:
    from spacy_xel.quickstart.scripts import unfit_language

    unfit = unfit_language(lang, survey.unspaced)
    if unfit is not None:
        better, share = unfit
        msg.warn(
            f"{share:.0%} of the names are in a script without spaces between words. With --lang "
            f"{lang} they are not found within sentences: choose --lang {better} (zh, ja or th)"
        )


def _plan(
    survey: "Survey",
    name: str,
    output: Path,
    corpus: Path | None,
    corpus_format: str | None,
    recipe: str,
    lang: str,
    held_out: float,
    seed: int,
) -> "Plan":
    from spacy_xel.quickstart.corpus import survey_corpus
    from spacy_xel.quickstart.recipe import Choice, choose_recipe
    from spacy_xel.quickstart.run import Plan

    looked = None if corpus is None else survey_corpus(corpus, corpus_format)
    if looked is not None and looked.documents == 0:
        raise ValueError(Errors.XE022.format(path=corpus))
    choice = choose_recipe(looked)
    if recipe in ("names", "tree"):
        choice = Choice("names" if recipe == "names" else "tree", "you said so")
    msg.info(f"Recipe '{choice.recipe}', because {choice.reason}")
    return Plan(
        survey=survey,
        name=name,
        output=output,
        choice=choice,
        lang=lang,
        corpus=corpus,
        corpus_format=corpus_format,
        corpus_survey=looked,
        held_out=max(0.0, held_out),
        seed=seed,
    )


def _show_estimate(plan: "Plan", anyway: bool) -> None:
    from spacy_xel.quickstart.estimate import check_room, estimate, size_text, time_text

    survey, corpus = plan.survey, plan.corpus_survey
    mentions, characters = (corpus.mentions, corpus.characters) if corpus is not None else (0, 0)
    msg.info(
        f"About {survey.names:,} names of {survey.rows:,} rows"
        + (f", {mentions:,} mentions in {corpus.documents:,} texts" if corpus is not None else "")
    )
    expected = estimate(plan.choice.recipe, survey.names, mentions, survey.characters + characters)
    msg.info(
        f"Expected, within a factor of about two: {size_text(expected.memory)} of memory, "
        f"{size_text(expected.disk)} of disk, {time_text(expected.seconds)} "
        "(the first time some more, for compiling)"
    )
    for warning in check_room(expected, plan.output, anyway=anyway):
        msg.warn(warning)


def _show_result(plan: "Plan", result: "Result") -> None:
    from spacy_xel.quickstart.heldout import score_rows

    if result.resumed:
        msg.info(f"Went on after an earlier run, which had done: {', '.join(result.resumed)}")
    report = result.entities
    if report["merged_rows"]:
        msg.warn(
            f"{report['merged_rows']:,} rows have the id of an earlier row (e.g. "
            f"{', '.join(report['repeated_ids'])}): their names became aliases of it"
        )
    for problem in report["first_problems"]:
        msg.warn(problem)
    if report["bad_rows"]:
        where = plan.output / "kb.problems.jsonl"
        msg.warn(f"{report['bad_rows']:,} rows were left out; all are listed in {where}")
    unknown = result.store["mentions_unknown_id"]
    if unknown:
        msg.warn(f"{unknown:,} mentions to learn from have ids that are not in the knowledge base")
    msg.good(f"{report['entities']:,} entities, {result.store['names']:,} different names")
    rows = score_rows(result.metrics)
    if not rows:
        msg.warn("Not evaluated: no name can be changed (typo, case, word order). Give a corpus.")
        return
    msg.good(f"Scores on {result.metrics['evaluated_on']}:")
    header = ("what", "score", "value", "95% interval", "mentions")
    msg.table(rows, header=header, divider=True)


def _show_usage(plan: "Plan", result: "Result", no_install: bool) -> None:
    if no_install:
        msg.text(f"To install it: pip install {result.wheel}")
    msg.text("To use it in Python:")
    typer.echo(f'\nimport spacy\nnlp = spacy.load("{plan.name}")\nnlp("…").ents\n')
