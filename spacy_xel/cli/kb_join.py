"""The command `xel kb join`."""

from pathlib import Path

import typer
from wasabi import msg

from spacy_xel.cli.common import check_paths_differ, friendly_errors
from spacy_xel.formats.joining import join_kbs


@friendly_errors
def join_cli(
    pages: Path = typer.Argument(..., help="KB file of Wikipedia, its ids are titles"),
    items: Path = typer.Argument(..., help="KB file of Wikidata, imported with --only-pages"),
    target: Path = typer.Argument(..., help="KB file to write: .jsonl or .jsonl.gz"),
    corpus: Path | None = typer.Option(None, "--corpus", "-c", help="Texts linked to titles"),
    corpus_target: Path | None = typer.Option(
        None, "--corpus-target", "-t", help="Write the texts with ids of Wikidata here"
    ),
) -> None:
    """
    Give the pages of Wikipedia the ids, descriptions, types and aliases of their Wikidata items.

    Names, first paragraphs and priors of the pages stay. Pages without an item are left out, and
    mentions of them become NIL; both are counted.
    """
    if (corpus is None) != (corpus_target is None):
        raise typer.BadParameter("give both --corpus and --corpus-target, or neither")
    check_paths_differ([pages, items, corpus], [target, corpus_target])
    report = join_kbs(pages, items, target, corpus=corpus, corpus_target=corpus_target)
    msg.text(f"{report.pages_without_item:,} pages have no item and were left out")
    msg.text(f"{report.items_without_page:,} items have a page that is not an entity here")
    if corpus is not None:
        msg.text(f"{report.mentions_without_item:,} mentions of pages without an item are NIL now")
        msg.good(f"{report.texts:,} texts with {report.mentions:,} mentions: {corpus_target}")
    msg.good(f"{report.entities:,} entities: {target}")
