"""Entity linking for spaCy that you can train on a laptop."""

from spacy_xel.extensions import register_extensions

__version__ = "0.1.0"

register_extensions()
