"""Trees, functions of a cell, faces and the elimination along a tree."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rannpde as rp
from rannpde.checkpoints import guarded
from rannpde.errors import FileError
from rannpde.pde.cells.basis.basis import BasisSample, derivative_weights, fourier_columns
from rannpde.pde.cells.basis.quadrature import gauss_grid, polynomials
from rannpde.pde.cells.condensation.blocks import PivotBlock, SchurComplement, append_rows, triangular_factor
from rannpde.pde.cells.condensation.dissection import solve_traces
from rannpde.pde.cells.interfaces.detection import Interfaces
from rannpde.pde.cells.mesh.initial import first_tree
from rannpde.pde.cells.mesh.mesh import MeshBuilder
from rannpde.pde.cells.mesh.tree import CellNode, box_faces, packed_tree, unpacked_tree
from rannpde.pde.cells.tuning import CellsTuning

SQUARE = np.array([(0.0, 1.0), (-1.0, 1.0)])


@st.composite
def trees(draw) -> CellNode:
    """A box of two or three coordinates, cut at random."""
    dim = draw(st.integers(1, 3))
    tree = CellNode(np.array([(0.0, 1.0)] * dim))
    for _ in range(draw(st.integers(0, 6))):
        leaf = tree.leaves[draw(st.integers(0, len(tree.leaves) - 1))]
        tree = tree.refined({leaf: (draw(st.integers(0, dim - 1)),)})
    return tree


@given(trees())
@settings(max_examples=60, deadline=None)
def test_leaves_tile_the_box_and_points_are_located_in_their_leaf(tree):
    assert sum(np.prod(leaf.lengths) for leaf in tree.leaves) == pytest.approx(1.0, rel=1e-14)
    points = np.random.default_rng(0).uniform(size=(200, len(tree.bounds)))
    homes = tree.locate(points)
    for point, home in zip(points, homes, strict=True):
        lower, upper = tree.leaves[home].bounds.T
        assert (lower <= point).all()
        assert (point <= upper).all()


@given(trees())
@settings(max_examples=60, deadline=None)
def test_faces_cover_every_inner_plane_once(tree):
    """Σ faces = half of what the leaves' surfaces have beyond the surface of the box."""

    def area(bounds, axis):
        rest = np.arange(len(bounds)) != axis
        return float(np.prod((bounds[:, 1] - bounds[:, 0])[rest]))

    traces, stack = 0.0, [(tree, 0)]
    while stack:
        node, first = stack.pop()
        if node.children is None:
            continue
        lower, upper = node.children
        stack += [(lower, first), (upper, first + len(lower.leaves))]
        traces += sum(area(face.bounds, face.axis) for face in box_faces(node, first))
    axes = range(len(tree.bounds))
    surfaces = sum(2 * area(leaf.bounds, axis) for leaf in tree.leaves for axis in axes)
    assert 2 * traces == pytest.approx(surfaces - 2 * len(axes), abs=1e-12)


@given(trees())
@settings(max_examples=30, deadline=None)
def test_a_tree_survives_a_file(tree):
    again = unpacked_tree(tree.bounds, *packed_tree(tree))
    assert len(again.leaves) == len(tree.leaves)
    for one, other in zip(tree.leaves, again.leaves, strict=True):
        assert (one.bounds == other.bounds).all()


@pytest.mark.parametrize(
    ("axes", "places"),
    [([], []), ([0.0], [0.5]), ([-1.0, -1.0], [0.0, 0.0]), ([5.0, -1.0, -1.0], [0.5, 0.0, 0.0]),
     ([0.0, -1.0, -1.0], [2.0, 0.0, 0.0]), ([0.5, -1.0, -1.0], [0.5, 0.0, 0.0])],
)  # fmt: skip
def test_a_damaged_tree_is_refused(axes, places):
    with pytest.raises(FileError, match="damaged"):
        unpacked_tree(SQUARE, np.array(axes), np.array(places))


def test_cutting_at_a_place_leaves_no_leaf_across_it():
    tree = CellNode(SQUARE).refined_leaves((0, 1, 0)).split_at(1, 0.3)
    assert not any(leaf.bounds[1, 0] < 0.3 < leaf.bounds[1, 1] for leaf in tree.leaves)
    assert len(tree.leaves) == 12


