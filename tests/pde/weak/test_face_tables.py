"""Functions on faces by sums over one axis after another, and traces of lower degree beside re-entrant edges."""

from __future__ import annotations

import numpy as np
import pytest

import rannpde as rp
from rannpde import On
from rannpde.pde.weak.assembly import HybridSystem
from rannpde.pde.weak.basis import HiddenLayer
from rannpde.pde.weak.edges import SingularEdge, trace_degrees
from rannpde.pde.weak.evaluation import weak_network
from rannpde.pde.weak.form import weak_formulation
from rannpde.pde.weak.local import LocalMatrices
from rannpde.pde.weak.settings import WeakSettings
from rannpde.pde.weak.solver import WeakDiscretisation


@pytest.mark.parametrize(("dim", "degree"), [(2, 7), (3, 4)])
def test_sums_by_axes_are_those_over_all_products(dim, degree):
    rng = np.random.default_rng(dim)
    layer = HiddenLayer.sample(dim, degree, WeakSettings(), rng)
    for axis in range(dim):
        for place in (-1.0, 1.0, 0.25):
            nodes = np.insert(layer.face_grid[0], axis, 0.0, axis=1) * rng.uniform(0.1, 1, dim)
            nodes[:, axis] = place
            found = layer.side_tables(nodes[None])[0]
            assert np.allclose(found, layer.tables(nodes), rtol=0, atol=1e-12 * np.abs(found).max())


def test_faces_that_are_not_flat_and_nodes_without_a_grid():
    rng = np.random.default_rng(0)
    for dim in (2, 3):
        layer = HiddenLayer.sample(dim, 4, WeakSettings(), rng)
        nodes = rng.uniform(-1, 1, (2, 9, dim))
        nodes[1, :, 0] = 1.0
        found = layer.side_tables(nodes)
        assert np.allclose(found[1], layer.tables(nodes[1]))
        assert np.allclose(found[0], layer.tables(nodes[0]))


def test_degrees_fall_linearly_with_the_layer():
    edge = SingularEdge(2, (0.0, 0.0, 0.5), (0.0, 1.0), 2 / 3, (0, 1))
    sizes = 0.25 ** np.arange(5)
    spans = np.array([[(h / 4, h), (0.0, h / 4), (0.2, 0.2)] for h in sizes])
    found = trace_degrees(spans, [edge], 8, 1.0)
    assert np.all(np.diff(found) <= 0)
    assert abs((found[0] - found[-1]) - 4 * (2 / 3) * np.log(4) / np.log(3)) <= 1
    far = trace_degrees(np.array([[(0.0, 0.1), (0.0, 0.1), (-0.9, -0.8)]]), [edge], 8, 1.0)
    assert far.tolist() == [8]
    assert trace_degrees(spans * 1e-6, [edge], 8, 1.0).min() >= 1


def test_traces_of_lower_degree_leave_the_solution_as_accurate():
    """r^(2/3) sin(2θ/3) on a prism: errors with and without them."""
    solid = rp.Box(x=(-1, 1), y=(-1, 1), z=(0, 1)) - rp.Box(x=(0, 1), y=(-1, 0), z=(0, 1))

    def known(x, y, z):
        return np.hypot(x, y) ** (2 / 3) * np.sin(2 / 3 * np.mod(np.arctan2(y, x), 2 * np.pi)) * (1 + z)

    conditions = {"inner": On(("x=0", "y=0"), "u = 0"), "rest": On("boundary except x=0, y=0", "u = g(x, y, z)")}
    problem = rp.Problem("laplace(u) = 0", solid, conditions, functions={"g": known})
    errors, unknowns = [], []
    for lowered in (True, False):
        form = weak_formulation(problem)
        discretisation = WeakDiscretisation(form, 1e-3, WeakSettings(), np.random.default_rng(0), lambda: None)
        layer = HiddenLayer.sample(3, 4, discretisation.settings, np.random.default_rng(0))
        mesh = discretisation.mesh(discretisation._tree(1e-4), layer)
        local = LocalMatrices(form, mesh, layer, lambda: None)
        degrees = trace_degrees(mesh.spans, discretisation.edges, 4, 2.0) if lowered else None
        found = HybridSystem(local, trace_degrees=degrees).solve()
        truth = known(*discretisation.check_points.T)
        values = weak_network(local, found)(discretisation.check_points)[:, 0]
        errors.append(np.linalg.norm(values - truth) / np.linalg.norm(truth))
        unknowns.append(np.count_nonzero(found.traces))
    assert errors[0] < 1.2 * errors[1]
    assert unknowns[0] < 0.9 * unknowns[1]
