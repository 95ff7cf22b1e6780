"""Pipelines made ready to be handed on, and checked when they arrive."""

import json
import shutil

import pytest
import spacy
import srsly
from typer.testing import CliRunner

from spacy_xel.cli.main import app
from spacy_xel.kb.knowledge_base import XelKnowledgeBase
from spacy_xel.packaging.card import KBFacts, model_card
from spacy_xel.packaging.finish import _requirements, finish
from spacy_xel.packaging.verify import verify
from spacy_xel.pipeline.locate import pipeline_folder, store_folder
from spacy_xel.types import Entity

META = {
    "lang": "xel", "name": "test", "version": "1.2.3", "license": "CC0",
    "description": "Links what is in the test.", "notes": "Knows eight things.",
    "sources": [{"name": "Our heads", "author": "us", "license": "CC0"}, {"name": "Hearsay"}],
}  # fmt: skip
METRICS = {
    "corpus": "dev.jsonl",
    "gold_mentions": False,
    "scores": {"xel_micro_f": 0.5, "xel_acc": 0.75, "xel_acc_ambiguous": 0.25, "xel_nil_r": 0.0},
    "intervals": {"xel_micro_f": [0.4, 0.6]},
    "sizes": {"documents": 3, "nil_mentions": 2, "mentions_not_in_kb": 1},
    "speed": {"words_per_second": 12345, "load_seconds": 0.5},
}


@pytest.fixture
def finished(linker, tmp_path):
    linker.to_disk(tmp_path / "assembled")
    finish(tmp_path / "assembled", tmp_path / "finished", meta=META, metrics=METRICS)
    return tmp_path / "finished"


def test_a_finished_pipeline_has_all_that_a_package_needs(finished):
    meta = srsly.read_json(finished / "meta.json")
    assert (meta["name"], meta["version"], meta["license"]) == ("test", "1.2.3", "CC0")
    assert meta["requirements"][0].startswith("spacy-xel>=")
    assert meta["performance"]["xel_acc"] == 0.75
    assert "Our heads (us, CC0)" in (finished / "LICENSE").read_text()
    card = (finished / "README.md").read_text()
    for text in (
        "Our heads (us, CC0)", "- Hearsay", "8 entities", "| 0.500 | 0.400 to 0.600 |",
        "12,345 words", "Knows eight things", "never abstains", "25%", "xel verify xel_test",
    ):  # fmt: skip
        assert text in card
    doc = spacy.load(finished)("Paris fought for Troy")
    assert [ent.kb_id_ for ent in doc.ents] == ["Q90", "Q22647"]


def test_finishing_twice_changes_nothing_and_leaves_the_source_alone(finished, tmp_path):
    before = (tmp_path / "assembled" / "meta.json").read_bytes()
    first = {path: path.read_bytes() for path in finished.rglob("*") if path.is_file()}
    finish(tmp_path / "assembled", finished, meta=META, metrics=METRICS)
    assert {path: path.read_bytes() for path in finished.rglob("*") if path.is_file()} == first
    assert (tmp_path / "assembled" / "meta.json").read_bytes() == before
    assert not (tmp_path / "assembled" / "manifest.json").exists()
    with pytest.raises(ValueError, match="choose another folder"):
        finish(finished, finished, meta=META)


def test_a_licence_of_ones_own(linker, tmp_path):
    linker.to_disk(tmp_path / "assembled")
    (tmp_path / "terms.txt").write_text("Do as you like.\n")
    finish(tmp_path / "assembled", tmp_path / "out", meta=META, licence=tmp_path / "terms.txt")
    assert (tmp_path / "out" / "LICENSE").read_text() == "Do as you like.\n"
    assert "Not evaluated" in (tmp_path / "out" / "README.md").read_text()


def test_extras_come_from_the_config(finished):
    config = finished / "config.cfg"
    config.write_text(config.read_text().replace("spacy-xel.AliasTable.v1", "spacy-xel.Dense.v1"))
    first, *others = _requirements(finished, ["spacy>=3", "spacy-xel", "regex"])
    assert first.startswith("spacy-xel[dense,transformers]>=")
    assert others == ["spacy", "regex"]


