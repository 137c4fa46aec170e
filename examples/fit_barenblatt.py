"""Fit the Barenblatt solution of the porous medium equation ∂_t u = Δ(u²) in one space dimension.

The protocol is the paper's: N Fourier features with frequencies N(0, 10²), M = 10 N points, half of them uniform on
(0.1, 1.1) × (0, 1) and half on the inner box x ∈ (0.2, 0.8), ridge penalty 1e-5. The profile has a kink at the edge of
its support, which is what the error map shows.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib
import numpy as np

import rannpde as rp
from rannpde.pde.zoo.barenblatt import Barenblatt

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--width", type=int, default=512, help="number of frequencies N")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of the figure")
    options = parser.parse_args()

    domain = rp.SpaceTime(t=(0.1, 1.1), x=(0, 1))
    exact = Barenblatt.with_radius(0.3, time=0.1)
    points = rp.mixture([(0.5, domain), (0.5, domain.restrict(x=(0.2, 0.8)))], 10 * options.width, rng=options.seed)
    features = rp.FourierFeatures.sample(width=options.width, dim=2, scale=10.0, rng=options.seed)
    network = rp.fit(features, points, exact(points), penalty=1e-5)

    error = rp.relative_l2(network, exact, domain)
    about = network.about
    print(f"relative L² error {error.value:.2e} ± {error.error:.0e} with N = {options.width}")
    print(f"solver {about['solver']}, condition {about['condition']:.1e}, {about['seconds']:.2f} s")
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "fit_barenblatt.png"
    draw(network, exact, path)
    print(f"figure {path}")


def draw(network: rp.Network, exact: Barenblatt, path: Path) -> None:
    """Snapshots of the fit over the exact profile, and the error over space-time."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
    x = np.linspace(0, 1, 401)
    for time, colour in zip((0.1, 0.3, 1.1), ("#0072b2", "#d55e00", "#009e73"), strict=True):
        at = np.column_stack([np.full_like(x, time), x])
        left.plot(x, network(at), color=colour, lw=2, label=f"t = {time:g}")
        left.plot(x, exact(at), color="black", lw=1, ls=":", label="exact" if time == 1.1 else None)
    left.set(xlabel="x", ylabel="u(t, x)", title="Random network against the exact profile")
    left.legend(frameon=False)
    t, s = np.meshgrid(np.linspace(0.1, 1.1, 201), x, indexing="ij")
    at = np.column_stack([t.ravel(), s.ravel()])
    gap = np.abs(network(at) - exact(at)).reshape(t.shape)
    image = right.pcolormesh(s, t, np.log10(np.maximum(gap, 1e-6)), cmap="viridis", shading="auto", rasterized=True)
    figure.colorbar(image, label="log₁₀ |error|")
    right.set(xlabel="x", ylabel="t", title="Error, largest at the moving edge")
    figure.savefig(path, dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    main()
