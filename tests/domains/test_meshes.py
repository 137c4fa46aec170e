"""Meshes from files that the tests write: volumes, sides from physical groups, what is refused."""

import builtins
from itertools import pairwise

import numpy as np
import pytest

from rannpde.domains import Box, integrate
from rannpde.domains.shapes.distance import Facets
from rannpde.domains.shapes.meshes import mesh
from rannpde.errors import FileError, InputError

CORNERS = np.array([(x, y, z) for x in (0.0, 2.0) for y in (0.0, 1.0) for z in (0.0, 1.0)])
FACES = np.array([
    (0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1),
    (2, 3, 7), (2, 7, 6), (0, 2, 6), (0, 6, 4), (1, 5, 7), (1, 7, 3),
])  # fmt: skip
"""A box 2 × 1 × 1 as twelve triangles, outward."""


def write_stl(path, corners, faces):
    lines = ["solid part"]
    for face in faces:
        lines += ["facet normal 0 0 0", "outer loop"]
        lines += ["vertex " + " ".join(f"{v:.17g}" for v in corners[k]) for k in face]
        lines += ["endloop", "endfacet"]
    path.write_text("\n".join([*lines, "endsolid part", ""]))
    return path


def write_msh(path, points, groups, blocks):
    """gmsh's text format 2.2; groups: (dimension, tag, name); blocks: (type, tag, cells counted from 0)."""
    cells = [(kind, tag, cell) for kind, tag, rows in blocks for cell in rows]
    lines = ["$MeshFormat", "2.2 0 8", "$EndMeshFormat", "$PhysicalNames", str(len(groups))]
    lines += [f'{dim} {tag} "{name}"' for dim, tag, name in groups]
    lines += ["$EndPhysicalNames", "$Nodes", str(len(points))]
    lines += [f"{k} " + " ".join(f"{v:.17g}" for v in p) for k, p in enumerate(points, start=1)]
    lines += ["$EndNodes", "$Elements", str(len(cells))]
    for k, (kind, tag, cell) in enumerate(cells, start=1):
        lines.append(f"{k} {kind} 2 {tag} {tag} " + " ".join(str(c + 1) for c in cell))
    path.write_text("\n".join([*lines, "$EndElements", ""]))
    return path


@pytest.fixture
def part(tmp_path):
    return write_stl(tmp_path / "part.stl", CORNERS, FACES)


@pytest.fixture
def plate(tmp_path):
    """The square [0, 3]² without [1, 2]², as eight quadrangles cut in two each."""
    number = {(i, j): 4 * i + j for i in range(4) for j in range(4)}
    points = [(float(i), float(j), 0.0) for i in range(4) for j in range(4)]
    cells = [(i, j) for i in range(3) for j in range(3) if (i, j) != (1, 1)]
    triangles = []
    for i, j in cells:
        a, b, c, d = number[i, j], number[i + 1, j], number[i + 1, j + 1], number[i, j + 1]
        triangles += [(a, b, c), (c, d, a)]
    ring = [(1, 1), (2, 1), (2, 2), (1, 2), (1, 1)]
    hole = [(number[p], number[q]) for p, q in pairwise(ring)]
    inlet = [(number[0, j], number[0, j + 1]) for j in range(3)]
    groups = [(1, 1, "hole"), (1, 2, "inlet"), (2, 3, "metal")]
    return write_msh(tmp_path / "plate.msh", points, groups, [(1, 1, hole), (1, 2, inlet), (2, 3, triangles)])


def test_a_closed_surface_is_a_solid(part):
    domain = mesh(part, names=("x", "y", "z"), name="part")
    box = Box(x=(0, 2), y=(0, 1), z=(0, 1))
    assert domain.volume == pytest.approx(2, rel=1e-13)
    assert domain.side("part").measure == pytest.approx(10, rel=1e-13)
    points = np.random.default_rng(0).uniform(-0.5, 2.5, (500, 3))
    np.testing.assert_allclose(domain.level(points), box.level(points), atol=1e-12)
    surface = domain.side("part").sample(200, rng=0)
    normals = domain.side("part").normals(surface)
    assert domain.side("part").contains(surface).all()
    assert not domain.contains(surface + 1e-6 * normals).any()
    assert domain.contains(domain.sample(100, rng=1)).all()
    near = domain.side("part").within([(1.99, 2.01), (0.4, 0.6), (0.4, 0.6)], 20, rng=0)
    assert near.shape == (20, 3)
    np.testing.assert_allclose(near[:, 0], 2, atol=1e-12)
    # four standard errors: odds 0.0012 for this fixed seed (Student's t, 15 degrees of freedom)
    moment = integrate(lambda p: p[:, 0], domain, rng=0)
    assert abs(float(moment) - 2) < 4 * moment.error
    assert domain == mesh(part, names=("x", "y", "z"), name="part")


