"""Draw docs/images/data_flow.svg: from a statement to a solution with its estimate."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from rannpde.plotting.style import COLOURS, style

BOXES = {  # name: (x, y, colour, text)
    "statement": (0.0, 2.2, 0, "statement\n$u_t + u\\,u_x = \\nu\\,u_{xx}$"),
    "domain": (0.0, 1.1, 0, "domain, conditions\nsides by name, data"),
    "problem": (2.9, 1.65, 0, "Problem\nchecked; residual and\nexact linearisation"),
    "method": (5.8, 1.65, 2, "method that fits\nLines, Cells, Collocation"),
    "iteration": (8.7, 2.2, 1, "iteration\ndraw features, least squares"),
    "again": (8.7, 1.1, 1, "next iteration\nplaced anew, drawn anew"),
    "solution": (11.6, 1.65, 3, "Solution\nfunction, derivatives,\nestimate, status"),
    "data": (0.0, -0.2, 0, "points and values\narray, stream, Dask"),
    "law": (2.9, -0.2, 2, "Law, Features\nfrozen hidden layer"),
    "fit": (5.8, -0.2, 1, "fit\nnormal equations, NUFFT, QR"),
    "network": (8.7, -0.2, 3, "Network\nfunction, derivatives"),
    "shown": (11.6, -0.2, 5, "to look at and keep\npage, picture, GIF,\nVTK, file, report"),
}
ARROWS = (
    ("statement", "problem"), ("domain", "problem"), ("problem", "method"), ("method", "iteration"),
    ("method", "again"),
    ("iteration", "solution"), ("again", "solution"), ("data", "law"), ("law", "fit"), ("fit", "network"),
    ("solution", "shown"), ("network", "shown"),
)  # fmt: skip
SIZE = (2.35, 0.82)


def draw() -> Figure:
    figure = Figure(figsize=(13.2, 3.6), layout="none")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(-1.3, 12.95), ylim=(-0.75, 2.75))
    axes.set_axis_off()
    for x, y, colour, text in BOXES.values():
        corner = (x - SIZE[0] / 2, y - SIZE[1] / 2)
        look = {"facecolor": COLOURS[colour] + "22", "edgecolor": COLOURS[colour], "linewidth": 1.3}
        axes.add_patch(FancyBboxPatch(corner, *SIZE, boxstyle="round,pad=0,rounding_size=0.1", **look))
        first, _, rest = text.partition("\n")
        lines = rest.count("\n") + 1
        axes.text(x, y + 0.12 * lines, first, ha="center", va="center", fontsize=10.5, fontweight="bold")
        axes.text(x, y - 0.14, rest, ha="center", va="center", fontsize=12 if "$" in rest else 9)
    for start, end in ARROWS:
        (x, y), (to_x, to_y) = BOXES[start][:2], BOXES[end][:2]
        same = x == to_x
        begin = (x, y - SIZE[1] / 2) if same else (x + SIZE[0] / 2, y)
        finish = (to_x, to_y + SIZE[1] / 2) if same else (to_x - SIZE[0] / 2, to_y)
        axes.add_patch(FancyArrowPatch(begin, finish, arrowstyle="-|>", mutation_scale=12, color="#57606a"))
    both = FancyArrowPatch((8.7, 1.79), (8.7, 1.51), arrowstyle="<|-|>", mutation_scale=10, color=COLOURS[1])
    axes.add_patch(both)
    axes.text(8.85, 1.65, "compare", fontsize=9, va="center", color=COLOURS[1])
    return figure


if __name__ == "__main__":
    with style(), mpl.rc_context({"svg.hashsalt": "data flow", "svg.fonttype": "path"}):
        draw().savefig(Path(__file__).with_name("data_flow.svg"), metadata={"Date": None})
