"""Scrambled Sobol sequences in few dimensions, the same points as those of SciPy, whose module takes long to load.

Point k + 1 is point k XOR a direction number, that of the lowest zero bit of k (Gray code; Antonov and Saleev 1979).
The direction numbers are those of Joe and Kuo (2008), scrambled by random lower triangular matrices and a random shift
(Matoušek 1998).
"""

from __future__ import annotations

import numpy as np

from rannpde.arrays import Array

BITS = 30
"""Binary digits of a coordinate."""
PRIMITIVE = (1, 3, 7, 11, 13, 19, 25, 37, 41)
"""Primitive polynomials over {0, 1}, the bits of which are their coefficients, for each coordinate."""
INITIAL = ((1,), (1,), (1, 3), (1, 3, 1), (1, 1, 1), (1, 1, 3, 3), (1, 3, 5, 13), (1, 1, 5, 5, 17), (1, 1, 5, 5, 5))
"""The first direction numbers of each coordinate."""


class SobolSequence:
    """One sequence in the unit cube, scrambled by a generator, however it is cut into calls."""

    def __init__(self, dim: int, generator: np.random.Generator) -> None:
        generator = generator.spawn(1)[0]
        plain = np.stack([_direction_numbers(k) for k in range(dim)])
        powers = np.uint32(2) ** np.arange(BITS, dtype=np.uint32)
        self._last = generator.integers(2, size=(dim, BITS), dtype=np.uint32) @ powers
        triangles = np.tril(generator.integers(2, size=(dim, BITS, BITS), dtype=np.uint32))
        triangles[:, np.arange(BITS), np.arange(BITS)] = 1
        bits = (plain[:, :, None] >> np.arange(BITS - 1, -1, -1, dtype=np.uint32)) & 1  # (dim, numbers, bits)
        turned = np.einsum("dpk,djk->djp", triangles.astype(int), bits.astype(int)) % 2
        self._numbers = (turned.astype(np.uint32) @ powers[::-1]).astype(np.uint32)  # (dim, numbers)
        self._drawn = 0

    def draw(self, count: int) -> Array:
        """The next points, (count, dim)."""
        steps = np.arange(max(self._drawn - 1, 0), self._drawn + count - 1)
        lowest = np.log2(~steps & (steps + 1)).astype(int)
        changes = np.concatenate([self._last[:, None], self._numbers[:, lowest]], axis=1)
        points_as_integers = np.bitwise_xor.accumulate(changes, axis=1)
        if count:
            self._last = points_as_integers[:, -1]
        points = points_as_integers if self._drawn == 0 else points_as_integers[:, 1:]
        self._drawn += count
        return np.ascontiguousarray(points[:, :count].T * 2.0**-BITS)


def _direction_numbers(coordinate: int) -> Array:
    """The direction numbers (BITS,) of one coordinate, as multiples of 2^-BITS."""
    numbers, polynomial = list(INITIAL[coordinate]), PRIMITIVE[coordinate]
    degree = polynomial.bit_length() - 1
    if degree == 0:
        numbers = [1] * BITS
    for index in range(degree, BITS if degree else 0):
        number = numbers[index - degree]
        for k in range(1, degree + 1):
            if polynomial >> (degree - k) & 1:
                number ^= numbers[index - k] << k
        numbers.append(number)
    return np.array([number << (BITS - 1 - index) for index, number in enumerate(numbers)], dtype=np.uint32)
