"""Reference values in many dimensions, each by a derivation that has nothing to do with paths."""

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
