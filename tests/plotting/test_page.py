"""The page of a solution: what it holds, that nothing points outside, and that it works in a browser."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import rannpde as rp
from browser import OUT, measured, needs_chromium
from rannpde.errors import InputError
from rannpde.plotting.film import films, still
from rannpde.plotting.page import page
from rannpde.plotting.svg import picture, ticks
from rannpde.plotting.view import Panel, Scale, scale_of
from test_pictures import CASES, HARMONIC, PLATE, solution

HEAT = rp.SpaceTime(t=(0, 1), x=PLATE)
CUBE_IN_TIME = rp.SpaceTime(t=(0, 1), x=[(0, 1)] * 3)


@pytest.fixture(scope="module")
def burgers() -> rp.Solution:
    problem = rp.Problem(
        "u_t + u*u_x = nu*u_xx",
        rp.SpaceTime(t=(0, 1), x=(-1, 1)),
        {"start": rp.On("t=0", "u = -sin(pi*x)"), "walls": rp.On("boundary", "u = 0")},
        parameters={"nu": 0.1},
        name="Burgers <&> friends",
    )
    return rp.solve(problem, tol=1e-4)


@pytest.fixture(scope="module")
def burgers_page(burgers) -> str:
    return page(burgers)


@pytest.fixture
def without_figure(monkeypatch):
    """Pages without the figure of ``plot()``: it takes most of the time, and is drawn for every shape elsewhere."""
    monkeypatch.setattr("rannpde.plotting.page.figure", lambda solution: "")


def film_of(text: str, number: int = 0) -> dict:
    found = re.findall(r'<script type="application/json">(.*?)</script>', text, re.DOTALL)
    return json.loads(found[number].replace("<\\/", "</"))


def test_it_holds_everything_and_points_nowhere(burgers, tmp_path):
    path = burgers.to_html(tmp_path / "new" / "burgers.html", "rannpde solve burgers.toml --tol 1e-4")
    text = path.read_text(encoding="utf-8")
    for words in ("Burgers &lt;&amp;&gt; friends", "Converged", f"{burgers.estimate:.1e}", f"{burgers.seconds:.2f} s",
                  "rannpde solve burgers.toml --tol 1e-4", "numpy", "Residual map", "ν", "0.1", "u = -sin(pi*x)",
                  f"{burgers.history.iterations[-1].difference:.3g}"):  # fmt: skip
        assert words in text, words
    assert "<&>" not in text
    assert not re.findall(r"(?:src|href)=\"(?!#|data:)", text)
    assert "http" not in re.sub(r"http://www.w3.org/\S+", "", text)
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    for target in re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', text):
        assert set(target) - {""} <= set(ids)


def test_the_film_shows_the_solution_at_its_times(burgers, burgers_page):
    film = film_of(burgers_page)
    assert film["labels"][0] == "t = 0"
    assert film["labels"][-1] == "t = 1"
    points = [np.array([pair.split(",") for pair in frame[0].split()], dtype=float) for frame in film["frames"]]
    values = films(burgers, len(points))[0].profiles(burgers.function)[:, :, 0]
    heights = np.array([one[:, 1] for one in points])
    # pixels go down linearly with the values, to the tenth of a pixel that is written
    slope, level = np.polyfit(values.ravel(), heights.ravel(), 1)
    assert slope < 0
    np.testing.assert_allclose(heights, slope * values + level, atol=0.11)


@pytest.mark.parametrize(
    ("made", "names", "panels"),
    [
        (lambda: solution("laplace(u) = 0", PLATE, HARMONIC), [], 2),
        (lambda: solution("u_t = laplace(u)", HEAT, {"u": "x**2 + y**2 + 4*t"}), ["t"], 2),
        (CASES["cube"][0], ["z"], 2),
        (lambda: solution("u_t = laplace(u)", CUBE_IN_TIME, {"u": "x1**2 + 2*t"}), ["t", "x3"], 3),
        (lambda: solution("u_xx = 2", rp.Interval(0, 1), {"u": "x**2"}), [], 2),
        (lambda: solution("laplace(u) = 0", rp.Box(x=[(0, 1)] * 4), {"u": "x1*x2"}), ["x3"], 2),
    ],
    ids=["plane", "plane in time", "solid", "solid in time", "interval", "four dimensions"],
)
@pytest.mark.usefixtures("without_figure")
def test_every_dimension_has_its_films(made, names, panels):
    found = made()
    assert [film.coordinate for film in films(found, 5)] == names
    text = page(found)
    assert text.count('class="film"') == len(names)
    assert text.count("<figure>") == panels
    if names == ["z"]:
        film = film_of(text)
        outlines = {frame[film["targets"].index(["film0-0-clip", "d"])] for frame in film["frames"]}
        assert len(outlines) > 3  # the ball grows and shrinks through the slices: they are cut along the boundary


def test_a_march_that_ended_early_is_shown_up_to_its_end():
    problem = rp.Problem(
        "u_t = u_xx + u**2",
        rp.SpaceTime(t=(0, 1), x=(0, 1)),
        {"start": rp.On("t=0", "u = 50*sin(pi*x)"), "ends": rp.On("boundary", "u = 0")},
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rp.ConvergenceWarning)
        burst = rp.solve(problem, tol=1e-2)
    (film,) = films(burst, 9)
    assert film.positions[-1] == pytest.approx(burst.history.known_until)
    assert np.isfinite(film.profiles(burst.function)[:-1]).all()
    assert "Did not converge" in page(burst)
    snapshots = burst.plot().axes[0].get_lines()
    assert all(np.isfinite(line.get_ydata()).all() for line in snapshots[:-1])


def test_what_is_at_rest_has_no_streamlines():
    """A flow that begins at rest, up to rounding: lines at later times, none at first."""
    equations = {"x": "u_t + p_x = laplace(u)", "y": "v_t + p_y = laplace(v)", "mass": "u_x + v_y = 0"}
    exact = {"u": "(t + 1e-15)*y", "v": "(t + 1e-15)*x", "p": "-x*y"}
    flow = solution(equations, rp.SpaceTime(t=(0, 0.5), x=(0, 1), y=(0, 1)), exact, known=False)
    first, *later = flow.plot().axes[:3]
    assert not first.collections[1:]
    assert all(len(axes.collections) > 1 for axes in later)


@pytest.fixture(scope="module")
def tank() -> rp.Solution:
    times = np.linspace(0.1, 2, 12)
    measured = 0.4 + 0.6 * np.exp(-1.3 * times) + 0.01 * np.random.default_rng(0).standard_normal(12)
    problem = rp.Problem(
        "u_t = -k*u + b",
        rp.Interval(0, 2, name="t"),
        {"start": rp.On("t=0", "u = 1"), "sensors": rp.Data(times[:, None], measured, "u", noise=0.01)},
        unknown={"k": rp.Unknown(guess=1.0), "b": rp.Unknown(guess=0.2)},
    )
    return rp.solve(problem, tol=1e-4)


def test_what_was_found_has_its_interval_and_its_figure_is_open(tank):
    text = page(tank)
    for words in (str(tank.parameters["k"]), "± ", "(95 %)", "misfit", "<details open>", *tank.notes):
        assert words in text, words


def test_a_picture_is_a_palette_with_the_first_row_lowest():
    import base64
    import io

    values = np.array([[0.0, 1.0], [np.nan, 0.5]])
    data = base64.b64decode(picture(values, Scale("viridis", 0.0, 1.0)).partition(",")[2])
    with Image.open(io.BytesIO(data)) as image:
        pixels = np.asarray(image.convert("RGBA"))
    assert pixels[0, 0, 3] == 0  # outside
    assert pixels[1, 0, :3].tolist() == [68, 1, 84]  # viridis begins so
    assert pixels[1, 1, :3].tolist() == [253, 231, 37]  # and ends so


def test_values_of_both_signs_are_white_at_zero():
    panel = Panel("u", lambda points: points[:, 0])
    assert scale_of(np.array([-1.0, 2.0]), panel) == Scale("RdBu_r", -2.0, 2.0)
    assert scale_of(np.array([-0.01, 2.0]), panel) == Scale("viridis", -0.01, 2.0)  # an undershoot
    assert scale_of(np.array([np.nan]), panel) == Scale("viridis", 0.0, 1.0)
    assert ticks(3.0, 3.0) == [3.0]


@pytest.mark.parametrize(("call", "told"), [("to_html", "must end in .html"), ("animate", "must end in .gif")])
def test_wrong_names_of_files_are_refused(burgers, call, told, tmp_path):
    with pytest.raises(InputError, match=told):
        getattr(burgers, call)(tmp_path / "burgers.txt")
    assert list(tmp_path.iterdir()) == []


def test_a_gif_has_its_pictures_and_they_differ(burgers, tmp_path):
    with Image.open(burgers.animate(tmp_path / "new" / "burgers.gif", frames=4, seconds=2)) as image:
        assert image.n_frames == 4
        shown = []
        for number in range(4):
            image.seek(number)
            shown.append(np.asarray(image.convert("L"), dtype=float))
            assert image.info["duration"] == 500
    assert all(np.abs(shown[0] - one).max() > 50 for one in shown[1:])
    with pytest.raises(InputError, match="frames"):
        burgers.animate(tmp_path / "burgers.gif", frames=0)


def test_maps_move_too_and_what_cannot_move_is_refused(tmp_path):
    found = solution("u_t = laplace(u)", HEAT, {"u": "x**2 + y**2 + 4*t"})
    with Image.open(found.animate(tmp_path / "heat.gif", frames=2, seconds=1)) as image:
        assert image.n_frames == 2
    with pytest.raises(InputError, match="nothing moves"):
        solution("laplace(u) = 0", PLATE, HARMONIC).animate(tmp_path / "still.gif")
    assert still(PLATE).coordinate == ""


SLIDE = (
    OUT
    + """
  const film = document.querySelector(".film"), slider = film.querySelector("input");
  const state = () => [...film.querySelectorAll("polyline, image, .now")].map(e =>
    e.getAttribute("points") ?? e.getAttribute("d") ?? e.getAttribute("href")).join("|");
  const shown = [];
  for (const at of [0, Number(slider.max)]) {
    slider.value = at;
    slider.dispatchEvent(new Event("input"));
    shown.push({label: film.querySelector("output").textContent, state: state()});
  }
  const letters = [...document.querySelectorAll("figure text")].map(t => t.getBoundingClientRect())
    .map(box => Math.max(box.width, box.height));  // one of them is turned
  const sticks = (a, b) => a.left < b.left - 1 || a.right > b.right + 1 || a.top < b.top - 1 || a.bottom > b.bottom + 1;
  const cut = [...document.querySelectorAll("figure svg")].flatMap(svg => [...svg.querySelectorAll("text, image")]
    .filter(t => sticks(t.getBoundingClientRect(), svg.getBoundingClientRect())).map(t => t.outerHTML.slice(0, 120)));
  film.scrollIntoView();
  const bar = film.querySelector(".controls").getBoundingClientRect();
  const inView = bar.top >= 0 && bar.bottom <= window.innerHeight + 1;
