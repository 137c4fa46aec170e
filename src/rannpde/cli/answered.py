"""How a command ends when something is wrong: one line on standard error, and an exit code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.console import Console

from rannpde.errors import InputError


@contextmanager
def answered(kept: str = "finished work is kept") -> Iterator[None]:
    """Wrong input ends with its message and code 2, Ctrl-C with what is kept and code 130."""
    console = Console(stderr=True, highlight=False)
    try:
        yield
    except InputError as error:
        console.print(f"error: {error}", style="red", markup=False, soft_wrap=True)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        console.print(f"interrupted; {kept}", markup=False, soft_wrap=True)
        raise typer.Exit(130) from None
