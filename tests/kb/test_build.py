"""Builds from bad files, and builds that are interrupted."""

import gzip
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from spacy_xel.jsonlines import MAX_LINE_BYTES
from spacy_xel.kb.build import build_store
from spacy_xel.kb.knowledge_base import XelKnowledgeBase

GOOD = {"id": "A", "title": "Alpha"}
BAD_LINES = {
    "broken JSON": (b'{"id": "X", "title": ', "not valid JSON"),
    "not an object": (b'["X"]', "expected a JSON object"),
    "missing id": (b'{"title": "X"}', "'id' is missing"),
    "empty id": (b'{"id": " ", "title": "X"}', "must be a string that is not empty"),
    "number as id": (b'{"id": 7, "title": "X"}', "must be a string"),
    "reserved id": (b'{"id": "NIL", "title": "X"}', "reserved"),
    "id with separator": (b'{"id": "A|B", "title": "X"}', "reserved"),
    "duplicate id": (b'{"id": "A", "title": "X"}', "was on an earlier line already"),
    "missing title": (b'{"id": "X"}', "'title' is missing"),
    "empty title": (b'{"id": "X", "title": " \\u200b"}', "the title is empty"),
    "title of the wrong type": (b'{"id": "X", "title": 3}', "'title' must be a string"),
    "lone surrogate": (b'{"id": "X", "title": "a\\ud800"}', "lone surrogate"),
    "surrogate in an alias": (b'{"id": "X", "title": "a", "aliases": ["\\udc00"]}', "surrogate"),
    "not UTF-8": (b'{"id": "X", "title": "\xff"}', "not UTF-8"),
    "aliases of the wrong type": (b'{"id": "X", "title": "a", "aliases": "b"}', "list of strings"),
    "negative prior": (b'{"id": "X", "title": "a", "prior": -1}', "prior"),
    "prior NaN": (b'{"id": "X", "title": "a", "prior": NaN}', "prior"),
    "huge number": (b'{"id": "X", "title": "a", "prior": 1' + b"0" * 400 + b"}", "prior"),
    "deep nesting": (b'{"id": "X", "types": ' + b"[" * 100_000, "cannot be read"),
    "10 MB line": (b'{"id": "X", "title": "' + b"x" * (10 << 20) + b'"}', "longer than"),
}


@pytest.mark.parametrize("kind", BAD_LINES)
def test_bad_line_stops_the_build(kind, tmp_path, write_jsonl):
    line, problem = BAD_LINES[kind]
    path = write_jsonl([GOOD, line, {"id": "B", "title": "Beta"}])
    with pytest.raises(ValueError, match=problem) as error:
        build_store(path, tmp_path / "kb")
    assert f"{path}, line 2" in str(error.value)
    assert os.listdir(tmp_path) == ["kb.jsonl"]


@pytest.mark.parametrize("kind", BAD_LINES)
def test_bad_line_is_skipped_and_reported(kind, tmp_path, write_jsonl):
    line, problem = BAD_LINES[kind]
    path = write_jsonl([GOOD, line, {"id": "B", "title": "Beta"}])
    report = build_store(path, tmp_path / "kb", on_error="skip")
    assert report.entities == 2
    assert sum(report.problems.values()) == 1
    assert "line 2" in report.first_problems[0]
    assert problem in report.first_problems[0]
    listed = [json.loads(entry) for entry in (tmp_path / "kb/problems.jsonl").open()]
    assert [entry["line"] for entry in listed] == [2]
    kb = XelKnowledgeBase.open(tmp_path / "kb")
    assert (kb.get_entity("A").title, kb.get_entity("B").title) == ("Alpha", "Beta")


def test_limit_is_on_the_line_not_on_the_file(tmp_path, write_jsonl):
    long = {"id": "L", "title": "Long", "description": "x" * (MAX_LINE_BYTES - 100)}
    report = build_store(write_jsonl([long, long | {"id": "M"}]), tmp_path / "kb")
    assert report.entities == 2


def test_truncated_gzip(tmp_path):
    lines = "".join(f'{{"id": "E{i}", "title": "name {i}"}}\n' for i in range(5000))
    path = tmp_path / "kb.jsonl.gz"
    path.write_bytes(gzip.compress(lines.encode())[:-2000])
    with pytest.raises(ValueError, match=r"line \d+: the gzip data is damaged or cut short"):
        build_store(path, tmp_path / "kb")
    report = build_store(path, tmp_path / "kb", on_error="skip")
    assert 0 < report.entities < 5000
    assert sum(report.problems.values()) == 1


def test_empty_file(tmp_path, write_jsonl):
    with pytest.raises(ValueError, match="No entity was found"):
        build_store(write_jsonl([]), tmp_path / "kb")
    assert not (tmp_path / "kb").exists()


