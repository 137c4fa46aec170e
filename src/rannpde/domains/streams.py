"""Streams of points of the unit cube, and mixtures of samplers in exact shares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import floor
from typing import Literal, Protocol

import numpy as np

from rannpde.arrays import Array, Rng
from rannpde.domains.sobol import INITIAL, SobolSequence
from rannpde.errors import choose, finite_array, positive_integer, require

SamplingMethod = Literal["uniform", "sobol"]
PointStream = Callable[[int], Array]
"""Called with a count, it gives the next points (count, columns) of the unit cube."""


def unit_stream(dim: int, rng: Rng, method: str) -> PointStream:
    """A function that, called with a count, gives the next points (count, dim) of the unit cube.

    ``uniform`` points are independent. ``sobol`` points are one sequence, scrambled by the generator (so each point is
    uniform on the cube too), however it is cut into calls.
    """
    generator = np.random.default_rng(rng)
    streams = {"uniform": _uniform_stream, "sobol": _sobol_stream}
    return choose("method", method, streams)(dim, generator)


def _uniform_stream(dim: int, generator: np.random.Generator) -> PointStream:
    return lambda count: generator.random((count, dim))


def _sobol_stream(dim: int, generator: np.random.Generator) -> PointStream:
    if dim == 0:
        return lambda count: np.empty((count, 0))
    if dim <= len(INITIAL):
        return SobolSequence(dim, generator).draw
    from scipy.stats import qmc  # loading it takes half a second

    engine = qmc.Sobol(dim, scramble=True, rng=generator)

    def draw(count: int) -> Array:
        # SciPy warns when the first draw is not a power of two; the sequence is the same in two draws.
        first = 1 << (count.bit_length() - 1)
        rest = count - first
        return np.concatenate([engine.random(first), engine.random(rest)]) if rest else engine.random(first)

    return draw


# ------------------------------------------------------------------------------------------------------------ mixtures


class Sampler(Protocol):
    """Anything that draws points: a domain, a side, or a law of one's own."""

    def sample(self, count: int, *, rng: Rng = None) -> Array:
        """Points, shape (count, n)."""
        ...


def mixture(components: Sequence[tuple[float, Sampler]], count: int, *, rng: Rng = None) -> Array:
    """Points (count, n) drawn from several samplers in exact shares, one component after the other.

    Component i gives ⌊share_i · count⌋ points; what is missing to ``count`` goes, one each, to the components with the
    largest fractional parts (the first of equals). One generator is passed through all components.

    >>> from rannpde.domains import SpaceTime
    >>> domain = SpaceTime(t=(0.1, 1.1), x=[(0, 1)] * 3)
    >>> mixture([(0.5, domain), (0.5, domain.restrict(x=[(0.2, 0.8)] * 3))], 100, rng=0).shape
    (100, 4)
    """
    count = positive_integer("count", count)
    counts = _exact_counts(components, count)
    generator = np.random.default_rng(rng)
    parts = [
        finite_array("a component's points", source.sample(part, rng=generator), 2)
        for part, (_, source) in zip(counts, components, strict=True)
        if part
    ]
    shapes = [part.shape for part in parts]
    expected = [(part, shapes[0][1]) for part in counts if part]
    require(shapes == expected, "shapes of the components' points", shapes, f"{expected}")
    return np.concatenate(parts)


def _exact_counts(components: Sequence[tuple[float, Sampler]], count: int) -> list[int]:
    pairs = all(
        isinstance(pair, (tuple, list)) and len(pair) == 2 and hasattr(pair[1], "sample") for pair in components
    )
    require(pairs, "components", components, "pairs (share, sampler)", "e.g. [(0.5, domain), (0.5, smaller)]")
    shares = finite_array("shares", [share for share, _ in components], 1)
    total = float(shares.sum())
    positive = len(shares) > 0 and bool((shares > 0).all())
    require(positive, "shares", shares.tolist(), "positive, at least one", "leave components without a share out")
    require(abs(total - 1) < 1e-9, "sum of the shares", total, "1", "divide each by their sum")
    wanted = shares * count
    counts = [floor(part) for part in wanted]
    order = np.argsort(-(wanted - counts), kind="stable")
    for index in order[: count - sum(counts)]:
        counts[index] += 1
    return counts
