"""The steps of a quickstart, each by itself."""

import json

import numpy as np
import pytest

from spacy_xel.formats import read_corpus, write_corpus
from spacy_xel.quickstart import estimate as estimating
from spacy_xel.quickstart import package
from spacy_xel.quickstart.corpus import CorpusSurvey, split_corpus, survey_corpus
from spacy_xel.quickstart.entities import write_entities
from spacy_xel.quickstart.heldout import CHANGES, changed_names
from spacy_xel.quickstart.recipe import choose_recipe
from spacy_xel.quickstart.scripts import unfit_language
from spacy_xel.quickstart.survey import survey
from spacy_xel.quickstart.workspace import Workspace, check_output
from spacy_xel.types import AnnotatedText, Mention
from tests.conftest import ASSETS
from tests.formats.dumps import write


def entities(tmp_path, content, name="t.csv", **said):
    target, problems = tmp_path / "kb.jsonl", tmp_path / "problems.jsonl"
    report = write_entities(survey(write(tmp_path / name, content), **said), target, problems)
    return report, [json.loads(line) for line in target.read_text("utf8").splitlines()]


def test_rows_with_one_id_are_merged(tmp_path):
    rows = "id,name,aliases,description\n1,bolt,pin,long\n2,nut,,\n1,screw,pin|peg,thin\n"
    report, lines = entities(tmp_path, rows)
    assert lines == [
        {"id": "2", "title": "nut"},
        {"id": "1", "title": "bolt", "aliases": ["pin", "screw", "peg"],
         "description": "long thin"},
    ]  # fmt: skip
    assert (report.rows, report.entities, report.merged_rows) == (3, 2, 1)
    assert (report.repeated_ids, report.other_titles) == (["1"], 1)


def test_rows_without_ids_are_numbered(tmp_path):
    report, lines = entities(tmp_path, "name\nbolt\nnut\nbolt\n")
    assert [(line["id"], line["title"]) for line in lines] == [
        ("1", "bolt"), ("2", "nut"), ("3", "bolt"),
    ]  # fmt: skip
    assert report.merged_rows == 0


def test_bad_rows_are_listed(tmp_path):
    rows = "id,name\n" + "".join(f"A{i},thing {i}\n" for i in range(40)) + "x,\ny\n"
    report, lines = entities(tmp_path, rows)
    assert (len(lines), report.rows, report.bad_rows) == (40, 42, 2)
    noted = [json.loads(line) for line in (tmp_path / "problems.jsonl").read_text().splitlines()]
    assert [entry["line"] for entry in noted] == [42, 43]
    with pytest.raises(ValueError, match=r"3 of 4 rows .* The first: .*line 1: 'title'"):
        entities(tmp_path, '{"text": "a"}\n' * 3 + '{"id": "1", "title": "a"}\n', "kb.jsonl.txt")


def test_rows_with_an_empty_id_are_bad(tmp_path):
    rows = "".join(f"{i if i % 15 else ''},thing {i}\n" for i in range(1, 101))
    report, lines = entities(tmp_path, "id,name\n" + rows)
    assert (report.bad_rows, len(lines), lines[0]["id"]) == (6, 94, "1")
    assert "'id' must be a string that is not empty" in report.first_problems[0]


def test_ragged_rows_are_bad(tmp_path):
    def table(odd):
        rows = (f"A{i},thing {i}{', long' if i % odd == 0 else ''},x\n" for i in range(100))
        return "code,name,note\n" + "".join(rows)

    report, lines = entities(tmp_path, table(20))
    assert (report.bad_rows, len(lines)) == (5, 95)
    for name in ("t.csv", "t.txt"):
        with pytest.raises(ValueError, match=r"20 of 100 rows .*4 cells, where the header has 3"):
            entities(tmp_path, table(5), name)
    headless = table(5).partition("\n")[2].partition("\n")[2]
    with pytest.raises(ValueError, match=r"19 of 99 rows .*the first row has 3"):
        entities(tmp_path, headless)
    report, lines = entities(tmp_path, "bolt\nnut, round\npin\n", "names.txt")
    assert [line["title"] for line in lines] == ["bolt", "nut, round", "pin"]


def test_scripts_without_spaces(tmp_path):
    chinese = survey(write(tmp_path / "t.csv", "id,name\n1,北京\n2,上海\n")).unspaced
    assert chinese == {"zh": 1.0}
    assert unfit_language("en", chinese) == ("zh", 1.0)
    assert unfit_language("zh", chinese) is None
    assert unfit_language("ja", chinese) is None
    assert unfit_language("zh", {"zh": 0.5, "ja": 0.5}) == ("ja", 0.5)
    assert unfit_language("en", {"th": 0.9}) == ("th", 0.9)
    assert unfit_language("en", {"th": 0.01}) is None
    assert survey(write(tmp_path / "k.csv", "id,name\n1,서울\n2,Москва\n")).unspaced == {}


