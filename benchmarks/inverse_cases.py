"""Problems with unknowns whose truth is known, each with a classical solver beside it: what inverse.py measures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import sympy
from scipy.integrate import solve_ivp

import rannpde as rp
from benchmarks import evolve
from benchmarks.classical import Array, Function, chebyshev_points, interpolation
from rannpde.pde.zoo.cole_hopf import ColeHopf

STEPS = evolve.TIMES
"""Times of scattered values are multiples of the duration over this."""


@dataclass(frozen=True)
class Values:
    """What was measured: a condition → points (M, n), exact values (M,), quantity, and the standard deviation."""

    points: Array
    exact: Array
    quantity: str
    sigma: float

    def drawn(self, rng: np.random.Generator) -> rp.Data:
        """With noise drawn anew."""
        noisy = self.exact + self.sigma * rng.standard_normal(len(self.exact)) if self.sigma else self.exact
        return rp.Data(self.points, noisy, self.quantity, noise=self.sigma)

    def without(self) -> rp.Data:
        """Exact values, said to have that noise."""
        return rp.Data(self.points, self.exact, self.quantity, noise=self.sigma)


@dataclass(frozen=True)
class Case:
    """A problem with unknowns whose truth is known.

    build : of the measurements, the problem; measured : of the relative noise, what is measured
    truth : number → its value, or function → it; noises : levels that the table shows
    predict : of the numbers (k,), all measured values one after the other by a classical solver, or None; label : of it
    quick : it takes milliseconds, so that coverage compares every draw with it
    hidden : fields whose errors count too; goal : of the issue, in words
    """

    build: Callable[[Mapping[str, rp.Data]], rp.Problem]
    measured: Callable[[float], dict[str, Values]]
    truth: Mapping[str, float | Function]
    noises: tuple[float, ...]
    tol: float
    goal: str
    predict: Callable[[Array], Array] | None = None
    label: str = ""
    quick: bool = False
    hidden: Mapping[str, Function] | None = None

    def values(self, noise: float, seed: int) -> dict[str, rp.Data]:
        """What is measured, with noise of that level."""
        rng = np.random.default_rng([seed, 12])
        return {name: one.drawn(rng) for name, one in self.measured(noise).items()}

    def drawn(self, noise: float, seed: int) -> rp.Problem:
        """The problem with noise of that level."""
        return self.build(self.values(noise, seed))

    def smooth(self, noise: float) -> rp.Problem:
        """The problem with exact values that are said to have that noise."""
        return self.build({name: one.without() for name, one in self.measured(noise).items()})

    @property
    def numbers(self) -> dict[str, float]:
        return {name: value for name, value in self.truth.items() if isinstance(value, float)}

    @property
    def functions(self) -> dict[str, Function]:
        return {name: value for name, value in self.truth.items() if not isinstance(value, float)}


def scattered(domain: rp.SpaceTime, count: int) -> Array:
    """Uniform points, their times moved to those that the classical solvers keep."""
    points = domain.sample(count, rng=5)
    start, end = domain.time
    points[:, 0] = (
        start + (end - start) * np.clip(np.rint(STEPS * (points[:, 0] - start) / (end - start)), 1, STEPS) / STEPS
    )
    return points


def one_set(points: Array, exact: Array, noise: float, absolute: bool = False) -> dict[str, Values]:
    """Values of u, their noise relative to their spread."""
    return {"sensors": Values(points, exact, "u", noise if absolute else noise * float(np.std(exact)))}


# --------------------------------------------------------------------------------------------------------- problems


def burgers(viscosity: float = 0.01 / np.pi, count: int = 2000, modes: int = 640) -> Case:
    """Raissi's: λ1 = 1, λ2 = 0.01/π from scattered values of the exact solution.

    modes : of the classical solver; 0 takes the exact solution in its place, u(t, x; a, ν) = u(at, x; 1, ν/a)
    """
    domain = rp.SpaceTime(t=(0, 1), x=(-1, 1))
    conditions = {"start": rp.On("t=0", "u = -sin(pi*x)"), "walls": rp.On(("x=-1", "x=1"), "u = 0")}
    guesses = {"a": rp.Unknown(0.5, bounds=(0, None)), "nu": rp.Unknown(3 * viscosity, bounds=(0, None))}
    points = scattered(domain, count)
    exact = ColeHopf(viscosity)(points)

    def build(data: Mapping[str, rp.Data]) -> rp.Problem:
        return rp.Problem("u_t + a*u*u_x = nu*u_xx", domain, {**conditions, **data}, unknown=guesses)

    shape = build({"sensors": rp.Data(points, exact, "u")})

    def predict(numbers: Array) -> Array:
        """It is odd at both walls, so that its periodic continuation is smooth."""
        a, nu = numbers
        if not modes:
            return ColeHopf(nu / a)(points * [a, 1.0])
        flux = lambda u, k, modes_of: -0.5j * a * k * modes_of(u**2)  # noqa: E731
        start = lambda x: -np.sin(np.pi * x)  # noqa: E731
        return evolve.fourier(shape, modes, lambda k: -nu * k**2 + 0j, flux, start, STEPS)(points)

    return Case(
        build, lambda noise: one_set(points, exact, noise), {"a": 1.0, "nu": viscosity}, (0.0, 0.01, 0.05, 0.1), 1e-10,
        "1e-9 without noise, ratio below 1.5, 10 s", predict,
        f"Fourier ETDRK4, {modes} modes" if modes else "exact", quick=not modes,
    )  # fmt: skip


def manufactured(count: int = 100, nodes: int = 48) -> Case:
    """Burgers as Dong & Wang have it: coefficients 0.1 and 0.01 of a solution that is prescribed."""
    t, x = sympy.symbols("t x")

    def part(z: sympy.Symbol) -> sympy.Expr:
        shift = 7 * sympy.pi / 20
        wave = sympy.Rational(3, 2) * sympy.cos(sympy.pi * z + shift)
        return (1 + z / 20) * (wave + sympy.Rational(27, 20) * sympy.cos(2 * sympy.pi * z - 3 * sympy.pi / 5))

    u = part(x) * part(t)
    force = sympy.diff(u, t) + u * sympy.diff(u, x) / 10 - sympy.diff(u, x, 2) / 100
    evaluate, load = (sympy.lambdify((t, x), one, "numpy") for one in (u, force))
    domain = rp.SpaceTime(t=(0, 1.5), x=(0, 1.5))
    points = scattered(domain, count)
    exact = evaluate(*points.T)
    conditions = {"start": rp.On("t=0", f"u = {u.subs(t, 0)}"), "ends": rp.On(("x=0", "x=1.5"), f"u = {u}")}
    guesses = {"a": rp.Unknown(0.2), "nu": rp.Unknown(0.03, bounds=(0, None))}

    def build(data: Mapping[str, rp.Data]) -> rp.Problem:
        return rp.Problem(f"u_t + a*u*u_x = nu*u_xx + {force}", domain, {**conditions, **data}, unknown=guesses)

    def predict(numbers: Array) -> Array:
        a, nu = numbers
        places, D, weights = chebyshev_points(nodes, 0.0, 1.5)
        D2, inner = D @ D, slice(1, -1)

        def whole(time: float, state: Array) -> Array:
            return np.concatenate([[evaluate(time, places[0])], state, [evaluate(time, places[-1])]])

        def rate(time: float, state: Array) -> Array:
            u = whole(time, state)
            return (nu * (D2 @ u) - a * u * (D @ u) + load(time, places))[inner]

        def jacobian(time: float, state: Array) -> Array:
            u = whole(time, state)
            return (nu * D2 - a * u[:, None] * D - np.diag(a * (D @ u)))[inner, inner]

        path = solve_ivp(
            rate, (0, 1.5), evaluate(0.0, places[inner]), method="Radau", jac=jacobian, rtol=1e-8, atol=1e-9,
            dense_output=True,
        )  # fmt: skip
        table = np.array(
            [whole(time, state) for time, state in zip(points[:, 0], path.sol(points[:, 0]).T, strict=True)]
        )
        return (interpolation(places, weights, points[:, 1]) * table).sum(axis=1)

    return Case(
        build, lambda noise: one_set(points, exact, noise), {"a": 0.1, "nu": 0.01}, (0.0, 0.01), 1e-11,
        "1e-10 without noise in 3 s, ratio 1", predict, f"Chebyshev and Radau, {nodes + 1} nodes",
    )  # fmt: skip


def kdv(dispersion: float = 0.0025, count: int = 500, modes: int = 96, duration: float = 1.0) -> Case:
    """u_t + a u u_x + b u_xxx = 0, periodic."""
    domain = rp.SpaceTime(t=(0, duration), x=(-1, 1))
    conditions = {"start": rp.On("t=0", "u = cos(pi*x)"), "circle": rp.Periodic("x")}
    guesses = {"a": rp.Unknown(0.7), "b": rp.Unknown(1.5 * dispersion)}
    points = scattered(domain, count)

    def build(data: Mapping[str, rp.Data]) -> rp.Problem:
        return rp.Problem("u_t + a*u*u_x + b*u_xxx = 0", domain, {**conditions, **data}, unknown=guesses)

    shape = build({"sensors": rp.Data(points, np.zeros(count), "u")})

    def solution(a: float, b: float, highest: int, steps: int) -> Array:
        flux = lambda u, k, modes_of: -0.5j * a * k * modes_of(u**2)  # noqa: E731
        start = lambda x: np.cos(np.pi * x)  # noqa: E731
        return evolve.fourier(shape, highest, lambda k: 1j * b * k**3, flux, start, steps)(points)

    exact = solution(1.0, dispersion, 3 * modes // 2, 20 * STEPS)
    return Case(
        build, lambda noise: one_set(points, exact, noise), {"a": 1.0, "b": dispersion}, (0.0, 0.01), 1e-9,
        "1e-8 without noise", lambda numbers: solution(*numbers, modes, STEPS), f"Fourier ETDRK4, {modes} modes",
    )  # fmt: skip


def cylinder(count: int = 200) -> Case:
    """Steady Navier–Stokes past a disc, manufactured: velocity measured, pressure not.

    The pressure is given on the outflow in the place of u: an unknown problem cannot fix it at one point.
    """
    x, y = sympy.symbols("x y")
    stream = y - y**2 / 4 + sympy.sin(2 * x) * sympy.cos(sympy.Rational(3, 2) * y) / 5
    u, v = sympy.diff(stream, y), -sympy.diff(stream, x)
    p = sympy.cos(x) * sympy.sin(y) / 2 - x / 10
    first, second = (
        u * sympy.diff(w, x)
        + v * sympy.diff(w, y)
        + sympy.diff(p, z)
        - (sympy.diff(w, x, 2) + sympy.diff(w, y, 2)) / 100
        for w, z in ((u, x), (v, y))
    )
    domain = rp.Box(x=(0, 2), y=(0, 1)) - rp.Ball((0.7, 0.5), 0.2, names=("x", "y"), name="disc")
    conditions = {
        "velocity, u": rp.On("boundary except x=2", f"u = {u}"), "velocity, v": rp.On("boundary", f"v = {v}"),
        "outflow": rp.On("x=2", f"p = {p}"),
    }  # fmt: skip
    equations = {
        "along": f"a*(u*u_x + v*u_y) + p_x = nu*laplace(u) + {first}",
        "across": f"a*(u*v_x + v*v_y) + p_y = nu*laplace(v) + {second}",
        "mass": "u_x + v_y = 0",
    }
    guesses = {"a": rp.Unknown(0.7), "nu": rp.Unknown(0.02, bounds=(0, None))}
    points = domain.sample(count, rng=5)
    fields = {name: sympy.lambdify((x, y), one, "numpy") for name, one in (("u", u), ("v", v), ("p", p))}

    def build(data: Mapping[str, rp.Data]) -> rp.Problem:
        return rp.Problem(equations, domain, {**conditions, **data}, fields=("u", "v", "p"), unknown=guesses)

    def measured(noise: float) -> dict[str, Values]:
        values = {name: fields[name](*points.T) for name in ("u", "v")}
        return {name: Values(points, one, name, noise * float(np.std(one))) for name, one in values.items()}

    return Case(
        build, measured, {"a": 1.0, "nu": 0.01}, (0.0, 0.01), 1e-8, "1e-8 without noise, pressure 1e-6",
        hidden={"p": lambda points: fields["p"](*points.T)},
    )  # fmt: skip


def waves(x: sympy.Symbol, y: sympy.Symbol, seed: int) -> sympy.Expr:
    """0.4 exp(g), g a sum of waves of up to a period and a half on the unit square, random heights and phases."""
    rng, total = np.random.default_rng([seed, 31]), sympy.Integer(0)
    for k in range(4):
        for m in range(4):
            height, phase, other = rng.standard_normal() / (1 + k**2 + m**2), *rng.uniform(0, 2 * np.pi, 2)
            wave = sympy.cos(sympy.pi * k * x + round(phase, 6)) * sympy.cos(sympy.pi * m * y + round(other, 6))
            total += round(0.7 * height, 6) * wave
    return sympy.Float(0.4) * sympy.exp(total)


def poisson(side: int = 50, sigma: float = 0.1, degree: int | None = None, seed: int | None = None) -> Case:
    """PInv: ∇·(a∇u) + f = 0 on the unit square, a known on the boundary.

    seed : of a coefficient drawn at random, log a a sum of waves, in the place of the very smooth one of PInv
    """
    x, y = sympy.symbols("x y")
    u = sympy.sin(sympy.pi * x) * sympy.sin(sympy.pi * y)
    a = 1 / (1 + x**2 + y**2 + (x - 1) ** 2 + (y - 1) ** 2) if seed is None else waves(x, y, seed)
    f = -sum(sympy.diff(a * sympy.diff(u, z), z) for z in (x, y))
    domain = rp.Box(x=(0, 1), y=(0, 1))
    conditions = {"walls": rp.On("boundary", "u = 0"), "known": rp.On("boundary", f"a = {a}")}
    guesses = {"a": rp.UnknownFunction(of=("x", "y"), guess=0.4, bounds=(0, None), degree=degree)}
    axis = (np.arange(side) + 0.5) / side
    points = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    values, truth = (sympy.lambdify((x, y), one, "numpy") for one in (u, a))

    def build(data: Mapping[str, rp.Data]) -> rp.Problem:
        return rp.Problem(f"div(a*grad(u)) + {f} = 0", domain, {**conditions, **data}, unknown=guesses)

    return Case(
        build, lambda noise: one_set(points, values(*points.T), noise, absolute=True),
        {"a": lambda points: truth(*points.T)}, (sigma,), 1e-5, "1e-2 in a, bands that cover, 30 s",
        hidden={"u": lambda points: values(*points.T)},
    )  # fmt: skip


def heat(count: int = 2500, sigma: float = 0.1, degree: int | None = None) -> Case:
    """HInv: u_t - ∇·(a∇u) = f on (-1, 1)², a(x, y) known on the boundary."""
    t, x, y = sympy.symbols("t x y")
    wave = sympy.sin(sympy.pi * x) * sympy.sin(sympy.pi * y)
    u, a = sympy.exp(-t) * wave, 2 + wave
    f = sympy.diff(u, t) - sum(sympy.diff(a * sympy.diff(u, z), z) for z in (x, y))
    domain = rp.SpaceTime(t=(0, 1), x=(-1, 1), y=(-1, 1))
    conditions = {
        "start": rp.On("t=0", f"u = {wave}"), "walls": rp.On("boundary", "u = 0"), "known": rp.On("boundary", "a = 2"),
    }  # fmt: skip
    guesses = {"a": rp.UnknownFunction(of=("x", "y"), guess=2.0, bounds=(0, None), degree=degree)}
    points = domain.sample(count, rng=5)
    values, truth = sympy.lambdify((t, x, y), u, "numpy"), sympy.lambdify((x, y), a, "numpy")

    def build(data: Mapping[str, rp.Data]) -> rp.Problem:
        return rp.Problem(f"u_t - div(a*grad(u)) = {f}", domain, {**conditions, **data}, unknown=guesses)

    return Case(
        build, lambda noise: one_set(points, values(*points.T), noise, absolute=True),
        {"a": lambda points: truth(*points.T)}, (sigma,), 1e-4, "1e-2 in a, bands that cover, 60 s",
        hidden={"u": lambda points: values(*points.T)},
    )  # fmt: skip


def lorenz(duration: float = 3.0, count: int = 25) -> Case:
    """Three numbers from 25 times; all three fields are measured."""
    start = {"x": -8.0, "y": 7.0, "z": 27.0}
    conditions = {f"start of {name}": rp.On("t=0", f"{name} = {value}") for name, value in start.items()}
    equations = ["x_t = a*(y - x)", "y_t = x*(b - z) - y", "z_t = x*y - c*z"]
    guesses = {name: rp.Unknown(value) for name, value in (("a", 8.0), ("b", 12.0), ("c", 2.0))}
    times = duration * np.arange(1, count + 1) / count

    def build(data: Mapping[str, rp.Data]) -> rp.Problem:
        domain = rp.Interval(0, duration, name="t")
        return rp.Problem(equations, domain, {**conditions, **data}, fields=tuple(start), unknown=guesses)

    def path(numbers: Array, rtol: float) -> Array:
        a, b, c = numbers
        rate = lambda t, s: [a * (s[1] - s[0]), s[0] * (b - s[2]) - s[1], s[0] * s[1] - c * s[2]]  # noqa: E731
        first = list(start.values())
        return solve_ivp(rate, (0, duration), first, method="DOP853", t_eval=times, rtol=rtol, atol=1e-2 * rtol).y

    exact = path(np.array([10.0, 15.0, 8 / 3]), 1e-13)

    def measured(noise: float) -> dict[str, Values]:
        each = zip(start, exact, strict=True)
        return {name: Values(times[:, None], one, name, noise * float(np.std(one))) for name, one in each}

    return Case(
        build, measured, {"a": 10.0, "b": 15.0, "c": 8 / 3}, (0.0, 0.01), 1e-9, "1e-8 without noise",
        lambda numbers: path(numbers, 1e-12).ravel(), "DOP853", quick=True,
    )  # fmt: skip


def decay(count: int = 20) -> Case:
    """u' = -k u + b: two numbers, solved in a quarter of a second."""
    guesses = {"k": rp.Unknown(1.0), "b": rp.Unknown(0.2)}
    times = 2.0 * np.arange(1, count + 1) / count

    def exact(numbers: Array) -> Array:
        k, b = numbers
        return b / k + (1 - b / k) * np.exp(-k * times)

    def build(data: Mapping[str, rp.Data]) -> rp.Problem:
        conditions = {"start": rp.On("t=0", "u = 1"), **data}
        return rp.Problem("u_t = -k*u + b", rp.Interval(0, 2, name="t"), conditions, unknown=guesses)

    return Case(
        build, lambda noise: one_set(times[:, None], exact(np.array([1.3, 0.5])), noise), {"k": 1.3, "b": 0.5}, (0.1,),
        1e-4, "92 to 98 %", exact, "exact", quick=True,
    )  # fmt: skip


