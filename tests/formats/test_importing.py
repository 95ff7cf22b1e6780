"""Imports that are killed, go on, and end with the same bytes."""

import gzip
import json
import subprocess
import sys
import time

import pytest

from spacy_xel.formats import KB_FORMATS, importing
from spacy_xel.formats.importing import import_kb
from spacy_xel.formats.reading import Options
from tests.formats.dumps import PAGES, imported, json_lines, page, write, write_dump

pytest.importorskip("mwparserfromhell", reason="needs the extra 'dumps'")


class Killed(BaseException):
    """Not an Exception, so that nothing tidies up after it."""


def run(dump, target, corpus=None, stop_after=None, name="wikipedia"):
    """Import; die after so many items."""
    kb_format = KB_FORMATS[name]

    def read(reading, options):
        for number, item in enumerate(kb_format.read(reading, options)):
            if number == stop_after:
                raise Killed
            yield item

    # The fingerprint has the module's name in it, which must stay.
    read.__module__ = kb_format.read.__module__
    dying = kb_format._replace(read=read)
    return import_kb(dump, target, dying, Options(), corpus=corpus, on_error="skip")


@pytest.mark.parametrize("commits", [0.0, 1e9])
def test_the_same_bytes_wherever_it_is_killed(tmp_path, monkeypatch, commits):
    monkeypatch.setattr(importing, "SECONDS_BETWEEN_COMMITS", commits)
    pages = [*PAGES[:3], page("Bad").replace("<ns>", "<ns"), *PAGES[3:]]
    dump = write_dump(tmp_path / "d.xml.gz", pages)
    whole = run(dump, tmp_path / "whole.jsonl.gz", tmp_path / "whole_texts.jsonl")
    expected = (tmp_path / "whole.jsonl.gz").read_bytes()
    texts = (tmp_path / "whole_texts.jsonl").read_bytes()
    problems = (tmp_path / "whole.jsonl.gz.problems.jsonl").read_bytes()
    for stop in range(6):
        target, corpus = tmp_path / f"{stop}.jsonl.gz", tmp_path / f"{stop}_texts.jsonl"
        for _ in range(2):
            with pytest.raises(Killed):
                # Twice at the same distance, which is further on the second time.
                run(dump, target, corpus, stop_after=min(stop, 2))
            assert not target.exists()
            assert not corpus.exists()
        report = run(dump, target, corpus)
        assert target.read_bytes() == expected
        assert corpus.read_bytes() == texts
        assert (tmp_path / f"{stop}.jsonl.gz.problems.jsonl").read_bytes() == problems
        assert report.left_out == whole.left_out
        assert report.problems == whole.problems
        assert bool(report.resumed_at) == (stop > 0 and not commits)
        assert not list(tmp_path.glob(".*.import"))


@pytest.mark.slow
def test_sigkill(tmp_path):
    pages = [
        page(f"P{i}", f"'''P{i}''' is near [[P{i * 7 % 4000}|place {i % 90}]].")
        for i in range(4000)
    ]
    dump = write_dump(tmp_path / "d.xml.bz2", pages)
    imported(dump, "wikipedia", target=tmp_path / "whole.jsonl", corpus=tmp_path / "wt.jsonl")
    code = (
        "import sys, time; from pathlib import Path\n"
        "from spacy_xel.formats import KB_FORMATS, importing\n"
        "from spacy_xel.formats.reading import Options\n"
        "importing.SECONDS_BETWEEN_COMMITS = 0.02\n"
        "slow = importing._Import._take\n"
        "importing._Import._take = lambda *a: (time.sleep(0.0003), slow(*a))[1]\n"
        "d, t, c = map(Path, sys.argv[1:])\n"
        "importing.import_kb(d, t, KB_FORMATS['wikipedia'], Options(), corpus=c)\n"
    )
    target, corpus = tmp_path / "kb.jsonl", tmp_path / "texts.jsonl"
    work = tmp_path / ".kb.jsonl.import" / "entities.jsonl"
    command = [sys.executable, "-c", code, str(dump), str(target), str(corpus)]
    kills = 0
    for size in (1, 60_000, 120_000):
        process = subprocess.Popen(command)
        while process.poll() is None and not (work.exists() and work.stat().st_size > size):
            time.sleep(0.005)
        kills += process.poll() is None
        process.kill()
        process.wait()
    assert kills == 3, "each was at work when it was killed"
    subprocess.run(command, check=True)
    assert target.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    assert corpus.read_bytes() == (tmp_path / "wt.jsonl").read_bytes()


