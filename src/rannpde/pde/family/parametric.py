"""What solutions for all values of parameters share: quantities as polynomials in them, the report, pictures, files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rannpde.arrays import Array, Rng
from rannpde.errors import InputError, choose, finite_array, is_real, require
from rannpde.io import PathLike
from rannpde.network import storage
from rannpde.pde.family.estimate import ErrorModel
from rannpde.pde.family.optimum import Optimum, optimise
from rannpde.pde.family.polynomial import ParameterPolynomial, active_error
from rannpde.pde.family.posterior import Posterior, sample_posterior
from rannpde.pde.family.propagation import Propagated, propagate
from rannpde.pde.family.table import ValueTable
from rannpde.pde.problem.ranges import Range, parameter_values
from rannpde.pde.solution import Report, Solution

if TYPE_CHECKING:
    from matplotlib.figure import Figure

QuantityLike = str | Callable[[Solution], Any] | ParameterPolynomial


@dataclass(frozen=True, eq=False, repr=False)
class ParametricSolution(Solution):
    """Solutions at the nodes of an interpolation in the parameters with a range; the common part of families.

    members : the solutions at the nodes of the interpolation, in the order in which they were computed
    checked : solutions at independent values, which the interpolation predicted; no part of it
    model : the error estimate at each value; table : values on a grid, which make queries quick, on boxes

    ``estimate`` is the largest over the range. What a Solution has and takes no values of parameters, such as
    ``to_arrays`` or ``animate``, shows the middle of the ranges; ``family.at(nu=0.03)`` is the Solution at others.
    """

    members: tuple[Solution, ...]
    checked: tuple[Solution, ...]
    model: ErrorModel
    table: ValueTable | None = None
    judged = "fields"
    """What ``estimate`` and ``error`` speak of."""

    def on(self, points: Array) -> ParameterPolynomial:
        """The fields at points as polynomials in the parameters."""
        raise NotImplementedError

    @property
    def ranges(self) -> dict[str, Range]:
        """Parameter → its range."""
        return self.stated.ranges

    def error(self, **values: float) -> float:
        """Estimated relative error at one value of every parameter: in L², the largest over the fields.

        Where the domain changes with parameters it is the largest over the outputs.
        """
        interpolation, solved = self.model.errors(self._reduced(values)[None])
        return float(interpolation[0] + solved[0])

    # ------------------------------------------------------------------------------------------------ quantities

    def output(self, quantity: QuantityLike) -> ParameterPolynomial:
        """A quantity of interest as a polynomial in the parameters, with its error.

        quantity : a function of a Solution that gives a number or an array, or an object with ``value`` and ``bound``;
            the name of an output of the problem, or of ``outputs``
        """
        if isinstance(quantity, ParameterPolynomial):
            own = list(quantity.ranges) == list(self.ranges)
            require(own, "quantity", f"one of {', '.join(quantity.ranges)}", f"one of {', '.join(self.ranges)}")
            return quantity
        if isinstance(quantity, str):
            return choose("output", quantity, self.outputs)
        require(callable(quantity), "quantity", quantity, "a function of a Solution, or the name of an output")
        answers = [_number(quantity(member)) for member in self.members]
        return self._polynomial(np.stack([value for value, _ in answers]), max(bound for _, bound in answers), quantity)

    @cached_property
    def outputs(self) -> dict[str, ParameterPolynomial]:  # type: ignore[override]  # a number for every value
        """Output of the problem → a polynomial in the parameters, computed when it is first asked for.

        The bounds of the outputs at the nodes rest on second solves there.
        """
        return {name: self.output(_NamedOutput(name)) for name in self.stated.outputs}

    def _polynomial(
        self, values: Array, bound: float, quantity: Callable[[Solution], Any] | None = None
    ) -> ParameterPolynomial:
        """Values at the nodes as a polynomial, with the error by its surpluses, its checks and that of the values."""
        grid = self.model.grid
        error = active_error(grid, values) + bound
        plain = ParameterPolynomial(self.ranges, grid, values, error)
        if quantity is None:
            sizes = np.abs(values).max() if values.size else 0.0
            return replace(plain, error=max(error, self.estimate * float(sizes)))
        for member in self.checked:
            predicted = plain(**{name: member.stated.parameters[name] for name in self.ranges})
            error = max(error, float(np.max(np.abs(predicted - _number(quantity(member))[0]))) + bound)
        return replace(plain, error=error)

    def propagate(
        self, laws: Mapping[str, Any], quantity: QuantityLike | None = None, points: Array | None = None, rng: Rng = 0
    ) -> Propagated:
        """Mean, deviation, quantiles and Sobol indices of a quantity or of the fields, for random parameters.

        laws : parameter → a frozen distribution of ``scipy.stats`` within its range, or a number
        quantity : as in ``output``; or points : (M, n), at which the fields are wanted
        """
        return propagate(self._asked(quantity, points), laws, rng)

    def minimise(
        self,
        quantity: QuantityLike,
        bounds: Mapping[str, tuple[float, float]] | None = None,
        fixed: Mapping[str, float] | None = None,
        maximise: bool = False,
    ) -> Optimum:
        """The values of the parameters at which a quantity, a number, is least (or largest), within bounds.

        quantity : as in ``output``; bounds : parameter → (lower, upper) within its range; fixed : parameter → value
        """
        return optimise(self.output(quantity), bounds or {}, fixed or {}, maximise)

    def posterior(
        self,
        measured: Array,
        noise: Any,
        points: Array | None = None,
        quantity: QuantityLike | None = None,
        prior: Mapping[str, Any] | None = None,
        samples: int = 4000,
        rng: Rng = 0,
    ) -> Posterior:
        """Samples of the parameters given measurements of the fields at points, or of a quantity.

        measured : (M,) values at points (M, n) of a single field, or as the quantity gives them
        noise : standard deviation of Gaussian noise; a frozen distribution of ``scipy.stats`` for measured - true; or
            a function of these differences (K, M) that gives log-likelihoods (K,)
        prior : parameter → distribution of ``scipy.stats``; uniform on the scale of its range unless given
        """
        return sample_posterior(self._asked(quantity, points), measured, noise, prior or {}, samples, rng)

    def _asked(self, quantity: QuantityLike | None, points: Array | None) -> ParameterPolynomial:
        if (quantity is None) == (points is None):
            raise InputError("give either quantity=… (a function of a Solution or the name of an output) or points=…")
        return self.on(points) if quantity is None else self.output(quantity)  # type: ignore[arg-type]

    # ------------------------------------------------------------------------------------------------ what is shown

    def report(self) -> Report:
        """A page of text: how it ended, the estimate over the range, solves, checks at independent values."""
        verdict = "converged" if self.converged else "DID NOT CONVERGE"
        known = f"{self.estimate:.2e}" if np.isfinite(self.estimate) else "unknown"
        lines = [f"{self.title}: {verdict} ({self.reason})", f"  {self.method}"]
        for name, one in self.ranges.items():
            lines.append(f"  {name} from {one.lower:g} to {one.upper:g}, {one.scale} scale")
        lines.append(f"  estimated relative error of the {self.judged} for all values: {known}")
        if self.problem is not None:
            lines += [f"  relative L² error of {name}, at most: {error:.2e}" for name, error in self.errors().items()]
        lines += [f"  {line}" for line in self.history.lines()]
        if self.judged == "outputs":
            lines += [f"  {name}: {_span(one)}" for name, one in self.outputs.items()]
        else:
            lines.append(
                f"  queries read {'the solutions at the nodes' if self.table is None else 'a table of values'}"
            )
        lines += [
            f"  relative residual of {name!r} at the nodes, at most: {r:.1e}" for name, r in self.held_out.items()
        ]
        lines.append(f"  {self.seconds:.2f} s")
        return Report("\n".join(lines))

    def plot(self, path: PathLike | None = None) -> Figure:
        """Solutions over each range, the decay of the error, and the estimate over the range."""
        from rannpde.plotting.family import plot_family  # pictures load when they are wanted

        return plot_family(self, path)

    def to_html(self, path: PathLike, command: str = "") -> Path:
        """One page with the statement, the picture and the report; gives back the path."""
        from rannpde.plotting.family import write_family_page

        return write_family_page(self, path, command)

    def save(self, path: PathLike, exact: bool = False) -> Path:
        """One file that ``rp.load`` reads back; the problem goes with it when it is made of text."""
        header, arrays = self.pack(exact)
        return storage.write(path, "family", header, arrays)

    def pack(self, exact: bool = False) -> tuple[dict[str, Any], dict[str, Array]]:
        """Header and arrays of that file; outputs go with it where they were asked for."""
        own = {one.name: getattr(self, one.name) for one in fields(Solution)}
        header, _ = Solution(**own | {"function": self.members[0].function, "stored": {}}).pack(exact)
        header |= {"function": None, "members": [], "checked": len(self.checked), "table": None}
        arrays = {f"errors.{name}": array for name, array in self.model.pack().items()}
        for number, member in enumerate((*self.members, *self.checked)):
            known = "outputs" in self.__dict__ or not self.stated.outputs
            about, own = (member if known else replace(member, stored={})).pack(exact)
            if not known:
                del about["outputs"]  # they are computed when they are asked for
            about["values"] = {name: member.stated.parameters[name] for name in self.ranges}
            header["members"].append(about)
            arrays |= {f"{number}:{name}": array for name, array in own.items()}
        if self.table is not None:
            header["table"] = self.table.degree
            arrays |= {f"table.edges.{k}": edges for k, edges in enumerate(self.table.edges)}
            arrays["table.values"] = self.table.values
        return header, arrays

    # ------------------------------------------------------------------------------------------------ weights

    def _reduced(self, values: Mapping[str, float]) -> Array:
        stated = parameter_values(self.ranges, values)
        return np.array([float(one.reduced(stated[name])) for name, one in self.ranges.items()])


@dataclass(frozen=True)
class _NamedOutput:
    """An output of the problem by its name, as a function of a solution."""

    name: str

    def __call__(self, solution: Any) -> Any:
        return solution.outputs[self.name]


def _number(answer: Any) -> tuple[Array, float]:
    """The value of a quantity and the bound of its error, zero where none is known."""
    value = finite_array("the quantity", getattr(answer, "value", answer), tuple(range(8)))
    bound = getattr(answer, "bound", 0.0)
    bound = float(np.max(bound)) if is_real(bound) or isinstance(bound, np.ndarray) else 0.0
    return value, bound


def _span(output: ParameterPolynomial) -> str:
    """An output over the range: its values at the nodes lie between these two."""
    return f"from {output.values.min():.6g} to {output.values.max():.6g}, each ± {output.error:.1e}"