def cooling(count: int = 60) -> Case:
    """u_t = k u_xx - r u on a circle: two numbers."""
    domain = rp.SpaceTime(t=(0, 1), x=(0, 1))
    guesses = {"k": rp.Unknown(0.03, bounds=(0, None)), "r": rp.Unknown(0.2)}
    points = domain.sample(count, rng=5)
    start = "1 + sin(2*pi*x) + cos(4*pi*x)/2"

    def exact(numbers: Array) -> Array:
        k, r = numbers
        (t, x), w = points.T, 2 * np.pi
        waves = np.exp(-k * w**2 * t) * np.sin(w * x) + np.exp(-4 * k * w**2 * t) * np.cos(2 * w * x) / 2
        return np.exp(-r * t) * (1 + waves)

    def build(data: Mapping[str, rp.Data]) -> rp.Problem:
        conditions = {"start": rp.On("t=0", f"u = {start}"), "circle": rp.Periodic("x"), **data}
        return rp.Problem("u_t = k*u_xx - r*u", domain, conditions, unknown=guesses)

    return Case(
        build, lambda noise: one_set(points, exact(np.array([0.02, 0.3])), noise), {"k": 0.02, "r": 0.3}, (0.03,), 1e-4,
        "92 to 98 %", exact, "exact", quick=True,
    )  # fmt: skip