def test_another_source_is_not_mixed_in(tmp_path, monkeypatch):
    monkeypatch.setattr(importing, "SECONDS_BETWEEN_COMMITS", 0.0)
    first, second = write_dump(tmp_path / "a.xml"), write_dump(tmp_path / "b.xml", PAGES[:2])
    with pytest.raises(Killed):
        run(first, tmp_path / "kb.jsonl", stop_after=2)
    with pytest.raises(ValueError, match="--restart"):
        run(second, tmp_path / "kb.jsonl")
    kb_format = KB_FORMATS["wikipedia"]
    report = import_kb(second, tmp_path / "kb.jsonl", kb_format, Options(), restart=True)
    assert report.entities == 2


def test_two_at_once_are_refused(tmp_path):
    from spacy_xel.formats.link_store import LinkStore

    work = tmp_path / ".kb.jsonl.import"
    work.mkdir()
    store = LinkStore(work / "links.sqlite")
    with pytest.raises(BlockingIOError, match="Another import"):
        imported(write_dump(tmp_path / "d.xml"), "wikipedia")
    store.close()


def test_after_a_fault_it_goes_on_with_skip(tmp_path, monkeypatch):
    monkeypatch.setattr(importing, "SECONDS_BETWEEN_COMMITS", 0.0)
    good = {"id": "A", "title": "a"}
    source = write(
        tmp_path / "s.jsonl", json_lines([good]) + "{\n" + json_lines([{"id": "B", "title": "b"}])
    )
    with pytest.raises(ValueError, match=r"line 2.*--on-error skip"):
        imported(source, "jsonl")
    report, kb = imported(source, "jsonl", on_error="skip")
    assert list(kb) == ["A", "B"]
    assert report.resumed_at == 1
    assert report.problems == {"not valid JSON": 1}


def test_circular_and_double_redirects(tmp_path):
    pages = [
        page("A", "See [[B|way]] and [[X]]."), page("B", redirect="C"), page("C", redirect="A"),
        page("X", redirect="Y"), page("Y", redirect="X"), page("Self", redirect="Self"),
    ]  # fmt: skip
    report, kb = imported(write_dump(tmp_path / "d.xml", pages), "wikipedia", min_count=1)
    assert kb["A"]["aliases"] == ["C", "B", "way"]
    assert report.redirects == 5


def test_gzipped_target_is_readable_and_built(tmp_path):
    from spacy_xel.kb.build import build_store
    from spacy_xel.kb.knowledge_base import XelKnowledgeBase

    target = tmp_path / "kb.jsonl.gz"
    import_kb(
        write_dump(tmp_path / "d.xml"), target, KB_FORMATS["wikipedia"], Options(), min_count=1
    )
    with gzip.open(target, "rt") as file:
        assert json.loads(file.readline())["id"] == "Paris"
    build_store(target, tmp_path / "kb")
    kb = XelKnowledgeBase.open(tmp_path / "kb")
    assert {kb.kb_id(row) for row, _ in kb.lookup("paris")} == {"Paris", "Paris (mythology)"}


@pytest.mark.slow
def test_memory_is_bounded(tmp_path):
    """Four times the dump takes about the same memory."""
    if not sys.platform.startswith("linux"):
        pytest.skip("the peak is read from /proc")
    code = (
        "import sys; from pathlib import Path\n"
        "from spacy_xel.formats import KB_FORMATS, importing\n"
        "from spacy_xel.formats.reading import Options\n"
        "d, t = map(Path, sys.argv[1:])\n"
        "importing.import_kb(d, t, KB_FORMATS['wikipedia'], Options())\n"
        "status = Path('/proc/self/status').read_text()\n"
        "print(int(status.split('VmHWM:')[1].split()[0]) // 1024)\n"
    )
    peaks = []
    for size in (1_000, 4_000):
        filler = "words about it, " * 200
        pages = (
            page(f"Page {i}", f"It is [[Page {i * 7 % size}|p {i}]] {filler}") for i in range(size)
        )
        dump = write_dump(tmp_path / f"{size}.xml.gz", pages)
        command = [sys.executable, "-c", code, str(dump), str(tmp_path / f"{size}.jsonl")]
        result = subprocess.run(command, capture_output=True, text=True, check=True)
        peaks.append(int(result.stdout))
    assert peaks[1] - peaks[0] < 10, f"peaks in MB: {peaks}"
