"""The empirical numbers behind regression along paths, each with its unit and its reason."""

from __future__ import annotations

from dataclasses import dataclass

from rannpde.pde.tolerance import GAIN


@dataclass(frozen=True)
class PathsTuning:
    """Numbers that were chosen by experiment; ``benchmarks/many_dimensions.py`` is what they were tried on.

    first_steps : nodes of the first grid in time, a multiple of 4 for Simpson's rule on two grids
    most_steps : where refinement in time ends; memory and cost grow with it
    first_width : neurons with a ridge of the first hidden layers
    paths_per_column : training paths per column of the regression; the variance of a fit is columns/paths
    linear_share : components are columns of their own while there are fewer of them than this
    pilot : fresh paths that measure the error of a pair of models before most of the paths are spent
    softness : widths of smoothed minima and maxima, in the noise still to come: for d = 100 independent components
        that of the conditional mean is about one half, and neighbours of it are offered
    penalty : ridge of the regressions on columns of unit size: far below their noise, far above rounding
    sparse : share of ridges along single coordinates
    gain : an improvement of variance × cost that is worth another iteration
    memory : bytes of training states
    block : bytes of an array of a block of fresh paths, a few of which fit the second cache of a core
    """

    first_steps: int = 8
    most_steps: int = 256
    first_width: int = 32
    paths_per_column: int = 24
    linear_share: int = 400
    pilot: int = 4096
    softness: tuple[float, ...] = (0.4, 0.8, 1.6)
    penalty: float = 1e-9
    sparse: float = 0.3
    gain: float = 1 / GAIN
    memory: int = 400 * 2**20
    block: int = 2**20