CASES: dict[str, Callable[[], Case]] = {
    "burgers": burgers,
    "burgers manufactured": manufactured,
    "kdv": kdv,
    "navier-stokes": cylinder,
    "poisson a(x, y)": poisson,
    "heat a(x, y)": heat,
    "lorenz": lorenz,
}
SMALL: dict[str, tuple[Callable[[], Case], float]] = {
    "decay": (decay, 0.1),
    "heat, two numbers": (cooling, 0.03),
    "burgers": (lambda: burgers(0.1, 60, 0), 0.02),
    "burgers manufactured": (lambda: manufactured(60), 0.02),
    "kdv": (lambda: kdv(0.01, 60, 48, 0.3), 0.02),
    "navier-stokes": (lambda: cylinder(40), 0.005),
    "lorenz": (lambda: lorenz(1.0, 15), 0.01),
    "poisson a(x, y)": (lambda: poisson(15, 0.05), 0.05),
    "heat a(x, y)": (lambda: heat(400, 0.05), 0.05),
}
"""Small sizes for coverage, with their noise."""
DRAWN: dict[str, tuple[Callable[[int], Case], float]] = {
    "poisson, a drawn": (lambda seed: poisson(15, 0.05, seed=seed), 0.05),
}
"""Bands are true on average over functions: those that are drawn anew with the noise, with their noise."""
