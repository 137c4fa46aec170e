"""Published numbers as outputs of solutions: value, bound, true error, seconds of the processor.

python benchmarks/outputs.py              # all cases
python benchmarks/outputs.py torsion T4   # some
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import process_time
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

import rannpde as rp


@dataclass(frozen=True)
class PublishedCase:
    """A problem with outputs, the published values of these, and what is asked of the solver."""

    problem: rp.Problem
    published: dict[str, float]
    tol: Any
    method: str | None = None
    source: str = ""
    printed: dict[str, float] = field(default_factory=dict)
    """Half a unit of the last printed digit, where a value was published with few."""


def torsion() -> PublishedCase:
    """-Δu = 1 on the unit square: the torsion constant is 4 ∫ u (Timoshenko and Goodier, 1970)."""
    square = rp.Box(x=(0, 1), y=(0, 1))
    problem = rp.Problem("laplace(u) = -1", square, {"boundary": "u = 0"}, outputs={"stiffness": "4*u"})
    return PublishedCase(problem, {"stiffness": 0.14057701495515551}, {"stiffness": 1e-10})


def l_shape() -> PublishedCase:
    """-Δu = 1 on the L-shape: the integral of u."""
    shape = rp.Polygon([(-1, -1), (0, -1), (0, 0), (1, 0), (1, 1), (-1, 1)])
    problem = rp.Problem("laplace(u) = -1", shape, {"boundary": "u = 0"}, outputs={"volume": "u"})
    return PublishedCase(problem, {"volume": 0.21407580269}, 1e-9, printed={"volume": 5e-12})


def harmonic_measure() -> PublishedCase:
    """Brownian motion from the middle of a 10 × 1 box ends at one of the short sides (SIAM hundred-digit challenge)."""
    box = rp.Box(x=(0, 10), y=(0, 1))
    sides = {"ends": rp.On(("x=0", "x=10"), "u = 1"), "rest": rp.On(("y=0", "y=1"), "u = 0")}
    problem = rp.Problem("laplace(u) = 0", box, sides, outputs={"probability": "u(5, 0.5)"})
    return PublishedCase(problem, {"probability": 3.837587979251226e-7}, {"probability": 1e-9})


def hot_plate() -> PublishedCase:
    """A plate at 0, one side of which is at 5 from the start on: when the centre has 1 (the same challenge)."""
    plate = rp.SpaceTime(t=(0, 1), x=(-1, 1), y=(-1, 1))
    sides = {
        "start": rp.On("t=0", "u = 0"),
        "hot": rp.On("x=1", "u = 5"),
        "cold": rp.On("boundary except x=1", "u = 0"),
    }
    problem = rp.Problem("u_t = laplace(u)", plate, sides, outputs={"time": "u(0, 0) = 1"})
    return PublishedCase(problem, {"time": 0.4240113870336883}, {"time": 1e-8})


def permeability() -> PublishedCase:
    """Flow through square ducts of width 1: the mean velocity is 1/(2 f Re), with f Re = 14.22708 (Shah, London)."""
    square = rp.Box(x=(0, 1), y=(0, 1))
    outputs = {"friction": rp.Output("w", kind="mean")}
    problem = rp.Problem("laplace(w) = -1", square, {"boundary": "w = 0"}, outputs=outputs)
    return PublishedCase(problem, {"friction": 0.5 / 14.22708}, 1e-8, printed={"friction": 1e-8})


def capacitance_inside() -> PublishedCase:
    """The same through the inner square, at whose corner the field is infinite, by the weak residual."""
    case = capacitance()
    inner = {"capacitance": rp.Output("4*dn(u)", on=("inner.x=1", "inner.y=1"))}
    problem = rp.Problem("laplace(u) = 0", case.problem.domain, case.problem.conditions, outputs=inner)
    return PublishedCase(problem, case.published, 1e-6, method="weak")


def nafems_t4() -> PublishedCase:
    """NAFEMS T4: heat through a slab with convection; the temperature at E."""
    slab = rp.Box(x=(0, 0.6), y=(0, 1))
    sides = {
        "base": rp.On("y=0", "T = 100"),
        "insulated": rp.On("x=0", "dn(T) = 0"),
        "convection": rp.On(("x=0.6", "y=1"), "52*dn(T) + 750*T = 0"),
    }
    problem = rp.Problem("laplace(T) = 0", slab, sides, outputs={"E": "T(0.6, 0.2)"})
    return PublishedCase(problem, {"E": 18.25}, {"E": 1e-6}, printed={"E": 0.005})


def plane_stress(young: float, poisson: float) -> tuple[dict[str, str], str, str, str]:
    """Equations of a displacement (u, v), and the stresses, of plane stress."""
    mu, lam = young / 2 / (1 + poisson), young * poisson / (1 - poisson**2)
    sxx = f"({lam + 2 * mu!r}*u_x + {lam!r}*v_y)"
    syy = f"({lam!r}*u_x + {lam + 2 * mu!r}*v_y)"
    sxy = f"({mu!r}*(u_y + v_x))"
    return {"x": f"div({sxx}, {sxy}) = 0", "y": f"div({sxy}, {syy}) = 0"}, sxx, syy, sxy


def tractions(sxx: str, syy: str, sxy: str, x: str, y: str) -> list[str]:
    return [f"{sxx}*nx + {sxy}*ny = {x}", f"{sxy}*nx + {syy}*ny = {y}"]


def nafems_le1() -> PublishedCase:
    """NAFEMS LE1: an elliptic membrane under outward pressure; the stress at the tip of its hole."""
    equations, sxx, syy, sxy = plane_stress(210e3, 0.3)
    ring = rp.Ellipse((0, 0), (3.25, 2.75), name="outer") - rp.Ellipse((0, 0), (2, 1), name="inner")
    sides = {
        "left": rp.On("x=0", ["u = 0", f"{sxy} = 0"]),
        "below": rp.On("y=0", ["v = 0", f"{sxy} = 0"]),
        "outer": rp.On("outer", tractions(sxx, syy, sxy, "10*nx", "10*ny")),
        "inner": rp.On("inner", tractions(sxx, syy, sxy, "0", "0")),
    }
    quarter = ring & rp.Box(x=(0, 5), y=(0, 5))
    problem = rp.Problem(equations, quarter, sides, outputs={"stress": rp.Output(syy, at=(2, 0))})
    return PublishedCase(problem, {"stress": 92.7}, 1e-6, printed={"stress": 0.05})


def stress_concentration() -> PublishedCase:
    """A hole in a wide plate under tension (Kirsch): the tractions of the exact field on a ring around it."""
    equations, sxx, syy, sxy = plane_stress(1.0, 0.3)
    q, c = "(1/(x**2 + y**2))", "((x**2 - y**2)/(x**2 + y**2))"
    s = "(2*x*y/(x**2 + y**2))"
    c4, s4 = f"({c}**2 - {s}**2)", f"(2*{s}*{c})"
    kxx = f"(1 - {q}*(1.5*{c} + {c4}) + 1.5*{q}**2*{c4})"
    kyy = f"(-{q}*(0.5*{c} - {c4}) - 1.5*{q}**2*{c4})"
    kxy = f"(-{q}*(0.5*{s} + {s4}) + 1.5*{q}**2*{s4})"
    plate = rp.Ball((0, 0), 4, name="rim") - rp.Ball((0, 0), 1, name="hole")
    sides = {
        "left": rp.On("x=0", ["u = 0", f"{sxy} = 0"]),
        "below": rp.On("y=0", ["v = 0", f"{sxy} = 0"]),
        "hole": rp.On("hole", tractions(sxx, syy, sxy, "0", "0")),
        "rim": rp.On("rim", tractions(sxx, syy, sxy, f"{kxx}*nx + {kxy}*ny", f"{kxy}*nx + {kyy}*ny")),
    }
    quarter = plate & rp.Box(x=(0, 9), y=(0, 9))
    problem = rp.Problem(equations, quarter, sides, outputs={"factor": rp.Output(sxx, at=(0, 1))})
    return PublishedCase(problem, {"factor": 3.0}, 1e-8)


def elliptic_hole(a: float, b: float) -> dict[str, Callable[..., Any]]:
    """Stresses of a wide plate with an elliptic hole under the tension 1 along y, by Muskhelishvili's potentials."""
    size, m, focus = (a + b) / 2, (a - b) / (a + b), np.sqrt(a**2 - b**2)

    def both(x: Any, y: Any) -> tuple[Any, Any]:
        z = np.asarray(x) + 1j * np.asarray(y)
        t = (z + np.sqrt(z - focus) * np.sqrt(z + focus)) / (2 * size)  # the exterior of the unit circle
        map1, map2 = size * (1 - m / t**2), 2 * size * m / t**3
        phi1, phi2 = size / 4 * (1 + (2 + m) / t**2), -size / 2 * (2 + m) / t**3
        psi1 = size / 2 * (1 - 1 / (m * t**2) + (1 + m**2) * (1 + m) / m * (t**2 + m) / (t**2 - m) ** 2)
        slope = (phi2 * map1 - phi1 * map2) / map1**2
        return 4 * (phi1 / map1).real, 2 * (np.conj(z) * slope / map1 + psi1 / map1)

    return {
        "kxx": lambda x, y: (both(x, y)[0] - both(x, y)[1].real) / 2,
        "kyy": lambda x, y: (both(x, y)[0] + both(x, y)[1].real) / 2,
        "kxy": lambda x, y: both(x, y)[1].imag / 2,
    }


