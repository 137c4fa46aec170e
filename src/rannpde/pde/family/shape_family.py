"""Families in which parameters change the domain: outputs for every value of them, fields by one more solve.

Fields on different domains have no common points, so that nothing of them is interpolated. The outputs of the problem
are numbers, which depend on sizes of shapes as smoothly as on other parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rannpde.arrays import Array
from rannpde.errors import InputError, choose, reject
from rannpde.pde.family.estimate import ErrorModel
from rannpde.pde.family.parametric import ParametricSolution
from rannpde.pde.family.polynomial import ParameterPolynomial
from rannpde.pde.problem.ranges import parameter_values
from rannpde.pde.solution import Solution


@dataclass(frozen=True, eq=False, repr=False)
class ShapeFamily(ParametricSolution):
    """Outputs for every size of a shape: ``family.outputs["flux"](r=0.2)``; fields there by ``family.at(r=0.2)``.

    solver : name → value of every parameter, to the solution there; None for a family that was read from a file
    """

    solver: Callable[[Mapping[str, float]], Solution] | None = None
    solved: dict[tuple[float, ...], Solution] = field(default_factory=dict, init=False)
    judged = "outputs"

    def __call__(self, points: Any, **values: float) -> Array:
        """The fields at points (M, n) for one value of every parameter, which are solved for when they are first asked
        for."""
        return self.at(**values)(points)

    def derivative(self, points: Any, derivative: Any, **values: float) -> Array:
        """∂^α of the fields at points (M, n), as ``__call__``."""
        return self.at(**values).derivative(points, derivative)

    def field(self, name: str, points: Array, **values: float) -> Array:
        """The values (M,) of one field."""
        choose("field", name, dict.fromkeys(self.fields))
        return self.at(**values).field(name, points)

    def at(self, **values: float) -> Solution:  # type: ignore[override]  # of a family, values are of parameters
        """The Solution at one value of every parameter: that of a node, or a new one, which is kept."""
        stated = parameter_values(self.ranges, values)
        key = tuple(stated.values())
        for member in (*self.members, *self.checked):
            if tuple(member.stated.parameters[name] for name in self.ranges) == key:
                return member
        if key not in self.solved:
            if self.solver is None:
                raise InputError(
                    "the family was read from a file, which holds no solver; solve at these values: "
                    f"rp.solve(family.stated.with_parameters({stated}))"
                )
            self.solved[key] = self.solver(stated)
        return self.solved[key]

    def errors(self, count: int = 4000, rng: int = 7) -> dict[str, float]:
        """Field → largest relative L² error at the nodes, where an exact solution is known."""
        errors = [member.errors(count, rng) for member in self.members]
        return {name: max(one[name] for one in errors) for name in errors[0]}

    def on(self, points: Array) -> ParameterPolynomial:
        """Refused: fields on different domains have no common points."""
        reject("points", points, "left out where the domain changes with a parameter", "name an output, quantity=…")


def nearest_to_middle(model: ErrorModel, members: Sequence[Solution]) -> Solution:
    """The solution at the node that is nearest to the middle of all ranges."""
    return members[int(np.argmin(np.linalg.norm(model.grid.nodes, axis=1)))]
