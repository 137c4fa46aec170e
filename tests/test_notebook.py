"""What notebooks show, in a real kernel: one line for each result, pictures, equations, a bar that goes away."""

import json
import pickle
import re

import numpy as np
import pytest

import rannpde as rp
from rannpde.display import html_table
from rannpde.pde.monitor import Progress
from rannpde.progress import Course, bar_html, bar_shown

HEAT = {"t=0": "u = sin(pi*x)", "boundary": "u = 0"}


def heat(**settings):
    return rp.Problem("u_t = k*u_xx", rp.SpaceTime(t=(0, 0.1), x=(0, 1)), HEAT, name="Heat", **settings)


@pytest.fixture(scope="module")
def solution():
    return rp.solve(heat(parameters={"k": 0.5}), tol=1e-4)


@pytest.fixture(scope="module")
def identified():
    x = np.linspace(0.1, 0.9, 9)
    points = np.column_stack([np.full(9, 0.05), x])
    values = np.exp(-0.5 * np.pi**2 * 0.05) * np.sin(np.pi * x) + 1e-3 * np.cos(40 * x)
    problem = rp.Problem(
        "u_t = k*u_xx", rp.SpaceTime(t=(0, 0.1), x=(0, 1)), HEAT | {"sensor": rp.Data(points, values)},
        unknown={"k": rp.Unknown(guess=0.3)},
    )  # fmt: skip
    return rp.solve(problem, tol=1e-4)


def test_results_are_one_line(solution, identified):
    ensemble = rp.Ensemble((solution, solution))
    network = rp.fit(
        rp.FourierFeatures.sample(width=20, dim=1, scale=3.0, rng=0), np.linspace(0, 1, 99)[:, None], np.ones(99)
    )
    layer = rp.RandomFeatures.sample(width=300, dim=2, law=rp.Gaussian(1.0), rng=0)
    for one in (solution, identified, ensemble, network, layer, network.features, solution["u"]):
        line = repr(one)
        assert "\n" not in line
        assert len(line) < 200
    assert repr(solution).startswith("<Solution of u(t, x), 'Heat', by lines: converged, estimated relative error ")
    assert "training error" in repr(network)
    assert "<Identified of u(t, x), by lines" in repr(identified)


def test_spectra_and_continuations_are_one_line_with_a_view():
    ends = {"boundary": "u = 0"}
    spectrum = rp.eigen(rp.Problem("-u_xx = lam*u", rp.Interval(0, 1), ends, eigenvalue="lam"), count=2)
    bratu = rp.Problem("u_xx + lam*exp(u) = 0", rp.Interval(0, 1), ends, parameters={"lam": 0.0})
    branch = rp.continuation(bratu, "lam", 0.1, 4.0, tol=1e-4)
    for found, column in ((spectrum, "multiplicity"), (branch, "fold")):
        assert "\n" not in repr(found)
        assert len(repr(found)) < 200
        shown = found._repr_html_()
        assert "data:image/png;base64," in shown
        assert column in shown
        assert "Converged" in shown
    assert "<td>9.869604401" in spectrum._repr_html_()


def test_views_have_a_picture_a_table_and_the_estimate(solution, identified):
    shown = solution._repr_html_()
    assert "data:image/png;base64," in shown
    assert "relative residual on fresh points" in shown
    assert f"{solution.estimate:.1e}" in shown
    shown = identified._repr_html_()
    assert "<td>k</td>" in shown
    assert "± " in shown
    network = rp.fit(rp.FourierFeatures.sample(width=9, dim=1, scale=3.0, rng=0), np.zeros((9, 1)), np.ones(9))
    assert "training error" in network._repr_html_()
    assert "<img" in rp.Ensemble((solution, solution))._repr_html_()


def test_a_solution_without_its_problem_is_shown_in_words(tmp_path):
    conditions = {"t=0": "u = f(x)", "boundary": "u = 0"}
    given = {"f": lambda x: np.sin(np.pi * x)}
    problem = rp.Problem("u_t = u_xx", rp.SpaceTime(t=(0, 0.1), x=(0, 1)), conditions, functions=given)
    path = rp.solve(problem, tol=1e-3, method=rp.Cells()).save(tmp_path / "own.npz")
    loaded = rp.load(path)
    assert loaded.problem is None
    shown = loaded._repr_html_()
    assert "Converged" in shown
    assert "<img" not in shown
    assert repr(loaded).startswith("<Solution of u, by cells")


