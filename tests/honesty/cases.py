"""Small random problems whose solutions are known, or known not to be there: ``case(seed)`` is always the same one.

A case is made of text, so that it can be printed and stated again by hand. Most are manufactured: a random formula is
the solution, and the force is what the equation leaves of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import sympy

from rannpde.domains import Ball, Box, Interval, SpaceTime
from rannpde.domains.domain import Domain
from rannpde.domains.shapes.polygon import Polygon
from rannpde.domains.shapes.quadrics import Ellipse
from rannpde.pde.problem.conditions import Condition, On, Periodic
from rannpde.pde.problem.problem import Problem
from rannpde.pde.statement.reading import forced
from rannpde.pde.statement.vocabulary import Vocabulary

Draw = np.random.Generator
SHAPES: dict[str, Callable[[], Domain]] = {
    "disc": lambda: Ball((0, 0), 1, names=("x", "y")),
    "plate": lambda: Box(x=(0, 1), y=(0, 1)) - Ball((0.6, 0.4), 0.2, names=("x", "y")),
    "slanted": lambda: Polygon([(0, 0), (1, 0.2), (0.8, 1), (0.1, 0.7)]),
    "bean": lambda: Ellipse((0.5, 0.5), (0.6, 0.4), names=("x", "y")) | Ball((0.9, 0.7), 0.3, names=("x", "y")),
}


@dataclass(frozen=True)
class Case:
    """A statement, what is asked of the solver, and the solution; ``exact`` is empty where none is known.

    posed : whether there is exactly one solution; none may be called converged where there are many or none
    exact : field → text, or a callable of points
    shape : name of what space is, in the place of a box
    functions : name → a function that the statement uses
    """

    family: str
    equations: Mapping[str, str]
    sides: Mapping[str, tuple[float, float]]
    conditions: Mapping[str, Condition]
    exact: Mapping[str, Any]
    tol: float = 1e-4
    rng: int = 0
    method: str | None = None
    posed: bool = True
    incomplete: bool = False
    shape: str = ""
    seed: int = -1
    functions: Mapping[str, Any] = field(default_factory=dict)

    def problem(self) -> Problem:
        if self.shape:
            space = SHAPES[self.shape]()
            domain = SpaceTime(t=self.sides["t"], x=space) if "t" in self.sides else space
        elif "t" in self.sides and len(self.sides) > 1:
            domain = SpaceTime(**self.sides)
        elif len(self.sides) > 1:
            domain = Box(**self.sides)
        else:
            ((name, ends),) = self.sides.items()
            domain = Interval(*ends, name=name)
        return Problem(
            dict(self.equations), domain, dict(self.conditions), exact=dict(self.exact), incomplete=self.incomplete,
            functions=dict(self.functions),
        )  # fmt: skip

    def __str__(self) -> str:
        parts = [f"seed {self.seed}, {self.family}, tol={self.tol:.1e}, rng={self.rng}, method={self.method}"]
        parts += [f"{name}: {text}" for name, text in self.equations.items()]
        parts += [f"{name}: {condition}" for name, condition in self.conditions.items()]
        parts.append(f"on {self.shape} {dict(self.sides)}, exact {dict(self.exact)}")
        return "\n      ".join(parts)


FAMILIES: dict[str, Callable[[Draw], dict[str, Any]]] = {}
"""Name → a draw of everything but tol, rng and seed."""
OWN_SEEDS: dict[str, Callable[[Draw], dict[str, Any]]] = {}
"""The same for families that are only drawn where they are named, so that a seed of the others keeps its problem."""


def family(make: Callable[[Draw], dict[str, Any]]) -> Callable[[Draw], dict[str, Any]]:
    FAMILIES[make.__name__] = make
    return make


def case(seed: int, families: tuple[str, ...] = ()) -> Case:
    """The case of a seed: families take turns, everything else is drawn."""
    names = families or tuple(FAMILIES)
    name = names[seed % len(names)]
    rng = np.random.default_rng([20_231, seed])
    made = (FAMILIES.get(name) or OWN_SEEDS[name])(rng)
    tol = float(f"{10 ** rng.uniform(-8, -3):.1e}")
    return Case(name, **({"tol": tol} | made), rng=int(rng.integers(1000)), seed=seed)


# --------------------------------------------------------------------------------------------------- random formulas


def number(rng: Draw, low: float, high: float) -> float:
    """Log-uniform, to three digits, so that it prints as it is."""
    return float(f"{np.exp(rng.uniform(np.log(low), np.log(high))):.3g}")


def place(rng: Draw, low: float = 0.1, high: float = 0.9) -> float:
    return round(float(rng.uniform(low, high)), 3)


def pick(rng: Draw, *choices: Any) -> Any:
    return choices[int(rng.integers(len(choices)))]


def waves(rng: Draw, argument: str, most: int, terms: int = 2) -> str:
    """A sum of sines of whole periods on [0, 1], the highest up to ``most``."""
    parts = []
    for k in range(terms):
        periods = int(np.ceil(np.exp(rng.uniform(0, np.log(most))))) if k else int(rng.integers(1, 4))
        parts.append(f"{number(rng, 0.1, 1)}*{pick(rng, 'sin', 'cos')}({2 * periods}*pi*{argument})")
    return " + ".join(parts)


def profile(rng: Draw, name: str = "x", sharpest: float = 0.05) -> str:
    """A smooth function of one coordinate on [0, 1]: a wave, a bump, a front, a polynomial or an exponential."""
    width, centre = number(rng, sharpest, 0.5), place(rng)
    return pick(
        rng,
        f"sin({number(rng, 1, 12)}*{name} + {place(rng)})",
        f"exp(-(({name} - {centre})/{width})**2)",
        f"tanh(({name} - {centre})/{width})",
        f"(1 + {name}*({centre} - {name}))",
        f"exp({number(rng, 0.3, 3)}*{name})",
        f"1/(1 + (({name} - {centre})/{width})**2)",
    )


def motion(rng: Draw, sharpest: float = 0.03) -> str:
    """A smooth function of time on [0, 1] that never vanishes identically."""
    width, centre = number(rng, sharpest, 0.5), place(rng)
    return pick(
        rng,
        f"exp({pick(rng, '-', '')}{number(rng, 0.3, 5)}*t)",
        f"cos({number(rng, 1, 30)}*t)",
        f"(1 + tanh((t - {centre})/{width}))",
        f"(1 + exp(-((t - {centre})/{width})**2))",
        "(1 + t**2)",
    )


def force(residual: str, exact: Mapping[str, str], coordinates: tuple[str, ...]) -> str:
    """``residual = force`` as text: what the equation leaves of the exact solution."""
    words = Vocabulary(coordinates, "t" if "t" in coordinates else None, tuple(exact))
    zero = {words.field_function(name): sympy.Integer(0) for name in exact}
    rest = -forced(residual, exact, words).subs(zero).doit()  # the equations hold no term without a field
    return f"{residual} = {rest}"


def manufactured(residual: str, exact: str, sides: Mapping[str, tuple[float, float]], **rest: Any) -> dict[str, Any]:
    return {
        "equations": {"equation": force(residual, {"u": exact}, tuple(sides))},
        "sides": sides,
        "exact": {"u": exact},
    } | rest


def value_of(text: str, coordinates: tuple[str, ...], derivative: str | None = None) -> sympy.Expr:
    from rannpde.pde.statement.build import build

    words = Vocabulary(coordinates, "t" if "t" in coordinates else None)
    value = build(text, words)
    return sympy.diff(value, sympy.Symbol(derivative, real=True)) if derivative else value


def ends(rng: Draw, exact: str, coordinates: tuple[str, ...], field_name: str = "u") -> dict[str, Condition]:
    """A random condition on each end of x: Dirichlet, Neumann or Robin, at least one of them not Neumann."""
    kinds = [pick(rng, "value", "slope", "both"), pick(rng, "value", "both")]
    rng.shuffle(kinds)
    value, slope = value_of(exact, coordinates), value_of(exact, coordinates, "x")
    found: dict[str, Condition] = {}
    for side, outward, kind in (("x=0", -1, kinds[0]), ("x=1", 1, kinds[1])):
        u, factor = field_name, outward * number(rng, 0.1, 2)
        texts = {
            "value": f"{u} = {value}",
            "slope": f"{u}_x = {slope}",
            "both": f"{u} + ({factor})*{u}_x = {value + sympy.Float(str(factor)) * slope}",
        }
        found[f"at {side}"] = On(side, texts[kind])
    return found


def start(exact: Mapping[str, str], coordinates: tuple[str, ...]) -> dict[str, Condition]:
    zero = {sympy.Symbol("t", real=True): 0}
    values = {name: value_of(text, coordinates).subs(zero) for name, text in exact.items()}
    return {f"start of {name}": On("t=0", f"{name} = {value}") for name, value in values.items()}


LINE = {"t": (0.0, 1.0), "x": (0.0, 1.0)}
ROUND = {"around": Periodic("x")}


# ------------------------------------------------------------------------------------------- evolution on a circle


@family
def transport(rng: Draw) -> dict[str, Any]:
    """Waves of up to 100 periods carried around."""
    speed = number(rng, 0.1, 3)
    first = waves(rng, "x", 100)
    exact = {"u": first.replace("*x)", f"*(x - {speed}*t))")}
    return {
        "equations": {"equation": f"u_t + {speed}*u_x = 0"},
        "sides": LINE,
        "conditions": {"start": On("t=0", f"u = {first}")} | ROUND,
        "exact": exact,
    }


@family
def decaying_waves(rng: Draw) -> dict[str, Any]:
    """Diffusion, drift and growth of modes far apart."""
    nu, speed, growth = number(rng, 1e-5, 1e-1), number(rng, 0.1, 2), round(float(rng.uniform(-2, 2)), 2)
    low, high = int(rng.integers(1, 4)), int(rng.integers(2, 100))
    parts = [
        f"{size}*exp(({growth} - {nu}*{2 * k}**2*pi**2)*t)*sin({2 * k}*pi*(x - {speed}*t))"
        for k, size in ((low, 1), (high, number(rng, 0.01, 1)))
    ]
    exact = {"u": " + ".join(parts)}
    return {
        "equations": {"equation": f"u_t + {speed}*u_x = {nu}*u_xx + ({growth})*u"},
        "sides": LINE,
        "conditions": start(exact, ("t", "x")) | ROUND,
        "exact": exact,
    }


@family
def forced_circle(rng: Draw) -> dict[str, Any]:
    """Transport, diffusion, Burgers or KdV on a circle, a wave that comes and goes."""
    k = int(rng.integers(1, 30))
    exact = f"{motion(rng, 1e-3)}*sin({2 * k}*pi*x) + {motion(rng)}*cos(2*pi*x)/2"
    nu = number(rng, 1e-3, 1)
    residual = pick(
        rng,
        f"u_t + {nu}*u_x",
        f"u_t - {nu}*u_xx",
        f"u_t + u*u_x - {nu}*u_xx",
        f"u_t + u*u_x + {number(rng, 1e-5, 1e-3)}*u_xxx",
        f"u_t - {nu}*u_xx - u + u**3",
    )
    return manufactured(residual, exact, LINE, conditions=start({"u": exact}, ("t", "x")) | ROUND)


@family
def schroedinger(rng: Draw) -> dict[str, Any]:
    """Two fields, waves of several periods."""
    k = int(rng.integers(1, 20))
    exact = {
        "u": f"{motion(rng, 0.1)}*cos({2 * k}*pi*x) + 0.3",
        "v": f"{motion(rng, 0.1)}*sin({2 * k}*pi*x)",
    }
    size = number(rng, 1e-3, 0.5)
    real = force(f"u_t + {size}*v_xx + (u**2 + v**2)*v", exact, ("t", "x"))
    imaginary = force(f"v_t - {size}*u_xx - (u**2 + v**2)*u", exact, ("t", "x"))
    return {
        "equations": {"real": real, "imaginary": imaginary},
        "sides": LINE,
        "conditions": start(exact, ("t", "x")) | ROUND,
        "exact": exact,
    }


@family
def rough_circle(rng: Draw) -> dict[str, Any]:
    """A square wave or a roof carried around: no method gets far, and must know."""
    speed, left, right = number(rng, 0.1, 2), *sorted((place(rng, 0.1, 0.45), place(rng, 0.55, 0.9)))
    shape = pick(rng, "where({x} < A, 0, where({x} < B, 1, 0))", "max(0, min({x} - A, B - {x}))")
    shape = shape.replace("A", str(left)).replace("B", str(right))

    def exact(points: np.ndarray) -> np.ndarray:
        x = (points[:, 1] - speed * points[:, 0]) % 1.0
        inside = (x >= left) & (x < right)
        return inside * (1.0 if "where" in shape else np.minimum(x - left, right - x))

    return {
        "equations": {"equation": f"u_t + {speed}*u_x = 0"},
        "sides": LINE,
        "conditions": {"start": On("t=0", "u = " + shape.format(x="x"))} | ROUND,
        "exact": {"u": exact},
        "tol": pick(rng, 1e-2, 1e-3),
    }


# ---------------------------------------------------------------------------------------- evolution between two ends


def between(rng: Draw, residual: str, exact: str, **rest: Any) -> dict[str, Any]:
    conditions = start({"u": exact}, ("t", "x")) | ends(rng, exact, ("t", "x"))
    return manufactured(residual, exact, LINE, conditions=conditions, **rest)


@family
def diffusion(rng: Draw) -> dict[str, Any]:
    exact = f"{motion(rng)}*{profile(rng)} + {profile(rng)}"
    return between(rng, f"u_t - {number(rng, 1e-3, 1)}*u_xx + ({round(float(rng.uniform(-2, 2)), 2)})*u_x", exact)


@family
def reaction(rng: Draw) -> dict[str, Any]:
    nu = number(rng, 1e-3, 1)
    # all vanish with u, as a force holds no field; exp(-u), whose errors grow like exp(e^12 t), is among the known ones
    terms = pick(rng, "u + u**3", "exp(u) - 1", "u*(1 - u)", "u*u_x", "sin(u)")
    return between(rng, f"u_t - {nu}*u_xx + {terms}", f"{motion(rng)}*{profile(rng)}")


@family
def divergence(rng: Draw) -> dict[str, Any]:
    """The weak form: fluxes that depend on place and field."""
    flux = pick(rng, "(1 + x**2)*u_x", "(1 + u**2)*u_x", "exp(-x)*u_x")
    return between(rng, f"u_t - d({flux}, x)", f"(2 + {motion(rng)}*{profile(rng)})")


@family
def inflow(rng: Draw) -> dict[str, Any]:
    """Transport into the domain, a wave at the wall."""
    speed, k = number(rng, 0.2, 3), number(rng, 1, 40)
    exact = pick(rng, f"sin({k}*(x - {speed}*t))", f"exp(-((x - {speed}*t - {place(rng, -0.5, 0.5)})/0.1)**2)")
    wall = value_of(exact, ("t", "x")).subs({sympy.Symbol("x", real=True): 0})
    conditions = start({"u": exact}, ("t", "x")) | {"wall": On("x=0", f"u = {wall}")}
    equations = {"equation": f"u_t + {speed}*u_x = 0"}
    return {"equations": equations, "sides": LINE, "conditions": conditions, "exact": {"u": exact}}


@family
def wave(rng: Draw) -> dict[str, Any]:
    exact = f"{motion(rng, 0.1)}*{profile(rng, sharpest=0.1)}"
    made = between(rng, f"u_tt - {number(rng, 0.1, 2)}*u_xx", exact)
    speed = value_of(exact, ("t", "x"), "t").subs({sympy.Symbol("t", real=True): 0})
    made["conditions"] = made["conditions"] | {"first speed": On("t=0", f"u_t = {speed}")}
    return made


@family
def pulse(rng: Draw) -> dict[str, Any]:
    """A source that is on for a moment only, between insulated ends: u depends on time alone."""
    width = number(rng, 1e-3, 1e-1)
    begin = place(rng, 0.05, 0.85)
    if rng.uniform() < 0.5:
        source = f"{number(rng, 0.5, 5) / width:.6g}*exp(-((t - {begin})/{width})**2)"
        height = float(source.split("*")[0]) * width * float(np.sqrt(np.pi)) / 2
        exact: Any = f"{height!r}*(erf((t - {begin})/{width}) + erf({begin}/{width}))"
    else:
        stop = round(begin + width, 6)
        source = f"{1 / width:.6g}*(sign(t - {begin}) - sign(t - {stop}))/2"
        height = float(f"{1 / width:.6g}")

        def exact(points: np.ndarray) -> np.ndarray:
            return height * np.clip(points[:, 0] - begin, 0.0, stop - begin)

    conditions = {"start": On("t=0", "u = 0"), "ends": On(("x=0", "x=1"), "u_x = 0")}
    if rng.uniform() < 0.5:
        conditions = {"start": On("t=0", "u = 0")} | ROUND
    equations = {"equation": f"u_t = {number(rng, 0.01, 1)}*u_xx + {source}"}
    return {"equations": equations, "sides": LINE, "conditions": conditions, "exact": {"u": exact}}


@family
def ordinary(rng: Draw) -> dict[str, Any]:
    """Equations in which space plays no part: fast sources, growth, logistic growth; also by collocation."""
    rate, first = number(rng, 1, 30), number(rng, 0.01, 0.9)
    k = number(rng, 10, 2000)
    kind = int(rng.integers(4))
    equation, exact = (
        (f"u_t = {k}*cos({k}*t)", f"sin({k}*t) + {first}"),
        (f"u_t = {rate}*(1 - 2*t)*u", f"{first}*exp({rate}*(t - t**2))"),
        (f"u_t = {rate}*u*(1 - u)", f"1/(1 + {1 / first - 1!r}*exp(-{rate}*t))"),
        (f"u_t = -{rate}*(u - cos({rate}*t)) - {rate}*sin({rate}*t)", f"cos({rate}*t) + {first}*exp(-{rate}*t)"),
    )[kind]
    method = "collocation" if kind and rng.uniform() < 0.5 else None
    conditions = start({"u": exact}, ("t", "x"))
    around = ROUND if method is None and rng.uniform() < 0.5 else {}
    return {
        "equations": {"equation": equation},
        "sides": LINE,
        "conditions": conditions | around,
        "exact": {"u": exact},
        "method": method,
    }


@family
def rough_heat(rng: Draw) -> dict[str, Any]:
    """Heat from a step or a roof between insulated ends, by its cosine series."""
    nu, middle = number(rng, 0.05, 1), place(rng, 0.2, 0.8)
    roof = rng.uniform() < 0.5
    k = np.pi * np.arange(1, 1500)

    def exact(points: np.ndarray) -> np.ndarray:
        t, x = points.T
        if roof:  # |x - middle|
            mean = 0.5 * (middle**2 + (1 - middle) ** 2)
            size = 2 * (np.cos(k) + 1 - 2 * np.cos(k * middle)) / k**2
        else:
            mean, size = middle, 2 * np.sin(k * middle) / k
        result = np.full(len(t), mean)
        for block in np.array_split(np.arange(len(k)), 15):
            result += (np.cos(np.outer(x, k[block])) * np.exp(-nu * np.outer(t, k[block] ** 2))) @ size[block]
        return result

    first = f"abs(x - {middle})" if roof else f"where(x < {middle}, 1, 0)"
    return {
        "equations": {"equation": f"u_t = {nu}*u_xx"},
        "sides": LINE,
        "conditions": {"start": On("t=0", f"u = {first}"), "ends": On(("x=0", "x=1"), "u_x = 0")},
        "exact": {"u": exact},
        "tol": pick(rng, 1e-2, 1e-3, 1e-4),
    }


@family
def evolution_by_collocation(rng: Draw) -> dict[str, Any]:
    exact = f"{motion(rng, 0.2)}*{profile(rng, sharpest=0.2)}"
    residual = f"u_t - {number(rng, 0.1, 1)}*u_xx + {pick(rng, 'u', 'u*u_x', 'u**3')}"
    return between(rng, residual, exact, method="collocation", tol=number(rng, 1e-6, 1e-3))


# ----------------------------------------------------------------------------------------------------- stationary


def on_interval(rng: Draw, residual: str, exact: str) -> dict[str, Any]:
    return manufactured(residual, exact, {"x": (0.0, 1.0)}, conditions=ends(rng, exact, ("x",)))


@family
def stationary(rng: Draw) -> dict[str, Any]:
    size = number(rng, 1, 100)
    residual = pick(
        rng,
        "u_xx",
        f"u_xx - {size}*u",
        f"u_xx + {size}*u",
        f"u_xx + {size}*u_x",
        "u_xx - u**3",
        "u_xx - u - u*u_x",
        "d((1 + x)*u_x, x)",
    )
    return on_interval(rng, residual, f"{profile(rng, sharpest=0.02)} + {profile(rng)}")


@family
def fast_waves(rng: Draw) -> dict[str, Any]:
    k = number(rng, 5, 300)
    return on_interval(rng, pick(rng, "u_xx", f"u_xx - {k}*u", "u_xx + u"), f"sin({k}*x + {place(rng)}) + x")


@family
def layer(rng: Draw) -> dict[str, Any]:
    """Advection against diffusion: -ε u_xx + u_x = 0 or 1, a layer of width ε at the outflow."""
    width = number(rng, 1e-3, 1)
    fall = f"(exp((x - 1)/{width}) - exp(-1/{width}))/(1 - exp(-1/{width}))"
    exact, right = pick(rng, (fall, 0), (f"x - {fall}", 1))
    wall = 1 - right
    return {
        "equations": {"equation": f"-{width}*u_xx + u_x = {right}"},
        "sides": {"x": (0.0, 1.0)},
        "conditions": {"in": On("x=0", "u = 0"), "out": On("x=1", f"u = {wall}")},
        "exact": {"u": exact},
    }


@family
def narrow_load(rng: Draw) -> dict[str, Any]:
    """u_xx = a bump of width 1e-4 to 1e-1, between fixed ends."""
    width, centre = number(rng, 1e-4, 1e-1), place(rng)
    bend = f"((x - {centre})/{width})"
    inner = f"{width}**2*(sqrt(pi)/2*{bend}*erf({bend}) + exp(-{bend}**2)/2)"
    ends_of = [inner.replace("x -", f"{end} -") for end in (0, 1)]
    return {
        "equations": {"equation": f"u_xx = exp(-{bend}**2)"},
        "sides": {"x": (0.0, 1.0)},
        "conditions": {"ends": On(("x=0", "x=1"), "u = 0")},
        "exact": {"u": f"{inner} - (1 - x)*{ends_of[0]} - x*{ends_of[1]}"},
        "tol": number(rng, 1e-6, 1e-3),
    }


@family
def first_order(rng: Draw) -> dict[str, Any]:
    exact = f"{profile(rng)} + {profile(rng)}"
    residual = f"u_x + {number(rng, 0.1, 20)}*{pick(rng, 'u', 'u**3', 'u*x')}"
    left = value_of(exact, ("x",)).subs({sympy.Symbol("x", real=True): 0})
    return manufactured(residual, exact, {"x": (0.0, 1.0)}, conditions={"left": On("x=0", f"u = {left}")})


@family
def plane(rng: Draw) -> dict[str, Any]:
    """Poisson, Helmholtz and a non-linear equation in two dimensions."""
    exact = f"{profile(rng, 'x', 0.2)}*{profile(rng, 'y', 0.2)}"
    residual = "u_xx + u_yy" + pick(rng, "", f" + {number(rng, 1, 30)}*u", " - u**3", f" + {number(rng, 1, 10)}*u_x")
    value = value_of(exact, ("x", "y"))
    conditions = {"rim": On("boundary", f"u = {value}")}
    sides = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
    return manufactured(residual, exact, sides, conditions=conditions, tol=number(rng, 1e-6, 1e-3))


@family
def moving_plane(rng: Draw) -> dict[str, Any]:
    """Two dimensions and time."""
    exact = f"{motion(rng, 0.2)}*{profile(rng, 'x', 0.3)}*{profile(rng, 'y', 0.3)}"
    residual = f"u_t - {number(rng, 0.05, 0.5)}*laplace(u) + {pick(rng, 'u', 'u_x', 'u**3')}"
    sides = {"t": (0.0, 1.0), "x": (0.0, 1.0), "y": (0.0, 1.0)}
    conditions = start({"u": exact}, ("t", "x", "y")) | {"rim": On("boundary", f"u = {value_of(exact, tuple(sides))}")}
    return manufactured(residual, exact, sides, conditions=conditions, tol=number(rng, 1e-4, 1e-2))


# ------------------------------------------------------------------------------------- none, many, or far from sure


@family
def insulated(rng: Draw) -> dict[str, Any]:
    """Pure Neumann: any constant may be added, or there is no solution at all."""
    k = int(rng.integers(1, 4))
    load = pick(rng, f"cos({k}*pi*x)", "1", f"1 + cos({k}*pi*x)")
    sides = {"x": (0.0, 1.0)}
    conditions = {"ends": On(("x=0", "x=1"), "u_x = 0")}
    return {"equations": {"equation": f"u_xx = {load}"}, "sides": sides, "conditions": conditions, "exact": {},
            "posed": False}  # fmt: skip


@family
def resonance(rng: Draw) -> dict[str, Any]:
    k = int(rng.integers(1, 6))
    load = pick(rng, f"sin({k}*pi*x)", f"sin({k + 1}*pi*x)", "1 + x")
    return {
        "equations": {"equation": f"u_xx + {k**2}*pi**2*u = {load}"},
        "sides": {"x": (0.0, 1.0)},
        "conditions": {"ends": On(("x=0", "x=1"), "u = 0")},
        "exact": {},
        "posed": False,
    }


@family
def outflow(rng: Draw) -> dict[str, Any]:
    """Transport with its condition where everything leaves."""
    speed, k = number(rng, 0.3, 2), int(rng.integers(1, 4))
    return {
        "equations": {"equation": f"u_t + {speed}*u_x = 0"},
        "sides": LINE,
        "conditions": {"start": On("t=0", f"u = sin({k}*pi*x)"), "wrong end": On("x=1", "u = 0")},
        "exact": {},
        "method": pick(rng, None, "collocation"),
        "posed": False,
    }


@family
def backward_heat(rng: Draw) -> dict[str, Any]:
    """Every error grows without bound; a single mode has a solution, which may be found or not."""
    k, duration = int(rng.integers(1, 4)), number(rng, 0.01, 0.3)
    exact = {"u": f"exp({k**2}*pi**2*t)*sin({k}*pi*x)"}
    around = k % 2 == 0 and rng.uniform() < 0.7
    conditions = ROUND if around else {"ends": On(("x=0", "x=1"), "u = 0")}
    return {
        "equations": {"equation": "u_t = -u_xx"},
        "sides": {"t": (0.0, duration), "x": (0.0, 1.0)},
        "conditions": start(exact, ("t", "x")) | conditions,
        "exact": exact,
    }


@family
def cauchy(rng: Draw) -> dict[str, Any]:
    """Laplace with value and slope on one side: unstable, though the data belong to a solution."""
    k = int(rng.integers(1, 5))
    return {
        "equations": {"equation": "u_xx + u_yy = 0"},
        "sides": {"x": (0.0, 1.0), "y": (0.0, 1.0)},
        "conditions": {
            "value": On("y=0", f"u = sin({k}*pi*x)"),
            "slope": On("y=0", "u_y = 0"),
            "walls": On(("x=0", "x=1"), "u = 0"),
        },
        "exact": {"u": f"sin({k}*pi*x)*cosh({k}*pi*y)"},
        "incomplete": True,
        "tol": number(rng, 1e-6, 1e-3),
    }


@family
def contradiction(rng: Draw) -> dict[str, Any]:
    """Conditions that cannot all hold, met in the mean: three at a rod, value and slope at both ends."""
    gap = number(rng, 0.1, 2)
    if rng.uniform() < 0.5:
        both = {"values": On(("x=0", "x=1"), "u = 0"), "slopes": On(("x=0", "x=1"), f"u_x = {gap}")}
        return {
            "equations": {"equation": f"u_t = {number(rng, 0.1, 1)}*u_xx"},
            "sides": LINE,
            "conditions": {"start": On("t=0", f"u = {pick(rng, 'sin(pi*x)', 'x*(1 - x)', '0')}")} | both,
            "exact": {},
            "posed": False,
            "incomplete": True,
        }
    return {
        "equations": {"equation": "u_xx = 1"},
        "sides": {"x": (0.0, 1.0)},
        "conditions": {
            "left": On("x=0", "u = 0"),
            "left too": On("x=0", f"u_x = {gap}"),
            "right": On("x=1", pick(rng, "u = 0", "u_x = 0")),
        },
        "exact": {},
        "posed": False,
        "incomplete": True,
    }
