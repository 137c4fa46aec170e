"""A sum of features on boxes as a torch.nn.Module; this module alone imports torch, and loads when it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from rannpde.network.plain import PlainFunction

PROFILES_OF_TORCH: dict[str, Callable[[Any], list[Any]]] = {
    "fourier": lambda z: [torch.cos(z), torch.sin(z)],
    "tanh": lambda z: [torch.tanh(z)],
    "sigmoid": lambda z: [torch.sigmoid(z)],
    "cos": lambda z: [torch.cos(z)],
    "sin": lambda z: [torch.sin(z)],
    "gaussian": lambda z: [torch.exp(-0.5 * z * z)],
    "softplus": lambda z: [torch.logaddexp(z, torch.zeros_like(z))],
    "swish": lambda z: [z * torch.sigmoid(z)],
    "relu": lambda z: [torch.relu(z)],
    "hard_tanh": lambda z: [torch.clamp(z, -1.0, 1.0)],
}


class FeatureModule(torch.nn.Module):  # type: ignore[misc, unused-ignore]  # torch may be absent when types are checked
    """points (M, n) in double precision → (M,) or (M, outputs); weights are buffers, which training leaves alone."""

    def __init__(self, function: PlainFunction) -> None:
        super().__init__()
        for key, array in function.arrays.items():
            self.register_buffer(key, torch.as_tensor(array))
        self.activation, self.single = function.activation, function.single

    def forward(self, points: Any) -> Any:
        """Values at points."""
        boxes, degree = self.boxes, self.coefficients.shape[1] - 1
        if len(boxes) == 1:
            home = torch.zeros(len(points), dtype=torch.long, device=points.device)
        else:
            fixed = points.detach()[:, None]
            away = torch.clamp(torch.maximum(boxes[..., 0] - fixed, fixed - boxes[..., 1]), min=0.0)
            home = away.square().sum(dim=2).argmin(dim=1)
        scaled = (points - self.centre[home]) / self.halfwidth[home]
        if len(self.weights) == 1:
            phase = scaled @ self.weights[0] + self.biases[0]
        else:
            own = self.layer[home]
            phase = torch.einsum("mn,mnj->mj", scaled, self.weights[own]) + self.biases[own]
        one = torch.ones_like(phase[:, :1])
        table = torch.cat([*PROFILES_OF_TORCH[self.activation](phase), one], dim=1)
        if len(boxes) == 1:
            values = torch.einsum("mj,djk->mdk", table, self.coefficients[0])
        else:
            values = torch.einsum("mj,mdjk->mdk", table, self.coefficients[home])
        basis = [torch.ones_like(scaled[:, 0]), scaled[:, 0]]
        for n in range(1, degree):
            basis.append(((2 * n + 1) * scaled[:, 0] * basis[n] - n * basis[n - 1]) / (n + 1))
        total = torch.einsum("md,mdk->mk", torch.stack(basis[: degree + 1], dim=1), values)
        return total[:, 0] if self.single else total
