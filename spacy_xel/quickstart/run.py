"""The steps of a quickstart, from a table to a wheel; what they print is the caller's business."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import spacy

from spacy_xel.errors import Errors
from spacy_xel.formats import read_corpus
from spacy_xel.kb.build import BuildReport, build_store
from spacy_xel.kb.knowledge_base import XelKnowledgeBase
from spacy_xel.packaging.finish import finish
from spacy_xel.quickstart import package
from spacy_xel.quickstart.corpus import CorpusSurvey, example_ids, split_corpus
from spacy_xel.quickstart.entities import write_entities
from spacy_xel.quickstart.heldout import card_metrics, evaluate_changed_names, evaluate_documents
from spacy_xel.quickstart.recipe import Choice, assemble
from spacy_xel.quickstart.survey import Survey
from spacy_xel.quickstart.workspace import Workspace, file_stamp
from spacy_xel.storage import new_file

VERSION = "0.1.0"
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """All that is decided before the work begins."""

    survey: Survey
    name: str  # of the package
    output: Path
    choice: Choice
    lang: str = "en"
    corpus: Path | None = None
    corpus_format: str | None = None
    corpus_survey: CorpusSurvey | None = None
    held_out: float = 0.1
    seed: int = 0

    def purpose(self) -> dict[str, Any]:
        """Return what has to be the same for a stopped run to go on."""
        options = self.survey.options
        return {
            "kb": file_stamp(self.survey.path),
            "corpus": None if self.corpus is None else file_stamp(self.corpus),
            "corpus_format": self.corpus_format,
            "name": self.name,
            "columns": dict(options.columns),
            "separators": dict(options.separators),
            "table": [options.delimiter, options.header, options.quotes],
            "recipe": self.choice.recipe,
            "lang": self.lang,
            "held_out": self.held_out,
            "seed": self.seed,
        }


@dataclass(frozen=True)
class Result:
    """What came out."""

    entities: dict[str, Any]
    store: dict[str, Any]
    metrics: dict[str, Any]
    wheel: Path
    resumed: list[str]


def run(plan: Plan, tell: Tell) -> Result:
    """Build, train, evaluate and package; the output appears at the end.

    tell (Callable): Called with the name of each step that begins.
    """
    with Workspace(plan.output, plan.purpose()).opened() as work:
        entities = work.step("entities", lambda: _entities(plan, work.folder, tell))
        parts = work.step("corpus", lambda: _split(plan, work.folder, tell))
        store = work.step("kb", lambda: _build(plan, work.folder, parts, tell))
        work.step("training", lambda: _train(plan, work.folder, parts, tell))
        metrics = work.step("evaluation", lambda: _evaluate(plan, work.folder, parts, tell))
        wheel = work.step("package", lambda: _package(plan, work.folder, entities, metrics, tell))
        work.finish()
    return Result(entities, store, metrics, plan.output / wheel, work.resumed)


def _entities(plan: Plan, folder: Path, tell: Tell) -> dict[str, Any]:
    tell("Reading the entities")
    report = write_entities(plan.survey, folder / "kb.jsonl", folder / "kb.problems.jsonl")
    return report.to_json()


def _split(plan: Plan, folder: Path, tell: Tell) -> list[int]:
    """Return how many documents there are to learn from, and to be judged by."""
    if plan.corpus is None:
        return [0, 0]
    tell("Dividing the corpus")
    return list(
        split_corpus(
            plan.corpus,
            folder / "train.jsonl",
            folder / "heldout.jsonl",
            share=plan.held_out,
            seed=plan.seed,
            format_name=plan.corpus_format,
        )
    )


def _build(plan: Plan, folder: Path, parts: list[int], tell: Tell) -> dict[str, Any]:
    tell("Building the knowledge base")
    corpus = read_corpus(folder / "train.jsonl", "jsonl") if parts[0] else ()
    report = build_store(
        folder / "kb.jsonl", folder / "kb", corpus=corpus, lang=plan.lang, force=True
    )
    if report.mentions_unknown_id and not report.mentions_counted:
        raise _foreign_corpus(plan, folder, report)
    return report.to_json()


def _foreign_corpus(plan: Plan, folder: Path, report: BuildReport) -> ValueError:
    kb = XelKnowledgeBase.open(folder / "kb")
    return ValueError(
        Errors.XE098.format(
            mentions=report.mentions_unknown_id,
            corpus=plan.corpus,
            theirs=example_ids(read_corpus(folder / "train.jsonl", "jsonl")),
            ours=[kb.kb_id(row) for row in range(min(3, report.entities))],
        )
    )


def _train(plan: Plan, folder: Path, parts: list[int], tell: Tell) -> None:
    tell("Training the label tree")
    corpus = folder / "train.jsonl" if parts[0] else None
    target = _assembled(plan, folder)
    target.parent.mkdir(parents=True, exist_ok=True)
    assemble(plan.choice.recipe, folder / "kb", corpus, target, plan.lang)


def _evaluate(plan: Plan, folder: Path, parts: list[int], tell: Tell) -> dict[str, Any]:
    tell("Evaluating")
    nlp = spacy.load(_assembled(plan, folder))
    if parts[1]:
        metrics = evaluate_documents(nlp, folder / "heldout.jsonl", plan.seed)
    else:
        metrics = evaluate_changed_names(nlp, plan.seed)
    metrics = {"pipeline": plan.name, "recipe": plan.choice.recipe, **metrics}
    with new_file(folder / "metrics" / f"{plan.name}.json") as scratch:
        scratch.write_text(json.dumps(metrics, indent=2) + "\n", encoding="utf8")
    return metrics


def _package(
    plan: Plan, folder: Path, entities: dict[str, Any], metrics: dict[str, Any], tell: Tell
) -> str:
    tell("Making a wheel")
    meta = {
        "lang": package.LANG,
        "name": plan.name.removeprefix(f"{package.LANG}_"),
        "version": VERSION,
        "description": f"Links text to the {entities['entities']:,} entities of "
        f"{plan.survey.path.name}. Made by spacy-xel.",
        "author": "",
        "email": "",
        "url": "",
        "license": "see the data",
        "sources": [path.name for path in (plan.survey.path, plan.corpus) if path is not None],
    }
    pipeline = folder / "training" / plan.name
    finish(_assembled(plan, folder), pipeline, meta=meta, metrics=card_metrics(metrics))
    wheel = package.package_pipeline(pipeline, folder / "packages")
    return wheel.relative_to(folder).as_posix()


def _assembled(plan: Plan, folder: Path) -> Path:
    return folder / "training" / "assembled" / plan.name
