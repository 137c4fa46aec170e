"""Random neural networks for functions and partial differential equations.

Fit a function in closed form:

>>> import numpy as np, rannpde as rp
>>> domain = rp.SpaceTime(t=(0, 1), x=(-1, 1))
>>> points = domain.sample(2000, rng=0)
>>> features = rp.RandomFeatures.sample(width=200, law=rp.Uniform(2.0), activation="tanh", domain=domain, rng=0)
>>> network = rp.fit(features, points, np.exp(-points[:, 0]) * np.sin(3 * points[:, 1]), penalty=0)
>>> network.about["training_error"] < 1e-6
True
>>> network.derivative(points, (0, 2)).shape
(2000,)
"""

from rannpde.domains import (
    Ball,
    Box,
    Difference,
    Interval,
    SpaceTime,
    gauss_rule,
    l2_norm,
    mixture,
    relative_l2,
    sobolev_norm,
)
from rannpde.errors import FileError, InputError
from rannpde.fitting import NormalEquations, OrthogonalEquations, fit
from rannpde.loading import load
from rannpde.network import (
    Activation,
    Adapted,
    FourierFeatures,
    Gaussian,
    HeavyTailed,
    Network,
    RandomFeatures,
    Uniform,
    WeightLaw,
)
from rannpde.pde import Data, Ensemble, On, Periodic, Problem, Solution, solve, zoo

__version__ = "0.1.0"

__all__ = [
    "Activation",
    "Adapted",
    "Ball",
    "Box",
    "Data",
    "Difference",
    "Ensemble",
    "FileError",
    "FourierFeatures",
    "Gaussian",
    "HeavyTailed",
    "InputError",
    "Interval",
    "Network",
    "NormalEquations",
    "On",
    "OrthogonalEquations",
    "Periodic",
    "Problem",
    "RandomFeatures",
    "Solution",
    "SpaceTime",
    "Uniform",
    "WeightLaw",
    "fit",
    "gauss_rule",
    "l2_norm",
    "load",
    "mixture",
    "relative_l2",
    "sobolev_norm",
    "solve",
    "zoo",
]
