"""One look for every figure: legible, even sizes, colours that readers with any colour vision can distinguish."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import matplotlib as mpl
from cycler import cycler

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's palette, which readers with any colour vision can distinguish."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
"""Beside the colours, for readers of a grey print."""
ONE_SIGN, TWO_SIGNS, SIZES = "viridis", "RdBu_r", "magma"
"""Colour maps: of values of one sign, of values around zero (white), of logarithms of sizes."""

STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Arial", "Helvetica", "sans-serif"],
    "font.size": 9.0,
    "mathtext.fontset": "cm",
    "axes.titlesize": 9.5,
    "axes.labelsize": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.prop_cycle": cycler(color=COLOURS),
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.4,
    "lines.markersize": 4.0,
    "legend.framealpha": 0.85,  # the grid does not run through the words
    "legend.edgecolor": "none",
    "legend.fontsize": 8.0,
    "savefig.dpi": 160,
    "svg.fonttype": "none",
    "figure.constrained_layout.use": True,
}


def style() -> AbstractContextManager[None]:
    """The style as a context, for drawing and for saving.

    >>> with style():
    ...     mpl.rcParams["image.cmap"], mpl.rcParams["axes.grid"]
    ('viridis', True)
    """
    return mpl.rc_context(STYLE)
