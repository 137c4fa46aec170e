"""One library on one problem: ``python programs.py NAME POINTS VALUES SECONDS`` reads points and writes values.

It runs in the Python that has that library, so that it imports nothing of ours at its top. Printed as JSON: the
seconds of the work itself, without imports, the library's version, and what was done. Libraries are used as their own
examples use them; numbers of theirs were not tuned for these problems.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np

NU = 0.01 / np.pi
MOMENTS = np.arange(1, 11) / 10
FIT_POINTS, FREQUENCIES, SCALE, PENALTY = 500_000, 250, 3.5, 1e-8
Answer = tuple[np.ndarray, float, str]
"""Values (M,) or (M, outputs), seconds, what was done."""


def square_source(x: Any, y: Any, of: Any = np) -> Any:
    """f of -Δu + u² = f."""
    waves = of.sin(np.pi * x) * of.sin(np.pi * y)
    rest = 0.3 * (x**2 + y**2) * of.exp(x * y)
    return 2 * np.pi**2 * waves - rest + square_exact(x, y, of) ** 2


def square_exact(x: Any, y: Any, of: Any = np) -> Any:
    """u = sin πx sin πy + 0.3 e^(xy)."""
    return of.sin(np.pi * x) * of.sin(np.pi * y) + 0.3 * of.exp(x * y)


def fit_values(points: np.ndarray) -> np.ndarray:
    """Two smooth fields with a moving front."""
    front = np.tanh(3 * (points[:, 1] - 1.5 * points[:, 0]))
    return np.column_stack([1.25 + 0.25 * front, 1.5 * front])


def fit_points() -> np.ndarray:
    """(t, x) in (0, 1) × (-2, 2), uniform."""
    return np.random.default_rng(0).random((FIT_POINTS, 2)) * [1.0, 4.0] - [0.0, 2.0]


# ----------------------------------------------------------------------------------------------------------- ours


def rannpde_burgers(points: np.ndarray, seconds: float) -> Answer:
    """The zoo's problem with tol = 1e-10."""
    import rannpde as rp

    rp.solve(rp.zoo("heat"), tol=1e-3)
    begin = time.perf_counter()
    solution = rp.solve(rp.zoo("burgers", viscosity=NU), tol=1e-10, seconds=seconds)
    return solution(points), time.perf_counter() - begin, f"solve(tol=1e-10), {solution.method.name}"


def rannpde_square(points: np.ndarray, seconds: float) -> Answer:
    """The zoo's problem with tol = 1e-10."""
    import rannpde as rp

    rp.solve(rp.zoo("poisson"), tol=1e-3)
    begin = time.perf_counter()
    solution = rp.solve(rp.zoo("nonlinear_poisson"), tol=1e-10, seconds=seconds)
    return solution(points), time.perf_counter() - begin, f"solve(tol=1e-10), {solution.method.name}"


def rannpde_fit(points: np.ndarray, seconds: float) -> Answer:
    """Fourier features and ridge."""
    import rannpde as rp

    where = fit_points()
    values = fit_values(where)
    features = rp.FourierFeatures.sample(width=FREQUENCIES, dim=2, scale=SCALE, rng=0)
    rp.fit(features, where[:2000], values[:2000], penalty=PENALTY)  # loads and compiles
    begin = time.perf_counter()
    network = rp.fit(features, where, values, penalty=PENALTY)
    return network(points), time.perf_counter() - begin, f"fit, {FREQUENCIES} frequencies"


# ---------------------------------------------------------------------------------------------------------- DeepXDE


def deepxde_burgers(points: np.ndarray, seconds: float) -> Answer:
    """Its own example, 3 layers of 20 and Adam, as far as the time allows."""
    import deepxde as dde

    domain = dde.geometry.GeometryXTime(dde.geometry.Interval(-1, 1), dde.geometry.TimeDomain(0, 1))

    def equation(x: Any, y: Any) -> Any:
        slope, rate = (dde.grad.jacobian(y, x, i=0, j=j) for j in (0, 1))
        return rate + y * slope - NU * dde.grad.hessian(y, x, i=0, j=0)

    sides = dde.icbc.DirichletBC(domain, lambda x: 0, lambda _, on: on)
    start = dde.icbc.IC(domain, lambda x: -np.sin(np.pi * x[:, 0:1]), lambda _, on: on)
    data = dde.data.TimePDE(domain, equation, [sides, start], num_domain=2540, num_boundary=80, num_initial=160)
    return _trained(dde, data, points[:, ::-1], seconds)


def deepxde_square(points: np.ndarray, seconds: float) -> Answer:
    """The same network on the square."""
    import deepxde as dde
    import torch

    domain = dde.geometry.Rectangle([0, 0], [1, 1])

    def equation(x: Any, y: Any) -> Any:
        bend = dde.grad.hessian(y, x, i=0, j=0) + dde.grad.hessian(y, x, i=1, j=1)
        return -bend + y**2 - square_source(x[:, 0:1], x[:, 1:2], torch)

    sides = dde.icbc.DirichletBC(domain, lambda x: square_exact(x[:, 0:1], x[:, 1:2]), lambda _, on: on)
    data = dde.data.PDE(domain, equation, sides, num_domain=2540, num_boundary=160)
    return _trained(dde, data, points, seconds)