def ellipse_stress() -> PublishedCase:
    """An elliptic hole in a wide plate under tension across it (Inglis): 1 + 2a/b at its end."""
    equations, sxx, syy, sxy = plane_stress(1.0, 0.3)
    a, b = 2.0, 1.0
    plate = rp.Ball((0, 0), 4, name="rim") - rp.Ellipse((0, 0), (a, b), name="hole")
    far = tractions(sxx, syy, sxy, "kxx(x, y)*nx + kxy(x, y)*ny", "kxy(x, y)*nx + kyy(x, y)*ny")
    sides = {
        "left": rp.On("x=0", ["u = 0", f"{sxy} = 0"]),
        "below": rp.On("y=0", ["v = 0", f"{sxy} = 0"]),
        "hole": rp.On("hole", tractions(sxx, syy, sxy, "0", "0")),
        "rim": rp.On("rim", far),
    }
    quarter = plate & rp.Box(x=(0, 9), y=(0, 9))
    outputs = {"factor": rp.Output(syy, at=(a, 0))}
    problem = rp.Problem(equations, quarter, sides, functions=elliptic_hole(a, b), outputs=outputs)
    return PublishedCase(problem, {"factor": 1 + 2 * a / b}, {"factor": 1e-6})


def capacitance() -> PublishedCase:
    """A square in a square of twice its size: the flux through the outer one, over the permittivity."""
    line = rp.Box(x=(-2, 2), y=(-2, 2)) - rp.Box(x=(-1, 1), y=(-1, 1), name="inner")
    quarter = line & rp.Box(x=(0, 2), y=(0, 2))
    sides = {
        "inner": rp.On(("inner.x=1", "inner.y=1"), "u = 1"),
        "outer": rp.On(("x=2", "y=2"), "u = 0"),
        "cuts": rp.On(("x=0", "y=0"), "dn(u) = 0"),
    }
    outputs = {"capacitance": rp.Output("-4*dn(u)", on=("x=2", "y=2"))}
    return PublishedCase(rp.Problem("laplace(u) = 0", quarter, sides, outputs=outputs),
                         {"capacitance": 10.23409256936805}, 1e-8)  # fmt: skip


