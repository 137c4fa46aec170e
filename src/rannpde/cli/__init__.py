"""The command ``rannpde``: parse, call, print; no mathematics."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Annotated

import typer

from rannpde import __version__

COMMANDS = ("reproduce", "theory", "solve")


def build() -> typer.Typer:
    """The application with every command registered."""
    app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    app.callback()(rannpde)
    for name in COMMANDS:
        if importlib.util.find_spec(f"rannpde.cli.{name}"):
            importlib.import_module(f"rannpde.cli.{name}").register(app)
    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"rannpde {__version__}")
        raise typer.Exit


Version = Annotated[bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")]


def rannpde(version: Version = False) -> None:
    """Random neural networks for functions and partial differential equations."""


def main() -> None:
    """The console script."""
    build()()
