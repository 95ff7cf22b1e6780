"""The command `xel`, which is also `python -m spacy xel`."""

import typer

from spacy_xel.cli.calibrate import calibrate_cli
from spacy_xel.cli.convert import convert_cli
from spacy_xel.cli.evaluate import evaluate_cli
from spacy_xel.cli.kb import kb_app
from spacy_xel.cli.kilt import kilt_app
from spacy_xel.cli.link import link_cli
from spacy_xel.cli.package import finish_cli, verify_cli
from spacy_xel.cli.quickstart import quickstart_cli
from spacy_xel.cli.rerank import rerank_cli
from spacy_xel.cli.split import split_cli
from spacy_xel.cli.tree import tree_app

HELP = """Entity linking: build knowledge bases, link texts, evaluate pipelines.

Every command takes --help.
"""

app = typer.Typer(name="xel", help=HELP, no_args_is_help=True, rich_markup_mode=None)
app.add_typer(kb_app)
app.add_typer(tree_app)
app.add_typer(kilt_app)
app.command("link")(link_cli)
app.command("evaluate")(evaluate_cli)
app.command("calibrate")(calibrate_cli)
app.command("convert")(convert_cli)
app.command("finish")(finish_cli)
app.command("verify")(verify_cli)
app.command("quickstart")(quickstart_cli)
app.command("rerank")(rerank_cli)
app.command("split")(split_cli)


def run() -> None:
    """Run the command `xel`."""
    app(prog_name="xel")
