"""The command line, as people use it."""

import json

import pytest
import spacy
from typer.testing import CliRunner

from spacy_xel.cli.common import parse_size
from spacy_xel.cli.main import app


@pytest.fixture
def xel():
    def run(*arguments, code=0):
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert result.exit_code == code, result.output + repr(result.exception)
        return " ".join(result.output.split())

    return run


def test_help_through_spacy():
    import subprocess
    import sys

    command = [sys.executable, "-m", "spacy", "xel", "--help"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "Usage: python -m spacy xel" in result.stdout
    for name in ("kb", "link", "evaluate", "convert"):
        assert name in result.stdout


def test_knowledge_base_from_build_to_rollback(xel, tmp_path, write_jsonl):
    from tests.conftest import SMALL_KB

    kb = tmp_path / "kb"
    assert "8 entities" in xel("kb", "build", write_jsonl(SMALL_KB), kb)
    assert "--force" in xel("kb", "build", write_jsonl(SMALL_KB), kb, code=1)
    info = json.loads(xel("kb", "info", kb, "--json", "--verify"))
    assert (info["entities"], info["version"]) == (8, 0)
    assert "entities" in xel("kb", "info", kb)
    assert "Q167646" in xel("kb", "find", kb, "paris")
    assert "Ilion" not in xel("kb", "find", kb, "ilium")
    assert "Troy" in xel("kb", "find", kb, "Q22647")
    assert "No entity" in xel("kb", "find", kb, "Atlantis", code=1)
    assert "No entity" in xel("kb", "find", kb, "PARIS", "--cased", code=1)
    assert "version 1" in xel("kb", "add", kb, "--id", "X", "--title", "Atlantis")
    assert "Atlantis" in xel("kb", "find", kb, "atlantis")
    more = write_jsonl([{"id": "Y", "title": "Mu"}, {"id": "Z", "title": "Lemuria"}], "more.jsonl")
    assert "version 2" in xel("kb", "add", kb, more)
    assert "--replace" in xel("kb", "add", kb, more, code=1)
    assert "version 3" in xel("kb", "remove", kb, "X", "Y")
    assert "No entity" in xel("kb", "find", kb, "mu", code=1)
    assert "Unknown entity" in xel("kb", "remove", kb, "X", code=1)
    assert "version 4" in xel("kb", "rollback", kb)
    assert "Atlantis" in xel("kb", "find", kb, "atlantis")
    assert "version 5" in xel("kb", "rollback", kb, "--to", "0")
    assert json.loads(xel("kb", "info", kb, "--json"))["entities"] == 8


def test_build_reports_what_it_left_out(xel, tmp_path, write_jsonl):
    path = write_jsonl([{"id": "A", "title": "a", "aliases": [" "]}, b"{", {"id": "A"}])
    assert "line 2" in xel("kb", "build", path, tmp_path / "kb", code=1)
    output = xel("kb", "build", path, tmp_path / "kb", "--on-error", "skip", "--max-ram", "64M")
    assert "line 2" in output
    assert "line 3" in output
    assert "2 lines were left out" in output
    assert "1 names were empty" in output


def test_bad_options(xel, tmp_path, write_jsonl):
    path = write_jsonl([{"id": "A", "title": "a"}])
    assert "max_ram" in xel("kb", "build", path, tmp_path / "kb", "--max-ram", "lots", code=1)
    xel("kb", "build", path, tmp_path / "kb", "--on-error", "ignore", code=2)
    assert "does not exist" in xel("kb", "build", tmp_path / "no.jsonl", tmp_path / "kb", code=1)
    assert "no knowledge base" in xel("kb", "info", tmp_path / "nothing", code=1)
    assert "no knowledge base" in xel("kb", "info", tmp_path, code=1)


def test_the_knowledge_base_of_a_pipeline_is_changed_and_compared(
    xel, linker, tmp_path, write_jsonl
):
    nlp = tmp_path / "nlp"
    linker.to_disk(nlp)
    running = spacy.load(nlp)
    assert "version 1" in xel("kb", "add", nlp, "--id", "X", "--title", "Atlantis")
    assert [ent.kb_id_ for ent in running("Atlantis sank").ents] == ["X"]
    xel("kb", "remove", nlp, "Q60")
    troy = {"id": "Q22647", "title": "Troy", "description": "in Asia Minor", "aliases": ["Ilion"]}
    xel("kb", "add", nlp, write_jsonl([troy]), "--replace")
    output = xel("kb", "diff", nlp, "--output", tmp_path / "diff.jsonl")
    assert "1 added, 1 removed, 1 changed" in output
    assert "aliases, description" in output
    lines = [json.loads(line) for line in (tmp_path / "diff.jsonl").read_text().splitlines()]
    kinds = {line["id"]: line["change"] for line in lines}
    assert kinds == {"X": "added", "Q60": "removed", "Q22647": "changed"}
    assert "1 added, 0 removed, 0 changed" in xel("kb", "diff", f"{nlp}@0", f"{nlp}@1")
    assert "0 added, 1 removed, 1 changed" in xel("kb", "diff", f"{nlp}@1", nlp)
    assert "1 added, 0 removed, 0 changed" in xel("kb", "diff", f"{nlp}@1")
    assert "versions 0 to 3" in xel("kb", "diff", f"{nlp}@7", nlp, code=1)
    ents = running("Troy, New York City, Atlantis").ents
    assert {ent.kb_id_ for ent in ents if ent.text == "Troy"} == {"Q22647"}
    assert all(ent._.xel_kb_version.endswith(".3") for ent in ents)


def test_link_evaluate_and_convert(xel, linker, tmp_path, write_jsonl):
    linker.to_disk(tmp_path / "nlp")
    output = xel("link", tmp_path / "nlp", "Paris fought for Troy", "nothing")
    assert "Q90" in output
    assert "Paris (mythology) (Q167646" in output
    assert "No mention" in output
    mention = {"start": 0, "end": 5, "kb_ids": ["Q90"]}
    corpus = write_jsonl([{"id": "1", "text": "Paris", "mentions": [mention]}], "c.jsonl")
    output = xel("evaluate", tmp_path / "nlp", corpus, "--json", tmp_path / "m.json")
    assert "xel_micro_f 1.0000" in output
    scores = json.loads((tmp_path / "m.json").read_text())
    assert scores["scores"]["xel_micro_f"] == 1
    assert scores["intervals"]["xel_micro_f"] == [1, 1]
    output = xel("evaluate", tmp_path / "nlp", corpus, "--gold-mentions", "--train", corpus)
    assert "xel_acc_seen 1.0000" in output
    assert "1 texts with 1 mentions" in xel("convert", corpus, tmp_path / "c.spacy")
    assert "1 texts" in xel("convert", tmp_path / "c.spacy", tmp_path / "c.txt", "--to", "pubtator")
    assert "no format" in xel("convert", corpus, tmp_path / "x", "--to", "word", code=1)
    empty = write_jsonl([], "empty.jsonl")
    assert "no documents" in xel("evaluate", tmp_path / "nlp", empty, code=1)


def test_calibrate(xel, linker, tmp_path, write_jsonl):
    linker.to_disk(tmp_path / "nlp")
    texts = [("Paris", ["Q90"]), ("Troy", ["Q22647"]), ("New York", [])] * 10
    lines = [
        {"id": str(i), "text": name, "mentions": [{"start": 0, "end": len(name), "kb_ids": ids}]}
        for i, (name, ids) in enumerate(texts)
    ]
    corpus = write_jsonl(lines, "c.jsonl")
    options = ("--method", "isotonic", "--target-precision", "0.9", "--report", tmp_path / "r.json")
    output = xel("calibrate", tmp_path / "nlp", corpus, tmp_path / "new", *options)
    assert "nil_recall 0.0000 1.0000" in output
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["after"]["precision"] == 1
    assert report["after"]["nil_precision"] == 1
    assert report["after"]["calibration_error"] < report["before"]["calibration_error"]
    linked = xel("link", tmp_path / "new", "Troy and New York")
    assert "Q22647" in linked
    assert "NIL" in linked
    again = xel("calibrate", tmp_path / "nlp", corpus, tmp_path / "new", code=1)
    assert "exists already" in again
    bad = ("calibrate", tmp_path / "nlp", corpus, tmp_path / "other")
    assert "no calibration method" in xel(*bad, "--method", "magic", code=1)
    assert "between 0 and 1" in xel(*bad, "--target-precision", "95", code=1)
    wrong = [{**line, "mentions": [{**line["mentions"][0], "kb_ids": []}]} for line in lines]
    bad = ("calibrate", tmp_path / "nlp", write_jsonl(wrong, "w.jsonl"), tmp_path / "other")
    assert "cannot be reached" in xel(*bad, "--target-precision", "0.9", code=1)
    assert not (tmp_path / "other").exists()


def test_tree_show(xel, small_store, linker, tmp_path):
    from tests.contract.test_components import tree_linker

    tree_linker(small_store).to_disk(tmp_path / "nlp")
    drawing = xel("tree", "show", tmp_path / "nlp", "--depth", "9")
    assert "root: 8 entities" in drawing
    assert "Q22647 Troy" in drawing
    assert '"nyc"' in drawing
    way = xel("tree", "show", tmp_path / "nlp", "--entity", "Q22647", "--ngrams", "2")
    assert "* Q22647 Troy" in way
    assert "Unknown entity" in xel("tree", "show", tmp_path / "nlp", "--entity", "Q404", code=1)
    linker.to_disk(tmp_path / "alias")
    assert "no fitted label tree" in xel("tree", "show", tmp_path / "alias", code=1)


def test_tree_explain(xel, small_store, tmp_path):
    from tests.contract.test_components import tree_linker

    tree_linker(small_store).to_disk(tmp_path / "nlp")
    why = xel("tree", "explain", tmp_path / "nlp", "Troy fell.")
    assert "Troy: Q22647" in why
    assert "level 1" in why
    assert '"troy" +' in why
    assert "Unknown entity" in xel(
        "tree", "explain", tmp_path / "nlp", "Troy fell.", "--entity", "Q404", code=1
    )


def test_spacy_evaluate(linker, tmp_path, write_jsonl, xel):
    from spacy.cli.evaluate import evaluate

    linker.to_disk(tmp_path / "nlp")
    mention = {"start": 0, "end": 5, "kb_ids": ["Q90"]}
    corpus = write_jsonl([{"id": "1", "text": "Paris", "mentions": [mention]}], "c.jsonl")
    xel("convert", corpus, tmp_path / "c.spacy")
    scores = evaluate(str(tmp_path / "nlp"), tmp_path / "c.spacy", silent=True)
    assert scores["xel_micro_f"] == 1.0


@pytest.mark.parametrize(
    ("text", "size"), [("800M", 800 << 20), ("4g", 4 << 30), ("1.5GiB", 3 << 29)]
)
def test_sizes(text, size):
    assert parse_size(text) == size