@given(trees(), st.integers(0, 1000))
@settings(max_examples=40, deadline=None)
def test_a_jittered_tree_has_the_same_leaves_slightly_moved(tree, seed):
    jittered = tree.jittered(0.2, np.random.default_rng(seed))
    assert len(jittered.leaves) == len(tree.leaves)
    for old, new in zip(tree.leaves, jittered.leaves, strict=True):
        assert (np.abs(old.bounds - new.bounds) <= 0.2 * old.lengths[:, None] + 1e-12).all()


def test_aligned_splits_in_one_plane_move_together():
    """Otherwise faces of neighbours would overlap, and the traces on them be several times as many."""
    cube = CellNode(np.array([(0.0, 1.0)] * 3)).split_at(2, 0.4).refined_leaves((0, 1, 2)).refined_leaves((0, 1))
    jittered = cube.jittered(0.2, np.random.default_rng(0), aligned=True)
    for axis in range(3):
        before, after = ({leaf.bounds[axis, 0] for leaf in tree.leaves} for tree in (cube, jittered))
        assert len(after) == len(before)
        assert after != before
    assert 0.4 in {leaf.bounds[2, 0] for leaf in jittered.leaves}
    for old, new in zip(cube.leaves, jittered.leaves, strict=True):
        assert (np.abs(old.bounds - new.bounds) <= 0.2 * old.lengths[:, None] + 1e-12).all()


def test_splits_at_a_fixed_position_are_not_jittered():
    tree = CellNode(SQUARE).split_at(0, 0.3).refined_leaves((0, 1)).jittered(0.2, np.random.default_rng(0))
    assert 0.3 in {leaf.bounds[0, 0] for leaf in tree.leaves}
    point = np.array([0.37, 0.21])
    near = CellNode(SQUARE).split_near(point, 0, 1e-9).split_near(point, 1, 1e-9).refined_leaves((0,))
    corners = [leaf.bounds for leaf in near.jittered(0.2, np.random.default_rng(1)).leaves]
    assert sum(bool(((box == point[:, None]).any(axis=1)).all()) for box in corners) == 4


# ------------------------------------------------------------------------------------------------------- functions


def drawn(dim: int, degree: int) -> BasisSample:
    return BasisSample.sample(dim, degree, CellsTuning(), np.random.default_rng(1))


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_functions_of_a_cell_are_orthonormal_on_its_points(dim):
    """Up to rounding over the cut: output weights are as large as 1/cutoff."""
    basis = drawn(dim, 6)
    values = basis.table((0,) * dim)
    gram = values.T @ (values * basis.grid[1][:, None])
    assert np.abs(gram - np.eye(len(gram))).max() < 1e-15 / basis.tuning.singular_value_cutoff


@pytest.mark.parametrize("index", [(0, 0), (1, 0), (0, 2), (2, 1), (3, 2)])
def test_derivatives_are_those_of_the_features(index):
    layer = drawn(2, 4).features
    points = np.random.default_rng(3).uniform(-1, 1, (20, 2))
    outputs = np.random.default_rng(4).normal(size=(layer.columns, 3))
    assert np.allclose(
        fourier_columns(layer, points) @ derivative_weights(layer, index, outputs),
        layer(points, index) @ outputs,
        rtol=1e-12,
    )


def test_functions_of_higher_degree_follow_a_smooth_function_ever_better():
    """Least squares on the points of a cell; each two degrees gain a digit or more until rounding."""
    errors = []
    fresh = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    for degree in (4, 8, 12):
        basis = drawn(2, degree)
        points, weights = basis.grid

        def target(p):
            return np.exp(p[:, 0]) * np.sin(2 * p[:, 1] + p[:, 0])

        root = np.sqrt(weights)
        rows = basis.table((0, 0)) * root[:, None]
        outputs = basis.transform @ np.linalg.lstsq(rows, root * target(points), rcond=None)[0]
        traces = fourier_columns(basis.features, fresh) @ derivative_weights(basis.features, (0, 0), outputs[:, None])
        errors.append(np.abs(traces[:, 0] - target(fresh)).max())
    assert errors[1] < 1e-2 * errors[0]
    assert errors[2] < 1e-2 * errors[1]


def test_polynomials_on_a_flat_box_are_those_of_its_other_axes():
    bounds = np.array([(0.0, 1.0), (2.0, 2.0), (0.0, 3.0)])
    points, weights = gauss_grid(bounds, 6)
    columns = polynomials(points, bounds, 4)
    assert columns.shape == (36, 15)
    gram = columns.T @ (columns * weights[:, None])
    assert np.allclose(gram, np.diag(np.diag(gram)), atol=1e-14)
    assert polynomials(np.zeros((2, 1)), np.zeros((1, 2)), 4).tolist() == [[1.0], [1.0]]


