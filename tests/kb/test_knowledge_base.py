"""The knowledge base inside spaCy, and its live changes."""

import multiprocessing

import pytest
import spacy
from spacy.kb import KnowledgeBase
from spacy.training import Example

from spacy_xel.kb.knowledge_base import XelKnowledgeBase
from spacy_xel.types import Entity


def ids(kb, name):
    return [kb.kb_id(row) for row, _ in kb.lookup(name)]


def test_is_a_spacy_knowledge_base(small_kb):
    assert isinstance(small_kb, KnowledgeBase)
    doc = spacy.blank("en")("paris and Nowhere")
    candidates = small_kb.get_candidates(doc[0:1])
    assert [c.entity_ for c in candidates] == ["Q90", "Q167646", "Q830149"]
    assert [c.alias_ for c in candidates] == ["paris"] * 3
    assert sum(c.prior_prob for c in candidates) == pytest.approx(1)
    assert small_kb.get_candidates_batch([doc[0:1], doc[2:3]])[1] == []
    assert len(small_kb.get_vector("Q90")) == small_kb.entity_vector_length


def test_looking_up_does_not_fill_the_string_store(small_kb):
    before = len(small_kb.vocab.strings)
    for i in range(100):
        small_kb.lookup(f"unknown name {i}")
        [c.entity_ for c in small_kb.get_alias_candidates("paris")]
        small_kb.contains_alias(f"other {i}")
        small_kb.contains_entity(f"Q{i}")
    assert len(small_kb.vocab.strings) == before


def test_unknown_id(small_kb):
    with pytest.raises(KeyError, match="Q404"):
        small_kb.get_entity("Q404")
    assert small_kb.row("Q404") == -1


def test_entity_linker_trains_and_reloads(small_store, tmp_path):
    config = {"generate_empty_kb": {"@misc": "spacy-xel.EmptyKB.v1"}, "incl_prior": False}
    nlp = spacy.blank("en")
    linker = nlp.add_pipe("entity_linker", config=config)
    examples = []
    for text, kb_id in (("Paris lies on the Seine", "Q90"), ("Paris, prince of Troy", "Q167646")):
        annotation = {"entities": [(0, 5, "X")], "links": {(0, 5): {kb_id: 1.0}}}
        annotation["sent_starts"] = [1] + [-1] * (len(nlp.make_doc(text)) - 1)
        examples.append(Example.from_dict(nlp.make_doc(text), annotation))
    loader = {"@misc": "spacy-xel.KnowledgeBase.v1", "path": str(small_store)}
    nlp.config["initialize"]["components"]["entity_linker"] = {"kb_loader": loader}
    optimizer = nlp.initialize(lambda: examples)
    for _ in range(60):
        nlp.update(examples, sgd=optimizer)
    nlp.to_disk(tmp_path / "nlp")
    for pipeline in (nlp, spacy.load(tmp_path / "nlp")):
        kb = pipeline.get_pipe("entity_linker").kb
        assert isinstance(kb, XelKnowledgeBase)
        docs = []
        for example in examples:
            doc = example.reference.copy()
            for token in doc:
                token.ent_kb_id_ = ""
            docs.append(pipeline.get_pipe("entity_linker")(doc))
        assert [doc.ents[0].kb_id_ for doc in docs] == ["Q90", "Q167646"]
    assert linker.kb.entity_vector_length == 64


def test_changes_are_visible_at_once_and_elsewhere(small_kb):
    other = XelKnowledgeBase.open(small_kb.path)
    new = Entity("Q1", "Paris, Ontario", ("Paris",), "town in Canada", prior=50)
    assert small_kb.add([new]) == 1
    assert ids(small_kb, "PARIS") == ["Q90", "Q1", "Q167646", "Q830149"]
    assert other.refresh()
    assert not other.refresh()
    assert other.get_entity("Q1") == new
    assert ids(other, "paris") == ids(small_kb, "paris")
    assert len(other) == len(small_kb) == 9


def test_remove_and_rollback(small_kb):
    small_kb.remove(["Q90"])
    assert ids(small_kb, "paris") == ["Q167646", "Q830149"]
    assert sum(p for _, p in small_kb.lookup("paris")) == pytest.approx(1)
    assert not small_kb.contains_entity("Q90")
    assert small_kb.lookup("City of Light") == []
    small_kb.add([Entity("Q90", "Paris again")])
    row = small_kb.row("Q90")
    assert small_kb.rollback() == 3
    assert not small_kb.contains_entity("Q90")
    small_kb.add([Entity("QX", "Something else")])
    assert small_kb.row("QX") != row, "a row is never given twice"
    assert small_kb.rollback(0) == 5
    assert ids(small_kb, "paris") == ["Q90", "Q167646", "Q830149"]
    assert small_kb.rollback(4) == 6
    assert small_kb.contains_entity("QX")
    reopened = XelKnowledgeBase.open(small_kb.path)
    assert reopened.version == 6
    assert reopened.row("QX") == small_kb.row("QX")


