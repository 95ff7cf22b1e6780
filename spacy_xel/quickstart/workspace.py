"""Where a quickstart works: a hidden folder that survives a kill and becomes the output at last."""

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from spacy_xel.errors import Errors
from spacy_xel.storage import new_file, swap_in

STATE = "quickstart.json"
_FORMAT = "spacy-xel-quickstart-1"


class Workspace:
    """The folder in which the steps leave their results, and which of them are done.

    output (Path): The folder that appears when all is done.
    purpose (dict): The sources and settings. A run that was stopped goes on only if they are the
        same; else the work begins anew.
    """

    def __init__(self, output: Path, purpose: dict[str, Any]) -> None:
        self.output = output
        self.folder = work_folder(output)
        self.purpose = json.loads(json.dumps(purpose, default=str))
        self.done: dict[str, Any] = {}
        self.resumed: list[str] = []

    @contextlib.contextmanager
    def opened(self) -> Iterator["Workspace"]:
        """Take the folder for this run alone."""
        self.output.parent.mkdir(parents=True, exist_ok=True)
        with _lock(self.folder.with_name(f"{self.folder.name}.lock"), self.folder):
            state = read_state(self.folder)
            if state is not None and state["purpose"] == self.purpose:
                self.done = state["done"]
                self.resumed = list(self.done)
            else:
                shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir(exist_ok=True)
            self._save()
            yield self

    def step(self, name: str, work: Callable[[], Any]) -> Any:
        """Do a step, or return its result if an earlier run has done it. Results are JSON."""
        if name not in self.done:
            self.done[name] = work()
            self._save()
        return self.done[name]

    def finish(self) -> None:
        """Put the folder in the output's place."""
        swap_in(self.folder, self.output)

    def _save(self) -> None:
        state = {"format": _FORMAT, "purpose": self.purpose, "done": self.done}
        with new_file(self.folder / STATE) as scratch:
            scratch.write_text(json.dumps(state, indent=2) + "\n", encoding="utf8")


def work_folder(output: Path) -> Path:
    """Return the folder in which an output is made."""
    return output.parent / f".{output.name}.quickstart"


def check_output(output: Path, force: bool) -> None:
    """Raise if the output exists and may not be replaced."""
    if not output.exists() or (output.is_dir() and not any(output.iterdir())):
        return
    if not force:
        raise FileExistsError(Errors.XE008.format(path=output))
    if read_state(output) is None:
        raise FileExistsError(Errors.XE036.format(path=output))


def read_state(folder: Path) -> dict[str, Any] | None:
    """Return what a quickstart noted in its folder, or None if there is nothing to be used."""
    try:
        state: dict[str, Any] = json.loads((folder / STATE).read_text(encoding="utf8"))
    except (OSError, ValueError):
        return None
    return state if isinstance(state, dict) and state.get("format") == _FORMAT else None


def file_stamp(path: Path) -> list[Any]:
    """Return what tells whether a file, or what is in a folder, is still the same."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    stats = [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    return [str(path.resolve()), hashlib.sha256(json.dumps(stats).encode()).hexdigest()]


@contextlib.contextmanager
def _lock(path: Path, folder: Path) -> Iterator[None]:
    try:
        import fcntl
    except ImportError:  # Windows: no lock
        yield
        return
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise ValueError(Errors.XE099.format(path=folder)) from error
        yield
        path.unlink(missing_ok=True)
    finally:
        os.close(descriptor)
