"""Texts about a solution: a page, and one line."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any, Protocol

from rannpde.pde.tolerance import RESIDUAL_TOLERANCE

if TYPE_CHECKING:
    from rannpde.pde.outputs.quantity import Quantity
    from rannpde.pde.solution import Solution

LARGE_RESIDUAL_NOTE = (
    "(large residuals beside a small error: where a solution has corners or layers, its second derivatives are "
    "unbounded, and so is the mean square of the residual; the estimate is that of the solution itself)"
)


class History(Protocol):
    """The history of the method that ran: its iterations, ranks, steps, and advice."""

    @property
    def advice(self) -> str: ...

    def lines(self) -> list[str]: ...

    def to_table(self) -> dict[str, Any]: ...


def report_lines(solution: Solution) -> list[str]:
    """The lines of ``Solution.report``."""
    verdict = "converged" if solution.converged else "DID NOT CONVERGE"
    known = f"{solution.estimate:.2e}" if isfinite(solution.estimate) else "unknown"
    lines = [
        f"{solution.title}: {verdict} ({solution.reason})",
        f"  {solution.method}; columns {sum(solution.widths)} in {len(solution.widths)} subdomain(s) or segment(s)",
        f"  estimated relative L² error: {known}",
    ]
    if solution.problem is not None:
        lines += [f"  relative L² error of {name}: {error:.2e}" for name, error in solution.errors().items()]
    if solution.problem is not None:
        lines += [f"  {name} = {quantity}{_doubt(quantity)}" for name, quantity in solution.outputs.items()]
    lines.append(f"  {'term':<24}{'loss':>12}{'integral':>12}{'held out':>12}")
    for name in dict.fromkeys([*solution.losses, *solution.held_out]):
        parts = [table.get(name) for table in (solution.losses, solution.integrals, solution.held_out)]
        shown = "".join(f"{'':>12}" if part is None else f"{part:12.2e}" for part in parts)
        lines.append(f"  {name:<24}{shown}".rstrip())
    if solution.converged and max(solution.held_out.values(), default=0.0) > RESIDUAL_TOLERANCE:
        lines.append(f"  {LARGE_RESIDUAL_NOTE}")
    lines += [f"  {line}" for line in solution.history.lines()]
    lines.append(f"  {solution.seconds:.2f} s")
    return lines


def _doubt(quantity: Quantity) -> str:
    return "" if quantity.converged else "  (not converged)"


def summary(solution: Solution) -> str:
    """One line about a solution: ``of u(t, x), 'Burgers', by lines: converged, estimated relative error 3e-09``."""
    where = f"({', '.join(solution.problem.domain.names)})" if solution.problem is not None else ""
    name = f", {solution.problem.name!r}" if solution.problem is not None and solution.problem.name else ""
    fields = ", ".join(f"{field}{where}" for field in solution.fields)
    known = f"{solution.estimate:.1e}" if isfinite(solution.estimate) else "unknown"
    verdict = "converged" if solution.converged else f"not converged ({solution.status.name.lower()})"
    return f"of {fields}{name}, by {solution.method.name}: {verdict}, estimated relative error {known}"
