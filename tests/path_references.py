"""Reference values in many dimensions, each by a derivation that has nothing to do with paths."""

from itertools import pairwise

import numpy as np
from scipy.integrate import quad, solve_ivp
from scipy.stats import chi2


def hjb_at_origin(dim: int) -> float:
    """u_t + Δu = |∇u|², u(1) = log((1 + |x|²)/2), at t = 0, x = 0.

    Cole–Hopf: v = exp(-u) solves v_t + Δv = 0, so that u(0, 0) = -log E[2/(1 + 2 χ²)], χ² of d degrees of freedom.
    """
    law = chi2(dim)
    lower, upper = law.ppf(1e-18), law.isf(1e-18)
    middle = law.mean()
    parts = [quad(lambda r: 2 / (1 + 2 * r) * law.pdf(r), *ends, epsabs=1e-15, epsrel=1e-12, limit=400)[0]
             for ends in ((lower, middle), (middle, upper))]  # fmt: skip
    return float(-np.log(sum(parts)))


def allen_cahn_at_origin(dim: int, length: float = 0.3, degree: int = 80) -> float:
    """u_t + Δu + u - u³ = 0, u(T) = 1/(2 + 0.4|x|²), at t = 0, x = 0.

    Radial: with r = |x|² and time reversed, u_τ = 4 r u_rr + 2 d u_r + u - u³, by Chebyshev collocation on 0 ≤ r ≤ R.
    At r = 0 no condition is needed; at R a value is, which reaches the origin only if √r can move from √R to 0 in the
    time T: with R as below it cannot beyond rounding, and a rough value will do.
    """
    top = 4 * (2.0 * dim * length) + 120.0 * length
    k = np.arange(degree + 1)
    nodes = np.cos(np.pi * k / degree)
    c = np.where((k == 0) | (k == degree), 2.0, 1.0) * (-1.0) ** k
    matrix = np.outer(c, 1 / c) / (nodes[:, None] - nodes + np.eye(degree + 1))
    matrix -= np.diag(matrix.sum(axis=1))
    r = 0.5 * top * (1 + nodes)
    first = matrix * 2 / top
    operator = 4 * r[:, None] * (first @ first) + 2 * dim * first

    def rate(time, u):
        change = operator @ u + u - u**3
        far = 1 / (2 + 0.4 * (top + 2 * dim * time))
        change[0] = np.exp(time) * far * (1 - 0.8 * dim * far)  # of e^τ/(2 + 0.4(R + 2dτ))
        return change

    found = solve_ivp(rate, (0, length), 1 / (2 + 0.4 * r), method="Radau", rtol=1e-10, atol=1e-13)
    return float(found.y[-1, -1])


def riccati(point: np.ndarray, q: np.ndarray, remaining: float) -> float:
    """u_t + Δu/2 = |∇u|²/2 with u(T) = ½ Σ q_i x_i²: u = ½ Σ P_i x_i² + c with P' = P², c' = -½ Σ P_i."""
    return float(0.5 * np.sum(q * point**2 / (1 + q * remaining)) + 0.5 * np.sum(np.log1p(q * remaining)))


def black_scholes_call(x: float, strike: float, rate: float, spread: float, length: float) -> float:
    from scipy.stats import norm

    first = (np.log(x / strike) + (rate + spread**2 / 2) * length) / (spread * np.sqrt(length))
    return float(x * norm.cdf(first) - strike * np.exp(-rate * length) * norm.cdf(first - spread * np.sqrt(length)))


def two_rates_on_a_line(x: float) -> float:
    """Different rates in one dimension, by an implicit finite-difference scheme in log x, explicit in the kink."""
    import scipy.sparse as sparse
    from scipy.sparse.linalg import splu

    size, steps, length = 2000, 2000, 0.5
    y = np.linspace(np.log(x) - 1.5, np.log(x) + 1.5, size + 1)
    h, k = y[1] - y[0], length / steps
    first = sparse.diags_array([-np.ones(size), np.ones(size)], offsets=[-1, 1]).tolil() / (2 * h)
    second = (
        sparse.diags_array([np.ones(size), -2 * np.ones(size + 1), np.ones(size)], offsets=[-1, 0, 1]).tolil() / h**2
    )
    for matrix in (first, second):
        matrix[0, :] = 0
        matrix[-1, :] = 0
    operator = (0.02 * second + (0.06 - 0.02) * first).tocsc()
    solver = splu((sparse.eye_array(size + 1) - k * operator).tocsc())
    s = np.exp(y)
    u = np.maximum(s - 120, 0) - 2 * np.maximum(s - 150, 0)
    for _ in range(steps):
        slope = np.gradient(u, y)
        u = solver.solve(u + k * (-0.04 * u - 0.02 * slope + 0.02 * np.maximum(slope - u, 0)))
    return float(np.interp(np.log(x), y, u))


# ------------------------------------------------------------------------------------- the largest of d assets