def test_split_keeps_equal_texts_together(tmp_path):
    texts = [AnnotatedText(str(i), f"text {i % 30}") for i in range(60)]
    write_corpus(texts, tmp_path / "c.jsonl")
    parts = tmp_path / "train.jsonl", tmp_path / "held.jsonl"
    assert split_corpus(tmp_path / "c.jsonl", *parts, share=0.2, seed=1) == (48, 12)
    train, held = ({text.text for text in read_corpus(part)} for part in parts)
    assert not train & held
    assert len(train | held) == 30
    first = parts[1].read_bytes()
    split_corpus(tmp_path / "c.jsonl", *parts, share=0.2, seed=1)
    assert parts[1].read_bytes() == first
    split_corpus(tmp_path / "c.jsonl", *parts, share=0.2, seed=2)
    assert parts[1].read_bytes() != first
    write_corpus(texts[:1], tmp_path / "one.jsonl")
    assert split_corpus(tmp_path / "one.jsonl", *parts) == (1, 0)


def test_recipe(tmp_path):
    assert choose_recipe(None).recipe == "names"
    assert choose_recipe(survey_corpus(ASSETS / "train.jsonl")).recipe == "tree"
    names = [AnnotatedText("1", "Paris", (Mention(0, 5, (kb_id,)),)) for kb_id in ("A", "B")]
    write_corpus(names, tmp_path / "names.jsonl")
    assert choose_recipe(survey_corpus(tmp_path / "names.jsonl")).recipe == "names"
    clear = CorpusSurvey(documents=9, mentions=9, ambiguous=0.01, has_contexts=True)
    assert choose_recipe(clear).recipe == "names"


def test_changed_names(small_kb):
    for kind in CHANGES:
        texts = changed_names(small_kb, kind)
        assert texts == changed_names(small_kb, kind)
        for text in texts:
            assert text.mentions[0].kb_ids
            assert (kind == "case") == bool(small_kb.lookup(text.text))
    for text in changed_names(small_kb, "word_order"):
        names = {
            " ".join(sorted(name.split()))
            for kb_id in text.mentions[0].kb_ids
            for name in small_kb.get_entity(kb_id).names
        }
        assert " ".join(sorted(text.text.split())) in names
    rng = np.random.default_rng(0)
    assert all(abs(len(CHANGES["typo"]("Springfield", rng)) - 11) <= 1 for _ in range(50))


def test_memory_and_disk(monkeypatch, tmp_path):
    small = estimating.estimate("names", 1000, 0, 10_000)
    large = estimating.estimate("names", 1_000_000, 0, 10_000_000)
    assert all(a < b for a, b in zip(small, large, strict=True))
    assert estimating.free_disk(tmp_path / "not" / "there") > 0
    monkeypatch.setattr(estimating, "free_disk", lambda folder: 1 << 50)
    monkeypatch.setattr(estimating, "free_memory", lambda: large.memory - 1)
    with pytest.raises(ValueError, match="of memory, but there is"):
        estimating.check_room(large, tmp_path)
    assert len(estimating.check_room(large, tmp_path, anyway=True)) == 1
    monkeypatch.setattr(estimating, "free_memory", lambda: round(large.memory * 1.2))
    assert len(estimating.check_room(large, tmp_path)) == 1
    monkeypatch.setattr(estimating, "free_memory", lambda: None)
    assert estimating.check_room(large, tmp_path) == []
    monkeypatch.setattr(estimating, "free_disk", lambda folder: 1000)
    with pytest.raises(ValueError, match="of disk"):
        estimating.check_room(small, tmp_path)


def test_names_of_packages(tmp_path):
    assert package.package_name("", tmp_path / "My Parts-2.csv.gz") == "xel_my_parts_2"
    assert package.package_name("", tmp_path / "東京.csv") == "xel_kb"
    assert package.package_name("xel_parts", tmp_path) == "xel_parts"
    with pytest.raises(ValueError, match="small letters"):
        package.package_name("Über", tmp_path)


def test_missing_tools(monkeypatch):
    find = package.importlib.util.find_spec
    for tool, problem in (("build", r"spacy-xel\[package\]"), ("pip", "--no-install")):
        hidden = lambda name, tool=tool: None if name == tool else find(name)  # noqa: E731
        monkeypatch.setattr(package.importlib.util, "find_spec", hidden)
        with pytest.raises(ImportError, match=problem):
            package.check_tools(install=True)


def test_a_stopped_run_goes_on(tmp_path):
    output, calls = tmp_path / "out", []

    def work(name):
        return lambda: calls.append(name) or {"made": name}

    with Workspace(output, {"kb": 1}).opened() as first:
        first.step("one", work("one"))
        with (
            pytest.raises(ValueError, match="Another quickstart"),
            Workspace(output, {"kb": 1}).opened(),
        ):
            pass
    with Workspace(output, {"kb": 1}).opened() as second:
        assert second.step("one", work("one")) == {"made": "one"}
        second.step("two", work("two"))
    assert calls == ["one", "two"]
    assert not output.exists()
    with Workspace(output, {"kb": 2}).opened() as other:  # another source: begins anew
        other.step("one", work("one"))
        other.finish()
    assert calls == ["one", "two", "one"]
    with pytest.raises(FileExistsError, match="--force"):
        check_output(output, force=False)
    check_output(output, force=True)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("x")
    with pytest.raises(FileExistsError, match="not something that this program wrote"):
        check_output(tmp_path / "mine", force=True)
