"""Several solutions of one problem, from independent realisations of the random features."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rannpde.arrays import Array
from rannpde.errors import require
from rannpde.io import PathLike
from rannpde.network import storage
from rannpde.pde.solution import Report, Solution

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False, repr=False)
class Ensemble:
    """Solutions from independent realisations. Calling it gives the mean, ``spread`` the standard deviation over them.

    The spread is the random part of the error only: it cannot show errors that all members share, such as one in time.
    """

    members: tuple[Solution, ...]

    def __post_init__(self) -> None:
        require(len(self.members) >= 2, "members", len(self.members), "two solutions or more")

    def __repr__(self) -> str:
        """One line: how many members, and what the first of them says."""
        agreed = sum(member.converged for member in self.members)
        first = self.members[0]
        return (
            f"<Ensemble of {len(self.members)} solutions of {first.title}, {agreed} converged, by {first.method.name}>"
        )

    def _repr_html_(self) -> str:
        """What a notebook shows: the members, and the picture of mean and spread."""
        from rannpde.plotting.notebook import ensemble_html

        return ensemble_html(self)

    def __call__(self, *points: Any, **coordinates: Any) -> Array:
        """Mean over the members, called as solutions are: (M,) for a single field, (M, fields) otherwise."""
        return np.mean([member(*points, **coordinates) for member in self.members], axis=0)

    def spread(self, *points: Any, **coordinates: Any) -> Array:
        """Standard deviation over the members, of the same shape."""
        return np.std([member(*points, **coordinates) for member in self.members], axis=0, ddof=1)

    def derivative(self, first: Any, /, *rest: Any, **named: Any) -> Array:
        """Mean of a derivative over the members."""
        return np.mean([member.derivative(first, *rest, **named) for member in self.members], axis=0)

    def errors(self) -> dict[str, list[float]]:
        """Field → relative L² error of every member, where an exact solution is known."""
        errors = [member.errors() for member in self.members]
        return {name: [one[name] for one in errors] for name in errors[0]}

    @property
    def converged(self) -> bool:
        """Whether every member converged."""
        return all(member.converged for member in self.members)

    def relative_spread(self, count: int = 4000, rng: int = 7) -> dict[str, float]:
        """Field → spread over the mean, both root mean squares on fresh uniform points."""
        first = self.members[0]
        points = first.stated.domain.sample(count, rng=rng)
        mean, spread = (np.reshape(f(points), (count, -1)) for f in (self, self.spread))
        sizes = np.linalg.norm(mean, axis=0)
        ratios = np.linalg.norm(spread, axis=0) / np.where(sizes > 0, sizes, 1.0)
        return dict(zip(first.fields, ratios.tolist(), strict=True))

    def report(self) -> Report:
        """How the members ended, their estimates, errors where known, and the spread."""
        lines = [f"{self.members[0].title}: {len(self.members)} independent draws"]
        for number, member in enumerate(self.members, start=1):
            verdict = "converged" if member.converged else f"DID NOT CONVERGE ({member.reason})"
            known = "".join(f", error of {name} {error:.1e}" for name, error in member.errors().items())
            lines.append(f"  {number}: {verdict}, estimate {member.estimate:.1e}{known}, {member.seconds:.1f} s")
        lines += [f"  relative spread of {name}: {value:.1e}" for name, value in self.relative_spread().items()]
        return Report("\n".join(lines))

    def plot(self, path: PathLike | None = None) -> Figure:
        """The first member's picture, with the spread over the members beside it."""
        from rannpde.plotting import plot_ensemble  # pictures load when they are wanted

        return plot_ensemble(self, path)

    def save(self, path: PathLike) -> Path:
        """One file that ``rp.load`` reads back."""
        headers: list[dict[str, Any]] = []
        arrays: dict[str, Array] = {}
        for number, member in enumerate(self.members):
            header, own = member.pack()
            headers.append(header)
            arrays |= {f"{number}:{name}": array for name, array in own.items()}
        return storage.write(path, "ensemble", {"members": headers}, arrays)
