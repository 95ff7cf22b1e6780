"""Adds `xel` to spaCy's own command line; spaCy imports this through the entry point spacy_cli."""

from spacy.cli._util import app as spacy_app

from spacy_xel.cli.main import app

spacy_app.add_typer(app, name="xel")
