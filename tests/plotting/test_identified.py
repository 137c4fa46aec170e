"""Pictures of unknowns: names set as mathematics, one panel for each, sensors where they are best."""

from __future__ import annotations

import numpy as np
import pytest

import rannpde as rp


@pytest.mark.parametrize(
    "space",
    [
        pytest.param({"x": (0, 1)}, id="line"),
        pytest.param({"x": (0, 1), "y": (0, 1)}, id="square", marks=pytest.mark.slow),
    ],
)
def test_a_map_for_every_unknown_with_the_best_sensors(space):
    wave = "*".join(f"sin(pi*{name})" for name in space)
    problem = rp.Problem(
        "u_t = kappa*laplace(u)",
        rp.SpaceTime(t=(0, 1), **space),
        {"start": rp.On("t=0", f"u = A*{wave}"), "ends": rp.On("boundary", "u = 0")},
        unknown={"kappa": rp.Unknown(guess=0.1, bounds=(0, None)), "A": rp.Unknown(guess=1.7)},
    )
    found = rp.sensitivity(problem)
    figure = found.plot()
    panels = [axes for axes in figure.axes if axes.get_title()]
    assert [axes.get_title() for axes in panels] == [
        rf"${name}\ \partial u / \partial {name}$" for name in (r"\kappa", "A")
    ]
    best = found.best(4)
    for axes in panels:
        (sensors,) = axes.get_lines()
        across, up = (1, 0) if len(space) == 1 else (1, 2)
        np.testing.assert_array_equal(sensors.get_xydata(), best[:, [across, up]])
        assert axes.get_xlabel() == "$x$"
        assert axes.get_ylabel() == ("$t$" if len(space) == 1 else "$y$")
    told = figure.get_suptitle()
    assert "4 sensors" in told
    assert ("maps at" in told) == (len(space) == 2)  # at a time of the sensors, not the last
