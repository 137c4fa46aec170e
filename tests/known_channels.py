"""Channels in other places, units and directions, whose flows are parabolas or straight lines: whole fields vanish."""

import numpy as np

import rannpde as rp

EQUATIONS = {
    "x": "u*u_x + v*u_y = -p_x + nu*laplace(u)",
    "y": "u*v_x + v*v_y = -p_y + nu*laplace(v)",
    "mass": "u_x + v_y = 0",
}


def channel(reynolds, unit=1.0, speed=1.0, angle=0.0, moving=False, corner=(0.0, 0.0), length=2.0):
    """A channel of the height ``unit`` turned by an angle, with its exact flow: Poiseuille's, or Couette's if the upper
    wall moves, which has no pressure at all. It ends in an open side."""
    nu = float(f"{speed * unit / reynolds:.6g}")
    c, s = float(np.cos(angle)), float(np.sin(angle))
    x0, y0 = (unit * np.array(corner)).tolist()
    along = f"(({c!r})*(x - ({x0!r})) + ({s!r})*(y - ({y0!r})))"
    across = f"(({c!r})*(y - ({y0!r})) - ({s!r})*(x - ({x0!r})))"
    profile = f"{speed!r}*{across}/{unit!r}" if moving else f"4*{speed!r}*{across}*({unit!r} - {across})/{unit!r}**2"
    pressure = "0" if moving else f"8*{nu!r}*{speed!r}/{unit!r}**2*({length * unit!r} - {along})"
    corners = unit * np.array([[0, 0], [length, 0], [length, 1], [0, 1]])
    vertices = [(x0 + c * a - s * b, y0 + s * a + c * b) for a, b in corners]
    domain = rp.Polygon(vertices, edges=("lower", "out", "upper", "in"))
    velocity = [f"u = ({c!r})*({profile})", f"v = ({s!r})*({profile})"]
    sides = {
        "held": rp.On(("lower", "upper", "in"), velocity),
        "open": rp.On("out", ["nu*dn(u) - p*nx = 0", "nu*dn(v) - p*ny = 0"]),
    }
    exact = {"u": f"({c!r})*({profile})", "v": f"({s!r})*({profile})", "p": pressure}
    return rp.Problem(EQUATIONS, domain, sides, {"nu": nu}, fields=("u", "v", "p"), exact=exact)


def flow_error(solution, count=2000):
    """Relative errors of the velocity as a vector and of the pressure: of one that vanishes beside the viscous stress."""
    problem = solution.stated
    points = problem.domain.sample(count, rng=1)
    found, exact = solution(points), problem.exact_solution(points)
    gaps = found - exact
    velocity = np.linalg.norm(gaps[:, :2]) / np.linalg.norm(exact[:, :2])
    size = np.linalg.norm(exact[:, 2])
    if not size:
        slopes = [solution.function.derivative(points, index)[:, :2] for index in ((1, 0), (0, 1))]
        size = problem.parameters["nu"] * np.linalg.norm(np.stack(slopes))
    return float(velocity), float(np.linalg.norm(gaps[:, 2]) / size)


def random_channel(rng):
    """A channel in random units, place and direction, with a Reynolds number from 0.1 to 1,000."""
    return channel(
        10.0 ** rng.uniform(-1, 3), 10.0 ** rng.uniform(-3, 3), 10.0 ** rng.uniform(-2, 2),
        float(rng.choice([0.0, 0.5 * np.pi, rng.uniform(0, 2 * np.pi)])), bool(rng.integers(2)),
        tuple(rng.uniform(-2, 2, 2).round(2)), round(float(rng.uniform(1, 3)), 1),
    )  # fmt: skip
