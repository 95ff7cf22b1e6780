"""What a quickstart will take: memory, disk and time, from what others took.

The constants are fitted by hand to single runs of what `python benchmarks/quickstart.py` runs (two
cores, Linux, a busy machine); its result has predicted and real figures side by side. Fit them
again when the trees change.
"""

import os
import shutil
from pathlib import Path
from typing import NamedTuple

from spacy_xel.errors import Errors
from spacy_xel.quickstart.recipe import Recipe

_MB = 1 << 20
_NEARLY = 0.7  # of what there is: worth a warning


class Rates(NamedTuple):
    """What a pipeline takes at least, and per instance: a name or an annotated mention."""

    seconds: float
    seconds_per_instance: float
    memory_mb: float
    memory_bytes_per_instance: float
    disk_mb: float
    disk_bytes_per_instance: float  # all of the output folder


RATES: dict[Recipe, Rates] = {
    "names": Rates(20.0, 250e-6, 620.0, 2300.0, 4.0, 2400.0),
    "tree": Rates(20.0, 600e-6, 620.0, 4400.0, 4.0, 5300.0),
}
# A description, or a text of the corpus, is kept several times, as a name is.
_DISK_PER_CHARACTER = 5.0


class Estimate(NamedTuple):
    """What is expected."""

    memory: int  # bytes at the peak
    disk: int  # bytes
    seconds: float


def estimate(recipe: Recipe, names: int, mentions: int, characters: int) -> Estimate:
    """Return what a quickstart takes, within a factor of about two.

    names (int): Titles and aliases of the knowledge base.
    mentions (int): Annotated mentions to learn from.
    characters (int): Of names, descriptions and texts.
    """
    rates = RATES[recipe]
    instances = names + mentions
    disk = rates.disk_mb * _MB + rates.disk_bytes_per_instance * instances
    return Estimate(
        memory=round(rates.memory_mb * _MB + rates.memory_bytes_per_instance * instances),
        disk=round(disk + _DISK_PER_CHARACTER * characters),
        seconds=rates.seconds + rates.seconds_per_instance * instances,
    )


def check_room(expected: Estimate, folder: Path, *, anyway: bool = False) -> list[str]:
    """Raise if memory or disk will not do; return warnings if they only just will.

    anyway (bool): Warn instead.
    """
    warnings = []
    for what, need, have in (
        ("memory", expected.memory, free_memory()),
        ("disk", expected.disk, free_disk(folder)),
    ):
        if have is None or need <= _NEARLY * have:
            continue
        message = Errors.XE093.format(what=what, need=size_text(need), have=size_text(have))
        if need > have and not anyway:
            raise ValueError(message)
        warnings.append(
            message if need > have else
            f"This needs about {size_text(need)} of {what}, and there is {size_text(have)}."
        )  # fmt: skip
    return warnings


def free_memory() -> int | None:
    """Return how many bytes of memory can be had, or None if the system does not say."""
    found = []
    try:
        lines = Path("/proc/meminfo").read_text(encoding="utf8").splitlines()
        fields = dict(line.split(":", maxsplit=1) for line in lines)
        found.append(int(fields["MemAvailable"].split()[0]) << 10)
    except (OSError, KeyError, ValueError):
        pass
    try:  # a container's limit
        group = Path("/sys/fs/cgroup")
        limit = int((group / "memory.max").read_text())
        found.append(limit - int((group / "memory.current").read_text()))
    except (OSError, ValueError):
        pass
    if not found and hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min(found, default=None)


def free_disk(folder: Path) -> int:
    """Return how many bytes are free where a folder is, or will be."""
    existing = folder.resolve()
    while not existing.exists():
        existing = existing.parent
    return shutil.disk_usage(existing).free


def size_text(size: float) -> str:
    """Return a number of bytes for people."""
    return f"{size / _MB:,.0f} MB" if size < 1 << 30 else f"{size / (1 << 30):,.1f} GB"


def time_text(seconds: float) -> str:
    """Return a time for people."""
    return f"{seconds:,.0f} seconds" if seconds < 120 else f"{seconds / 60:,.0f} minutes"
