"""Fourier, sine and cosine methods on intervals and squares, in time by ETDRK4 or by Chebyshev polynomials."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import fft
from scipy.special import jv

from benchmarks.reference_solvers.chebyshev import PlaneFunction, at_moments, tensor
from rannpde.arrays import Array, ArrayMap

WaveRate = Callable[[Array, "Waves"], Array]
"""What is not linear, of the waves of all fields."""


def etd_coefficients(z: Array) -> tuple[Array, ...]:
    """Of ETDRK4 with unit step for real z, by means over half circles (Kassam & Trefethen 2005)."""
    Q, f1, f2, f3 = (np.zeros(z.shape) for _ in range(4))
    for shift in np.exp(1j * np.pi * (np.arange(32) + 0.5) / 32):
        w = z + shift
        Q += ((np.exp(w / 2) - 1) / w).real / 32
        f1 += ((-4 - w + np.exp(w) * (4 - 3 * w + w**2)) / w**3).real / 32
        f2 += ((2 + w + np.exp(w) * (w - 2)) / w**3).real / 32
        f3 += ((-4 - 3 * w - w**2 + np.exp(w) * (4 - w)) / w**3).real / 32
    return np.exp(z), np.exp(z / 2), Q, f1, f2, f3


def marched(
    w: Array, linear: Array, rate: Callable[[Array, float], Array], moments: Sequence[float], steps: int
) -> list[Array]:
    """w' = linear w + rate(w, t) from t = 0 by ETDRK4: the states at moments that are evenly spaced.

    steps : up to the last moment, a multiple of their number
    """
    h, every = moments[-1] / steps, steps // len(moments)
    E, E2, Q, f1, f2, f3 = etd_coefficients(h * linear)
    kept = []
    for step in range(steps):
        t = step * h
        n = rate(w, t)
        a = E2 * w + h * Q * n
        na = rate(a, t + h / 2)
        b = E2 * w + h * Q * na
        nb = rate(b, t + h / 2)
        c = E2 * a + h * Q * (2 * nb - n)
        w = E * w + h * (n * f1 + 2 * (na + nb) * f2 + rate(c, t + h) * f3)
        if (step + 1) % every == 0:
            kept.append(w)
    return kept


# -------------------------------------------------------------------------------------------------------- periodic


def circle(
    modes: int, steps: int, moments: Sequence[float], linear: ArrayMap, square: float, start: ArrayMap
) -> ArrayMap:
    """u_t = linear(k) û + square ∂_x u² on (0, 2π), without aliases."""
    k, size = np.arange(modes + 1), 4 * modes
    factor = 1j * square * k

    def rate(w: Array, t: float) -> Array:
        u = fft.irfft(np.pad(w, (0, size // 2 - modes)), size, norm="forward")
        return factor * fft.rfft(u**2, norm="forward")[: modes + 1]

    first = fft.rfft(start(2 * np.pi * np.arange(size) / size), norm="forward")[: modes + 1]
    kept = marched(first, linear(k), rate, moments, steps)
    twice = np.where(k > 0, 2.0, 1.0)
    at = lambda number, places: (np.exp(1j * np.outer(places[:, 0], k)) @ (twice * kept[number])).real[:, None]  # noqa: E731
    return lambda points: at_moments(points, moments, at)


def diffusion(*rates: float, decay: Sequence[float] = ()) -> ArrayMap:
    """k² + l² to the linear factors (fields, …): -rate (k² + l²) - decay."""
    losses = decay or (0.0,) * len(rates)
    return lambda square: np.stack([-rate * square - loss for rate, loss in zip(rates, losses, strict=True)])


@dataclass(frozen=True, eq=False)
class Waves:
    """Real functions on a periodic square by their waves |k| ≤ top, 0 ≤ l ≤ top; values on a grid of size × size.

    Only waves that are kept are stored and transformed: below a third of the size, products of two have no aliases,
    and transforms along x take two thirds of the time of whole ones.
    """

    size: int
    top: int
    length: float

    @property
    def factors(self) -> tuple[Array, Array]:
        """ik and il of both derivatives, as a column and as a row."""
        unit = 2j * np.pi / self.length
        k = fft.ifftshift(np.arange(-self.top, self.top + 1))
        return unit * k[:, None], unit * np.arange(self.top + 1)[None, :]

    def columns(self, w: Array) -> Array:
        """Transformed back along x alone, (…, size, top + 1)."""
        padded = np.zeros((*w.shape[:-2], self.size, self.top + 1), dtype=complex)
        padded[..., : self.top + 1, :] = w[..., : self.top + 1, :]
        padded[..., self.size - self.top :, :] = w[..., self.top + 1 :, :]
        return fft.ifft(padded, axis=-2, norm="forward", overwrite_x=True)

    def rows(self, columns: Array) -> Array:
        """The rest of the way back, along y: values (…, size, size)."""
        return fft.irfft(columns, self.size, axis=-1, norm="forward")

    def of(self, values: Array) -> Array:
        """The waves (…, 2 top + 1, top + 1) of values on the grid."""
        columns = fft.rfft(values, axis=-1, norm="forward")[..., : self.top + 1]
        whole = fft.fft(columns, axis=-2, norm="forward")
        return np.concatenate([whole[..., : self.top + 1, :], whole[..., self.size - self.top :, :]], axis=-2)


def carried(w: Array, waves: Waves) -> Array:
    """-(u ∂_x + v ∂_y) of both fields."""
    ik, il = waves.factors
    columns = waves.columns(w)
    (u, v), x_slopes, y_slopes = waves.rows(columns), waves.rows(waves.columns(ik * w)), waves.rows(il * columns)
    x_slopes *= -u
    y_slopes *= v
    x_slopes -= y_slopes
    return waves.of(x_slopes)


def gray_scott_rate(w: Array, waves: Waves) -> Array:
    """0.04 - u v² and u v²."""
    u, v = waves.rows(waves.columns(w))
    eaten = waves.of(u * v**2)
    fed = np.zeros(eaten.shape)
    fed[0, 0] = 0.04
    return np.stack([fed - eaten, eaten])


def square(
    bounds: tuple[float, float], size: int, steps: int, moments: Sequence[float], linear: ArrayMap, rate: WaveRate,
    start: PlaneFunction, part: float = 1.0,
) -> ArrayMap:  # fmt: skip
    """û' = linear(k² + l²) û + rate on a periodic square; ``start`` gives (fields, n, n).

    part : of the waves that the grid knows, how many are kept; two thirds leave squares without aliases
    """
    lower, length = bounds[0], bounds[1] - bounds[0]
    waves = Waves(size, int(part * (size // 2 - 1)), length)
    ik, il = waves.factors
    x = lower + length * np.arange(size) / size
    first = waves.of(start(*np.meshgrid(x, x, indexing="ij")))
    kept = marched(first, linear(-(ik**2 + il**2).real), lambda w, t: rate(w, waves), moments, steps)
    twice = np.where(np.arange(waves.top + 1) > 0, 2.0, 1.0)

    def at(number: int, places: Array) -> Array:
        left, right = (np.exp(np.outer(places[:, a] - lower, q)) for a, q in enumerate((ik, il)))
        return np.stack([tensor([left, right * twice], table).real for table in kept[number]], axis=1)

    return lambda points: at_moments(points, moments, at)


# ------------------------------------------------------------------------------------------------------------- walls


def sines(
    sizes: tuple[int, int], steps: int, moments: Sequence[float], rate: float, force: Callable[..., Array],
    start: PlaneFunction, sides: tuple[float, float] = (1.0, 1.0),
) -> ArrayMap:  # fmt: skip
    """u_t = rate Δu + force(u, t, x, y) on a rectangle, zero walls; the force must be odd across them.

    Beyond the rectangle the values are those of the odd continuation.
    """
    k, l = (np.pi / side * np.arange(1, size) for size, side in zip(sizes, sides, strict=True))  # noqa: E741
    lines = [side * np.arange(1, size) / size for size, side in zip(sizes, sides, strict=True)]
    x, y = np.meshgrid(*lines, indexing="ij")
    linear = -rate * np.add.outer(k**2, l**2)

    def changed(w: Array, t: float) -> Array:
        return fft.dstn(force(fft.idstn(w, type=1), t, x, y), type=1)

    kept = marched(fft.dstn(start(x, y), type=1), linear, changed, moments, steps)

    def at(number: int, places: Array) -> Array:
        rows = [np.sin(np.outer(places[:, a], q)) / sizes[a] for a, q in enumerate((k, l))]
        return tensor(rows, kept[number])[:, None]

    return lambda points: at_moments(points, moments, at)


def reflected_wave(size: int, moments: Sequence[float], factor: PlaneFunction, start: PlaneFunction) -> ArrayMap:
    """u_tt = c Δu on (-1, 1)² from rest, ∂_n u = 0: cosines in space; exact in time for the grid's equations.

    u(t) = cos(t √-A) u_0 with A = cΔ, whose spectrum lies in (-S², 0):
    cos(tσ) = J_0(tS) + 2 Σ (-1)^k J_2k(tS) T_2k(σ/S), and T_2k(σ/S) = T_k(2σ²/S² - 1)
    follows by Chebyshev's recurrence in A (Tal-Ezer 1986).
    """
    place = -1 + (2 * np.arange(size) + 1) / size
    x, y = np.meshgrid(place, place, indexing="ij")
    c, k = factor(x, y), np.pi / 2 * np.arange(size)
    waves = -np.add.outer(k**2, k**2)
    top = 1.01 * float(c.max() * -waves.min())

    def turned(u: Array) -> Array:
        return -2 / top * c * fft.idctn(waves * fft.dctn(u)) - u

    reach = np.sqrt(top) * np.asarray(moments)
    before = start(x, y)
    now = turned(before)
    states = jv(0, reach)[:, None, None] * before - 2 * jv(2, reach)[:, None, None] * now
    for number in range(2, int(reach.max() / 2 + 20 + 3 * reach.max() ** (1 / 3))):
        before, now = now, 2 * turned(now) - before
        parts = 2 * (-1) ** number * jv(2 * number, reach)
        for row in np.flatnonzero(np.abs(parts) > 1e-16):
            states[row] += parts[row] * now
    kept = [fft.dctn(state, norm="forward") for state in states]
    twice = np.where(np.arange(size) > 0, 2.0, 1.0)

    def at(number: int, places: Array) -> Array:
        rows = [np.cos(np.outer(places[:, a] + 1, k)) * twice for a in range(2)]
        return tensor(rows, kept[number])[:, None]

    return lambda points: at_moments(points, moments, at)
