"""What every component promises, whatever it does."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example
from spacy.util import fix_random_seed

from spacy_xel.kb.build import build_store
from spacy_xel.kb.knowledge_base import XelKnowledgeBase, knowledge_base_loader
from spacy_xel.pipeline.annotate import read_links
from spacy_xel.pipeline.calibration import calibrate, collect
from spacy_xel.pipeline.retriever import CandidateRetriever
from spacy_xel.types import AnnotatedText, CandidateBatch, Mention
from tests.tiny_encoder import tiny_encoder

Build = Callable[[Path], Language]
TEXTS = [
    "To save Troy from destruction, Paris had to be sacrificed.",
    "",
    " \n\t ",
    "Nothing of the kind is mentioned in this sentence.",
    "PARIS, paris; New\u00a0York – İstanbul’da 東京 Cafe\u0301 \U0001f600 \u202eTroy\u202c \ufeff",
    "Paris " * 40,
    "N" * 500 + " York",
]


def mentions_only(store: Path) -> Language:
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe("xel_mentions")
    pipe.initialize(nlp=nlp, kb_loader=knowledge_base_loader(store))
    return nlp


def mentions_as_spans(store: Path) -> Language:
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe("xel_mentions", config={"spans_key": "names", "case": "exact"})
    pipe.initialize(nlp=nlp, kb_loader=knowledge_base_loader(store))
    return nlp


def alias_linker(store: Path) -> Language:
    nlp = mentions_only(store)
    nlp.add_pipe("xel_retriever", config={"kb_source": "xel_mentions"})
    nlp.get_pipe("xel_retriever").initialize(nlp=nlp)
    return nlp


def tree_linker(store: Path) -> Language:
    nlp = mentions_only(store)
    tree = {"@misc": "spacy-xel.LabelTree.v1", "tree": {"max_leaf": 2, "branching": 2}}
    nlp.add_pipe("xel_retriever", config={"kb_source": "xel_mentions", "retriever": tree})
    nlp.get_pipe("xel_retriever").initialize(nlp=nlp)
    return nlp


def calibrated_linker(store: Path) -> Language:
    nlp = mentions_only(store)
    config = {"kb_source": "xel_mentions", "coherence": {"agreement": 0.2}, "threshold": 0.3}
    pipe = nlp.add_pipe("xel_retriever", config=config)
    pipe.initialize(nlp=nlp)
    ids = {"Paris": ("Q90",), "Troy": ("Q22647",), "New York": ()}
    texts = []
    for i, name in enumerate([*ids, *ids, *ids]):
        texts.append(AnnotatedText(str(i), name, (Mention(0, len(name), ids[name]),)))
    held_out = collect(nlp, "xel_retriever", texts, gold_mentions=False)
    calibrate(nlp, "xel_retriever", "boosted", held_out)
    return nlp


def reranking_linker(store: Path) -> Language:
    nlp = mentions_only(store)
    names = {"names": {"@misc": "spacy-xel.NearestNames.v1"}}
    hybrid = {"@misc": "spacy-xel.Hybrid.v1", "retrievers": names}
    nlp.add_pipe("xel_retriever", config={"kb_source": "xel_mentions", "retriever": hybrid})
    config = {"kb_source": "xel_mentions", "network": {"encoder": str(tiny_encoder())}}
    nlp.add_pipe("xel_reranker", config=config)
    nlp.get_pipe("xel_retriever").initialize(nlp=nlp)
    nlp.get_pipe("xel_reranker").initialize(nlp=nlp)
    return nlp


def linker_after_ruler(store: Path) -> Language:
    nlp = spacy.blank("en")
    ruler = nlp.add_pipe("entity_ruler")
    names = ["Paris", "Troy", "York", "Nothing"]
    ruler.add_patterns([{"label": "X", "pattern": name} for name in names])
    pipe = nlp.add_pipe("xel_retriever")
    pipe.initialize(nlp=nlp, kb_loader=knowledge_base_loader(store))
    return nlp


def linker_after_ner(store: Path) -> Language:
    nlp = spacy.blank("en")
    ner = nlp.add_pipe("ner")
    ner.add_label("NAME")
    examples = []
    for text, names in (("Paris fought for Troy .", [(0, 5), (17, 21)]), ("Troy fell .", [(0, 4)])):
        entities = [(start, end, "NAME") for start, end in names]
        examples.append(Example.from_dict(nlp.make_doc(text), {"entities": entities}))
    fix_random_seed(0)
    optimizer = nlp.initialize(lambda: examples)
    for _ in range(30):
        nlp.update(examples, sgd=optimizer)
    pipe = nlp.add_pipe("xel_retriever")
    pipe.initialize(nlp=nlp, kb_loader=knowledge_base_loader(store))
    return nlp


def linker_after_span_ruler(store: Path) -> Language:
    nlp = spacy.blank("en")
    ruler = nlp.add_pipe("span_ruler", config={"spans_key": "ruler"})
    ruler.add_patterns([{"label": "X", "pattern": name} for name in ("Paris", "Troy", "save Troy")])
    pipe = nlp.add_pipe("xel_retriever", config={"mentions": "spans:ruler"})
    pipe.initialize(nlp=nlp, kb_loader=knowledge_base_loader(store))
    return nlp


PIPELINES = [
    mentions_only,
    mentions_as_spans,
    alias_linker,
    tree_linker,
    calibrated_linker,
    reranking_linker,
    linker_after_ruler,
    linker_after_ner,
    linker_after_span_ruler,
]
COMPONENTS = ["xel_mentions", "xel_retriever", "xel_reranker"]


@pytest.fixture(params=PIPELINES, ids=lambda build: build.__name__)
def nlp(request: pytest.FixtureRequest, small_store: Path) -> Language:
    return request.param(small_store)


def what(doc: Doc) -> list:
    """Return everything that the components write to a Doc."""
    groups = {
        key: [(s.start, s.end, s.label_, s.kb_id_) for s in doc.spans[key]] for key in doc.spans
    }
    ents = [(ent.start, ent.end, ent.label_, ent.kb_id_) for ent in doc.ents]
    return [ents, groups, read_links(doc)]


def test_says_something(nlp):
    doc = nlp(TEXTS[0])
    assert doc.ents or doc.spans


@pytest.mark.parametrize("name", COMPONENTS)
def test_uninitialized(name):
    nlp = spacy.blank("en")
    nlp.add_pipe(name)
    with pytest.raises(ValueError, match=rf"'{name}' is not initialized.*kb_loader"):
        nlp("Paris")


def test_any_text(nlp):
    for text in TEXTS:
        doc = nlp(text)
        assert doc.text == text
        if "xel_retriever" in nlp.pipe_names:
            for span in doc.spans["xel"]:
                assert span.kb_id_
                assert span._.xel_kb_id == span.kb_id_
                scores = [score for _, score in span._.xel_candidates]
                assert scores == sorted(scores, reverse=True)
                assert span._.xel_score == (scores[0] if scores else 0.0)


def test_pipe_is_call(nlp):
    called = [what(nlp(text)) for text in TEXTS]
    for batch_size in (1, 3, 100):
        assert [what(doc) for doc in nlp.pipe(TEXTS, batch_size=batch_size)] == called


def test_two_processes(nlp):
    called = [what(nlp(text)) for text in TEXTS]
    assert [what(doc) for doc in nlp.pipe(TEXTS, n_process=2, batch_size=2)] == called


def test_processes_that_are_started_afresh(small_store, tmp_path):
    alias_linker(small_store).to_disk(tmp_path / "nlp")
    script = tmp_path / "spawn.py"
    script.write_text(
        "import multiprocessing, sys, spacy\n"
        "if __name__ == '__main__':\n"
        "    multiprocessing.set_start_method('spawn')\n"
        "    nlp = spacy.load(sys.argv[1])\n"
        "    nlp('Paris')\n"  # what a component keeps for itself has to travel too, or not
        "    docs = nlp.pipe(['Paris and Troy'] * 4, n_process=2, batch_size=1)\n"
        "    print([[ent.kb_id_ for ent in doc.ents] for doc in docs])\n"
    )
    command = [sys.executable, str(script), str(tmp_path / "nlp")]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert result.stdout.strip() == str([["Q90", "Q22647"]] * 4), result.stderr


def test_disk_round_trip(nlp, tmp_path):
    nlp.to_disk(tmp_path / "nlp")
    nlp.to_disk(tmp_path / "nlp")  # onto itself
    loaded = spacy.load(tmp_path / "nlp")
    assert [what(loaded(text)) for text in TEXTS] == [what(nlp(text)) for text in TEXTS]
    loaded.to_disk(tmp_path / "again")
    again = spacy.load(tmp_path / "again")
    assert [what(again(text)) for text in TEXTS] == [what(nlp(text)) for text in TEXTS]


def test_bytes_round_trip(nlp, tmp_path):
    loaded = spacy.blank("en").from_config(nlp.config)
    loaded.from_bytes(nlp.to_bytes())
    if nlp.has_pipe("entity_ruler"):  # spaCy's own finds nothing after from_bytes
        patterns = nlp.get_pipe("entity_ruler").patterns
        loaded.get_pipe("entity_ruler").initialize(lambda: [], patterns=patterns)
    assert [what(loaded(text)) for text in TEXTS] == [what(nlp(text)) for text in TEXTS]
    loaded.to_disk(tmp_path / "nlp")
    assert what(spacy.load(tmp_path / "nlp")(TEXTS[0])) == what(nlp(TEXTS[0]))


def test_config_round_trip(nlp):
    copy = type(nlp).from_config(nlp.config)
    assert copy.config.to_str() == nlp.config.to_str()


def test_same_input_same_output(nlp, small_store, request):
    build = next(build for build in PIPELINES if build.__name__ in request.node.name)
    other = build(small_store)
    assert [what(other(text)) for text in TEXTS] == [what(nlp(text)) for text in TEXTS]


def test_docs_serialize(nlp, tmp_path):
    docs = list(nlp.pipe(TEXTS))
    DocBin(docs=docs, store_user_data=True).to_disk(tmp_path / "docs.spacy")
    loaded = DocBin().from_disk(tmp_path / "docs.spacy").get_docs(nlp.vocab)
    assert [what(doc) for doc in loaded] == [what(doc) for doc in docs]


def test_saved_files_hold_no_pickle(nlp, tmp_path):
    nlp.to_disk(tmp_path / "nlp")
    paths = [p for name in nlp.pipe_names for p in (tmp_path / "nlp" / name).rglob("*")]
    files = [path for path in paths if path.is_file()]
    assert files
    for path in files:
        assert path.suffix in ("", ".json", ".jsonl", ".npy", ".safetensors", ".txt"), path
        assert not path.read_bytes().startswith(b"\x80"), path


@pytest.mark.slow
def test_long_document(nlp):
    nlp.max_length = 2_000_000
    text = ("Paris and New York saw Troy fall; nobody minded. " * 21_000)[:1_000_000]
    doc = nlp(text)
    assert doc.text == text
    expected = what(nlp("Paris and New York saw Troy fall; nobody minded. "))[0]
    assert len(what(doc)[0]) >= len(expected) * 20_000


def test_entities_already_set_are_respected(alias_nlp):
    doc = alias_nlp.make_doc("New York City Hall and Paris")
    doc.ents = [Span(doc, 2, 4, label="FAC")]
    doc = alias_nlp(doc)
    assert [(ent.text, ent.label_) for ent in doc.ents] == [
        ("New York", "ENTITY"),
        ("City Hall", "FAC"),
        ("Paris", "ENTITY"),
    ]
    assert doc.ents[1].kb_id_ == "NIL"


@pytest.fixture
def alias_nlp(small_store):
    return alias_linker(small_store)


def test_a_failing_document_does_not_take_the_batch_with_it(alias_nlp):
    pipe = alias_nlp.get_pipe("xel_retriever")
    lookup = pipe.retriever.__class__.__call__

    class Fails:
        def __init__(self, retriever):
            self.retriever = retriever

        def attach(self, kb):
            self.retriever.attach(kb)

        def __call__(self, queries, k):
            if any("BOOM" in query.text for query in queries):
                raise RuntimeError("boom")
            return lookup(self.retriever, queries, k)

    pipe.retriever = Fails(pipe.retriever)
    failed = []
    alias_nlp.set_error_handler(lambda name, proc, docs, error: failed.append((docs, error)))
    texts = ["Paris 1", "Paris BOOM", "Paris 2"]
    docs = list(alias_nlp.pipe(texts, batch_size=3))
    assert [doc.text for doc in docs] == ["Paris 1", "Paris 2"]
    assert [doc.ents[0].kb_id_ for doc in docs] == ["Q90", "Q90"]
    ((bad_docs, error),) = failed
    assert [doc.text for doc in bad_docs] == ["Paris BOOM"]
    assert "Paris BOOM" in error.__notes__[0]


def test_knowledge_base_of_another_component_is_missing(small_store):
    nlp = spacy.blank("en")
    nlp.add_pipe("xel_retriever", config={"kb_source": "xel_mentions"})
    with pytest.raises(ValueError, match="Put 'xel_mentions' in front"):
        nlp("Paris")


def test_threshold_and_nil(small_store):
    nlp = mentions_only(small_store)
    config = {"kb_source": "xel_mentions", "threshold": 0.97, "top_k": 2}
    nlp.add_pipe("xel_retriever", config=config).initialize(nlp=nlp)
    doc = nlp("Paris and New York")
    paris, new_york = doc.ents
    assert (paris.kb_id_, new_york.kb_id_) == ("Q90", "NIL")
    assert [kb_id for kb_id, _ in new_york._.xel_candidates] == ["Q1384", "Q60"]
    assert len(paris._.xel_candidates) == 2


def test_running_pipeline_follows_the_knowledge_base(small_store, tmp_path):
    from spacy_xel.types import Entity

    alias_linker(small_store).to_disk(tmp_path / "nlp")
    nlp = spacy.load(tmp_path / "nlp")
    assert not nlp("Xanadu").ents
    elsewhere = XelKnowledgeBase.open(tmp_path / "nlp" / "xel_mentions" / "kb")
    elsewhere.add([Entity("QX", "Xanadu")])
    assert nlp("Xanadu").ents[0].kb_id_ == "QX"
    elsewhere.rollback()
    assert not nlp("Xanadu").ents
    assert os.path.exists(small_store)


def test_labels_of_span_groups_are_kept(small_store):
    doc = linker_after_span_ruler(small_store)("Paris fought")
    assert [(span.label_, span.kb_id_) for span in doc.spans["xel"]] == [("X", "Q90")]


class RowZero:
    """The simplest retriever with something to save, as CONTRIBUTING.md tells to write one."""

    def initialize(self, kb, texts):
        self.note = "fitted"

    def attach(self, kb):
        pass

    def __call__(self, queries, k):
        batch = CandidateBatch.empty(len(queries), k)
        batch.rows[:, 0], batch.scores[:, 0] = 0, 1
        return batch

    def to_disk(self, path):
        (path / "note.txt").write_text(self.note)

    def from_disk(self, path):
        self.note = (path / "note.txt").read_text()


def test_a_retriever_of_ones_own(small_store, tmp_path):
    nlp = mentions_only(small_store)
    pipe = CandidateRetriever(nlp, "own", RowZero(), kb_source="xel_mentions")
    pipe.initialize(nlp=nlp)
    pipe.to_disk(tmp_path / "own")
    again = CandidateRetriever(nlp, "own", RowZero(), kb_source="xel_mentions")
    again.from_disk(tmp_path / "own")
    assert again.retriever.note == "fitted"
    doc = nlp("Troy")
    assert again(doc).ents[0].kb_id_ == "Q90"
    nlp.get_pipe("xel_mentions")._kb = XelKnowledgeBase(nlp.vocab).from_bytes(again.kb.to_bytes())
    again.kb.remove(["Q90"])
    assert again(nlp("Troy")).ents[0].kb_id_ == "NIL", "removed since the retriever was fitted"


def test_a_fitted_retriever_refuses_another_store(tmp_path, write_jsonl):
    names = [("A", "Paris"), ("B", "Troy"), ("C", "Rome")]

    def build(order):
        lines = [{"id": kb_id, "title": title} for kb_id, title in order]
        build_store(write_jsonl(lines), tmp_path / "kb", force=True)

    build(names)
    trees, aliases = tree_linker(tmp_path / "kb"), alias_linker(tmp_path / "kb")
    trees.to_disk(tmp_path / "trees")
    build(names[::-1])
    assert [ent.kb_id_ for ent in aliases("Paris Troy").ents] == ["A", "B"], "nothing is fitted"
    with pytest.raises(ValueError, match="not the one that the retriever was fitted to"):
        trees("Paris Troy")
    saved = spacy.load(tmp_path / "trees")
    assert [ent.kb_id_ for ent in saved("Paris Troy").ents] == ["A", "B"]


def test_bad_settings(small_store):
    nlp = spacy.blank("en")
    with pytest.raises(ValueError, match="top_k"):
        nlp.add_pipe("xel_retriever", config={"top_k": 0})
    with pytest.raises(ValueError, match="mention source"):
        nlp.add_pipe("xel_retriever", config={"mentions": "nouns"})
