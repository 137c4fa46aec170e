"""The weak form of non-linear problems, Σ ∫ F_i(u)·∂_i v - f(u)·v, and its linearisation at a state.

Properties that do not change with the state are taken from a linear form at a nominal state: which conditions are
essential, which split of mixed derivatives makes the others natural, where solutions are singular. That the conditions
stay natural is checked at further states. A condition with derivatives is c(u, ∇u) = R n·F(u, ∇u) + h(u) = 0, so that
the normal flux on its side is t(u) = R⁺ (R n·F - c), whatever the slopes are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import sympy

from rannpde.arrays import Array
from rannpde.domains.boundary.sides import Side
from rannpde.pde.problem.problem import Problem
from rannpde.pde.residual import Term
from rannpde.pde.statement.divergence import EllipticCoefficients, NoDivergenceForm
from rannpde.pde.statement.expression import Expression, Jet
from rannpde.pde.statement.quasilinear import Linearisation, QuasilinearSystem, generic_state, jet_values
from rannpde.rounding import COMPUTED, ROOT_ROUNDED, difference_step

STATES = 3
"""States at which it is checked that conditions are natural and that the form is symmetric."""
DEGENERATE = ROOT_ROUNDED
"""Diffusion at rest, over that at the nominal state, below which an iteration cannot begin at rest."""
STATE_SAMPLES = 12
"""Points of the domain and of each side at which states are sampled."""


@dataclass(frozen=True, eq=False)
class NominalSystem:
    """A non-linear system at one state, the same everywhere: values (F,), slopes (F, d)."""

    quasilinear: QuasilinearSystem
    values: Array
    slopes: Array

    @property
    def fields(self) -> tuple[str, ...]:
        return self.quasilinear.fields

    @property
    def names(self) -> tuple[str, ...]:
        return self.quasilinear.names

    @property
    def dim(self) -> int:
        return self.quasilinear.dim

    @property
    def kinked(self) -> bool:
        return self.quasilinear.kinked

    @property
    def signs(self) -> tuple[float, ...]:
        return self.quasilinear.signs

    @property
    def constant(self) -> bool:
        return False

    def at(self, points: Array) -> EllipticCoefficients:
        """The linearised coefficients at points (M, d)."""
        linearisation = self.quasilinear.linearised(points, *self._state(len(points)))
        return EllipticCoefficients(
            linearisation.diffusion, linearisation.advection, linearisation.reaction, -linearisation.terms[:, :, 0]
        )

    def nominal(self, expression: Expression, count: int) -> dict[Jet, Array]:
        """The state (M,) of each jet of an expression."""
        return jet_values(expression, self.fields, *self._state(count))

    def _state(self, count: int) -> tuple[Array, Array]:
        values = np.broadcast_to(self.values, (count, *self.values.shape))
        return values, np.broadcast_to(self.slopes, (count, *self.slopes.shape))


def nominal_system(system: QuasilinearSystem) -> NominalSystem:
    """The system at a generic state."""
    values, slopes = generic_state(1, len(system.fields), system.dim)
    return NominalSystem(system, values[0], slopes[0])


@dataclass(frozen=True, eq=False)
class BoundaryState:
    """Conditions at boundary points and a state: projection (M, K, K) on prescribed combinations, their values (M, K),
    the flux (M, K) along the normal of the others, and minus its derivative by the fields (M, K, F)."""

    projection: Array
    values: Array
    flux: Array
    robin: Array


class LinearisedForm(Protocol):
    """A form from which residuals and tangents on cells are computed."""

    @property
    def kinked(self) -> bool: ...

    def linearised(self, points: Array, values: Array, slopes: Array) -> Linearisation:
        """Terms and tangent at points (M, d), fields (M, F), slopes (M, F, d)."""
        ...

    def load_at_rest(self, points: Array) -> Array:
        """The terms at u = 0, (M, K, 1 + d)."""
        ...

    def boundary(
        self, numbers: Sequence[int], points: Array, normals: Array, values: Array, slopes: Array, here: Linearisation,
        share: float = 1.0,
    ) -> BoundaryState:  # fmt: skip
        """The conditions of these numbers at boundary points."""
        ...


class NewtonForm(LinearisedForm, Protocol):
    """A linearised form with the properties on which Newton's method depends."""

    @property
    def variational(self) -> bool:
        """Whether there is an energy."""
        ...

    @property
    def starts_at_rest(self) -> bool:
        """Whether an iteration can begin at u = 0."""
        ...