@pytest.mark.parametrize(
    ("problem", "parts"),
    [
        (heat(parameters={"k": 0.5}), [r"u_{t} = k\, u_{xx}", r"\text{on t=0}", "k = 0.5", r"t \in (0,\, 0.1)"]),
        (
            rp.Problem("-laplace(u) = 1", rp.Ball((0, 0), 1), {"rim_1": rp.On("boundary", "u = 0")}),
            [r"-\Delta u = 1", r"\text{Ball}"],
        ),
        (rp.zoo("kovasznay"), [r"\\"]),
        (
            rp.Problem("u_t = u_xx", rp.SpaceTime(t=(0, 1), x=(0, 1)), {"t=0": "u = sin(2*pi*x)", "x": "periodic"}),
            [r"\text{all fields periodic in } x"],
        ),
    ],
)
def test_problems_are_mathematics(problem, parts):
    written = problem._repr_latex_()
    assert written.startswith("$$\\begin{aligned}")
    assert written.endswith("\\end{aligned}$$")
    assert written.count("{") == written.count("}")
    for part in parts:
        assert part in written


def test_the_module_shows_its_public_names_only():
    assert set(dir(rp)) == {*rp.__all__, "__version__"}


def test_tables_escape_what_they_are_given():
    assert "<script>" not in html_table([("<script>", "1")], ("<b>",))


def test_time_left_is_that_of_the_iteration_and_of_the_budget():
    course = Course((0.0, 2.0), 1e-6, 60.0)
    assert course.left(Progress(1, 1, 10.0, time=0.0)) == "at most 50 s left"
    assert course.left(Progress(1, 5, 14.0, time=1.0)) == "about 4.0 s left of this iteration, at most 46 s left"
    assert course.fraction(Progress(1, 5, 14.0, time=1.0)) == 0.5
    assert Course(None, 1e-6, None).fraction(Progress(1, 1, 1.0, estimate=1e-3)) == pytest.approx(0.5)
    assert Course(None, 1e-6, None).fraction(Progress(1, 1, 1.0)) is None
    assert Course(None, 1e-6, None).left(Progress(1, 1, 1.0)) == ""
    assert 'value="1.000"' in bar_html(1.0, "<t>", "soon")
    assert "&lt;t&gt;" in bar_html(1.0, "<t>", "soon")


def test_progress_is_lines_where_there_is_no_terminal(capsys):
    rp.solve(heat(parameters={"k": 0.5}), tol=1e-3, progress=True)
    said = capsys.readouterr()
    assert said.out == ""
    assert re.search(r"iteration \d+, \d+ features, .*estimate", said.err)
    rp.solve(heat(parameters={"k": 0.5}), tol=1e-3)
    assert capsys.readouterr().err == ""
    with pytest.raises(rp.InputError, match="progress is 3"):
        rp.solve(heat(parameters={"k": 0.5}), progress=3)


def test_a_terminal_has_a_bar(monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    with bar_shown(True, Course((0.0, 1.0), 1e-6, 5.0)) as listener:
        assert listener is not None
        listener(Progress(1, 3, 0.1, time=0.5, width=10, counted="cells"))
    with bar_shown(False, Course(None, 1e-6, None)) as listener:
        assert listener is None


def test_cells_are_called_cells():
    told = []
    problem = rp.Problem("-laplace(u) = 1", rp.Box(x=(0, 1), y=(0, 1)), {"boundary": "u = 0"})
    rp.solve(problem, tol=1e-3, method="cells", progress=lambda now: told.append(str(now)))
    assert all(" cells" in line and "features" not in line for line in told)


NOTEBOOK = [
    "import rannpde as rp",
    "problem = rp.Problem('u_t = u_xx', rp.SpaceTime(t=(0, 0.1), x=(0, 1)), "
    "{'t=0': 'u = sin(pi*x)', 'boundary': 'u = 0'})\nproblem",
    "solution = rp.solve(problem, tol=1e-4, progress=True)\nsolution",
    "solution(t=0.05, x=0.5)",
    # a clock that runs fast: the bar appears after two seconds without being asked for
    "import rannpde.progress as p\np.NOTEBOOK_DELAY = 0.0\nsolution = rp.solve(problem, tol=1e-4)",
    "quiet = rp.solve(problem, tol=1e-4, progress=False)",
    "print(dir(rp)[:2])",
]


def test_a_real_kernel_shows_all_of_this():
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in NOTEBOOK])
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    outputs = [cell["outputs"] for cell in notebook.cells]
    latex = outputs[1][0]["data"]["text/latex"]
    assert "u_{t} = u_{xx}" in latex
    bar, shown = outputs[2]
    assert bar["data"]["text/html"] == ""  # the bar is gone at the end
    assert "data:image/png;base64," in shown["data"]["text/html"]
    assert shown["data"]["text/plain"].startswith("<Solution of u(t, x), by lines: converged")
    assert outputs[3][0]["data"]["text/plain"].startswith("np.float64(0.6")
    assert [one["data"]["text/html"] for one in outputs[4]] == [""]  # one bar, removed
    assert outputs[5] == []
    assert len(json.dumps(notebook)) < 10**6


def test_objects_survive_a_pickle_of_their_own(solution):
    assert pickle.loads(pickle.dumps(solution))(0.05, 0.5) == solution(0.05, 0.5)
