"""The command `xel link`."""

import spacy
import typer
from spacy.tokens import Doc
from wasabi import msg

from spacy_xel.cli.common import friendly_errors
from spacy_xel.evaluation.evaluate import check_linkers, find_kb
from spacy_xel.kb.knowledge_base import XelKnowledgeBase
from spacy_xel.pipeline.annotate import read_links
from spacy_xel.types import NIL


@friendly_errors
def link_cli(
    pipeline: str = typer.Argument(..., help="Name or path of a pipeline"),
    texts: list[str] = typer.Argument(..., help="Texts to link"),
) -> None:
    """
    Link texts and show a table: mention, id, title, score and runner-up.
    """
    nlp = spacy.load(pipeline)
    check_linkers(nlp)
    for doc in nlp.pipe(texts):
        typer.echo(doc.text)
        rows = link_table(doc, find_kb(nlp))
        if rows:
            header = ("mention", "id", "title", "score", "runner-up")
            msg.table(rows, header=header, divider=True)
        else:
            msg.text("No mention of anything in the knowledge base was found.")


def link_table(doc: Doc, kb: XelKnowledgeBase | None) -> list[tuple[str, ...]]:
    """Return a row of text per link of a Doc."""

    def title(kb_id: str) -> str:
        known = kb is not None and kb.contains_entity(kb_id)
        return kb.get_entity(kb_id).title if kb is not None and known else ""

    rows: list[tuple[str, ...]] = []
    for link in read_links(doc):
        others = [(kb_id, score) for kb_id, score in link.candidates if kb_id != link.kb_id]
        runner_up = f"{title(others[0][0])} ({others[0][0]}, {others[0][1]:.3f})" if others else ""
        mention = doc[link.start : link.end].text
        name = "" if link.kb_id == NIL else title(link.kb_id)
        rows.append((mention, link.kb_id, name, f"{link.score:.3f}", runner_up))
    return rows
