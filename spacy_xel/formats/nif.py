"""NIF 2.0: a context with its text, and phrases that refer to it, as RDF (Turtle by default).

Ids are IRIs. On writing, ids that are none become IRIs that begin with "urn:xel:", and are what
they were when they are read again. The language is that of the text's literal.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from spacy_xel.errors import Errors
from spacy_xel.formats.faults import Faults
from spacy_xel.formats.rdf import RDF_TYPE, Subject, Triples, import_oxigraph, open_triples
from spacy_xel.types import AnnotatedText, Mention

NIF = "http://persistence.uni-leipzig.org/nlp2rdf/ontologies/nif-core#"
ITS = "http://www.w3.org/2005/11/its/rdf#"
XSD = "http://www.w3.org/2001/XMLSchema#"
_TEXT, _REFERS_TO, _SURFACE = f"{NIF}isString", f"{NIF}referenceContext", f"{NIF}anchorOf"
_BEGIN, _END = f"{NIF}beginIndex", f"{NIF}endIndex"
_ENTITY, _CLASS = f"{ITS}taIdentRef", f"{ITS}taClassRef"
_SAME_AS = "http://www.w3.org/2002/07/owl#sameAs"
_PREDICATES = frozenset((_TEXT, _REFERS_TO, _SURFACE, _BEGIN, _END, _ENTITY, _CLASS, _SAME_AS))
_NOT_IN_KB = "notinwiki"  # benchmarks mark NIL by such IRIs
_OURS = "urn:xel:"


def read(path: Path, faults: Faults | None = None) -> Iterator[AnnotatedText]:
    """Read contexts with their phrases; phrases without taIdentRef are NIL."""
    faults = faults or Faults()
    with open_triples(path, _PREDICATES, faults.reading(path)) as triples:
        same = {s.iri: s.text(_SAME_AS) for s in triples.subjects() if _SAME_AS in s.values}
        contexts = (context for context in triples.subjects() if _TEXT in context.values)

        def text(context: Subject) -> AnnotatedText:
            value = context.values[_TEXT][0]
            phrases = triples.pointing_to(_REFERS_TO, context.iri)
            found = (_mention(phrase, value.text, same, path) for phrase in phrases)
            mentions = sorted(filter(None, found), key=lambda mention: (mention.start, mention.end))
            doc_id = _from_iri(context.iri.partition("#char=")[0])
            return AnnotatedText(doc_id, value.text, tuple(mentions), value.lang or "")

        yield from faults.parsed(contexts, text)
        _report_lost_phrases(triples, path, faults)


def _report_lost_phrases(triples: Triples, path: Path, faults: Faults) -> None:
    known = {subject.iri for subject in triples.subjects() if _TEXT in subject.values}
    for subject in triples.subjects():
        context = subject.text(_REFERS_TO)
        if _BEGIN in subject.values and context and context not in known:
            problem = f"its referenceContext {context} has no isString in the file"
            where = f"{path}, {subject.iri}"
            faults.take(ValueError(Errors.XE009.format(where=where, problem=problem)))


def write(texts: Iterable[AnnotatedText], path: Path) -> None:
    """Write Turtle."""
    oxigraph = import_oxigraph()
    prefixes = {"nif": NIF, "itsrdf": ITS, "xsd": XSD}
    with path.open("wb") as file:
        triples = (triple for i, text in enumerate(texts) for triple in _triples(text, i, oxigraph))
        oxigraph.serialize(triples, file, oxigraph.RdfFormat.TURTLE, prefixes=prefixes)


def _mention(phrase: Subject, text: str, same: Mapping[str, str], path: Path) -> Mention | None:
    if _BEGIN not in phrase.values or phrase.text(_TEXT):
        return None  # a sentence, or the context itself
    where = f"{path}, {phrase.iri}"
    begin, end = phrase.text(_BEGIN), phrase.text(_END)
    if not (begin.isdecimal() and end.isdecimal()):
        problem = f"beginIndex and endIndex must be numbers, but got {begin!r} and {end!r}"
        raise ValueError(Errors.XE009.format(where=where, problem=problem))
    start, stop = _place(text, int(begin), int(end), phrase.text(_SURFACE), where)
    iris = (iri for iri in phrase.texts(_ENTITY) if _NOT_IN_KB not in iri.lower())
    # OKE names things of its own, and says what they are elsewhere.
    ids = dict.fromkeys(_from_iri(same.get(iri, iri)) for iri in iris)
    return Mention(start, stop, tuple(ids), _from_iri(phrase.text(_CLASS)))


def _place(text: str, start: int, stop: int, surface: str, where: str) -> tuple[int, int]:
    """Return the offsets of a phrase in characters, after a check.

    NIF counts characters, but Java programs write UTF-16 units: these are taken if the phrase is
    at them and not at the characters.
    """
    if surface and text[start:stop] != surface:
        units = text.encode("utf-16-le")
        before = len(units[: 2 * start].decode("utf-16-le", errors="ignore"))
        if text[before : before + len(surface)] == surface and len(units) != 2 * len(text):
            return before, before + len(surface)
    if not 0 <= start < stop <= len(text):
        raise ValueError(Errors.XE016.format(where=where, start=start, end=stop, length=len(text)))
    if surface and surface != text[start:stop]:
        message = Errors.XE058.format(where=where, found=surface, expected=text[start:stop])
        raise ValueError(message)
    return start, stop


def _triples(text: AnnotatedText, number: int, oxigraph: Any) -> Iterator[Any]:
    node, literal, triple = oxigraph.NamedNode, oxigraph.Literal, oxigraph.Triple
    integer = node(f"{XSD}nonNegativeInteger")
    document = _to_iri(text.doc_id or str(number))
    context = node(f"{document}#char=0,{len(text.text)}")
    lang = {"language": text.lang} if text.lang else {}
    yield triple(context, node(RDF_TYPE), node(f"{NIF}Context"))
    yield triple(context, node(RDF_TYPE), node(f"{NIF}RFC5147String"))
    yield triple(context, node(_TEXT), literal(text.text, **lang))
    seen: dict[tuple[int, int], int] = {}
    for mention in text.mentions:
        place = (mention.start, mention.end)
        seen[place] = seen.get(place, 0) + 1
        # The same place may be annotated twice.
        again = f";{seen[place]}" if seen[place] > 1 else ""
        phrase = node(f"{document}#char={mention.start},{mention.end}{again}")
        yield triple(phrase, node(RDF_TYPE), node(f"{NIF}Phrase"))
        yield triple(phrase, node(_REFERS_TO), context)
        yield triple(phrase, node(_SURFACE), literal(text.text[mention.start : mention.end]))
        yield triple(phrase, node(_BEGIN), literal(str(mention.start), datatype=integer))
        yield triple(phrase, node(_END), literal(str(mention.end), datatype=integer))
        for kb_id in mention.kb_ids:
            yield triple(phrase, node(_ENTITY), node(_to_iri(kb_id)))
        if mention.label:
            yield triple(phrase, node(_CLASS), node(_to_iri(mention.label)))


def _to_iri(name: str) -> str:
    return name if name.startswith(("http://", "https://")) else _OURS + quote(name, safe="")


def _from_iri(iri: str) -> str:
    return unquote(iri.removeprefix(_OURS)) if iri.startswith(_OURS) else iri
