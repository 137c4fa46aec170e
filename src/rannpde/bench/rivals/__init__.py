"""Classical solvers that stand beside ours in the same run, and compute the truths with finer grids."""
