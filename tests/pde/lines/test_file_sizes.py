"""Files hold what the estimate justifies: large tables are rounded to a tenth of it, small ones keep every bit."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

import rannpde as rp
from draws import draws
from rannpde.errors import FileError
from rannpde.pde.lines.quantised import dequantise, quantise, rounding_step


@pytest.mark.parametrize("seed", range(draws(2, 5)))
@pytest.mark.parametrize("error", [1e-2, 1e-5, 1e-8, 1e-10])
def test_rounding_adds_the_error_that_it_may(seed, error):
    rng = np.random.default_rng(seed)
    decay = np.exp(-np.arange(20_000) / rng.uniform(500, 3000))
    values = decay * (rng.normal(size=20_000) + 1j * rng.normal(size=20_000))
    size = np.linalg.norm(values)
    step = rounding_step(error, size, len(values))
    data = quantise(values, step)
    assert data is not None
    again = dequantise(data, step, len(values))
    assert np.linalg.norm(again - values) < error * size
    assert data.nbytes < 0.5 * values.nbytes


def test_without_an_estimate_files_have_single_precision(tmp_path):
    """A time integration that its limit ended is worth no more digits, and may be large."""
    circle = {"t=0": "u = cos(x)*cos(2*y) + sin(3*x + y)", "x": "periodic", "y": "periodic"}
    domain = rp.SpaceTime(t=(0, 0.2), x=(0, 2 * np.pi), y=(0, 2 * np.pi))
    solution = rp.solve(rp.Problem("u_t = laplace(u) - u**3", domain, circle), tol=1e-6)
    unknown = replace(solution, estimate=np.inf)
    unknown.save(tmp_path / "rounded.npz")
    points = domain.sample(200, rng=0)
    change = rp.load(tmp_path / "rounded.npz")(points) - solution(points)
    assert np.linalg.norm(change) < 1e-6 * np.linalg.norm(solution(points))


def test_what_cannot_be_rounded_is_left_alone():
    assert quantise(np.ones(9, dtype=complex), 1e-17) is None  # beyond 52 bits
    assert quantise(np.zeros(10**6, dtype=complex), 1e-3) is None  # a thousand times smaller: looks like an attack
    assert quantise(np.random.default_rng(0).normal(size=(99, 2)).view(complex)[:, 0], 1e-8) is None  # no gain


def test_damaged_bytes_are_refused():
    values = np.random.default_rng(0).normal(size=(2000, 2)).view(complex)[:, 0]
    data = quantise(values, 1e-3)
    for bytes_, step, count in [
        (data[:-9], 1e-3, 2000), (data, 1e-3, 1999), (data, 1e-3, 2001), (data, -1.0, 2000), (data, 1e-3, 10**9),
        (data.astype(float), 1e-3, 2000), (np.zeros(500, dtype=np.uint8), 1e-3, 2000),
    ]:  # fmt: skip
        with pytest.raises(FileError, match="compressed coefficients"):
            dequantise(bytes_, step, count)


def test_a_file_of_many_modes_is_small_and_close(tmp_path):
    problem = rp.Problem(
        "u_t = laplace(u**3 - u - 0.01*laplace(u))", rp.SpaceTime(t=(0, 0.3), x=(0, 2 * np.pi), y=(0, 2 * np.pi)),
        {"t=0": "u = 0.2*cos(2*x)*cos(y) + 0.1*sin(3*x + 2*y)", "x": "periodic", "y": "periodic"},
    )  # fmt: skip
    solution = rp.solve(problem, tol=1e-3)
    small, whole = solution.save(tmp_path / "small.npz"), solution.save(tmp_path / "whole.npz", exact=True)
    points = problem.domain.sample(500, rng=0)
    exact = solution(points)
    assert np.array_equal(rp.load(whole)(points), exact)
    difference = np.linalg.norm(rp.load(small)(points) - exact) / np.linalg.norm(exact)
    assert difference < 0.2 * solution.estimate
    assert small.stat().st_size < whole.stat().st_size / 3
    rough = replace(solution, estimate=0.9).save(tmp_path / "rough.npz")  # not worth its bytes, but still a picture
    assert rough.stat().st_size < small.stat().st_size
    assert np.linalg.norm(rp.load(rough)(points) - exact) < 1e-2 * np.linalg.norm(exact)
    assert len(pickle.dumps(problem)) < 10_000  # solved, with its analysis cached


def test_a_pickled_problem_is_small_after_it_was_solved():
    for problem in (rp.zoo("burgers"), rp.zoo("heat")):
        solution = rp.solve(problem, tol=1e-3)
        assert len(pickle.dumps(problem)) < 10_000
        assert rp.solve(pickle.loads(pickle.dumps(problem)), tol=1e-3).estimate == solution.estimate
