"""Which recipe of spacy_xel/project fits, and a pipeline assembled by it."""

import shutil
from importlib.resources import as_file, files
from pathlib import Path
from typing import Literal, NamedTuple

from spacy import util

from spacy_xel.quickstart.corpus import CorpusSurvey

Recipe = Literal["names", "tree"]
# Of the mentions: below, names decide. BC5CDR has 0.003 and does best with names, assets/wiki 0.75.
_AMBIGUOUS = 0.05


class Choice(NamedTuple):
    """A recipe, and why it was chosen."""

    recipe: Recipe
    reason: str


def choose_recipe(corpus: CorpusSurvey | None) -> Choice:
    """Return the recipe that fits what there is to learn from."""
    if corpus is None:
        return Choice("names", "there is no corpus, so only names can be learnt")
    if not corpus.has_contexts:
        return Choice("names", "the texts of the corpus are hardly longer than their mentions")
    share = f"{corpus.ambiguous:.1%} of the corpus's mentions have a name of several entities"
    if corpus.ambiguous < _AMBIGUOUS:
        return Choice("names", f"{share}: names decide")
    return Choice("tree", f"{share}: the context has to decide")


def assemble(recipe: Recipe, kb: Path, corpus: Path | None, target: Path, lang: str) -> None:
    """Train a pipeline and write it; a folder that a killed run left is replaced."""
    overrides = {"nlp.lang": lang, "paths.kb": str(kb), "paths.train": str(corpus or "")}
    with as_file(files("spacy_xel.project") / f"{recipe}.cfg") as path:
        config = util.load_config(path, overrides=overrides, interpolate=False)
    if corpus is None:
        for settings in config["initialize"]["components"].values():
            settings.pop("corpus", None)
    nlp = util.load_model_from_config(config, auto_fill=True)
    nlp.initialize()
    # Where the files were on this machine is nobody's business.
    nlp.config["paths"].update({"kb": None, "train": None})
    scratch = target.with_name(f"{target.name}.partial")
    for folder in (scratch, target):
        shutil.rmtree(folder, ignore_errors=True)
    nlp.to_disk(scratch)
    scratch.rename(target)
