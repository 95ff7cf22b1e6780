"""The code of docs/formats.md runs."""

import os
import subprocess
import sys

import pytest

from tests.conftest import ROOT
from tests.test_readme import BLOCK

pytest.importorskip("mwparserfromhell", reason="needs the extra 'dumps'")


@pytest.mark.slow
def test_formats_page(tmp_path, monkeypatch):
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
