"""From an assembled pipeline to one that can be handed on: meta, model card, licence, manifest."""

import json
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import srsly
from spacy.cli.package import get_meta
from spacy.language import Language
from spacy.util import load_config, load_model_from_path, split_requirement

from spacy_xel.errors import Errors
from spacy_xel.evaluation.evaluate import find_kb
from spacy_xel.packaging.card import KBFacts, model_card, source_texts
from spacy_xel.packaging.inputs import meta_problem
from spacy_xel.storage import MANIFEST, copy_folder, new_folder, write_manifest

PIPELINE_FORMAT = "spacy-xel-pipeline-1"
CARD = "README.md"
LICENCE = "LICENSE"
_META = "meta.json"
# What a pipeline needs beyond the core, by the factories and functions in its config.
_EXTRAS = {
    "xel_reranker": ("transformers",),
    "xel_reader": ("transformers",),
    "spacy-xel.EmbeddingAlias.v1": ("transformers", "dense"),
    "spacy-xel.Dense.v1": ("transformers", "dense"),
}


def finish(
    source: Path,
    target: Path,
    *,
    meta: Mapping[str, Any],
    metrics: Mapping[str, Any] | None = None,
    licence: Path | None = None,
) -> None:
    """Write a copy of a pipeline that is ready to be packaged; it appears only when complete.

    source (Path): The pipeline as `spacy assemble` or `spacy train` wrote it.
    target (Path): The folder to write; a finished pipeline that is there is replaced.
    meta (Mapping): What to say in meta.json: name, version, license, sources, notes ...
    metrics (Mapping): What `xel evaluate --json` wrote.
    licence (Path): A file with the licence's text; without it, one is written from the meta.
    """
    if source.resolve() == target.resolve():
        raise ValueError(Errors.XE114.format(path=source))
    if problem := meta_problem(meta):
        raise ValueError(Errors.XE116.format(path="The meta", problem=problem))
    nlp = load_model_from_path(source)
    with new_folder(target, force=True) as folder:
        copy_folder(source, folder)
        for name in (_META, CARD, LICENCE, MANIFEST):
            # Never through a hard link into the source.
            (folder / name).unlink(missing_ok=True)
        full = _full_meta(folder, source, meta, metrics)
        (folder / _META).write_text(srsly.json_dumps(full, indent=2), encoding="utf8")
        (folder / LICENCE).write_text(_licence_text(full, licence), encoding="utf8")
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        card = model_card(full, metrics or {}, kb=_kb_facts(nlp), megabytes=size / 1e6)
        (folder / CARD).write_text(card, encoding="utf8")
        write_manifest(folder, {"format": PIPELINE_FORMAT, "name": full["name"]})


def _full_meta(
    folder: Path, source: Path, meta: Mapping[str, Any], metrics: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return what `spacy package` would write as meta.json, so that it writes the same again."""
    own = {**srsly.read_json(source / _META), **meta}
    own["performance"] = dict((metrics or {}).get("scores", {}))
    own["requirements"] = _requirements(folder, own.get("requirements", ()))
    for _ in range(2):  # the second time in the order in which spaCy will write it
        (folder / _META).write_text(srsly.json_dumps(own, indent=2), encoding="utf8")
        own = get_meta(folder, own, require_parent=True)
    return own


def _requirements(folder: Path, given: Iterable[str]) -> list[str]:
    """Return the requirements given, and this package with the extras that the config needs."""
    text = json.dumps(load_config(folder / "config.cfg"))
    needed = [extras for name, extras in _EXTRAS.items() if f'"{name}"' in text]
    extras = sorted({extra for group in needed for extra in group})
    major, minor = version("spacy-xel").split(".")[:2]
    name = f"spacy-xel[{','.join(extras)}]" if extras else "spacy-xel"
    own = f"{name}>={version('spacy-xel')},<{major}.{int(minor) + 1}.0"
    others = [text for text in given if split_requirement(text)[0] not in ("spacy", "spacy-xel")]
    # A bare "spacy", or `spacy package` adds its version at every turn; ours is that of spacy-xel.
    return [own, "spacy", *others]


def _kb_facts(nlp: Language) -> KBFacts | None:
    kb = find_kb(nlp)
    if kb is None:
        return None
    names = kb.built.names_uncased
    return KBFacts(len(kb.built), len(names), names.count_ambiguous(), kb.revision)


def _licence_text(meta: Mapping[str, Any], licence: Path | None) -> str:
    if licence is not None:
        return licence.read_text(encoding="utf8")
    lines = [f"{meta['lang']}_{meta['name']} {meta['version']}", ""]
    lines.append(f"Licence: {meta.get('license') or 'not stated'}")
    lines += [f"Contains data from: {text}" for text in source_texts(meta)]
    return "\n".join(lines) + "\n"
