"""Every file of a finished pipeline compared with its manifest."""

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

from spacy_xel.errors import Errors
from spacy_xel.kb.delta import DeltaLog
from spacy_xel.kb.store import DELTAS
from spacy_xel.packaging.finish import PIPELINE_FORMAT
from spacy_xel.storage import MANIFEST, file_sha256, load_manifest

_ALL = sys.maxsize


@dataclass
class Verification:
    """What came of it: files that are as they should be, problems, and what came later."""

    files: int = 0
    problems: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)  # files that are not in the manifest
    kb_changes: int = 0  # made to the knowledge base since; they have checksums of their own


def verify(folder: Path) -> Verification:
    """Compare every file of a pipeline with its manifest."""
    if not (folder / MANIFEST).is_file():
        raise FileNotFoundError(Errors.XE115.format(path=folder))
    manifest = load_manifest(folder, PIPELINE_FORMAT)
    result = Verification()
    for name, entry in manifest["files"].items():
        path = folder / name
        if not path.is_file():
            result.problems.append(f"{name} is missing")
        elif path.stat().st_size != entry["bytes"]:
            size = path.stat().st_size
            result.problems.append(f"{name} should have {entry['bytes']} bytes but has {size}")
        elif file_sha256(path) != entry["sha256"]:
            result.problems.append(f"the contents of {name} do not match their checksum")
        else:
            result.files += 1
    known = {*manifest["files"], MANIFEST, *_verify_changes(folder, result)}
    found = (path.relative_to(folder) for path in sorted(folder.rglob("*")) if path.is_file())
    result.unknown += [name for name in map(Path.as_posix, found) if name not in known]
    return result


def _verify_changes(folder: Path, result: Verification) -> set[str]:
    """Check the changes made to knowledge bases; return the names of their files."""
    files = set()
    for deltas in folder.glob(f"*/kb/{DELTAS}"):
        try:
            changes = len(DeltaLog(deltas).deltas)
        except ValueError as error:
            result.problems.append(str(error))
            changes = _ALL
        numbered = {path for path in deltas.iterdir() if re.fullmatch(r"\d{8}\.json", path.name)}
        if len(numbered) > changes:
            last = max(numbered).name
            result.problems.append(f"a change of the knowledge base before {last} is missing")
        files |= {path.relative_to(folder).as_posix() for path in numbered}
        result.kb_changes += len(numbered)
    return files
