"""`xel quickstart` as people use it."""

import json
import zipfile

import pytest
import spacy

from spacy_xel.packaging.verify import verify
from spacy_xel.quickstart import package, run
from tests.cli.test_cli import xel  # noqa: F401
from tests.conftest import ASSETS
from tests.formats.dumps import write

TABLE = "Code;Name;Synonyms;Note\nP1;Model T;Tin Lizzie|Flivver;car of 1908\nP2;T-shirt;tee;\n"


@pytest.fixture
def quickstart(xel, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.chdir(tmp_path)
    return lambda *arguments, code=0: xel("quickstart", *arguments, "--no-install", code=code)


@pytest.fixture
def no_wheel(monkeypatch):
    """The wheel takes most of the time: one test makes a real one."""

    def pretend(folder, packages):
        packages.mkdir(exist_ok=True)
        return packages / f"{folder.name}.whl"

    monkeypatch.setattr(package, "package_pipeline", pretend)


@pytest.mark.slow
def test_from_a_table_to_a_wheel(quickstart, tmp_path):
    output = quickstart(write(tmp_path / "my parts.csv", TABLE))
    assert "2 rows, cut at semicolons; it has a header" in output
    assert "no corpus, so only names" in output
    assert "of memory" in output
    assert "changed names of the knowledge base, no context" in output
    assert 'nlp = spacy.load("xel_my_parts")' in output
    folder = tmp_path / "quickstart" / "xel_my_parts"
    (wheel,) = folder.rglob("*.whl")
    assert any(name.endswith("config.cfg") for name in zipfile.ZipFile(wheel).namelist())
    nlp = spacy.load(folder / "training" / "xel_my_parts")
    doc = nlp("He drove a Tin Lizzie in his tee.")
    assert [(ent.text, ent.kb_id_) for ent in doc.ents] == [("Tin Lizzie", "P1"), ("tee", "P2")]
    assert str(tmp_path) not in nlp.config.to_str()
    assert "typo" in json.loads((folder / "metrics" / "xel_my_parts.json").read_text())
    assert not list(tmp_path.glob("quickstart/.*"))
    assert not verify(folder / "training" / "xel_my_parts").problems
    card = (folder / "training" / "xel_my_parts" / "README.md").read_text()
    assert "names of the knowledge base with a typo" in card
    assert "--force" in quickstart(tmp_path / "my parts.csv", code=1)
    mine = write(tmp_path / "mine.txt", "x").parent
    refused = quickstart(tmp_path / "my parts.csv", "--output", mine, "--force", code=1)
    assert "not something that this program wrote" in refused


@pytest.mark.usefixtures("no_wheel")
def test_with_a_corpus(quickstart, tmp_path):
    arguments = (ASSETS / "kb.jsonl", ASSETS / "train.jsonl", "--name", "wiki_test", "-o", "out")
    output = quickstart(*arguments)
    assert "Recipe 'tree'" in output
    assert "held-out documents" in output
    assert "end to end" in output
    metrics = json.loads((tmp_path / "out" / "metrics" / "xel_wiki_test.json").read_text())
    assert metrics["gold_mentions"]["scores"]["xel_acc"] > 0.5
    train = (tmp_path / "out" / "train.jsonl").read_text("utf8").splitlines()
    held = (tmp_path / "out" / "heldout.jsonl").read_text("utf8").splitlines()
    assert len(train) + len(held) == len((ASSETS / "train.jsonl").read_text("utf8").splitlines())


@pytest.mark.usefixtures("no_wheel")
def test_goes_on_after_a_kill(quickstart, tmp_path, monkeypatch):
    table = write(tmp_path / "parts.csv", TABLE)
    with monkeypatch.context() as patch:

        def killed(*arguments):
            raise KeyboardInterrupt

        patch.setattr(run, "_evaluate", killed)
        quickstart(table, code=130)
    assert not (tmp_path / "quickstart" / "xel_parts").exists()
    output = quickstart(table)
    assert "had done: entities, corpus, kb, training" in output
    table.write_text(TABLE + "P3;sock;;\n")
    assert "3 entities" in quickstart(table, "--force")


@pytest.mark.usefixtures("no_wheel")
def test_what_is_reported(quickstart, tmp_path):
    repeated = TABLE + "P1;Tin Can;;\n" + "".join(f"X{i};thing {i};;\n" for i in range(30)) + "Y;\n"
    output = quickstart(write(tmp_path / "parts.csv", repeated))
    assert "1 rows have the id of an earlier row (e.g. P1)" in output
    assert "1 rows were left out" in output
    assert "2 cells, where the header has 4" in output
    assert (tmp_path / "quickstart" / "xel_parts" / "kb.problems.jsonl").exists()
    output = quickstart(write(tmp_path / "names.txt", "Model T\nTin Can, old\nT-shirt\n"))
    assert "the numbers of the rows are the ids" in output


@pytest.mark.usefixtures("no_wheel")
def test_names_that_cannot_be_changed(quickstart, tmp_path):
    output = quickstart(write(tmp_path / "cities.csv", "id,name\n1,北京\n2,上海\n"))
    assert "100% of the names are in a script without spaces" in output
    assert "choose --lang zh" in output
    assert "Not evaluated" in output
    assert "Scores on" not in output


def test_what_is_refused(quickstart, tmp_path, monkeypatch):
    table = write(tmp_path / "parts.csv", TABLE)
    stranger = {"text": "Paris", "mentions": [{"start": 0, "end": 5, "kb_ids": ["Q90"]}]}
    corpus = write(tmp_path / "c.jsonl", json.dumps(stranger) + "\n")
    output = quickstart(table, corpus, code=1)
    assert "['Q90']" in output
    assert "'P1'" in output
    assert "no documents" in quickstart(table, write(tmp_path / "e.jsonl", "\n"), code=1)
    assert "small letters" in quickstart(table, "--name", "Große Teile", code=1)
    monkeypatch.setattr("spacy_xel.quickstart.estimate.free_memory", lambda: 1 << 20)
    assert "of memory, but there is 1 MB" in quickstart(table, code=1)


def test_an_installed_package_is_not_replaced(xel, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.setattr(package, "is_installed", lambda name: name == "xel_parts")
    table = write(tmp_path / "parts.csv", TABLE)
    output = xel("quickstart", table, "-o", tmp_path / "out", code=1)
    assert "xel_parts is installed already" in output
