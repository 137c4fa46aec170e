"""Scalars that a flow carries: recognition, exact solutions in many settings, natural convection, fluxes."""

import numpy as np
import pytest

import rannpde as rp
from draws import draws
from known_convection import convection_errors, heated_cavity, made_convection
from rannpde.pde.flow.assembly import FlowSystem
from rannpde.pde.flow.form import NoFlow
from rannpde.pde.flow.history import FlowHistory
from rannpde.pde.flow.newton import flow_distance
from rannpde.pde.flow.recognition import flow_formulation
from rannpde.pde.flow.solver import FlowDiscretisation
from rannpde.pde.weak.settings import WeakSettings

SETTINGS = [  # shape, unit, tolerance
    ("box", 1.0, 1e-4), ("disc", 0.01, 1e-2), ("box", 0.001, 1e-8), ("polygon", 1000.0, 1e-3), ("polygon", 1.0, 1e-2),
    ("box", 37.0, 1e-2), ("disc", 1.0, 1e-2), ("polygon", 0.1, 1e-5), ("box", 1e4, 1e-6), ("disc", 50.0, 1e-3),
]  # fmt: skip
STEADY = ["u*u_x + v*u_y + p_x = laplace(u)", "u*v_x + v*v_y + p_y = laplace(v) + 7*T", "u_x + v_y = 0"]
WALLS = rp.On("boundary", ["u = 0", "v = 0"])


def stated(heat, conditions, momentum=STEADY):
    fields = ("u", "v", "p", "T")
    return rp.Problem([*momentum, heat], rp.Box(x=(0, 1), y=(0, 1)), {"walls": WALLS, **conditions}, fields=fields)


@pytest.mark.parametrize("seed", range(draws(1, 10)))
def test_made_solutions(seed):
    """Buoyancy in any direction, reactions, conditions of all kinds, cut cells, units: right, or not converged."""
    shape, unit, tol = SETTINGS[seed]
    problem, exact = made_convection(np.random.default_rng(seed), shape, unit)
    solution = rp.solve(problem, tol=tol, method="flow", seconds=60)
    errors = convection_errors(solution, exact)
    assert max(errors) <= (tol if solution.converged else 3 * solution.estimate)
    assert solution.converged or shape == "disc" or tol < 1e-7  # where pressures converge slowly, or level off
    assert max(errors[0], *errors[2:]) <= 1e-4


def test_recognised():
    problem = made_convection(np.random.default_rng(0))[0]
    form = flow_formulation(problem)
    assert (form.velocity, form.pressure, form.scalar_names) == (("u", "v"), "p", ("T", "c"))
    assert all(one.diffusivity > 0 for one in form.scalars)
    told = " ".join(form.described())
    assert "carries T" in told
    assert "which acts on the flow" in told
    assert "which does not act on the flow" in told


@pytest.mark.parametrize(
    ("heat", "conditions", "reason"),
    [
        (
            "u*T_x + v*T_y = laplace(T)",
            {"T": rp.On("boundary", "dn(T) = 0")},
            "no condition determines the level of 'T'",
        ),
        ("u*T_x + v*T_y = (1 + x)*laplace(T)", {"T": rp.On("boundary", "T = x")}, "diffusivity of 'T'.*not constant"),
        ("u*T_x + v*T_y = T_xx + 2*T_yy", {"T": rp.On("boundary", "T = x")}, "no multiple of the Laplacian of 'T'"),
        ("T*T_x + v*T_y = laplace(T)", {"T": rp.On("boundary", "T = x")}, "depends on more than the flow"),
        ("u*T_x + u_x**2 = laplace(T)", {"T": rp.On("boundary", "T = x")}, "first derivatives of 'u'"),
        ("u*T_x + p = laplace(T)", {"T": rp.On("boundary", "T = x")}, "or the pressure 'p'"),
        ("u*T_x + v*T_y = laplace(T)", {"T": rp.On("boundary", "T + u = x")}, "several fields"),
        ("u*T_x + v*T_y = laplace(T)", {"T": rp.On("boundary", "T + T_x = x")}, "no flux along the normal"),
    ],
)
def test_what_is_none(heat, conditions, reason):
    with pytest.raises(NoFlow, match=reason):
        flow_formulation(stated(heat, conditions))


def test_a_side_without_a_condition_is_refused():
    """Nothing is insulated in silence."""
    problem = stated("u*T_x + v*T_y = laplace(T)", {"T": rp.On(("x=0", "x=1", "y=1", "y=0 where x < 0.5"), "T = x")})
    (reason,) = rp.Flow().obstacles(problem)
    assert "conditions hold at (1, 0)" in reason


