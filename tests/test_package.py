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


def test_import_is_light():
    code = (
        "import sys, spacy_xel, spacy_xel.cli.main, spacy_xel.pipeline.retriever\n"
        "print([name for name in ('torch', 'faiss', 'numba') if name in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert result.stdout.strip() == "[]", result.stdout + result.stderr


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
    order = ["types", "kb", "mentions", "retrieval", "evaluation", "pipeline", "cli"]
    for low, room in enumerate(order):
        files = [PACKAGE / f"{room}.py"] if room == "types" else (PACKAGE / room).rglob("*.py")
        for path in files:
            source = path.read_text(encoding="utf8")
            runtime = source.split("if TYPE_CHECKING:")[0]
            for higher in order[low + 1 :]:
                assert f"from spacy_xel.{higher}" not in runtime, f"{path} imports {higher}"