def test_distances_and_sides_of_many_triangles_are_exact():
    """Of a unit cube with 2 · 7² triangles a face: the level is that of the box, the nearest lie in its faces."""
    count, triangles = 7, []
    step = np.arange(count) / count
    for axis in range(3):
        first, second = (axis + 1) % 3, (axis + 2) % 3
        for end in (0.0, 1.0):
            for u in step:
                for v in step:
                    square = np.zeros((4, 3))
                    square[:, axis] = end
                    square[:, first] = u + np.array([0, 1, 1, 0]) / count
                    square[:, second] = v + np.array([0, 0, 1, 1]) / count
                    square = square if end else square[::-1]
                    triangles += [square[[0, 1, 2]], square[[0, 2, 3]]]
    facets = Facets.of(np.array(triangles))
    points = np.random.default_rng(0).uniform(-0.5, 1.5, (3000, 3))
    aside = np.abs(points - 0.5) - 0.5
    outside = (aside > 0).any(axis=1)
    expected = np.where(outside, np.linalg.norm(np.maximum(aside, 0), axis=1), -aside.max(axis=1))
    distance, number = facets.nearest(points)
    assert np.allclose(distance, expected, atol=1e-14)
    assert ((facets.winding(points) > 0.5) == ~outside).all()
    inner = points[~outside]
    faces = np.array(triangles)[number[~outside]]
    plane = np.abs(inner - 0.5).argmax(axis=1)
    assert np.ptp(faces[np.arange(len(inner)), :, plane], axis=1).max() == 0


def test_turned_triangles_are_turned_back(tmp_path):
    assert mesh(write_stl(tmp_path / "in.stl", CORNERS, FACES[:, ::-1])).volume == pytest.approx(2, rel=1e-13)


def test_a_solid_inside_a_box_is_a_hole(part):
    domain = Box(x=(-1, 3), y=(-1, 2), z=(-1, 2)) - mesh(part, name="part")
    assert domain.volume == pytest.approx(36 - 2, rel=1e-12)
    points = domain.side("part").sample(50, rng=0)
    assert not domain.contains(points + 1e-6 * domain.side("part").normals(points)).any()


def test_groups_of_a_plate_name_its_sides(plate):
    domain = mesh(plate, names=("x", "y"))
    assert domain.volume == pytest.approx(8, rel=1e-13)
    assert {name: round(side.measure, 12) for name, side in domain.sides.items()} == {"hole": 4, "inlet": 3, "rest": 9}
    points = domain.side("hole").sample(40, rng=0)
    assert not domain.contains(points + 1e-6 * domain.side("hole").normals(points)).any()
    assert len(domain.corners) == 4
    assert float(integrate(lambda p: p[:, 0], domain)) == pytest.approx(12, rel=1e-13)


def test_tetrahedra_have_their_boundary(tmp_path):
    points = [(0.0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 1)]
    cells, floor = [(0, 1, 2, 3), (1, 2, 3, 4)], [(0, 2, 1)]
    path = write_msh(tmp_path / "t.msh", points, [(2, 1, "floor"), (3, 2, "body")], [(2, 1, floor), (4, 2, cells)])
    domain = mesh(path)
    assert domain.volume == pytest.approx(1 / 6 + 1 / 3, rel=1e-13)
    assert domain.side("floor").measure == pytest.approx(0.5, rel=1e-13)
    assert set(domain.sides) == {"floor", "rest"}


def test_bad_files_are_refused(tmp_path, part):
    with pytest.raises(InputError, match="not closed"):
        mesh(write_stl(tmp_path / "open.stl", CORNERS, FACES[:-1]))
    with pytest.raises(FileError, match="does not exist"):
        mesh(tmp_path / "none.stl")
    with pytest.raises(InputError, match="of one of the kinds"):
        mesh(part.rename(tmp_path / "part.txt"))
    (tmp_path / "bad.msh").write_text("not a mesh")
    with pytest.raises(FileError, match="cannot be read"):
        mesh(tmp_path / "bad.msh")


def test_without_the_extra_the_error_names_it(part, monkeypatch):
    real = builtins.__import__

    def no_trimesh(name, *rest, **options):
        if name.startswith("trimesh"):
            raise ImportError(name)
        return real(name, *rest, **options)

    monkeypatch.setattr("rannpde.domains.shapes.meshes.import_module", lambda name: no_trimesh(name))
    with pytest.raises(InputError, match=r"rannpde\[geometry\]"):
        mesh(part)
