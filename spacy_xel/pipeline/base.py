"""What the components share: a knowledge base, of their own or another component's, and saving."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import srsly
from spacy.language import Language
from spacy.pipeline import Pipe
from spacy.tokens import Doc
from spacy.training import Example
from spacy.vocab import Vocab

from spacy_xel.errors import Errors
from spacy_xel.formats.docbin import text_of_doc
from spacy_xel.kb.knowledge_base import XelKnowledgeBase
from spacy_xel.types import AnnotatedText

KBLoader = Callable[[Vocab], XelKnowledgeBase]
CorpusReader = Callable[[Language], Iterable[Example]]
_KB_FOLDER = "kb"
_FIELDS = ("name", "vocab", "model", "cfg")  # of spaCy's compiled classes: not in __dict__


class KnowledgeBasePipe(Pipe):
    """A component with a knowledge base.

    nlp (Language): The pipeline, asked for the component that kb_source names.
    name (str): The component's name.
    kb_source (str): The component whose knowledge base to use, or None for one of its own.
    """

    def __init__(self, nlp: Language, name: str, kb_source: str | None = None) -> None:
        self.vocab = nlp.vocab
        self.name = name
        self.kb_source = kb_source
        self._nlp: Language | None = nlp
        self._kb: XelKnowledgeBase | None = None

    @property
    def kb(self) -> XelKnowledgeBase:
        """The knowledge base, with all changes made to it so far."""
        kb = self._kb if self.kb_source is None else self._borrowed_kb()
        if kb is None or kb.store is None:
            raise ValueError(Errors.XE002.format(name=self.name))
        kb.refresh()
        return kb

    def set_kb(self, kb_loader: KBLoader) -> None:
        """Load a knowledge base of the component's own."""
        self.kb_source = None
        self._kb = kb_loader(self.vocab)

    def training_texts(
        self,
        get_examples: Callable[[], Iterable[Example]] | None,
        nlp: Language | None,
        corpus: CorpusReader | None,
    ) -> Iterator[AnnotatedText]:
        """Yield the texts to learn from: those of the corpus, or else of nlp.initialize."""
        pipeline = nlp or self._nlp
        if corpus is not None and pipeline is not None:
            examples = corpus(pipeline)
        else:
            examples = get_examples() if get_examples is not None else ()
        for example in examples:
            yield text_of_doc(example.reference)

    # Saving

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        srsly.write_json(folder / "cfg", {**self.state(), "kb_source": self.kb_source})
        if self._kb is not None and self.kb_source is None:
            self._kb.to_disk(folder / _KB_FOLDER)

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> "KnowledgeBasePipe":
        folder = Path(path)
        self._restore(srsly.read_json(folder / "cfg"))
        if (folder / _KB_FOLDER).exists():
            self._kb = XelKnowledgeBase(self.vocab).from_disk(folder / _KB_FOLDER)
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        own = self._kb is not None and self.kb_source is None
        state = {**self.state(), "kb_source": self.kb_source}
        fields = {"cfg": state, "kb": self._kb.to_bytes() if own and self._kb else None}
        return bytes(srsly.msgpack_dumps(fields))

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> "KnowledgeBasePipe":
        fields = srsly.msgpack_loads(data)
        self._restore(fields["cfg"])
        if fields["kb"] is not None:
            self._kb = XelKnowledgeBase(self.vocab).from_bytes(fields["kb"])
        return self

    def state(self) -> dict[str, Any]:
        """Return what the component has learnt, as JSON."""
        return {}

    def set_state(self, state: dict[str, Any]) -> None:
        """Take back what state() returned."""

    def _restore(self, state: dict[str, Any]) -> None:
        self.kb_source = state["kb_source"]
        self.set_state(state)

    def __reduce__(self) -> tuple[Any, ...]:
        # For worker processes that are started afresh. spaCy's own class would send all
        # attributes, and a pipeline cannot be sent; its knowledge base can.
        fields = {name: getattr(self, name) for name in _FIELDS if hasattr(self, name)}
        return _remake, (type(self), fields | self.worker_state())

    def worker_state(self) -> dict[str, Any]:
        """Return the attributes that a worker process needs."""
        state = self.__dict__.copy()
        if self._kb is None and self.kb_source is not None:
            state["_kb"] = self.kb
        state["_nlp"] = None
        return state

    def _borrowed_kb(self) -> XelKnowledgeBase | None:
        if self._nlp is None or self.kb_source is None:
            return self._kb
        source = dict(self._nlp.components).get(self.kb_source)
        kb: XelKnowledgeBase | None = getattr(source, "_kb", None)
        if kb is None:
            raise ValueError(Errors.XE003.format(name=self.name, source=self.kb_source))
        return kb


def _remake(cls: type[KnowledgeBasePipe], fields: dict[str, Any]) -> KnowledgeBasePipe:
    component = cls.__new__(cls)
    for name, value in fields.items():
        setattr(component, name, value)
    return component


def pipe_in_batches(
    component: Any, docs: Iterable[Doc], batch_size: int, process: Callable[[list[Doc]], None]
) -> Iterator[Doc]:
    """Process a stream batch by batch; when a batch fails, find the document that is to blame.

    spaCy's error handler would otherwise be given, and lose, the whole batch.
    """
    handle_error = component.get_error_handler()
    batch: list[Doc] = []

    def finish() -> Iterator[Doc]:
        try:
            process(batch)
            yield from batch
        except Exception:
            for doc in batch:
                try:
                    process([doc])
                except Exception as error:
                    message = Errors.XE020.format(
                        name=component.name, text=doc.text[:80], error=error
                    )
                    error.add_note(message)
                    handle_error(component.name, component, [doc], error)
                else:
                    yield doc
        batch.clear()

    for doc in docs:
        batch.append(doc)
        if len(batch) >= batch_size:
            yield from finish()
    yield from finish()
