"""Components of a displacement are judged as one vector, other fields each by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from draws import seeds
from rannpde.domains.domain import Box
from rannpde.pde.problem.conditions import On
from rannpde.pde.problem.problem import Problem
from rannpde.pde.solve import solve
from rannpde.pde.weak.displacement import is_displacement, judged_difference
from rannpde.pde.weak.form import weak_formulation
from rannpde.pde.weak.method import WeakCells

PLANE = ("(lam+2*mu)*u_xx + mu*u_yy + (lam+mu)*v_xy = 0", "mu*v_xx + (lam+2*mu)*v_yy + (lam+mu)*u_xy = 1")
SPACE = (
    "(lam+2*mu)*u_xx + mu*(u_yy + u_zz) + (lam+mu)*(v_xy + w_xz) = 0",
    "mu*(v_xx + v_zz) + (lam+2*mu)*v_yy + (lam+mu)*(u_xy + w_yz) = 1",
    "mu*(w_xx + w_yy) + (lam+2*mu)*w_zz + (lam+mu)*(u_xz + v_yz) = 0",
)


def judged_as_vector(equations: tuple[str, ...], lam: float = 1.25, mu: float = 0.8, **settings: Any) -> bool:
    """On a box that is held all round, so that no condition says how mixed derivatives are split."""
    box = Box(**dict(zip("xyz", [(0, 2)] * len(equations), strict=False)))
    held = {"rim": On("boundary", [f"{field} = 0" for field in "uvw"[: len(equations)]])}
    return is_displacement(weak_formulation(Problem(list(equations), box, held, {"lam": lam, "mu": mu}, **settings)))


@pytest.mark.parametrize("rng", seeds("elastic bodies", 1, 40))
def test_elastic_bodies_of_any_stiffness_and_unit_are_recognised(rng: int) -> None:
    generator = np.random.default_rng(rng)
    mu = float(10 ** generator.uniform(-6, 9))
    lam = mu * float(10 ** generator.uniform(-1, 6))
    assert judged_as_vector(PLANE, lam, mu)
    assert judged_as_vector(SPACE, lam, mu)
    assert judged_as_vector(PLANE, lam, mu, fields=("v", "u"))


def test_anisotropic_and_graded_bodies_are_recognised() -> None:
    fibres = ("7*u_xx + 2*u_yy + 3*v_xy = 0", "2*v_xx + 5*v_yy + 3*u_xy = 1")
    graded = (
        "d(exp(x)*(3*u_x + v_y), x) + d(exp(x)*(u_y + v_x), y) = 0",
        "d(exp(x)*(u_y + v_x), x) + d(exp(x)*(u_x + 3*v_y), y) = 1",
    )
    assert judged_as_vector(fibres)
    assert judged_as_vector(graded)


@pytest.mark.parametrize(
    "equations",
    [
        ("laplace(u) = v", "laplace(v) = u - 1"),
        ("laplace(u) + 0.3*laplace(v) = 1", "0.3*laplace(u) + laplace(v) = 0"),
        ("2*laplace(u) + 0.5*v_xy = 1", "laplace(v) + 0.1*u_xy = 0"),
        ("laplace(u) = 1", "laplace(v) = u", "laplace(w) = v"),
    ],
    ids=["reactions", "cross diffusion", "not symmetric", "a chain"],
)
def test_other_fields_have_sizes_of_their_own(equations: tuple[str, ...]) -> None:
    assert not judged_as_vector(equations)


def test_rubber_is_recognised_by_its_linearisation_at_rest() -> None:
    volume = "((1 + u_x)*(1 + v_y) - u_y*v_x)"
    factor = f"(lam*log({volume}) - mu)/{volume}"
    p, q = f"(mu*(1 + u_x) + {factor}*(1 + v_y))", f"(mu*u_y - {factor}*v_x)"
    r, s = f"(mu*v_x - {factor}*u_y)", f"(mu*(1 + v_y) + {factor}*(1 + u_x))"
    assert judged_as_vector((f"div({p}, {q}) = 0", f"div({r}, {s}) = 0"))


def test_a_difference_does_not_depend_on_the_frame_of_a_displacement() -> None:
    generator = np.random.default_rng(0)
    before, after = generator.normal(size=(2, 50, 2)) * [1.0, 1e-3]
    turned = np.array([[0.6, 0.8], [-0.8, 0.6]])
    plain = judged_difference(True, before, after)
    assert judged_difference(True, before @ turned, after @ turned) == pytest.approx(plain)
    assert judged_difference(False, before, after) >= plain


def test_a_bent_strip_is_judged_as_a_vector_and_says_so() -> None:
    """Across a strip under tension the displacement is the hundredth part of that along it."""
    lam, mu = 0.01, 1.0
    free = ["mu*(u_y + v_x) = 0", "(lam+2*mu)*v_y + lam*u_x = 0"]
    conditions = {
        "held": On("x=0", ["u = 0", "v = 0"]), "pulled": On("x=3", ["(lam+2*mu)*u_x + lam*v_y = 1", free[0]]),
        "free": On(("y=0", "y=1"), free),
    }  # fmt: skip
    equations = [PLANE[0], PLANE[1].replace("= 1", "= 0")]
    problem = Problem(equations, Box(x=(0, 3), y=(0, 1)), conditions, {"lam": lam, "mu": mu})
    solution = solve(problem, tol=1e-3, method=WeakCells())
    assert solution.converged
    assert "errors of u, v are those of one vector, a displacement" in solution.report()
    fine = solve(problem, tol=1e-6, method=WeakCells())
    points = problem.domain.sample(500, rng=3)
    gap, size = solution(points) - fine(points), fine(points)
    assert np.linalg.norm(gap) <= 1e-3 * np.linalg.norm(size)
