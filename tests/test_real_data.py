"""Real corpora and knowledge bases, where they are at hand."""

import pytest
import spacy

from spacy_xel.evaluation.evaluate import evaluate
from spacy_xel.formats import read_corpus, write_corpus
from spacy_xel.kb.build import build_store
from spacy_xel.kb.knowledge_base import XelKnowledgeBase, knowledge_base_loader

pytestmark = pytest.mark.slow
CORPORA = ["bc5cdr/dev", "foldoc/dev", "slavicner/dev", "wikidata/tweeki", "geonames/trnews"]


def alias_pipeline(store):
    nlp = spacy.blank("en")
    nlp.add_pipe("xel_mentions").initialize(nlp=nlp, kb_loader=knowledge_base_loader(store))
    nlp.add_pipe("xel_retriever", config={"kb_source": "xel_mentions"}).initialize(nlp=nlp)
    return nlp


def test_bc5cdr_against_mesh(data, tmp_path):
    report = build_store(data / "bc5cdr" / "kb_mesh.jsonl.gz", tmp_path / "kb")
    assert report.entities == 354_068
    nlp = alias_pipeline(tmp_path / "kb")
    texts = list(read_corpus(data / "bc5cdr" / "dev.jsonl.gz"))
    result = evaluate(nlp, texts, gold_mentions=True)
    assert 0.60 < result.scores["xel_acc"] < 0.65, "exact dictionary match is known to be 0.62"
    low, high = result.intervals["xel_acc"]
    assert low < result.scores["xel_acc"] < high


def test_closed_mesh(data, tmp_path):
    folder = data / "bc5cdr"
    ids = folder / "kb_closed_ids.jsonl.gz"
    report = build_store(folder / "kb_mesh.jsonl.gz", tmp_path / "kb", only_ids=ids)
    assert report.entities + len(report.missing_ids) == 2350


def test_population_baseline_of_places(data, tmp_path):
    build_store(data / "geonames" / "kb.jsonl.gz", tmp_path / "kb")
    kb = XelKnowledgeBase.open(tmp_path / "kb")
    assert kb.get_entity(kb.kb_id(kb.lookup("Paris")[0][0])).description.endswith("FR")
    texts = list(read_corpus(data / "geonames" / "trnews.jsonl.gz"))
    scores = evaluate(alias_pipeline(tmp_path / "kb"), texts, gold_mentions=True).scores
    assert 0.45 < scores["xel_acc"] < 0.65


@pytest.mark.parametrize("name", CORPORA)
@pytest.mark.filterwarnings("ignore:.*mentions in")
def test_corpora_round_trip(data, tmp_path, name):
    texts = list(read_corpus(data / f"{name}.jsonl.gz"))
    for ending in ("jsonl", "spacy"):
        write_corpus(texts, tmp_path / f"c.{ending}")
        assert list(read_corpus(tmp_path / f"c.{ending}")) == texts
