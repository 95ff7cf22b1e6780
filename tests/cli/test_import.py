"""`xel kb import`, `xel convert` of outside formats, `xel kilt`."""

import json

import pytest

from tests.cli.test_cli import xel  # noqa: F401
from tests.formats.dumps import PAGES, json_lines, page, write, write_dump
from tests.formats.test_kilt import QUERY


@pytest.fixture
def run(xel):  # noqa: F811
    return xel


def test_from_dump_to_link(run, tmp_path):
    pytest.importorskip("mwparserfromhell")
    dump = write_dump(tmp_path / "d.xml.bz2")
    kb, texts = tmp_path / "kb.jsonl.gz", tmp_path / "texts.jsonl.gz"
    output = run("kb", "import", dump, kb, "--from", "wikipedia", "--corpus", texts)
    assert "4 entities" in output
    assert "4 texts with 8 mentions" in output
    assert "Left out: 2 disambiguation pages" in output
    assert "too rare" in output
    assert "4 entities" in run("kb", "build", kb, tmp_path / "kb", "--corpus", texts)
    assert "Paris (mythology)" in run("kb", "find", tmp_path / "kb", "paris")
    assert "4 texts" in run("convert", dump, tmp_path / "c.spacy")


def test_problems_and_report(run, tmp_path):
    pytest.importorskip("mwparserfromhell")
    dump = write_dump(tmp_path / "d.xml", [*PAGES, page("Bad").replace("<ns>", "<ns")])
    command = ("kb", "import", dump, tmp_path / "kb.jsonl", "--from", "wikipedia")
    assert "page 11: the XML cannot be parsed" in run(*command, code=1)
    output = run(*command, "--on-error", "skip")
    assert "page 11" in output
    assert "1 records were left out" in output
    report = json.loads(run(*command, "--on-error", "skip", "--json"))
    assert report["entities"] == 4


def test_columns_and_languages(run, tmp_path):
    table = write(tmp_path / "t.csv", "code,name\nA,bolt\n")
    columns = ("--column", "id=code", "--column", "title=name")
    assert "1 entities" in run(
        "kb", "import", table, tmp_path / "k.jsonl", "--from", "csv", *columns
    )
    semicolons = write(tmp_path / "t.txt", "id;title\nA;b\n")
    output = run(
        "kb", "import", semicolons, tmp_path / "k.jsonl", "--from", "csv", "--delimiter", ";"
    )
    assert "1 entities" in output


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--from", "word"], "no format 'word'"),
        (
            ["--from", "csv", "--lang", "en"],
            "csv does not take --lang. It means something for wiki",
        ),
        (["--from", "obo", "--corpus", "x"], "does not take --corpus"),
        (["--from", "cirrus", "--ids", "page"], "choose one of title, wikidata"),
        (["--from", "csv"], "no column 'id'"),
    ],
)
def test_options_that_do_not_fit(run, tmp_path, options, problem):
    table = write(tmp_path / "t.csv", "code,name\nA,bolt\n")
    assert problem in run("kb", "import", table, tmp_path / "k.jsonl", *options, code=1)


def test_missing_packages_are_named(run, tmp_path, monkeypatch):
    import sys

    from spacy_xel.formats import wikitext_tokens

    wikitext_tokens._tokenizer.cache_clear()
    monkeypatch.setitem(sys.modules, "mwparserfromhell", None)
    monkeypatch.setitem(sys.modules, "mwparserfromhell.parser", None)
    monkeypatch.setitem(sys.modules, "pyoxigraph", None)
    dump = write_dump(tmp_path / "d.xml")
    target = tmp_path / "k.jsonl"
    output = run("kb", "import", dump, target, "--from", "wikipedia", code=1)
    assert "pip install 'spacy-xel[dumps]'" in output
    output = run("kb", "import", write(tmp_path / "v.ttl", ""), target, "--from", "skos", code=1)
    assert "pyoxigraph" in output or "--restart" in output
    wikitext_tokens._tokenizer.cache_clear()


def test_kilt(run, linker, tmp_path):
    linker.to_disk(tmp_path / "nlp")
    pages = {"answer": "Paris", "provenance": [{"wikipedia_id": "Q90", "title": "Paris"}]}
    other = {**QUERY, "id": "2", "output": [pages]}
    gold = write(tmp_path / "gold.jsonl", json_lines([{**QUERY, "output": [
        {"answer": "P", "provenance": [{"wikipedia_id": "Q167646"}]}]}, other]))  # fmt: skip
    guesses = tmp_path / "guesses.jsonl"
    assert "2 predictions" in run("kilt", "predict", tmp_path / "nlp", gold, guesses)
    output = run("kilt", "evaluate", gold, guesses, "--json", tmp_path / "s.json")
    assert "page_accuracy 0.5000" in output
    assert json.loads((tmp_path / "s.json").read_text())["scores"] == {
        "page_accuracy": 0.5, "recall_at_5": 1.0, "answer_accuracy": 0.5,
    }  # fmt: skip
    queries = write(tmp_path / "q.jsonl", json_lines([{**QUERY, "output": []}]))
    assert "no documents" in run("kilt", "evaluate", queries, guesses, code=1)