@dataclass(frozen=True, eq=False)
class QuasilinearForm:
    """A non-linear problem ready for integration by parts.

    twist (K, F, d, d) : what was added to the diffusion so that conditions are natural
    variational : whether the linearisation is symmetric at every state that was tried, so that there is an energy
    varying : numbers of conditions whose factor R to the normal flux depends on the state
    """

    problem: Problem
    system: QuasilinearSystem
    twist: Array
    variational: bool
    varying: frozenset[int] = frozenset()

    @property
    def fields(self) -> int:
        return len(self.system.fields)

    @property
    def kinked(self) -> bool:
        """Whether coefficients jump or have kinks along fixed lines."""
        return self.system.kinked

    @cached_property
    def conditions(self) -> tuple[Term, ...]:
        return self.problem.constraints

    def terms(self, points: Array, values: Array, slopes: Array) -> Array:
        """-f and the fluxes, (M, K, 1 + d)."""
        terms = self.system.terms(points, values, slopes)
        terms[:, :, 1:] += np.einsum("kfij,mfj->mki", self.twist, slopes)
        return terms

    def linearised(self, points: Array, values: Array, slopes: Array) -> Linearisation:
        """The terms and their derivatives."""
        linearisation = self.system.linearised(points, values, slopes)
        linearisation.terms[:, :, 1:] += np.einsum("kfij,mfj->mki", self.twist, slopes)
        linearisation.tangent[..., 1:, 1:] += self.twist
        return linearisation

    def boundary(
        self, numbers: Sequence[int], points: Array, normals: Array, values: Array, slopes: Array, here: Linearisation,
        share: float = 1.0,
    ) -> BoundaryState:  # fmt: skip
        """The conditions of these numbers at points (M, d) with outward normals (M, d).

        here : the linearisation at these points; share : factor of the residual of the conditions at u = 0
        """
        count, fields = len(points), self.fields
        projection, data = np.zeros((count, fields, fields)), np.zeros((count, fields))
        flux, robin = np.zeros((count, fields)), np.zeros((count, fields, fields))
        stated = [self._condition(self.conditions[n], points, normals, values, slopes, share) for n in numbers]
        essential = [(value, plain) for value, plain, slope in stated if slope is None]
        natural = [n for n, (_, _, slope) in zip(numbers, stated, strict=True) if slope is not None]
        if essential:  # affine: value + plain · (u - state)
            rows = np.stack([plain for _, plain in essential], axis=1)
            inverse = np.linalg.pinv(rows, rcond=1e-10)
            projection = inverse @ rows
            wanted = np.einsum("mrf,mf->mr", rows, values) - np.stack([value for value, _ in essential], axis=1)
            data = np.einsum("mkr,mr->mk", inverse, wanted)
        if natural:
            flux, robin = self._natural_flux(natural, points, normals, values, slopes, here, share)
            if self.varying & set(natural):
                robin = self._differenced(natural, points, normals, values, slopes, share)
            if essential:  # the flux along prescribed combinations is a reaction
                rest = np.eye(fields) - projection
                flux, robin = np.einsum("mkl,ml->mk", rest, flux), rest @ robin
        return BoundaryState(projection, data, flux, robin)

    def _natural_flux(
        self, numbers: Sequence[int], points: Array, normals: Array, values: Array, slopes: Array, here: Linearisation,
        share: float,
    ) -> tuple[Array, Array]:  # fmt: skip
        """t(u) = R⁺ (R n·F - c), (M, K), and minus its derivative by the fields (M, K, F) for a constant R."""
        natural = [self._condition(self.conditions[n], points, normals, values, slopes, share) for n in numbers]
        inclined = np.stack([slope for _, _, slope in natural if slope is not None], axis=1)  # (M, r, F, d)
        combination = _combination(here.diffusion, inclined, normals)
        inverse = np.linalg.pinv(combination, rcond=1e-10)
        normal = np.einsum("mi,mki->mk", normals, here.terms[:, :, 1:])
        carried = np.einsum("mi,mkfi->mkf", normals, here.tangent[..., 1:, 0])
        left = np.stack([value for value, _, _ in natural], axis=1)
        flux = np.einsum("mkr,mr->mk", inverse, np.einsum("mrk,mk->mr", combination, normal) - left)
        return flux, inverse @ (np.stack([plain for _, plain, _ in natural], axis=1) - combination @ carried)

    def _differenced(
        self, numbers: Sequence[int], points: Array, normals: Array, values: Array, slopes: Array, share: float
    ) -> Array:
        """Minus the derivative (M, K, F) of the natural flux by the fields, by central differences."""
        derivative = np.zeros((len(points), self.fields, self.fields))
        for f in range(self.fields):
            relative = difference_step()
            step = relative * max(float(np.abs(values[:, f]).max()), relative)
            sides = []
            for sign in (1.0, -1.0):
                moved = values.copy()
                moved[:, f] += sign * step
                here = self.linearised(points, moved, slopes)
                sides.append(self._natural_flux(numbers, points, normals, moved, slopes, here, share)[0])
            derivative[:, :, f] = (sides[1] - sides[0]) / (2 * step)
        return derivative

    def _condition(
        self, term: Term, points: Array, normals: Array, values: Array, slopes: Array, share: float = 1.0
    ) -> tuple[Array, Array, Array | None]:
        """Value (M,), derivatives by fields (M, F) and by slopes (M, F, d), None without, of a condition."""
        expression, fields = term.expression, self.system.fields
        known = self.problem.vocabulary.at(points, normals)
        state = jet_values(expression, fields, values, slopes)
        value, plain, inclined = linearised_condition(expression, fields, known, state, points.shape)
        if share < 1:
            rest = expression.value(known, {jet: np.zeros(len(points)) for jet in expression.jets})
            value = value - (1 - share) * np.nan_to_num(rest, posinf=0.0, neginf=0.0)
        return value, plain, inclined

    @cached_property
    def starts_at_rest(self) -> bool:
        """Whether the linearisation at u = 0 is elliptic, so that an iteration can begin there."""
        points = self.problem.domain.sample(STATE_SAMPLES, rng=1)
        still = np.zeros((len(points), self.fields)), np.zeros((len(points), self.fields, points.shape[1]))
        rest = self.linearised(points, *still)
        usual = self.linearised(points, *generic_state(len(points), self.fields, points.shape[1]))
        if not (np.isfinite(rest.terms).all() and np.isfinite(rest.tangent).all()):
            return False
        sizes = [np.einsum("mkkii->mk", one.diffusion) for one in (rest, usual)]
        return bool((sizes[0] > DEGENERATE * sizes[1].mean(axis=0)).all())

    def load_at_rest(self, points: Array) -> Array:
        """-f and fluxes at u = 0, (M, K, 1 + d), zero where they are not finite."""
        still = np.zeros((len(points), self.fields)), np.zeros((len(points), self.fields, points.shape[1]))
        return np.nan_to_num(self.system.terms(points, *still), posinf=0.0, neginf=0.0)