def test_faces_of_a_periodic_box_close_the_ring():
    mesh = MeshBuilder(rp.Box(x=(0, 1)), drawn(1, 4)).build(
        CellNode(np.array([(0.0, 1.0)])).refined_leaves((0, 0)), (0,)
    )
    assert sorted(face.cells for face in mesh.faces) == [(0, 1), (1, 2), (2, 3), (3, 0)]
    last = next(face for face in mesh.faces if face.cells == (3, 0))
    assert last.sides[0].tolist() == [[1.0]]
    assert last.sides[1].tolist() == [[0.0]]


def test_building_a_mesh_checks_the_time_between_cells():
    class Over(Exception):
        pass

    class Guard:
        left = iter(range(5))

        def check(self) -> None:
            if next(self.left, None) is None:
                raise Over

    tree = CellNode(np.array([(0.0, 1.0)] * 3)).refined_leaves((0, 1, 2))
    domain = rp.Box(x=(0, 1), y=(0, 1), z=(0, 1)) - rp.Ball((0.5, 0.5, 0.5), 0.3, names=("x", "y", "z"))
    basis = BasisSample.sample(3, 3, CellsTuning(), np.random.default_rng(0))
    with pytest.raises(Over), guarded(Guard()):  # type: ignore[arg-type]
        MeshBuilder(domain, basis).build(tree)


# ----------------------------------------------------------------------------------------------------- elimination


@given(trees(), st.integers(0, 2**31))
@settings(max_examples=25, deadline=None)
def test_nested_dissection_solves_the_least_squares_problem(tree, seed):
    """Random rows of leaves, two right sides: the traces are those of one dense least-squares solve (condition 1e2)."""
    rng = np.random.default_rng(seed)
    leaves = len(tree.leaves)
    faces, owners = [], {}
    stack = [(tree, 0)]
    while stack:
        node, first = stack.pop()
        if node.children is None:
            continue
        lower, upper = node.children
        stack += [(lower, first), (upper, first + len(lower.leaves))]
        for face in box_faces(node, first):
            owners.setdefault(node, []).append(len(faces))
            faces.append(face.cells)
    widths = [2] * len(faces)
    own, blocks, parts = 3, [], []
    for number in range(leaves):
        mine = [j for j, cells in enumerate(faces) if number in cells]
        block = rng.normal(size=(3 * own + 4 * len(mine), own + 2 * len(mine) + 2))
        blocks.append((mine, block))
        triangle = triangular_factor(np.asfortranarray(block))
        parts.append((PivotBlock(own, tuple(mine), triangle[:own]), SchurComplement(tuple(mine), triangle[own:, own:])))
    dense = np.zeros((sum(len(b) for _, b in blocks), own * leaves + 2 * len(faces)))
    row = 0
    for number, (mine, block) in enumerate(blocks):
        dense[row : row + len(block), own * number : own * (number + 1)] = block[:, :own]
        for place, j in enumerate(mine):
            columns = slice(own * leaves + 2 * j, own * leaves + 2 * j + 2)
            dense[row : row + len(block), columns] = block[:, own + 2 * place : own + 2 * place + 2]
        row += len(block)
    expected = np.linalg.lstsq(dense, np.concatenate([b[:, -2:] for _, b in blocks]), rcond=None)[0]
    traces, rank_deficient = solve_traces(tree, owners, widths, parts)
    assert not rank_deficient
    assert np.allclose(np.concatenate([np.empty((0, 2)), *traces]), expected[own * leaves :], atol=1e-10)
    weights = [pivot.solve(traces)[0] for pivot, _ in parts]
    assert np.allclose(np.concatenate(weights), expected[: own * leaves], atol=1e-10)


@pytest.mark.parametrize("kind", [float, complex])
@pytest.mark.parametrize(("rows", "more"), [(5, 4), (3, 6), (0, 7), (5, 0)])
def test_appended_rows_keep_the_normal_equations(kind, rows, more):
    """Q is unitary: A*A is the same before and after, up to rounding; also where the triangle is not whole."""
    rng = np.random.default_rng(rows + more)
    own, upper, lower = 5, rng.normal(size=(rows, 8)).astype(kind), rng.normal(size=(more, 8)).astype(kind)
    upper[:, :own] = np.triu(upper[:, :own])
    if kind is complex:
        lower = lower + 1j * rng.normal(size=lower.shape)
    known, left = append_rows(upper, lower, own)
    assert known.shape == (own, 8)
    assert left.shape == (more, 3)
    assert np.allclose(np.tril(known[:, :own], -1), 0.0, atol=1e-14)
    before, after = np.concatenate([upper, lower]), known.conj().T @ known
    after[own:, own:] += left.conj().T @ left
    assert np.allclose(before.conj().T @ before, after, atol=1e-12)


