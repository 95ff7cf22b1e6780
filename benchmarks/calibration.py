"""How far scores can be trusted, what abstaining gives, and what coherence adds; gold mentions.

All figures are of dev, by cross-validation over its documents: what judges a document has not seen
it. The pipelines xel_mesh and xel_nlab come from `spacy project run mesh` and `nlab`, in the folder
that XEL_PIPELINES names; the others are trained here. BC5CDR and Wikidata have mentions of what is
not in the knowledge base.
"""

import os
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import spacy
from common import DATA, ROOT, parse_arguments, write_result
from spacy.language import Language

from spacy_xel.calibrate.calibrator import METHODS
from spacy_xel.calibrate.coherence import Coherence
from spacy_xel.calibrate.held_out import HeldOut, cross_validate, document_folds, link_scores
from spacy_xel.calibrate.reliability import Bin, plot_reliability
from spacy_xel.formats import read_corpus
from spacy_xel.kb.build import build_store
from spacy_xel.kb.knowledge_base import knowledge_base_loader
from spacy_xel.pipeline.calibration import collect
from spacy_xel.types import AnnotatedText

PIPELINES = Path(os.environ.get("XEL_PIPELINES", ROOT / "training"))
PICTURE = ROOT / "docs" / "results" / "reliability.svg"
TARGET = 0.95
CONTEXT = {
    "features": {"context_words": 1.0, "longest_words": 1, "context_stem": 4},
    "tree": {"cost": 10.0},
}
NAMES = {"features": {"context_words": 0.0, "mention_name": 0.5}, "tree": {"cost": 10.0}}
WIKI = ("oke-2015-train", "oke-2016-train", "wiki-fair-no-coref", "aida-conll-dev")
TASKS: dict[str, dict[str, Any]] = {
    "bc5cdr": {"pipeline": "xel_mesh", "dev": [DATA / "bc5cdr/dev.jsonl.gz"]},
    # Every eighth document: as many mentions as BC5CDR has.
    "nlab": {"pipeline": "xel_nlab", "dev": [DATA / "nlab/dev.jsonl.gz"], "every": 8},
    "foldoc": {
        "kb": DATA / "foldoc/kb.jsonl.gz", "train": DATA / "foldoc/train.jsonl.gz",
        "settings": CONTEXT, "dev": [DATA / "foldoc/dev.jsonl.gz"],
    },
    "xel_wiki": {
        "kb": ROOT / "assets/wiki/kb.jsonl", "train": ROOT / "assets/wiki/train.jsonl",
        "settings": {**CONTEXT, "tree": {"cost": 10.0, "max_leaf": 256, "threshold": 0.0}},
        "dev": [ROOT / "assets/wiki/dev.jsonl"],
    },
    "wikidata_closed": {
        "kb": DATA / "wikidata/kb_closed.jsonl.gz", "settings": NAMES,
        "dev": [DATA / f"wikidata/{name}.jsonl.gz" for name in WIKI],
    },
}  # fmt: skip
COHERENCE = {
    "same_name": Coherence(),
    "agreement_0.1": Coherence(agreement=0.1),
    "agreement_0.3": Coherence(agreement=0.3),
    "agreement_0.5": Coherence(agreement=0.5),
    "longer_name_0.3": Coherence(longer_name=0.3),
}


def load(task: dict[str, Any], work: Path) -> Language:
    """Return the pipeline of a task, trained if there is none."""
    if "pipeline" in task:
        return spacy.load(PIPELINES / task["pipeline"])
    train = list(read_corpus(task["train"])) if "train" in task else []
    build_store(task["kb"], work / "kb", corpus=train, force=True)
    nlp = spacy.blank("en")
    tree = {"@misc": "spacy-xel.LabelTree.v1", **task["settings"]}
    retriever: Any = nlp.add_pipe("xel_retriever", config={"retriever": tree})
    retriever.set_kb(knowledge_base_loader(work / "kb"))
    retriever.retriever.initialize(retriever.kb, train)
    return nlp


def rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: rounded(item) for name, item in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return round(value, 4) if isinstance(value, float) else value


def accuracy(data: HeldOut) -> float:
    return float(data.right.sum() / data.n_linked)


def calibration(data: HeldOut, seed: int) -> dict[str, Any]:
    """Return what each method gives, with and without a target precision."""
    raw = data.raw_scores
    result = {"raw": link_scores(data, raw, raw * 0.0)}
    for method in METHODS:
        found = cross_validate(data, method, target_precision=TARGET, seed=seed)
        p = found.probabilities
        scores = link_scores(data, p, found.thresholds)
        right = np.clip(np.where(data.right, p, 1 - p), 1e-6, 1.0)
        assert found.threshold is not None
        result[method] = {
            **scores,
            "log_loss": float(-np.log(right).mean()),
            "threshold": found.threshold.value,
            "target_reached": found.threshold.reached,
            # Where more than half of the links would be wrong.
            "at_one_half": {
                name: value
                for name, value in link_scores(data, p, p * 0.0 + 0.5).items()
                if name != "curve"
            },
        }
    return result


def coherence(nlp: Language, texts: list[AnnotatedText], plain: HeldOut, seed: int) -> Any:
    """Return the accuracy of each setting, and with the setting that the other half prefers."""
    linking = nlp.get_pipe("xel_retriever").linking
    found = {"none": plain}
    for name, setting in COHERENCE.items():
        linking.coherence = setting
        found[name] = collect(nlp, "xel_retriever", texts, gold_mentions=True)
    linking.coherence = None
    half = document_folds(plain.documents, 2, seed)
    chosen, hits = [], 0
    for side in (0, 1):
        best = max(
            found, key=lambda name: (int(found[name].right[half != side].sum()), name == "none")
        )
        chosen.append(best)
        hits += int(found[best].right[half == side].sum())
    result = {name: accuracy(data) for name, data in found.items()}
    result["chosen_on_other_half"] = {"settings": chosen, "accuracy": hits / plain.n_linked}
    best = max(COHERENCE, key=lambda name: result[name])
    calibrated = calibration(found[best], seed)["boosted"]
    del calibrated["curve"]
    result["boosted_with"] = {"setting": best, **calibrated}
    return result


def main() -> None:
    arguments = parse_arguments(__doc__ or "")
    result: dict[str, Any] = {"scikit-learn": version("scikit-learn"), "target": TARGET}
    for name, task in TASKS.items():
        nlp = load(task, arguments.work)
        texts = [text for path in task["dev"] for text in read_corpus(path)]
        texts = [text for text in texts if text.mentions][:: task.get("every", 1)]
        data = collect(nlp, "xel_retriever", texts, gold_mentions=True)
        result[name] = rounded({
            "documents": len(texts),
            "mentions": len(data.right),
            "nil_mentions": data.n_nil,
            "accuracy": accuracy(data),
            "calibration": calibration(data, arguments.seed),
            "coherence": coherence(nlp, texts, data, arguments.seed),
        })  # fmt: skip
        print(name, {k: v for k, v in result[name].items() if k != "calibration"}, flush=True)
    PICTURE.parent.mkdir(exist_ok=True)
    curves = {
        name: [Bin(**part) for part in result["bc5cdr"]["calibration"][name]["curve"]]
        for name in ("raw", "temperature", "isotonic", "tree", "boosted")
    }
    plot_reliability(curves, PICTURE, "BC5CDR dev, xel_mesh")
    paths = [path for task in TASKS.values() for path in task["dev"]]
    write_result("calibration", arguments.seed, paths, result)


if __name__ == "__main__":
    main()
