"""The second contribution: PINN losses of random networks on true solutions, beside the corollaries' bounds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rannpde.plotting.style import COLOURS, MARKERS
from rannpde.studies.curves import MeasuredCurve
from rannpde.studies.layer import Layer
from rannpde.studies.run.measured import MeasuredResult
from rannpde.studies.run.pinn import DELTA, PINN_KINDS, PinnLoss
from rannpde.studies.show.analysis import Series, fit_slope
from rannpde.studies.show.chapter import Chapter, Size, Table, doubling
from rannpde.studies.show.figures import WIDTH_LABEL, Drawing, log_axes, panels
from rannpde.studies.show.report import interval_text
from rannpde.studies.study import Study
from rannpde.studies.true_solutions import PeriodicSolution, SmoothBarenblatt, TrueSolution, WaveSolution

_SOLUTIONS: dict[str, TrueSolution] = {
    "PME, d = 1": SmoothBarenblatt(1),
    "PME, d = 2": SmoothBarenblatt(2),
    "PME, d = 3": SmoothBarenblatt(3),
    "NS, travelling wave": WaveSolution(),
    "NS, periodic flow": PeriodicSolution(),
}
NAMES = {
    "unbiased": "unbiased (Theorem 1)",
    "ridge": "least squares",
    "sobolev": "least squares in H¹H²",
    "minimised": "minimiser of the loss",
}
UNBIASED_LAST: dict[Size, int] = {"quick": 512, "default": 1024, "full": 32768}
FITTED_LAST: dict[Size, int] = {"quick": 100, "default": 200, "full": 400}
DRAWS: dict[Size, tuple[int, int]] = {"quick": (8, 3), "default": (16, 5), "full": (40, 5)}
"""Realisations of unbiased networks, whose quantiles are taken, and of fitted ones."""
LEVEL = 1 - DELTA
DEVIATIONS = (
    "Stated in the paper (Corollaries PME and NS, part 2) and not measured there. Solutions are true ones: the "
    "Barenblatt "
    "profile with b = 1 on (1, 2) × (0, 1)^d, inside its support; a pressureless travelling wave and a computed "
    "pressureless flow on the circle, both with constant viscosity, on (0, 1/2) × (0, 1).",
    "The errors of the table of slopes are √J, whose promised rate is -1/2; the figure shows J, whose rate is -1.",
    "Unbiased networks have tanh neurons from π, λ_τ = 3/4, λ_a = d/2 + 1/4, and are built from the solution cut off "
    "smoothly beyond its box; widths share their neurons. The other three share hidden layers (tanh, Gaussian "
    "weights of "
    "deviation 1.5 on [-1, 1]) and M = 10N points. The minimiser's loss is J_PDE + J_ic + J_bc, by Gauss–Newton on the "
    "output weights from a constant.",
    f"Bounds hold with probability 1 - δ, δ = {DELTA:g}, for the last draw of each width (their coefficient "
    f"holds sup-norms "
    "of u_N); 'from the variance' uses a quadrature of the exact variance with about one digit.",
)


def chapter(size: Size) -> Chapter:
    """Four networks on five solutions."""
    many, few = DRAWS[size]
    curves = []
    for name, solution in _SOLUTIONS.items():
        for kind in PINN_KINDS:
            unbiased = kind == "unbiased"
            widths = doubling(32, UNBIASED_LAST[size]) if unbiased else doubling(25, FITTED_LAST[size], 2)
            cell = PinnLoss("", "", solution, 0, widths, kind, many if unbiased else few)
            curves.append(MeasuredCurve(f"{name}, {NAMES[kind]}", cell))
    study = Study(
        "pinn-loss",
        title="The PINN loss of random networks",
        target=SmoothBarenblatt(),
        features=Layer("tanh", "heavy-tailed", scale=1.0, decay=0.25),
        widths=(64,),
        seeds=(0,),
        curves=tuple(curves),
    )
    question = "Does the PINN loss converge to 0 as the corollaries say, at which rate, and how far below their bounds?"
    return Chapter("pinn-loss", study, question, _draw, DEVIATIONS, _tables, _remarks)


def _groups(series: Sequence[Series]) -> dict[str, dict[str, Series]]:
    """solution → kind of network → curve."""
    groups: dict[str, dict[str, Series]] = {}
    for one in series:
        cell = one.cells[0]
        if isinstance(cell, PinnLoss):
            name = next(name for name in _SOLUTIONS if one.label.startswith(name))
            groups.setdefault(name, {})[cell.kind] = one
    return groups


def _draw(series: Sequence[Series]) -> list[Drawing]:
    groups = _groups(series)
    figure, grid = panels(len(groups), height=3.0)
    figure.set_figheight(figure.get_figheight() + 0.9)  # room for the legend
    words = []
    for axes, (name, members) in zip(grid, groups.items(), strict=True):
        for number, kind in enumerate(PINN_KINDS):
            if kind not in members:
                continue
            one, colour = members[kind], COLOURS[number]
            low, middle, high = (one.quantiles(share) ** 2 for share in (DELTA, 0.5, LEVEL))
            axes.fill_between(one.widths, low, high, color=colour, alpha=0.2, lw=0)
            axes.plot(one.widths, middle, color=colour, marker=MARKERS[number], label=NAMES[kind])
            words.append(f"{name}, {NAMES[kind]}: J from {middle[0]:.1g} to {middle[-1]:.1g}.")
        if "unbiased" in members:
            one = members["unbiased"]
            for label, quantity, dash in BOUNDS:
                axes.plot(one.widths, one.mean(quantity), color="black", ls=dash, lw=1.0, label=label)
            middle = one.quantiles(0.5) ** 2
            axes.plot(one.widths, middle[0] * one.widths[0] / one.widths, color="grey", lw=0.8, label="∝ 1/N")
        axes.set(title=name, xlabel=WIDTH_LABEL, ylabel="J_PDE" if name.startswith("PME") else "J¹ + J²")
        log_axes(axes)
    handles = {label: handle for axes in grid for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=4)
    caption = (
        f"The PINN loss against the width: medians over draws, bands from the {DELTA:.0%} to the {LEVEL:.0%} quantile. "
        "Unbiased networks of Theorem 1, least squares on values, on values and derivatives, and the minimiser of the "
        f"loss; black: the corollary's bounds at δ = {DELTA:g}; grey: ∝ 1/N."
    )
    return [Drawing("pinn-loss", caption, "Log-log plots. " + " ".join(words), figure)]


BOUNDS = (
    ("bound from the variance", "from_variance", "-."),
    ("bound, corrected", "corrected", "--"),
    ("bound, as printed", "printed", ":"),
)


def _tables(series: Sequence[Series]) -> list[Table]:
    slopes, quantiles, conditions = [], [], []
    for name, members in _groups(series).items():
        for kind, one in members.items():
            if one.slope is not None:
                slope = one.slope
                text = f"{2 * slope.value:.2f} [{2 * slope.low:.2f}, {2 * slope.high:.2f}]"
                middle = one.quantiles(0.5) ** 2
                slopes.append((name, NAMES[kind], f"{slope.first}–{slope.last}", f"{middle[-1]:.2g}", text))
        result = next((r for r in members["unbiased"].results.values()), None) if "unbiased" in members else None
        if isinstance(result, MeasuredResult):
            one = members["unbiased"]
            quantile = one.quantiles(LEVEL)[-1] ** 2
            bounds = [one.mean(quantity)[-1] for _, quantity, _ in BOUNDS]
            held = np.mean([value**2 <= bounds[1] for value in one.values()[-1]])
            row = (
                name,
                f"N = {one.widths[-1]}",
                f"{quantile:.2g}",
                *(f"{bound:.2g}" for bound in bounds),
                f"{held:.0%}",
            )
            quantiles.append(row)
            parts = [
                (one.quantiles(LEVEL, part)[-1], one.mean(f"{part}_bound")[-1]) for part in ("initial", "boundary")
            ]
            # the whole loss of each draw, and the sum of the bounds, which hold in one event
            conditional = [one.values(part)[-1] for part in ("initial", "boundary")]
            whole = np.square(one.values()[-1]) + np.sum(conditional, axis=0)
            total = np.quantile(whole, LEVEL, method="inverted_cdf"), bounds[1] + sum(bound for _, bound in parts)
            conditions.append((name, *(f"{value:.2g}" for pair in (*parts, total) for value in pair)))
    head: tuple[str, ...] = ("solution", "network", "widths", "last median J", "slope of J, 95 % interval")
    tables = [Table("Slopes of log J against log N; the corollaries promise -1.", head, tuple(slopes))]
    head = (
        "solution",
        "width",
        f"{LEVEL:.0%} quantile of J",
        *(label for label, _, _ in BOUNDS),
        "draws below the corrected",
    )
    tables.append(
        Table(f"Unbiased networks: the quantile over draws beside the bounds, δ = {DELTA:g}.", head, tuple(quantiles))
    )
    head = ("solution", "J_ic", "bound by trace", "J_bc", "bound by trace", "J_PDE + J_ic + J_bc", "its bound")
    caption = (
        f"The whole PINN loss of unbiased networks: initial and boundary residuals, {LEVEL:.0%} quantiles, with the "
        "trace inequalities' bounds (remark after Corollary NS), and the total."
    )
    tables.append(Table(caption, head, tuple(conditions)))
    tables.append(_equations(series))
    return [table for table in tables if table.rows]


def _equations(series: Sequence[Series]) -> Table:
    """J¹ and J² of flows separately, with the corollary's bound of J¹ alone."""
    rows = []
    for name, members in _groups(series).items():
        for kind, one in members.items():
            if len(one.cells[0].target.fields) == 1:
                continue
            cells = []
            for equation in ("equation 1", "equation 2"):
                slope = fit_slope(one.widths, one.values(equation))
                told = "" if slope is None else f", slope {slope.value:.2f} {interval_text(slope)}"
                cells.append(f"{one.quantiles(0.5, equation)[-1]:.2g}{told}")
            bound = f"{one.mean('mass_bound')[-1]:.2g}" if kind == "unbiased" else "–"
            rows.append((name, NAMES[kind], *cells, bound))
    head = ("flow", "network", "J¹ (mass)", "J² (momentum)", "corrected bound of J¹ alone")
    return Table("The losses of both equations apart: medians at the last width, and slopes.", head, tuple(rows))


def _remarks(series: Sequence[Series]) -> list[str]:
    remarks = []
    for name, members in _groups(series).items():
        if {"unbiased", "minimised"} <= members.keys():
            best, plain = members["minimised"], members["unbiased"]
            ends = [(int(one.widths[-1]), float(one.quantiles(0.5)[-1] ** 2)) for one in (best, plain)]
            remarks.append(
                f"{name}: the minimiser of the loss reaches {ends[0][1]:.1g} with N = {ends[0][0]}, the "
                f"unbiased network "
                f"{ends[1][1]:.1g} with N = {ends[1][0]}."
            )
    return remarks
