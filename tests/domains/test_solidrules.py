"""Rules on boxes that curved walls cut in space: volumes, areas and the divergence theorem."""

from __future__ import annotations

import numpy as np
import pytest

import rannpde as rp
from rannpde.domains.operations.solidrules import SolidClipper, smooth_walls_obstacle

NAMES = ("x", "y", "z")
CUBE = rp.Box(x=(0, 1), y=(0, 1), z=(0, 1))


def flow(points):
    """(x² y, y z, z² x), whose divergence is 2xy + z + 2zx."""
    x, y, z = np.moveaxis(points, -1, 0)
    return np.stack([x**2 * y, y * z, z**2 * x], axis=-1)


@pytest.mark.parametrize("seed", range(3))
def test_divergence_theorem_in_boxes_that_a_ball_cuts(seed):
    """Balls and boxes at random: what flows out through sides and surface is what the volume gives."""
    rng = np.random.default_rng(seed)
    clipper = SolidClipper(CUBE - rp.Ball(rng.uniform(0.4, 0.6, 3), rng.uniform(0.2, 0.35), NAMES))
    low = rng.uniform(0.1, 0.5, 3)
    box = np.stack([low, low + rng.uniform(0.2, 0.3, 3)], axis=1)
    found = clipper.clip(box, 10)
    x, y, z = found.points.T
    through = float((found.surface.weights[:, :, None] * found.surface.normals * flow(found.surface.points)).sum())
    for axis in range(3):
        for end, sign in ((0, -1.0), (1, 1.0)):
            side = box.copy()
            side[axis] = box[axis, end]
            points, weights, _ = clipper.face(side, axis, 10)
            through += sign * float((weights * flow(points)[..., axis]).sum())
    # steepest pieces have slopes of 1/STEEP, whose roots ten nodes integrate to seven digits
    assert through == pytest.approx(float(found.weights @ (2 * x * y + z + 2 * z * x)), abs=1e-7 * np.prod(box[:, 1]))


def test_a_ball_inside_a_few_boxes():
    """The volume left, the area of the sphere, and its flux by the points of all pieces."""
    radius, centre = 0.3, np.array([0.47, 0.52, 0.45])
    clipper = SolidClipper(CUBE - rp.Ball(centre, radius, NAMES))
    ends, volume, area = np.array([0.0, 0.5, 1.0]), 0.0, 0.0
    for corner in np.ndindex(2, 2, 2):
        found = clipper.clip(np.array([ends[k : k + 2] for k in corner]), 12)
        volume, area = volume + found.weights.sum(), area + found.surface.weights.sum()
        outward = (found.surface.points - centre) / radius
        assert np.allclose(found.surface.normals, -outward, atol=1e-12)
    assert volume == pytest.approx(1 - 4 / 3 * np.pi * radius**3, abs=1e-8)
    assert area == pytest.approx(4 * np.pi * radius**2, abs=1e-6)


def test_boxes_that_no_wall_meets_are_whole():
    clipper = SolidClipper(CUBE - rp.Ball((0.5, 0.5, 0.5), 0.2, NAMES))
    box = np.array([(0.0, 0.25)] * 3)
    assert not clipper.meets(box)
    assert clipper.clip(box, 4).whole
    assert clipper.clip(box, 4).weights.sum() == pytest.approx(0.25**3, rel=1e-14)
    assert clipper.turning(np.array([(0.0, 1.0)] * 3)) > 3.0


def test_which_domains_can_be_clipped():
    small = rp.Ball((0.3, 0.3, 0.3), 0.1, NAMES)
    assert not smooth_walls_obstacle(CUBE - small - rp.Ball((0.7, 0.7, 0.7), 0.15, NAMES))
    assert "not straight" in smooth_walls_obstacle(CUBE - rp.Ball((0.0, 0.5, 0.5), 0.2, NAMES))
    assert "not straight" in smooth_walls_obstacle(CUBE - small - rp.Ball((0.4, 0.3, 0.3), 0.1, NAMES))
    assert "several boxes" in smooth_walls_obstacle(CUBE - rp.Box(x=(0.5, 1), y=(0.5, 1), z=(0.5, 1)) - small)
