"""The files that a pipeline is finished with, read and checked."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from packaging.version import InvalidVersion, Version
from spacy.schemas import ModelMetaSchema, validate

from spacy_xel.errors import Errors

_NAME = re.compile(r"[a-zA-Z0-9]+(_[a-zA-Z0-9]+)*")


def read_meta(path: Path) -> dict[str, Any]:
    """Return what a file says of a pipeline: lang, name, version, license, sources, notes."""
    meta = _read_object(path)
    problem = meta_problem(meta)
    if problem:
        raise ValueError(Errors.XE116.format(path=path, problem=problem))
    return meta


def read_metrics(path: Path) -> dict[str, Any]:
    """Return what `xel evaluate --json` wrote."""
    metrics = _read_object(path)
    problem = _metrics_problem(metrics)
    if problem:
        raise ValueError(Errors.XE116.format(path=path, problem=problem))
    return metrics


def meta_problem(meta: Mapping[str, Any]) -> str:
    """Return what is wrong with a meta, or ""."""
    needed = {"lang": "xel", "name": "pipeline", "version": "0.0.0"}
    problems = validate(ModelMetaSchema, {**needed, **meta})
    if problems:
        return "; ".join(" ".join(text.split()) for text in problems)
    for key in ("lang", "name"):
        if key in meta and not _NAME.fullmatch(meta[key]):
            return f"{key} must be letters, digits and single underscores, but is {meta[key]!r}"
    try:
        Version(meta.get("version", "0.0.0"))
    except InvalidVersion:
        return f"version must be like 0.1.0, but is {meta['version']!r}"
    for source in meta.get("sources") or ():
        if isinstance(source, dict) and not source.get("name"):
            return f"a source must have a name, but is {source!r}"
    return ""


def _metrics_problem(metrics: Mapping[str, Any]) -> str:
    """Return what is wrong with metrics, or ""."""
    if not isinstance(metrics.get("scores"), dict):
        return "there are no scores in it, as `xel evaluate --json` writes them"
    for part in ("scores", "sizes", "speed"):
        values = metrics.get(part, {})
        if not isinstance(values, dict) or not all(map(_is_number, values.values())):
            return f"{part} must be numbers by name"
    intervals = metrics.get("intervals", {})
    if not isinstance(intervals, dict) or not all(
        isinstance(pair, list) and len(pair) == 2 and all(map(_is_number, pair))
        for pair in intervals.values()
    ):
        return "intervals must be two numbers by name"
    return ""


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _read_object(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf8"))
    except ValueError as error:
        raise ValueError(Errors.XE116.format(path=path, problem=f"not JSON ({error})")) from error
    if not isinstance(content, dict):
        found = type(content).__name__
        problem = f"it should be a JSON object, but is a {found}"
        raise ValueError(Errors.XE116.format(path=path, problem=problem))
    return content
