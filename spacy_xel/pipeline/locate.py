"""Where pipelines and their knowledge bases are on the disk, installed or in a folder."""

from pathlib import Path

import srsly
from spacy import util

from spacy_xel.errors import Errors
from spacy_xel.storage import MANIFEST

_CONFIG = "config.cfg"
_KB = f"*/kb/{MANIFEST}"


def pipeline_folder(name: str) -> Path:
    """Return the folder of a pipeline.

    name (str): A folder, or the name of an installed pipeline.
    """
    folder = Path(name)
    if not folder.is_dir() and util.is_package(name):
        package = util.get_package_path(name)
        meta = srsly.read_json(package / "meta.json")
        folder = package / f"{meta['lang']}_{meta['name']}-{meta['version']}"
    if not (folder / _CONFIG).is_file():
        raise FileNotFoundError(Errors.XE110.format(name=name))
    return folder


def store_folder(name: str) -> Path:
    """Return the folder of a knowledge base.

    name (str): That folder, or a pipeline with a knowledge base (a folder or an installed one).
    """
    if (Path(name) / MANIFEST).is_file() and not (Path(name) / _CONFIG).exists():
        return Path(name)
    try:
        folder = pipeline_folder(name)
    except FileNotFoundError as error:
        raise FileNotFoundError(Errors.XE111.format(name=name)) from error
    found = [path.parent for path in sorted(folder.glob(_KB))]
    if len(found) != 1:
        shown = ", ".join(map(str, found)) or "none"
        raise ValueError(Errors.XE112.format(name=name, found=shown))
    return found[0]