def conductivity() -> PublishedCase:
    """Insulating discs of radius 1/2 in a square lattice of spacing 2: the effective conductivity (Rayleigh, 1892)."""
    cell = rp.Box(x=(0, 1), y=(0, 1)) - rp.Ball((0, 0), 0.5, name="disc")
    sides = {
        "left": rp.On("x=0", "u = 0"),
        "right": rp.On("x=1", "u = 1"),
        "rest": rp.On("boundary except x=0, x=1", "dn(u) = 0"),
    }
    outputs = {"conductivity": rp.Output("dn(u)", on="x=1")}
    return PublishedCase(rp.Problem("laplace(u) = 0", cell, sides, outputs=outputs), {}, 1e-8)  # Rayleigh: 0.67162


def natural_convection(rayleigh: float, published: dict[str, float]) -> PublishedCase:
    """A square cavity heated from the side (de Vahl Davis, 1983): largest velocities on the middle lines."""
    equations = {
        "x": "u*u_x + v*u_y = -p_x + Pr*laplace(u)",
        "y": "u*v_x + v*v_y = -p_y + Pr*laplace(v) + Ra*Pr*T",
        "mass": "u_x + v_y = 0",
        "heat": "u*T_x + v*T_y = laplace(T)",
    }
    sides = {
        "walls": rp.On("boundary", ["u = 0", "v = 0"]),
        "hot": rp.On("x=0", "T = 1"),
        "cold": rp.On("x=1", "T = 0"),
        "insulated": rp.On(("y=0", "y=1"), "dn(T) = 0"),
        "pressure": rp.Data([[0.5, 0.5]], [0.0], "p"),
    }
    outputs = {
        "u": rp.Output("u", on="x=0.5", kind="maximum"),
        "v": rp.Output("v", on="y=0.5", kind="maximum"),
        "Nusselt": rp.Output("-T_x", on="x=0"),
    }
    square = rp.Box(x=(0, 1), y=(0, 1))
    problem = rp.Problem(equations, square, sides, parameters={"Ra": rayleigh, "Pr": 0.71}, outputs=outputs)
    return PublishedCase(problem, published, 1e-5, printed=dict.fromkeys(published, 5e-4))


