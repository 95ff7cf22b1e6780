"""The project as people run it: killed, run again, packaged, installed elsewhere and used."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

from tests.conftest import ROOT

SMOKE = ["-m", "spacy", "project", "run", "smoke"]


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A copy of what the project needs, so that a run leaves this one alone."""
    folder = tmp_path_factory.mktemp("project")
    for name in ("project.yml", "LICENSE", "configs", "assets"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)
    return folder


def test_the_readme_tells_of_the_project_as_it_is(tmp_path):
    command = [sys.executable, "-m", "spacy", "project", "document", ROOT, "--output"]
    subprocess.run([*command, tmp_path / "README.md"], check=True, capture_output=True)

    def without_links(text):  # to files, which there are or not
        return re.sub(r"\[(`[^`]+`)\]\([^)]+\)", r"\1", text).strip()

    generated = without_links((tmp_path / "README.md").read_text())
    assert generated in without_links((ROOT / "README.md").read_text())


def test_the_embedded_assets_have_their_checksums(project):
    command = [sys.executable, "-m", "spacy", "project", "assets"]
    result = subprocess.run(command, cwd=project, check=True, capture_output=True, text=True)
    assert result.stdout.count("matching checksum") == 3


@pytest.fixture(scope="module")
def wheel(project):
    """Run the workflow smoke, killed once in the middle; return the wheel it makes."""
    running = subprocess.Popen(
        [sys.executable, *SMOKE], cwd=project, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    deadline = time.monotonic() + 300
    while not (project / "training" / "assembled").exists():
        assert running.poll() is None, "the workflow ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    start = time.monotonic()
    result = subprocess.run(
        [sys.executable, *SMOKE], cwd=project, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "Skipping 'smoke-kb'" in result.stdout
    assert time.monotonic() - start < 120
    (wheel,) = project.glob("packages/*/dist/*.whl")
    return wheel


@pytest.mark.slow
def test_smoke(project, wheel):
    metrics = json.loads((project / "metrics" / "xel_smoke.json").read_text())
    assert metrics["scores"]["xel_acc"] > 0.6
    assert metrics["intervals"]["xel_acc"][0] > 0.6
    assert metrics["speed"]["words_per_second"] > 0
    names = {path.name for path in (project / "training" / "xel_smoke").iterdir()}
    assert {"README.md", "LICENSE", "manifest.json", "config.cfg"} <= names
    again = subprocess.run(
        [sys.executable, *SMOKE], cwd=project, capture_output=True, text=True, check=True
    )
    assert again.stdout.count("nothing changed") == 5


@pytest.mark.slow
def test_the_wheel_works_in_a_fresh_environment(wheel, tmp_path):
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    constraints = ["--constraint", ROOT / "constraints.txt"]
    # The pipeline's own requirements, of which only spacy-xel is not to be had from an index.
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", tmp_path, ROOT],
        check=True,
    )
    subprocess.run(
        [*pip, *constraints, "--find-links", tmp_path, wheel], check=True, capture_output=True
    )
    script = (
        "import socket\n"
        "def offline(*_, **__): raise OSError('no network')\n"
        "socket.socket.connect = offline\n"
        "import spacy\n"
        "nlp = spacy.load('xel_smoke')\n"
        "doc = nlp('Mercury is the planet nearest the Sun.')\n"
        "print([(ent.text, ent.kb_id_) for ent in doc.ents])\n"
        "import importlib.util as util\n"
        "print([name for name in ('torch', 'faiss', 'ray') if util.find_spec(name)])\n"
    )
    result = subprocess.run(
        [python, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    links, extras = result.stdout.splitlines()
    assert "('Mercury', 'Q308')" in links
    assert extras == "[]"

    def xel(*arguments):
        command = [python, "-m", "spacy", "xel", *arguments]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    assert "files are as they were made" in xel("verify", "xel_smoke")
    xel("kb", "add", "xel_smoke", "--id", "X1", "--title", "Zanzibarium")
    assert "X1" in xel("link", "xel_smoke", "They mined Zanzibarium.")
    assert "1 added" in xel("kb", "diff", "xel_smoke")
    assert "changed 1 times" in xel("verify", "xel_smoke")
