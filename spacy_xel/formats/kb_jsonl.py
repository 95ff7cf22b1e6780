"""Our own KB format, JSON Lines: read to check it, or to put several files together."""

from collections.abc import Iterator

from spacy_xel.formats.reading import Item, Options, Reading
from spacy_xel.jsonlines import BadLine
from spacy_xel.kb.schema import parse_entity


def read_entities(reading: Reading, options: Options) -> Iterator[Item]:
    """Read entities."""
    for line in reading.lines():
        try:
            entity = parse_entity(line.data)
        except BadLine as error:
            reading.problem(error)
        else:
            yield entity
