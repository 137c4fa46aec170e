"""The numbers behind the weak form on cells, in one place, each with its unit and its reason."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import sqrt

from rannpde.pde.newton import NewtonSettings
from rannpde.pde.tolerance import FINER_FACTOR, MUCH_SMALLER, NONLINEAR_SHARE, PILOT_TOLERANCE
from rannpde.rounding import ROOT_ROUNDED


@dataclass(frozen=True)
class WeakSettings:
    """Functions of a cell, penalty, and refinement.

    columns : cosines, sines and 1 per polynomial of the degree
    frequency : largest on [-1, 1] over the degree: more spans other functions than polynomials, less is ill-conditioned
    cutoff : singular values in H¹ below it, relative to the largest, are rounding of the columns
    cut_cutoff : the same on cut cells, among the functions of a whole box, which are rounded themselves
    derivative_cutoff : the same in the span of the derivatives, where only the largest trace is wanted
    more_nodes, curved_nodes : Gauss nodes along an axis beyond the degree, and where cells have curved sides
    coercivity : penalty over the least for which the form is coercive; any number above 1 will do in theory
    theta : share of the squared indicators that marked cells hold (Dörfler). Degrees rise besides: with 0.9, the share
        of other methods, the last iterations may have one mesh and an error in common, which bounds of fluxes by their
        changes miss. One flux of a heated cavity had, in one of six draws with 0.9, an error above its bound; none had
        with 0.8
    patience : iterations in a row that may fail to lower the estimate: at the end of the digits each costs more
    degree, most_degree : degree of the first solve at tol = 1 and what each digit adds; highest, by dimension: beyond,
        the cutoff leaves no further functions
    first_cells : along the shortest side, by dimension
    per_cell : change of the data, over half their range, that a half-cell of degree 1 may hold
    turn : angle, in radians, by which curved sides turn in a first cell at most: somewhat more than a right one
    most_cells : where refinement ends, by dimension
    smooth_decay : logarithm of the factor by which Legendre coefficients fall from one degree to the next above which a
        cell is smooth: a cell beside a geometrically graded one has log 2 and more
    more_levels : halvings towards a singular point whose cells are marked, least and most
    trust, least_gain : the error of the later of two solutions is their difference times ``trust`` times the gain of
        the indicators, but at least ``least_gain`` (independent errors of a size differ by √2 of it), at most all
    newton : when its iterations end, and how the load grows
    least_step : shortest share of a step of Newton's method
    sure_step : size of a step, over that of the solution, below which it is taken without a line search: its part of
        second order is as small beside it
    coarse_degree, coarse_step, coarse_factor : of the meshes on which Newton's method begins: degree, last step, and
        how much finer the next one resolves singular points
    obstacle_degree, obstacle_cells : of the first mesh with an obstacle, beside whose free boundary solutions are no
        smoother than parabolas; cells along the shortest side
    residual_limit : energy of the indicators over that of the solution above which nothing is called solved
    """

    columns: float = 1.3
    frequency: float = 0.2
    cutoff: float = 1e-11
    cut_cutoff: float = 1e-9
    derivative_cutoff: float = ROOT_ROUNDED
    more_nodes: int = 5
    curved_nodes: int = 10
    coercivity: float = 2.0
    theta: float = 0.8
    patience: int = 2
    degree: tuple[float, float] = (4.0, 0.7)
    most_degree: tuple[int, int, int] = (16, 12, 8)
    first_cells: tuple[int, int, int] = (2, 2, 1)
    per_cell: float = 0.5
    turn: float = 1.7
    most_cells: tuple[int, int, int] = (4000, 3000, 1500)
    smooth_decay: float = 0.6
    more_levels: tuple[int, int] = (2, 8)
    trust: float = FINER_FACTOR
    least_gain: float = sqrt(2) / 2
    newton: NewtonSettings = field(default_factory=NewtonSettings)
    least_step: float = 1 / 256
    sure_step: float = NONLINEAR_SHARE
    coarse_degree: int = 4
    coarse_step: float = PILOT_TOLERANCE
    coarse_factor: float = MUCH_SMALLER
    obstacle_degree: int = 4
    obstacle_cells: int = 6
    residual_limit: float = 0.5
