"""Deep BSDE (E, Han, Jentzen 2017; Han, Jentzen, E 2018) in torch, for the equations of benchmarks/many_dimensions.py.

    python benchmarks/peers/deep_bsde.py hjb 2000 100      a problem, steps of Adam (0 for those of the paper), and
                                                           seconds of processors at most

The value and the gradient at the start are parameters, gradients at later times are networks, and the loss is the
mismatch with the data at the end. Settings are those of the papers: two hidden layers of width d + 10 with batch
normalisation after every matrix, batches of 64, Euler's steps in time, Adam with the step sizes stated there. Printed
are the value and the seconds of processors, five times on the way. It needs torch, and imports nothing of ours.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

DIM, BATCH = 100, 64


@dataclass(frozen=True)
class BackwardEquation:
    """dX = b(X) dt + σ(X) dW from ``start``, Y_T = g(X_T), dY = -f(t, X, Y, Z) dt + Z·dW, Z = σ ∇u.

    first : range in which the value at the start is initialised; rates : step sizes of Adam, the second from half the
    iterations on
    """

    length: float
    steps: int
    iterations: int
    rates: tuple[float, float]
    first: tuple[float, float]
    start: float
    reference: float
    drift: Callable[[Tensor], Tensor]
    spread: Callable[[Tensor], Tensor]
    data: Callable[[Tensor], Tensor]
    source: Callable[[float, Tensor, Tensor, Tensor], Tensor]


def _square(v: Tensor) -> Tensor:
    return (v**2).sum(1)


def _default_risk(t: float, x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    intensity = (0.2 - 0.18 * (y - 50) / 20).clamp(0.02, 0.2)
    return -intensity * y / 3 - 0.02 * y


def _different_rates(t: float, x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    shares = z.sum(1) / 0.2
    return -0.04 * y - 0.02 * shares + 0.02 * (shares - y).clamp_min(0)


def _reaction(t: float, x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    exact = 1.6 + torch.sin(x.sum(1) / DIM**0.5) * 2.718281828459045 ** ((t - 1) / 2)
    return ((y - exact) ** 2).clamp_max(1.0)


def _capped_call(x: Tensor) -> Tensor:
    largest = x.max(1).values
    return (largest - 120).clamp_min(0) - 2 * (largest - 150).clamp_min(0)


ROOT = 2.0**0.5
EQUATIONS = {
    "hjb": BackwardEquation(
        1.0, 20, 2000, (1e-2, 1e-2), (0.0, 1.0), 0.0, 4.59016172460488, lambda x: 0 * x, lambda x: ROOT + 0 * x,
        lambda x: torch.log((1 + _square(x)) / 2), lambda t, x, y, z: -_square(z) / 2,
    ),
    "allen-cahn": BackwardEquation(
        0.3, 20, 4000, (5e-4, 5e-4), (0.3, 0.6), 0.0, 0.0527813574, lambda x: 0 * x, lambda x: ROOT + 0 * x,
        lambda x: 1 / (2 + 0.4 * _square(x)), lambda t, x, y, z: y - y**3,
    ),
    "default risk": BackwardEquation(
        1.0, 40, 6000, (8e-3, 8e-3), (40.0, 50.0), 100.0, 57.300, lambda x: 0.02 * x, lambda x: 0.2 * x,
        lambda x: x.min(1).values, _default_risk,
    ),
    "different rates": BackwardEquation(
        0.5, 20, 4000, (5e-3, 5e-3), (15.0, 18.0), 100.0, 21.1675, lambda x: 0.06 * x, lambda x: 0.2 * x,
        _capped_call, _different_rates,
    ),
    "reaction-diffusion": BackwardEquation(
        1.0, 30, 24000, (1e-2, 1e-3), (0.0, 1.0), 0.0, 1.6, lambda x: 0 * x, lambda x: 1 + 0 * x,
        lambda x: 1.6 + torch.sin(x.sum(1) / DIM**0.5), _reaction,
    ),
}  # fmt: skip


def network() -> torch.nn.Module:
    """A gradient at one time."""
    sizes = [DIM, DIM + 10, DIM + 10, DIM]
    layers: list[torch.nn.Module] = [torch.nn.BatchNorm1d(DIM)]
    for k, (entering, leaving) in enumerate(pairwise(sizes)):
        layers += [torch.nn.Linear(entering, leaving, bias=False), torch.nn.BatchNorm1d(leaving)]
        layers += [torch.nn.ReLU()] if k < 2 else []
    return torch.nn.Sequential(*layers)


def train(equation: BackwardEquation, iterations: int, seconds: float, seed: int = 0) -> None:
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    begin, clock = time.process_time(), time.perf_counter()
    value = torch.nn.Parameter(torch.empty(1).uniform_(*equation.first))
    slope = torch.nn.Parameter(torch.empty(DIM).uniform_(-0.1, 0.1))
    later = torch.nn.ModuleList([network() for _ in range(equation.steps - 1)])
    optimiser = torch.optim.Adam([value, slope, *later.parameters()], lr=equation.rates[0])
    h = equation.length / equation.steps
    for step in range(1, iterations + 1):
        if step == iterations // 2:
            optimiser.param_groups[0]["lr"] = equation.rates[1]
        x, y = torch.full((BATCH, DIM), equation.start), value.expand(BATCH)
        for n in range(equation.steps):
            z = slope.expand(BATCH, DIM) if n == 0 else later[n - 1](x) / DIM
            noise = h**0.5 * torch.randn(BATCH, DIM)
            y = y - h * equation.source(n * h, x, y, z) + (z * noise).sum(1)
            x = x + h * equation.drift(x) + equation.spread(x) * noise
        # beyond 50 the loss grows linearly, as in the authors' program: single paths do not dominate
        miss = y - equation.data(x)
        loss = torch.where(miss.abs() < 50, miss**2, 100 * miss.abs() - 2500).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        spent, passed = time.process_time() - begin, time.perf_counter() - clock
        if step % max(iterations // 5, 1) == 0 or spent > seconds:
            off = abs(value.item() / equation.reference - 1)
            print(
                f"{step} steps: {value.item():.6g}, relative error {off:.1e}, {spent:.1f} s of processors, "
                f"clock {passed:.1f} s",
                flush=True,
            )
        if spent > seconds:
            break


def main(words: list[str]) -> None:
    equation = EQUATIONS[words[0] if words else "hjb"]
    iterations = int(words[1]) if len(words) > 1 else 0
    train(equation, iterations or equation.iterations, float(words[2]) if len(words) > 2 else float("inf"))


if __name__ == "__main__":
    main(sys.argv[1:])
