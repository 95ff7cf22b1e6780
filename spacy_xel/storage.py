"""Folders that are written whole or not at all, with a manifest that tells when one is damaged."""

import contextlib
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from spacy_xel.errors import Errors

MANIFEST = "manifest.json"
_OWN_HASH = "manifest_sha256"
_CHUNK = 1 << 20


@contextlib.contextmanager
def new_folder(target: Path, *, force: bool = False) -> Iterator[Path]:
    """Yield a scratch folder that becomes target when the block ends well, and vanishes if not.

    target (Path): The folder to write.
    force (bool): Replace target if it exists.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    _remove_leftovers(target)
    if target.exists():
        if not force:
            raise FileExistsError(Errors.XE008.format(path=target))
        empty = target.is_dir() and not any(target.iterdir())
        if not empty and not (target / MANIFEST).is_file():
            raise FileExistsError(Errors.XE036.format(path=target))
    scratch = target.parent / f".{target.name}.{os.getpid()}-{secrets.token_hex(4)}.partial"
    scratch.mkdir()
    try:
        yield scratch
        _sync_files(scratch)
        swap_in(scratch, target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


@contextlib.contextmanager
def new_file(target: Path) -> Iterator[Path]:
    """Yield a scratch path that becomes target when the block ends well, and vanishes if not."""
    target.parent.mkdir(parents=True, exist_ok=True)
    # The ending stays, because it tells the format.
    scratch = target.parent / f".{secrets.token_hex(4)}.partial.{target.name}"
    try:
        yield scratch
        os.replace(scratch, target)
    finally:
        scratch.unlink(missing_ok=True)


def write_manifest(folder: Path, fields: dict[str, Any]) -> None:
    """Write the manifest of a finished folder: the fields given, and each file's size and hash."""
    files = {
        path.relative_to(folder).as_posix(): {
            "bytes": path.stat().st_size,
            "sha256": file_sha256(path),
        }
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    manifest = {**fields, "files": files}
    manifest[_OWN_HASH] = _fields_hash(manifest)
    text = json.dumps(manifest, indent=2, sort_keys=True, ensure_ascii=False)
    (folder / MANIFEST).write_text(text + "\n", encoding="utf8")


def load_manifest(folder: Path, expected_format: str) -> dict[str, Any]:
    """Return the manifest of a folder; the files that it names are not looked at."""
    if not (folder / MANIFEST).is_file():
        raise FileNotFoundError(Errors.XE005.format(path=folder))
    try:
        manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf8"))
        found = manifest["format"]
        manifest["files"].items()
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        problem = f"its {MANIFEST} cannot be read ({error!r})"
        raise ValueError(Errors.XE007.format(path=folder, problem=problem)) from error
    if found != expected_format:
        raise ValueError(Errors.XE006.format(path=folder, found=found, expected=expected_format))
    if manifest.pop(_OWN_HASH, None) != _fields_hash(manifest):
        problem = f"the contents of {MANIFEST} do not match their checksum"
        raise ValueError(Errors.XE007.format(path=folder, problem=problem))
    return manifest


def read_manifest(folder: Path, expected_format: str) -> dict[str, Any]:
    """Return the manifest of a folder after a check that all its files have the right size."""
    manifest = load_manifest(folder, expected_format)
    for name, entry in manifest["files"].items():
        path = folder / name
        size = path.stat().st_size if path.is_file() else None
        if size != entry["bytes"]:
            problem = f"{name} should have {entry['bytes']} bytes but has {size or 0}"
            raise ValueError(Errors.XE007.format(path=folder, problem=problem))
    return manifest


def _fields_hash(manifest: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def verify_files(folder: Path, manifest: dict[str, Any]) -> None:
    """Raise if the contents of any file of the manifest have changed."""
    for name, entry in manifest["files"].items():
        if file_sha256(folder / name) != entry["sha256"]:
            problem = f"the contents of {name} do not match their checksum"
            raise ValueError(Errors.XE007.format(path=folder, problem=problem))


def verify_bytes(files: Mapping[str, bytes], manifest: dict[str, Any]) -> None:
    """Raise if files in memory are not those of the manifest."""
    for name, entry in manifest["files"].items():
        if name not in files or hashlib.sha256(files[name]).hexdigest() != entry["sha256"]:
            problem = f"the contents of {name} do not match their checksum"
            raise ValueError(Errors.XE007.format(path="the data", problem=problem))


def load_array(path: Path) -> npt.NDArray[Any]:
    """Map an .npy file into memory. Copy-on-write, so that compiled kernels see one array type."""
    with path.open("rb") as file:
        # An empty array cannot be mapped.
        if not _has_data(file):
            file.seek(0)
            empty: npt.NDArray[Any] = np.load(file, allow_pickle=False)
            return empty
    return np.asarray(np.load(path, mmap_mode="c", allow_pickle=False))


def copy_folder(source: Path, target: Path) -> None:
    """Copy a finished folder, sharing the data with hard links where the file system allows."""

    def link_or_copy(from_path: str, to_path: str) -> None:
        try:
            os.link(from_path, to_path)
        except OSError:
            shutil.copy2(from_path, to_path)

    shutil.copytree(source, target, copy_function=link_or_copy, dirs_exist_ok=True)


def _has_data(file: Any) -> bool:
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0
    if version != (1, 0):
        read = np.lib.format.read_array_header_2_0
    shape, _, _ = read(file)
    return int(np.prod(shape)) > 0


def file_sha256(path: Path) -> str:
    """Return the hash of a file's contents."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _sync_files(folder: Path) -> None:
    for path in [*folder.rglob("*"), folder]:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def swap_in(scratch: Path, target: Path) -> None:
    """Put a finished folder in the place of another, which vanishes, or where there is none."""
    old = target.parent / f".{target.name}.{secrets.token_hex(4)}.old"
    if target.exists():
        target.rename(old)
    scratch.rename(target)
    shutil.rmtree(old, ignore_errors=True)


def _remove_leftovers(target: Path) -> None:
    """Clear up after killed processes: scratch folders, and a target that was being replaced."""
    for path in target.parent.glob(f".{target.name}.*.old"):
        if target.exists():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.rename(target)
    for path in target.parent.glob(f".{target.name}.*-*.partial"):
        owner = path.name.removeprefix(f".{target.name}.").split("-")[0]
        if owner.isdigit() and not _is_running(int(owner)):
            shutil.rmtree(path, ignore_errors=True)


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
