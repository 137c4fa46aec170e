"""Features for holes: how fast their multipoles decay, which degree of polynomials resolves their images, and which
features belong to one hole alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from rannpde.arrays import Array
from rannpde.pde.tolerance import MUCH_SMALLER, SAME_SOLUTION
from rannpde.pde.trefftz.analytic import LaurentFamily, complex_numbers
from rannpde.pde.trefftz.families import FeatureFamily
from rannpde.pde.trefftz.potentials import GoursatFamily
from rannpde.pde.trefftz.rows import ConditionPoints

if TYPE_CHECKING:
    from rannpde.pde.trefftz.basis import PlaneLaw

SLOWEST_HOLE = 0.85
"""The slowest decay of multipoles that is assumed beforehand; where holes nearly touch, coefficients show a slower one.
"""


def hole_rate(law: PlaneLaw, number: int) -> float:
    """The factor by which the multipoles of a hole decay: images of other boundaries in it converge to a limit point.

    For circles at the distance D of their centres the limit points are p and q away from them, p (D - q) = r² and
    q (D - p) = R², and between a circle and a line at the distance D, p = D - √(D² - r²).
    """
    middle, _, r = law.boundary.holes[number]
    wall = float(np.linalg.norm(_nearest_wall(law, middle) - middle))
    points = [wall - np.sqrt(max(wall**2 - r**2, 0.0))]
    for k, (other, _, R) in enumerate(law.boundary.holes):
        if k != number:
            D = max(float(np.linalg.norm(other - middle)), r + R)
            half = 0.5 * (D + (r**2 - R**2) / D)
            points.append(half - np.sqrt(max(half**2 - r**2, 0.0)))
    return float(np.clip(max(points) / r, SAME_SOLUTION, SLOWEST_HOLE))


def _nearest_wall(law: PlaneLaw, point: Array) -> Array:
    """The point (2,) of the outer boundary that is nearest, among those of the outline."""
    wall = law.outer_outline
    return np.asarray(wall[np.argmin(np.linalg.norm(wall - point, axis=1))])


def image_degree(law: PlaneLaw) -> int:
    """The degree n at which polynomials that are orthonormal on the outer boundary resolve the images of holes beyond
    it: a function that is singular at z there is approximated to 1/|q_n(z)|. 0 without round holes.

    The limit point of the images in a wall at the distance D from the middle of a hole is √(D² - r²) behind the wall.
    """
    images = []
    for number, (middle, _, r) in enumerate(law.boundary.holes):
        wall = _nearest_wall(law, middle)
        distance = float(np.linalg.norm(wall - middle))
        if law.round_hole(number) and distance > r:
            images.append(wall + (wall - middle) / distance * np.sqrt(distance**2 - r**2))
    if not images or not law.harmonic:
        return 0
    outside = np.array(images)[~law.domain.contains(law.form.back(np.array(images)))]
    most = law.tuning.columns // 8  # four features each in systems: half of the columns that there may be
    degree = law.regular_at_first
    while len(outside):
        degree = min(2 * degree, most)
        sizes = np.abs(law.polynomials(degree).powers(complex_numbers(outside), 0)[0]).min(axis=0)
        enough = np.flatnonzero(sizes >= 1 / (MUCH_SMALLER * law.tol))
        if len(enough) or degree == most:
            return int(enough[0]) if len(enough) else most
    return 0


def hole_columns(law: PlaneLaw, families: Sequence[FeatureFamily]) -> dict[int, Array]:
    """Hole → the columns (C,) of its multipoles beyond dipoles, which hardly reach other boundaries."""
    columns, start = {}, 0
    for family in families:
        base = family.base if isinstance(family, GoursatFamily) else family
        if isinstance(base, LaurentFamily):
            parts = start + np.arange(family.columns).reshape(-1, base.functions)
            away = [float(np.linalg.norm(middle - base.centre)) for middle, _, _ in law.boundary.holes]
            columns[int(np.argmin(away))] = parts[:, 1:].ravel()
        start += family.columns
    return {hole: numbers for hole, numbers in columns.items() if len(numbers)}


def hole_rows(law: PlaneLaw, conditions: Sequence[ConditionPoints]) -> dict[int, Array]:
    """Hole → the rows (R,) of its conditions, where rows follow each other as conditions do."""
    groups = np.concatenate([condition.groups for condition in conditions]).astype(int) - len(law.boundary.corners)
    blocks: dict[int, list[Array]] = {}
    for number, segment in enumerate(law.boundary.segments):
        if segment.loop:
            blocks.setdefault(segment.loop - 1, []).append(np.flatnonzero(groups == number))
    return {hole: np.concatenate(rows) for hole, rows in blocks.items()}
