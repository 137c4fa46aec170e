"""Random Sturm–Liouville problems with known eigenvalues: ``transformed`` in closed form, ``potential`` by Galerkin.

``-(P u')' + Q u = λ W u`` on an interval of any length anywhere, with wells, jumps, oscillating and double-well
potentials, and conditions of all three kinds. The reference is an independent Galerkin method, shifted and inverted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import sympy
from numpy.polynomial.legendre import Legendre, leggauss
from scipy.linalg import eigh

import rannpde as rp

Function = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Reference:
    """P, Q, W, edges of cells, and for each end None (u = 0) or h of P ∂u/∂n + h u = 0."""

    diffusion: Function
    potential: Function
    weight: Function
    edges: np.ndarray
    ends: tuple[float | None, float | None]

    def values(self, count: int, degree: int = 24) -> np.ndarray:
        """The lowest eigenvalues, good to about 1e-12 of the largest of them."""
        x, w = leggauss(degree + 8)
        values, slopes = [0.5 * (1 - x), 0.5 * (1 + x)], [0 * x - 0.5, 0 * x + 0.5]
        for k in range(2, degree + 1):
            one = Legendre.basis(k - 1).integ(lbnd=-1)
            values.append(one(x))
            slopes.append(one.deriv()(x))
        table, steep = np.array(values), np.array(slopes)
        cells = len(self.edges) - 1
        size = cells + 1 + cells * (degree - 1)
        stiff, mass = np.zeros((size, size)), np.zeros((size, size))
        for c in range(cells):
            half = 0.5 * (self.edges[c + 1] - self.edges[c])
            at = self.edges[c] + half * (x + 1)
            own = [c, c + 1, *range(cells + 1 + c * (degree - 1), cells + 1 + (c + 1) * (degree - 1))]
            place = np.ix_(own, own)
            stiff[place] += (steep * w * self.diffusion(at)) @ steep.T / half
            stiff[place] += (table * w * self.potential(at)) @ table.T * half
            mass[place] += (table * w * self.weight(at)) @ table.T * half
        kept = list(range(size))
        for place, h in zip((0, cells), self.ends, strict=True):
            if h is None:
                kept.remove(place)
            else:
                stiff[place, place] += h
        stiff, mass = stiff[np.ix_(kept, kept)], mass[np.ix_(kept, kept)]
        low = eigh(stiff, mass, eigvals_only=True, subset_by_index=[0, count])
        shift = low[0] - 0.5 * (low[1] - low[0])
        size = len(kept)
        return shift + 1 / eigh(mass, stiff - shift * mass, eigvals_only=True,
                                subset_by_index=[size - count, size - 1])[::-1]  # fmt: skip


def transformed(seed: int) -> tuple[rp.Problem, np.ndarray]:
    """-v'' = λ v on (0, 1) in another coordinate, v = m(y) u(y), x = g(y): variable coefficients, known eigenvalues."""
    r = np.random.default_rng(seed)
    length = 10 ** r.uniform(-2, 2)
    start = r.uniform(-3, 3) * length
    y = sympy.Symbol("x", real=True)
    s = (y - start) / length
    g = s + r.uniform(-0.25, 0.25) * sympy.sin(sympy.pi * s) / sympy.pi * int(r.integers(0, 2))
    g += r.uniform(-0.1, 0.1) * s * (1 - s)
    m = sympy.exp(r.uniform(-1, 1) * s + r.uniform(-0.5, 0.5) * sympy.sin(3 * s)) if r.random() < 0.7 else sympy.S(1)
    v = m * sympy.Function("u")(y)
    slope = sympy.diff(g, y)
    first = sympy.diff(v, y) / slope
    equation = -sympy.diff(first, y) / slope - sympy.Symbol("lam") * v
    equation = sympy.expand(equation / m * slope) if r.random() < 0.5 else equation
    kind = int(r.integers(0, 3))
    ends = {
        "left": rp.On(f"x={start!r}", v if kind != 1 else first),
        "right": rp.On(f"x={start + length!r}", v if kind == 0 else first),
    }
    n = np.arange(40.0)
    known = ((n + 1) ** 2, n**2, (n + 0.5) ** 2)[kind] * np.pi**2
    return rp.Problem(equation, rp.Interval(start, start + length), ends, eigenvalue="lam"), known


def potential(seed: int) -> tuple[rp.Problem, Reference, float]:
    """A random problem, its reference, and the unit of its eigenvalues."""
    r = np.random.default_rng(seed)
    length = 10 ** r.uniform(-1.5, 1.5)
    a = r.uniform(-2, 2) * length
    b, unit = a + length, 1 / length**2

    def number(low: float, high: float) -> float:
        return float(np.round(r.uniform(low, high), 4))

    s = f"((x - ({a!r}))/{length!r})"

    def scaled(x: np.ndarray) -> np.ndarray:
        return (x - a) / length

    kind, cuts = int(r.integers(0, 5)), []
    if kind == 0:
        d, c, wide = number(0, 400), number(0.1, 0.9), number(0.005, 0.2)
        q, height = f"-{d}*exp(-(({s}-{c})/{wide})**2)", lambda z: -d * np.exp(-(((z - c) / wide) ** 2))
    elif kind == 1:
        d, c, e = number(-300, 300), number(0.1, 0.45), number(0.55, 0.9)
        q, height = f"where({s}<{c},0,where({s}<{e},{d},0))", lambda z: np.where((z < c) | (z >= e), 0, d)
        cuts = [c, e]
    elif kind == 2:
        d, k = number(-300, 300), int(r.integers(1, 12))
        q, height = f"{d}*cos(2*pi*{k}*{s})", lambda z: d * np.cos(2 * np.pi * k * z)
    elif kind == 3:
        d, c = number(100, 3e4), number(0.2, 0.8)
        q, height = f"{d}*({s}-{c})**2", lambda z: d * (z - c) ** 2
    else:
        d, g = number(500, 4000), number(-30, 30)
        q = f"{d}*400*(({s}-0.5)**2-0.04)**2+{g}*{s}"
        height = lambda z: d * 400 * ((z - 0.5) ** 2 - 0.04) ** 2 + g * z  # noqa: E731
    p, w = number(-0.8, 2), number(-0.8, 3)
    stiff, diffusion = [
        ("1", lambda z: 1 + 0 * z),
        (f"(1+{p}*{s})", lambda z: 1 + p * z),
        (f"exp({p}*{s})", lambda z: np.exp(p * z)),
    ][int(r.integers(0, 3))]
    heavy, weight = [("1", lambda z: 1 + 0 * z), (f"(1+{w}*{s})", lambda z: 1 + w * z)][int(r.integers(0, 2))]
    ends = [None if r.random() < 0.5 else number(0, 5) if r.random() < 0.5 else 0.0 for _ in range(2)]
    conditions = {}
    for name, place, z, h in (("left", a, 0.0, ends[0]), ("right", b, 1.0, ends[1])):
        there = float(diffusion(np.array([z]))[0])
        said = "u = 0" if h is None else f"{there!r}*dn(u) + {h / length!r}*u = 0"
        conditions[name] = rp.On(f"x={place!r}", said)
    problem = rp.Problem(
        f"-d({stiff}*u_x, x) + ({q})*{unit!r}*u = lam*{heavy}*u", rp.Interval(a, b), conditions, eigenvalue="lam"
    )
    stops = [0.0, *cuts, 1.0]
    cells = 1 + 20 // (len(stops) - 1)
    shares = np.unique(np.concatenate([np.linspace(u, v, cells) for u, v in pairwise(stops)]))
    reference = Reference(
        lambda x: diffusion(scaled(x)), lambda x: height(scaled(x)) * unit, lambda x: weight(scaled(x)),
        a + length * shares, tuple(None if h is None else h / length for h in ends),
    )  # fmt: skip
    return problem, reference, unit
