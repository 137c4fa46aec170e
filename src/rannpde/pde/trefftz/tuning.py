"""The empirical numbers of Trefftz networks, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass
from math import log, pi

from rannpde.rounding import ROUNDED


@dataclass(frozen=True)
class TrefftzTuning:
    """Empirical numbers; users need none of them.

    columns : most features; with more, factorisations take longer than the solves of other methods
    oversampling : rows per feature; below 2 least squares may oscillate between the points
    growth : largest factor on the number of features of a group from one iteration to the next
    offset : distance of sources from the boundary in units of their spacing; exp(-2π offset), the aliasing error, is
        rounding
    crowding : σ of the distances exp(-σ (√n - √j)) of poles from a corner; 4 is the value of Gopal and Trefethen
    closest : distance of the nearest pole from a corner over that of the farthest: coordinates have 16 digits
    plane_waves : k × radius beyond which plane waves are as well conditioned as Bessel functions, and cheaper
    layers : radius over width of a boundary layer beyond which functions on the whole domain cannot represent layers
    iterations : most adaptive iterations
    patience : iterations in a row that may fail to halve the estimate
    """

    columns: int = 2400
    oversampling: int = 2
    growth: float = 2.2
    closest: float = 1e-12
    offset: float = -log(ROUNDED) / (2 * pi)
    crowding: float = 4.0
    plane_waves: float = 30.0
    layers: float = 20.0
    iterations: int = 14
    patience: int = 3
