"""A rod is heated until t = 0.1 and then cools; when has its middle cooled to half of the warmest?

    u_t = u_xx + where(t < 0.1, 20 sin(πx), 0),   u = 0 at the start and at both ends.

Nothing is set but the tolerance. The march stops at the jump of the source, and an event finds the time. The exact
solution is (20/π²) sin(πx) (e^(-π² max(t - 0.1, 0)) - e^(-π² t)), so the answer is t = 0.1 + ln(2)/π².
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import rannpde as rp

WARMEST = 20 / np.pi**2 * (1 - np.exp(-0.1 * np.pi**2))


def half(time: float, u) -> float:
    """Zero when the middle, having been heated, has half of its highest temperature."""
    return u(np.array([[0.5]]))[0, 0] - WARMEST / 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tol", type=float, default=1e-8, help="relative L² error wanted")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of the figure")
    options = parser.parse_args()

    problem = rp.Problem(
        "u_t = u_xx + where(t < 0.1, 20*sin(pi*x), 0)",
        rp.SpaceTime(t=(0, 0.4), x=(0, 1)),
        {"start": rp.On("t=0", "u = 0"), "ends": rp.On("boundary", "u = 0")},
        exact={"u": "20/pi**2*sin(pi*x)*(exp(-pi**2*max(t - 0.1, 0)) - exp(-pi**2*t))"},
        name="heater",
    )
    solution = rp.solve(problem, tol=options.tol, method=rp.Lines(events={"half": half}))
    print(f"relative L² error {solution.errors()['u']:.1e}, estimated {solution.estimate:.1e}, {solution.ending}")
    found, exact = solution.events["half"][-1], 0.1 + np.log(2) / np.pi**2
    print(f"half as warm at t = {found:.10f}, exactly {exact:.10f}")
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "solve_heater.png"
    solution.plot(path)
    print(f"figure {path}")


if __name__ == "__main__":
    main()
