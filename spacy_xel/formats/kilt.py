"""KILT: the knowledge source, queries of its entity-linking tasks, and predictions.

A page of the knowledge source is an entity, its id that of the Wikipedia page, as in the queries.
A query is a text with one mention between [START_ENT] and [END_ENT]; the markers are not part of
the text.
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from spacy_xel.errors import Errors
from spacy_xel.formats.faults import Faults
from spacy_xel.formats.reading import (
    Article,
    Item,
    Options,
    Reading,
    lines_of_file,
    list_field,
    make_entity,
    object_field,
    objects_field,
    text_field,
)  # fmt: skip
from spacy_xel.formats.wiki_titles import clean_title, page_kind
from spacy_xel.jsonlines import BadLine, Line, parse_json_object
from spacy_xel.types import AnnotatedText, Mention

START, END = "[START_ENT]", "[END_ENT]"
_NOT_PROSE = ("Section::::", "BULLET::::")


class Ranking(NamedTuple):
    """The output of a KILT file for one query: answers, and the pages that support each.

    In gold files, each answer has a set of pages; in predictions, the first has a ranking.
    """

    answers: tuple[str, ...]
    pages: tuple[tuple[str, ...], ...]


# The knowledge source


def read_entities(reading: Reading, options: Options) -> Iterator[Item]:
    """Read pages with their anchors. Disambiguation pages and lists are left out, and counted."""
    for fields in reading.json_objects():
        try:
            item = _article(fields, options.ids, reading)
        except BadLine as error:
            reading.problem(error)
            continue
        if item is not None:
            yield item


def _article(fields: dict[str, Any], ids: str, reading: Reading) -> Article | None:
    title = text_field(fields, "wikipedia_title")
    about = object_field(fields, "wikidata_info")
    categories = str(fields.get("categories") or "").lower()
    templates = ["disambig"] if "disambiguation pages" in categories else []
    kind = page_kind(title, templates)
    if kind != "article":
        reading.left_out[f"{kind}s"] += 1
        return None
    kb_id = {"title": title, "wikidata": text_field(about, "wikidata_id")}.get(ids)
    if kb_id is None:
        page_id = fields.get("wikipedia_id", fields.get("_id"))
        kb_id = "" if page_id is None else str(page_id)
    if not kb_id and ids == "wikidata":
        reading.left_out["articles without an item of Wikidata"] += 1
        return None
    paragraphs = list_field(fields, "text")
    if not all(isinstance(paragraph, str) for paragraph in paragraphs):
        raise BadLine("'text' must be a list of strings")
    prose = (p.strip() for p in paragraphs[1:] if p.strip() and not p.startswith(_NOT_PROSE))
    aliases = about.get("aliases") or []
    if isinstance(aliases, dict):
        aliases = aliases.get("alias") or []
    names = [alias for alias in aliases if isinstance(alias, str)]
    entity = make_entity(kb_id, title, names, description=next(prose, ""))
    return Article(entity, _text(title, paragraphs, objects_field(fields, "anchors"), reading))


def _text(
    title: str, paragraphs: list[str], anchors: list[dict[str, Any]], reading: Reading
) -> AnnotatedText:
    """Put paragraphs together; anchors count characters within theirs."""
    lines = [p if p.endswith("\n") else p + "\n" for p in paragraphs]
    begins = [0]
    for line in lines:
        begins.append(begins[-1] + len(line))
    mentions = []
    for anchor in anchors:
        values = [anchor.get(key) for key in ("paragraph_id", "start", "end")]
        number, start, end = (value if isinstance(value, int) else -1 for value in values)
        if not (0 <= number < len(lines) and 0 <= start < end <= len(lines[number])):
            raise BadLine("an anchor at {1}-{2} of paragraph {0} is not there".format(*values))
        if lines[number][start:end] != text_field(anchor, "text"):
            reading.left_out["anchors that do not match their text"] += 1
            continue
        target = clean_title(text_field(anchor, "href"))
        begin = begins[number]
        mentions.append(Mention(begin + start, begin + end, (target,) if target else ()))
    return AnnotatedText(title, "".join(lines), tuple(mentions), "en")


# Queries


def read(path: Path, faults: Faults | None = None) -> Iterator[AnnotatedText]:
    """Read queries as texts with one mention; those without an answer are NIL."""

    def query(line: Line) -> AnnotatedText:
        where, fields = _record(line, path)
        try:
            return _query(fields)
        except BadLine as error:
            raise ValueError(Errors.XE009.format(where=where, problem=error)) from error

    return (faults or Faults()).parsed(lines_of_file(path, 0), query)


def write(texts: Iterable[AnnotatedText], path: Path) -> None:
    """Write each mention as a query, its ids as the pages that answer it."""
    with path.open("w", encoding="utf8") as file:
        for text in texts:
            for number, mention in enumerate(text.mentions):
                query_id = text.doc_id if len(text.mentions) == 1 else f"{text.doc_id}:{number}"
                surface = text.text[mention.start : mention.end]
                before, behind = text.text[: mention.start], text.text[mention.end :]
                fields = {
                    "id": query_id,
                    "input": f"{before}{START} {surface} {END}{behind}",
                    "output": [{"provenance": [{"wikipedia_id": i}]} for i in mention.kb_ids],
                }
                file.write(json.dumps(fields, ensure_ascii=False) + "\n")


def _query(fields: dict[str, Any]) -> AnnotatedText:
    text = text_field(fields, "input")
    before, start_mark, rest = text.partition(START)
    surface, end_mark, behind = rest.partition(END)
    surface = surface.removeprefix(" ").removesuffix(" ")
    if not start_mark or not end_mark or not surface:
        raise BadLine(f"'input' must have a mention between {START} and {END}")
    pages = [page for found in ranking(fields).pages for page in found]
    mention = Mention(len(before), len(before) + len(surface), tuple(dict.fromkeys(pages)))
    return AnnotatedText(_id(fields), before + surface + behind, (mention,), "en")


# Gold and predicted outputs


def read_rankings(path: Path) -> dict[str, Ranking]:
    """Return the outputs of a KILT file by the ids of its queries."""
    rankings: dict[str, Ranking] = {}
    for line in lines_of_file(path, 0):
        where, fields = _record(line, path)
        try:
            query_id = _id(fields)
            if query_id in rankings:
                raise BadLine(f"the id {query_id!r} is there twice")
            rankings[query_id] = ranking(fields)
        except BadLine as error:
            raise ValueError(Errors.XE009.format(where=where, problem=error)) from error
    return rankings


def ranking(fields: dict[str, Any]) -> Ranking:
    """Return the answers of a record, and the pages that support each, without repetition."""
    answers, pages = [], []
    for output in list_field(fields, "output"):
        if not isinstance(output, dict):
            raise BadLine("'output' must be a list of objects")
        if answer := text_field(output, "answer").strip():
            answers.append(answer)
        sources = list_field(output, "provenance")
        if not all(isinstance(s, dict) and s.get("wikipedia_id") is not None for s in sources):
            raise BadLine("each 'provenance' must have a 'wikipedia_id'")
        if found := tuple(dict.fromkeys(str(s["wikipedia_id"]).strip() for s in sources)):
            pages.append(found)
    return Ranking(tuple(answers), tuple(pages))


def prediction_line(query_id: str, answer: str, pages: Iterable[tuple[str, str]]) -> str:
    """Return a line of a file of predictions; pages are (id, title), the best first."""
    sources = [{"wikipedia_id": page_id, "title": title} for page_id, title in pages]
    output = [{"answer": answer, "provenance": sources}]
    return json.dumps({"id": query_id, "output": output}, ensure_ascii=False) + "\n"


def _record(line: Line, path: Path) -> tuple[str, dict[str, Any]]:
    where = f"{path}, line {line.number}"
    try:
        if line.problem:
            raise BadLine(line.problem)
        return where, parse_json_object(line.data)
    except BadLine as error:
        raise ValueError(Errors.XE009.format(where=where, problem=error)) from error


def _id(fields: dict[str, Any]) -> str:
    value = fields.get("id")
    if value is None:
        raise BadLine("'id' is missing")
    return str(value)
