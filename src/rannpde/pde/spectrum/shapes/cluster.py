"""One eigenvalue, or a cluster, by particular solutions: the functions of κ that are smallest on the boundary."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.linalg

from rannpde.arrays import Array, MultiIndex
from rannpde.pde.spectrum.settings import DISTINCT_EIGENVALUES
from rannpde.pde.spectrum.shapes.boundary_points import BoundarySamples
from rannpde.pde.tolerance import MUCH_SMALLER, NEARBY, NONLINEAR_SHARE, SAME_SOLUTION
from rannpde.pde.trefftz.basis import PlaneLaw
from rannpde.pde.trefftz.families import FeatureFamily
from rannpde.pde.trefftz.least_squares import rounding_ridge
from rannpde.pde.trefftz.network import TrefftzNetwork
from rannpde.pde.trefftz.parts import NoPart
from rannpde.pde.trefftz.rows import feature_values
from rannpde.pde.trefftz.space import SpaceLaw
from rannpde.pde.trefftz.tuning import TrefftzTuning

if TYPE_CHECKING:
    from rannpde.pde.spectrum.shapes.particular import ParticularSolutions

NEWTON_REACH, NEIGHBOURS = NONLINEAR_SHARE, 9
"""Relative distance at which corrections find an eigenvalue, being of second order; functions that are looked at."""


@dataclass(frozen=True, eq=False)
class SampledFunctions:
    """Functions of one κ with small boundary values: coefficients (N, m), and their values on the boundary.

    values, across (M, m) : of the functions and their normal derivatives, canonical; left (M, m) : what the conditions
    leave, as values; inside (K, m)
    """

    families: list[FeatureFamily]
    weights: Array
    values: Array
    across: Array
    left: Array
    inside: Array

    def leading(self, count: int) -> SampledFunctions:
        """The first of the functions."""
        parts = (self.weights, self.values, self.across, self.left, self.inside)
        return SampledFunctions(self.families, *(part[:, :count] for part in parts))


class ModeCluster:
    """One eigenvalue, or several that the approximations do not separate."""

    def __init__(self, of: ParticularSolutions, kappas: Array, reach: float, inside: Array) -> None:
        self.of, self.count, self.reach, self.inside = of, len(kappas), reach, inside
        self.first = np.sort(kappas)
        self.modes: list[tuple[float, float, TrefftzNetwork]] = []
        self.scale = float(of.boundary.segments[0].form.matrix[0, 0])
        self.area = of.problem.domain.measure * self.scale**of.problem.domain.dim

    def solve(self, resolution: Any) -> bool:
        """Whether every member has a bound below the tolerance; with more features as long as that helps."""
        of = self.of
        law, least = of.law(float(self.first.mean())), np.inf
        self._coarsely(law)
        self.resolution = resolution or of.first(law)
        for _ in range(TrefftzTuning().iterations):
            if of.monitor.exhausted:
                return False
            self.sampled: dict[float, SampledFunctions] = {}
            self.samples = BoundarySamples(of.problem, of.boundary, law.conditions(self.resolution, 0.5))
            kappas = self._newton(of.tol)
            if kappas is None:
                return False
            errors, weights = self._bound(
                kappas, BoundarySamples(of.problem, of.boundary, law.conditions(self.resolution, 1 / 3, 2.0))
            )
            worst = max(bound / max(kappa, 1e-300) for kappa, bound, _ in self.modes)
            if worst <= of.tol:
                return True
            if worst > 0.5 * least:
                return False
            target = MUCH_SMALLER * of.tol / np.sqrt(len(errors))
            finer: Any = law.refined(self.resolution, errors, target, worst > MUCH_SMALLER * least, weights)
            plane = isinstance(law, PlaneLaw)
            self.resolution = replace(finer, corners=of.poles(finer.corners)) if plane else finer
            least, self.first = worst, kappas
        return False

    def neighbours(self, window: float) -> list[float]:
        """Eigenvalues within a relative distance of κ, by corrections from there with few features."""
        here = float(self.first[0])
        coarse = replace(self.of.law(here), tol=max(self.of.tol, self.of.tol**0.5))
        self.sampled, self.resolution = {}, self.of.first(coarse)
        self.samples = BoundarySamples(self.of.problem, self.of.boundary, coarse.conditions(self.resolution, 0.5))
        near = self._corrections(here, NEIGHBOURS)
        eigenvalues: list[float] = []
        for start in np.zeros(0) if near is None else near:
            value = float(start)
            if abs(value - here) > 2 * window * here or any(
                abs(value - one) < SAME_SOLUTION * here for one in eigenvalues
            ):
                continue
            for _ in range(TrefftzTuning().iterations):
                again = self._corrections(value, 1)
                if again is None or abs(float(again[0]) - here) > 2 * window * here:
                    break
                change, value = abs(float(again[0]) - value), float(again[0])
                if change <= DISTINCT_EIGENVALUES * value:
                    if all(abs(value - one) > DISTINCT_EIGENVALUES / MUCH_SMALLER * value for one in eigenvalues):
                        eigenvalues.append(value)
                    break
        return eigenvalues

    def multiplicity(self, kappa: float) -> int:
        """The number of independent functions of κ that almost vanish on the boundary, by a gap of boundary values."""
        left = np.linalg.norm(self._small(kappa, NEIGHBOURS).left * self.samples.roots[:, None], axis=0)
        return max(1, int((left <= np.sqrt(left[0] * left[-1])).sum()))

    def _coarsely(self, law: PlaneLaw | SpaceLaw) -> None:
        """Begin with few features: errors of eigenvalues are of second order in those of the boundary."""
        coarse = replace(law, tol=max(law.tol, law.tol**0.5))
        if coarse.tol == law.tol:
            return
        self.sampled, self.resolution = {}, self.of.first(coarse)
        self.samples = BoundarySamples(self.of.problem, self.of.boundary, coarse.conditions(self.resolution, 0.5))
        kappas = self._newton(coarse.tol)
        self.first = self.first if kappas is None else kappas

    def _small(self, kappa: float, count: int) -> SampledFunctions:
        """The functions of κ with the smallest boundary values relative to those inside."""
        law, samples = self.of.law(kappa), self.samples
        families = self.of.families(law, self.resolution)
        both = np.concatenate([samples.points, self.inside])
        tables = feature_values(families, both, (0,) * law.form.dim)[:, 0]
        values, inside = tables[: len(samples.points)], tables[len(samples.points) :]
        across = samples.across(lambda index: feature_values(families, samples.points, index)[:, 0])
        left = samples.residuals(values, across)
        stacked = np.concatenate([left * samples.roots[:, None], inside / np.sqrt(len(inside))])
        sizes = np.linalg.norm(stacked, axis=0)
        sizes[~(sizes > 1e-280)] = np.inf
        first, triangle = scipy.linalg.qr(stacked / sizes, mode="economic", check_finite=False)
        second, triangle, order = scipy.linalg.qr(triangle, pivoting=True, check_finite=False)
        diagonal = np.abs(np.diag(triangle))
        rank = int((diagonal > rounding_ridge(len(diagonal)) * diagonal[0]).sum())
        # squares of sines: others are far from the smallest, whose vectors have all digits but that distance
        sines = first[: len(left)] @ second[:, :rank]
        last = scipy.linalg.eigh(sines.T @ sines, subset_by_index=[0, min(count, rank) - 1])[1].T
        weights = np.zeros((stacked.shape[1], len(last)))
        weights[order[:rank]] = scipy.linalg.solve_triangular(triangle[:rank, :rank], last.T)
        weights = weights / sizes[:, None]
        return SampledFunctions(families, weights, values @ weights, across @ weights, left @ weights, inside @ weights)

    def _mass(self, kappa: float, functions: SampledFunctions) -> Array:
        """∫ u_i u_j: by Rellich's identity where u = 0 is the condition, by points inside otherwise."""
        if self.of.clamped:
            share = self.samples.lengths * self.samples.outwards / (2 * kappa)
            return np.asarray((share[:, None] * functions.across).T @ functions.across)
        return np.asarray(self.area / len(functions.inside) * functions.inside.T @ functions.inside)

    def _newton(self, tol: float) -> Array | None:
        """The members, by corrections from Green's formula, each cluster at its own middle."""
        kappas, change = self.first, np.inf
        for _ in range(TrefftzTuning().iterations):
            corrected = kappas.copy()
            for group in split_values(kappas, NEARBY * tol):
                near = self._corrections(float(kappas[group].mean()), len(group))
                if near is None:
                    return None
                corrected[group] = near
            corrected = np.sort(corrected)
            change = float(np.abs(corrected - kappas).max() / np.abs(kappas).max())
            kappas = corrected
            if change <= MUCH_SMALLER * tol:
                return kappas
            if np.abs(kappas - self.first).max() > 4 * self.reach + MUCH_SMALLER * float(np.abs(self.first).max()):
                return None
        return kappas if change <= tol else None

    def _corrections(self, kappa: float, count: int) -> Array | None:
        """The eigenvalues (count,) nearest to κ; a neighbour or two more are in the small problem."""
        functions = self.sampled[kappa] = self._small(kappa, count + 2)
        share = self.samples.lengths[:, None]
        dirichlet = self.samples.dirichlet[:, None]
        green = (share * np.where(dirichlet, 0.0, functions.left / self.samples.unit)).T @ functions.values
        green -= (share * np.where(dirichlet, functions.left, 0.0)).T @ functions.across
        try:
            values = scipy.linalg.eigvals(green, self._mass(kappa, functions))
        except (scipy.linalg.LinAlgError, ValueError):
            return None
        if not np.isfinite(values).all():
            return None
        return np.sort(kappa + np.real(values[np.argsort(np.abs(values))][:count]))

    def _bound(self, kappas: Array, fresh: BoundarySamples) -> tuple[dict[int, float], Any]:
        """Every member with its bound and mode; the errors by groups of features, and what refinement needs."""
        modes: list[tuple[float, float, TrefftzNetwork]] = []
        errors: dict[int, float] = {}
        weights: Any = []
        for group in split_values(kappas, SAME_SOLUTION * self.of.tol):
            value = float(kappas[group].mean())
            middle = min(self.sampled, key=lambda kappa, value=value: abs(kappa - value))  # type: ignore[misc]
            functions = self.sampled[middle].leading(len(group))
            norms = np.sqrt(np.abs(np.diag(self._mass(middle, functions))) / self.area)
            law, own, total = self.of.law(middle), [], 0.0
            families, own_weights = functions.families, functions.weights

            def table(index: MultiIndex, families: Any = families, own: Array = own_weights) -> Array:
                return np.asarray(feature_values(families, fresh.points, index)[:, 0] @ own)

            values = table((0,) * law.form.dim)
            left = np.abs(fresh.residuals(values, fresh.across(table))) / norms
            for k, column in enumerate(functions.weights.T):
                network = TrefftzNetwork(tuple(functions.families), column, (NoPart(),), law.form)
                largest = float(left[:, k].max())
                largest += fresh.between(values[:, k] / norms[k])
                total += largest**2
                size = functions.inside[np.abs(functions.inside[:, k]).argmax(), k]
                own.append(replace(network, weights=column / size))
                for g in np.unique(fresh.groups):
                    mine = fresh.groups == g
                    error = float(np.linalg.norm(left[mine, k] * fresh.roots[mine]))
                    errors[int(g)] = max(errors.get(int(g), 0.0), error)
                ends = np.cumsum([family.columns for family in functions.families])[:-1]
                weights = list(zip(functions.families, np.split(column / norms[k], ends), strict=True))
            share = float(np.sqrt(total))
            bound = middle * share / max(1 - share, 1e-300) + float(np.abs(kappas[group] - middle).max())
            modes += [(kappa, bound + 1e-14 * middle, one) for kappa, one in zip(kappas[group], own, strict=True)]
        self.modes = modes
        return errors, weights


def split_values(kappas: Array, same: float) -> list[Array]:
    """Positions of sorted values that differ by less than a share of them."""
    apart = np.flatnonzero(np.diff(kappas) > same * np.abs(kappas[1:])) + 1
    return np.split(np.arange(len(kappas)), apart)
