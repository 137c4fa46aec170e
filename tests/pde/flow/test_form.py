"""Which statements are incompressible flows, and what a reader is told about the others."""

import numpy as np
import pytest

import rannpde as rp
from rannpde.pde.flow.form import NoFlow
from rannpde.pde.flow.recognition import flow_formulation

BOX = rp.Box(x=(0, 1), y=(0, 1))
WALLS = {"walls": rp.On("boundary", ["u = 0", "v = 0"])}
MASS = "u_x + v_y = 0"
STATEMENTS = {
    "written out": ["u*u_x + v*u_y + p_x = 0.1*(u_xx + u_yy)", "u*v_x + v*v_y + p_y = 0.1*(v_xx + v_yy)", MASS],
    "other side": ["0.1*laplace(u) - u*u_x - v*u_y - p_x = 0", "0.1*laplace(v) - u*v_x - v*v_y - p_y = 0", MASS],
    "a factor": ["10*u*u_x + 10*v*u_y + 10*p_x = laplace(u)", "10*u*v_x + 10*v*v_y + 10*p_y = laplace(v)", MASS],
    "conservative": [
        "d(u*u, x) + d(u*v, y) + p_x = 0.1*laplace(u)", "d(u*v, x) + d(v*v, y) + p_y = 0.1*laplace(v)", MASS,
    ],
    "stress": [
        "u*u_x + v*u_y + p_x = 0.1*(2*u_xx + u_yy + v_xy)", "u*v_x + v*v_y + p_y = 0.1*(v_xx + 2*v_yy + u_xy)", MASS,
    ],
    "mass first": ["3*u_x + 3*v_y = 0", "u*v_x + v*v_y + p_y = 0.1*laplace(v)", "u*u_x + v*u_y + p_x = 0.1*laplace(u)"],
}  # fmt: skip


@pytest.mark.parametrize("equations", STATEMENTS.values(), ids=STATEMENTS)
def test_ways_to_state_one_flow(equations):
    form = flow_formulation(rp.Problem(equations, BOX, WALLS, fields=("u", "v", "p")))
    assert (form.velocity, form.pressure) == (("u", "v"), "p")
    assert form.viscosity == pytest.approx(0.1, rel=1e-12)
    rng = np.random.default_rng(0)
    points, values, slopes = rng.random((5, 2)), rng.normal(size=(5, 2)), rng.normal(size=(5, 2, 2))
    slopes[:, 1, 1] = -slopes[:, 0, 0]
    found = form.inertia(points, values, slopes)
    assert found.value == pytest.approx(np.einsum("mj,mfj->mf", values, slopes), rel=1e-12)
    assert found.advection == pytest.approx(values)
    assert found.by_velocity == pytest.approx(slopes)
    assert found.change == pytest.approx(np.broadcast_to(np.eye(2), (5, 2, 2)))
    half = form.inertia(points, values, slopes, 0.5)
    assert half.value == pytest.approx(0.5 * found.value)


def test_vectors_and_density():
    equations = {"momentum": "rho*dot(grad(u), u) - mu*laplace(u) + grad(p) = [0, -9.81*rho]", "mass": "div(u) = 0"}
    sides = {"wall": rp.On("boundary except x=1", "u = 0"), "open": rp.On("x=1", "mu*dn(u) - p*n = 0")}
    problem = rp.Problem(equations, BOX, sides, {"rho": 2.0, "mu": 0.3}, fields={"u": 2, "p": 1})
    form = flow_formulation(problem)
    assert form.velocity == ("u1", "u2")
    assert form.transposed == 0
    assert form.viscosity == pytest.approx(0.3)
    rest = form.inertia(np.zeros((1, 2)), np.zeros((1, 2)), np.zeros((1, 2, 2)))
    assert rest.value == pytest.approx(np.array([[0.0, 9.81 * 2]]))


