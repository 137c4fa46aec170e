"""Pictures and VTK files of solutions on shapes: what is drawn, where it ends, and what the files hold."""

import re
from dataclasses import dataclass

import meshio
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

import rannpde as rp
from draws import some
from helpers import inked
from rannpde.domains.shapes.meshes import library
from rannpde.errors import InputError
from rannpde.pde.monitor import Status
from rannpde.pde.solution import Choice, Solution
from rannpde.plotting.view import View

PLATE = rp.Box(x=(0, 4), y=(0, 2)) - rp.Box(x=(0, 2), y=(1, 2)) - rp.Ball((3, 1), 0.2, name="hole")
CUBE = rp.Box(x=(0, 1), y=(0, 1), z=(0, 1)) - rp.Ball((0.5, 0.5, 0.5), 0.3, ("x", "y", "z"))
WING = rp.Polygon([(0, 0), (2, 0), (2.4, 1), (1.2, 0.7), (0.6, 1.6)], names=("x", "y"))


@dataclass(frozen=True)
class Known:
    """The exact solution as what a method found; a value outside of the domain is an error."""

    problem: rp.Problem
    widths: tuple[int, ...] = (1,)

    @property
    def dim(self):
        return self.problem.domain.dim

    def __call__(self, points):
        return self.derivative(points, (0,) * self.dim)

    def derivative(self, points, derivative):
        # points of polygons along a curve lie off it by a part of their gap squared, those of a section likewise
        space = self.problem.domain.space if isinstance(self.problem.domain, rp.SpaceTime) else self.problem.domain
        assert (space.level(points[:, -space.dim :]) < 1e-5).all()
        return self.problem.exact_solution.derivative(points, derivative)


class Nothing:
    advice = ""

    def lines(self):
        return []

    def to_table(self):
        return {}


def solution(equations, domain, exact, known=True, **more):
    """A Solution that is exact; ``known`` says whether the problem may tell."""
    fields = tuple(exact)
    conditions = {name: rp.On("boundary", f"{name} = {formula}") for name, formula in exact.items()}
    if isinstance(domain, rp.SpaceTime):
        conditions |= {f"start {name}": rp.On("t=0", f"{name} = {formula}") for name, formula in exact.items()}
    problem = rp.Problem(equations, domain, conditions, fields=fields, exact=exact, **more)
    stated = problem if known else rp.Problem(equations, domain, conditions, fields=fields, **more)
    none = {}
    return Solution(
        stated, fields, Known(problem), Choice("known", "known", "a test"), Status.CONVERGED, "", 0.0,
        none, none, none, Nothing(), 0.0,
    )  # fmt: skip


HARMONIC = {"u": "x**2 - y**2"}
FLOW = (
    {"x": "laplace(u) = p_x", "y": "laplace(v) = p_y", "mass": "u_x + v_y = 0"},
    {"u": "y**2", "v": "0*x", "p": "2*x"},
)
SHEAR = ({"x": "u_xx + 0.35*u_yy + 0.65*v_xy = 0", "y": "v_yy + 0.35*v_xx + 0.65*u_xy = 0"}, {"u": "y", "v": "x"})
CASES = {
    "plate": (lambda: solution("laplace(u) = 0", PLATE, HARMONIC), 2),
    "polygon": (lambda: solution("laplace(u) = 0", WING, HARMONIC), 2),
    "residual": (lambda: solution("laplace(u) = 0", WING, HARMONIC, known=False), 2),
    "flow": (lambda: solution(FLOW[0], PLATE, FLOW[1]), 7),
    "displacements": (lambda: solution(SHEAR[0], PLATE, SHEAR[1]), 5),
    "cube": (lambda: solution("laplace(u) = 0", CUBE, HARMONIC), 6),
    "time": (lambda: solution("u_t = laplace(u)", rp.SpaceTime(t=(0, 1), x=PLATE), {"u": "x**2 + y**2 + 4*t"}), 6),
}


@pytest.mark.parametrize(("made", "panels"), some(CASES.values(), 2), ids=some(CASES, 2))
def test_every_shape_has_its_picture(made, panels, tmp_path):
    figure = made().plot(tmp_path / "picture.png")
    assert min(inked(figure, tmp_path / "picture.png")) > 0.01
    assert len([axes for axes in figure.axes if axes.get_title()]) == panels  # the others are scales of colours


