"""Pictures of solutions: the one room below the studies that knows matplotlib, loaded when ``plot`` is called."""

from rannpde.plotting.animation import animate
from rannpde.plotting.figures import plot_ensemble, plot_solution
from rannpde.plotting.page import write_page

__all__ = ["animate", "plot_ensemble", "plot_solution", "write_page"]
