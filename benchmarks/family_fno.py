"""A Fourier neural operator (Li et al. 2021) trained on examples in a file, for as many seconds as it is given.

    python benchmarks/family_fno.py examples.npz SECONDS

The file holds inputs and outputs (N, n) or (N, n, n) and the number of training examples. It needs torch and NumPy
only, so that an environment of its own can run it. Width, modes, layers, Adam and the schedule are those of the paper.
"""

from __future__ import annotations

import sys
import time

import numpy as np
import torch
from torch import nn


class SpectralLayer(nn.Module):
    """Products of the lowest Fourier modes with learned matrices, in one or two dimensions."""

    def __init__(self, width: int, modes: int, dim: int) -> None:
        super().__init__()
        self.modes, self.dim = modes, dim
        shape = (width, width, *([modes] * dim))
        scale = 1 / width**2
        self.weights = nn.ParameterList(
            [nn.Parameter(scale * torch.rand(*shape, dtype=torch.cfloat)) for _ in range(dim)]
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        m = self.modes
        axes = tuple(range(2, 2 + self.dim))
        waves = torch.fft.rfftn(x, dim=axes)
        out = torch.zeros_like(waves)
        if self.dim == 1:
            out[:, :, :m] = torch.einsum("bix,iox->box", waves[:, :, :m], self.weights[0])
        else:
            out[:, :, :m, :m] = torch.einsum("bixy,ioxy->boxy", waves[:, :, :m, :m], self.weights[0])
            out[:, :, -m:, :m] = torch.einsum("bixy,ioxy->boxy", waves[:, :, -m:, :m], self.weights[1])
        return torch.fft.irfftn(out, s=x.shape[2:], dim=axes)


class FourierNeuralOperator(nn.Module):
    """Lifting, four spectral layers with pointwise linear maps beside them, projection."""

    def __init__(self, dim: int, width: int, modes: int) -> None:
        super().__init__()
        pointwise = nn.Conv1d if dim == 1 else nn.Conv2d
        self.lift = pointwise(1 + dim, width, 1)
        self.spectral = nn.ModuleList([SpectralLayer(width, modes, dim) for _ in range(4)])
        self.plain = nn.ModuleList([pointwise(width, width, 1) for _ in range(4)])
        self.first, self.last = pointwise(width, 128, 1), pointwise(128, 1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        grids = torch.meshgrid(*[torch.linspace(0, 1, n) for n in x.shape[1:]], indexing="ij")
        inputs = torch.stack([x, *(grid.expand_as(x) for grid in grids)], dim=1)
        x = self.lift(inputs)
        for number, (spectral, plain) in enumerate(zip(self.spectral, self.plain, strict=True)):
            x = spectral(x) + plain(x)
            x = torch.relu(x) if number < 3 else x
        return self.last(torch.relu(self.first(x)))[:, 0]


def train(path: str, seconds: float) -> None:
    """Train for that much CPU time of this process, and print the mean relative error on the test examples."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    data = np.load(path)
    count = int(data["count"])
    a, u = (torch.tensor(data[key], dtype=torch.float32) for key in ("inputs", "outputs"))
    mean, std, low, size = a[:count].mean(0), a[:count].std(0) + 1e-5, u[:count].mean(0), u[:count].std(0) + 1e-5
    dim = a.ndim - 1
    model = FourierNeuralOperator(dim, *((64, 16) if dim == 1 else (32, 12)))
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-4)
    start, epochs = time.process_time(), 0

    def predicted(rows: torch.Tensor) -> torch.Tensor:
        return model((rows - mean) / std) * size + low

    def error(rows: torch.Tensor, exact: torch.Tensor) -> torch.Tensor:
        gaps = (predicted(rows) - exact).flatten(1).norm(dim=1)
        return (gaps / exact.flatten(1).norm(dim=1)).mean()

    while time.process_time() - start < seconds:
        for rows in torch.randperm(count).split(20):
            used = (time.process_time() - start) / seconds
            if used > 1:
                break
            for group in optimiser.param_groups:
                group["lr"] = 1e-3 * 0.5 ** int(5 * used)
            optimiser.zero_grad()
            error(a[rows], u[rows]).backward()
            optimiser.step()
        epochs += 1
    with torch.no_grad():
        parts = [error(a[k : k + 20], u[k : k + 20]).item() for k in range(count, len(a), 20)]
    print(f"FNO: {np.mean(parts):.2e} after {epochs} epochs, {time.process_time() - start:.0f} s CPU")


if __name__ == "__main__":
    train(sys.argv[1], float(sys.argv[2]))
