"""Progress bars: silent when there is nobody to watch, or nothing that takes long."""

from collections.abc import Iterable
from typing import Any, TypeVar

from tqdm import tqdm

Item = TypeVar("Item")


def progress(items: Iterable[Item], description: str, *, total: int | None = None) -> "tqdm[Item]":
    """Iterate with a bar on standard error; it appears after half a second, on terminals only."""
    return tqdm(items, desc=description, total=total, delay=0.5, disable=None, leave=False)


def byte_progress(total: int, description: str) -> "tqdm[Any]":
    """Return a bar that counts bytes; call its update(n)."""
    return tqdm(
        total=total, desc=description, unit="B", unit_scale=True, delay=0.5, disable=None,
        leave=False,
    )  # fmt: skip
