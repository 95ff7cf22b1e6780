"""Entity linking for spaCy that you can train on a laptop."""

__version__ = "0.1.0"