def test_many_duplicates_keep_the_first(tmp_path, write_jsonl):
    lines = [{"id": f"E{i % 7}", "title": f"name {i}"} for i in range(70)]
    report = build_store(write_jsonl(lines), tmp_path / "kb", on_error="skip")
    assert report.entities == 7
    assert sum(report.problems.values()) == 63
    kb = XelKnowledgeBase.open(tmp_path / "kb")
    assert [kb.get_entity(f"E{i}").title for i in range(7)] == [f"name {i}" for i in range(7)]
    assert kb.lookup("name 7") == []


def test_only_ids(tmp_path, write_jsonl):
    lines = [{"id": f"E{i}", "title": f"name {i}"} for i in range(10)]
    ids = write_jsonl([b"E3", b'{"id": "E5", "in_mesh": true}', b"E99"], "ids.txt")
    report = build_store(write_jsonl(lines), tmp_path / "kb", only_ids=ids)
    assert (report.entities, report.filtered_entities) == (2, 8)
    assert report.missing_ids == ["E99"]


def test_existing_folder_is_kept_unless_forced(tmp_path, write_jsonl):
    path = write_jsonl([GOOD])
    build_store(path, tmp_path / "kb")
    with pytest.raises(FileExistsError, match="--force"):
        build_store(path, tmp_path / "kb")
    build_store(write_jsonl([GOOD, {"id": "B", "title": "Beta"}]), tmp_path / "kb", force=True)
    assert len(XelKnowledgeBase.open(tmp_path / "kb")) == 2


def test_only_what_we_wrote_is_replaced(tmp_path, write_jsonl):
    path = write_jsonl([GOOD])
    with pytest.raises(FileExistsError, match="not replaced"):
        build_store(path, tmp_path, force=True)
    with pytest.raises(FileExistsError, match="not replaced"):
        build_store(path, path, force=True)
    assert path.is_file()
    (tmp_path / "empty").mkdir()
    assert build_store(path, tmp_path / "empty", force=True).entities == 1


def test_a_store_whose_replacement_was_interrupted_comes_back(tmp_path, write_jsonl):
    path = write_jsonl([GOOD])
    build_store(path, tmp_path / "kb")
    (tmp_path / "kb").rename(tmp_path / ".kb.0123abcd.old")
    with pytest.raises(FileExistsError, match="--force"):
        build_store(path, tmp_path / "kb")
    assert len(XelKnowledgeBase.open(tmp_path / "kb")) == 1


def test_problems_are_counted_by_kind(tmp_path, write_jsonl):
    lines = [{"id": f"E{i % 9}", "title": f"n{i}"} for i in range(90)]
    report = build_store(write_jsonl(lines), tmp_path / "kb", on_error="skip")
    assert dict(report.problems) == {"the id … was on an earlier line already": 81}


def test_memory_does_not_grow_with_descriptions(tmp_path):
    path = tmp_path / "kb.jsonl"
    with path.open("w") as file:
        for i in range(3000):
            file.write(json.dumps({"id": f"E{i}", "title": f"n{i}", "description": "x" * 50_000}))
            file.write("\n")
    code = (
        "import re, sys; from pathlib import Path; from spacy_xel.kb.build import build_store\n"
        "status = Path('/proc/self/status')\n"
        "peak = lambda: int(re.search(r'VmHWM:\\s+(\\d+)', status.read_text())[1])\n"
        "from spacy_xel.kb import name_kernels; before = peak()\n"
        "build_store(Path(sys.argv[1]), Path(sys.argv[2]), max_ram=50 << 20)\n"
        "print((peak() - before) >> 10)"
    )
    command = [sys.executable, "-c", code, str(path), str(tmp_path / "kb")]
    grown = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert grown < 120, "150 MB of descriptions within about 50 MB"


def test_two_names_with_one_hash_are_reported(tmp_path, write_jsonl, monkeypatch):
    monkeypatch.setattr("spacy_xel.kb.spool.hash_name", len)
    path = write_jsonl([{"id": "A", "title": "one"}, {"id": "BB", "title": "two"}])
    with pytest.raises(ValueError, match="same 64-bit hash"):
        build_store(path, tmp_path / "kb")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_interrupted_build_leaves_no_store(tmp_path, number):
    path = tmp_path / "kb.jsonl"
    with path.open("w") as file:
        for i in range(300_000):
            file.write(f'{{"id": "E{i}", "title": "name {i}"}}\n')
    command = [sys.executable, "-m", "spacy", "xel", "kb", "build", str(path), str(tmp_path / "kb")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    while process.poll() is None and not list(tmp_path.glob(".kb.*.partial")):
        time.sleep(0.05)
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode != 0
    assert not (tmp_path / "kb").exists()
    # What a killed build leaves behind, the next one removes.
    (tmp_path / "small.jsonl").write_text(json.dumps(GOOD))
    build_store(tmp_path / "small.jsonl", tmp_path / "kb")
    assert sorted(os.listdir(tmp_path)) == ["kb", "kb.jsonl", "small.jsonl"]
