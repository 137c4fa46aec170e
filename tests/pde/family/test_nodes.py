"""Leja points, sparse grids, and the interpolation on them."""

import numpy as np
import pytest

from rannpde.pde.family.nodes import SparseGrid, backward_neighbours, forward_neighbours, hierarchical, leja


def total_degree(dim, degree):
    """All multi-indices of at most that degree, each after those below it."""
    levels = np.stack(np.meshgrid(*[np.arange(degree + 1)] * dim, indexing="ij"), axis=-1).reshape(-1, dim)
    kept = [tuple(map(int, row)) for row in levels if row.sum() <= degree]
    return tuple(sorted(kept, key=sum))


def test_leja_points_are_nested_and_distinct():
    assert leja(40)[:20] == leja(20)
    assert len(set(leja(80))) == 80
    assert np.max(np.abs(leja(80))) <= 1


def test_hierarchical_functions_are_bounded_by_one_after_the_first_two():
    """Each Leja point after the first maximises the product, so that the quotient is at most 1."""
    table = hierarchical(60, np.linspace(-1, 1, 2001))
    assert np.abs(table[:, 1:]).max() <= 1 + 1e-5  # nodes lie on a grid of 20,001 points


def test_weights_interpolate_and_sum_to_one():
    grid = SparseGrid(total_degree(3, 4))
    points = np.random.default_rng(0).uniform(-1, 1, (50, 3))
    assert np.allclose(grid.weights(points).sum(axis=1), 1, atol=1e-12)
    assert np.allclose(grid.weights(grid.nodes), np.eye(len(grid.indices)), atol=1e-11)


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_polynomials_of_the_set_and_their_derivatives_are_exact(dim):
    rng = np.random.default_rng(dim)
    grid, points = SparseGrid(total_degree(dim, 5)), rng.uniform(-1, 1, (40, dim))
    for _ in range(5):
        exponents = rng.multinomial(5, [1 / (dim + 1)] * (dim + 1))[:dim]
        values = np.prod(grid.nodes**exponents, axis=1)
        assert np.allclose(grid.weights(points) @ values, np.prod(points**exponents, axis=1), atol=1e-12)
        lowered = np.maximum(exponents - np.eye(dim, dtype=int)[0], 0)
        slope = exponents[0] * np.prod(points**lowered, axis=1)
        orders = tuple(int(k == 0) for k in range(dim))
        assert np.allclose(grid.weights(points, orders) @ values, slope, atol=1e-11)


def test_second_derivatives():
    grid = SparseGrid(tuple((k,) for k in range(12)))
    points = np.linspace(-1, 1, 9)[:, None]
    assert np.allclose(grid.weights(points, (2,)) @ np.exp(grid.nodes[:, 0]), np.exp(points[:, 0]), atol=1e-6)


def test_neighbours_above_need_all_those_below():
    assert backward_neighbours((2, 0, 1)) == [(1, 0, 1), (2, 0, 0)]
    assert forward_neighbours((1, 0), {(0, 0), (1, 0)}, {(0, 0), (1, 0), (0, 1)}) == [(2, 0)]
    assert (1, 1) in forward_neighbours((1, 0), {(0, 0), (1, 0), (0, 1)}, {(0, 0), (1, 0), (0, 1)})
