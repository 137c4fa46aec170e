"""Classical solvers that stand beside ours in the same run, and compute the reference solutions with finer grids."""
