"""Outlines and simplices of shapes: areas and volumes, closed loops, corners, points on the boundary."""

from math import pi

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from known_shapes import CUBE, FOUR, PLATE, plane
from rannpde.domains import Ball, Box, Interval
from rannpde.domains.export.outline import enclosed, outlines, section_outlines
from rannpde.domains.export.simplices import filled, volumes
from rannpde.domains.shapes.quadrics import Cylinder
from rannpde.errors import InputError


@plane
def test_outlines_enclose_the_area(domain, area, length):
    """A chord of length h cuts κ h³/12 off, h² of a length of curves of curvature κ ≤ 10; the domain on the left."""
    spacing = 0.01
    loops = outlines(domain, spacing)
    assert sum(enclosed(loop) for loop in loops) == pytest.approx(area, abs=10 * spacing**2 * length / 12)
    for loop in loops:
        np.testing.assert_allclose(domain.level(loop), 0, atol=1e-11 * np.abs(loop).max())
        gaps = np.linalg.norm(np.roll(loop, -1, axis=0) - loop, axis=1)
        assert gaps.max() <= spacing * (1 + 1e-9)


@plane
def test_triangles_fill_the_outline(domain, area, length):
    """No overlap and no gap: areas sum to that of the polygon of their boundary, and they turn the right way."""
    points, triangles = filled(domain, 24)
    parts = volumes(points, triangles)
    assert (parts > 0).all()
    assert parts.sum() == pytest.approx(area, rel=5e-3)
    assert (domain.level(points) <= 1e-3 * np.abs(points).max()).all()
    rim = _rim(triangles)
    assert (np.bincount(rim.ravel())[np.unique(rim)] % 2 == 0).all()  # every point of the rim has two edges, or four


def _rim(triangles):
    """Edges (E, 2) of one triangle only; no edge has three."""
    edges = np.sort(np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]]), axis=1)
    pairs, times = np.unique(edges, axis=0, return_counts=True)
    assert times.max() == 2
    return pairs[times == 1]


def test_corners_are_points_of_the_triangles():
    points, _ = filled(PLATE, 17)
    for corner in ((0, 0), (4, 0), (4, 2), (2, 2), (2, 1), (0, 1)):
        assert np.abs(points - corner).sum(axis=1).min() < 1e-12


def test_nearly_touching_holes_are_followed():
    """Two discs with a gap of a tenth of the spacing: no triangle crosses it."""
    domain = Box(x=(0, 2), y=(0, 1)) - Ball((0.7, 0.5), 0.295) - Ball((1.3, 0.5), 0.295)
    points, triangles = filled(domain, 20)
    assert volumes(points, triangles).sum() == pytest.approx(2 - 2 * pi * 0.295**2, rel=5e-3)
    assert len(_rim(triangles)) > 0


@pytest.mark.parametrize(
    ("domain", "volume"),
    [(CUBE - Ball((0.5, 0.5, 0.5), 0.3), 1 - 0.036 * pi), (Cylinder((0, 0, 0), (0, 0, 2), 0.5), pi / 2),
     (CUBE - Box(x=(0, 0.5), y=(0, 1), z=(0.5, 1)), 0.75)],
    ids=["cube without a ball", "cylinder", "bracket"],
)  # fmt: skip
def test_tetrahedra_fill_solids(domain, volume):
    """Second order: the error falls by about four when the cells are halved; nothing is left of it for flat faces."""
    errors = []
    for resolution in (8, 16):
        points, cells = filled(domain, resolution)
        parts = volumes(points, cells)
        assert (parts > 0).all()
        assert (domain.level(points) <= 1e-8).all()
        errors.append(abs(parts.sum() / volume - 1))
    assert errors[1] <= max(errors[0] / 2.5, 1e-12)
    faces = np.sort(np.concatenate([cells[:, [k for k in range(4) if k != one]] for one in range(4)]), axis=1)
    _, times = np.unique(faces, axis=0, return_counts=True)
    assert times.max() == 2  # neighbours share whole faces


@settings(max_examples=10, deadline=None)
@given(st.floats(0.0, 0.9), st.sampled_from([(0, 1), (0, 2), (1, 2)]))
def test_sections_of_a_ball(height, axes):
    (third,) = {0, 1, 2} - set(axes)
    place = np.zeros(3)
    place[third] = height
    (line,) = section_outlines(Ball((0, 0, 0), 1), axes, place)
    np.testing.assert_allclose(np.linalg.norm(line, axis=1), np.sqrt(1 - height**2), rtol=1e-9)


def test_a_section_has_the_domain_on_its_left():
    loops = section_outlines(CUBE - Ball((0.5, 0.5, 0.5), 0.3), (0, 1), np.full(3, 0.5))
    areas = sorted(enclosed(loop) for loop in loops)
    assert areas == pytest.approx([-0.09 * pi, 1.0], rel=1e-3)


def test_other_dimensions_are_refused():
    with pytest.raises(InputError, match="2 for an outline"):
        outlines(CUBE)
    with pytest.raises(InputError, match="2 or 3"):
        filled(Interval(0, 1), 4)
    assert len(outlines(FOUR)) == 5