def _trained(dde: Any, data: Any, places: np.ndarray, seconds: float) -> Answer:
    dde.config.set_random_seed(0)
    model = dde.Model(data, dde.nn.FNN([2, 20, 20, 20, 1], "tanh", "Glorot normal"))
    begin = time.perf_counter()
    model.compile("adam", lr=1e-3)
    # Adam alone: the library's timer does not reach into its L-BFGS, which may then run for hours
    model.train(iterations=1_000_000, verbose=0, callbacks=[dde.callbacks.Timer(0.9 * seconds / 60)])
    spent = time.perf_counter() - begin
    done = f"3 layers of 20, {int(model.train_state.step)} steps of Adam"
    return model.predict(places)[:, 0], spent, done


# ----------------------------------------------------------------------------------------------------------- others


def pyrfm_square(points: np.ndarray, seconds: float) -> Answer:
    """Random features with a partition of unity, Newton by hand: the library has linear least squares."""
    import pyrfm
    import torch

    torch.set_default_dtype(torch.float64)
    begin = time.perf_counter()
    model = pyrfm.RFMBase(dim=2, n_hidden=200, domain=[0.0, 1.0, 0.0, 1.0], n_subdomains=2)
    axis = torch.linspace(0, 1, 62)[1:-1]
    inside = torch.cartesian_prod(axis, axis)
    edge, zero, one = torch.linspace(0, 1, 201), torch.zeros(201), torch.ones(201)
    sides = [torch.stack(pair, 1) for pair in ((edge, zero), (edge, one), (zero, edge), (one, edge))]
    rim = torch.cat(sides)
    values, border = (model.features(where).cat(dim=1) for where in (inside, rim))
    bend = sum(model.features_second_derivative(inside, axis1=k, axis2=k).cat(dim=1) for k in range(2))
    source = square_source(inside[:, :1], inside[:, 1:], torch)
    known, now = square_exact(rim[:, :1], rim[:, 1:], torch), torch.zeros(len(inside), 1)
    steps = 0
    while steps < 12 and time.perf_counter() - begin < 0.8 * seconds:
        matrix = torch.cat([-bend + 2 * now * values, 100 * border])
        model.compute(matrix, verbose=False).solve(torch.cat([source + now**2, 100 * known]))
        before, now = now, model(inside)
        steps += 1
        if float((now - before).abs().max()) < 1e-10:
            break
    spent = time.perf_counter() - begin
    return model(torch.tensor(points)).numpy()[:, 0], spent, f"800 features, {steps} Newton steps"


def pypde_burgers(points: np.ndarray, seconds: float) -> Answer:
    """Finite differences of second order on 1,024 cells, adaptive explicit steps."""
    import pde

    grid = pde.CartesianGrid([[-1, 1]], 1024)
    start = pde.ScalarField.from_expression(grid, "-sin(pi*x)")
    equation = pde.PDE({"u": f"-u * d_dx(u) + {NU!r} * laplace(u)"}, bc={"value": 0})
    storage = pde.MemoryStorage()
    begin = time.perf_counter()
    tracker = storage.tracker(interrupts=float(MOMENTS[0]))
    equation.solve(start, t_range=1.0, dt=1e-5, adaptive=True, backend="numpy", tracker=tracker)
    spent = time.perf_counter() - begin
    states = dict(zip(np.round(storage.times, 6), storage.data, strict=True))
    centres = grid.axes_coords[0]
    found = [np.interp(x, centres, states[round(float(t), 6)]) for t, x in points]
    return np.array(found), spent, "1,024 cells, central differences, adaptive explicit steps"


def sklearn_fit(points: np.ndarray, seconds: float) -> Answer:
    """RBFSampler with as many columns, and Ridge."""
    from sklearn.kernel_approximation import RBFSampler
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline

    where = fit_points()
    values = fit_values(where)
    ridge = Ridge(alpha=PENALTY * FIT_POINTS / (2 * FREQUENCIES), solver="cholesky")
    model = make_pipeline(RBFSampler(gamma=SCALE**2 / 2, n_components=2 * FREQUENCIES, random_state=0), ridge)
    begin = time.perf_counter()
    model.fit(where, values)
    spent = time.perf_counter() - begin
    return model.predict(points), spent, f"RBFSampler of {2 * FREQUENCIES} columns, Ridge by Cholesky"


PROGRAMS: dict[str, tuple[str, Callable[[np.ndarray, float], Answer]]] = {
    "rannpde burgers": ("rannpde", rannpde_burgers),
    "rannpde square": ("rannpde", rannpde_square),
    "rannpde fit": ("rannpde", rannpde_fit),
    "DeepXDE burgers": ("deepxde", deepxde_burgers),
    "DeepXDE square": ("deepxde", deepxde_square),
    "pyRFM square": ("pyrfm", pyrfm_square),
    "py-pde burgers": ("py-pde", pypde_burgers),
    "scikit-learn fit": ("scikit-learn", sklearn_fit),
}
"""Name → distribution, and what runs."""


def main() -> None:
    """As the head of this file says."""
    name, points, values, seconds = sys.argv[1:]
    distribution, program = PROGRAMS[name]
    installed = version(distribution)
    found, spent, done = program(np.load(points), float(seconds))
    np.save(values, np.asarray(found, dtype=float))
    print(json.dumps({"seconds": spent, "version": installed, "done": done}))


if __name__ == "__main__":
    main()
