"""The parts of the solver: orthogonal steps, the loop, the Jacobian, laws, placement, guesses."""

from __future__ import annotations

import numpy as np
import pytest

from rannpde.errors import InputError
from rannpde.network.features import RandomFeatures
from rannpde.network.laws import BoxUniform, IntegerFrequencies
from rannpde.pde.collocation.guess import Placement, first_guess, steepness
from rannpde.pde.collocation.subdomains import PointSampler, Subdomain, SubdomainNetwork, locate, split_box
from rannpde.pde.collocation.system import assemble
from rannpde.pde.collocation.tuning import CollocationTuning, PlacementTuning
from rannpde.pde.gauss_newton import GaussNewton
from rannpde.pde.zoo import ZOO, zoo

EPS = np.finfo(float).eps


class Rosenbrock:
    linear = False

    def residual(self, x):
        return np.array([10 * (x[1] - x[0] ** 2), 1 - x[0]])

    def linearise(self, x):
        return self.residual(x), np.array([[-20 * x[0], 10.0], [-1.0, 0.0]], order="F")


def test_the_loop_reaches_the_minimum_and_records_descent():
    outcome = GaussNewton(iterations=100).run(Rosenbrock(), np.array([-1.2, 1.0]))
    assert outcome.status.converged
    assert np.allclose(outcome.vector, 1.0)
    norms = [iteration.norm for iteration in outcome.steps]
    assert norms == sorted(norms, reverse=True)


class Logarithm:
    linear = False

    def residual(self, x):
        with np.errstate(invalid="ignore"):
            return np.log(x)

    def linearise(self, x):
        return self.residual(x), np.array([[1 / x[0]]], order="F")


def test_steps_that_leave_the_domain_are_shortened():
    outcome = GaussNewton().run(Logarithm(), np.array([20.0]))  # the full step goes to -40
    assert outcome.status.converged
    assert outcome.vector == pytest.approx([1.0])
    assert outcome.steps[0].step < 1
    with pytest.raises(InputError, match="guess"):
        GaussNewton().run(Logarithm(), np.array([-1.0]))


# ------------------------------------------------------------------------------------------------ the Jacobian


@pytest.mark.parametrize("name", [name for name in ZOO if name != "navier_stokes_lagrangian"])
def test_jacobian_is_the_derivative_of_the_residual(name):
    problem = zoo(name)
    rng = np.random.default_rng(0)
    scales = (2.0,) * problem.domain.dim
    law = IntegerFrequencies(scales, (1,)) if problem.periodic else BoxUniform(scales)
    activation = "cos" if problem.periodic else "tanh"
    features = RandomFeatures.sample(
        width=6, law=law, rng=rng, domain=problem.domain, activation=activation, constant=True
    )
    system = assemble(
        problem, (Subdomain(problem.domain.bounds, features),), PointSampler(20, rng, CollocationTuning())
    )
    vector = rng.uniform(0.1, 0.2, system.size)
    vector[features.columns - 1 :: features.columns] += 3.0  # keeps densities positive
    residual, jacobian = system.linearise(vector)
    assert np.array_equal(residual, system.residual(vector))
    direction = rng.standard_normal(system.size)
    step = 1e-6
    numeric = (system.residual(vector + step * direction) - system.residual(vector - step * direction)) / (2 * step)
    exact = jacobian @ direction
    # central differences: rounding eps·|F|/step and curvature step², relative to the largest row
    assert np.abs(numeric - exact).max() < 1e-7 * max(1.0, np.abs(exact).max(), np.abs(residual).max())


def test_the_first_step_reproduces_a_state_inside_the_span():
    problem = zoo("heat")
    rng = np.random.default_rng(0)
    features = RandomFeatures.sample(
        width=10, law=BoxUniform((1.0, 1.0)), rng=rng, domain=problem.domain, constant=True
    )
    subdomains = (Subdomain(problem.domain.bounds, features),)
    system = assemble(problem, subdomains, PointSampler(30, rng, CollocationTuning()))
    vector = rng.standard_normal(system.size)
    state = SubdomainNetwork(subdomains, (vector[:, None],))
    scaled, jacobian, right = system.first_step(state, {}, 10.0)
    # F is affine: J u₀ - F(u₀) = -F(0)
    assert np.allclose(right, -scaled.residual(np.zeros(system.size)), atol=1e-10)
    assert np.allclose(jacobian @ vector - right, scaled.residual(vector), atol=1e-10)


def test_conditions_are_balanced_against_the_equation():
    problem = zoo("nonlinear_poisson")
    rng = np.random.default_rng(0)
    features = RandomFeatures.sample(width=30, law=BoxUniform((2.0, 2.0)), rng=rng, domain=problem.domain)
    system = assemble(
        problem, (Subdomain(problem.domain.bounds, features),), PointSampler(30, rng, CollocationTuning())
    )
    scaled, jacobian, _ = system.first_step(first_guess(problem), {"sides": 2.0}, 10.0)
    lengths, top = {}, 0
    for rows in scaled.rows:
        lengths.setdefault(rows.name, []).append(np.square(jacobian[top : top + len(rows)]).sum(axis=1))
        top += len(rows)
    lengths = {name: np.sqrt(np.concatenate(parts).mean()) for name, parts in lengths.items()}
    assert lengths["equation"] == pytest.approx(1.0)
    assert lengths["sides"] == pytest.approx(20.0)  # ten times by rule, twice by the user


# --------------------------------------------------------------------------------------- subdomains and placement


def test_every_point_has_one_subdomain():
    domain = zoo("nonlinear_poisson").domain
    features = RandomFeatures.sample(width=2, law=BoxUniform((1.0, 1.0)), rng=0, domain=domain)
    subdomains = tuple(Subdomain(box, features) for box in split_box(domain, {"x": 2, "y": 3}))
    assert len(subdomains) == 6
    points = domain.sample(100, rng=0)
    for point, number in zip(points, locate(subdomains, points), strict=True):
        lower, upper = subdomains[number].bounds.T
        assert (lower <= point).all()
        assert (point <= upper).all()


def test_neurons_gather_at_a_front_and_move_with_it():
    problem = zoo("navier_stokes_lagrangian")
    exact, domain = problem.exact_solution, problem.domain
    rate, _ = steepness(exact, domain.sample(2000, rng=0), domain, PlacementTuning())
    assert rate.max() > 10 * np.median(rate)  # a corner 0.02 wide on a length of 10
    features = Placement(PlacementTuning(isotropic_fraction=0.0)).features(exact, domain, 400, np.random.default_rng(0))
    slopes = features.weights / features.halfwidth[:, None]
    steep = np.linalg.norm(features.weights, axis=0) > 10
    speeds = -slopes[0, steep] / slopes[1, steep]
    assert np.median(speeds) == pytest.approx(exact.functions["v"].function.speed, rel=1e-3)


@pytest.mark.parametrize("name", ["burgers", "porous_medium", "schroedinger", "navier_stokes_lagrangian"])
def test_moving_guesses_have_the_exact_time_derivative(name):
    problem = zoo(name)
    points = problem.domain.initial.sample(50, rng=0)
    index = (1,) + (0,) * (problem.domain.dim - 1)
    wanted = problem.exact_solution.derivative(points, index)
    found = first_guess(problem, moving=True).derivative(points, index)
    assert np.allclose(found, wanted, rtol=1e-8, atol=1e-8 * np.abs(wanted).max())
