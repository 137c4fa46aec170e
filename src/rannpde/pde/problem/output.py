"""Outputs: the numbers that a problem is solved for, stated with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rannpde.errors import InputError, choose, is_real, require
from rannpde.pde.problem.entries import known, text, texts

IN_TIME = ("maximum in time", "minimum in time", "frequency")
"""Kinds that look at an integral in space, or at values at points, as a function of time."""
OUTPUT_KINDS = ("integral", "mean", "maximum", "minimum", "value", "first time", *IN_TIME)


@dataclass(frozen=True)
class Output:
    """A quantity of interest: ``Output("p*nx - nu*dn(u)", on="cylinder")`` is a force, an integral over that side.

    expression : in fields, derivatives, coordinates, normals ``nx``, ``ny``, …, and values at points, ``p(0.15, 0.2)``
    on : where: None for the whole domain, a side or several as in conditions, a shape within the domain, or the two
        ends of a line
    kind : "integral", "mean", "maximum", "minimum", "value" (at the point ``at``, or of an expression in values at
        points) or "first time" (of an equation such as ``u(0.5, 0.5) = 1``); None takes what the expression says.
        "maximum in time", "minimum in time" and "frequency" are those of the integral over ``on``, or of an expression
        in values at points, as a function of time
    t : a time, or several for a time series, of problems in time; for what is looked for in time, its two ends
    at : the point of a "value"

    >>> Output("u(0.5, 0.5) = 1").kind, Output("u").kind, Output("u_x", at=(0.0, 1.0)).kind
    ('first time', 'integral', 'value')
    """

    expression: Any
    on: Any = None
    kind: str | None = None
    t: Any = None
    at: Any = None

    def __post_init__(self) -> None:
        kind = self.kind
        if kind is None:
            equation = isinstance(self.expression, str) and "=" in self.expression.replace("<=", "").replace(">=", "")
            kind = "first time" if equation else "value" if self.at is not None else "integral"
        choose("kind", kind, dict.fromkeys(OUTPUT_KINDS))
        object.__setattr__(self, "kind", kind)
        require(self.at is None or kind == "value", "at", self.at, f"left out of the kind {kind!r}")
        require(self.on is None or kind not in ("value", "first time"), "on", self.on, f"left out of a {kind}")
        require(self.t is None or kind != "first time", "t", self.t, "left out of a first time")
        if kind in IN_TIME and self.t is not None:
            ends = np.ravel(self.t).tolist()
            require(len(ends) == 2 and ends[0] < ends[1], "t", self.t, f"the first and last time of a {kind}")

    def __str__(self) -> str:
        where = f" on {self.on}" if self.on is not None else f" at {self.at}" if self.at is not None else ""
        when = "" if self.t is None else f" {'between' if self.kind in IN_TIME else 'at'} t = {self.t}"
        return f"{self.kind} of {self.expression}{where}{when}"


def stated_outputs(given: Any) -> dict[str, Output]:
    """Outputs by name; an expression alone is its integral over the domain, or its value where it names points."""
    require(isinstance(given, Mapping), "outputs", given, "a mapping of names to rp.Output(…) or expressions")
    outputs: dict[str, Output] = {}
    for name, one in given.items():
        require(isinstance(name, str) and bool(name), "the name of an output", name, "text")
        output = one if isinstance(one, Output) else Output(one)
        outputs[name] = output
    return outputs


def output_from_table(key: str, value: Any) -> Output:
    """The output that an entry of a file states: text, or a table with expression, on, kind, t, at."""
    if isinstance(value, str):
        return Output(value)
    entry = known(key, value, ("expression", "on", "kind", "t", "at"))
    if "expression" not in entry:
        raise InputError(f'{key} has no expression; give one, e.g. expression = "dn(u)"')
    on = entry.get("on")
    if on is not None and not isinstance(on, str):
        line = isinstance(on, list) and len(on) == 2 and all(isinstance(end, list) for end in on)
        on = tuple(_numbers(f"{key}.on", end) for end in on) if line else tuple(texts(f"{key}.on", on))
    kind = entry.get("kind")
    t = entry.get("t")
    if t is not None:
        t = _numbers(f"{key}.t", t) if isinstance(t, list) else _numbers(f"{key}.t", [t])[0]
    at = None if entry.get("at") is None else _numbers(f"{key}.at", entry["at"])
    return Output(
        text(f"{key}.expression", entry["expression"]), on, None if kind is None else text(f"{key}.kind", kind), t, at
    )


def output_table(output: Output) -> dict[str, Any] | None:
    """The entry of a file; None where it holds shapes, functions or SymPy."""
    if not isinstance(output.expression, str) or callable(output.on):
        return None
    table: dict[str, Any] = {"expression": output.expression, "kind": output.kind}
    if output.on is not None:
        listed = isinstance(output.on, (list, tuple))
        if not (listed or isinstance(output.on, str)):
            return None
        table["on"] = output.on if isinstance(output.on, str) else [_plain(part) for part in output.on]
    for name in ("t", "at"):
        value = getattr(output, name)
        if value is not None:
            table[name] = np.asarray(value, dtype=float).tolist()
    return table


def _plain(part: Any) -> Any:
    return part if isinstance(part, str) else np.asarray(part, dtype=float).tolist()


def _numbers(key: str, value: Any) -> tuple[float, ...]:
    listed = isinstance(value, list) and bool(value) and all(is_real(entry) for entry in value)
    require(listed, key, value, "a list of numbers")
    return tuple(map(float, value))
