"""What an article of a wiki says: plain text, its links with their places, and what else."""

from dataclasses import dataclass, field
from typing import NamedTuple


class Link(NamedTuple):
    """A link in plain text; its surface is there at start to end."""

    start: int
    end: int
    target: str
    surface: str


class LooseLink(NamedTuple):
    """A link that has no place in the plain text, and why: "footnote", "template", …"""

    place: str
    target: str
    surface: str


@dataclass
class LinkedText:
    """What an article says: text, its links, and what else there was."""

    text: str = ""
    first_paragraph: str = ""
    links: list[Link] = field(default_factory=list)
    loose_links: list[LooseLink] = field(default_factory=list)
    categories: list[str] = field(default_factory=list)
    templates: list[str] = field(default_factory=list)
    other_links: dict[str, int] = field(default_factory=dict)  # to files, other wikis …, by kind
