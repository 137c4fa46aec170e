"""All cases, in the order of the benchmark's table."""

from __future__ import annotations

from benchmarks.harness.case import Case
from benchmarks.pinnacle import burgers, flow, heat, inverse, poisson, waves

ORDER = (
    "burgers-1d", "burgers-2d", "poisson-2d-c", "poisson-2d-cg", "poisson-3d-cg", "poisson-2d-ms", "heat-2d-vc",
    "heat-2d-ms", "heat-2d-cg", "heat-2d-lt", "ns-2d-c", "ns-2d-cg", "ns-2d-lt", "wave-1d", "wave-2d-cg", "wave-2d-ms",
    "gray-scott", "kuramoto-sivashinsky", "poisson-nd", "heat-nd", "poisson-inverse", "heat-inverse",
)  # fmt: skip
_FOUND = {case.name: case for room in (burgers, poisson, heat, flow, waves, inverse) for case in room.CASES}
CASES: dict[str, Case] = {name: _FOUND[name] for name in ORDER}
