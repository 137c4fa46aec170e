"""Where functions live: domains, their sides, points on them, integrals and norms."""

from rannpde.domains.boundary.sides import FlatSide, RoundSide, Side
from rannpde.domains.domain import Ball, Box, Domain, Interval, SpaceTime
from rannpde.domains.norms import Difference, l2_norm, relative_errors, relative_l2, sobolev_norm
from rannpde.domains.quadrature.integrals import Estimate, gauss_rule, integrate
from rannpde.domains.region import Region, composite_gauss
from rannpde.domains.streams import mixture

__all__ = [
    "Ball",
    "Box",
    "Difference",
    "Domain",
    "Estimate",
    "FlatSide",
    "Interval",
    "Region",
    "RoundSide",
    "Side",
    "SpaceTime",
    "composite_gauss",
    "gauss_rule",
    "integrate",
    "l2_norm",
    "mixture",
    "relative_errors",
    "relative_l2",
    "sobolev_norm",
]
