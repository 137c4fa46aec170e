"""The protocols of systems y' = f(t, y) for time integration, which a discretisation in space implements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.linalg import get_lapack_funcs

from rannpde.arrays import Array


class JacobianOperator(Protocol):
    """A linear map J of states."""

    def shifted(self, shift: complex) -> Callable[[Array], Array]:
        """The solution operator r → (shift - J)⁻¹ r, factorised once."""
        ...


@dataclass(frozen=True, eq=False)
class DenseJacobian:
    """J as a matrix (n, n)."""

    matrix: Array

    def shifted(self, shift: complex) -> Callable[[Array], Array]:
        # the transpose has LAPACK's order of entries: it is copied as it lies, and solved with transposed
        count = len(self.matrix)
        matrix = np.empty((count, count), dtype=np.result_type(self.matrix, shift), order="F")
        np.negative(self.matrix.T, out=matrix)
        matrix.ravel(order="K")[:: count + 1] += shift
        # LAPACK itself: a step calls it for every stage, and SciPy's checks take as long as the substitution
        factorise, substitute = get_lapack_funcs(("getrf", "getrs"), (matrix,))
        lower_upper, pivots, _ = factorise(matrix, overwrite_a=True)

        real = lower_upper.dtype.kind != "c"

        def solve(rhs: Array) -> Array:
            if real and np.iscomplexobj(rhs):
                return solve(rhs.real) + 1j * solve(rhs.imag)
            result: Array = substitute(lower_upper, pivots, rhs, trans=1)[0]
            return result if result.shape == rhs.shape else result.reshape(rhs.shape)

        return solve


class Dynamics(Protocol):
    """y' = f(t, y) with what an implicit Runge–Kutta method needs."""

    def rates(self, times: Array, states: Array) -> Array:
        """f at s times: (s,), (n, s) → (n, s)."""
        ...

    def jacobian(self, time: float, state: Array) -> JacobianOperator:
        """∂f/∂y, or an approximation of it."""
        ...

    def size(self, change: Array) -> float:
        """A norm of a change of the state (n,), relative to the size of the solution; the largest of several (n, s)."""
        ...

    def perturbation(self, state: Array, rng: np.random.Generator) -> Array:
        """A random change (n,) with the spectrum of a state, that leads to a state."""
        ...


def random_multiples(state: Array, rng: np.random.Generator) -> Array:
    """The perturbation of a state (n,) whose entries are independent of each other: random multiples of them."""
    return rng.standard_normal(len(state)) * state


class LinearPart(Protocol):
    """A linear map A of tables (components, …) of coefficients."""

    def apply(self, tables: Array) -> Array: ...


class SplitDynamics(Protocol):
    """y' = A y + N(t, y): a stiff linear part A whose exponential is cheap, and a remainder N that is not stiff."""

    def rates(self, times: Array, states: Array) -> Array: ...

    def size(self, change: Array) -> float: ...

    @property
    def table_shape(self) -> tuple[int, ...]:
        """The shape (…) of the coefficients of one component; a state is (components, …), flat."""
        ...

    def linear_part(self, time: float, state: Array) -> Any:
        """A, so that f - A y is not stiff: a LinearPart."""
        ...

    def phi_functions(self, linear: Any, step: float) -> Sequence[LinearPart]:
        """φ_0(hA), …, φ_3(hA) for a step h."""
        ...

    def remainder_of(self, linear: Any) -> Callable[[float, Array], Array]:
        """(t, y) → f - A y."""
        ...

    def clean(self, tables: Array) -> Array:
        """Tables (components, …) without the rounding that belongs to no real function."""
        ...
