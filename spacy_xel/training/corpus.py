"""Annotated texts as training examples."""

from collections.abc import Callable, Iterator
from pathlib import Path

from spacy.language import Language
from spacy.tokens import Span
from spacy.training import Example

from spacy_xel.errors import Errors
from spacy_xel.formats import read_corpus
from spacy_xel.formats.docbin import Misfits, doc_of_text


def make_corpus_reader(
    path: str | Path | None, limit: int = 0, gold_mentions: bool = False
) -> Callable[[Language], Iterator[Example]]:
    """spacy-xel.Corpus.v1: read a corpus in any format that `xel convert` knows.

    path (Path): The corpus.
    limit (int): Read at most so many texts; 0 for all.
    gold_mentions (bool): Set the annotated mentions on the predicted Docs too, without their ids.
    """

    def read(nlp: Language) -> Iterator[Example]:
        if path is None:
            raise ValueError(Errors.XE026)
        misfits = Misfits()
        for number, text in enumerate(read_corpus(Path(path))):
            if limit and number >= limit:
                break
            reference = doc_of_text(text, nlp, misfits)
            predicted = nlp.make_doc(text.text)
            if gold_mentions:
                predicted.ents = [
                    Span(predicted, ent.start, ent.end, label=ent.label) for ent in reference.ents
                ]
            yield Example(predicted, reference)
        misfits.warn(str(path))

    return read