def test_verify_names_every_problem(finished):
    assert not verify(finished).problems
    assert verify(finished).files > 10
    (finished / "tokenizer").write_bytes(b"x" * (finished / "tokenizer").stat().st_size)
    (finished / "vocab" / "strings.json").unlink()
    (finished / "LICENSE").write_text("none")
    (finished / "surprise.py").write_text("")
    result = verify(finished)
    assert [problem.split()[0] for problem in sorted(result.problems)] == [
        "LICENSE", "the", "vocab/strings.json"
    ]  # fmt: skip
    assert result.unknown == ["surprise.py"]
    output = CliRunner().invoke(app, ["verify", str(finished)])
    assert output.exit_code == 1
    assert "strings.json is missing" in output.output


def test_verify_knows_changes_of_the_knowledge_base(finished):
    kb = XelKnowledgeBase.open(store_folder(str(finished)))
    kb.add([Entity("X", "Atlantis")])
    result = verify(finished)
    assert (result.problems, result.unknown, result.kb_changes) == ([], [], 1)
    output = CliRunner().invoke(app, ["verify", str(finished)])
    assert output.exit_code == 0
    assert "changed 1 times" in output.output
    deltas = store_folder(str(finished)) / "deltas"
    (deltas / "note.txt").write_text("not a change")
    assert verify(finished).unknown == ["xel_mentions/kb/deltas/note.txt"]
    kb.remove(["X"])
    (deltas / "00000001.json").rename(deltas.parent / "gone")
    assert "is missing" in verify(finished).problems[0]
    (deltas.parent / "gone").rename(deltas / "00000001.json")
    change = deltas / "00000001.json"
    fields = json.loads(change.read_text())
    fields["delta"]["added"][0]["title"] = "Mu"
    change.write_text(json.dumps(fields))
    assert "checksum" in verify(finished).problems[0]


def test_verify_needs_a_manifest(linker, tmp_path):
    linker.to_disk(tmp_path / "assembled")
    output = CliRunner().invoke(app, ["verify", str(tmp_path / "assembled")])
    assert output.exit_code == 1
    assert "xel finish" in output.output
    output = CliRunner().invoke(app, ["verify", "no_such_pipeline"])
    assert "There is no pipeline" in output.output


def test_where_pipelines_and_stores_are(finished, small_store, tmp_path):
    assert pipeline_folder(str(finished)) == finished
    assert store_folder(str(small_store)) == small_store
    assert store_folder(str(finished)) == finished / "xel_mentions" / "kb"
    shutil.copytree(finished / "xel_mentions" / "kb", finished / "other" / "kb")
    with pytest.raises(ValueError, match="one knowledge base"):
        store_folder(str(finished))
    with pytest.raises(FileNotFoundError, match="no knowledge base"):
        store_folder(str(tmp_path))


def test_a_card_without_figures_says_so():
    card = model_card(META, {}, kb=KBFacts(8, 9, 1, "abc.0"), megabytes=1.5)
    assert "Not evaluated." in card
    assert "Not measured." in card
    assert "Nothing is known" in card


@pytest.mark.parametrize(
    ("option", "content", "expected"),
    [
        ("--meta", "{bad", "not JSON"),
        ("--meta", "[]", "JSON object"),
        ("--meta", '{"name": "a b/c"}', "name must be"),
        ("--meta", '{"version": "x"}', "version must be"),
        ("--meta", '{"requirements": "foo"}', "requirements"),
        ("--meta", '{"author": ["me"]}', "author"),
        ("--meta", '{"sources": [{"url": "there"}]}', "source must have a name"),
        ("--metrics", '{"xel_acc": 0.5}', "no scores"),
        ("--metrics", '{"scores": {"xel_acc": null}}', "scores must be numbers"),
        ("--metrics", '{"scores": {}, "sizes": "many"}', "sizes must be numbers"),
        ("--metrics", '{"scores": {}, "intervals": {"a": [1]}}', "two numbers"),
    ],
)
def test_what_a_pipeline_is_finished_with_is_checked(linker, tmp_path, option, content, expected):
    linker.to_disk(tmp_path / "assembled")
    (tmp_path / "file.json").write_text(content)
    arguments = ["finish", "assembled", "out", option, "file.json"]
    arguments = [
        str(tmp_path / a) if a in ("assembled", "out", "file.json") else a for a in arguments
    ]
    output = CliRunner().invoke(app, arguments)
    assert output.exit_code == 1
    assert expected in " ".join(output.output.split())
    assert not (tmp_path / "out").exists()
