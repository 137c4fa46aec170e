"""Re-entrant edges of solids: found where they are, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest

import rannpde as rp

NAMES = ("x", "y", "z")


def cube(lower: float, upper: float) -> rp.Box:
    return rp.Box(x=(lower, upper), y=(lower, upper), z=(lower, upper))


def test_the_edges_of_a_notch_are_three_lines_that_meet():
    creases = (cube(-1, 1) - cube(0, 1)).creases
    assert creases.angle == pytest.approx(1.5 * np.pi)
    beside = np.sort(np.abs(creases.points), axis=1)[:, :2]
    assert beside.max() < 1e-9  # two of three coordinates vanish: on an axis
    assert creases.points.min() > -1e-9
    assert creases.points.max(axis=0) == pytest.approx([1, 1, 1], abs=0.1)
    assert np.linalg.norm(creases.points, axis=1).min() < 1e-9  # where all three meet is among them
    along = np.take_along_axis(np.abs(creases.directions), np.abs(creases.points).argmax(axis=1)[:, None], axis=1)
    assert np.mean(along > 1 - 1e-9) > 0.7  # beside the vertex, which has all directions, that of the axis


@pytest.mark.slow
def test_the_circle_in_which_two_balls_meet():
    """Centres 1 apart, radii 1 and 0.8: the circle x = 0.68, of radius √(1 - 0.68²)."""
    creases = (rp.Ball((0, 0, 0), 1, NAMES) | rp.Ball((1, 0, 0), 0.8, NAMES)).creases
    assert len(creases) > 20
    assert creases.points[:, 0] == pytest.approx(0.68, abs=1e-4)
    assert np.hypot(*creases.points[:, 1:].T) == pytest.approx(np.sqrt(1 - 0.68**2), abs=1e-4)
    assert np.abs(creases.directions[:, 0]).max() < 1e-3
    normals = np.array([0.68, np.sqrt(1 - 0.68**2)]), np.array([-0.32, np.sqrt(1 - 0.68**2)]) / 0.8
    assert creases.angle == pytest.approx(np.pi + np.arccos(normals[0] @ normals[1]), abs=1e-3)


@pytest.mark.parametrize(
    "domain",
    [
        cube(0, 1),
        rp.Ball((0, 0, 0), 1, NAMES),
        cube(0, 1) - rp.Ball((0.4, 0.5, 0.5), 0.2, NAMES),
        cube(0, 1) - rp.Ball((0.4, 0.5, 0.5), 0.03, NAMES),  # a hollow no larger than the spacing of the points seen
        pytest.param(cube(0, 1) & rp.Ball((0.5, 0.5, 0.5), 0.6, NAMES), marks=pytest.mark.slow),  # its volume first
        rp.Box(x=(-1, 1), y=(-1, 1)) - rp.Box(x=(0, 1), y=(0, 1)),
    ],
    ids=["box", "ball", "hollow", "small hollow", "convex", "plane"],
)
def test_where_nothing_is_reentrant_there_are_none(domain):
    assert len(domain.creases) == 0


def test_walls_of_a_slit_are_no_edge_but_its_ends_are():
    creases = (cube(0, 1) - rp.Box(x=(0.3, 0.7), y=(0.48, 0.52), z=(0.2, 0.8))).creases
    ends = np.array([(0.3, 0.7), (0.48, 0.52), (0.2, 0.8)])
    on = (np.abs(creases.points[:, :, None] - ends).min(axis=2) < 1e-9).sum(axis=1)
    assert (on >= 2).all()
