"""Further families: in time alone, on shapes, in many dimensions, flows, equations that are no sum of linear terms."""

from __future__ import annotations

from typing import Any

from honesty.cases import Draw, family, force, manufactured, motion, number, pick, place, profile, start, value_of
from rannpde.pde.problem.conditions import On, Periodic


@family
def motions(rng: Draw) -> dict[str, Any]:
    """Two equations of motion, with friction, in time alone."""
    exact = {
        "u": f"{motion(rng, 0.05)}*sin({number(rng, 1, 10)}*t)",
        "v": f"{motion(rng)} + cos({number(rng, 1, 10)}*t)",
    }
    strength = number(rng, 0.1, 20)
    first = force(pick(rng, "u_t - v", f"u_t - {strength}*(v - u)", "u_t - u*v"), exact, ("t",))
    second = force(pick(rng, f"v_t - {strength}*(1 - u**2)*v + u", "v_t + sin(u)", "v_t - u*(1 - v)"), exact, ("t",))
    return {
        "equations": {"first": first, "second": second}, "sides": {"t": (0.0, number(rng, 0.5, 3))}, "exact": exact,
        "conditions": start(exact, ("t",)),
    }  # fmt: skip


def rim(exact: str, coordinates: tuple[str, ...]) -> dict[str, On]:
    return {"rim": On("boundary", f"u = {value_of(exact, coordinates)}")}


@family
def shapes(rng: Draw) -> dict[str, Any]:
    """Stationary, on a disc, a plate with a hole, a slanted quadrangle, two shapes in one."""
    exact = f"{profile(rng, 'x', 0.2)}*{profile(rng, 'y', 0.2)}"
    residual = "laplace(u)" + pick(rng, "", f" + {number(rng, 1, 20)}*u", " - u**3", f" + {number(rng, 1, 30)}*u_x")
    sides = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
    shape = pick(rng, "disc", "plate", "slanted", "bean")
    return manufactured(
        residual, exact, sides, conditions=rim(exact, ("x", "y")), shape=shape, tol=number(rng, 1e-6, 1e-3)
    )


@family
def moving_shapes(rng: Draw) -> dict[str, Any]:
    """The same in time."""
    exact = f"{motion(rng, 0.2)}*{profile(rng, 'x', 0.3)}*{profile(rng, 'y', 0.3)}"
    residual = f"u_t - {number(rng, 0.05, 0.5)}*laplace(u) + {pick(rng, 'u', 'u_x', 'u**3')}"
    sides = {"t": (0.0, 1.0), "x": (0.0, 1.0), "y": (0.0, 1.0)}
    conditions = start({"u": exact}, tuple(sides)) | rim(exact, tuple(sides))
    shape = pick(rng, "disc", "plate", "slanted")
    return manufactured(residual, exact, sides, conditions=conditions, shape=shape, tol=number(rng, 1e-4, 1e-2))


@family
def many_dimensions(rng: Draw) -> dict[str, Any]:
    """Poisson in four to six dimensions: sums, ridges, bumps."""
    names = tuple("abcxyz"[: int(rng.integers(4, 7))])
    sums = " + ".join(f"{place(rng, 0.3, 1.0)}*{name}" for name in names)
    squares = " + ".join(f"({name} - {place(rng)})**2" for name in names)
    exact = pick(
        rng, f"sin({sums})", f"exp(-({squares})/2)", " + ".join(f"cos(2*{name})" for name in names), f"1/(2 + {sums})"
    )
    residual = "laplace(u)" + pick(rng, "", " - u", " - u**3")
    return manufactured(
        residual, exact, dict.fromkeys(names, (0.0, 1.0)), conditions=rim(exact, names), tol=number(rng, 1e-6, 1e-3)
    )


@family
def vortices(rng: Draw) -> dict[str, Any]:
    """Incompressible flow on a torus: decaying vortices that drift, with their pressure."""
    nu, drift = number(rng, 1e-3, 0.1), round(float(rng.uniform(-1, 1)), 2)
    k = 2 * int(rng.integers(1, 3))
    decay, moved = f"exp(-{2 * k**2}*{nu}*pi**2*t)", f"(x - ({drift})*t)"
    exact = {
        "u": f"({drift}) - cos({k}*pi*{moved})*sin({k}*pi*y)*{decay}",
        "v": f"sin({k}*pi*{moved})*cos({k}*pi*y)*{decay}",
        "p": f"-(cos({2 * k}*pi*{moved}) + cos({2 * k}*pi*y))/4*{decay}**2",
    }
    velocities = {name: exact[name] for name in ("u", "v")}
    return {
        "equations": {
            "x momentum": f"u_t + u*u_x + v*u_y + p_x = {nu}*laplace(u)",
            "y momentum": f"v_t + u*v_x + v*v_y + p_y = {nu}*laplace(v)",
            "mass": "u_x + v_y = 0",
        },
        "sides": {"t": (0.0, 0.5), "x": (0.0, 1.0), "y": (0.0, 1.0)},
        "conditions": start(velocities, ("t", "x", "y")) | {"x": Periodic("x"), "y": Periodic("y")},
        "exact": exact,
    }


@family
def bent(rng: Draw) -> dict[str, Any]:
    """Equations that are not sums of a linear part and a little more: none has a linearisation at zero."""
    exact = f"(2 + x + {place(rng)}*sin({number(rng, 0.5, 3)}*x))"
    residual = pick(rng, "u*u_xx", "u_xx*u_x", "d(sqrt(u_x**2)*u_x, x)", "u_xx*u**2 + u_x*u")
    value = value_of(exact, ("x",))
    return manufactured(residual, exact, {"x": (0.0, 1.0)}, conditions={"ends": On("boundary", f"u = {value}")})
