"""The command ``rannpde``: parse, call, print; no mathematics."""

from __future__ import annotations

from typing import Annotated

import typer

from rannpde import __version__
from rannpde.cli import bench, reproduce, solve, theory


def build() -> typer.Typer:
    """The application with every command registered."""
    app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    app.callback()(rannpde)
    for commands in (solve, reproduce, theory, bench):
        commands.register(app)
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
