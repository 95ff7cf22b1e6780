"""The label tree as a retriever: what a user sees of it."""

import json
import shutil

import numpy as np
import pytest
from spacy.vocab import Vocab

from spacy_xel.kb.build import build_store
from spacy_xel.kb.knowledge_base import XelKnowledgeBase, empty_knowledge_base
from spacy_xel.retrieval.label_tree.retriever import make_label_tree
from spacy_xel.types import AnnotatedText, Entity, Mention, Query


def make_kb(folder, *entities):
    folder.mkdir(exist_ok=True)
    lines = "".join(json.dumps(entity) + "\n" for entity in entities)
    (folder / "kb.jsonl").write_text(lines, encoding="utf8")
    build_store(folder / "kb.jsonl", folder / "kb", force=True)
    return XelKnowledgeBase.open(folder / "kb")


def whole(name):
    return Query(name, 0, len(name))


def test_one_entity_and_unknown_features(tmp_path):
    kb = make_kb(tmp_path, {"id": "A", "title": "Paris"})
    tree = make_label_tree()
    tree.initialize(kb, [])
    batch = tree([whole("Paris"), whole("zzz"), Query("", 0, 0)], k=3)
    assert batch.rows.tolist() == [[0, -1, -1], [-1, -1, -1], [-1, -1, -1]]
    assert batch.scores[0, 0] > 0
    assert np.isneginf(batch.scores[1:]).all()
    assert tree([], k=3).rows.shape == (0, 3)


def test_an_empty_knowledge_base_is_refused():
    with pytest.raises(ValueError, match="has no knowledge base"):
        make_label_tree().initialize(empty_knowledge_base()(Vocab(), 1), [])
    with pytest.raises(ValueError, match="initialize"):
        make_label_tree()([whole("Paris")], k=1)


@pytest.mark.parametrize("trees", [1, 3])
def test_context_tells_entities_apart(tmp_path, trees):
    kb = make_kb(
        tmp_path,
        {"id": "P", "title": "Mercury", "description": "planet nearest the sun"},
        {"id": "M", "title": "Mercury", "description": "liquid metal of thermometers"},
        {"id": "G", "title": "Mars", "description": "planet with two moons"},
    )
    tree = make_label_tree(trees=trees, features={"context_words": 1.0})
    tree.initialize(kb, [])
    texts = ["The sun rose over the planet Mercury.", "Thermometers hold liquid Mercury."]
    queries = [Query(text, text.index("Mercury"), text.index("Mercury") + 7) for text in texts]
    assert [kb.kb_id(row) for row in tree(queries, k=2).rows[:, 0].tolist()] == ["P", "M"]
    copy = make_label_tree(trees=trees, features={"context_words": 1.0})
    copy.from_bytes(tree.to_bytes())
    assert copy(queries, k=2).scores.tolist() == tree(queries, k=2).scores.tolist()
    explanation, names = tree.explain(queries[0], kb.row("P"))
    assert explanation.lost_at is None
    last = explanation.steps[-1]
    best = [names[feature] for feature in last.features.tolist()]
    assert "planet" in best or "sun" in best
    if trees == 1:
        assert last.score == pytest.approx(float(tree(queries[:1], k=1).scores[0, 0]), rel=1e-3)


def test_abbreviations_are_learnt_both_ways(tmp_path):
    kb = make_kb(tmp_path, {"id": "A", "title": "cardiac flutter"}, {"id": "B", "title": "anemia"})
    text = "Atrial fibrillation (AF) is frequent. AF can be treated."
    mentions = (Mention(0, 19, ("A",)), Mention(38, 40, ("A",)))
    tree = make_label_tree(features={"context_words": 0.0})
    tree.initialize(kb, [AnnotatedText("d", text, mentions)])
    defined = "Patients with atrial fibrillation (AF): AF was short."
    queries = [Query(defined, 40, 42), whole("AF"), whole("atrial fibrillation")]
    assert tree(queries, k=1).rows[:, 0].tolist() == [0, 0, 0]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    kb = make_kb(folder, *({"id": str(i), "title": f"name {i} of {i * i}"} for i in range(300)))
    tree = make_label_tree()
    tree.initialize(kb, [])
    tree.to_disk(folder)
    return folder, tree


def test_saving_onto_itself_keeps_the_model(saved):
    folder, tree = saved
    queries = [whole(f"name {i} of {i * i}") for i in range(300)]
    expected = tree(queries, k=3).rows.tolist()
    for _ in range(2):
        loaded = make_label_tree()
        loaded.from_disk(folder)
        loaded.to_disk(folder)
        assert loaded(queries, k=3).rows.tolist() == expected


@pytest.mark.parametrize("name", ["vocabulary.npy", "idf.npy", "trees/0/words.npy"])
def test_damaged_files_are_noticed(saved, name, tmp_path):
    shutil.copytree(saved[0] / "label_tree", tmp_path / "label_tree")
    path = tmp_path / "label_tree" / name
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    for damaged in (bytes(content), bytes(content[:-8])):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="damaged"):
            make_label_tree().from_disk(tmp_path)
    path.unlink()
    with pytest.raises(ValueError, match="damaged"):
        make_label_tree().from_disk(tmp_path)


