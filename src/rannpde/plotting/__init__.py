"""Pictures of solutions: the one room below the studies that knows matplotlib, loaded when ``plot`` is called."""

from rannpde.plotting.figures import plot_ensemble, plot_solution

__all__ = ["plot_ensemble", "plot_solution"]