def test_newton_is_quadratic():
    """The tangent of flow and scalars together is exact, upwinding included."""
    form = flow_formulation(heated_cavity(1e3))
    rough = FlowDiscretisation(form, 1e-2, WeakSettings(), np.random.default_rng(0), lambda: None, 5)
    system = FlowSystem(rough.cells(rough.first().tree, 5, np.random.default_rng(1)))
    states = [system.at(0.0).solve(system.rest())]
    for _ in range(9):
        states.append(system.solve(states[-1]))
    steps = np.array([flow_distance(system.local, states[-1], one) for one in states[:-1]])
    near = np.flatnonzero((steps[:-1] < 0.1) & (steps[1:] > 1e-11))
    assert len(near) >= 2
    assert (steps[near + 1] <= 30 * steps[near] ** 2).all()


def test_natural_convection():
    """Nusselt's number and largest velocities of the heated cavity, from its plain statement."""
    solution = rp.solve(heated_cavity(1e3), tol=1e-3)
    assert solution.converged
    assert solution.method.name == "flow"
    warm, cold = (solution.integral("dn(T)", on=side) for side in ("x=0", "x=1"))
    assert warm.how == "the weak residual"
    assert abs(float(warm) - 1.1177897) <= warm.bound < 1e-3
    assert float(warm) == pytest.approx(-float(cold), rel=1e-9)
    line = np.linspace(0, 1, 2001)
    middle = np.full(len(line), 0.5)
    found = solution(np.stack([middle, line], 1))[:, 0].max(), solution(np.stack([line, middle], 1))[:, 1].max()
    assert found == pytest.approx((3.649, 3.697), abs=1e-3)
    again = FlowHistory.from_table(solution.history.to_table())
    assert again == solution.history


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rayleigh", "nusselt", "u", "v"),
    [(1e4, 2.2448158, 16.18333, 19.62822), (1e5, 4.521636, 34.7406, 68.6347), (1e6, 8.825201, 64.8346, 220.5645)],
)
def test_strong_convection(rayleigh, nusselt, u, v):
    """Converged values of tighter tolerances; the last are those of Le Quéré (1991): 8.8252, 64.83, 220.6."""
    solution = rp.solve(heated_cavity(rayleigh, level=293.0), tol=1e-3)
    assert solution.converged
    flux = solution.integral("dn(T)", on="x=0")
    assert abs(float(flux) - nusselt) <= max(flux.bound, 1e-6)
    assert float(solution.maximum("u", on="x=0.5")) == pytest.approx(u, rel=1e-3)
    assert float(solution.maximum("v", on="y=0.5")) == pytest.approx(v, rel=1e-3)


def test_a_still_fluid():
    """Heated from above nothing moves; the report says that other flows may exist where that is unstable."""
    solution = rp.solve(heated_cavity(1e4, hot="y=1", cold="y=0"), tol=1e-3)
    assert solution.converged
    u, v, _, warmth = solution([[0.3, 0.25]])[0]
    assert np.hypot(u, v) < 1e-6
    assert warmth == pytest.approx(0.25, abs=1e-6)
    assert "the fluid is at rest" in str(solution.report())


def test_a_scalar_that_does_not_act_back():
    """A concentration in Poiseuille's flow, with a flux out of the open side, is that of the weak form alone."""
    sides = {"in": rp.On("x=0", "c = 1 + y"), "walls": rp.On(("y=0", "y=1"), "dn(c) = 0.3 - c"),
             "out": rp.On("x=2", "dn(c) = 0")}  # fmt: skip
    box = rp.Box(x=(0, 2), y=(0, 1))
    alone = rp.solve(
        rp.Problem("y*(1 - y)*c_x = 0.05*laplace(c) - 0.1*c", box, sides, fields=("c",)), tol=1e-6, method="weak"
    )
    flow = {"held": rp.On(("x=0", "y=0", "y=1"), ["u = y*(1 - y)", "v = 0"]),
            "open": rp.On("x=2", ["0.2*dn(u) - p*nx = 0", "dn(v) = 0"])}  # fmt: skip
    equations = ["u*u_x + v*u_y + p_x = 0.2*laplace(u)", "u*v_x + v*v_y + p_y = 0.2*laplace(v)", "u_x + v_y = 0",
                 "u*c_x + v*c_y = 0.05*laplace(c) - 0.1*c"]  # fmt: skip
    conditions = flow | {f"{name} of c": one for name, one in sides.items()}
    both = rp.solve(rp.Problem(equations, box, conditions, fields=("u", "v", "p", "c")), tol=1e-4)
    assert both.converged
    assert both.method.name == "flow"
    points = box.sample(500, rng=3)
    gap = both(points)[:, 3] - alone(points)
    assert np.linalg.norm(gap) < 1e-4 * np.linalg.norm(alone(points))
