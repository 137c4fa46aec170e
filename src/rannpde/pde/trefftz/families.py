"""Families of features that satisfy an equation exactly: columns with any derivative, and as arrays for a file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from math import log
from typing import Any, ClassVar

import numpy as np

from rannpde.arrays import Array, MultiIndex, block_rows
from rannpde.errors import choose
from rannpde.pde.trefftz.operator import CanonicalForm


class FeatureFamily(ABC):
    """Columns of features, each a solution of the homogeneous equation."""

    kind: ClassVar[str]

    @property
    @abstractmethod
    def label(self) -> str:
        """The name of the features in reports."""

    @property
    @abstractmethod
    def columns(self) -> int:
        """The number of features N."""

    @property
    def rows_at_once(self) -> int:
        """Points at which sums are evaluated at once, so that intermediate arrays stay small."""
        return block_rows(8 * max(self.columns, 1))

    @abstractmethod
    def values(self, points: Array, index: MultiIndex) -> Array:
        """∂^index of all fields (M, fields, N) at points (M, n)."""

    def several(self, points: Array, indices: Sequence[MultiIndex], weights: Array) -> list[Array]:
        """∂^index of Σ weights_j feature_j (M, fields) for every index, for weights (N,)."""
        return [np.asarray(self.values(points, index) @ weights) for index in indices]

    def multipoles(self, weights: Array) -> tuple[Array, Array] | None:
        """The centre (2,) of multipoles and the size of the weights (N,) at each degree; None for other features."""
        return None

    def pack(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Header and arrays for a file."""
        arrays = {one.name: np.asarray(getattr(self, one.name)) for one in fields(self) if one.name != "form"}  # type: ignore[arg-type]
        return {"kind": self.kind}, {name: np.atleast_1d(a).astype(complex if a.dtype.kind == "c" else float)
                                     for name, a in arrays.items()}  # fmt: skip


REGULAR_LABEL, SINGULAR_LABEL = "regular functions", "multipoles in holes"
"""Labels of functions about one centre that are smooth there, and that are not."""


def counted_features(families: Iterable[FeatureFamily]) -> str:
    """The numbers of features of each kind, in words."""
    counts: dict[str, int] = {}
    for one in families:
        counts[one.label] = counts.get(one.label, 0) + one.columns
    return ", ".join(f"{count} {label}" for label, count in counts.items())


class CanonicalFamily(FeatureFamily):
    """Features given in the coordinates of a canonical form, for one field."""

    form: CanonicalForm

    @abstractmethod
    def canonical(self, points: Array, index: MultiIndex) -> Array:
        """exp(-drift·y) ∂_y^index v (M, N) at points y (M, n)."""

    def values(self, points: Array, index: MultiIndex) -> Array:
        here = self.form.to(points)
        parts = [(value, self.canonical(here, beta)) for beta, value in self.form.expanded(index).items()]
        total = parts[0][1] if parts[0][0] == 1 else parts[0][0] * parts[0][1]
        for value, part in parts[1:]:
            total = total + value * part
        return total[:, None, :]


