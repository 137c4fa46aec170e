"""Newton systems of products: Kronecker sums solved axis by axis, and what they leave out by Krylov iterations.

The Jacobian of one field is approximated by J₀ = Σ_axes 1 ⊗ … ⊗ A_axis ⊗ … ⊗ 1, every coefficient replaced by its mean
over the other axes. With A = V T V⁻¹ on each axis, (shift - J₀) x = r costs two matrix products an axis and, where all
T are diagonal, a division (the fast diagonalisation method). Transport makes eigenvectors useless; T is then the
triangle of Schur's form, and the division a Sylvester equation (Bartels & Stewart). Where the iteration
x ← x + (shift - J₀)⁻¹ (r - (shift - J) x) would be slow, it preconditions GMRES with the exact product J x.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Protocol

import numpy as np
from scipy.linalg import schur, solve_triangular
from scipy.linalg.lapack import ztrsyl
from scipy.sparse.linalg import LinearOperator, gmres

from rannpde.arrays import Array
from rannpde.pde.lines.tensor.basis import along
from rannpde.pde.lines.tuning import LinesTuning

WELL_CONDITIONED = 1e4
"""Eigenvectors beyond this condition number lose too many digits of a correction: Schur's form instead."""


@dataclass(frozen=True, eq=False)
class SchurFactors:
    """A = vectors · T · dual with T upper triangular, or diag(values) where ``triangle`` is None."""

    vectors: Array
    dual: Array
    values: Array
    triangle: Array | None = None

    @classmethod
    def of(cls, matrix: Array) -> SchurFactors:
        if np.isrealobj(matrix) and np.abs(matrix - matrix.T).max() <= 1e-9 * np.abs(matrix).max():
            values, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
            return cls(vectors, vectors.T, values)
        values, vectors = np.linalg.eig(matrix)
        if np.linalg.cond(vectors) < WELL_CONDITIONED:
            return cls(vectors, np.linalg.inv(vectors), values)
        triangle, vectors = schur(matrix, output="complex", check_finite=False)
        return cls(vectors, vectors.conj().T, np.diag(triangle).copy(), triangle)

    @property
    def upper(self) -> Array:
        """T as a matrix."""
        return np.diag(self.values) if self.triangle is None else self.triangle


class KroneckerSolve:
    """r → (shift - Σ_axes A_axis)⁻¹ r for tensors r of shape (r_1, …, r_d)."""

    def __init__(self, factors: Sequence[SchurFactors], shift: complex) -> None:
        self.factors, self.shift = factors, shift
        self.inverse: Array | None = None
        if all(one.triangle is None for one in factors):
            self.inverse = 1.0 / (shift - reduce(np.add.outer, [one.values for one in factors]))

    def __call__(self, right: Array) -> Array:
        for axis, one in enumerate(self.factors):
            right = along(one.dual, right, axis)
        if self.inverse is not None:
            right = right * self.inverse
        else:
            right = triangular_solve([one.upper for one in self.factors], self.shift, right)
        for axis, one in enumerate(self.factors):
            right = along(one.vectors, right, axis)
        return right


def triangular_solve(triangles: Sequence[Array], shift: complex, right: Array) -> Array:
    """(shift - Σ_axes T_axis)⁻¹ right for upper triangles, by substitution from the end of the last axis."""
    if len(triangles) == 1:
        return np.asarray(solve_triangular(shift * np.eye(len(right)) - triangles[0], right, check_finite=False))
    if len(triangles) == 2:
        first = shift * np.eye(len(right)) - triangles[0]
        found, scale, _ = ztrsyl(first, triangles[1].conj(), right.astype(complex), tranb="C", isgn=-1)
        return found / scale
    last, found = triangles[-1], np.zeros(right.shape, dtype=complex)
    for k in range(len(last) - 1, -1, -1):
        known = right[..., k] + found[..., k + 1 :] @ last[k, k + 1 :]
        found[..., k] = triangular_solve(triangles[:-1], shift - last[k, k], known)
    return found


