"""Theorem 1 measures errors in H^p_t H^q_x: rates there of networks fitted to values, and to values and derivatives."""

from __future__ import annotations

from collections.abc import Sequence

from rannpde.studies.curves import MeasuredCurve
from rannpde.studies.layer import Layer
from rannpde.studies.run.sobolev import SOBOLEV_KINDS, SobolevRate
from rannpde.studies.show.analysis import Series
from rannpde.studies.show.chapter import Chapter, Size, doubling
from rannpde.studies.show.figures import Drawing, comparison_drawing
from rannpde.studies.study import Study
from rannpde.studies.true_solutions import PeriodicSolution, SmoothBarenblatt, TrueSolution

_SOLUTIONS: dict[str, TrueSolution] = {"Barenblatt, d = 2": SmoothBarenblatt(2), "periodic flow": PeriodicSolution()}
NORMS = ((0, 0), (1, 1), (1, 2))
_LAST: dict[Size, int] = {"quick": 128, "default": 256, "full": 1024}
DEVIATIONS = (
    "Not in the paper, whose theorem is about H^p_t H^q_x and whose experiments measure L². Fourier features of "
    "scale 2 on "
    "[-1, 1], M = 10N uniform points, λ = 10⁻¹⁰. 'With derivatives' fits all those of the norm that is "
    "measured, each with "
    "weight 1; both kinds share their draws. For L² there is nothing to add, so that one curve is shown.",
)


def chapter(size: Size) -> Chapter:
    """Three norms on two solutions."""
    curves = []
    for name, solution in _SOLUTIONS.items():
        for p, q in NORMS:
            for kind in SOBOLEV_KINDS if p + q else SOBOLEV_KINDS[:1]:
                how = "with derivatives" if kind == "derivatives" else "values alone"
                cell = SobolevRate("", "", solution, 0, doubling(16, _LAST[size], 2), kind, p, q)
                curves.append(MeasuredCurve(f"{name}, {_norm(p, q)}, {how}", cell))
    study = Study(
        "sobolev-rates",
        title="Fits in Sobolev norms",
        target=SmoothBarenblatt(),
        features=Layer(),
        widths=(16,),
        seeds=(0,),
        curves=tuple(curves),
    )
    question = (
        "How fast do errors of fitted networks fall in the norms of the theorem, and what do fitted derivatives gain?"
    )
    return Chapter("sobolev-rates", study, question, _draw, DEVIATIONS, remarks=_remarks)


def _norm(p: int, q: int) -> str:
    return f"H^{p}_t H^{q}_x" if p + q else "L²"


def _draw(series: Sequence[Series]) -> list[Drawing]:
    groups = [(name, [one for one in series if one.label.startswith(name)]) for name in _SOLUTIONS]
    caption = (
        "Relative errors in L², H^1_t H^1_x and H^1_t H^2_x of networks fitted to values alone and to the "
        "derivatives of the "
        "norm as well; bands of one standard deviation; dashed: C/√N."
    )
    return [
        comparison_drawing([group for group in groups if group[1]], "sobolev-rates", caption, label="relative error")
    ]


def _remarks(series: Sequence[Series]) -> list[str]:
    last = {one.label: (int(one.widths[-1]), float(one.mean()[-1])) for one in series}
    remarks = []
    for name in _SOLUTIONS:
        for p, q in NORMS[1:]:
            pair = [last.get(f"{name}, {_norm(p, q)}, {how}") for how in ("values alone", "with derivatives")]
            if pair[0] and pair[1]:
                remarks.append(
                    f"{name}, {_norm(p, q)}, N = {pair[0][0]}: error {pair[0][1]:.2g} from values alone, "
                    f"{pair[1][1]:.2g} with derivatives."
                )
    return remarks
