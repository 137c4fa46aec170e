"""How much the rows of cells count near re-entrant corners where a field is unbounded, as the pressure of a flow.

No cell that touches such a corner satisfies its equations. With the full weight least squares trade this residual
against others, far away, and the whole solution is off (pollution). Rows of all kinds are weighed by a power of their
distance from the corner, as in weighted-norm least squares. Where all fields are bounded, as r^(2/3), small cells do
better without: weights cost the L-shape a digit.
"""

from __future__ import annotations

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.domain import Domain
from rannpde.pde.cells.tree import Node

NEAR = 0.25
"""Distance from a corner within which rows weigh less, as a share of the shortest side of the domain."""


def calm(tree: Node, domain: Domain, power: float) -> Array:
    """Weights (leaves,) of the rows of cells: (r/R)^power at the distance r < R of a leaf from a corner, else 1.

    >>> from rannpde.domains import Box
    >>> shape = Box(x=(0, 2), y=(0, 2)) - Box(x=(1, 2), y=(1, 2))
    >>> tree = Node(np.array([(0.0, 2.0), (0.0, 2.0)])).split(0).refined_leaves((1,))
    >>> calm(tree, shape, 0.5).tolist()
    [1.0, 1.0, 1.0, 1.0]
    >>> round(float(calm(tree.refined_leaves((0, 1)).refined_leaves((0, 1)), shape, 1.0).min()), 3)
    0.354
    """
    found = np.ones(len(tree.leaves))
    middles = np.array([leaf.bounds.mean(axis=1) for leaf in tree.leaves])
    for corner in domain.corners:
        size = len(corner.point)  # the last coordinates: time may stand before them
        away = np.linalg.norm(middles[:, -size:] - np.asarray(corner.point), axis=1)
        found = np.minimum(found, away / (NEAR * float(tree.lengths[-size:].min())))
    return np.asarray(found**power)
