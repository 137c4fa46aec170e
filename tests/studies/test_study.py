"""Studies as data: keys, streams, cells, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rannpde.errors import InputError
from rannpde.studies.cell import relative_errors, run_cell, training_points
from rannpde.studies.formula import Formula
from rannpde.studies.layer import Layer
from rannpde.studies.problems import GaussianBump, NavierStokes, PorousMedium, Problem
from rannpde.studies.study import Curve, Sampling, Study, describe

SMALL = Sampling(points_per_width=10, test_points=500)
PROBLEMS: list[Problem] = [
    PorousMedium(1),
    PorousMedium(4),
    PorousMedium(2, inside=0.8),
    NavierStokes(),
    GaussianBump(3),
    Formula("sin(pi*x1) * exp(-t)"),
]


def tiny(**changes: object) -> Study:
    base = Study("tiny", PorousMedium(1), Layer(scale=5.0), widths=(8, 16), seeds=(0, 1), sampling=SMALL)
    return replace(base, **changes)


def test_cells_are_the_product_of_curves_widths_and_seeds() -> None:
    study = tiny(curves=(Curve("a"), Curve("b", penalty=1e-8, widths=(4, 8, 16))))
    assert [(c.curve, c.width, c.seed) for c in study.cells_of(study.curves[1], (1,))] == [
        ("b", 4, 1),
        ("b", 8, 1),
        ("b", 16, 1),
    ]
    assert len(study.cells) == 2 * (2 + 3)
    assert len({cell.key for cell in study.cells}) == len(study.cells)


def changed_cells() -> list[Study]:
    return [
        tiny(),
        tiny(penalty=1e-6),
        tiny(penalty="gcv"),
        tiny(name="other"),
        tiny(features=Layer(scale=6.0)),
        tiny(features=Layer("tanh", scale=5.0)),
        tiny(features=Layer(law="uniform", scale=5.0)),
        tiny(sampling=replace(SMALL, points_per_width=11)),
        tiny(sampling=replace(SMALL, fixed_test=True)),
        tiny(problem=PorousMedium(2)),
        tiny(problem=PorousMedium(1, radius=0.31)),
        tiny(problem=PorousMedium(1, inside=0.5)),
        tiny(problem=GaussianBump(1)),
        tiny(problem=NavierStokes()),
    ]


def test_every_parameter_is_part_of_the_key_and_names_are_not() -> None:
    keys = [study.cells[0].key for study in changed_cells()]
    assert len(set(keys)) == len(keys)
    assert tiny(title="another title", curves=(Curve("another label"),)).cells[0].key == keys[0]
    assert tiny(features=Layer(scale=5)).cells[0].key == keys[0]


def test_the_key_is_stable_between_releases() -> None:
    """Records of earlier runs are found by it: if this changes, PROTOCOL must be raised."""
    assert tiny().cells[0].key == "e263f34f2ed6b62261c11651f2c26aa4e288db476d91c49ba2fe59e6860d6774"


def test_streams_do_not_depend_on_penalty_or_scale_but_on_seed_width_and_dimension() -> None:
    def draw(study: Study, purpose: str, number: int = 0) -> float:
        return float(study.cells[number].stream(purpose).random())

    base = draw(tiny(), "points")
    assert draw(tiny(penalty=1e-9, features=Layer(scale=1.0)), "points") == base
    others = [draw(tiny(), "points", 1), draw(tiny(), "points", 2), draw(tiny(problem=PorousMedium(2)), "points")]
    others += [draw(tiny(), purpose) for purpose in ("features", "split", "test")]
    assert len({base, *others}) == 7
    fixed = tiny(sampling=replace(SMALL, fixed_test=True))
    assert len({draw(fixed, "test", number) for number in range(4)}) == 1


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: f"{type(p).__name__}-{p.space_dim}")
def test_problems_draw_in_their_box_and_give_finite_values(problem: Problem) -> None:
    rng = np.random.default_rng(0)
    uniform, focused = problem.uniform(2000, rng), problem.focused(2000, rng)
    low, high = problem.bounds.T
    assert uniform.shape == focused.shape == (2000, 1 + problem.space_dim)
    assert ((uniform >= low) & (uniform <= high)).all()
    assert uniform[:, 0].mean() == pytest.approx(
        0.5 * (low[0] + high[0]), abs=5 * (high[0] - low[0]) / np.sqrt(12 * 2000)
    )
    values = problem.values(uniform).reshape(2000, -1)
    assert values.shape[1] == len(problem.fields)
    assert np.isfinite(values).all()
    assert describe(problem)["kind"] == type(problem).__name__


def test_focused_points_of_the_porous_medium_lie_in_the_box_and_of_the_wave_follow_the_shock() -> None:
    points = PorousMedium(3).focused(1000, np.random.default_rng(0))[:, 1:]
    assert points.min() >= 0.2
    assert points.max() <= 0.8
    problem = NavierStokes()
    points = problem.focused(20_000, np.random.default_rng(0))
    offset = points[:, 1] - problem.wave.speed * points[:, 0]
    # false-alarm probability below 1e-5 each: 4.5 standard errors
    assert abs(offset.mean()) < 4.5 / np.sqrt(20_000)
    assert offset.std() == pytest.approx(1.0, abs=4.5 / np.sqrt(40_000))


@pytest.mark.parametrize("d", [1, 3])
def test_the_compact_set_lies_inside_the_support_and_is_filled_uniformly(d: int) -> None:
    problem = PorousMedium(d, inside=0.8)
    points = problem.uniform(20_000, np.random.default_rng(1))
    assert problem.exact.inside(points).all()
    share = np.linalg.norm(points[:, 1:] - 0.5, axis=1) / (0.8 * 0.3)
    assert share.max() <= 1 + 1e-12
    # |x|^d is uniform on (0, 1) for uniform points of a ball
    assert (share**d).mean() == pytest.approx(0.5, abs=4.5 / np.sqrt(12 * 20_000))


def test_training_points_are_half_focused() -> None:
    cell = tiny(problem=PorousMedium(2), widths=(100,)).cells[0]
    points = training_points(cell)
    assert points.shape == (1000, 3)
    box = ((points[500:, 1:] >= 0.2) & (points[500:, 1:] <= 0.8)).all()
    assert box
    assert not ((points[:500, 1:] >= 0.2) & (points[:500, 1:] <= 0.8)).all(axis=1).all()


@pytest.mark.parametrize("law", ["gaussian", "uniform", "heavy-tailed"])
@pytest.mark.parametrize("activation", ["fourier", "tanh", "sigmoid"])
def test_every_layer_fits_a_smooth_function(law: str, activation: str) -> None:
    layer = Layer(activation, law, scale=2.0, scaled=True)
    study = tiny(problem=GaussianBump(1), features=layer, widths=(64,), seeds=(0,), penalty=1e-9)
    result = run_cell(study.cells[0])
    assert result.columns == layer.columns(64)
    assert result.error < 0.01


def test_errors_are_relative_and_of_each_field() -> None:
    exact = np.array([[3.0, 0.0], [0.0, 4.0]])
    total, each = relative_errors(exact + np.array([[0.3, 0.0], [0.0, 0.0]]), exact)
    assert total == pytest.approx(0.3 / 5)
    assert each == pytest.approx([0.1, 0.0])


def test_automatic_penalties_are_recorded_and_do_not_harm() -> None:
    study = tiny(
        widths=(64,),
        seeds=(0,),
        curves=(Curve("fixed", penalty=1.0), Curve("gcv", penalty="gcv"), Curve("h", penalty="held-out")),
    )
    fixed, gcv, held = (run_cell(cell) for cell in study.cells)
    assert gcv.error < fixed.error
    assert held.error < fixed.error
    assert 0 < gcv.penalty < 1
    assert held.validation_error is not None
    assert held.validation_error == pytest.approx(held.error, rel=0.7)


@settings(max_examples=20, deadline=None)
@given(st.floats(-2, 2), st.floats(0.1, 2))
def test_formulas_are_what_they_say(a: float, b: float) -> None:
    points = np.array([[a, b], [b, a]])
    got = Formula(f"{a!r} * sin(pi * t)**2 - x1 / ({b!r}) + maximum(t, -x1)", low=(-3, -3), high=(3, 3)).values(points)
    t, x = points.T
    assert np.allclose(got, a * np.sin(np.pi * t) ** 2 - x / b + np.maximum(t, -x), rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("__import__('os').system('true')", "has no meaning"),
        ("system(t)", "'system' is no function"),
        ("t.real", "has no meaning"),
        ("y + 1", "'y' is unknown.*known: .*x1"),
        ("sine(t)", "did you mean 'sin'"),
        ("sin(t", r"expected '\)'"),
        ("sin(t, t)", "takes 1, but has 2"),
        ("maximum(t)", "takes 2, but has 1"),
        ("[t, x1]", "list has no value"),
        ("t = x1", "one side only"),
        ("1/0*t", "finite"),
        ("(" * 500 + "t" + ")" * 500, "nested deeper"),
        ("t" * 6000, "characters"),
        (3, "must be text"),
    ],
)
def test_formulas_that_are_none_are_refused(expression: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Formula(expression)


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"widths": ()}, "widths"),
        ({"widths": (0,)}, "entry of widths"),
        ({"widths": (8, 8)}, "widths"),
        ({"widths": "8"}, "widths"),
        ({"widths": (8.5,)}, "widths"),
        ({"seeds": ()}, "seeds"),
        ({"seeds": (-1,)}, "seeds"),
        ({"name": "../up"}, "name"),
        ({"name": ""}, "name"),
        ({"penalty": -1.0}, "penalty"),
        ({"penalty": "best"}, "'gcv' or 'held-out'"),
        ({"problem": object()}, "problem"),
        ({"curves": (Curve("a"), Curve("a"))}, "labels"),
    ],
)
def test_wrong_studies_are_refused_by_name(changes: dict, name: str) -> None:
    with pytest.raises(InputError, match=name):
        tiny(**changes)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Layer("relux"),
        lambda: Layer(law="cauchy"),
        lambda: Layer(scale=0.0),
        lambda: Sampling(points_per_width=0),
        lambda: Sampling(focus=1.5),
        lambda: PorousMedium(0),
        lambda: PorousMedium(1, inside=1.0),
        lambda: PorousMedium(1, exponent=1.0),
        lambda: PorousMedium(1, start=0.0),
        lambda: NavierStokes(duration=-1.0),
        lambda: GaussianBump(1, breadth=0.0),
        lambda: Formula("t", low=(1, 1), high=(0, 0)),
        lambda: Formula("t", low=(0, 0, 0)),
        lambda: Curve(""),
        lambda: describe(np.zeros(3)),
    ],
)
def test_wrong_parts_are_refused(make) -> None:
    with pytest.raises(InputError):
        make()
