"""Laws of the hidden weights and activations side by side, on one function at the same widths."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from rannpde.studies.curves import FittedCurve
from rannpde.studies.layer import Layer
from rannpde.studies.show.analysis import Series
from rannpde.studies.show.chapter import Chapter, Size, doubling, seeds
from rannpde.studies.show.figures import Drawing, comparison_drawing
from rannpde.studies.study import Study
from rannpde.studies.target import PorousMedium

COMPARED_ACTIVATIONS = ("fourier", "tanh", "sigmoid")
SCALE = 5.0
"""On inputs mapped to [-1, 1] this is the paper's 10 on (0, 1)."""
LAWS = {
    "π of Theorem 1": Layer(law="heavy-tailed", scale=1.0, scaled=True),
    "5 π": Layer(law="heavy-tailed", scale=SCALE, scaled=True),
    "Gaussian": Layer(law="gaussian", scale=SCALE, scaled=True),
    "uniform": Layer(law="uniform", scale=SCALE * sqrt(3.0), scaled=True),
}
DEVIATIONS = (
    "Not in the paper, which uses Gaussian weights and Fourier features alone. Inputs are mapped to [-1, 1] for all "
    "curves, so that one scale means the same for every activation; the uniform law has the variance of the Gaussian.",
    "π has λ_τ = 1 and λ_a = (d+1)/2: Cauchy tails in time and in space; '5 π' is stretched like the Gaussian.",
    "Fourier features have 2N columns of size N^(-1/2), the others N columns of size 1: λ = 10⁻⁵ weighs less on those.",
)


def chapter(size: Size) -> Chapter:
    """The chapter: nine comparisons (and π unscaled) on the Barenblatt profile in d = 2."""
    curves = [
        FittedCurve(f"{activation}, {name}", features=_with(layer, activation))
        for activation in COMPARED_ACTIVATIONS
        for name, layer in LAWS.items()
    ]
    study = Study(
        "weight-laws",
        title="Weight laws and activations",
        target=PorousMedium(2),
        features=Layer(),
        widths=doubling(16, {"quick": 256, "default": 1024, "full": 4096}[size]),
        seeds=seeds(size),
        curves=tuple(curves),
    )
    question = (
        "How do the heavy-tailed law π, Gaussian and uniform weights compare, for Fourier, tanh and sigmoid features?"
    )
    return Chapter("weight-laws", study, question, _draw, DEVIATIONS, remarks=_remarks)


def _with(layer: Layer, activation: str) -> Layer:
    return Layer(activation, layer.law, layer.scale, layer.decay, layer.scaled)


def _draw(series: Sequence[Series]) -> list[Drawing]:
    groups = [(activation, _of(series, activation)) for activation in COMPARED_ACTIVATIONS]
    groups = [(heading, members) for heading, members in groups if members]
    caption = (
        "Barenblatt profile, d = 2: mean relative L² error against width for each law of the hidden weights; a panel "
        "for each activation."
    )
    return [comparison_drawing(groups, "weight-laws", caption)]


def _of(series: Sequence[Series], activation: str) -> list[Series]:
    return [curve for curve in series if curve.first_fit.features.activation == activation]


def _remarks(series: Sequence[Series]) -> list[str]:
    last = max(int(curve.widths[-1]) for curve in series)
    ranked = sorted((curve for curve in series if curve.widths[-1] == last), key=lambda curve: float(curve.mean()[-1]))
    order = "; ".join(f"{curve.label} {curve.mean()[-1]:.2g}" for curve in ranked)
    return [f"Mean error at N = {last}, best first: {order}."]