"""
)


@needs_chromium
def test_in_a_browser_pages_that_do_not_move_fit_a_phone(tank, tmp_path: Path):
    """An identified problem, and a shape."""
    for number, one in enumerate((tank, CASES["polygon"][0]())):
        folder = tmp_path / str(number)
        folder.mkdir()
        found, said = measured(page(one), 390, folder, OUT, "{out, size}")
        assert not re.findall(r".*CONSOLE.*", said), said
        assert found["size"]["scroll"] <= found["size"]["client"], "the page scrolls sideways"
        assert found["out"] == []


@needs_chromium
def test_in_a_browser_pages_of_spectra_and_families_fit_a_phone(tmp_path: Path):
    line, fixed = rp.Interval(0, 1), {"boundary": "u = 0"}
    spectrum = rp.eigen(rp.Problem("-u_xx = lam*u", line, fixed, eigenvalue="lam"), 3)
    family = rp.solve(rp.Problem("-k*u_xx = 1", line, fixed, {"k": rp.Range(1, 2)}), tol=1e-2)
    for name, one, told in (("spectrum", spectrum, "multiplicity"), ("family", family, "k from 1 to 2")):
        text = one.to_html(tmp_path / f"{name}.html", "a command").read_text(encoding="utf-8")
        assert all(part in text for part in ("Converged", told, "<svg", "a command", "viewport"))
        folder = tmp_path / name
        folder.mkdir()
        found, said = measured(text, 390, folder, OUT, "{out, size}")
        assert not re.findall(r".*CONSOLE.*", said), said
        assert found["size"]["scroll"] <= found["size"]["client"], "the page scrolls sideways"
        assert found["out"] == []


@needs_chromium
@pytest.mark.parametrize("width", [390, 1300])
def test_in_a_browser_the_slider_moves_and_nothing_is_cut_off(burgers_page, width, tmp_path: Path):
    result = "{out, size, shown, smallest: Math.min(...letters), cut, inView}"
    found, said = measured(burgers_page, width, tmp_path, SLIDE, result)
    assert not re.findall(r".*CONSOLE.*", said), said
    assert found["size"]["scroll"] <= found["size"]["client"], "the page scrolls sideways"
    assert found["out"] == []
    assert found["cut"] == [], "letters stick out of a panel"
    assert found["inView"], "the slider leaves the window where its pictures begin"
    assert found["smallest"] > 9, "letters too small to read"
    first, last = found["shown"]
    assert (first["label"], last["label"]) == ("t = 0", "t = 1")
    assert first["state"] != last["state"]
