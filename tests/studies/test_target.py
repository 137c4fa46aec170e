"""Targets: where they draw, what they are, and formulas in the language of equations."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rannpde.errors import InputError
from rannpde.studies.cell import as_data
from rannpde.studies.target import GaussianBump, NavierStokes, PorousMedium, SmoothBump, Target, WrittenFunction

TARGETS: list[Target] = [
    PorousMedium(1),
    PorousMedium(4),
    PorousMedium(2, inside=0.8),
    NavierStokes(),
    GaussianBump(3),
    SmoothBump(2),
    WrittenFunction("sin(pi*x1) * exp(-t)"),
]


@pytest.mark.parametrize("target", TARGETS, ids=lambda p: f"{type(p).__name__}-{p.space_dim}")
def test_targets_draw_in_their_box_and_give_finite_values(target: Target) -> None:
    rng = np.random.default_rng(0)
    uniform, focused = target.uniform(2000, rng), target.focused(2000, rng)
    low, high = target.bounds.T
    assert uniform.shape == focused.shape == (2000, 1 + target.space_dim)
    assert ((uniform >= low) & (uniform <= high)).all()
    assert uniform[:, 0].mean() == pytest.approx(
        0.5 * (low[0] + high[0]), abs=5 * (high[0] - low[0]) / np.sqrt(12 * 2000)
    )
    values = target.values(uniform).reshape(2000, -1)
    assert values.shape[1] == len(target.fields)
    assert np.isfinite(values).all()
    assert as_data(target)["kind"] == type(target).__name__


def test_focused_points_of_the_porous_medium_lie_in_the_box_and_of_the_wave_follow_the_shock() -> None:
    points = PorousMedium(3).focused(1000, np.random.default_rng(0))[:, 1:]
    assert points.min() >= 0.2
    assert points.max() <= 0.8
    target = NavierStokes()
    points = target.focused(20_000, np.random.default_rng(0))
    offset = points[:, 1] - target.wave.speed * points[:, 0]
    # false-alarm probability below 1e-5 each: 4.5 standard errors
    assert abs(offset.mean()) < 4.5 / np.sqrt(20_000)
    assert offset.std() == pytest.approx(1.0, abs=4.5 / np.sqrt(40_000))


@pytest.mark.parametrize("d", [1, 3])
def test_the_compact_set_lies_inside_the_support_and_is_filled_uniformly(d: int) -> None:
    target = PorousMedium(d, inside=0.8)
    points = target.uniform(20_000, np.random.default_rng(1))
    assert target.exact.inside(points).all()
    share = np.linalg.norm(points[:, 1:] - 0.5, axis=1) / (0.8 * 0.3)
    assert share.max() <= 1 + 1e-12
    # |x|^d is uniform on (0, 1) for uniform points of a ball
    assert (share**d).mean() == pytest.approx(0.5, abs=4.5 / np.sqrt(12 * 20_000))


@settings(max_examples=20, deadline=None)
@given(st.floats(-2, 2).map(lambda number: round(number, 12)), st.floats(0.1, 2))
def test_formulas_are_what_they_say(a: float, b: float) -> None:
    points = np.array([[a, b], [b, a]])
    got = WrittenFunction(f"{a!r} * sin(pi * t)**2 - x1 / ({b!r}) + max(t, -x1)", low=(-3, -3), high=(3, 3)).values(
        points
    )
    t, x = points.T
    assert np.allclose(got, a * np.sin(np.pi * t) ** 2 - x / b + np.maximum(t, -x), rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("__import__('os').system('true')", "has no meaning"),
        ("system(t)", "the function 'system' is unknown"),
        ("arctan(t)", "did you mean 'atan'"),
        ("maximum(t, x1)", "did you mean 'max'"),
        ("e*t", "the name 'e' is unknown"),
        ("t.real", "has no meaning"),
        ("y + 1", "'y' is unknown.*known: .*x1"),
        ("sine(t)", "did you mean 'sin'"),
        ("sin(t", r"expected '\)'"),
        ("sin(t, t)", "sin takes one argument"),
        ("max(t)", "max takes two or more"),
        ("[t, x1]", "a vector where a number is needed"),
        ("u_x1 + t", "'u_x1' is unknown"),
        ("t = x1", "one side only"),
        ("1/0*t", "division by zero"),
        ("log(t - 5)", "finite"),
        ("t*log(sin(4))", "expression|complex"),
        ("t*asin(7)", "expression|complex"),
        ("10**10**10*t", "refused"),
        ("(" * 500 + "t" + ")" * 500, "nested deeper"),
        ("t" * 6000, "characters"),
        ("max(" + ", ".join(f"{k}*x1" for k in range(200)) + ")", "arguments of max and min is 200"),
        ("max(t, x1, " * 20 + "t" + ")" * 20, "arguments of max and min is 60"),
        (3, "must be text"),
    ],
)
def test_formulas_that_are_none_are_refused(expression: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        WrittenFunction(expression)


def test_a_formula_of_many_terms_is_read_and_travels_to_another_process() -> None:
    text = " + ".join(f"sin({k}*x1)" for k in range(1, 350))
    target = WrittenFunction(text)
    points = np.array([[0.3, 0.7], [0.1, 0.2]])
    exact = np.sin(np.outer(points[:, 1], np.arange(1, 350))).sum(axis=1)
    assert np.allclose(pickle.loads(pickle.dumps(target)).values(points), exact, rtol=0, atol=350 * 2**-50)


def test_thousands_of_terms_are_refused() -> None:
    with pytest.raises(InputError, match="more than 5000"):
        WrittenFunction(" + ".join(f"sin({k}*x1)" for k in range(1000)))


@pytest.mark.parametrize("make", [PorousMedium, GaussianBump, SmoothBump, lambda d: WrittenFunction("t", d)])
@pytest.mark.parametrize("space_dim", [0, 1001, 10**9, 1.0, True, "2"])
def test_dimensions_are_bounded_before_anything_of_that_size_is_made(make, space_dim) -> None:
    with pytest.raises(InputError, match="space_dim"):
        make(space_dim)
