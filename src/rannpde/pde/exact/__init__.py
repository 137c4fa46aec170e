"""Exact solutions: callable on points (M, n), with exact derivatives."""

from rannpde.pde.exact.barenblatt import Barenblatt
from rannpde.pde.exact.travelling_wave import TravellingWave

__all__ = ["Barenblatt", "TravellingWave"]
