"""What a reader of a corpus does about a text that cannot be read: stop, or count it and go on."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from spacy_xel.errors import Errors
from spacy_xel.formats.reading import OnError, Reading, lines_of_file
from spacy_xel.jsonlines import BadLine, Line
from spacy_xel.types import AnnotatedText

AnyRecord = TypeVar("AnyRecord")


class Faults:
    """An account of the texts that could not be read.

    A text with one bad mention is left out as a whole: what is left of it would teach, and be
    scored, as if that mention were none.

    on_error (str): "stop" at the first fault, or "skip" and count it.
    """

    SHOWN = 20

    def __init__(self, on_error: OnError = "stop") -> None:
        self.on_error = on_error
        self.count = 0
        self.first: list[str] = []

    def take(self, error: ValueError) -> None:
        """Raise the error, or count it."""
        if self.on_error == "stop":
            raise error
        self.count += 1
        if len(self.first) < self.SHOWN:
            self.first.append(str(error))

    def parsed(
        self, records: Iterable[AnyRecord], parse: Callable[[AnyRecord], AnnotatedText | None]
    ) -> Iterator[AnnotatedText]:
        """Yield what is made of each record; None is nothing, and no fault."""
        for record in records:
            try:
                text = parse(record)
            except ValueError as error:
                self.take(error)
                continue
            if text is not None:
                yield text

    def reading(self, path: Path) -> Reading:
        """Return a reading of a file whose faults are counted here."""
        reading = Reading(path, self.on_error)
        reading.on_problem = self._note
        return reading

    def _note(self, problem: dict[str, Any]) -> None:
        what = problem.pop("problem")
        where = ", ".join(f"{key} {value}" for key, value in problem.items())
        self.take(ValueError(Errors.XE009.format(where=where, problem=what)))


def decoded(line: Line, path: Path) -> tuple[str, str]:
    """Return where a line is and what it says, or raise an error that names it."""
    where = f"{path}, line {line.number}"
    try:
        if line.problem:
            raise BadLine(line.problem)
        return where, line.data.decode().rstrip("\r\n")
    except UnicodeDecodeError as error:
        problem = f"not UTF-8 ({error.reason} at byte {error.start})"
        raise ValueError(Errors.XE009.format(where=where, problem=problem)) from error
    except BadLine as error:
        raise ValueError(Errors.XE009.format(where=where, problem=error)) from error


def blocks_of_lines(path: Path, begins: Callable[[bytes], bool]) -> Iterator[list[Line]]:
    """Cut a file into blocks, each from a line that begins one to the next such line."""
    block: list[Line] = []
    for line in lines_of_file(path, 0):
        if begins(line.data) and block:
            yield block
            block = []
        block.append(line)
    if block:
        yield block
