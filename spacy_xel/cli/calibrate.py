"""The command `xel calibrate`."""

import json
from pathlib import Path
from typing import Any

import spacy
import typer
from wasabi import msg

from spacy_xel.calibrate.held_out import CrossValidation, HeldOut, cross_validate, link_scores
from spacy_xel.cli.common import friendly_errors
from spacy_xel.errors import Errors
from spacy_xel.formats import read_corpus
from spacy_xel.pipeline.calibration import calibrate, collect, linking_component, set_threshold
from spacy_xel.storage import new_file, new_folder

_SCORES = (
    "calibration_error", "precision", "recall", "f", "linked",
    "nil_precision", "nil_recall", "nil_f",
)  # fmt: skip


@friendly_errors
def calibrate_cli(
    pipeline: str = typer.Argument(..., help="Name or path of a pipeline"),
    corpus: Path = typer.Argument(..., help="Annotated texts that it was not trained on"),
    output: Path = typer.Argument(..., help="Folder for the calibrated pipeline; must not exist"),
    method: str = typer.Option(
        "boosted", "--method", "-m", help="temperature, isotonic, tree or boosted"
    ),
    target_precision: float | None = typer.Option(
        None, "--target-precision", "-p", help="Abstain (NIL) where needed for this precision"
    ),
    confidence: float | None = typer.Option(
        None, "--confidence", help="Reach the target precision with this confidence, such as 0.95"
    ),
    gold_mentions: bool = typer.Option(
        False, "--gold-mentions", "-g", help="Link the annotated mentions instead of finding them"
    ),
    component: str | None = typer.Option(
        None, "--component", "-c", help="What to calibrate; by default the last that links"
    ),
    report: Path | None = typer.Option(None, "--report", "-r", help="Write all figures here"),
    seed: int = typer.Option(0, "--seed", help="Seed of the cross-validation"),
) -> None:
    """
    Turn the scores of a pipeline's links into probabilities.

    The scores on texts that a linker was trained on are too high: give it others. What is printed
    was measured by cross-validation over the documents of CORPUS; the calibrator that is saved is
    fitted to all of them.
    """
    if output.exists():
        raise FileExistsError(Errors.XE087.format(path=output))
    nlp = spacy.load(pipeline)
    name = linking_component(nlp, component)
    held_out = collect(nlp, name, list(read_corpus(corpus)), gold_mentions=gold_mentions)
    threshold = float(nlp.get_pipe_config(name)["threshold"])
    result = cross_validate(
        held_out, method, target_precision=target_precision, confidence=confidence,
        threshold=threshold, seed=seed,
    )  # fmt: skip
    if result.threshold is not None:
        if not result.threshold.reached:
            at, best, links, _ = result.threshold
            raise ValueError(
                Errors.XE088.format(target=target_precision, best=best, at=at, linked=links)
            )
        threshold = result.threshold.value
    figures = _figures(held_out, result, threshold)
    _print(figures)
    calibrate(nlp, name, method, held_out)
    set_threshold(nlp, name, threshold)
    with new_folder(output) as scratch:
        nlp.to_disk(scratch)
    if report is not None:
        content = {"pipeline": pipeline, "corpus": str(corpus), "method": method, **figures}
        with new_file(report) as file:
            file.write_text(json.dumps(content, indent=2) + "\n")
    msg.good(f"Wrote {output}: {name} calibrated by {method}, threshold {threshold:.4f}")


def _figures(held_out: HeldOut, result: CrossValidation, threshold: float) -> dict[str, Any]:
    raw = held_out.raw_scores
    return {
        "mentions": len(raw),
        "documents": len(set(held_out.documents.tolist())),
        "nil_mentions": held_out.n_nil,
        "threshold": threshold,
        "before": link_scores(held_out, raw, raw * 0.0),
        "after": link_scores(held_out, result.probabilities, result.thresholds),
    }


def _print(figures: dict[str, Any]) -> None:
    names = ("documents", "mentions", "nil_mentions")
    msg.table([(name, figures[name]) for name in names])
    before, after = figures["before"], figures["after"]
    rows = [(name, f"{before[name]:.4f}", f"{after[name]:.4f}") for name in _SCORES]
    msg.table(rows, header=("score", "before", "after"), divider=True)
    header = ("probability", "mentions", "said", "right")
    curve = [
        (
            f"{part['low']:.2f} - {part['high']:.2f}",
            part["mentions"],
            f"{part['probability']:.3f}",
            f"{part['accuracy']:.3f}",
        )
        for part in after["curve"]
    ]
    msg.table(curve, header=header, divider=True)
