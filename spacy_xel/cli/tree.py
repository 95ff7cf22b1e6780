"""The command `xel tree show`."""

from collections.abc import Iterator
from typing import Any

import spacy
import typer

from spacy_xel.cli.common import friendly_errors
from spacy_xel.errors import Errors
from spacy_xel.features.ngrams import ngram_names
from spacy_xel.kb.knowledge_base import XelKnowledgeBase
from spacy_xel.retrieval.label_tree.explain import node_labels, node_path, strongest_features
from spacy_xel.retrieval.label_tree.retriever import LabelTreeRetriever, kb_queries

HELP = "Look into the label tree of a pipeline."
tree_app = typer.Typer(name="tree", help=HELP, no_args_is_help=True, rich_markup_mode=None)
_NAMED_ENTITIES = 300  # whose n-grams are looked at to name a node's features


@tree_app.callback()
def _group() -> None:
    """Look into the label tree of a pipeline."""


@tree_app.command("show")
@friendly_errors
def show_cli(
    pipeline: str = typer.Argument(..., help="Name or path of a pipeline"),
    entity: str | None = typer.Option(None, "--entity", help="Show the way to this entity"),
    depth: int = typer.Option(2, "--depth", min=1, help="Levels to show without --entity"),
    ngrams: int = typer.Option(5, "--ngrams", min=1, help="N-grams to show per node"),
) -> None:
    """
    Draw a label tree, each node with its strongest n-grams.

    With --entity, the nodes on the way to it, and its neighbours in the last one.
    """
    nlp = spacy.load(pipeline)
    components: list[Any] = [component for _, component in nlp.pipeline]
    for component in components:
        retriever = getattr(component, "retriever", None)
        if isinstance(retriever, LabelTreeRetriever) and retriever.tree is not None:
            for line in draw_tree(retriever, component.kb, entity, depth, ngrams):
                typer.echo(line)
            return
    raise ValueError(Errors.XE040.format(pipeline=pipeline))


def draw_tree(
    retriever: LabelTreeRetriever,
    kb: XelKnowledgeBase,
    entity: str | None,
    depth: int,
    ngrams: int,
) -> Iterator[str]:
    """Yield the lines of a drawing of a tree, or of the part of it around an entity."""
    tree = retriever.tree
    assert tree is not None
    path = None if entity is None else node_path(tree, kb.row(kb.get_entity(entity).kb_id))
    levels = tree.layout.n_levels if path is not None else min(depth, tree.layout.n_levels)

    def visit(level: int, node: int) -> Iterator[str]:
        labels = node_labels(tree, level, node)
        names = _feature_names(retriever, kb, labels.tolist())
        found = strongest_features(tree, level, node, 4 * ngrams)
        shown = [f"{names[f]} {value:+.2f}" for f, value in found if f in names][:ngrams]
        title = f"{len(labels):,} entities" if level else f"root: {len(labels):,} entities"
        if level == tree.layout.n_levels:
            row = int(labels[0])
            title = f"{kb.kb_id(row)} {kb.entity(row).title}"
        mark = "*" if path is not None and path[level] == node else " "
        yield "  " * level + f"{mark} {title}" + (f"   {', '.join(shown)}" if shown else "")
        if level < levels and (path is None or path[level] == node):
            for child in range(*tree.layout.children(level, node)):
                yield from visit(level + 1, child)

    yield from visit(0, 0)


def _feature_names(
    retriever: LabelTreeRetriever, kb: XelKnowledgeBase, rows: list[int]
) -> dict[int, str]:
    """Return names of features that entities' own names and descriptions have."""
    features = retriever.features
    assert features is not None
    names: dict[int, str] = {}
    for row in rows[:_NAMED_ENTITIES]:
        if kb.has_row(row):
            for query in kb_queries(kb.entity(row)):
                names |= ngram_names(query, features.settings)
    return features.columns(names)
