"""Deep BSDE (Han, Jentzen, E 2018) in torch for u_t + Δu = |∇u|², u(1) = log((1 + |x|²)/2), d = 100, at the origin.

    python benchmarks/peers/deep_bsde.py 2000        so many steps of Adam; needs torch, prints value and seconds

The value and the gradient at the start are parameters, gradients at later times are networks, and the loss is the
mismatch with the data at the end. Settings are those of the paper: 20 steps, two hidden layers of width d + 10.
"""

from __future__ import annotations

import sys
import time

import torch

DIM, STEPS, BATCH, REFERENCE = 100, 20, 64, 4.59016172460488


def network() -> torch.nn.Module:
    width = DIM + 10
    return torch.nn.Sequential(
        torch.nn.BatchNorm1d(DIM), torch.nn.Linear(DIM, width, bias=False), torch.nn.BatchNorm1d(width),
        torch.nn.ReLU(), torch.nn.Linear(width, width, bias=False), torch.nn.BatchNorm1d(width), torch.nn.ReLU(),
        torch.nn.Linear(width, DIM),
    )  # fmt: skip


def main(iterations: int) -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    begin = time.process_time()
    value = torch.nn.Parameter(torch.tensor(1.0))
    slope = torch.nn.Parameter(torch.zeros(DIM).uniform_(-0.1, 0.1))
    later = torch.nn.ModuleList([network() for _ in range(STEPS - 1)])
    optimiser = torch.optim.Adam([value, slope, *later.parameters()], lr=1e-2)
    h = 1.0 / STEPS
    for step in range(iterations):
        x, y = torch.zeros(BATCH, DIM), value.expand(BATCH)
        for n in range(STEPS):
            z = slope.expand(BATCH, DIM) if n == 0 else later[n - 1](x) / DIM
            noise = (2 * h) ** 0.5 * torch.randn(BATCH, DIM)
            y = y + h * (z**2).sum(1) + (z * noise).sum(1)
            x = x + noise
        loss = ((y - torch.log((1 + (x**2).sum(1)) / 2)) ** 2).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if (step + 1) % max(iterations // 5, 1) == 0:
            off, spent = abs(value.item() / REFERENCE - 1), time.process_time() - begin
            print(
                f"{step + 1} steps: {value.item():.5f}, relative error {off:.1e}, {spent:.1f} s of processors",
                flush=True,
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
