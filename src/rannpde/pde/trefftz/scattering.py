"""Scattering of plane waves by obstacles in the plane: features that satisfy Helmholtz' equation and radiate.

The scattered field outside of obstacles is a combination of Hankel functions H_n(k|x - c|) exp(inθ) about the centre of
each obstacle, of sources inside near its boundary, and of poles that crowd at its corners from within. They satisfy the
equation and Sommerfeld's condition exactly, so that only the condition on the obstacles is left to fit: no artificial
boundary, no mesh.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

import numpy as np
from scipy.special import j0, j1

from rannpde.arrays import Array, MultiIndex, Rng
from rannpde.checkpoints import Cause, Ended
from rannpde.domains.domain import Box
from rannpde.domains.shapes.base import Domain
from rannpde.errors import choose, finite_points, positive_number, require
from rannpde.pde.budget import Budget, watched
from rannpde.pde.monitor import Monitor
from rannpde.pde.problem.conditions import On
from rannpde.pde.problem.problem import Problem
from rannpde.pde.tolerance import COMPARABLE, MUCH_SMALLER
from rannpde.pde.trefftz.basis import PlaneLaw, PlaneResolution
from rannpde.pde.trefftz.cylinder import bessel_j, bessel_y
from rannpde.pde.trefftz.geometry import PlaneBoundary, plane_boundary
from rannpde.pde.trefftz.least_squares import least_squares
from rannpde.pde.trefftz.operator import CanonicalForm
from rannpde.pde.trefftz.sources import SourceFamily, derived
from rannpde.pde.trefftz.tuning import TrefftzTuning
from rannpde.rounding import ROOT_ROUNDED
from rannpde.threads import one_thread

CONDITIONS = ("soft", "hard")


@dataclass(frozen=True, eq=False)
class RadiatingFeatures:
    """Hankel functions about centres, with degrees and radii, monopoles at sources (K, 2), dipoles at poles (P, 2)."""

    wave_number: float
    centres: tuple[Array, ...]
    radii: tuple[float, ...]
    degrees: tuple[int, ...]
    sources: Array
    poles: Array
    lengths: Array

    def values(self, points: Array, index: MultiIndex) -> Array:
        """∂^index (M, N), complex, for orders of at most one."""
        blocks = [
            _multipoles(self.wave_number, points - centre, radius, degree, index)
            for centre, radius, degree in zip(self.centres, self.radii, self.degrees, strict=True)
        ]
        if len(self.sources):
            blocks.append(self._sources(points, self.sources, index))
        if len(self.poles):
            gaps, radial = self._radial(points, self.poles, sum(index) + 1)
            for moment in ((1, 0), (0, 1)):
                total = (index[0] + moment[0], index[1] + moment[1])
                blocks.append(self.lengths * derived(gaps, radial, total))
        return np.concatenate(blocks, axis=1)

    def _sources(self, points: Array, origins: Array, index: MultiIndex) -> Array:
        """∂^index of H_0(k|x - s|), orders of at most three."""
        gaps, radial = self._radial(points, origins, sum(index))
        return derived(gaps, radial, index)

    def _radial(self, points: Array, origins: Array, top: int) -> tuple[list[Array], list[Array]]:
        """Gaps x - s, and (1/r d/dr)^j of H_0(kr) for j ≤ top."""
        gaps = [points[:, axis, None] - origins[:, axis] for axis in range(2)]
        radius = np.hypot(*gaps)
        k, x = self.wave_number, self.wave_number * radius
        orders = 1j * bessel_y(max(top, 1), x)
        orders[0] += j0(x)
        orders[1] += j1(x)
        if top > 1:
            orders[2] += 2 / x * j1(x) - j0(x)
        return gaps, [(-k / radius) ** j * orders[j] for j in range(top + 1)]


def _multipoles(k: float, arrows: Array, radius: float, degree: int, index: MultiIndex) -> Array:
    """∂^index of H_n(kr) exp(inθ), |n| ≤ degree, over |H_n(k radius)|."""
    r, angle = np.hypot(*arrows.T), np.arctan2(arrows[:, 1], arrows[:, 0])
    top = degree + 1
    known = bessel_j(top, k * r) + 1j * bessel_y(top, k * r)
    here = np.array([k * radius])
    sizes = np.abs(bessel_j(top, here) + 1j * bessel_y(top, here))[:, 0]
    orders = np.arange(-degree, degree + 1)

    def ladder(shift: int) -> Array:
        """H_{n+shift} exp(i(n+shift)θ)."""
        moved = orders + shift
        sign = np.where((moved < 0) & (moved % 2 == 1), -1.0, 1.0)
        return np.asarray((known[np.abs(moved)] * sign[:, None]).T * np.exp(1j * angle[:, None] * moved))

    if not any(index):
        values = ladder(0)
    else:
        up, down = -k * ladder(1), k * ladder(-1)  # ∂_x ± i ∂_y
        values = 0.5 * (up + down) if index == (1, 0) else (up - down) / 2j
    return np.asarray(values / sizes[np.abs(orders)])


@dataclass(frozen=True, eq=False)
class ScatteredWave:
    """The field of a plane wave exp(ik d·x) that meets obstacles.

    boundary_error : root mean square error of the condition on fresh points of the obstacles; the incident wave is one

    >>> from rannpde.domains import Ball
    >>> wave = scatter(Ball((0, 0), 1), 5.0, condition="hard", tol=1e-6)
    >>> wave([[2.0, 0.0]]).shape, wave.converged
    ((1,), True)
    """

    obstacles: Domain
    wave_number: float
    direction: Array
    features: RadiatingFeatures
    weights: Array
    boundary_error: float
    converged: bool
    seconds: float

    def incident(self, points: Array) -> Array:
        """exp(ik d·x) (M,), complex."""
        return np.asarray(np.exp(1j * self.wave_number * finite_points("points", points, 2) @ self.direction))

    def scattered(self, points: Array) -> Array:
        """The radiating part (M,), complex."""
        return np.asarray(self.features.values(finite_points("points", points, 2), (0, 0)) @ self.weights)

    def total(self, points: Array) -> Array:
        """Incident and scattered wave (M,), complex; NaN inside of obstacles."""
        points = finite_points("points", points, 2)
        values = np.full(len(points), np.nan + 0j)
        outside = self.obstacles.level(points) >= 0
        values[outside] = self.incident(points[outside]) + self.scattered(points[outside])
        return values

    def __call__(self, points: Array) -> Array:
        return self.total(points)


def scatter(
    obstacles: Domain,
    wave_number: float,
    *,
    angle: float = 0.0,
    condition: str = "soft",
    tol: float = 1e-8,
    seconds: float | None = None,
    rng: Rng = 0,
) -> ScatteredWave:
    """A plane wave of that wave number and angle meets obstacles: a union of disjoint shapes of the plane.

    condition : "soft", the total field vanishes on the obstacles, or "hard", its normal derivative does
    tol : the root mean square error of the condition on the obstacles that is wanted

    >>> from rannpde.domains import Ball
    >>> wave = scatter(Ball((0.3, -0.2), 0.5), 12.0, tol=1e-8)
    >>> wave.converged, bool(abs(wave.total([[0.8, -0.2]])[0]) < 1e-7)
    (True, True)
    """
    k, tol = positive_number("wave_number", wave_number), positive_number("tol", tol)
    choose("condition", condition, dict.fromkeys(CONDITIONS))
    require(isinstance(obstacles, Domain) and obstacles.dim == 2 and not obstacles.timed, "obstacles", obstacles,
            "a shape of the plane")  # fmt: skip
    direction = np.array([np.cos(angle), np.sin(angle)])
    monitor, tuning, generator = Monitor(None, Budget(seconds)), TrefftzTuning(), np.random.default_rng(rng)
    waves: list[ScatteredWave] = []
    with watched(monitor.budget), one_thread():
        try:
            _iterate(obstacles, k, direction, condition, tol, tuning, generator, monitor, waves)
        except Ended as end:
            if not waves and end.cause is Cause.INTERRUPT:
                raise KeyboardInterrupt from None
            require(bool(waves), "seconds", seconds, "enough for a first solve", "allow more")
    return min(waves, key=lambda wave: wave.boundary_error)


def _iterate(
    obstacles: Domain, k: float, direction: Array, condition: str, tol: float, tuning: TrefftzTuning,
    rng: np.random.Generator, monitor: Monitor, waves: list[ScatteredWave],
) -> None:  # fmt: skip
    """Solve with more and more features; every solution is appended to ``waves``."""
    law = _exterior(obstacles, k, tol, tuning)
    resolution = law.first()
    resolution = replace(
        resolution,
        corners=tuple(law.poles if corner.loop else 0 for corner in law.boundary.corners),
        sources=tuple(
            0 if segment.loop == 0 else n for segment, n in zip(law.boundary.segments, resolution.sources, strict=True)
        ),
    )
    before = np.inf
    for _ in range(tuning.iterations):
        features = _features(law, resolution, rng)
        wave, errors = _fitted(obstacles, k, direction, condition, law, resolution, features, tol, monitor)
        waves.append(wave)
        if wave.converged or monitor.exhausted or 4 * len(wave.weights) > tuning.columns * 3:
            break
        slow = wave.boundary_error > MUCH_SMALLER * before
        before = wave.boundary_error
        resolution = law.refined(resolution, errors, COMPARABLE * tol / float(np.sqrt(len(errors))), slow, ())


def _exterior(obstacles: Domain, k: float, tol: float, tuning: TrefftzTuning) -> PlaneLaw:
    """The law of features of a box whose holes are the obstacles; those of the sides of the box are not used."""
    lower, upper = obstacles.bounds.T
    margin = float((upper - lower).max())
    box = Box(**{n: (a - margin, b + margin) for n, a, b in zip(obstacles.names, lower, upper, strict=True)})
    outside = box - obstacles
    problem = Problem(f"laplace(u) + {k!r}**2*u = 0", outside, {"all": On("boundary", "u = 0")})
    form = CanonicalForm(np.eye(2), np.zeros(2), np.zeros(2), k**2, 1.0, k**2)
    boundary = plane_boundary(outside, problem.constraints, form)
    require(isinstance(boundary, PlaneBoundary), "obstacles", boundary, "closed curves that do not touch")
    assert isinstance(boundary, PlaneBoundary)
    return PlaneLaw(outside, boundary, form, tol, tuning, problem.vocabulary)


def _features(law: PlaneLaw, resolution: PlaneResolution, rng: np.random.Generator) -> RadiatingFeatures:
    centres, radii, degrees = [], [], []
    for number, (middle, inner, outer) in enumerate(law.boundary.holes):
        if law.round_hole(number):
            centres.append(middle)
            radii.append(inner)
            # shapes other than circles have poles and sources; multipoles up to k × radius suffice for their far field
            most = ceil(law.form.wave_number * outer) + 10
            degree = resolution.holes[number]
            degrees.append(degree if inner > (1 - ROOT_ROUNDED) * outer else min(degree, most))
    poles, lengths, sources = [np.empty((0, 2))], [np.empty(0)], [np.empty((0, 2))]
    for family in law.at_corners(resolution, rng):
        if isinstance(family, SourceFamily):
            poles.append(family.sources)
            lengths.append(np.minimum(family.lengths, 1 / law.form.wave_number))
    sources += [family.sources for family in law.along(resolution, rng) if isinstance(family, SourceFamily)]
    joined = [np.concatenate(parts) for parts in (sources, poles, lengths)]
    return RadiatingFeatures(law.form.wave_number, tuple(centres), tuple(radii), tuple(degrees), *joined)


def _rows(
    features: RadiatingFeatures,
    law: PlaneLaw,
    resolution: PlaneResolution,
    shift: float,
    factor: float,
    condition: str,
    direction: Array,
) -> tuple[Array, Array, Array, Array]:
    """Complex matrix, right-hand side, weights and groups of the condition on the obstacles."""
    k, matrices, sides, weights, groups = features.wave_number, [], [], [], []
    for segment, stated in zip(law.boundary.segments, law.conditions(resolution, shift, factor), strict=True):
        if segment.loop == 0:
            continue
        wave = np.exp(1j * k * stated.points @ direction)
        if condition == "soft":
            matrices.append(features.values(stated.points, (0, 0)))
            sides.append(-wave)
        else:
            assert stated.term.region is not None
            normals = stated.term.region.normals(stated.points)  # type: ignore[attr-defined]
            slopes = [features.values(stated.points, index) for index in ((1, 0), (0, 1))]
            scale = np.minimum(stated.scales, 1 / k)
            matrices.append((slopes[0] * normals[:, :1] + slopes[1] * normals[:, 1:]) * scale[:, None])
            sides.append(-1j * k * (normals @ direction) * wave * scale)
        weights.append(stated.weights)
        groups.append(stated.groups)
    return np.concatenate(matrices), np.concatenate(sides), np.concatenate(weights), np.concatenate(groups)


def _fitted(
    obstacles: Domain, k: float, direction: Array, condition: str, law: PlaneLaw, resolution: PlaneResolution,
    features: RadiatingFeatures, tol: float, monitor: Monitor,
) -> tuple[ScatteredWave, dict[int, float]]:  # fmt: skip
    matrix, rhs, weights, _ = _rows(features, law, resolution, 0.5, 1.0, condition, direction)
    coefficients = least_squares(matrix * weights[:, None], rhs * weights).coefficients
    fresh, goal, shares, groups = _rows(features, law, resolution, 1 / 4, float(np.sqrt(2)), condition, direction)
    residuals = np.abs(fresh @ coefficients - goal)
    total = float(np.linalg.norm(residuals * shares) / np.linalg.norm(shares))
    errors = {int(g): float(np.linalg.norm((residuals * shares)[groups == g])) for g in np.unique(groups)}
    wave = ScatteredWave(obstacles, k, direction, features, coefficients, total, total <= tol, monitor.elapsed)
    return wave, errors