def test_changes_survive_saving(small_kb, tmp_path):
    small_kb.add([Entity("Q1", "Atlantis")])
    small_kb.to_disk(tmp_path / "copy")
    small_kb.add([Entity("Q2", "Lemuria")])
    copy = XelKnowledgeBase.open(tmp_path / "copy")
    assert (ids(copy, "atlantis"), ids(copy, "lemuria")) == (["Q1"], [])
    in_memory = XelKnowledgeBase(copy.vocab).from_bytes(small_kb.to_bytes())
    assert ids(in_memory, "lemuria") == ["Q2"]
    in_memory.remove(["Q2"])
    in_memory.to_disk(tmp_path / "third")
    assert ids(XelKnowledgeBase.open(tmp_path / "third"), "lemuria") == []
    assert ids(small_kb, "lemuria") == ["Q2"]


def test_replace(small_kb):
    with pytest.raises(ValueError, match="--replace"):
        small_kb.add([Entity("Q90", "Lutetia")])
    with pytest.raises(ValueError, match="Q7"):
        small_kb.add([Entity("Q7", "a"), Entity("Q7", "b")])
    small_kb.add([Entity("Q90", "Lutetia")], replace=True)
    assert ids(small_kb, "lutetia") == ["Q90"]
    assert "Q90" not in ids(small_kb, "paris")


def test_bad_changes(small_kb):
    with pytest.raises(KeyError, match="Q404"):
        small_kb.remove(["Q404"])
    with pytest.raises(ValueError, match="cannot roll back"):
        small_kb.rollback()
    assert small_kb.version == 0


def _add_many(path, prefix):
    kb = XelKnowledgeBase.open(path)
    for i in range(20):
        kb.add([Entity(f"{prefix}{i}", f"name {prefix}{i}")])


def test_two_writers_lose_nothing(small_kb):
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_add_many, args=(small_kb.path, p)) for p in "XY"]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    small_kb.refresh()
    assert small_kb.version == 40
    assert all(ids(small_kb, f"name {p}{i}") == [f"{p}{i}"] for p in "XY" for i in range(20))


def test_many_rollbacks_stay_fast(small_kb):
    for _ in range(200):
        small_kb.add([Entity("X", "Xanadu")])
        small_kb.rollback()
    reopened = XelKnowledgeBase.open(small_kb.path)
    assert reopened.version == 400
    assert ids(reopened, "xanadu") == []


@pytest.mark.parametrize(
    "entity",
    [
        Entity("Q1", ""), Entity("a|b", "x"), Entity("NIL", "x"), Entity("Q1", "x", prior=-1),
        Entity("Q1", "x", prior=float("nan")), Entity("Q1", "\ud800"), Entity("Q1", 5),
    ],
)  # fmt: skip
def test_a_bad_entity_changes_nothing(small_kb, entity):
    with pytest.raises(ValueError, match="the entity"):
        small_kb.add([Entity("fine", "fine"), entity])
    assert XelKnowledgeBase.open(small_kb.path).version == 0


def quicker(kb, monkeypatch, act):
    """Let somebody else change the store just before this one does."""
    append, other = kb.log.append, XelKnowledgeBase.open(kb.path)

    def late(delta):
        monkeypatch.undo()
        act(other)
        return append(delta)

    monkeypatch.setattr(kb.log, "append", late)


def test_lost_races_are_looked_at_again(small_kb, monkeypatch):
    quicker(small_kb, monkeypatch, lambda other: other.add([Entity("X", "theirs")]))
    with pytest.raises(ValueError, match="already"):
        small_kb.add([Entity("X", "ours")])
    assert ids(small_kb, "theirs") == ["X"]
    quicker(small_kb, monkeypatch, lambda other: other.remove(["X"]))
    with pytest.raises(KeyError, match="X"):
        small_kb.remove(["X"])
    quicker(small_kb, monkeypatch, lambda other: other.add([Entity("Y", "new")]))
    with pytest.raises(ValueError, match="meanwhile"):
        small_kb.rollback()
    assert ids(small_kb, "new") == ["Y"]
    quicker(small_kb, monkeypatch, lambda other: other.add([Entity("Z", "zett")]))
    assert small_kb.add([Entity("W", "double")]) == 5
    assert (ids(small_kb, "zett"), ids(small_kb, "double")) == (["Z"], ["W"])


