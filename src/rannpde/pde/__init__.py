"""Partial differential equations: stated in one line, solved from their equations."""

from rannpde.pde.checks import ConditionWarning
from rannpde.pde.conditions import Data, On, Periodic
from rannpde.pde.files import example, examples, read_problem
from rannpde.pde.grammar import StatementError
from rannpde.pde.lines import solve_lines
from rannpde.pde.lines.ensemble import Ensemble
from rannpde.pde.newton import GaussNewton
from rannpde.pde.problem import Problem
from rannpde.pde.solution import ConvergenceWarning, Solution, load_solution
from rannpde.pde.solve import solve
from rannpde.pde.space_time import solve_space_time
from rannpde.pde.state import Component, PointFunction
from rannpde.pde.zoo import ZOO, zoo

__all__ = [
    "ZOO",
    "Component",
    "ConditionWarning",
    "ConvergenceWarning",
    "Data",
    "Ensemble",
    "GaussNewton",
    "On",
    "Periodic",
    "PointFunction",
    "Problem",
    "Solution",
    "StatementError",
    "example",
    "examples",
    "load_solution",
    "read_problem",
    "solve",
    "solve_lines",
    "solve_space_time",
    "zoo",
]