@dataclass(frozen=True, eq=False)
class FieldBlock:
    """One field's own part of J₀: ∂_t u = Σ own_axis u for order 1; ∂_tt u = Σ (own_axis u + damping_axis u_t) for 2.

    places : where u, and u_t, lie in the state; shape : (r_1, …, r_d)
    """

    places: tuple[slice, ...]
    shape: tuple[int, ...]
    own: tuple[Array, ...]
    damping: tuple[Array, ...] = ()
    _factors: dict[str, list[SchurFactors]] = field(default_factory=dict, repr=False)

    def solver(self, shift: complex) -> Callable[[Array, Array], None]:
        """A function that writes (shift - J₀)⁻¹ right into the second argument, on the places of the field."""
        if len(self.places) == 1:
            solve = KroneckerSolve(self._kept(), shift)

            def first_order(right: Array, out: Array) -> None:
                out[self.places[0]] = solve(right[self.places[0]].reshape(self.shape)).ravel()

            return first_order
        damped = any(matrix.any() for matrix in self.damping)
        factors = (
            [SchurFactors.of(own + shift * b) for own, b in zip(self.own, self.damping, strict=True)]
            if damped
            else self._kept()
        )
        solve = KroneckerSolve(factors, shift**2)

        def second_order(right: Array, out: Array) -> None:
            """From u_t = shift u - r₀ in the second row."""
            above, below = (right[place].reshape(self.shape) for place in self.places)
            value = below + shift * above
            if damped:
                value = value - sum(along(b, above, axis) for axis, b in enumerate(self.damping))
            value = solve(value)
            out[self.places[0]] = value.ravel()
            out[self.places[1]] = (shift * value - above).ravel()

        return second_order

    def _kept(self) -> list[SchurFactors]:
        if "own" not in self._factors:
            self._factors["own"] = [SchurFactors.of(matrix) for matrix in self.own]
        return self._factors["own"]

    def growth(self) -> float:
        """Largest real part of an eigenvalue of J₀, damping by its mean."""
        sums = reduce(np.add.outer, [one.values for one in self._kept()]).ravel().astype(complex)
        if len(self.places) == 1:
            return float(sums.real.max())
        mean = sum(np.trace(b) / len(b) for b in self.damping)
        return float(np.maximum(*((0.5 * (mean + sign * np.sqrt(mean**2 + 4 * sums))).real for sign in (1, -1))).max())


@dataclass(frozen=True, eq=False)
class CoupledBlock:
    """J₀ of several components on the same products: one small matrix for each product of eigenvectors.

    places : where the components lie in the state; symbols (r_1, …, r_d, c, c) : those matrices
    factors : of one matrix an axis, in whose eigenvectors all others count by their diagonal
    """

    places: tuple[slice, ...]
    shape: tuple[int, ...]
    factors: tuple[SchurFactors, ...]
    symbols: Array

    @classmethod
    def of(
        cls, places: tuple[slice, ...], shape: tuple[int, ...], links: Mapping[tuple[int, int], Sequence[Array]]
    ) -> CoupledBlock | None:
        """None where eigenvectors are useless. links : (row, column) → A_axis (r, r) for every axis."""
        factors = []
        for axis in range(len(shape)):
            largest = max((matrices[axis] for matrices in links.values()), key=np.linalg.norm)
            factors.append(SchurFactors.of(largest))
        if any(one.triangle is not None for one in factors):
            return None
        symbols = np.zeros((*shape, len(places), len(places)), dtype=complex)
        for (row, column), matrices in links.items():
            values = [np.einsum("ij,ji->i", f.dual @ m, f.vectors) for f, m in zip(factors, matrices, strict=True)]
            symbols[..., row, column] += reduce(np.add.outer, values)
        return cls(places, shape, tuple(factors), symbols)

    def solver(self, shift: complex) -> Callable[[Array, Array], None]:
        """As that of a FieldBlock."""
        inverses = np.linalg.inv(shift * np.eye(len(self.places)) - self.symbols)

        def solve(right: Array, out: Array) -> None:
            tensor = np.stack([right[place].reshape(self.shape) for place in self.places], axis=-1)
            for axis, one in enumerate(self.factors):
                tensor = along(one.dual, tensor, axis)
            tensor = np.einsum("...ij,...j->...i", inverses, tensor)
            for axis, one in enumerate(self.factors):
                tensor = along(one.vectors, tensor, axis)
            for k, place in enumerate(self.places):
                out[place] = tensor[..., k].ravel()

        return solve

    def growth(self) -> float:
        """Largest real part of an eigenvalue of J₀."""
        return float(np.linalg.eigvals(self.symbols).real.max())


