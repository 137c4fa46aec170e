"""The command ``rannpde``: parse, call, print; no mathematics."""

from __future__ import annotations

from typing import Annotated

import typer

from rannpde import __version__
from rannpde.cli import doctor, eigen, new, reproduce, solve, theory

START = """\
Three things to try:

  rannpde examples burgers && rannpde solve burgers.toml   a ready-made equation; look at out/burgers.html
  rannpde new                                              your own equation, question by question
  rannpde reproduce --quick                                the paper's experiments, with a report

rannpde --help lists the rest; rannpde doctor looks at the installation.
"""
"""The text of the command without arguments."""


def build() -> typer.Typer:
    """The application with every command registered."""
    app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)
    app.callback(invoke_without_command=True)(rannpde)
    for commands in (new, solve, eigen, reproduce, theory, doctor):
        commands.register(app)
    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"rannpde {__version__}")
        raise typer.Exit


Version = Annotated[bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")]


def rannpde(context: typer.Context, version: Version = False) -> None:
    """Random neural networks for functions and partial differential equations."""
    if context.invoked_subcommand is None:
        typer.echo(START, nl=False)


def main() -> None:
    """The console script."""
    build()()
