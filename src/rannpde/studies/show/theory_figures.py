"""Figures of the theory: how tight the bounds are, how constants grow with d, and the gain from the weight law."""

from __future__ import annotations

from math import e, log, pi

import numpy as np
from matplotlib.axes import Axes

from rannpde.arrays import Array
from rannpde.domains import Domain
from rannpde.network.laws import Gaussian
from rannpde.plotting.style import COLOURS, MARKERS, style
from rannpde.studies.show.figures import WIDTH_LABEL, Drawing, log_axes, log_scale, panels
from rannpde.theory import (
    Estimator,
    best_decay,
    best_estimator,
    fitted_error,
    growth,
    measured_errors,
    theorem_bound,
)
from rannpde.theory.tightness import Measured

FITTED_WIDTHS = (8, 16, 32, 64, 128, 256, 512)
FIT_SEEDS = 3
"""Fits with heavy-tailed weights scatter by decades: the median of three shows it, and takes seconds."""
FITTED_PENALTY = 1e-10
"""Ridge of the fitted networks: small enough not to limit their error here, large enough for heavy-tailed columns."""
GROWTH_DIMENSIONS = tuple(range(1, 11)) + tuple(range(15, 51, 5))
"""Dimensions of the panels on growth, whose closed forms hold in every dimension."""


def theory_drawings(choice: Estimator, domain: Domain) -> list[Drawing]:
    """All figures for one choice of activation, law, domain and norm."""
    best = best_estimator(choice, domain)
    with style():
        return [
            transform_drawing(choice),
            tightness_drawing(choice, best, domain),
            laws_drawing(choice, best, domain),
            growth_drawing(choice),
        ]


def tightness_drawing(choice: Estimator, best: Estimator, domain: Domain) -> Drawing:
    """Measured errors of the unbiased and the fitted network, the exact variance and both bounds against the width."""
    figure, (axes,) = panels(1, height=3.6)
    figure.set_size_inches(6.0, 4.2)
    slope, fitted = _draw_tightness(axes, choice, best, domain)
    unbiased = slope.errors / choice.size(domain)
    above = [str(n) for n, one, two in zip(FITTED_WIDTHS, fitted, unbiased, strict=True) if one > two]
    caption = (
        f"u = unit Gaussian, {_subject(choice)}: relative error against width. The unbiased network of Theorem 1 has "
        f"slope {slope.slope:.3f} ± {slope.halfwidth:.3f} and error {unbiased[-1]:.2g} at N = {FITTED_WIDTHS[-1]}, "
        "where "
        f"least squares on features of the same law has {fitted[-1]:.2g} (median of {FIT_SEEDS} seeds; above the "
        f"unbiased network at N = {', '.join(above) or 'none'})."
    )
    return Drawing("tightness", caption, "Log-log plot of errors and bounds against the width.", figure)


def _draw_tightness(axes: Axes, choice: Estimator, best: Estimator, domain: Domain) -> tuple[Measured, Array]:
    """The curves, all divided by ‖u‖; returns the measured errors under π and the relative ones of fits under π."""
    size, widths = choice.size(domain), np.array(FITTED_WIDTHS)
    bound = theorem_bound(choice, domain)
    lines = [("bound, corrected", bound.corrected), ("bound, as printed", bound.printed)]
    for number, (label, constant) in enumerate(lines):
        drawn = np.sqrt(constant / widths) / size if 0 < constant < np.inf else np.full(len(widths), np.nan)
        label = label if 0 < constant < np.inf else f"{label}: {constant:g}"
        axes.plot(widths, drawn, color=COLOURS[6], ls=("--", ":")[number], label=label)
    fitted: dict[str, list[float]] = {}
    measured = _unbiased(axes, choice, domain, size, 0, "unbiased, π")
    _unbiased(axes, best, domain, size, 1, "unbiased, best law")
    for number, (label, law) in enumerate([("π", choice.law), ("best law", best.law), ("Gaussian", Gaussian(1.0))], 2):
        fitted[label] = [
            np.median(
                [fitted_error(choice, domain, n, penalty=FITTED_PENALTY, law=law, rng=s) for s in range(FIT_SEEDS)]
            )
            for n in FITTED_WIDTHS
        ]
        axes.plot(
            widths,
            np.array(fitted[label]) / size,
            color=COLOURS[number],
            marker=MARKERS[number],
            label=f"fitted, {label}",
        )
    axes.set_xlabel(WIDTH_LABEL)
    axes.set_ylabel("relative error")
    log_axes(axes)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return measured, np.array(fitted["π"]) / size


def _unbiased(axes: Axes, choice: Estimator, domain: Domain, size: float, number: int, label: str) -> Measured:
    measured = measured_errors(choice, domain, FITTED_WIDTHS, rng=0)
    exact = np.sqrt(float(choice.variance(domain)) / measured.widths) / size
    axes.plot(measured.widths, exact, color=COLOURS[number], lw=1.0, label=f"{label}: exact variance")
    axes.plot(
        measured.widths, measured.errors / size, color=COLOURS[number], ls="", marker=MARKERS[number], label=label
    )
    return measured


