"""The weak form on solids with curved walls, and the direct solution of the system of traces in space."""

from __future__ import annotations

import numpy as np
import pytest

import rannpde as rp
from rannpde.pde.cells.mesh.tree import CellNode
from rannpde.pde.weak.assembly import trace_matrix
from rannpde.pde.weak.basis import HiddenLayer
from rannpde.pde.weak.form import weak_formulation
from rannpde.pde.weak.mesh import ConditionFinder, box_mesh
from rannpde.pde.weak.multifrontal import MultifrontalFactors
from rannpde.pde.weak.self_similar import CondensedCells
from rannpde.pde.weak.settings import WeakSettings
from rannpde.pde.weak.solver import WeakDiscretisation
from rannpde.pde.weak.state import WeakResolution

NAMES = ("x", "y", "z")
CUBE = rp.Box(x=(0, 1), y=(0, 1), z=(0, 1))


def test_a_smooth_solution_round_a_ball():
    """sin(x + y) + z², prescribed outside and by Robin's condition on the sphere; cubic cells."""

    def known(x, y, z):
        return np.sin(x + y) + z**2

    def robin(x, y, z):
        n_x, n_y, n_z = (-(c - m) / 0.2 for c, m in ((x, 0.45), (y, 0.5), (z, 0.55)))
        return np.cos(x + y) * (n_x + n_y) + 2 * z * n_z + known(x, y, z)

    ball = rp.Ball((0.45, 0.5, 0.55), 0.2, NAMES, name="hole")
    problem = rp.Problem(
        "-laplace(u) + 2*u = 4*sin(x + y) - 2 + 2*z**2", CUBE - ball,
        {"out": rp.On("boundary except hole", "u = g(x, y, z)"), "in": rp.On("hole", "dn(u) + u = h(x, y, z)")},
        functions={"g": known, "h": robin},
    )  # fmt: skip
    form = weak_formulation(problem)
    points = problem.domain.sample(300, rng=1)
    discretisation = WeakDiscretisation(form, 1e-2, WeakSettings(), np.random.default_rng(0), lambda: None, 3)
    tree = CellNode(np.array(CUBE.bounds)).refined_leaves((0, 1, 2))
    state = discretisation.solve(WeakResolution(tree, 3))
    assert len(state.mesh.parts) == 8
    assert state.mesh.patches.weights.sum() == pytest.approx(6 + 4 * np.pi * 0.04, rel=1e-5)
    assert sum(part.weights.sum() for part in state.mesh.parts.values()) == pytest.approx(1 - 4 / 3 * np.pi * 0.008)
    error = state.network(points)[:, 0] - known(*points.T)
    assert np.linalg.norm(error) < 1e-3 * np.linalg.norm(known(*points.T))


@pytest.mark.parametrize("symmetric", [True, False])
def test_elimination_along_the_tree_solves_the_system_of_traces(symmetric):
    """Random Schur complements of the cells of a mesh with hanging faces, some unknowns left out."""
    rng = np.random.default_rng(int(symmetric))
    tree = CellNode(np.array(CUBE.bounds)).refined_leaves((0, 1, 2))
    tree = tree.refined({tree.leaves[3]: (0, 2)})
    problem = rp.Problem("laplace(u) = 1", CUBE, {"sides": rp.On("boundary", "u = 0")})
    form, layer = weak_formulation(problem), HiddenLayer.sample(3, 2, WeakSettings(), rng)
    mesh = box_mesh(CUBE, tree, ConditionFinder(form.terms, 1), layer.nodes)
    block, parts = 2, []
    for cell in range(mesh.count):
        faces = np.flatnonzero((mesh.beside == cell).any(axis=1))
        dofs = (faces[:, None] * block + np.arange(block)).ravel()
        own = rng.normal(size=(len(dofs), len(dofs)))
        own = own @ own.T + np.eye(len(dofs)) if symmetric else own + 2 * len(dofs) * np.eye(len(dofs))
        parts.append(CondensedCells(np.array([cell]), dofs[None], own[None], np.zeros(1, dtype=int)))
    total = mesh.faces * block
    used = rng.uniform(size=total) > 0.1
    factors = MultifrontalFactors(mesh, parts, used, symmetric)
    matrix = trace_matrix(parts, total).toarray()[np.ix_(used, used)]
    right = rng.normal(size=total)
    for transposed in (False, True):
        found = factors.solve(right, transposed)
        wanted = np.linalg.solve(matrix.T if transposed else matrix, right[used])
        assert np.allclose(found[used], wanted, rtol=1e-10, atol=1e-12)
        assert not found[~used].any()