def test_nothing_sticks_out_of_a_figure_with_a_long_heading():
    """Panels of equal scales under two lines: at the first drawing, which is the one that is saved."""
    square = rp.SpaceTime(t=(0, 1), x=(0, 1), y=(0, 1))
    figure = solution("u_t = laplace(u)", square, {"u": "x**2 + y**2 + 4*t"}, known=False).plot()
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    width, height = figure.get_size_inches() * figure.dpi
    box = figure.get_tightbbox(canvas.get_renderer()).transformed(figure.dpi_scale_trans)
    assert box.x0 > 3
    assert box.y0 > 3
    assert box.x1 < width - 3
    assert box.y1 < height - 3


def test_vectors_are_drawn_as_what_they_are():
    """Streamlines where the divergence vanishes, deformed shapes for displacements (test_deformed), nothing else."""
    for case, drawn in (("flow", "LineCollection"), ("displacements", None), ("plate", None)):
        first = CASES[case][0]().plot().axes[0]
        kinds = {type(artist).__name__ for artist in first.get_children()}
        assert kinds & {"LineCollection", "Quiver"} == ({drawn} if drawn else set())
    assert CASES["flow"][0]().vector == ("u", "v")
    pair = {"u": "x", "v": "y"}
    assert solution({"a": "laplace(u) = u - x", "b": "laplace(v) = v - y"}, PLATE, pair).vector == ()


def test_colours_end_at_the_boundary():
    """The colours are cut along the outline itself, and reach it: every point of it has a known value nearby."""
    view = View.of(PLATE, (0, 1))
    values = view.evaluate(lambda points: points[:, 0])
    cell = np.hypot(view.across[1] - view.across[0], view.up[1] - view.up[0])
    shown = np.isfinite(values.ravel())
    assert shown[PLATE.level(view.points) < -1e-6].all()  # on faces where the notch meets the rim nothing is known
    for loop in view.loops:
        corner = np.stack(np.meshgrid(view.across, view.up), axis=2).reshape(-1, 2)
        near = np.linalg.norm(corner[:, None] - loop[::20], axis=2) <= cell
        assert shown[near.any(axis=1)].all()
    first = CASES["plate"][0]().plot().axes[0]
    path, _ = first.collections[0].get_clip_path().get_transformed_path_and_affine()
    assert path is not None
    assert len(view.loops) == 2


def test_where_faces_of_a_shape_and_of_what_was_taken_away_meet_nothing_is_drawn():
    """The lower right corner of an L: the faces y = -1 of both boxes meet there, and the solution is not known."""
    ell = rp.Box(x=(-1, 1), y=(-1, 1)) - rp.Box(x=(0, 1), y=(-1, 0))
    view = View.of(ell, (0, 1))
    assert not view.inside[(view.points[:, 0] > 0.1) & (view.points[:, 1] < -0.1)].any()
    assert view.inside[(view.points[:, 0] < -0.1) & (view.points[:, 1] == -1)].all()


def test_a_section_shows_the_boundary_where_it_is():
    """The plane z = ½ cuts a circle of radius 0.3 out of a square; y = 0.5 of a torus two circles."""
    view = View.of(CUBE, (0, 1))
    circle = min(view.loops, key=len)
    np.testing.assert_allclose(np.linalg.norm(circle - 0.5, axis=1), 0.3, rtol=1e-9)


def test_the_first_plane_of_an_ensemble_on_a_shape(tmp_path):
    one = CASES["time"][0]()
    figure = rp.Ensemble((one, one)).plot(tmp_path / "spread.png")
    assert min(inked(figure, tmp_path / "spread.png")) > 0.01


# ------------------------------------------------------------------------------------------------------ VTK