@dataclass(frozen=True, eq=False)
class ExponentialFamily(FeatureFamily):
    """Re and Im of exp(λ·(x - x₀) - offset), for λ (K, n) on the characteristic variety of any operator.

    Plane waves, harmonic exponentials, layers; ``offset`` (K,) is the largest exponent on the domain, so that no
    feature exceeds one.
    """

    kind: ClassVar[str] = "exponentials"
    label: ClassVar[str] = "exponentials"
    frequencies: Array
    offsets: Array
    origin: Array

    @cached_property
    def _real(self) -> bool:
        """Whether there are no oscillations, and the imaginary parts vanish."""
        return not np.any(np.imag(self.frequencies))

    @property
    def columns(self) -> int:
        return len(self.frequencies) if self._real else 2 * len(self.frequencies)

    def values(self, points: Array, index: MultiIndex) -> Array:
        frequencies = np.real(self.frequencies) if self._real else self.frequencies
        waves = np.exp((points - self.origin) @ frequencies.T - self.offsets)
        if any(index):
            waves = waves * np.prod(frequencies ** np.array(index), axis=1)
        return (waves if self._real else np.concatenate([waves.real, waves.imag], axis=1))[:, None, :]

    def several(self, points: Array, indices: Sequence[MultiIndex], weights: Array) -> list[Array]:
        """Re Σ (w - iw') λ^index exp(…): exponentials are evaluated once for all derivatives."""
        frequencies, whole = self.frequencies, weights
        if self._real:
            frequencies = np.real(frequencies)
        else:
            whole = weights[: len(frequencies)] - 1j * weights[len(frequencies) :]
        waves = np.exp((points - self.origin) @ frequencies.T - self.offsets)
        return [(waves @ (np.prod(frequencies ** np.array(i), axis=1) * whole)).real[:, None] for i in indices]


def evanescent_degrees(reach: float, digits: float) -> float:
    """The degrees beyond its wave number times radius, ``reach``, that a wave needs for a number of digits.

    Rokhlin's rule, 1.8 digits^(2/3) reach^(1/3), is for sources at the boundary itself: those of smooth data are
    farther away, and half of it is enough.
    """
    return 0.5 * 9 / 5 * float(digits) ** (2 / 3) * float(reach) ** (1 / 3)


def degree_needed(sizes: Array, target: float) -> float:
    """The degree at which coefficients (N,) fall below the target, if they go on as they do: chopping.

    Where they level off, other features are what is missing: the rate is that before.

    >>> degree_needed(0.5 ** np.arange(1, 21), 2.0**-10), round(degree_needed(0.5 ** np.arange(1, 21), 2.0**-30), 9)
    (20, 30.0)
    >>> round(degree_needed(np.maximum(0.5 ** np.arange(1, 41), 2.0**-20), 2.0**-30), 1)
    30.0
    """
    count = len(sizes)
    if count < 4 or sizes[max(count - 3, count // 2) :].max() <= target:
        return count
    last, size, rate = coefficient_decay(sizes)
    return last + 1 + (log(target) - size) / rate if rate < 0 else np.inf


def coefficient_decay(sizes: Array) -> tuple[int, float, float]:
    """The decay of coefficients (N,) of degrees 0 … N - 1: the last significant degree, its logarithm, and the change
    of the logarithm per degree."""
    count = len(sizes)
    envelope = np.maximum.accumulate(sizes[::-1])[::-1]
    last = max(count - 3, count // 2)  # single coefficients may vanish by symmetry
    logs = np.log(np.maximum(envelope, 1e-300)).tolist()
    level = int(np.argmax(envelope <= 10 * envelope[last]))  # one digit above the last ones
    rate = (logs[last] - logs[count // 2]) / max(last - count // 2, 1)
    before = (logs[level] - logs[level // 2]) / max(level - level // 2, 1)
    if last > level and (logs[last] - logs[level]) / (last - level) > 0.5 * before:
        last, rate = level, before
    return last, logs[last], rate


def unpack_family(
    header: Mapping[str, Any], arrays: Mapping[str, Array], form: CanonicalForm | None, kinds: Mapping[str, type[Any]]
) -> FeatureFamily:
    """The inverse of ``FeatureFamily.pack``; kinds : by their names."""
    kind = choose("family", header["kind"], kinds)
    scalars = {"radius": float, "degree": int, "regular": bool, "offset": float}
    given: dict[str, Any] = {}
    for one in fields(kind):
        if one.name == "form":
            given["form"] = form
        elif one.name not in arrays and one.name == "cuts":  # files that are older
            given[one.name] = np.full(len(arrays["corners"]), np.inf)
        else:
            array = np.asarray(arrays[one.name])
            given[one.name] = scalars[one.name](array.ravel()[0]) if one.name in scalars else array
    family: FeatureFamily = kind(**given)
    return family