def laws_drawing(choice: Estimator, best: Estimator, domain: Domain) -> Drawing:
    """The variance of π with its best exponents for each order of ψ, beside the best law."""
    figure, (left, right) = panels(2)
    orders = {"time_order": choice.time_order, "space_order": choice.space_order}
    decays = best_decay(choice.target, domain, activation=choice.activation, **orders)
    order = [one.order for one in decays]
    left.plot(order, [one.variance for one in decays], marker="o", label="π, best exponents")
    left.axhline(float(choice.variance(domain)), color=COLOURS[2], ls=":", label="π as chosen")
    least = float(best.variance(domain))
    left.axhline(least, color=COLOURS[1], ls="--", label="best law")
    left.set(xlabel="order of ψ", ylabel="N · E‖u - u_N‖²", xticks=order)
    log_scale(left, "y")
    left.legend()
    right.plot(order, [one.law.time_decay or 0.0 for one in decays], marker="o", label="λ_τ")
    right.plot(order, [one.law.space_decay for one in decays], marker="s", label="λ_a")
    right.set(xlabel="order of ψ", ylabel="best exponent", xticks=order)
    right.legend()
    gain = min(one.variance for one in decays) / least
    caption = (
        f"{_subject(choice)}: variance under π with its best decay exponents against the order of ψ (left), and those "
        f"exponents (right). The best law gains a factor {gain:.1f} on the best π; Gaussian weights give infinity."
    )
    return Drawing("laws", caption, "Variance against the order of psi, and best exponents.", figure)


def growth_drawing(choice: Estimator) -> Drawing:
    """Constants against d, for λ_a = d/2 + 1/2 and for the paper's λ_a = d/2 + (π/e) d."""
    figure, axes = panels(2, height=3.0)
    titles = ("λ_a = d/2 + 1/2", "λ_a = d/2 + (π/e) d, as the remark asks")
    steps = []
    for panel, ratio, title in zip(axes, (None, pi / e), titles, strict=True):
        rows = [growth(d, choice.activation, ratio=ratio) for d in GROWTH_DIMENSIONS]
        steps.append((rows[-1].moment - rows[0].moment) / log(10))
        curves = {"corrected bound": "bound", "second moment under π": "moment", "under the best law": "least"}
        for number, (label, name) in enumerate(curves.items()):
            values = [getattr(row, name) / log(10) for row in rows]
            panel.plot(GROWTH_DIMENSIONS, values, color=COLOURS[number], marker=MARKERS[number], label=label)
        if ratio is not None:
            panel.plot(
                GROWTH_DIMENSIONS,
                [row.printed / log(10) for row in rows],
                color=COLOURS[6],
                ls=":",
                label="F(d), printed",
            )
        panel.set(xlabel="d", ylabel="log₁₀ of N · E|u - u_N|²", title=title)
        panel.legend()
    caption = (
        f"Growth with the dimension for u = exp(-|z|²/2), {choice.activation.name}, normalised ψ of least order. From "
        f"d = {GROWTH_DIMENSIONS[0]} to {GROWTH_DIMENSIONS[-1]} "
        f"the second moment under π grows by 10^{steps[0]:.1f} on the left and "
        f"by 10^{steps[1]:.1f} on the right, where the decay that the remark asks for forces a high order of ψ."
    )
    return Drawing("growth", caption, "Logarithms of constants against the dimension.", figure)


def transform_drawing(choice: Estimator) -> Drawing:
    """ψ with its transform, and R_ψ u over (|w|, b) in the first space direction."""
    figure, (left, right) = panels(2)
    x = np.linspace(-6, 6, 600)
    left.plot(x, choice.psi(x), label="ψ")
    left.plot(x, np.abs(choice.psi.fourier(x)), ls="--", label="|ψ̂|")
    left.set(xlabel="x, ω", title=f"order {choice.psi.order}, K = 1")
    left.legend()
    length, bias = np.linspace(0, 2, 160), np.linspace(-6, 6, 240)
    grid, biases = (array.ravel() for array in np.meshgrid(length, bias, indexing="ij"))
    weights = np.zeros((choice.target.dim, len(grid)))
    weights[-1] = grid
    values = choice.target.ridgelet(choice.psi, weights, biases).reshape(len(length), -1)
    largest = np.abs(values).max()
    image = right.pcolormesh(bias, length, values, cmap="RdBu_r", vmin=-largest, vmax=largest, rasterized=True)
    right.grid(visible=False)
    right.set(xlabel="b", ylabel="|a|", title="R_ψ u(0, a, b)")
    figure.colorbar(image, ax=right)
    caption = f"The ridgelet function for {choice.activation.name} and the transform of u along one direction."
    return Drawing("transform", caption, "Curves of psi and a heat map of the transform.", figure)


def _subject(choice: Estimator) -> str:
    norm = f"H^{choice.time_order}_t H^{choice.space_order}_x" if choice.time_order + choice.space_order else "L²"
    return f"{choice.activation.name}, d = {choice.target.dim - 1}, {norm}"
