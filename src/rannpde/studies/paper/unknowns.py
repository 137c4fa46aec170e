"""Settings of the main figure that the paper does not state, each changed alone: b, centre, T, t₀, scale, test law."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rannpde.pde.zoo.barenblatt import Barenblatt
from rannpde.studies.cell import Sampling
from rannpde.studies.curves import FittedCurve
from rannpde.studies.layer import Layer
from rannpde.studies.show.analysis import Series
from rannpde.studies.show.chapter import Chapter, Size, Table, doubling
from rannpde.studies.show.figures import Drawing, comparison_drawing
from rannpde.studies.show.report import interval_text, reading
from rannpde.studies.study import Study
from rannpde.studies.target import PorousMedium

UNKNOWN_DIMENSIONS = (4, 5)
_BASE = "as assumed"
_TOGETHER = "T = 0.1 and tested where trained"
_WIDTHS: dict[Size, tuple[int, int, int]] = {"quick": (32, 512, 1), "default": (256, 1448, 2), "full": (128, 8192, 2)}
"""First, last, and steps a doubling: a rate is stated where five widths have errors below 0.5."""
_LAST_TOGETHER: dict[Size, int] = {"quick": 512, "default": 2896, "full": 8192}
"""In d = 5 the errors of two settings changed together are below 0.5 from N = 724 on: five widths up to 2,896."""
SEEDS: dict[Size, int] = {"quick": 2, "default": 2, "full": 5}
DEVIATIONS = (
    "The paper gives neither b, the centre, T, nor the points of the test; t₀ = 0.01 and the scale 10 are given "
    "for d = 4, 5. "
    "'As assumed' is the main figure of this report. Each curve changes one thing. b = 1 makes the support "
    "cover the cube; "
    "centre 0 reads the formula literally, with the profile's centre in a corner of the cube; 'tested where "
    "trained' draws "
    "half of the test points from [0.2, 0.8]^d.",
    "The two changes that show the rate in d = 4 are also made together: in d = 5 one of them alone resolves the "
    "function beyond N = 2,048 only.",
    "The paper prints no error values, so that no assumption can be checked against a number of its figures.",
)


def chapter(size: Size) -> Chapter:
    """Seven curves, as many as there are colours, in d = 4 and d = 5, and two settings changed together."""
    curves = [curve for d in UNKNOWN_DIMENSIONS for curve in _curves(d, size)]
    study = Study(
        "unknowns",
        title="What the paper does not tell",
        target=PorousMedium(4),
        features=Layer(scale=10.0),
        penalty=1e-5,
        widths=doubling(*_WIDTHS[size]),
        seeds=tuple(range(SEEDS[size])),
        curves=tuple(curves),
    )
    question = "Which of the settings that the paper leaves open give an error like N^(-1/2) in d = 4 and 5?"
    return Chapter("unknowns", study, question, _draw, DEVIATIONS, _tables, _remarks)


def _curves(d: int, size: Size) -> list[FittedCurve]:
    base = PorousMedium(d)
    whole = float(Barenblatt((0.5,) * d, 1.0).radius(base.first_time))
    choices: list[tuple[str, PorousMedium, Layer | None, Sampling | None]] = [
        (_BASE, base, None, None),
        ("b = 1", replace(base, radius=whole), None, None),
        ("centre 0", replace(base, centre=0.0), None, None),
        ("T = 0.1", replace(base, duration=0.1), None, None),
        ("t₀ = 0.1", replace(base, start=0.1), None, None),
        ("scale 5", base, Layer(scale=5.0), None),
        ("tested where trained", base, None, Sampling(test_focus=0.5)),
    ]
    first, _, steps = _WIDTHS[size]
    together = FittedCurve(
        f"d = {d}, {_TOGETHER}",
        replace(base, duration=0.1),
        sampling=Sampling(test_focus=0.5),
        widths=doubling(first, _LAST_TOGETHER[size], steps),
    )
    alone = [FittedCurve(f"d = {d}, {name}", target, layer, sampling) for name, target, layer, sampling in choices]
    return [*alone, together]


def _draw(series: Sequence[Series]) -> list[Drawing]:
    captions = {
        "unknowns": "The main figure's fits with one unknown setting changed at a time; bands of one standard "
        "deviation; dashed: C/√N through the first curve.",
        "unknowns-together": "A short time and a test law like the training law together; bands of one standard "
        "deviation; dashed: C/√N.",
    }
    drawings = []
    for together, (name, caption) in enumerate(captions.items()):
        chosen = [curve for curve in series if curve.label.endswith(_TOGETHER) == bool(together)]
        groups = [(f"d = {d}", [curve for curve in chosen if curve.space_dim == d]) for d in UNKNOWN_DIMENSIONS]
        if chosen:
            drawings.append(comparison_drawing([group for group in groups if group[1]], name, caption))
    return drawings


def _tables(series: Sequence[Series]) -> list[Table]:
    rows = []
    for curve in series:
        slope = curve.asymptotic_slope
        text = "–" if slope is None else f"{slope.value:.2f} {interval_text(slope)} from N = {slope.first}"
        rows.append((curve.label, f"N = {curve.widths[-1]}", f"{curve.mean()[-1]:.3g}", text, reading(curve)))
    head = ("setting", "last width", "error there", "slope of the asymptotic part", "reading")
    return [Table("Which settings are in their asymptotic regime, and with which slope.", head, tuple(rows))]


def _remarks(series: Sequence[Series]) -> list[str]:
    """The chapter's question, answered for each dimension."""
    remarks = []
    for d in UNKNOWN_DIMENSIONS:
        readings = {curve.label.removeprefix(f"d = {d}, "): reading(curve) for curve in series if curve.space_dim == d}
        if readings:
            covering = [name for name, text in readings.items() if text.startswith("covers")]
            crude = sum(text.startswith("no rate: the error is above") for text in readings.values())
            answer = ", ".join(covering) if covering else "none"
            remarks.append(
                f"d = {d}: settings whose slope covers -1/2: {answer}; {crude} of {len(readings)} still have errors "
                "above 0.5 at the last width, which is before any asymptotic regime."
            )
    return remarks
