"""A law of the hidden weights that knows the equation, beside π, Gaussian and learned laws: error against N."""

from __future__ import annotations

from collections.abc import Sequence

from rannpde.studies.curves import MeasuredCurve
from rannpde.studies.layer import Layer
from rannpde.studies.run.operator_laws import OperatorLaw, SquareSource
from rannpde.studies.show.analysis import Series
from rannpde.studies.show.chapter import Chapter, Size, doubling
from rannpde.studies.show.figures import Drawing, comparison_drawing
from rannpde.studies.study import Study

_PROBLEMS = {"Laplace": SquareSource(), "Helmholtz, k = 20": SquareSource(20.0)}
_LAWS = {
    "π of Theorem 1": "pi",
    "Gaussian": "gaussian",
    "learned": "learned",
    "Trefftz": "trefftz",
}
_LAST: dict[Size, int] = {"quick": 256, "default": 512, "full": 1024}
LAW_DRAWS: dict[Size, int] = {"quick": 3, "default": 5, "full": 10}
DEVIATIONS = (
    "Not in the paper, whose law π does not know the equation. Δu = 0 and Δu + 400 u = 0 on the unit square with the "
    "boundary values of a source outside, log r and Y₀(20 r). N is the number of output weights, by one linear "
    "least-squares problem; π and Gaussian weights belong to Fourier features (N/2 frequencies), with the root mean "
    "square of |w| (for π: its scale) equal to k, and 5 for Laplace's equation.",
    "'Learned' is a tanh network whose neurons are placed where a first solution, with the Gaussian law, varies. "
    "'Trefftz' moves the Gaussian frequencies to the characteristic variety of the operator: plane waves with |w| = k, "
    "and exp(w^⊥·x) cos(w·x) for Laplace's equation. It fits boundary values alone.",
)


def chapter(size: Size) -> Chapter:
    """Four laws on two equations."""
    curves = [
        MeasuredCurve(
            f"{name}, {label}", OperatorLaw("", "", problem, 0, doubling(16, _LAST[size], 2), law, LAW_DRAWS[size])
        )
        for name, problem in _PROBLEMS.items()
        for label, law in _LAWS.items()
    ]
    study = Study(
        "operator-laws",
        title="Laws of the hidden weights for an equation",
        target=SquareSource(),
        features=Layer(),
        widths=(16,),
        seeds=(0,),
        curves=tuple(curves),
    )
    question = (
        "What does a law of the hidden weights gain that knows the equation, beside π, Gaussian and learned ones?"
    )
    return Chapter("operator-laws", study, question, _draw, DEVIATIONS, remarks=_remarks)


def _groups(series: Sequence[Series]) -> list[tuple[str, list[Series]]]:
    groups = [(name, [one for one in series if one.label.startswith(f"{name}, ")]) for name in _PROBLEMS]
    return [(name, members) for name, members in groups if members]


def _draw(series: Sequence[Series]) -> list[Drawing]:
    caption = (
        "Relative L² error against the number N of output weights for four laws of the hidden weights, on Laplace's "
        "and Helmholtz' equation; bands of one standard deviation over draws; dashed: C/√N."
    )
    return [comparison_drawing(_groups(series), "operator-laws", caption)]


def _remarks(series: Sequence[Series]) -> list[str]:
    remarks = []
    for name, members in _groups(series):
        last = int(members[0].widths[-1])
        told = ", ".join(f"{one.label.removeprefix(f'{name}, ')} {one.quantiles(0.5)[-1]:.1g}" for one in members)
        remarks.append(f"{name}: median errors at N = {last}: {told}.")
    return remarks
