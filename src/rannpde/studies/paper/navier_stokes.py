"""Section "Experiments for compressible Navier-Stokes": the travelling wave with singular pressure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rannpde.plotting.style import COLOURS
from rannpde.studies.cell import Sampling
from rannpde.studies.curves import FittedCurve
from rannpde.studies.layer import Layer
from rannpde.studies.show.analysis import Series
from rannpde.studies.show.chapter import Chapter, Size, seeds
from rannpde.studies.show.figures import Drawing, comparison_drawing, cost_drawing, error_drawings, panels
from rannpde.studies.study import Study
from rannpde.studies.target import NavierStokes

DEVIATIONS = (
    "The velocity is u = u₋ - s (v - v₋), u₋ = 0; the printed v = -s u contradicts the conservation of mass. The shock "
    "moves to x₀ + s t, not x₀ - s t.",
    "The profile is computed to rounding by quadrature in log (v - v₋)/(v₊ - v) instead of a table of 5,000 points, "
    "whose spacing 0.002 hardly resolves the corner at the left state, 0.02 wide.",
    "The bias β has no penalty. v₋ = 1 + √ε, where the pressure is 1; the paper does not give it.",
)


def study(size: Size) -> Study:
    """Both fields, frequencies N(0, 3.5²), N = 10, 20, …, 250, M = 2000 N, λ = 1e-3, one fixed set of 20,000 points.

    Every size has the paper's widths and points: the whole study takes a minute.
    """
    return Study(
        "navier-stokes",
        title="Compressible Navier–Stokes equations: a travelling wave",
        target=NavierStokes(),
        features=Layer("fourier", scale=3.5),
        sampling=Sampling(points_per_width=2000, focus=0.5, test_points=20_000, fixed_test=True),
        penalty=1e-3,
        widths=tuple(range(10, 251, 10)),
        seeds=seeds(size),
        curves=(FittedCurve("v and u"),),
    )


def chapter(size: Size) -> Chapter:
    """Figures TW, NS and NS-log."""
    return Chapter(
        "navier-stokes",
        study(size),
        "Does the error fall like N^(-1/2) for the travelling wave (v, u) of the compressible Navier–Stokes equations?",
        _draw,
        DEVIATIONS,
        remarks=_remarks,
    )


def penalty_chapter(size: Size) -> Chapter:
    """The same fit with smaller penalties: where the flat tail comes from."""
    widths = (10, 20, 40, 80, 160, 250) if size != "full" else (10, 20, 40, 80, 160, 250, 500, 1000)
    base = study(size)
    curves = tuple(FittedCurve(f"λ = {penalty:g}", penalty=penalty) for penalty in (1e-3, 1e-5, 1e-7, 1e-10))
    return Chapter(
        "navier-stokes-penalty",
        replace(
            base,
            name="navier-stokes-penalty",
            title="The flat tail of the travelling wave",
            widths=widths,
            seeds=base.seeds[:3],
            curves=curves,
        ),
        "Is it the width or the penalty λ = 10⁻³ that limits the error of the travelling wave?",
        lambda series: [
            comparison_drawing(
                [("travelling wave, both fields", series)],
                "navier-stokes-penalty",
                "The travelling wave with the paper's penalty λ = 10⁻³ and with smaller ones, on the same draws.",
            )
        ],
    )


def _draw(series: Sequence[Series]) -> list[Drawing]:
    curves = error_drawings(series, "navier-stokes", "travelling wave, both fields")
    return [profile_drawing(), *curves, cost_drawing(series, "navier-stokes")]


def profile_drawing() -> Drawing:
    """Figure TW: the profile, and its corner at the left state magnified."""
    wave = NavierStokes().wave
    fine = np.linspace(-1.0, 1.0, 20_001)
    turn = float(fine[np.argmax(wave.profile(fine, 2))])
    figure, (whole, corner) = panels(2, 2)
    xi = np.linspace(-5.0, 5.0, 2001)
    values = wave(np.column_stack([np.zeros_like(xi), xi]))
    whole.plot(xi, values[:, 0], color=COLOURS[0], label="specific volume v")
    whole.plot(xi, values[:, 1], color=COLOURS[1], ls="--", label="velocity u")
    near = np.linspace(turn - 0.2, turn + 0.1, 501)
    corner.plot(near, wave.profile(near), color=COLOURS[0])
    for axes, heading in ((whole, f"travelling wave, speed s = {wave.speed:.4f}"), (corner, "v at its corner")):
        axes.set(xlabel="x − s t", title=heading)
    whole.legend(loc="center right")
    caption = (
        f"The travelling wave (v, u)(x - s t): from v₋ = {wave.left_state:.4f} to v₊ = {wave.right_volume:g}, from "
        f"u₋ = {wave.left_velocity:g} to u₊ = {wave.right_velocity:.4f}. Right: v leaves v₋ like e^(43 ξ)."
    )
    alternative = (
        f"Two line plots. v rises monotonically from {wave.left_state:.3f} to {wave.right_volume:g}, u falls from 0 to "
        f"{wave.right_velocity:.3f}; both turn sharply near x - st = {turn:.2f} and level off slowly on the right."
    )
    return Drawing("navier-stokes-profile", caption, alternative, figure)


def _remarks(series: Sequence[Series]) -> list[str]:
    one = series[0]
    last = [result.field_errors for result in one.fits_at(one.widths[-1]).values()]
    parts = ", ".join(f"{name} {np.mean([errors[name] for errors in last]):.2g}" for name in last[0])
    return [f"Relative errors of the fields alone at N = {one.widths[-1]}: {parts}."]
