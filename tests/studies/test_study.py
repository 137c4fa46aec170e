"""Studies as data: keys, streams, cells, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rannpde.errors import InputError
from rannpde.studies.cell import Sampling, as_data
from rannpde.studies.curves import FittedCurve, UnbiasedCurve
from rannpde.studies.layer import Layer
from rannpde.studies.study import Study
from rannpde.studies.target import GaussianBump, NavierStokes, PorousMedium, SmoothBump, WrittenFunction

SMALL = Sampling(points_per_width=10, test_points=500)


def tiny(**changes: object) -> Study:
    base = Study("tiny", PorousMedium(1), Layer(scale=5.0), widths=(8, 16), seeds=(0, 1), sampling=SMALL)
    return replace(base, **changes)


def test_cells_are_the_product_of_curves_widths_and_seeds() -> None:
    study = tiny(curves=(FittedCurve("a"), FittedCurve("b", penalty=1e-8, widths=(4, 8, 16))))
    assert [(c.curve, c.width, c.seed) for c in study.cells_of(study.curves[1], (1,))] == [
        ("b", 4, 1),
        ("b", 8, 1),
        ("b", 16, 1),
    ]
    assert len(study.cells) == 2 * (2 + 3)
    assert len({cell.key for cell in study.cells}) == len(study.cells)


def test_an_unbiased_curve_is_one_cell_of_all_widths() -> None:
    curves = (FittedCurve("fitted"), UnbiasedCurve("unbiased", SmoothBump(1)))
    study = tiny(curves=curves)
    assert [type(cell).__name__ for cell in study.cells] == ["Fit", "Fit", "Unbiased", "Fit", "Fit"]
    (cell,) = study.cells_of(curves[1])
    assert (cell.widths, cell.seed) == ((8, 16), 0)
    others = [replace(curves[1], law="best"), replace(curves[1], decay=0.5), replace(curves[1], widths=(8, 32))]
    assert len({cell.key, *(study.cells_of(curve)[0].key for curve in others)}) == 4
    assert study.cells_of(replace(curves[1], label="other"))[0].key == cell.key


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
        tiny(target=PorousMedium(2)),
        tiny(target=PorousMedium(1, radius=0.31)),
        tiny(target=PorousMedium(1, inside=0.5)),
        tiny(target=GaussianBump(1)),
        tiny(target=NavierStokes()),
    ]


def test_every_parameter_is_part_of_the_key_and_names_are_not() -> None:
    keys = [study.cells[0].key for study in changed_cells()]
    assert len(set(keys)) == len(keys)
    assert tiny(title="another title", curves=(FittedCurve("another label"),)).cells[0].key == keys[0]
    assert tiny(features=Layer(scale=5)).cells[0].key == keys[0]


def test_the_key_is_stable_between_releases() -> None:
    """Records of earlier runs are found by it: if this changes, PROTOCOL must be raised."""
    assert tiny().cells[0].key == "c8dc3ad53d394091199992d31baf4df76ce58b0b66b49888d7530aec77617c1a"


def test_streams_do_not_depend_on_penalty_or_scale_but_on_seed_width_and_dimension() -> None:
    def draw(study: Study, purpose: str, number: int = 0) -> float:
        return float(study.cells[number].stream(purpose).random())

    base = draw(tiny(), "points")
    assert draw(tiny(penalty=1e-9, features=Layer(scale=1.0)), "points") == base
    others = [draw(tiny(), "points", 1), draw(tiny(), "points", 2), draw(tiny(target=PorousMedium(2)), "points")]
    others += [draw(tiny(), purpose) for purpose in ("features", "split", "test")]
    assert len({base, *others}) == 7
    fixed = tiny(sampling=replace(SMALL, fixed_test=True))
    assert len({draw(fixed, "test", number) for number in range(4)}) == 1


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"widths": ()}, "widths"),
        ({"widths": (0,)}, "entry of widths"),
        ({"widths": (8, 8)}, "widths"),
        ({"widths": "8"}, "widths"),
        ({"widths": (8.5,)}, "widths"),
        ({"widths": (100_001,)}, "entry of widths"),
        ({"widths": 3}, "a list of whole numbers"),
        ({"seeds": range(300_000_000)}, "number of seeds"),
        ({"seeds": (2**60,)}, "entry of seeds"),
        ({"widths": range(1, 1001), "seeds": range(1001)}, "number of cells"),
        ({"sampling": Sampling(points_per_width=10**8)}, "points_per_width × width"),
        ({"title": 3}, "title"),
        ({"name": "a" * 81}, "name"),
        ({"seeds": ()}, "seeds"),
        ({"seeds": (-1,)}, "seeds"),
        ({"name": "../up"}, "name"),
        ({"name": ""}, "name"),
        ({"penalty": -1.0}, "penalty"),
        ({"penalty": "best"}, "'gcv' or 'held-out'"),
        ({"target": object()}, "target"),
        ({"curves": (FittedCurve("a"), FittedCurve("a"))}, "labels"),
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
        lambda: Sampling(test_points=10**9),
        lambda: Sampling(fixed_test="yes"),
        lambda: Layer(scaled="yes"),
        lambda: Layer(scale=True),
        lambda: UnbiasedCurve("a", PorousMedium()),
        lambda: UnbiasedCurve("a", SmoothBump(), law="worst"),
        lambda: UnbiasedCurve("a", SmoothBump(), pools=1),
        lambda: PorousMedium(0),
        lambda: PorousMedium(1, inside=1.0),
        lambda: PorousMedium(1, exponent=1.0),
        lambda: PorousMedium(1, start=0.0),
        lambda: NavierStokes(duration=-1.0),
        lambda: GaussianBump(1, breadth=0.0),
        lambda: WrittenFunction("t", low=(1, 1), high=(0, 0)),
        lambda: WrittenFunction("t", low=(0, 0, 0)),
        lambda: FittedCurve(""),
        lambda: as_data(np.zeros(3)),
    ],
)
def test_wrong_parts_are_refused(make) -> None:
    with pytest.raises(InputError):
        make()
