"""Fixtures: a small knowledge base, pipelines over it, and the shared real data."""

import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import spacy
from hypothesis import settings
from spacy.language import Language

from spacy_xel.kb.build import build_store
from spacy_xel.kb.knowledge_base import XelKnowledgeBase, knowledge_base_loader

# Kernels compile on first use, and machines are shared: no deadline per example.
settings.register_profile("default", deadline=None, derandomize=True)
settings.load_profile("default")

ROOT = Path(__file__).parent.parent
ASSETS = ROOT / "assets" / "wiki"

SMALL_KB = [
    {"id": "Q90", "title": "Paris", "aliases": ["City of Light"], "prior": 98,
     "description": "capital of France on the Seine", "types": ["city"]},
    {"id": "Q167646", "title": "Paris (mythology)", "aliases": ["Paris", "Alexandros"],
     "description": "prince of Troy who judged the goddesses", "prior": 0},
    {"id": "Q830149", "title": "Paris, Texas", "aliases": ["Paris"],
     "description": "town in Lamar County"},
    {"id": "Q22647", "title": "Troy", "aliases": ["Ilion", "Ilium"], "description": "city of myth"},
    {"id": "Q60", "title": "New York City", "aliases": ["New York", "NYC", "Big Apple"]},
    {"id": "Q1384", "title": "New York", "aliases": ["New York State"], "prior": 3},
    {"id": "Q406", "title": "İstanbul", "aliases": ["Istanbul", "Ἰσταμπούλ", "Straße 7"]},
    {"id": "Q1490", "title": "東京", "aliases": ["Tōkyō", "Tokyo"]},
]  # fmt: skip


@pytest.fixture
def write_jsonl(tmp_path: Path) -> Callable[..., Path]:
    """Write lines (objects, or raw bytes) to a file."""

    def write(lines: Iterable[Any], name: str = "kb.jsonl") -> Path:
        path = tmp_path / name
        with path.open("wb") as file:
            for line in lines:
                data = line if isinstance(line, bytes) else json.dumps(line).encode()
                file.write(data + b"\n")
        return path

    return write


@pytest.fixture(scope="session")
def small_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small knowledge base; not to be changed."""
    folder = tmp_path_factory.mktemp("small")
    source = folder / "kb.jsonl"
    source.write_text("".join(json.dumps(entity) + "\n" for entity in SMALL_KB), encoding="utf8")
    build_store(source, folder / "kb")
    return folder / "kb"


@pytest.fixture
def small_kb(small_store: Path, tmp_path: Path) -> XelKnowledgeBase:
    """A small knowledge base of the test's own."""
    XelKnowledgeBase.open(small_store).to_disk(tmp_path / "small_kb")
    return XelKnowledgeBase.open(tmp_path / "small_kb")


@pytest.fixture
def linker(small_store: Path) -> Language:
    """A pipeline that finds and links names of the small knowledge base."""
    nlp = spacy.blank("en")
    nlp.add_pipe("xel_mentions")
    nlp.add_pipe("xel_retriever", config={"kb_source": "xel_mentions"})
    loader = knowledge_base_loader(small_store)
    nlp.get_pipe("xel_mentions").initialize(nlp=nlp, kb_loader=loader)
    nlp.get_pipe("xel_retriever").initialize(nlp=nlp)
    return nlp


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real corpora and knowledge bases, which are not part of the project."""
    path = Path(os.environ.get("XEL_DATA", ROOT.parent / "shared" / "data"))
    if not path.is_dir():
        pytest.skip(f"no real data at {path}; set XEL_DATA to the folder that has it")
    return path
