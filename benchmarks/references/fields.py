"""Draw the coefficients that the benchmark leaves to chance or whose files are not at hand, once, seeded.

    python -m benchmarks.references.fields     # writes benchmarks/data/{heat_2d_vc,wave_2d_cg,burgers_2d_c}.dat

They are rounded and kept as text, so that a statement does not depend on the generator of a NumPy release.
"""

from __future__ import annotations

import numpy as np

from benchmarks.harness.coefficients import DATA

LICENCE = "Made for rannpde, MIT licence; seed {seed} of numpy.random.default_rng, benchmarks/references/fields.py."


def smooth_field(seed: int, height: float, size: int = 4) -> np.ndarray:
    """Coefficients c_ij of cos(π i ξ) cos(π j η), falling like 1/(1 + i² + j²); the mean of the logarithm is 0."""
    i, j = np.indices((size, size))
    factors = height * np.random.default_rng(seed).standard_normal((size, size)) / (1 + i**2 + j**2) ** 0.5
    factors[0, 0] = 0.0
    return np.round(factors, 4)


def start(seed: int, size: int = 4, grid: int = 1500) -> np.ndarray:
    """Row by row for u and v: A (16), B (16), max w, c; w = Σ A_ij sin 2π(ix + jy) + B_ij cos 2π(ix + jy)."""
    rng = np.random.default_rng(seed)
    rows = []
    x = np.arange(grid) / grid
    for _ in range(2):
        A, B = np.round(rng.standard_normal((2, size, size)), 4)
        modes = np.exp(2j * np.pi * np.outer(x, np.arange(size)))
        w = np.einsum("xi,yj,ij->xy", modes, modes, B - 1j * A).real
        rows.append([*A.ravel(), *B.ravel(), round(float(w.max()), 5), round(float(rng.standard_normal()), 4)])
    return np.array(rows)


def main() -> None:
    what = "c_ij of exp(sum c_ij cos(pi i xi) cos(pi j eta)), xi and eta from 0 to 1 across the domain"
    for name, seed, height in (("heat_2d_vc", 11, 0.4), ("wave_2d_cg", 12, 0.3)):
        header = f"{what}\n{LICENCE.format(seed=seed)}"
        np.savetxt(DATA / f"{name}.dat", smooth_field(seed, height), fmt="%.4f", header=header)
    header = f"rows u, v: A (4 x 4), B (4 x 4), max w on a grid, c\n{LICENCE.format(seed=13)}"
    np.savetxt(DATA / "burgers_2d_c.dat", start(13), fmt="%.5f", header=header)


if __name__ == "__main__":
    main()
