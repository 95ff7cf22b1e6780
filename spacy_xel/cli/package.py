"""The commands `xel finish` and `xel verify`."""

from pathlib import Path

import typer
from wasabi import msg

from spacy_xel.cli.common import friendly_errors
from spacy_xel.packaging.finish import finish
from spacy_xel.packaging.inputs import read_meta, read_metrics
from spacy_xel.packaging.verify import verify
from spacy_xel.pipeline.locate import pipeline_folder


@friendly_errors
def finish_cli(
    source: Path = typer.Argument(..., help="Pipeline that was assembled or trained"),
    target: Path = typer.Argument(..., help="Folder to write"),
    meta: Path | None = typer.Option(
        None, "--meta", "-m", help="JSON file: lang, name, version, license, sources, notes"
    ),
    metrics: Path | None = typer.Option(
        None, "--metrics", help="What `xel evaluate --json` wrote, for the model card"
    ),
    licence: Path | None = typer.Option(
        None, "--license", help="File with the licence; without it, one is written from the meta"
    ),
) -> None:
    """
    Finish a pipeline: add a model card, a licence, requirements and a manifest of all files.

    The result is ready for `python -m spacy package`.
    """
    finish(
        source,
        target,
        meta=read_meta(meta) if meta else {},
        metrics=read_metrics(metrics) if metrics else None,
        licence=licence,
    )
    msg.good(f"Finished pipeline: {target}")


@friendly_errors
def verify_cli(
    pipeline: str = typer.Argument(..., help="Name or path of a finished pipeline"),
) -> None:
    """
    Compare every file of a pipeline with its manifest.
    """
    folder = pipeline_folder(pipeline)
    result = verify(folder)
    for problem in result.problems:
        msg.fail(problem)
    for name in result.unknown:
        msg.warn(f"{name} is not in the manifest")
    if result.kb_changes:
        msg.info(f"The knowledge base has been changed {result.kb_changes} times since")
    if result.problems:
        msg.fail(f"{len(result.problems)} problems. Install {pipeline} again.", exits=1)
    msg.good(f"All {result.files} files are as they were made: {folder}")
