"""Coefficients that cases are stated with, from files of ``benchmarks/data``, as text of the language of equations."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rannpde.arrays import Array

DATA = Path(__file__).parents[1] / "data"


def read_numbers(name: str) -> Array:
    """The numbers of a ``.dat`` file of ``benchmarks/data``, as many columns as its lines have; # begins a comment."""
    text = (DATA / f"{name}.dat").read_text(encoding="utf-8")
    return np.loadtxt(text.splitlines(), ndmin=2)


def random_field(name: str, x: str, y: str) -> str:
    """exp Σ c_ij cos(π i ξ) cos(π j η) with the coefficients of a file, ξ and η being these formulas of (0, 1).

    >>> random_field("heat_2d_vc", "x", "y")[:4]
    'exp('
    """
    terms = []
    for (i, j), factor in np.ndenumerate(read_numbers(name)):
        waves = [f"cos({k}*pi*{axis})" for k, axis in ((i, x), (j, y)) if k]
        terms += ["*".join([f"({float(factor)!r})", *waves])] if factor else []
    return f"exp({' + '.join(terms)})"


def blocks(values: Array, cuts: Array) -> str:
    """values[i, j] on block (i, j) of a square cut at the same places in x and y, as nested ``where``.

    >>> blocks(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([0.5]))
    'where(x < 0.5, where(y < 0.5, 1.0, 2.0), where(y < 0.5, 3.0, 4.0))'
    """

    def chosen(name: str, parts: list[str]) -> str:
        text = parts[-1]
        for cut, part in reversed(list(zip(cuts, parts[:-1], strict=True))):
            text = f"where({name} < {float(cut)!r}, {part}, {text})"
        return text

    return chosen("x", [chosen("y", [repr(float(value)) for value in row]) for row in values])


def random_field_values(name: str, xi: Array, eta: Array) -> Array:
    """The same field in numbers, at ξ and η of one shape.

    >>> random_field_values("heat_2d_vc", np.array([0.5]), np.array([0.5])).shape
    (1,)
    """
    factors = read_numbers(name)
    waves = [np.cos(np.pi * np.multiply.outer(np.arange(len(factors)), one)) for one in np.broadcast_arrays(xi, eta)]
    return np.exp(np.einsum("i...,j...,ij->...", *waves, factors))