def test_a_store_built_anew_is_noticed(small_kb, write_jsonl):
    from spacy_xel.kb.build import build_store

    small_kb.add([Entity("X", "Xanadu")])
    build_store(write_jsonl([{"id": "N", "title": "new"}]), small_kb.path, force=True)
    assert small_kb.refresh()
    assert (len(small_kb), small_kb.version) == (1, 0)
    assert ids(small_kb, "new") == ["N"]


def corpus_kb(tmp_path, write_jsonl):
    from spacy_xel.kb.build import build_store
    from spacy_xel.types import AnnotatedText, Mention

    lines = [{"id": "Q90", "title": "Paris"}, {"id": "Q1", "title": "Paris", "prior": 50}]
    mentions = [(name, "Q90") for name in ("Lutetia", "Paris") for _ in range(20)]
    corpus = [AnnotatedText("", n, (Mention(0, len(n), (e,)),)) for n, e in mentions]
    build_store(write_jsonl(lines), tmp_path / "kb", corpus=corpus)
    return XelKnowledgeBase.open(tmp_path / "kb")


def test_replacing_keeps_what_a_corpus_said(tmp_path, write_jsonl):
    kb = corpus_kb(tmp_path, write_jsonl)
    before = [ids(kb, name) for name in ("Paris", "Lutetia")]
    assert before == [["Q90", "Q1"], ["Q90"]]
    kb.add([Entity("Q90", "Paris", description="better")], replace=True)
    assert [ids(kb, name) for name in ("Paris", "Lutetia")] == before
    kb.add([Entity("Q90", "Paname")], replace=True)
    assert [ids(kb, name) for name in ("Lutetia", "Paname")] == [["Q90"], ["Q90"]]
    kb.remove(["Q90"])
    assert [ids(kb, name) for name in ("Paris", "Lutetia", "Paname")] == [["Q1"], [], []]


def test_removed_entities_take_their_names_along(tmp_path, write_jsonl):
    kb = corpus_kb(tmp_path, write_jsonl)
    nlp = spacy.blank("en")
    nlp.add_pipe("xel_mentions").initialize(nlp=nlp, kb_loader=lambda vocab: kb)
    assert [ent.text for ent in nlp("Lutetia, Paris").ents] == ["Lutetia", "Paris"]
    kb.add([Entity("Q90", "Paname")], replace=True)
    assert [ent.text for ent in nlp("Lutetia, Paris").ents] == ["Lutetia", "Paris"]
    kb.remove(["Q90"])
    assert [ent.text for ent in nlp("Lutetia, Paris").ents] == ["Paris"]


def test_turkish_names_have_one_answer(tmp_path, write_jsonl):
    from spacy_xel.kb.build import build_store

    lines = [{"id": "WARM", "title": "ılık"}, {"id": "MARROW", "title": "ilik"}]
    build_store(write_jsonl(lines), tmp_path / "kb", lang="tr")
    kb = XelKnowledgeBase.open(tmp_path / "kb")
    assert ids(kb, "ILIK") == ["WARM"]
    assert [kb.kb_id(row) for ((row, _),) in kb.lookup_batch(["ILIK", "İLİK"])] == [
        "WARM",
        "MARROW",
    ]


def test_candidates_follow_other_processes(small_kb):
    doc = spacy.blank("en")("Xanadu")
    XelKnowledgeBase.open(small_kb.path).add([Entity("X", "Xanadu")])
    assert [c.entity_ for c in small_kb.get_candidates(doc[:1])] == ["X"]
    XelKnowledgeBase.open(small_kb.path).rollback()
    assert small_kb.get_candidates_batch([doc[:1]]) == [[]]


def test_vector_of_an_unknown_id_is_zero(small_kb):
    assert not small_kb.get_vector("NIL").any()


def test_bytes_are_checked(small_kb):
    data = small_kb.to_bytes().replace(b"Big Apple", b"Big Apply")
    with pytest.raises(ValueError, match="checksum"):
        XelKnowledgeBase(small_kb.vocab).from_bytes(data)


@pytest.mark.parametrize("rollback_to", [1, 5, -1, "x"])
def test_a_change_that_makes_no_sense_is_named(small_kb, rollback_to):
    from spacy_xel.kb.delta import Delta, _write

    (small_kb.path / "deltas").mkdir()
    _write(small_kb.path / "deltas" / "00000001.json", Delta(rollback_to=rollback_to))
    with pytest.raises(ValueError, match="goes back"):
        XelKnowledgeBase.open(small_kb.path)


def test_damaged_change_is_named(small_kb):
    small_kb.add([Entity("Q1", "Atlantis")])
    path = small_kb.path / "deltas" / "00000001.json"
    path.write_text(path.read_text().replace("Atlantis", "Atlantic"))
    with pytest.raises(ValueError, match=r"00000001\.json"):
        XelKnowledgeBase.open(small_kb.path)
