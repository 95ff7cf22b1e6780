"""The scores of KILT's entity-linking tasks: accuracy and recall@5 of pages (XMRED tables 4, 5)."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from spacy.language import Language

from spacy_xel.evaluation.evaluate import check_linkers, find_kb, linked_texts
from spacy_xel.formats.kilt import Ranking, prediction_line
from spacy_xel.types import AnnotatedText

RECALL_AT = 5


@dataclass
class KiltScores:
    """Means over the gold queries, and what did not fit together."""

    scores: dict[str, float] = field(default_factory=dict)
    queries: int = 0
    without_prediction: list[str] = field(default_factory=list)  # they count as wrong
    without_query: list[str] = field(default_factory=list)
    without_gold: int = 0  # queries that have no answer, which are not scored


def score_rankings(gold: Mapping[str, Ranking], predicted: Mapping[str, Ranking]) -> KiltScores:
    """Score predicted pages and answers against the gold ones.

    page_accuracy: the first page is a right one; with one right page, as in these tasks, this is
    also KILT's R-precision. recall_at_5: the share of right pages (sets of pages, where an answer
    needs several) among the first five. answer_accuracy: the answer is a gold one to the letter.
    """
    result = KiltScores()
    result.without_query = [query_id for query_id in predicted if query_id not in gold]
    totals = {"page_accuracy": 0.0, f"recall_at_{RECALL_AT}": 0.0, "answer_accuracy": 0.0}
    for query_id, right in gold.items():
        if not right.pages:
            result.without_gold += 1
            continue
        result.queries += 1
        if query_id not in predicted:
            result.without_prediction.append(query_id)
            continue
        guess = predicted[query_id]
        ranked = guess.pages[0] if guess.pages else ()
        first = frozenset(ranked[:RECALL_AT])
        totals["page_accuracy"] += bool(ranked) and any(ranked[0] in s for s in right.pages)
        found = sum(first.issuperset(pages) for pages in right.pages)
        totals[f"recall_at_{RECALL_AT}"] += found / len(right.pages)
        totals["answer_accuracy"] += bool(guess.answers) and guess.answers[0] in right.answers
    result.scores = {name: total / max(1, result.queries) for name, total in totals.items()}
    return result


def predict(nlp: Language, queries: Iterable[AnnotatedText]) -> Iterator[str]:
    """Yield a line of predictions per query: the title of the best page, and all candidates."""
    check_linkers(nlp)
    kb = find_kb(nlp)

    def title(kb_id: str) -> str:
        known = kb is not None and kb.contains_entity(kb_id)
        return kb.get_entity(kb_id).title if kb is not None and known else kb_id

    for query, predictions in linked_texts(nlp, queries, gold_mentions=True):
        best = predictions[0]
        pages = dict.fromkeys([*best.kb_ids, *best.candidates])
        answer = title(best.kb_ids[0]) if best.kb_ids else ""
        yield prediction_line(query.doc_id, answer, ((page, title(page)) for page in pages))
