"""Matrices from the products on kinds of faces are those from all points of all faces."""

from __future__ import annotations

import numpy as np
import pytest

from rannpde.domains.domain import Box
from rannpde.pde.problem.conditions import On
from rannpde.pde.problem.problem import Problem
from rannpde.pde.weak.flat_faces import PairCoefficients
from rannpde.pde.weak.form import weak_formulation
from rannpde.pde.weak.settings import WeakSettings
from rannpde.pde.weak.solver import WeakDiscretisation
from rannpde.rounding import COMPUTED

CARRIED = Problem(
    "-laplace(u) - u_xx + 3*u_x - 2*u_y + u = 1", Box(x=(0, 1), y=(0, 2), z=(0, 1)),
    {"in": On("x=0", "u = 0"), "rest": On(("y=0", "y=2", "z=0", "z=1"), "dn(u) = 1 - 2*u"), "out": On("x=1", "u = 1")},
)  # fmt: skip
STRESS = {
    a: f"3*{a} + {b} + {c} = 0" for a, b, c in (("u_x", "v_y", "w_z"), ("v_y", "u_x", "w_z"), ("w_z", "u_x", "v_y"))
}
SHEAR = {"xy": "u_y + v_x = 0", "xz": "u_z + w_x = 0", "yz": "v_z + w_y = 0"}
ROLLERS = Problem(
    ["laplace(u) + 2*(u_xx + v_xy + w_xz) = 0", "laplace(v) + 2*(u_xy + v_yy + w_yz) = 1",
     "laplace(w) + 2*(u_xz + v_yz + w_zz) = 0"],
    Box(x=(0, 1), y=(0, 1), z=(0, 2)),
    {"held": On("x=0", ["u = 0", "v = 0", "w = 0"]), "end": On("x=1", [STRESS["u_x"], SHEAR["xy"], SHEAR["xz"]]),
     "rollers": On("y=0", ["v = 0", SHEAR["xy"], SHEAR["yz"]]),
     "top": On("y=1", [SHEAR["xy"], STRESS["v_y"], SHEAR["yz"]]),
     "ends": On(("z=0", "z=2"), [SHEAR["xz"], SHEAR["yz"], STRESS["w_z"]])},
)  # fmt: skip
SPACE = Problem(
    "-laplace(u) = 1", Box(x=(0, 1), y=(0, 2), z=(0, 1)),
    {"held": On("x=0", "u = 0"), "rest": On("boundary except x=0", "dn(u) = 1")},
)  # fmt: skip


@pytest.mark.parametrize("problem", [CARRIED, ROLLERS, SPACE], ids=["carried", "rollers", "space"])
def test_both_ways_give_the_same_matrices(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    form = weak_formulation(problem)
    settings, rng = WeakSettings(), np.random.default_rng(0)
    local = WeakDiscretisation(form, 1e-2, settings, rng, lambda: None, 3)
    state = local.solve(local.first()).local
    quick = [state.matrices(batch) for batch in state.batches()]
    monkeypatch.setattr(PairCoefficients, "constant", False)
    for one, other in zip(quick, [state.matrices(batch) for batch in state.batches()], strict=True):
        for found, wanted in zip(one, other, strict=True):
            assert np.abs(found - wanted).max() <= COMPUTED * np.abs(wanted).max(initial=1.0)
