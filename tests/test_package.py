"""The package as a whole: light to import, its messages complete, its files in order."""

import ast
import re
import string
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from spacy_xel.errors import Errors, Warnings

PACKAGE = Path(__file__).parent.parent / "spacy_xel"


def loaded_after(statement):
    code = f"import sys\n{statement}\n"
    code += "print({name for name in ('torch', 'faiss', 'numba') if name in sys.modules} or {})"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    return set(ast.literal_eval(result.stdout.strip()))


def test_import_is_light():
    assert loaded_after("import spacy_xel, spacy_xel.types") == set()
    spacys_own = loaded_after("import spacy")  # torch, if it is installed
    modules = "spacy_xel.cli.main, spacy_xel.pipeline.mentions, spacy_xel.pipeline.retriever"
    assert loaded_after(f"import {modules}") == spacys_own


def test_attributes_are_there_with_any_pipeline():
    import spacy
    from spacy.tokens import Doc, Span

    spacy.blank("en")
    assert Doc.has_extension("xel_links")
    assert Span.has_extension("xel_score")


@pytest.mark.parametrize("group", ["factories", "misc", "readers", "scorers", "cli"])
def test_entry_points_load(group):
    found = [e for e in entry_points(group=f"spacy_{group}") if "spacy_xel" in e.value]
    assert found
    for entry_point in found:
        assert entry_point.load() is not None


def test_messages_are_raised_with_the_fields_they_name():
    templates = {
        name: {field for _, field, _, _ in string.Formatter().parse(text) if field}
        for table in (Errors, Warnings)
        for name, text in vars(table).items()
        if name.startswith("X")
    }
    used = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
            if isinstance(node, ast.Attribute) and node.attr in templates:
                used.add(node.attr)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                owner = node.func.value
                if node.func.attr == "format" and isinstance(owner, ast.Attribute):
                    fields = {keyword.arg for keyword in node.keywords}
                    assert fields == templates[owner.attr], f"{path.name}: {owner.attr}"
    assert used == set(templates), f"never raised: {set(templates) - used}"


def test_no_pickle_in_the_package():
    for path in PACKAGE.rglob("*.py"):
        source = path.read_text(encoding="utf8")
        assert not re.search(r"import pickle|allow_pickle=True|joblib|torch\.load\(", source), path


def test_imports_point_one_way():
    order = ["types", "kb", "mentions", "retrieval", "calibrate", "evaluation", "pipeline", "cli"]
    for low, room in enumerate(order):
        files = [PACKAGE / f"{room}.py"] if room == "types" else (PACKAGE / room).rglob("*.py")
        for path in files:
            source = path.read_text(encoding="utf8")
            runtime = source.split("if TYPE_CHECKING:")[0]
            for higher in order[low + 1 :]:
                assert f"from spacy_xel.{higher}" not in runtime, f"{path} imports {higher}"
