"""What a new pipeline is judged by: held-out documents, or names spelled otherwise."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from spacy.language import Language

from spacy_xel.evaluation.evaluate import evaluate, find_kb
from spacy_xel.formats import read_corpus
from spacy_xel.kb.knowledge_base import XelKnowledgeBase
from spacy_xel.kb.normalize import normalize_name
from spacy_xel.types import AnnotatedText, Mention

NAMES_PER_KIND = 500
NOT_EVALUATED = "nothing: there are no names that can be changed"
_SHORTEST = 4  # characters of a name that gets a typo
_SHOWN = ("xel_acc", "xel_recall_at_10", "xel_micro_p", "xel_micro_r", "xel_micro_f")


def evaluate_documents(nlp: Language, held_out: Path, seed: int = 0) -> dict[str, Any]:
    """Score a pipeline on held-out documents: end to end, and with the mentions given."""
    texts = list(read_corpus(held_out, "jsonl"))
    return {
        "evaluated_on": "held-out documents",
        "end_to_end": evaluate(nlp, texts, seed=seed).to_json(),
        "gold_mentions": evaluate(nlp, texts, gold_mentions=True, seed=seed).to_json(),
    }


def evaluate_changed_names(nlp: Language, seed: int = 0) -> dict[str, Any]:
    """Score a pipeline on names of its knowledge base that were changed, without context.

    It learnt the names as they are, so this says how well it stands typos, not how well it links
    texts: for that a corpus is needed.
    """
    kb = find_kb(nlp)
    assert kb is not None
    result: dict[str, Any] = {"evaluated_on": "changed names of the knowledge base, no context"}
    for kind in CHANGES:
        texts = changed_names(kb, kind, seed=seed)
        if texts:
            result[kind] = evaluate(nlp, texts, gold_mentions=True, seed=seed).to_json()
    if len(result) == 1:
        result["evaluated_on"] = NOT_EVALUATED
    return result


def changed_names(
    kb: XelKnowledgeBase, kind: str, *, limit: int = NAMES_PER_KIND, seed: int = 0
) -> list[AnnotatedText]:
    """Return names, changed in one way, each as a text. Any entity of the name is right.

    What is a name of the knowledge base itself after the change is left out, unless only the case
    changed.
    """
    rng = np.random.default_rng([seed, list(CHANGES).index(kind)])
    rows = list(kb.rows())
    texts: list[AnnotatedText] = []
    for place in rng.permutation(len(rows)).tolist():
        names = kb.entity(rows[place]).names
        name = names[int(rng.integers(len(names)))]
        changed = CHANGES[kind](name, rng)
        if not normalize_name(changed) or changed == name:
            continue
        if kind != "case" and kb.lookup(changed):
            continue
        ids = tuple(kb.kb_id(row) for row, _ in kb.lookup(name))
        if ids:
            mention = Mention(0, len(changed), ids)
            texts.append(AnnotatedText(f"{kind} {len(texts)}", changed, (mention,)))
        if len(texts) == limit:
            break
    return texts


def _typo(name: str, rng: np.random.Generator) -> str:
    """Drop, double, swap or replace a letter, not the first; by another of the name."""
    letters = [i for i, character in enumerate(name) if character.isalpha() and i > 0]
    if len(name) < _SHORTEST or not letters:
        return name
    at = letters[int(rng.integers(len(letters)))]
    other = name[letters[int(rng.integers(len(letters)))]]
    edits = (
        name[:at] + name[at + 1 :],
        name[:at] + name[at] + name[at:],
        name[: at - 1] + name[at] + name[at - 1] + name[at + 1 :],
        name[:at] + other + name[at + 1 :],
    )
    return edits[int(rng.integers(len(edits)))]


def _case(name: str, rng: np.random.Generator) -> str:
    """Write a name in capitals, in small letters, or with capitals at the beginning of words."""
    others = [other for other in (name.upper(), name.lower(), name.title()) if other != name]
    return others[int(rng.integers(len(others)))] if others else name


def _word_order(name: str, rng: np.random.Generator) -> str:
    """Put the last word first."""
    words = name.split()
    return " ".join([words[-1], *words[:-1]])


CHANGES: dict[str, Callable[[str, np.random.Generator], str]] = {
    "typo": _typo,
    "case": _case,
    "word_order": _word_order,
}


def card_metrics(metrics: dict[str, Any]) -> dict[str, Any]:
    """Return what the model card shows: the held-out documents, or else the names with typos."""
    if "end_to_end" in metrics:
        return {**metrics["end_to_end"], "corpus": metrics["evaluated_on"], "gold_mentions": False}
    corpus = "names of the knowledge base with a typo, no context"
    return {**metrics.get("typo", {}), "corpus": corpus, "gold_mentions": True}


def score_rows(metrics: dict[str, Any]) -> list[tuple[str, ...]]:
    """Return the main scores as rows of a table: what was scored, score, value, interval, size."""
    rows: list[tuple[str, ...]] = []
    for kind, result in metrics.items():
        if not isinstance(result, dict) or "scores" not in result:
            continue
        for name in _SHOWN:
            if ("micro" in name) == (kind == "end_to_end"):
                low, high = result["intervals"][name]
                value = f"{result['scores'][name]:.3f}"
                size = f"{result['sizes']['mentions']:,}"
                rows.append((kind.replace("_", " "), name, value, f"{low:.3f} - {high:.3f}", size))
    return rows
