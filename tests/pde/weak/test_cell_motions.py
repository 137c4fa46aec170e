"""Slender bodies: what moves a cell without straining it is not rounded by the size of the motion."""

from __future__ import annotations

import numpy as np
import pytest

import rannpde as rp
from draws import seeds
from rannpde import On
from rannpde.pde.weak.cell_motions import free_slopes
from rannpde.pde.weak.factorised_tangent import HybridState
from rannpde.pde.weak.form import weak_formulation
from rannpde.pde.weak.settings import WeakSettings
from rannpde.pde.weak.solver import WeakDiscretisation
from rannpde.pde.weak.stiff_strains import AndersonMixing

BALANCE = ["(lam+2*mu)*u_xx + mu*u_yy + (lam+mu)*v_xy = 0", "mu*v_xx + (lam+2*mu)*v_yy + (lam+mu)*u_xy = 0"]
SHEAR, ALONG, ACROSS = "mu*(u_y+v_x)", "(lam+2*mu)*u_x + lam*v_y", "(lam+2*mu)*v_y + lam*u_x"


def bent_beam(length, height, lam, mu, load=1.0):
    """A shear force at the end of a cantilever: the exact displacement of Timoshenko in plane strain, shears as they
    are at both ends."""
    inertia, ratio = height**3 / 12, lam / (2 * (lam + mu))
    modulus, across = 2 * mu * (1 + ratio) / (1 - ratio**2), ratio / (1 - ratio)
    bending = load / (6 * modulus * inertia)
    u = f"-({bending!r})*y*((6*{length!r} - 3*x)*x + (2 + {across!r})*(y**2 - {height**2 / 4!r}))"
    v = (
        f"({bending!r})*(3*{across!r}*y**2*({length!r} - x)"
        f" + (4 + 5*{across!r})*{height**2 / 4!r}*x + (3*{length!r} - x)*x**2)"
    )
    shear = f"(-{load / (2 * inertia)!r})*({height**2 / 4!r} - y**2)"
    half = height / 2
    conditions = {
        "clamp": On("x=0", [f"u = {u}", f"v = {v}"]),
        "end": On(f"x={length!r}", [f"{ALONG} = 0", f"{SHEAR} = -({shear})"]),
        "faces": On((f"y={-half!r}", f"y={half!r}"), [f"{SHEAR} = 0", f"{ACROSS} = 0"]),
    }  # fmt: skip
    box = rp.Box(x=(0, length), y=(-half, half))
    return rp.Problem(BALANCE, box, conditions, {"lam": lam, "mu": mu}, exact={"u": u, "v": v})


def random_beam(seed):
    """In random units, 30 to 80 times as long as high, Poisson's ratio from 0.1 to 0.45."""
    rng = np.random.default_rng(seed)
    length, mu = (10 ** rng.uniform(-3, 3, 2)).tolist()
    ratio = float(rng.uniform(0.1, 0.45))
    return bent_beam(length, length / float(rng.uniform(30, 80)), 2 * mu * ratio / (1 - 2 * ratio), mu)


def relative_error(problem, network):
    points = problem.domain.sample(500, rng=3)
    exact = problem.exact_solution(points)
    return np.linalg.norm(network(points) - exact) / np.linalg.norm(exact)


@pytest.mark.parametrize("seed", seeds("slender beams", 2, 12))
def test_the_first_solution_of_a_slender_beam_is_exact_to_rounding(seed):
    """Cosines of degree 9 hold cubic polynomials to 1e-9, so that the rest of the error is rounding of the algebra."""
    problem = random_beam(seed)
    rng = np.random.default_rng(seed)
    discretisation = WeakDiscretisation(weak_formulation(problem), 1.0, WeakSettings(), rng, lambda: None, degree=9)
    state = discretisation.solve(discretisation.first())
    assert relative_error(problem, state.network) < 1e-8
    assert discretisation.algebraic < 1e-12


@pytest.mark.slow
def test_a_beam_fifty_times_as_long_as_high_converges():
    problem = bent_beam(1.0, 0.02, 1.5, 1.0)
    solution = rp.solve(problem, tol=1e-6, method="weak", seconds=100)
    assert solution.converged
    assert relative_error(problem, solution) <= min(1e-6, 2 * solution.estimate)


def test_slopes_without_flux_are_rotations_of_elastic_bodies_and_none_of_one_field():
    slopes = free_slopes(weak_formulation(bent_beam(1.0, 0.1, 2.0, 1.0)))
    assert slopes.shape == (1, 2, 2)
    assert np.allclose(np.abs(slopes[0]), [[0, 0.5**0.5], [0.5**0.5, 0]])
    rim = {"rim": On("boundary", "u = 0")}
    box = rp.Box(x=(0, 1), y=(0, 1))
    assert len(free_slopes(weak_formulation(rp.Problem("laplace(u) = 1", box, rim)))) == 0
    assert free_slopes(weak_formulation(rp.Problem("laplace(u) - u = 1", box, rim))) is None


@pytest.mark.parametrize("ratio", [0.3, 0.4999, 0.4999999])
def test_rotations_have_no_flux_at_all(ratio):
    """Split coefficients are sums of larger ones; what rounding leaves of them would be springs that hold a body."""
    form = weak_formulation(bent_beam(1.0, 0.1, 3.7 * 2 * ratio / (1 - 2 * ratio), 3.7))
    turn = np.array([[0.0, 1.0], [-1.0, 0.0]])
    assert not np.einsum("mkfij,fj->mki", form.at(np.array([[0.3, 0.02]])).diffusion, turn).any()


def test_a_real_stiffness_of_rotations_is_kept():
    """Its fluxes are no rounding, however small they are beside those of other strains."""
    free = ["mu*(u_y+v_x) + k*u_y = 0", ACROSS]
    equations = [BALANCE[0].replace("mu*u_yy", "(mu+k)*u_yy"), BALANCE[1]]
    conditions = {"clamp": On("x=0", ["u = 0", "v = 1"]), "end": On("x=1", [f"{ALONG} = 0", f"{SHEAR} = 0"]),
                  "faces": On(("y=0", "y=1"), free)}  # fmt: skip
    box, constants = rp.Box(x=(0, 1), y=(0, 1)), {"lam": 1e5, "mu": 1.0, "k": 1e-6}
    form = weak_formulation(rp.Problem(equations, box, conditions, constants))
    turn = np.array([[0.0, 1.0], [-1.0, 0.0]])
    flux = np.einsum("mkfij,fj->mki", form.at(np.array([[0.3, 0.02]])).diffusion, turn)
    assert np.abs(flux).max() == pytest.approx(1e-6, rel=1e-3)


def test_anderson_mixing_solves_a_linear_iteration_in_as_many_steps_as_it_has_rates():
    """Three rates, two of them near 1, take four steps; without mixing thousands."""
    rng = np.random.default_rng(0)
    rates, target = rng.permutation(np.repeat([0.999, 0.9, 0.1], 4)), rng.normal(size=12)
    state, mixing = HybridState(np.zeros(12), np.zeros(0)), AndersonMixing()
    for _ in range(4):
        state = mixing.next(state, HybridState(target + rates * (state.weights - target), np.zeros(0)))
    assert np.allclose(state.weights, target, rtol=0, atol=1e-8)
