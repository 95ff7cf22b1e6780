"""The README's code runs, and prints what it says."""

import contextlib
import io
import re
import shlex
import subprocess
import sys

import pytest

from tests.conftest import ROOT

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$(?:\n^```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_readme(tmp_path, monkeypatch):
    pytest.importorskip("xel_wiki", reason="the pipeline is not installed; run make demo")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "assets").symlink_to(ROOT / "assets")
    namespace: dict = {}
    ran = 0
    for language, code, expected in BLOCK.findall((ROOT / "README.md").read_text("utf8")):
        if language == "python":
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(compile(code, "README.md", "exec"), namespace)
            assert output.getvalue() == expected
        elif language == "bash":
            for line in code.splitlines():
                command = [sys.executable, *shlex.split(line)[1:]]
                result = subprocess.run(command, capture_output=True, text=True, check=False)
                assert result.returncode == 0, line + result.stdout + result.stderr
        ran += language in ("python", "bash")
    assert ran >= 5


def test_demo():
    xel_wiki = pytest.importorskip(
        "xel_wiki", reason="the pipeline is not installed; run make demo"
    )
    doc = xel_wiki.load()("To save Troy from destruction, Paris had to be sacrificed.")
    assert [(ent.text, ent.kb_id_) for ent in doc.ents] == [
        ("Troy", "Q22647"),
        ("Paris", "Q167646"),
    ]
