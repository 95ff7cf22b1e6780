"""Candidates as spaCy's entity_linker knows them."""

from collections.abc import Sequence

from spacy.kb import Candidate

from spacy_xel.kb.key_table import hash_name


class XelCandidate(Candidate):
    """An entity that a name may mean. Its strings stay out of the vocab's StringStore."""

    __slots__ = ("name", "row")

    name: str
    row: int

    @property
    def alias_(self) -> str:
        return self.name

    @property
    def alias(self) -> int:
        return int(hash_name(self.name))

    @property
    def entity_(self) -> str:
        return str(self.kb.kb_id(self.row))

    @property
    def entity(self) -> int:
        return int(hash_name(self.entity_))

    @property
    def entity_vector(self) -> Sequence[float]:
        return list(self.kb.get_vector(self.entity_))
