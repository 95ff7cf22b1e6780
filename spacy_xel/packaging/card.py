"""The model card of a pipeline, as Markdown: what it is, how good, how fast, and its limits."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

# The scores that people look for, in their words; the rest is in meta.json.
_SCORES = {
    "xel_micro_f": "F1, end to end",
    "xel_micro_p": "precision, end to end",
    "xel_micro_r": "recall, end to end",
    "xel_mention_f": "F1 of the mentions found",
    "xel_acc": "accuracy",
    "xel_acc_ambiguous": "accuracy, ambiguous names",
    "xel_acc_unseen": "accuracy, entities not in the training corpus",
    "xel_recall_at_10": "right entity among the first ten",
    "xel_nil_f": "F1 of abstaining (NIL)",
}
_FEW = 200  # mentions, too few to trust a score
_END_TO_END = ("xel_micro", "xel_mention")


class KBFacts(NamedTuple):
    """What a model card says of a knowledge base."""

    entities: int
    names: int
    ambiguous_names: int
    revision: str


def model_card(
    meta: Mapping[str, Any], metrics: Mapping[str, Any], *, kb: KBFacts | None, megabytes: float
) -> str:
    """Return the model card.

    meta (Mapping): The contents of meta.json.
    metrics (Mapping): What `xel evaluate --json` wrote; empty if nothing was measured.
    megabytes (float): The size of the pipeline on disk.
    """
    name = f"{meta['lang']}_{meta['name']}"
    sections = [
        f"# {name}\n\n{meta.get('description', '')}",
        f'```python\nimport spacy\n\nnlp = spacy.load("{name}")\n```',
        _table(("", ""), _facts(meta, megabytes)),
        "## Data\n\n" + _data(meta, metrics, kb),
        "## Scores\n\n" + _scores(metrics),
        "## Speed\n\n" + _speed(metrics),
        "## Limits\n\n" + _limits(meta, metrics),
    ]
    return "\n\n".join(sections) + "\n"


def source_texts(meta: Mapping[str, Any]) -> list[str]:
    """Return a text per source of data: its name, and who and which licence it is from."""
    texts = []
    for source in meta.get("sources") or ():
        fields = source if isinstance(source, dict) else {"name": source}
        parts = [fields[key] for key in ("author", "license", "url") if fields.get(key)]
        texts.append(fields["name"] + (f" ({', '.join(parts)})" if parts else ""))
    return texts


def _facts(meta: Mapping[str, Any], megabytes: float) -> list[tuple[str, str]]:
    return [
        ("version", str(meta["version"])),
        ("licence", str(meta.get("license") or "not stated")),
        ("components", ", ".join(meta.get("components", meta.get("pipeline", ())))),
        ("requirements", ", ".join(f"`{text}`" for text in meta.get("requirements", ()))),
        ("size on disk", f"{megabytes:,.1f} MB"),
        ("author", str(meta.get("author") or "not stated")),
        ("check the files", f"`python -m spacy xel verify {meta['lang']}_{meta['name']}`"),
    ]


def _data(meta: Mapping[str, Any], metrics: Mapping[str, Any], kb: KBFacts | None) -> str:
    lines = [f"- {text}" for text in source_texts(meta)]
    if kb is not None:
        lines.append(
            f"- Knowledge base: {kb.entities:,} entities with {kb.names:,} names, of which "
            f"{kb.ambiguous_names:,} are ambiguous; revision `{kb.revision}`"
        )
    if metrics.get("sizes"):
        sizes = ", ".join(
            f"{count:,} {what.replace('_', ' ')}" for what, count in metrics["sizes"].items()
        )
        lines.append(f"- Evaluated on `{metrics.get('corpus', 'a corpus')}`: {sizes}")
    return "\n".join(lines) or "Not stated."


def _scores(metrics: Mapping[str, Any]) -> str:
    scores, intervals = dict(metrics.get("scores", {})), metrics.get("intervals", {})
    if not metrics.get("sizes", {}).get("nil_mentions"):
        scores.pop("xel_nil_f", None)  # there was nothing to abstain from
    gold = metrics.get("gold_mentions", False)
    rows = []
    for key, words in _SCORES.items():
        if key in scores and not (gold and key.startswith(_END_TO_END)):
            low, high = intervals.get(key, (None, None))
            interval = "" if low is None else f"{low:.3f} to {high:.3f}"
            rows.append((words, f"{scores[key]:.3f}", interval))
    if not rows:
        return "Not evaluated."
    given = "were given" if gold else "were found by the pipeline"
    note = f"The mentions {given}. The intervals are 95% bootstrap intervals over documents."
    return f"{note}\n\n{_table(('score', 'value', '95% interval'), rows)}"


def _speed(metrics: Mapping[str, Any]) -> str:
    speed = metrics.get("speed", {})
    if not speed:
        return "Not measured."
    words = {
        "words_per_second": "words a second",
        "mentions_per_second": "mentions a second",
        "load_seconds": "seconds to load",
        "peak_megabytes": "MB of memory at the peak, for the whole process",
    }
    lines = [f"- {speed[key]:,} {text}" for key, text in words.items() if key in speed]
    return "\n".join(["Measured in the evaluation, on one core:", "", *lines])


def _limits(meta: Mapping[str, Any], metrics: Mapping[str, Any]) -> str:
    scores, sizes = metrics.get("scores", {}), metrics.get("sizes", {})
    lines = [f"- {meta['notes']}"] if meta.get("notes") else []
    if sizes.get("nil_mentions") and not scores.get("xel_nil_r"):
        lines.append(
            f"- It never abstains: all {sizes['nil_mentions']:,} mentions of the evaluation that "
            "are not in the knowledge base were linked to something."
        )
    if "xel_acc_ambiguous" in scores and "xel_acc" in scores:
        lines.append(
            f"- Ambiguous names are right in {scores['xel_acc_ambiguous']:.0%} of cases, all "
            f"names in {scores['xel_acc']:.0%}."
        )
    if sizes.get("mentions_not_in_kb"):
        lines.append(
            f"- {sizes['mentions_not_in_kb']:,} mentions of the evaluation have ids that the "
            "knowledge base does not have; they count as wrong."
        )
    if not scores:
        lines.append("- Nothing is known of how good it is.")
    elif sizes.get("mentions", 0) < _FEW:
        lines.append(f"- It was judged by {sizes.get('mentions', 0)} mentions only.")
    return "\n".join(lines) or "None were noticed in the evaluation."


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
