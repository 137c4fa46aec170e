"""Outputs of random problems bounded by dual-weighted residuals: is the error within the bound, and how far below?

python tests/pde/outputs/dual_weighted.py 0 60
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from time import process_time

import numpy as np
import sympy

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import rannpde as rp
from pde.outputs.coverage import Known
from rannpde.pde.outputs.comparison import SolutionPair
from rannpde.pde.outputs.evaluate import stated_output
from rannpde.pde.outputs.settings import OutputSettings

X, Y = sympy.symbols("x y")


@dataclass(frozen=True)
class WeightedDraw:
    """One problem with one output, solved for it."""

    seed: int
    problem: rp.Problem
    tol: float
    solution: rp.Solution
    exact: float

    @property
    def quantity(self) -> rp.Quantity:
        return self.solution.outputs["q"]

    @property
    def weighted(self) -> bool:
        return self.quantity.how == "dual-weighted residual"

    @property
    def effectivity(self) -> float:
        """The bound over the true error."""
        return float(self.quantity.bound) / max(abs(float(self.quantity) - self.exact), 1e-300)

    def __str__(self) -> str:
        word = "held" if self.effectivity >= 1 else "BROKEN"
        error = abs(float(self.quantity) - self.exact) / max(abs(self.exact), 1e-300)
        return (
            f"{word} seed {self.seed} {self.problem.outputs['q']}: {self.quantity!r}, relative error {error:.1e}, tol "
            f"{self.tol:.1e}, effectivity {self.effectivity:.2g}, converged {self.solution.converged}, "
            f"{self.solution.method.label}"
        )


def drawn_problem(seed: int) -> tuple[rp.Problem, float]:
    """Diffusion with variable conductivity, advection and reaction, elasticity; on boxes, with holes, on L-shapes; in
    random units and places; given values and natural conditions; one output."""
    rng = np.random.default_rng(seed)
    unit, x0, y0 = float(10 ** rng.uniform(-1, 1)), *map(float, rng.uniform(-3, 3, 2))
    left, low = f"((x - ({x0!r}))/{unit!r})", f"((y - ({y0!r}))/{unit!r})"
    box = rp.Box(x=(x0, x0 + unit), y=(y0, y0 + 1.2 * unit))
    corners = [(0, 0), (1, 0), (1, 0.4), (0.5, 0.4), (0.5, 1.2), (0, 1.2)]
    shape = [
        box,
        box - rp.Ball((x0 + 0.5 * unit, y0 + 0.25 * unit), 0.1 * unit, name="hole"),
        rp.Polygon([(x0 + unit * p, y0 + unit * q) for p, q in corners]),
    ][seed % 3]
    elastic = seed % 5 == 4

    def drawn_field() -> sympy.Expr:
        a, b, c, w = (float(one) for one in rng.uniform(0.5, 2.5, 4))
        return sympy.sympify(f"sin({a!r}*{left} + {b!r}*{low}) + exp({c!r}*{left}/2)*cos({1.5 * w!r}*{low})")

    kinds = {name: rng.uniform() < 0.6 for name in shape.sides}
    kinds[next(iter(kinds))] = True
    if elastic:
        problem, derivative, flux = _elasticity(shape, drawn_field(), drawn_field(), kinds, rng)
    else:
        problem, derivative, flux = _diffusion(shape, drawn_field(), kinds, left, unit, rng)
    output = _drawn_output(shape, derivative, flux, kinds, (x0, y0, unit), rng)
    return replace(problem, outputs={"q": output}), float(10 ** rng.uniform(-7, -2))


def _diffusion(shape, u, kinds, left, unit, rng):
    d, slow = float(rng.uniform(0.5, 2.5)), float(rng.uniform(0, 4)) / unit
    k = sympy.sympify(f"1.5 + {d / 4!r}*sin({left})")
    flux = [k * u.diff(X), k * u.diff(Y)]
    drift = rng.uniform(-1, 1, 2) * slow * (rng.uniform() < 0.3)
    reaction = float(rng.uniform(0, 3)) / unit**2 * (rng.uniform() < 0.5)
    natural = f"({k})*dn(u) = ({flux[0]})*nx + ({flux[1]})*ny"
    given = {name: rp.On(name, f"u = {u}" if held else natural) for name, held in kinds.items()}
    source = -flux[0].diff(X) - flux[1].diff(Y) + reaction * u
    stated = f"-div(({k})*grad(u)) + {reaction!r}*u"
    if drift.any():
        source = source + float(drift[0]) * u.diff(X) + float(drift[1]) * u.diff(Y)
        stated += f" + {float(drift[0])!r}*u_x + {float(drift[1])!r}*u_y"
    problem = rp.Problem(f"{stated} = {source}", shape, given, exact={"u": u})
    return problem, "u_x", "" if drift.any() else f"({k})*dn(u)"


def _elasticity(shape, u, v, kinds, rng):
    mu, lam = (float(one) for one in rng.uniform(0.5, 3, 2))
    fields = {"u": u, "v": v}
    sxx = f"({lam + 2 * mu!r}*u_x + {lam!r}*v_y)"
    syy = f"({lam!r}*u_x + {lam + 2 * mu!r}*v_y)"
    sxy = f"({mu!r}*(u_y + v_x))"
    exx, eyy, exy = u.diff(X), v.diff(Y), u.diff(Y) + v.diff(X)
    txx, tyy, txy = (lam + 2 * mu) * exx + lam * eyy, lam * exx + (lam + 2 * mu) * eyy, mu * exy
    loads = txx.diff(X) + txy.diff(Y), txy.diff(X) + tyy.diff(Y)
    natural = [f"{sxx}*nx + {sxy}*ny = ({txx})*nx + ({txy})*ny", f"{sxy}*nx + {syy}*ny = ({txy})*nx + ({tyy})*ny"]
    given = {name: rp.On(name, [f"u = {u}", f"v = {v}"] if held else natural) for name, held in kinds.items()}
    equations = {"x": f"div({sxx}, {sxy}) = {loads[0]}", "y": f"div({sxy}, {syy}) = {loads[1]}"}
    return rp.Problem(equations, shape, given, exact=fields), syy, f"{sxx}*nx + {sxy}*ny"


def _drawn_output(shape, derivative, flux, kinds, place, rng):
    x0, y0, unit = place
    middle = (x0 + unit * rng.uniform(0.15, 0.35), y0 + unit * rng.uniform(0.6, 0.9))
    middle = tuple(map(float, middle))
    end = (float(middle[0] + 0.1 * unit), float(middle[1] - 0.15 * unit))
    held = [name for name, given in kinds.items() if given]
    free = [name for name, given in kinds.items() if not given]
    choices = [
        rp.Output("u"),
        rp.Output("u**2", kind="mean"),
        rp.Output("x*u", on=rp.Ball(middle, 0.11 * unit)),
        rp.Output("u", on=(middle, end)),
        rp.Output("u", at=middle),
        rp.Output(derivative, at=middle),
        rp.Output(f"u({middle[0]!r}, {middle[1]!r}) - 2*u({end[0]!r}, {end[1]!r})"),
    ]
    choices += [rp.Output(flux, on=str(rng.choice(held)))] * 2 if flux else []
    choices += [rp.Output("u", on=str(rng.choice(free)))] if free else []
    return choices[int(rng.integers(len(choices)))]


def weighted_draw(seed: int, tol: float | None = None, seconds: float = 60.0) -> WeightedDraw:
    """The problem of that seed, solved for its output, with the true value."""
    problem, own = drawn_problem(seed)
    tol = tol or own
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        solution = rp.solve(problem, tol={"q": tol}, method="weak", seconds=seconds)
    history = replace(solution.history, fluxes={}, weighted={})
    truth = replace(solution, function=Known(problem.exact_solution, 2), estimate=1e-12, history=history)
    pair = SolutionPair(truth, truth, OutputSettings(points=2**17))
    exact = float(stated_output(pair, problem.outputs["q"], problem.output_expressions["q"]))
    return WeightedDraw(seed, problem, tol, solution, exact)


if __name__ == "__main__":
    first, last = map(int, sys.argv[1:3])
    draws = []
    for seed in range(first, last):
        begin = process_time()
        draws.append(weighted_draw(seed))
        print(draws[-1], f"{process_time() - begin:.1f} s", flush=True)
    known = [one.effectivity for one in draws if one.weighted]
    quartiles = np.percentile(known, [0, 5, 25, 50, 75, 95]) if known else []
    print(f"{len(draws)} draws, {len(known)} dual-weighted, {sum(e < 1 for e in known)} broken, effectivity", quartiles)
