"""A pipeline as a wheel, and the wheel installed."""

import importlib.util
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import srsly

from spacy_xel.errors import Errors, MissingExtra

LANG = "xel"  # what packages begin with; spaCy puts it in front of the name
_SHOWN_CHARACTERS = 1500


def check_tools(install: bool) -> None:
    """Raise if what packaging or installing needs is missing: before the long work, not after."""
    if importlib.util.find_spec("build") is None:
        message = Errors.XE051.format(what="Packaging", package="build", extra="package")
        raise MissingExtra(message)
    if install and importlib.util.find_spec("pip") is None:
        raise MissingExtra(Errors.XE095)


def package_name(name: str, source: Path) -> str:
    """Return the name of the package, xel_…, from --name or from the name of the KB file."""
    if not name:
        stem = source.name.split(".")[0].lower()
        name = re.sub(r"[^a-z0-9]+", "_", stem).strip("_") or "kb"
    name = name.removeprefix(f"{LANG}_")
    if not re.fullmatch(r"[a-z0-9]+(_[a-z0-9]+)*", name):
        raise ValueError(Errors.XE096.format(name=name))
    return f"{LANG}_{name}"


def is_installed(package: str) -> bool:
    """Return whether there is an installed package of this name."""
    try:
        distribution(package)
    except PackageNotFoundError:
        return False
    return True


def package_pipeline(folder: Path, packages: Path) -> Path:
    """Make a wheel of a finished pipeline; return its path.

    folder (Path): The pipeline.
    packages (Path): Where the wheel's folder is written.
    """
    packages.mkdir(parents=True, exist_ok=True)
    command = ["spacy", "package", str(folder), str(packages), "--build", "wheel", "--force"]
    _run("Making the wheel", command, packages / "package.log")
    meta = srsly.read_json(folder / "meta.json")
    full_name = f"{meta['lang']}_{meta['name']}-{meta['version']}"
    return packages / full_name / "dist" / f"{full_name}-py3-none-any.whl"


def install(wheel: Path, log: Path) -> None:
    """Install a wheel into this environment, which has all that it requires: no network."""
    options = ["--no-deps", "--no-index", "--force-reinstall", "--disable-pip-version-check"]
    _run("Installing the wheel", ["pip", "install", *options, str(wheel)], log)


def _run(what: str, command: list[str], log: Path) -> None:
    with log.open("w", encoding="utf8") as file:
        result = subprocess.run(
            [sys.executable, "-m", *command], stdout=file, stderr=subprocess.STDOUT, check=False
        )
    if result.returncode != 0:
        output = log.read_text(encoding="utf8", errors="replace")[-_SHOWN_CHARACTERS:]
        raise ValueError(Errors.XE094.format(what=what, output=output, path=log))
