"""From candidates to links: calibrated, coherent, with clusters of what is NIL."""

import numpy as np
import pytest
import spacy

from spacy_xel.calibrate.calibrator import METHODS
from spacy_xel.calibrate.held_out import cross_validate
from spacy_xel.pipeline.calibration import (
    calibrate,
    collect,
    linking_component,
    set_threshold,
)
from spacy_xel.types import AnnotatedText, CandidateBatch, Mention


def annotated(*names):
    """Return a text of names, each with its id: "Paris=Q90", or "Atlantis=" for NIL."""
    text, mentions = "", []
    for entry in names:
        name, kb_id = entry.split("=")
        mentions.append(Mention(len(text), len(text) + len(name), (kb_id,) if kb_id else ()))
        text += f"{name} and "
    return AnnotatedText(str(names), text, tuple(mentions))


CORPUS = [annotated("Paris=Q90", "Troy=Q22647", "New York=Q60")] * 6 + [
    annotated("Tokyo=Q1490", "Paris=", "Atlantis=")
] * 2


def test_collect(linker):
    found = collect(linker, "xel_retriever", CORPUS, gold_mentions=True)
    assert len(found.right) == 24
    assert found.gold_ranks[:3].tolist() == [0, 0, 1], "New York is the state here"
    assert found.gold_ranks[-3:].tolist() == [0, -1, -1]
    assert found.nil[-3:].tolist() == [False, True, True]
    assert found.evidence.found[-1] == np.False_
    assert (found.n_linked, found.n_nil) == (20, 4)
    assert found.documents.max() == 7
    assert found.annotated.all()
    assert linker("Paris").ents[0].kb_id_ == "Q90", "the pipeline is as it was"


def test_collect_what_the_pipeline_finds(linker):
    texts = [AnnotatedText("1", "Paris saw Troy", (Mention(0, 5, ("Q90",)),))]
    found = collect(linker, "xel_retriever", texts, gold_mentions=False)
    assert found.annotated.tolist() == [True, False]
    assert found.right.tolist() == [True, False], "what is not annotated is wrong"
    nothing = [AnnotatedText("1", "no name here")]
    with pytest.raises(ValueError, match="nothing to calibrate on"):
        collect(linker, "xel_retriever", nothing, gold_mentions=False)


@pytest.mark.parametrize("method", METHODS)
def test_scores_become_probabilities(linker, method):
    found = collect(linker, "xel_retriever", CORPUS, gold_mentions=True)
    before = linker("Paris and New York")
    calibrate(linker, "xel_retriever", method, found)
    doc = linker("Paris and New York")
    for old, new in zip(before.ents, doc.ents, strict=True):
        assert old.kb_id_ == new.kb_id_
        assert new._.xel_score != old._.xel_score
        scores = [score for _, score in new._.xel_candidates]
        assert new._.xel_score == scores[0] == max(scores)
        assert sum(scores) <= 1 + 1e-6
        assert [kb_id for kb_id, _ in new._.xel_candidates] == [
            kb_id for kb_id, _ in old._.xel_candidates
        ]


def test_the_threshold_is_one_of_probabilities(linker, tmp_path):
    found = collect(linker, "xel_retriever", CORPUS, gold_mentions=True)
    calibrate(linker, "xel_retriever", "isotonic", found)
    assert [ent.kb_id_ for ent in linker("Troy, New York").ents] == ["Q22647", "Q1384"]
    set_threshold(linker, "xel_retriever", 0.6)
    assert [ent.kb_id_ for ent in linker("Troy, New York").ents] == ["Q22647", "NIL"]
    linker.to_disk(tmp_path / "nlp")
    loaded = spacy.load(tmp_path / "nlp")
    assert loaded.config["components"]["xel_retriever"]["threshold"] == 0.6
    assert [ent.kb_id_ for ent in loaded("Troy, New York").ents] == ["Q22647", "NIL"]
    override = {"components": {"xel_retriever": {"threshold": 0.0}}}
    loaded = spacy.load(tmp_path / "nlp", config=override)
    assert [ent.kb_id_ for ent in loaded("Troy, New York").ents] == ["Q22647", "Q1384"]


def test_corpora_with_little_in_them(linker):
    one = collect(linker, "xel_retriever", CORPUS[:1], gold_mentions=True)
    with pytest.raises(ValueError, match="at least 2"):
        cross_validate(one, "isotonic")
    calibrate(linker, "xel_retriever", "boosted", one)
    assert 0 < linker("Paris").ents[0]._.xel_score < 1
    no_nil = collect(linker, "xel_retriever", CORPUS[:4], gold_mentions=True)
    result = cross_validate(no_nil, "isotonic", target_precision=0.99)
    assert result.threshold is not None
    assert not result.threshold.reached


def test_linking_component(linker):
    assert linking_component(linker) == "xel_retriever"
    with pytest.raises(ValueError, match=r"no component 'ner'.*xel_retriever"):
        linking_component(linker, "ner")
    with pytest.raises(ValueError, match="These can: none"):
        linking_component(spacy.blank("en"))


def test_nil_clusters(linker):
    linker.get_pipe("xel_retriever").linking.threshold = 2.0
    doc = linker("Paris, Troy and PARIS")
    assert [ent._.xel_nil_cluster for ent in doc.ents] == [0, 1, 0]
    assert {ent.kb_id_ for ent in doc.ents} == {"NIL"}
    assert doc._.xel_links[2]["nil_cluster"] == 0
    assert doc[0:3]._.xel_nil_cluster is None
    linker.get_pipe("xel_retriever").linking.threshold = 0.0
    assert linker("Paris").ents[0]._.xel_nil_cluster is None


def test_scores_that_are_no_numbers(linker):
    pipe = linker.get_pipe("xel_retriever")

    class Odd:
        def attach(self, kb):
            pass

        def __call__(self, queries, k):
            batch = CandidateBatch.empty(len(queries), k)
            batch.rows[:, :3] = [0, 1, 2]
            batch.scores[:, :3] = [np.nan, 0.5, 0.5]
            return batch

    found = collect(linker, "xel_retriever", CORPUS, gold_mentions=True)
    pipe.retriever = Odd()
    assert [kb_id for kb_id, _ in linker("Paris").ents[0]._.xel_candidates] == [
        "Q167646",
        "Q830149",
    ]
    calibrate(linker, "xel_retriever", "boosted", found)
    (ent,) = linker("Paris").ents
    assert np.isfinite([score for _, score in ent._.xel_candidates]).all()


def test_coherence_in_the_config(linker, small_store):
    config = {"kb_source": "xel_mentions", "coherence": {"same_name": 2.0}}
    with pytest.raises(ValueError, match="same_name must be between 0 and 1"):
        linker.add_pipe("xel_retriever", name="coherent", config=config)
    config["coherence"] = {"agreement": 1.0}
    linker.add_pipe("xel_retriever", name="coherent", config=config)
    # The myth is certain where it has a name of its own, and then is the likelier Paris.
    doc = linker("Paris, called Alexandros")
    assert [ent.kb_id_ for ent in doc.ents] == ["Q167646", "Q167646"]
    assert [ent.kb_id_ for ent in linker("Paris").ents] == ["Q90"]