def linearised_condition(
    expression: Expression, fields: Sequence[str], known: Mapping[sympy.Symbol, Array], state: Mapping[Jet, Array],
    shape: tuple[int, ...],
) -> tuple[Array, Array, Array | None]:  # fmt: skip
    """Value (M,), derivatives by fields (M, F) and by slopes (M, F, d), None without, at points of a shape (M, d)."""
    count, dim = shape
    value, partials = expression.linearised(known, state)
    plain, slopes = np.zeros((count, len(fields))), np.zeros((count, len(fields), dim))
    for jet, partial in zip(expression.jets, partials, strict=True):
        f = fields.index(jet.field)
        if jet.order:
            slopes[:, f, jet.index.index(1)] += partial
        else:
            plain[:, f] += partial
    first = any(jet.order for jet in expression.jets)
    return np.broadcast_to(value, (count,)), plain, slopes if first else None


def _combination(diffusion: Array, slopes: Array, normals: Array) -> Array:
    """R (M, r, K) with slopes·n = R n·A n; zero where the diffusion is degenerate."""
    across = np.einsum("mi,mkfij,mj->mkf", normals, diffusion, normals)
    wanted = np.einsum("mrfj,mj->mrf", slopes, normals)
    return np.asarray(wanted @ np.linalg.pinv(across, rcond=1e-12))


def quasilinear_form(problem: Problem, system: QuasilinearSystem, twist: Array) -> QuasilinearForm:
    """The form with this split of mixed derivatives; NoDivergenceForm where a condition is not natural for it."""
    form = QuasilinearForm(problem, system, twist, False)
    dim = system.dim
    varying = set()
    for number, term in enumerate(problem.constraints):
        first = any(jet.order for jet in term.expression.jets)
        if not first and not term.expression.linear:
            raise NoDivergenceForm(f"condition {term.name!r} prescribes values by an equation that is not linear")
        if not first:
            continue
        assert isinstance(term.region, Side)
        points = term.region.sample(STATE_SAMPLES, rng=0)
        normals = term.region.normals(points)
        factors = []
        for seed in range(STATES):
            values, slopes = generic_state(len(points), form.fields, dim, seed + 2)
            inclined = form._condition(term, points, normals, values, slopes)[2]
            assert inclined is not None
            diffusion = form.linearised(points, values, slopes).diffusion
            combination = _combination(diffusion, inclined[:, None], normals)[:, 0]
            factors.append(combination)
            made = np.einsum("mk,mi,mkfij->mfj", combination, normals, diffusion)
            size = np.abs(inclined).max()
            if not np.abs(made - inclined).max() <= COMPUTED * size:
                raise NoDivergenceForm(
                    f"condition {term.name!r} is no combination of the normal fluxes of the equations"
                )
        if max(np.abs(one - factors[0]).max() for one in factors) > COMPUTED * np.abs(factors[0]).max():
            varying.add(number)
    return QuasilinearForm(problem, system, twist, _variational(form), frozenset(varying))


def _variational(form: QuasilinearForm) -> bool:
    """Whether the linearisation is symmetric at some states: then it is the second derivative of an energy."""
    points = form.problem.domain.sample(STATE_SAMPLES, rng=0)
    for seed in range(STATES):
        values, slopes = generic_state(len(points), form.fields, form.system.dim, seed + 2)
        tangent = form.linearised(points, values, slopes).tangent
        gap = np.abs(tangent - tangent.transpose(0, 2, 1, 4, 3)).max()
        if not gap <= COMPUTED * np.abs(tangent).max():
            return False
    return True
