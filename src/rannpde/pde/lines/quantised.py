"""Large tables of Fourier coefficients in few bytes: whole multiples of a step, compressed without further loss.

By Parseval's identity the L² error is the root of the sum of the squared roundings, so that a step follows from the
error that a file may add. Bytes of equal weight stand together, which compresses the many small coefficients well.
"""

from __future__ import annotations

import zlib
from math import sqrt

import numpy as np

from rannpde.arrays import Array
from rannpde.errors import FileError

LARGE_TABLE = 2**20
"""Bytes of a table from which it is worth the rounding; smaller ones are stored bit for bit."""
MOST_RATIO = 256
"""Bytes that one compressed byte may stand for in a file: more is refused, since it could fill the memory."""


def rounding_step(error: float, size: float, count: int) -> float:
    """The step for which rounding ``count`` complex coefficients adds that relative error to a field of that size.

    Each real number is off by step/√12 on average (root mean square), each coefficient has two, and may count twice.
    """
    return error * size * sqrt(12 / (4 * max(count, 1)))


def quantise(values: Array, step: float) -> Array | None:
    """Complex values (N,) as compressed bytes; None where they are no multiples that 52 bits hold, or gain nothing."""
    parts = np.ascontiguousarray(values, dtype=complex).view(float)
    largest = np.abs(parts).max(initial=0.0)
    if not step > 0 or not largest / step < 2**52:
        return None
    width = 4 if largest / step < 2**30 else 8
    whole = np.rint(parts / step).astype(np.int64)
    signless = np.where(whole < 0, -2 * whole - 1, 2 * whole)  # small numbers of either sign stay small
    planes = np.ascontiguousarray(signless.astype(f"<u{width}").view(np.uint8).reshape(-1, width).T)
    data = zlib.compress(planes.tobytes(), 6)
    if 2 * len(data) > values.nbytes or planes.nbytes > MOST_RATIO * len(data):
        return None
    return np.frombuffer(data, dtype=np.uint8)


def dequantise(data: Array, step: float, count: int) -> Array:
    """The inverse of ``quantise`` for ``count`` values; FileError where the bytes are not those of ``count`` values."""
    if data.dtype != np.uint8 or data.ndim != 1 or not 0 < step < np.inf or 8 * count > MOST_RATIO * len(data):
        raise FileError("the compressed coefficients of the file are damaged")
    unpacker = zlib.decompressobj()
    try:
        raw = unpacker.decompress(data.tobytes(), 16 * count + 1)
    except zlib.error:
        raise FileError("the compressed coefficients of the file are damaged") from None
    width = len(raw) // (2 * count) if count else 0
    if width not in (4, 8) or len(raw) != 2 * count * width:
        raise FileError("the compressed coefficients of the file are not as many as its modes")
    planes = np.frombuffer(raw, dtype=np.uint8).reshape(width, -1)
    whole = np.ascontiguousarray(planes.T).view(f"<u{width}")[:, 0].astype(np.int64)
    signed = np.where(whole % 2 == 1, -(whole + 1) // 2, whole // 2)
    return (step * signed.astype(float)).view(complex)