def capped_call_on_the_largest(time: np.ndarray, states: np.ndarray, rate: float) -> tuple[np.ndarray, np.ndarray]:
    """u = e^{-r(T-t)} E[g(X_T)], g = (max_i x_i - 120)⁺ - 2 (max_i x_i - 150)⁺, dX = r X dt + 0.2 X dW, and s = x·∇u.

    time (M,), states (M, d) : logarithms of X; T = 0.5. The largest component has the distribution function
    F(m) = Π Φ(…), and E g = ∫ g' (1 - F) dm; s is the derivative by a common shift of all logarithms.
    """
    from scipy.special import log_ndtr

    left = 0.5 - time
    deviation = 0.2 * np.sqrt(left)
    centre = states + ((rate - 0.02) * left)[:, None]
    ends = [np.log(120.0), np.log(134.0), np.log(150.0)]
    top = max(ends[-1] + 0.3, float((centre.max(axis=1) + 7 * deviation).max()))
    ends += np.linspace(ends[-1], top, 4)[1:].tolist()
    nodes, weights = np.polynomial.legendre.leggauss(20)

    def beyond(level: float) -> np.ndarray:
        return -np.expm1(log_ndtr((level - centre) / deviation[:, None]).sum(axis=1))

    total = np.zeros(len(time))
    for lower, upper in pairwise(ends):
        sign = 1.0 if upper <= ends[2] else -1.0
        for node, weight in zip(nodes, weights, strict=True):
            level = 0.5 * (lower + upper) + 0.5 * (upper - lower) * node
            total += sign * 0.5 * (upper - lower) * weight * np.exp(level) * beyond(level)
    discount = np.exp(-rate * left)
    return discount * total, discount * (total + 120 * beyond(ends[0]) - 300 * beyond(ends[2]))


def two_rates_bounds(dim: int, paths: int, rng: int, decisions: int = 4) -> tuple[float, float, float]:
    """Lower and upper bound of different rates at x = 100, and their largest standard error.

    u is the largest of E[e^{-∫r} g(X^r)] over rates r in {0.04, 0.06}. With v the value of always 0.06, and s = x·∇v,

        E[e^{-∫r} g(X^r)] = v(0) + E ∫ e^{-∫r} (0.06 - r) (v - s)(t, X^r) dt .

    Lower: r = 0.04 where v > s, decided at a few dates. Upper: the integrand is at most 0.02 e^{-0.04t} (v - s)⁺, at
    the best shift of log X between 0.04t and 0.06t in hindsight.
    """
    random, length = np.random.default_rng(rng), 0.5 / decisions
    first = capped_call_on_the_largest(np.zeros(1), np.full((1, dim), np.log(100.0)), 0.06)[0][0]
    time = (random.permutation(paths) + random.uniform(size=paths)) * 0.5 / paths
    noise, shift, rates = np.full((paths, dim), np.log(100.0)), np.zeros(paths), np.full(paths, 0.06)
    for k in range(decisions):
        alive = np.flatnonzero(time > k * length)
        if k:
            value, slope = capped_call_on_the_largest(
                np.full(len(alive), k * length), noise[alive] + shift[alive, None], 0.06
            )
            rates[alive] = np.where(slope > value, 0.06, 0.04)
        step = np.minimum(time[alive] - k * length, length)[:, None]
        noise[alive] += 0.2 * np.sqrt(step) * random.standard_normal((len(alive), dim)) - 0.02 * step
        shift[alive] += rates[alive] * step[:, 0]
    value, slope = capped_call_on_the_largest(time, noise + shift[:, None], 0.06)
    lower = 0.5 * np.exp(-shift) * (0.06 - rates) * (value - slope)
    best = np.zeros(paths)
    for rate in (0.04, 0.05, 0.06):
        value, slope = capped_call_on_the_largest(time, noise + (rate * time)[:, None], 0.06)
        best = np.maximum(best, value - slope)
    upper = 0.5 * np.exp(-0.04 * time) * 0.02 * best
    error = float(max(lower.std(), upper.std()) / np.sqrt(paths))
    return float(first + lower.mean()), float(first + upper.mean()), error


def smallest_by_euler(dim: int, steps: int) -> float:
    """e^{-(0.2/3 + 0.02)/3} E[min_i X_i] of the second default risk with X by Euler's steps, exactly for 0 of them.

    The density of log X is the convolution of that of log(1 + μh + σ√h Z), and E e^Y = ∫ e^y P(Y > y) dy.
    """
    from scipy.stats import norm

    length, growth, spread = 1 / 3, -0.01 + 0.15**2 / 2, 0.15
    size, reach = 2**16, 3.0
    y = (np.arange(size) - size // 2) * (reach / size)
    if steps:
        h = length / steps
        z = (np.exp(y) - 1 - growth * h) / (spread * np.sqrt(h))
        density = norm.pdf(z) * np.exp(y)
        density /= density.sum()
        law = np.real(np.fft.fftshift(np.fft.ifft(np.fft.fft(np.fft.ifftshift(density)) ** steps)))
        below = np.cumsum(law) - 0.5 * law
    else:
        below = norm.cdf((y - (growth - spread**2 / 2) * length) / (spread * np.sqrt(length)))
    beyond = np.exp(dim * np.log1p(-np.clip(below, 0.0, 1 - 1e-16)))
    mean = np.exp(y[0]) + np.sum(np.exp(y) * beyond) * (reach / size)
    return float(30 * mean * np.exp(-(0.2 / 3 + 0.02) / 3))