def dfg() -> PublishedCase:
    """Flow around a cylinder, DFG 2D-1 in metres (Schäfer and Turek 1996; Nabh 1998)."""
    channel = rp.Box(x=(0, 2.2), y=(0, 0.41)) - rp.Ball((0.2, 0.2), 0.05, name="cylinder")
    equations = {
        "x": "u*u_x + v*u_y = -p_x + nu*laplace(u)",
        "y": "u*v_x + v*v_y = -p_y + nu*laplace(v)",
        "mass": "u_x + v_y = 0",
    }
    sides = {
        "inflow": rp.On("x=0", ["u = 1.2*y*(0.41 - y)/0.41**2", "v = 0"]),
        "walls": rp.On(("y=0", "y=0.41", "cylinder"), ["u = 0", "v = 0"]),
        "outflow": rp.On("x=2.2", ["nu*dn(u) - p*nx = 0", "nu*dn(v) = 0"]),
    }
    outputs = {
        "drag": rp.Output("500*(p*nx - nu*dn(u))", on="cylinder"),
        "lift": rp.Output("500*(p*ny - nu*dn(v))", on="cylinder"),
        "pressure": "p(0.15, 0.2) - p(0.25, 0.2)",
    }
    problem = rp.Problem(equations, channel, sides, parameters={"nu": 1e-3}, outputs=outputs)
    published = {"drag": 5.57953523384, "lift": 0.010618948146, "pressure": 0.11752016697}
    return PublishedCase(problem, published, 1e-5)


CASES: dict[str, Callable[[], PublishedCase]] = {
    "torsion": torsion,
    "L-shape": l_shape,
    "T4": nafems_t4,
    "capacitance": capacitance,
    "conductivity": conductivity,
    "capacitance-in": capacitance_inside,
    "permeability": permeability,
    "harmonic": harmonic_measure,
    "hot plate": hot_plate,
    "LE1": nafems_le1,
    "LE1 printed": lambda: replace(nafems_le1(), tol={"stress": 5e-4}),
    "hole": stress_concentration,
    "ellipse": ellipse_stress,
    "convection-1e3": lambda: natural_convection(1e3, {"u": 3.649, "v": 3.697}),
    "convection-1e4": lambda: natural_convection(1e4, {"u": 16.178}),
    "DFG": dfg,
}


def run(name: str, case: PublishedCase) -> list[str]:
    """Lines of the table: output, value ± bound, published, error, whether it is within the bound, seconds."""
    begin = process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        solution = rp.solve(case.problem, tol=case.tol, method=case.method, seconds=900)
        solved = process_time() - begin
        outputs = solution.outputs
    seconds = process_time() - begin
    lines = []
    for key, quantity in outputs.items():
        told = f"{name:<15}{key:<13}{str(quantity)[:44]:<46}{quantity.converged!s:<7}"
        if key in case.published:
            exact = case.published[key]
            error = abs(float(quantity) - exact)
            held = error <= float(quantity.bound) + case.printed.get(key, 0.0)
            told += f"{exact:<22.16g}{error:<10.1e}{'within' if held else 'OUTSIDE':<9}"
        else:
            told += f"{'':<41}"
        lines.append(f"{told}{solved:6.1f} {seconds:6.1f}")
    return lines


def main(chosen: list[str]) -> None:
    heads = ("case", "output", "value ± bound", "conv.", "published", "error", "bound")
    print("".join(f"{name:<{width}}" for name, width in zip(heads, (15, 13, 46, 7, 22, 10, 9), strict=True)), end="")
    print(" solve  with bounds (seconds of the processor)")
    for name in chosen or CASES:
        for line in run(name, CASES[name]()):
            print(line, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