def test_convert_goes_on_after_a_fault(run, tmp_path):
    lines = '{"id": "1", "text": "Troy"}\n{"id": "2"}\n{"id": "3", "text": "Rome"}\n'
    source, target = write(tmp_path / "a.jsonl", lines), tmp_path / "b.jsonl"
    assert "line 2" in run("convert", source, target, code=1)
    assert not target.exists()
    output = run("convert", source, target, "--on-error", "skip")
    assert "line 2" in output
    assert "1 faults" in output
    assert len(target.read_text().splitlines()) == 2


def test_wikipedia_and_wikidata_become_one(run, tmp_path):
    pytest.importorskip("mwparserfromhell", reason="needs the extra 'dumps'")
    dump = write_dump(tmp_path / "d.xml.bz2")
    titles = ("Paris", "Seine", "Troy")
    items = [
        {"type": "item", "id": f"Q{i}", "labels": {}, "sitelinks": {"enwiki": {"title": title}}}
        for i, title in enumerate(titles)
    ]
    wikidata = write(tmp_path / "w.json", json_lines(items))
    pages, texts, found = (tmp_path / name for name in ("p.jsonl", "t.jsonl.gz", "i.jsonl.gz"))
    run("kb", "import", dump, pages, "--from", "wikipedia", "--corpus", texts)
    run("kb", "import", wikidata, found, "--from", "wikidata", "--only-pages")
    kb, linked = tmp_path / "kb.jsonl", tmp_path / "l.jsonl.gz"
    output = run("kb", "join", pages, found, kb, "--corpus", texts, "--corpus-target", linked)
    assert "1 pages have no item" in output
    assert {json.loads(line)["id"] for line in kb.read_text().splitlines()} == {"Q0", "Q1", "Q2"}
    train, dev = tmp_path / "train.jsonl.gz", tmp_path / "dev.jsonl"
    output = run("split", linked, train, dev, "--dev-share", "0", "--per-entity", "1")
    assert "dev: 0 paragraphs" in output
    run("kb", "build", kb, tmp_path / "kb", "--corpus", train)
    assert "Q0" in run("kb", "find", tmp_path / "kb", "lutetia")


def test_split_counts_what_it_leaves_out(run, tmp_path):
    mentions = [{"start": 0, "end": 4, "kb_ids": ["Q1"]}, {"start": 6, "end": 10, "kb_ids": []}]
    text = {"id": "1", "text": "Troy\n\nRome\n\nBonn", "mentions": mentions}
    corpus = write(tmp_path / "c.jsonl", json_lines([text]))
    output = run("split", corpus, tmp_path / "t.jsonl", tmp_path / "d.jsonl", "--dev-share", "0")
    assert "2 paragraphs have no link to an entity" in output
    assert "train: 1 paragraphs" in output


@pytest.mark.parametrize(
    "command",
    [
        "split a.jsonl a.jsonl d.jsonl",
        "split a.jsonl t.jsonl a.jsonl",
        "split a.jsonl t.jsonl ./t.jsonl",
        "split a.jsonl t.jsonl folder/../t.jsonl",
        "split a.jsonl t.jsonl link.jsonl",
        "convert a.jsonl a.jsonl",
        "convert a.jsonl link.jsonl",
        "kb import a.jsonl a.jsonl --from jsonl",
        "kb import a.jsonl k.jsonl --from wikipedia --corpus k.jsonl",
        "kb join a.jsonl b.jsonl a.jsonl",
        "kb join a.jsonl b.jsonl b.jsonl",
        "kb join a.jsonl b.jsonl j.jsonl -c c.jsonl -t j.jsonl",
        "kb join a.jsonl b.jsonl j.jsonl -c c.jsonl -t c.jsonl",
        "kilt predict nlp a.jsonl a.jsonl",
    ],
)
def test_nothing_is_written_over(run, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    for name in "abc":
        write(tmp_path / f"{name}.jsonl", json_lines([{"id": "1", "title": "x", "text": "x"}]))
    (tmp_path / "link.jsonl").symlink_to("t.jsonl" if " t.jsonl" in command else "a.jsonl")
    before = {path.name for path in tmp_path.iterdir()}
    assert "is given twice" in run(*command.split(), code=1)
    assert {path.name for path in tmp_path.iterdir()} == before
