r"""
Data too large for memory
=========================

``fit`` takes an iterable of blocks. Sums of the normal equations are all that is kept, so that memory does not grow
with the data; the sums are objects of their own, so that one can look at the fit while the data come in.
"""

import matplotlib.pyplot as plt
import numpy as np

import rannpde as rp

domain = rp.Box(x=(-1, 1), y=(-1, 1))
features = rp.FourierFeatures.sample(width=150, domain=domain, scale=6.0, rng=0)


def truth(z):
    """Two swirls."""
    return np.sin(6 * z[:, 0] + 3 * z[:, 1] ** 2) * np.cos(4 * z[:, 1])


def blocks(number, rng):
    """Noisy measurements, a thousand at a time, as they would come from a file or an instrument."""
    for _ in range(number):
        z = domain.sample(1000, rng=rng)
        yield z, truth(z) + 0.3 * rng.standard_normal(1000)


fresh = domain.sample(5000, rng=99)
equations = rp.NormalEquations(features.columns, outputs=1, constant=True)
seen, errors = [], []
for number, (z, y) in enumerate(blocks(128, np.random.default_rng(1)), start=1):
    equations.add(features(z), y[:, None])
    if number & (number - 1) == 0:  # 1, 2, 4, 8, … blocks
        (result,) = equations.path().solve_all([1e-5])
        found = features(fresh) @ result.coefficients
        seen.append(1000 * number)
        errors.append(np.linalg.norm(found[:, 0] - truth(fresh)) / np.linalg.norm(truth(fresh)))

whole = rp.fit(features, blocks(128, np.random.default_rng(1)), penalty=1e-5)
print(f"{whole.about['points']:,} points in one call, error {errors[-1]:.1e}")
figure, axes = plt.subplots(figsize=(6, 3.8))
axes.loglog(seen, errors, "o-", color="#0072B2", label="fit of what has come")
axes.loglog(seen, errors[0] * np.sqrt(seen[0] / np.array(seen)), "k--", linewidth=1, label=r"$C/\sqrt{M}$")
axes.set(xlabel="points seen, $M$", ylabel="relative error", title="noise averages out")
axes.legend()
