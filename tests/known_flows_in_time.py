"""Flows in time with closed forms: decaying vortices, oscillating channels, a plate that starts to move."""

import numpy as np

import rannpde as rp

EQUATIONS = {
    "x": "rho*(u_t + u*u_x + v*u_y) = -p_x + mu*laplace(u)",
    "y": "rho*(v_t + u*v_x + v*v_y) = -p_y + mu*laplace(v)",
    "mass": "u_x + v_y = 0",
}


def vortices(
    reynolds=20.0, unit=1.0, speed=1.0, density=1.0, corner=(0.3, 0.1), size=(1.7, 1.3), periods=0.5, open_side=False
):
    """Taylor and Green's vortices, which decay: velocities on the boundary, or a traction on its right side."""
    viscosity = speed * unit / reynolds
    x, y = f"(x/{unit!r})", f"(y/{unit!r})"
    decay = f"exp(-2*{viscosity / unit**2!r}*t)"
    u, v = f"{speed!r}*sin({x})*cos({y})*{decay}", f"-{speed!r}*cos({x})*sin({y})*{decay}"
    (x0, y0), (w, h) = (unit * np.array(one) for one in (corner, size))
    level = (np.sin(2 * (x0 + w) / unit) - np.sin(2 * x0 / unit)) * unit / w / 2
    level += (np.sin(2 * (y0 + h) / unit) - np.sin(2 * y0 / unit)) * unit / h / 2
    level = 0.0 if open_side else float(level)  # the mean of both cosines, which is taken away where nothing holds p
    p = f"{density * speed**2 / 4!r}*(cos(2*{x}) + cos(2*{y}) - ({level!r}))*{decay}**2"
    domain = rp.SpaceTime(t=(0, periods * unit / speed), x=(x0, x0 + w), y=(y0, y0 + h))
    conditions = {"start": rp.On("t=0", [f"u = {u}", f"v = {v}"])}
    held = [f"u = {u}", f"v = {v}"]
    if open_side:
        side = f"x={float(x0 + w)!r}"
        slopes = [f"{speed / unit!r}*cos({x})*cos({y})*{decay}", f"{speed / unit!r}*sin({x})*sin({y})*{decay}"]
        conditions["velocity"] = rp.On(f"boundary except {side}", held)
        conditions["open"] = rp.On(side, [f"mu*dn(u) - p*nx = mu*{slopes[0]} - ({p})", f"mu*dn(v) = mu*{slopes[1]}"])
    else:
        conditions["velocity"] = rp.On("boundary", held)
    numbers = {"rho": density, "mu": density * viscosity}
    return rp.Problem(EQUATIONS, domain, conditions, numbers, fields=("u", "v", "p"), exact={"u": u, "v": v, "p": p})


def womersley(number=4.0, periods=1.0, length=1.0):
    """A channel of the half-height 1 under the oscillating gradient cos t of the pressure, in its periodic state.

    number : Womersley's, the half-height over the depth of the viscous layers
    """
    viscosity = 1 / number**2
    root = complex(np.sqrt(1j / viscosity))
    a, b = root.real, root.imag
    # u = Re(-i e^{it} (1 - cosh(root y)/cosh(root)))
    bottom = np.cosh(root)
    c, d = float(bottom.real), float(bottom.imag)
    size = c * c + d * d
    real, imaginary = f"cosh({a!r}*y)*cos({b!r}*y)", f"sinh({a!r}*y)*sin({b!r}*y)"
    quotient = (f"(({c!r})*{real} + ({d!r})*{imaginary})/{size!r}", f"(({c!r})*{imaginary} - ({d!r})*{real})/{size!r}")
    u = f"(1 - {quotient[0]})*sin(t) - ({quotient[1]})*cos(t)"
    p = f"({length!r} - x)*cos(t)"
    domain = rp.SpaceTime(t=(0, 2 * np.pi * periods), x=(0, length), y=(-1, 1))
    conditions = {
        "start": rp.On("t=0", [f"u = {u}", "v = 0"]),
        "walls": rp.On(("y=-1", "y=1"), ["u = 0", "v = 0"]),
        "left": rp.On("x=0", ["p = " + f"{length!r}*cos(t)", "v = 0"]),
        "right": rp.On(f"x={length!r}", ["p = 0", "v = 0"]),
    }
    numbers = {"rho": 1.0, "mu": viscosity}
    exact = {"u": u, "v": "0", "p": p}
    return rp.Problem(EQUATIONS, domain, conditions, numbers, fields=("u", "v", "p"), exact=exact)


def flow_errors(solution, count=1500):
    """Relative errors of the velocity as a vector and of the pressure, in space and time."""
    points = solution.stated.domain.sample(count, rng=1)
    found, exact = solution(points), solution.stated.exact_solution(points)
    gaps = found - exact
    return [float(np.linalg.norm(gaps[:, part]) / np.linalg.norm(exact[:, part])) for part in ([0, 1], [2])]