@dataclass(frozen=True, eq=False)
class DiagonalBlock:
    """J₀ = diag(values) on all of the state; as a FieldBlock."""

    values: Array

    @property
    def places(self) -> tuple[slice, ...]:
        return (slice(0, len(self.values)),)

    def solver(self, shift: complex) -> Callable[[Array, Array], None]:
        inverse = 1.0 / (shift - self.values)

        def solve(right: Array, out: Array) -> None:
            out[:] = inverse * right

        return solve

    def growth(self) -> float:
        return float(self.values.max())


class StateBlock(Protocol):
    """A part of J₀ that acts on some places of the state by itself."""

    @property
    def places(self) -> tuple[slice, ...]: ...

    def solver(self, shift: complex) -> Callable[[Array, Array], None]:
        """A function that writes (shift - J₀)⁻¹ right into the second argument, on its places."""
        ...

    def growth(self) -> float:
        """Largest real part of an eigenvalue."""
        ...


@dataclass(frozen=True, eq=False)
class KroneckerBlocks:
    """An ``JacobianOperator``: J₀ in blocks, and the product with the exact Jacobian for what J₀ leaves out.

    product : x (n,) → J x; exact : whether J₀ is J already
    """

    blocks: tuple[StateBlock, ...]
    product: Callable[[Array], Array]
    exact: bool
    tuning: LinesTuning = field(default_factory=LinesTuning)

    def shifted(self, shift: complex) -> Callable[[Array], Array]:
        direct = self._direct(shift)
        if self.exact or self._contraction(shift, direct) < self.tuning.slow_contraction:
            return direct
        return self._krylov(shift, direct)

    def _direct(self, shift: complex) -> Callable[[Array], Array]:
        solvers = [block.solver(shift) for block in self.blocks]

        def solve(right: Array) -> Array:
            real = not np.iscomplexobj(right) and not np.iscomplexobj(shift)
            out = np.empty(len(right), dtype=complex)
            for one in solvers:
                one(right, out)
            return out.real if real else out

        return solve

    def _contraction(self, shift: complex, direct: Callable[[Array], Array]) -> float:
        """The factor by which a correction with J₀ alone shrinks the residual: a few steps of the power method."""
        size = max(place.stop for block in self.blocks for place in block.places)
        right = np.random.default_rng(0).standard_normal(size).astype(complex)
        rate = 0.0
        for _ in range(self.tuning.power_steps):
            found = direct(right)
            left = self.product(found) - shift * found + right  # (J - J₀)(shift - J₀)⁻¹ right
            rate = float(np.linalg.norm(left) / np.linalg.norm(right))
            if not 0 < rate < self.tuning.slow_contraction:
                break
            right = left / np.linalg.norm(left)
        return rate

    def _krylov(self, shift: complex, direct: Callable[[Array], Array]) -> Callable[[Array], Array]:
        """GMRES on (shift - J₀)⁻¹ (shift - J) x = (shift - J₀)⁻¹ r: errors count, not residuals of stiff modes."""

        def solve(right: Array) -> Array:
            kind = complex if np.iscomplexobj(right) or np.iscomplexobj(shift) else float
            whole = LinearOperator((len(right), len(right)), lambda x: direct(shift * x - self.product(x)), dtype=kind)
            found, _ = gmres(
                whole, direct(right), rtol=self.tuning.krylov_share, restart=self.tuning.krylov_steps, maxiter=1
            )
            return np.asarray(found)

        return solve