def test_other_settings_are_refused(saved):
    folder, tree = saved
    for other in ({"features": {"mention_words": 0.5}}, {"tree": {"cost": 3.0}}, {"trees": 2}):
        with pytest.raises(ValueError, match="other settings"):
            make_label_tree(**other).from_disk(folder)
        with pytest.raises(ValueError, match="other settings"):
            make_label_tree(**other).from_bytes(tree.to_bytes())
    data = bytearray(tree.to_bytes())
    data[len(data) // 2] ^= 1
    with pytest.raises(ValueError, match="checksum"):
        make_label_tree().from_bytes(bytes(data))
    with pytest.raises(ValueError, match="added after"):
        tree.explain(whole("name 1"), 300)


def titles(kb, batch):
    return [[kb.entity(row).title for row in rows if row >= 0] for rows in batch.rows.tolist()]


@pytest.mark.parametrize("trees", [1, 3])
def test_added_entities_are_found_at_once(tmp_path, trees):
    colours = ["red", "green", "blue", "white", "black", "brown"]
    birds = ["heron", "finch", "robin", "plover", "warbler", "gull", "owl"]
    names = [f"{colour} {bird}" for colour in colours for bird in birds]
    kb = make_kb(tmp_path, *({"id": name, "title": name} for name in names))
    tree = make_label_tree(trees=trees)
    tree.initialize(kb, [])
    queries = [whole(name) for name in ["golden eagle", "golden eagel", "red heron", "gold finch"]]
    before = tree(queries, k=3)
    kb.add([Entity("E", "golden eagle"), Entity("F", "gold finch", ("goldfinch",))])
    after = tree(queries, k=3)
    assert [found[0] for found in titles(kb, after)] == [
        "golden eagle", "golden eagle", "red heron", "gold finch"
    ]  # fmt: skip
    assert after.rows[2, 0] == before.rows[2, 0]
    assert after.scores[2, 0] == before.scores[2, 0]
    assert (np.diff(after.scores, axis=1) <= 0).all()
    copy = make_label_tree(trees=trees)
    copy.from_bytes(tree.to_bytes())
    copy.attach(kb)
    assert copy(queries, k=3).scores.tolist() == after.scores.tolist()
    kb.remove(["E"])
    assert "golden eagle" not in titles(kb, tree(queries, k=3))[0]
    kb.rollback(0)
    assert tree(queries, k=3).scores.tolist() == before.scores.tolist()


def test_a_replaced_entity_keeps_what_the_tree_learnt(tmp_path):
    kb = make_kb(tmp_path, {"id": "A", "title": "anemia"}, {"id": "B", "title": "asthma"})
    tree = make_label_tree(features={"context_words": 0.0})
    text = AnnotatedText("d", "low iron", (Mention(0, 8, ("A",)),))
    tree.initialize(kb, [text])
    kb.add([Entity("A", "anaemia")], replace=True)
    batch = tree([whole("low iron"), whole("anaemia")], k=5)
    assert [kb.kb_id(row) for row in batch.rows[:, 0].tolist()] == ["A", "A"]
    assert all(len(set(rows)) == len(rows) for rows in titles(kb, batch))


def test_added_names_without_known_ngrams_are_found(tmp_path):
    kb = make_kb(tmp_path, {"id": "A", "title": "anemia"})
    tree = make_label_tree()
    tree.initialize(kb, [])
    kb.add([Entity("J", "貧血"), Entity("E", "?!")])
    batch = tree([whole("anemia"), whole("貧血"), whole("?!"), whole("寒")], k=5)
    assert [found[:1] for found in titles(kb, batch)][:3] == [["anemia"], ["貧血"], ["?!"]]
    assert batch.scores[1, 0] == 1
    assert not titles(kb, batch)[3]


def test_added_names_that_look_alike_are_told_apart(tmp_path):
    kb = make_kb(tmp_path, *({"id": str(i), "title": f"bolt {i}"} for i in range(30)))
    tree = make_label_tree()
    tree.initialize(kb, [])
    added = [Entity(f"M{i}", f"Model X{100 + i}") for i in range(50)]
    kb.add(added)
    batch = tree([whole(entity.title) for entity in added], k=3)
    assert [kb.kb_id(row) for row in batch.rows[:, 0].tolist()] == [e.kb_id for e in added]


def test_a_namesake_does_not_take_what_it_does_not_suit(tmp_path):
    kb = make_kb(
        tmp_path,
        {"id": "P", "title": "Mercury", "description": "planet nearest the sun", "prior": 50},
        {"id": "M", "title": "Mercury", "description": "liquid metal of thermometers"},
        *({"id": str(i), "title": f"comet {i}", "description": "in the sky"} for i in range(20)),
    )
    texts = [
        AnnotatedText(str(i), text, (Mention(0, 7, (kb_id,)),))
        for i, (text, kb_id) in enumerate(
            [("Mercury rose near the sun", "P"), ("Mercury filled the thermometers", "M")] * 5
        )
    ]
    tree = make_label_tree(features={"context_words": 1.0})
    tree.initialize(kb, texts)
    queries = [
        Query(text, 0, 7)
        for text in (
            "Mercury the planet", "Mercury of liquid metal", "Mercury sang in the band of Queen"
        )
    ]  # fmt: skip

    def best():
        return [kb.kb_id(row) for row in tree(queries, k=3).rows[:, 0].tolist()]

    assert best()[:2] == ["P", "M"]
    kb.add([Entity("X", "Mercury")])
    assert best()[:2] == ["P", "M"]
    kb.add([Entity("F", "Mercury", (), "singer of the band Queen", prior=20.0)])
    assert best() == ["P", "M", "F"]
