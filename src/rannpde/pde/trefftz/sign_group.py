"""Symmetries of a solid that change the signs of coordinates about its centre: reflections, half turns, inversion.

Boxes, ellipsoids, cylinders, tori and what is cut out of them symmetrically have up to eight of them. They are
recognised at sample points: a change of signs is a symmetry where every side becomes a side, with the same coefficients
of its condition there. What is given on the sides need not be symmetric.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.residual import Term
from rannpde.pde.statement.vocabulary import Vocabulary
from rannpde.pde.trefftz.least_squares import PANEL
from rannpde.pde.trefftz.operator import CanonicalForm
from rannpde.pde.trefftz.rows import condition_coefficients
from rannpde.rounding import COMPUTED, ROOT_ROUNDED


@dataclass(frozen=True, eq=False)
class SignGroup:
    """Changes of signs of coordinates about an origin, and what they make of the sides.

    flips (G, n) : ±1, first those of the identity; sides (G, T) : the number of the side that each of T sides becomes
    """

    origin: Array
    flips: Array
    sides: Array

    @classmethod
    def trivial(cls, dim: int, sides: int) -> SignGroup:
        """The identity alone."""
        return cls(np.zeros(dim), np.ones((1, dim)), np.arange(sides)[None, :])

    @property
    def order(self) -> int:
        """The number G of its elements."""
        return len(self.flips)

    @cached_property
    def moved(self) -> Array:
        """Whether some symmetry changes the sign of each axis (n,)."""
        return np.asarray((self.flips < 0).any(axis=0))

    @cached_property
    def characters(self) -> Array:
        """The characters (G, G), one in each row: products of the signs of some axes."""
        powers = np.array(list(product((0, 1), repeat=self.flips.shape[1])))
        return np.unique(np.prod(self.flips[None, :, :] ** powers[:, None, :], axis=2), axis=0)[::-1]

    def images(self, points: Array) -> Array:
        """The images (G, M, n) of points (M, n)."""
        return np.asarray(self.origin + self.flips[:, None, :] * (points - self.origin))

    def fundamental(self, points: Array) -> Array:
        """Which points (M,) lie in one fundamental domain: of their images, they are the farthest along a diagonal."""
        return np.asarray(((points - self.origin) @ (1 - self.flips).T >= 0).all(axis=1))


def sign_group(terms: Sequence[Term], form: CanonicalForm, words: Vocabulary) -> SignGroup:
    """All symmetries of an operator, a solid about the origin of the form, and the conditions on its sides."""
    dim = form.dim
    if form.moves or np.count_nonzero(form.matrix - np.diag(np.diag(form.matrix))):
        return SignGroup.trivial(dim, len(terms))
    samples = [term.region.sample(PANEL, rng=1) for term in terms]  # type: ignore[union-attr]
    flips, sides = [], []
    every = np.array(list(product((1.0, -1.0), repeat=dim)))
    firsts = form.origin + every[:, None, :] * (np.array([points[0] for points in samples]) - form.origin)
    # of every term (T, G, T): which sides, by each flip, have the image of their first point on its own
    holding = [term.region.contains(firsts.reshape(-1, dim)) for term in terms]  # type: ignore[union-attr]
    on_side = np.reshape(holding, (len(terms), len(every), len(terms)))
    for flip, hits in zip(every, on_side.transpose(1, 2, 0), strict=True):
        images = [form.origin + flip * (points - form.origin) for points in samples]
        numbers = [
            _image_of_side(terms, k, np.flatnonzero(hits[k]), samples[k], images[k], flip, words)
            for k in range(len(terms))
        ]
        if None not in numbers:
            flips.append(flip)
            sides.append(numbers)
    return SignGroup(form.origin, np.array(flips), np.array(sides))


def _image_of_side(
    terms: Sequence[Term], number: int, candidates: Array, points: Array, images: Array, flip: Array, words: Vocabulary
) -> int | None:
    """The number of the side on which the images (M, n) of all points (M, n) of a side lie, with the same
    coefficients of its condition; None where there is none. candidates : sides that hold the first image."""
    own = terms[number]
    for k in sorted(candidates.tolist(), key=lambda k: k != number):
        other = terms[k]
        region = other.region
        assert region is not None
        if not region.contains(images).all():
            continue
        alike = own.weight == other.weight and np.isclose(own.measure, other.measure, rtol=ROOT_ROUNDED)
        return k if alike and _same_coefficients(own, other, points, images, flip, words) else None
    return None


def _same_coefficients(own: Term, other: Term, points: Array, images: Array, flip: Array, words: Vocabulary) -> bool:
    """Whether a condition at points is another one at their images: derivatives change their signs with the axes."""
    jets, here = condition_coefficients([own], points, words)
    others, there = condition_coefficients([other], images, words)
    if set(jets) != set(others):
        return False
    signs = np.array([np.prod(flip ** np.array(jet.index)) for jet in jets])
    images_of_columns = there[:, 0, [others.index(jet) for jet in jets]] * signs
    coefficients = here[:, 0, :-1]
    return bool(np.abs(coefficients - images_of_columns).max() <= COMPUTED * np.abs(coefficients).max())
