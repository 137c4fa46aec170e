"""Particular solutions on shapes with analytic modes: bounds by the largest value on the boundary."""

from __future__ import annotations

import numpy as np

import rannpde as rp


def test_the_bound_of_moler_and_payne_for_an_annulus(tmp_path) -> None:
    ring = rp.Ball((0, 0), 1, names=("x", "y")) - rp.Ball((0, 0), 0.5, names=("x", "y"))
    found = rp.eigen(rp.Problem("-laplace(u) = lam*u", ring, {"boundary": "u = 0"}, eigenvalue="lam"), 3, tol=1e-9)
    assert found.method.name == "particular"
    assert "Moler" in found.assurance
    assert np.allclose(found.values, [39.013288499003, 40.872453378664, 40.872453378664], rtol=1e-12, atol=0)
    assert found.multiplicities == (1, 2, 2)
    angle = np.linspace(0, 6, 7)
    inner = 0.5 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    assert np.abs(found[2](inner)).max() < 1e-9
    again = rp.load(found.save(tmp_path / "ring.npz"))
    assert (again[0](1.4 * inner) == found[0](1.4 * inner)).all()
