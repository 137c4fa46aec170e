"""Adaptive integrals over patches of shapes, sides, lines and products with time."""

import numpy as np
import pytest

import rannpde as rp
from rannpde.domains.operations.regions import line_patches, patches_of
from rannpde.domains.quadrature.adaptive import integrate_patches

PLATE = rp.Box(x=(0, 2.2), y=(0, 0.41)) - rp.Ball((0.2, 0.2), 0.05, name="hole")
L_SHAPE = rp.Polygon([(-1, -1), (0, -1), (0, 0), (1, 0), (1, 1), (-1, 1)])
SHAPES = {
    "box": rp.Box(x=(-0.3, 1.1), y=(2, 2.5)),
    "disc": rp.Ball((0.3, -2.0), 0.7),
    "plate": PLATE,
    "L": L_SHAPE,
    "ellipse": rp.Ellipse((1, 2), (2, 0.3), 0.4),
    "turned": rp.Box(x=(0, 1), y=(0, 3)).rotated(0.7),
    "cylinder in time": rp.SpaceTime(t=(0.5, 2), x=PLATE),
    "cuboid": rp.Box(x=(0, 1), y=(0, 2), z=(1, 1.5)),
}


def integral(function, patches, tolerance=1e-11, budget=2**19):
    return integrate_patches(
        lambda at: np.stack([function(at), np.ones(len(at.points))], axis=1), patches, lambda v: tolerance, 12, budget
    )


@pytest.mark.parametrize("name", SHAPES)
def test_measures_of_shapes_and_of_their_sides(name):
    domain = SHAPES[name]
    for region in [domain, *domain.sides.values()]:
        found = integral(lambda at: np.ones(len(at.points)), patches_of(region))
        assert found.values[1] == pytest.approx(region.measure, rel=1e-12)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("seed", range(3))
def test_the_divergence_theorem_holds_on_every_shape(name, seed):
    """∫ div F = ∮ F·n for a random smooth field, in the coordinates of space."""
    domain = SHAPES[name]
    first = int(isinstance(domain, rp.SpaceTime))
    rng = np.random.default_rng(seed)
    a, b = rng.uniform(-2, 2, (2, domain.dim))
    shift = domain.bounds.mean(axis=1)

    def field(points):
        return np.sin((points - shift) @ a)[:, None] * b

    def divergence(at):
        return (b * a)[first:].sum() * np.cos((at.points - shift) @ a)

    inside = integral(divergence, patches_of(domain))
    outside = [
        integral(lambda at: (field(at.points) * at.normals)[:, first:].sum(axis=1), patches_of(side))
        for side in domain.sides.values()
    ]
    assert inside.reached
    assert all(one.reached for one in outside)
    assert inside.values[0] == pytest.approx(sum(one.values[0] for one in outside), abs=1e-9)


@pytest.mark.parametrize("power", [-0.5, -1 / 3, 0.5, 2 / 3])
def test_corner_singularities_are_resolved_within_the_error_told(power):
    """∫ r^α over the L-shape: three squares with a common corner; and along a side that ends there."""
    square = integral(lambda at: np.hypot(*at.points.T) ** power, patches_of(rp.Box(x=(0, 1), y=(0, 1))), 1e-12, 2**20)
    found = integral(lambda at: np.hypot(*at.points.T) ** power, patches_of(L_SHAPE), 1e-11, 2**20)
    assert abs(found.values[0] - 3 * square.values[0]) <= found.errors[0] + 3 * square.errors[0]
    assert found.errors[0] < 1e-8
    line = integral(lambda at: np.hypot(*at.points.T) ** power, line_patches(np.zeros(2), np.array([0.6, 0.8])))
    assert abs(line.values[0] - 1 / (1 + power)) <= max(line.errors[0], 1e-13) < 1e-7


def test_panels_are_not_halved_below_the_noise():
    """A function that is noise within 1e-3 of one end: the panel there is left alone, and its error told."""

    def noisy(at):
        x = at.points[:, 0]
        noise = np.where(x < 1e-3, np.sin(1e9 * x) / np.maximum(x, 1e-300), 0.0)
        return np.stack([1 + noise, np.abs(noise)], axis=1)

    line = line_patches(np.zeros(1), np.ones(1))
    found = integrate_patches(noisy, line, lambda v: 1e-12, 16, 2**18, noise=1)
    assert found.points < 2**14
    assert abs(found.values[0] - 1) <= 2 * found.values[1] + found.errors[0]


def test_a_function_that_is_not_finite_is_told():
    found = integral(lambda at: np.full(len(at.points), np.nan), patches_of(L_SHAPE))
    assert not found.reached
    assert np.isinf(found.errors).all()
