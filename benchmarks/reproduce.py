"""The Navier–Stokes study of the paper: this package against plain NumPy normal equations, side by side.

    python benchmarks/reproduce.py       # the same as: rannpde bench paper

What is measured, and how, stands in src/rannpde/bench/paper.py.
"""

from __future__ import annotations

from rannpde.bench.paper import WIDTHS, cells_of, measured


def main() -> None:
    for line in measured(cells_of(), WIDTHS):
        print(line, flush=True)


if __name__ == "__main__":
    main()