def test_a_plate_as_triangles(tmp_path):
    found = CASES["plate"][0]()
    path = found.to_vtk(tmp_path / "new" / "u.vtu", 40)
    read = meshio.read(path)
    points, triangles = read.points[:, :2], read.cells_dict["triangle"]
    np.testing.assert_array_equal(read.points[:, 2], 0)
    np.testing.assert_allclose(read.point_data["u"], points[:, 0] ** 2 - points[:, 1] ** 2, atol=1e-14)
    edges = points[triangles][:, 1:] - points[triangles][:, :1]
    areas = 0.5 * (edges[:, 0, 0] * edges[:, 1, 1] - edges[:, 0, 1] * edges[:, 1, 0])
    assert (areas > 0).all()
    assert areas.sum() == pytest.approx(PLATE.volume, rel=1e-3)  # h²: the hole as a polygon
    on_hole = np.abs(np.linalg.norm(points - (3, 1), axis=1) - 0.2) < 1e-12
    assert on_hole.sum() >= 12
    assert list(tmp_path.glob("**/.*")) == []  # nothing half-written is left


def test_vectors_in_files_have_three_components(tmp_path):
    read = meshio.read(CASES["flow"][0]().to_vtk(tmp_path / "flow.vtu", 12))
    assert set(read.point_data) == {"u", "v", "p", "(u, v)"}
    np.testing.assert_allclose(
        read.point_data["(u, v)"], np.stack([read.points[:, 1] ** 2, *[0 * read.points[:, 0]] * 2], 1)
    )


def test_a_cube_as_tetrahedra(tmp_path):
    read = meshio.read(CASES["cube"][0]().to_vtk(tmp_path / "u.vtu", 10))
    assert len(read.cells_dict["tetra"]) > 1000
    np.testing.assert_allclose(read.point_data["u"], read.points[:, 0] ** 2 - read.points[:, 1] ** 2, atol=1e-14)


def test_a_series_over_time(tmp_path):
    found = CASES["time"][0]()
    path = found.to_vtk(tmp_path / "u.vtu", 10, times=[0, 0.25, 1])
    assert path == tmp_path / "u.pvd"
    listed = re.findall(r'timestep="([^"]+)" part="0" file="([^"]+)"', path.read_text())
    assert [float(time) for time, _ in listed] == [0, 0.25, 1]
    for time, name in listed:
        read = meshio.read(tmp_path / name)
        np.testing.assert_allclose(read.point_data["u"], (read.points**2).sum(axis=1) + 4 * float(time), rtol=1e-12)
    assert len(re.findall("DataSet", found.to_vtk(tmp_path / "all.vtu", 6).read_text())) == 11


BAD = {
    "name": (lambda s, f: s.to_vtk(f / "u.vtk"), r"ends in \.vtu"),
    "resolution": (lambda s, f: s.to_vtk(f / "u.vtu", 10**6), "from 2 to"),
    "times without time": (lambda s, f: s.to_vtk(f / "u.vtu", times=[0]), "left out"),
}


@pytest.mark.parametrize(("call", "message"), BAD.values(), ids=BAD.keys())
def test_bad_files_are_refused(call, message, tmp_path):
    with pytest.raises(InputError, match=message):
        call(CASES["plate"][0](), tmp_path)


def test_times_outside_and_one_dimension_are_refused(tmp_path):
    with pytest.raises(InputError, match="from 0 to 1"):
        CASES["time"][0]().to_vtk(tmp_path / "u.vtu", 6, times=[2.0])
    with pytest.raises(InputError, match="one or more"):
        CASES["time"][0]().to_vtk(tmp_path / "u.vtu", 6, times=[])
    line = solution("u_xx = 0", rp.Interval(0, 1), {"u": "x"})
    with pytest.raises(InputError, match="to_arrays"):
        line.to_vtk(tmp_path / "u.vtu")


def test_a_missing_library_names_the_extra():
    with pytest.raises(InputError, match=r"writing VTK files needs no_such_module; pip install 'rannpde\[geometry\]'"):
        library("no_such_module", "writing VTK files")


def test_arrays_are_nan_outside():
    arrays = CASES["plate"][0]().to_arrays(33)
    points = np.stack(np.meshgrid(arrays["x"], arrays["y"], indexing="ij"), axis=2).reshape(-1, 2)
    np.testing.assert_array_equal(np.isfinite(arrays["u"].ravel()), PLATE.contains(points))
