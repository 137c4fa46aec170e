"""The arguments of ``solve`` as a problem file states them, in its table ``[solve]``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from rannpde.errors import InputError, choose, positive_number, require, suggestion, whole_number
from rannpde.pde.identification import Identify
from rannpde.pde.selection import METHODS


def settings_from(table: Mapping[str, Any]) -> dict[str, Any]:
    """The keyword arguments of ``solve`` that a file's table states: tol, seconds, rng, and a method with its settings.

    >>> settings_from({"tol": 1e-6, "method": "collocation", "width": 400})["method"].width
    400
    """
    shared = ("tol", "seconds", "rng", "at", "memory")
    arguments = {key: table[key] for key in shared if key in table}
    wanted = arguments.get("tol", 0.5)
    for key, value in (wanted if isinstance(wanted, Mapping) else {"tol": wanted}).items():  # of outputs, or of fields
        require(positive_number(key, value) < 1, key, value, "below 1")
    for key in ("seconds", "memory"):
        if key in arguments:
            positive_number(key, arguments[key])
    if "rng" in arguments:
        whole_number("rng", arguments["rng"])
    own = {key: value for key, value in table.items() if key not in (*shared, "method")}
    if "method" not in table:
        if own:
            key, known = next(iter(own)), {name for kind in METHODS.values() for name in _plain_settings(kind)}
            hint = "name its method too, method = …" if key in known else suggestion(key, {*known, *shared, "method"})
            raise InputError(f"solve has the key {key!r}, which is unknown there; {hint}")
        return arguments
    name = table["method"]
    require(isinstance(name, str), "method", name, "text")
    kind = choose("method", name, METHODS | {"identify": Identify})
    settings: dict[str, Any] = {}
    for key, value in own.items():
        choose(f"setting of {name}", key, dict.fromkeys(_plain_settings(kind)))
        settings[key] = tuple(value) if isinstance(value, list) else value
    return arguments | {"method": kind(**settings)}


def _plain_settings(kind: type[Any]) -> list[str]:
    """Return the settings that can be given as text."""
    objects = ("tuning", "settings", "events", "features", "law", "newton", "guess", "forward")
    return [f.name for f in fields(kind) if f.name not in objects]
