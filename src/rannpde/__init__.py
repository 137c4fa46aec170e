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

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rannpde.domains.domain import Ball, Box, Interval, SpaceTime
    from rannpde.domains.norms import Difference, l2_norm, relative_l2, sobolev_norm
    from rannpde.domains.quadrature.integrals import Estimate, gauss_rule, integrate
    from rannpde.domains.shapes.euclidean import Euclidean
    from rannpde.domains.shapes.formed import Curve, Implicit
    from rannpde.domains.shapes.meshes import mesh
    from rannpde.domains.shapes.polygon import Polygon
    from rannpde.domains.shapes.quadrics import Cylinder, Ellipse, HalfSpace
    from rannpde.domains.streams import mixture
    from rannpde.errors import FileError, InputError
    from rannpde.fitting.fit import fit
    from rannpde.fitting.normal import NormalEquations
    from rannpde.fitting.orthogonal import OrthogonalEquations
    from rannpde.fitting.sobolev import sobolev_samples
    from rannpde.grammar import StatementError
    from rannpde.loading import load
    from rannpde.network.activations import Activation
    from rannpde.network.adapted import Adapted
    from rannpde.network.features import FourierFeatures, RandomFeatures
    from rannpde.network.laws import Gaussian, HeavyTailed, Uniform, WeightLaw
    from rannpde.network.network import Network
    from rannpde.pde.cells.method import Cells
    from rannpde.pde.collocation.method import Collocation
    from rannpde.pde.ensembles import Ensemble
    from rannpde.pde.family.family import Family
    from rannpde.pde.family.operator import Operator
    from rannpde.pde.flow.method import Flow
    from rannpde.pde.functions import PointFunction
    from rannpde.pde.identification import Identify, sensitivity
    from rannpde.pde.interpolation import GridData, ScatteredData
    from rannpde.pde.inverse.design import Sensitivity
    from rannpde.pde.inverse.estimates import Parameter
    from rannpde.pde.inverse.identified import Identified
    from rannpde.pde.lines.method import Lines
    from rannpde.pde.monitor import Progress, Status
    from rannpde.pde.outputs.quantity import Quantity
    from rannpde.pde.paths.method import Paths
    from rannpde.pde.polynomials.method import Polynomials
    from rannpde.pde.problem.conditions import Data, On, Periodic
    from rannpde.pde.problem.output import Output
    from rannpde.pde.problem.problem import Problem
    from rannpde.pde.problem.ranges import Range
    from rannpde.pde.problem.unknown import Unknown, UnknownFunction
    from rannpde.pde.solution import ConvergenceWarning, Solution
    from rannpde.pde.solve import ensemble, solve
    from rannpde.pde.spectrum.continuation.result import Continuation
    from rannpde.pde.spectrum.continuation.run import continuation
    from rannpde.pde.spectrum.eigen import eigen
    from rannpde.pde.spectrum.pseudospectrum import Pseudospectrum, pseudospectrum
    from rannpde.pde.spectrum.result import Mode, Spectrum
    from rannpde.pde.trefftz.method import Trefftz
    from rannpde.pde.trefftz.scattering import ScatteredWave, scatter
    from rannpde.pde.weak.method import WeakCells
    from rannpde.pde.zoo import zoo

__version__ = "0.2.0"

