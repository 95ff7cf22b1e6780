"""What the commands share."""

import functools
import resource
import signal
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import typer
from wasabi import msg

from spacy_xel.errors import Errors, MissingExtra, UnknownEntity

Command = TypeVar("Command", bound=Callable[..., Any])
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def friendly_errors(command: Command) -> Command:
    """Show errors that a user can mend as one message, without a traceback."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> Any:
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, _stop)
        try:
            return command(*args, **kwargs)
        except (ValueError, OSError, MemoryError, UnknownEntity, MissingExtra) as error:
            msg.fail(str(error), exits=1)

    return run  # type: ignore[return-value]


def parse_size(value: str) -> int:
    """Return a number of bytes from text such as 800M or 4G."""
    text = value.strip().upper().removesuffix("B").removesuffix("I")
    unit = text[-1:] if text[-1:] in _UNITS else ""
    try:
        size = int(float(text.removesuffix(unit)) * _UNITS[unit])
    except (ValueError, OverflowError) as error:
        raise ValueError(Errors.XE024.format(value=value)) from error
    if size <= 0:
        raise ValueError(Errors.XE024.format(value=value))
    return size


def peak_memory() -> int:
    """Return the most bytes of memory that this process has used so far."""
    kilobyte = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * kilobyte


def split_column(value: str, option: str = "--column") -> tuple[str, str]:
    """Return our name of a field and the column (or what else is said of it), from FIELD=COLUMN."""
    field, equals, name = value.partition("=")
    if not (field and equals and name):
        raise typer.BadParameter("expected FIELD=COLUMN", param_hint=option)
    return field.strip(), name


def check_paths_differ(sources: Iterable[Path | None], targets: Iterable[Path | None]) -> None:
    """Raise if a file to write is one of those to read, or another one to write."""
    taken = {path.resolve() for path in sources if path is not None}
    for path in targets:
        if path is None:
            continue
        if path.resolve() in taken:
            raise ValueError(Errors.XE120.format(path=path))
        taken.add(path.resolve())


def _stop(number: int, frame: object) -> NoReturn:
    """Leave by an exception, so that unfinished files are removed."""
    sys.exit(128 + number)
