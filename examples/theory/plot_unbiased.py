r"""
The network of the theorem
==========================

The paper proves its rate with a network whose output weights are *computed*, not fitted: an unbiased Monte-Carlo
sum of the ridgelet transform. Averaged over draws it is the function itself, and its error falls like
:math:`1/\sqrt{N}`.
"""

import matplotlib.pyplot as plt
import numpy as np

from rannpde.domains import SpaceTime
from rannpde.network.laws import HeavyTailed
from rannpde.theory import GaussianMixture, estimator, measured_errors

u = GaussianMixture.gaussian(2)
domain, law = SpaceTime(t=(0, 1), x=(-1, 1)), HeavyTailed(time_decay=0.75, space_decay=0.75)
choice = estimator(u, law, activation="cos")
measured = measured_errors(choice, domain, [8, 32, 128, 512], pools=8, rng=0)
print(f"slope {measured.slope:.2f} ± {measured.halfwidth:.2f}; the theorem says -1/2")

x = np.linspace(-1, 1, 200)
points = np.column_stack([np.full_like(x, 0.5), x])
figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.6))
for seed in range(6):
    left.plot(x, choice.network(128, rng=seed)(points), color="#999999", linewidth=0.8)
left.plot(x, choice.network(20000, rng=1)(points), color="#0072B2", label="$N = 20000$")
left.plot(x, u(points), "k:", label="$u$")
left.set(xlabel="$x$", title="six draws with $N = 128$ (grey)")
left.legend()
right.loglog(measured.widths, measured.errors, "o", color="#D55E00", label="measured")
variance = float(choice.variance(domain))
right.loglog(measured.widths, np.sqrt(variance / measured.widths), "k--", label=r"exact: $\sqrt{\mathrm{variance}/N}$")
right.set(xlabel="width $N$", ylabel="error", title="root mean square error")
right.legend()