_HOMES = {
    "domains.domain": ("Ball", "Box", "Interval", "SpaceTime"),
    "domains.shapes.euclidean": ("Euclidean",),
    "domains.shapes.formed": ("Curve", "Implicit"),
    "domains.shapes.meshes": ("mesh",),
    "domains.norms": ("Difference", "l2_norm", "relative_l2", "sobolev_norm"),
    "domains.quadrature.integrals": ("Estimate", "gauss_rule", "integrate"),
    "domains.shapes.polygon": ("Polygon",),
    "domains.shapes.quadrics": ("Cylinder", "Ellipse", "HalfSpace"),
    "domains.streams": ("mixture",),
    "errors": ("FileError", "InputError"),
    "fitting.fit": ("fit",),
    "fitting.sobolev": ("sobolev_samples",),
    "fitting.normal": ("NormalEquations",),
    "fitting.orthogonal": ("OrthogonalEquations",),
    "grammar": ("StatementError",),
    "loading": ("load",),
    "network.activations": ("Activation",),
    "network.adapted": ("Adapted",),
    "network.features": ("FourierFeatures", "RandomFeatures"),
    "network.laws": ("Gaussian", "HeavyTailed", "Uniform", "WeightLaw"),
    "network.network": ("Network",),
    "pde.cells.method": ("Cells",),
    "pde.collocation.method": ("Collocation",),
    "pde.trefftz.method": ("Trefftz",),
    "pde.trefftz.scattering": ("ScatteredWave", "scatter"),
    "pde.functions": ("PointFunction",),
    "pde.paths.method": ("Paths",),
    "pde.polynomials.method": ("Polynomials",),
    "pde.problem.conditions": ("Data", "On", "Periodic"),
    "pde.outputs.quantity": ("Quantity",),
    "pde.problem.output": ("Output",),
    "pde.problem.problem": ("Problem",),
    "pde.problem.ranges": ("Range",),
    "pde.problem.unknown": ("Unknown", "UnknownFunction"),
    "pde.interpolation": ("GridData", "ScatteredData"),
    "pde.inverse.design": ("Sensitivity",),
    "pde.inverse.estimates": ("Parameter",),
    "pde.inverse.identified": ("Identified",),
    "pde.ensembles": ("Ensemble",),
    "pde.family.family": ("Family",),
    "pde.family.operator": ("Operator",),
    "pde.solution": ("ConvergenceWarning", "Solution"),
    "pde.lines.method": ("Lines",),
    "pde.identification": ("Identify", "sensitivity"),
    "pde.solve": ("ensemble", "solve"),
    "pde.monitor": ("Status", "Progress"),
    "pde.spectrum.continuation.result": ("Continuation",),
    "pde.spectrum.continuation.run": ("continuation",),
    "pde.spectrum.eigen": ("eigen",),
    "pde.spectrum.pseudospectrum": ("Pseudospectrum", "pseudospectrum"),
    "pde.spectrum.result": ("Mode", "Spectrum"),
    "pde.flow.method": ("Flow",),
    "pde.weak.method": ("WeakCells",),
    "pde.zoo": ("zoo",),
}
"""Where the public names live. They load when they are first used: SymPy and SciPy take most of a second."""

__all__ = [
    "Activation",
    "Adapted",
    "Ball",
    "Box",
    "Cells",
    "Collocation",
    "Continuation",
    "ConvergenceWarning",
    "Curve",
    "Cylinder",
    "Data",
    "Difference",
    "Ellipse",
    "Ensemble",
    "Estimate",
    "Euclidean",
    "Family",
    "FileError",
    "Flow",
    "FourierFeatures",
    "Gaussian",
    "GridData",
    "HalfSpace",
    "HeavyTailed",
    "Identified",
    "Identify",
    "Implicit",
    "InputError",
    "Interval",
    "Lines",
    "Mode",
    "Network",
    "NormalEquations",
    "On",
    "Operator",
    "OrthogonalEquations",
    "Output",
    "Parameter",
    "Paths",
    "Periodic",
    "PointFunction",
    "Polygon",
    "Polynomials",
    "Problem",
    "Progress",
    "Pseudospectrum",
    "Quantity",
    "RandomFeatures",
    "Range",
    "ScatteredData",
    "ScatteredWave",
    "Sensitivity",
    "Solution",
    "SpaceTime",
    "Spectrum",
    "StatementError",
    "Status",
    "Trefftz",
    "Uniform",
    "Unknown",
    "UnknownFunction",
    "WeakCells",
    "WeightLaw",
    "continuation",
    "eigen",
    "ensemble",
    "fit",
    "gauss_rule",
    "integrate",
    "l2_norm",
    "load",
    "mesh",
    "mixture",
    "pseudospectrum",
    "relative_l2",
    "scatter",
    "sensitivity",
    "sobolev_norm",
    "sobolev_samples",
    "solve",
    "zoo",
]


def __getattr__(name: str) -> object:
    for home, names in _HOMES.items():
        if name in names:
            value = getattr(import_module(f"rannpde.{home}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'rannpde' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
