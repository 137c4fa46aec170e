"""How a command ends when something is wrong: one line on standard error, and an exit code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.console import Console

from rannpde.errors import InputError


@contextmanager
def answered(kept: str = "finished work is kept") -> Iterator[None]:
    """Wrong input, too little memory and files that cannot be written end with a message and code 2, Ctrl-C: 130."""
    console = Console(stderr=True, highlight=False)
    try:
        yield
    except InputError as error:
        console.print(f"error: {error}", style="red", markup=False, soft_wrap=True)
        raise typer.Exit(2) from None
    except MemoryError as error:  # a width that no machine has room for
        console.print(f"error: not enough memory: {error} ({kept})", style="red", markup=False, soft_wrap=True)
        raise typer.Exit(2) from None
    except OSError as error:  # the disk filled up, or a folder vanished, while the work went on
        where = f"{error.filename}: " if error.filename else ""
        reason = f"{where}{error.strerror or error}; make room or choose another folder with --out"
        console.print(f"error: {reason} ({kept})", style="red", markup=False, soft_wrap=True)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        console.print(f"interrupted; {kept}", markup=False, soft_wrap=True)
        raise typer.Exit(130) from None
