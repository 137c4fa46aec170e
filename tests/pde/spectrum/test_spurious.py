"""Attempts to get spurious modes: problems whose plain discretisations are known for them."""

from __future__ import annotations

import numpy as np
import pytest

import rannpde as rp


def test_the_rotation_of_a_rotation_is_refused_on_shapes() -> None:
    """curl curl u = λ u has an infinite kernel of gradients, which nodal elements turn into spurious modes."""
    cavity = rp.Problem(["u_yy - v_xy = -lam*u", "v_xx - u_xy = -lam*v"], rp.Ball((0, 0), 1, names=("x", "y")),
                        {"boundary": ("u = 0", "v = 0")}, eigenvalue="lam")  # fmt: skip
    with pytest.raises(rp.InputError, match="elliptic"):
        rp.eigen(cavity)


def test_pressures_of_a_flow_add_no_modes() -> None:
    """Below the second eigenvalue of Stokes on a disc there is one mode, and inertia counts one."""
    text = ["-laplace(u) + p_x = lam*u", "-laplace(v) + p_y = lam*v", "u_x + v_y = 0"]
    walls = {"boundary": ("u = 0", "v = 0")}
    flow = rp.Problem(text, rp.Ball((0, 0), 1, names=("x", "y")), walls, eigenvalue="lam", incomplete=True)
    found = rp.eigen(flow, 1, tol=1e-3)
    assert np.isclose(found.values[0], 14.681970642123893, rtol=1e-3)
    assert "counts 1 up to here" in found.counted