@pytest.mark.parametrize("face_weight", [1.0, 1e7])
def test_traces_with_very_different_row_weights_keep_their_digits(face_weight):
    """Two cells beside each other; rows of one trace weigh 1e7 times more, and their products would lose the others."""
    tree = CellNode(SQUARE).split(0)
    rng = np.random.default_rng(5)
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    stretched = (turn * np.array([face_weight, 1.0, 1.0])) @ turn.T
    exact = rng.normal(size=3)
    parts = []
    for _ in range(2):
        rows = rng.normal(size=(6, 3)) @ stretched
        left = triangular_factor(np.asfortranarray(np.column_stack([rows, rows @ exact])))
        parts.append((PivotBlock(0, (0,), np.empty((0, 4))), SchurComplement((0,), left)))
    (traces,), rank_deficient = solve_traces(tree, {tree: [0]}, [3], parts)
    assert not rank_deficient
    assert np.allclose(traces[:, 0], exact, atol=1e-13 * max(100.0, 10 * face_weight))


def test_rank_deficiency_is_reported_and_the_solution_of_least_norm_taken():
    pivot = PivotBlock(2, (), np.array([[1.0, 1.0, 2.0], [0.0, 0.0, 0.0]]))
    solved, rank_deficient = pivot.solve([])
    assert rank_deficient
    assert np.allclose(solved, [[1.0], [1.0]])


def test_iterative_refinement_recovers_what_normal_equations_lose() -> None:
    """Rows of condition 1e4: their products know the traces to 1e-8, and one refinement to rounding."""
    rng = np.random.default_rng(8)
    tree = CellNode(np.array([(0.0, 1.0)])).split(0)
    turn = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    blocks = [np.linalg.qr(rng.normal(size=(20, 6)))[0] @ np.diag(np.geomspace(1, 1e-4, 6)) @ turn for _ in range(2)]
    wanted = rng.normal(size=6)
    parts = [
        (PivotBlock(0, (0,), np.empty((0, 7))), SchurComplement((0,), np.column_stack([b, b @ wanted]))) for b in blocks
    ]
    (traces,), rank_deficient = solve_traces(tree, {tree: [0]}, [6], parts)
    assert not rank_deficient
    assert np.abs(traces[:, 0] - wanted).max() < 1e-11  # 1e4 times rounding; products alone leave 1e-8


def test_ill_conditioned_normal_equations_are_refined_or_replaced() -> None:
    """Condition 1e6 takes several corrections, 1e9 an orthogonal factorisation: both keep the digits there are."""
    rng = np.random.default_rng(9)
    tree = CellNode(np.array([(0.0, 1.0)])).split(0)
    turn = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    wanted = rng.normal(size=6)
    for condition in (1e6, 1e9):
        sizes = np.diag(np.geomspace(1, 1 / condition, 6))
        blocks = [np.linalg.qr(rng.normal(size=(20, 6)))[0] @ sizes @ turn for _ in range(2)]
        parts = [
            (PivotBlock(0, (0,), np.empty((0, 7))), SchurComplement((0,), np.column_stack([b, b @ wanted])))
            for b in blocks
        ]
        (traces,), rank_deficient = solve_traces(tree, {tree: [0]}, [6], parts)
        assert not rank_deficient
        assert np.abs(traces[:, 0] - wanted).max() < 1e-14 * condition  # a hundred roundings


def test_a_long_box_is_split_across_first() -> None:
    """A plane along it would hold the traces of all cells beside it, which are eliminated together."""
    problem = rp.Problem("laplace(u) = 0", rp.Box(x=(0, 32), y=(0, 2)), {"sides": rp.On("boundary", "u = 0")})
    tree = first_tree(problem, 8, 1e-4, CellsTuning(), Interfaces())
    node, axes = tree, []
    while node.children is not None:
        axes.append(node.axis)
        node = node.children[0]
    assert axes == [0, 0, 0, 0, 1]
    assert {tuple(leaf.lengths) for leaf in tree.leaves} == {(2.0, 1.0)}