@pytest.mark.parametrize(
    ("stated", "transposed"),
    [
        (["0.1*u_x - p = 0", "0.1*v_x = 0"], 0),
        (["0.2*u_x - p = 1", "0.1*(v_x + u_y) = 2"], 1),
        (["p - 0.2*u_x = 1", "v = 0"], 1),
        (["u = 0", "0.1*dn(v) = 0"], 0),
        (["p = 3", "v = 0"], 0),
    ],
)
def test_tractions(stated, transposed):
    sides = {"wall": rp.On("boundary except x=1", ["u = 0", "v = 0"]), "open": rp.On("x=1", stated)}
    form = flow_formulation(rp.Problem(STATEMENTS["written out"], BOX, sides, fields=("u", "v", "p")))
    assert form.transposed == transposed
    numbers = [k for k, term in enumerate(form.terms) if term.name.startswith("open")]
    found = form.rows(numbers, np.array([[1.0, 0.4]]), np.array([[1.0, 0.0]]))
    if "p = 3" in stated:
        assert found.natural == pytest.approx(np.array([[-3.0, 0.0]]))
    if "0.2*u_x - p = 1" in stated:
        assert found.natural == pytest.approx(np.array([[1.0, 2.0]]))


REFUSED = {
    "source of mass": (["-laplace(u) + p_x = 0", "-laplace(v) + p_y = 0", "u_x + v_y = 1"], WALLS),
    "is not constant": (["-(1 + x)*laplace(u) + p_x = 0", "-(1 + x)*laplace(v) + p_y = 0", MASS], WALLS),
    "signs": (["laplace(u) + p_x = 0", "laplace(v) + p_y = 0", MASS], WALLS),
    "different viscosities": (["-laplace(u) + p_x = 0", "-2*laplace(v) + p_y = 0", MASS], WALLS),
    "different velocities": (["u*u_x - laplace(u) + p_x = 0", "v*v_y - laplace(v) + p_y = 0", MASS], WALLS),
    "divergence of a velocity": (["-laplace(u) + p_x = 0", "-laplace(v) + p_y = 0", "laplace(p) = 0"], WALLS),
    "no multiple of the Laplacian": (["-u_xx - 2*u_yy + p_x = 0", "-laplace(v) + p_y = 0", MASS], WALLS),
    "no traction": (
        ["-laplace(u) + p_x = 0", "-laplace(v) + p_y = 0", MASS],
        {"a": rp.On("boundary except x=1", ["u = 0", "v = 0"]), "b": rp.On("x=1", ["u_y + 3*u_x - p = 0", "v = 0"])},
    ),
    "beside those of": (["u*u_x + v*v_x - laplace(u) + p_x = 0", "u*u_y + v*v_y - laplace(v) + p_y = 0", MASS], WALLS),
}


@pytest.mark.parametrize("part", REFUSED)
def test_what_is_no_flow_is_told(part):
    equations, sides = REFUSED[part]
    problem = rp.Problem(equations, BOX, sides, fields=("u", "v", "p"), incomplete=True)
    with pytest.raises(NoFlow, match=part):
        flow_formulation(problem)
    (reason,) = rp.Flow().obstacles(problem)
    assert part in reason
    with pytest.raises(rp.InputError, match="not by flow"):
        rp.solve(problem, method="flow")


def test_other_domains_and_conditions_are_refused():
    lines = rp.Problem("laplace(u) = 0", BOX, {"boundary": "u = 0"})
    assert "a pressure" in rp.Flow().obstacles(lines)[0]
    slanted = {"a": rp.On("boundary except x=1", ["u = 0", "v = 0"]), "b": rp.On("x=1", ["u + v = 0", "dn(u) - p = 0"])}
    stokes = ["-laplace(u) + p_x = 0", "-laplace(v) + p_y = 0", MASS]
    assert "neither along" in rp.Flow().obstacles(rp.Problem(stokes, BOX, slanted, fields=("u", "v", "p")))[0]
    with pytest.raises(rp.InputError, match="degree"):
        rp.Flow(degree=40)
