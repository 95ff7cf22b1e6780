"""The commands `xel kilt predict` and `xel kilt evaluate`."""

import json
from pathlib import Path

import spacy
import typer
from wasabi import msg

from spacy_xel.cli.common import check_paths_differ, friendly_errors
from spacy_xel.errors import Errors
from spacy_xel.evaluation.kilt import predict, score_rankings
from spacy_xel.formats import kilt
from spacy_xel.storage import new_file

HELP = "Link the queries of KILT's entity-linking tasks, and score the result as KILT does."
kilt_app = typer.Typer(name="kilt", help=HELP, no_args_is_help=True, rich_markup_mode=None)


@kilt_app.command("predict")
@friendly_errors
def predict_cli(
    pipeline: str = typer.Argument(..., help="Name or path of a pipeline"),
    queries: Path = typer.Argument(..., help="KILT file with queries"),
    target: Path = typer.Argument(..., help="KILT file with predictions to write"),
) -> None:
    """
    Link the mention of each query, and write the pages in KILT's format.

    The ids of the pipeline's knowledge base must be those of Wikipedia pages, as in one that was
    imported with --from kilt.
    """
    check_paths_differ([queries], [target])
    nlp = spacy.load(pipeline)
    count = 0
    with new_file(target) as scratch, scratch.open("w", encoding="utf8") as file:
        for line in predict(nlp, kilt.read(queries)):
            file.write(line)
            count += 1
    msg.good(f"{count:,} predictions: {target}")


@kilt_app.command("evaluate")
@friendly_errors
def evaluate_cli(
    gold: Path = typer.Argument(..., help="KILT file with answers"),
    predictions: Path = typer.Argument(..., help="KILT file with predictions"),
    json_file: Path | None = typer.Option(None, "--json", "-j", help="Write the scores here"),
) -> None:
    """
    Score predictions: accuracy and recall@5 of pages, and accuracy of answers.
    """
    result = score_rankings(kilt.read_rankings(gold), kilt.read_rankings(predictions))
    if not result.queries:
        raise ValueError(Errors.XE022.format(path=gold))
    if result.without_gold:
        msg.warn(f"{result.without_gold:,} queries have no right page and are not scored")
    if result.without_prediction:
        shown = ", ".join(result.without_prediction[:3])
        msg.warn(f"{len(result.without_prediction):,} queries have no prediction: {shown} …")
    if result.without_query:
        shown = ", ".join(result.without_query[:3])
        msg.warn(f"{len(result.without_query):,} predictions are for no query: {shown} …")
    msg.table([("queries", f"{result.queries:,}")])
    rows = [(name, f"{score:.4f}") for name, score in result.scores.items()]
    msg.table(rows, header=("score", "value"), divider=True)
    if json_file is not None:
        content = {"gold": str(gold), "predictions": str(predictions), "queries": result.queries}
        with new_file(json_file) as scratch:
            scratch.write_text(json.dumps({**content, "scores": result.scores}, indent=2) + "\n")
        msg.good(f"Wrote {json_file}")
