"""The commands `xel tree show` and `xel tree explain`."""

from collections.abc import Iterator
from typing import Any

import spacy
import typer
from spacy.language import Language
from spacy.tokens import Doc

from spacy_xel.cli.common import friendly_errors
from spacy_xel.errors import Errors
from spacy_xel.features.ngrams import ngram_names
from spacy_xel.kb.knowledge_base import XelKnowledgeBase
from spacy_xel.pipeline.annotate import SPANS_KEY
from spacy_xel.retrieval.label_tree.additions import kb_queries
from spacy_xel.retrieval.label_tree.explain import node_labels, node_path, strongest_features
from spacy_xel.retrieval.label_tree.retriever import LabelTreeRetriever
from spacy_xel.types import NIL, Query

HELP = "Look into the label tree of a pipeline."
tree_app = typer.Typer(name="tree", help=HELP, no_args_is_help=True, rich_markup_mode=None)
_NAMED_ENTITIES = 300  # whose n-grams are looked at to name a node's features


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
    retriever, kb = _find_tree(spacy.load(pipeline), pipeline)
    for line in draw_tree(retriever, kb, entity, depth, ngrams):
        typer.echo(line)


@tree_app.command("explain")
@friendly_errors
def explain_cli(
    pipeline: str = typer.Argument(..., help="Name or path of a pipeline"),
    text: str = typer.Argument(..., help="Text whose mentions to explain"),
    entity: str | None = typer.Option(None, "--entity", help="Explain this entity, not the best"),
    ngrams: int = typer.Option(5, "--ngrams", min=1, help="N-grams to show per level"),
) -> None:
    """
    Say why the mentions of a text are linked as they are.

    For each mention: the nodes from the root to the entity, the score at each, and the n-grams
    that contributed most. With --entity, also the level at which the search lost it, if it did.
    """
    nlp = spacy.load(pipeline)
    retriever, kb = _find_tree(nlp, pipeline)
    for line in explain_text(nlp(text), retriever, kb, entity, ngrams):
        typer.echo(line)


def _find_tree(nlp: Language, pipeline: str) -> tuple[LabelTreeRetriever, XelKnowledgeBase]:
    components: list[Any] = [component for _, component in nlp.pipeline]
    for component in components:
        retriever = getattr(component, "retriever", None)
        if isinstance(retriever, LabelTreeRetriever) and retriever.trees is not None:
            return retriever, component.kb
    raise ValueError(Errors.XE040.format(pipeline=pipeline))


def explain_text(
    doc: Doc,
    retriever: LabelTreeRetriever,
    kb: XelKnowledgeBase,
    entity: str | None,
    ngrams: int,
) -> Iterator[str]:
    """Yield why each mention of a text is linked to its entity, or how far it is from another."""
    for span in doc.spans[SPANS_KEY]:
        kb_id = entity or span.kb_id_
        if kb_id in ("", NIL):
            yield f"{span.text}: linked to nothing"
            continue
        found = kb.get_entity(kb_id)
        query = Query(doc.text, span.start_char, span.end_char)
        (steps, lost_at), names = retriever.explain(query, kb.row(found.kb_id))
        yield f"{span.text}: {found.kb_id} {found.title}"
        for level, step in enumerate(steps, 1):
            parts = zip(step.features.tolist(), step.contributions.tolist(), strict=True)
            shown = [f"{names[f]} {value:+.2f}" for f, value in parts if f in names][:ngrams]
            yield f"  level {level}, node {step.node}: score {step.score:.3f}, margin " + (
                f"{step.margin:+.2f} = bias {step.bias:+.2f}, {', '.join(shown)}"
            )
        if lost_at is not None:
            yield f"  the search, {retriever.beam} nodes wide, loses it at level {lost_at}"
        if retriever.n_trees > 1:
            yield f"  (tree 1 of {retriever.n_trees}; the score of a link is the mean over them)"


def draw_tree(
    retriever: LabelTreeRetriever,
    kb: XelKnowledgeBase,
    entity: str | None,
    depth: int,
    ngrams: int,
) -> Iterator[str]:
    """Yield the lines of a drawing of a tree, or of the part of it around an entity."""
    assert retriever.trees is not None
    tree = retriever.trees.trees[0]
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
