"""Text in the making, while the constructs of wikitext that it lies in are open."""

from typing import Any


class Buffer:
    """Text in the making, with links: [start, end, target]."""

    __slots__ = ("length", "links", "parts")

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.length = 0
        self.links: list[list[Any]] = []

    def add(self, text: str) -> None:
        self.parts.append(text)
        self.length += len(text)

    def extend(self, other: "Buffer") -> None:
        for start, end, target in other.links:
            self.links.append([start + self.length, end + self.length, target])
        self.parts.extend(other.parts)
        self.length += other.length

    def clear(self) -> None:
        self.parts.clear()
        self.links.clear()
        self.length = 0


class Frame:
    """A construct that is open: where its text goes, and what to do when it closes."""

    __slots__ = ("arguments", "buffer", "kind", "name", "start")

    def __init__(self, kind: str, buffer: Buffer, name: str = "", start: int = 0) -> None:
        self.kind = kind
        self.buffer = buffer
        self.name = name
        self.start = start
        self.arguments: list[Buffer] = []
