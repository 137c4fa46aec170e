"""Random eigenvalue problems on shapes: every answer within ten bounds of the truth, none missing.

Few are drawn here; ``python tests/pde/spectrum/shapes.py 0 60`` draws many (all within two bounds).
"""

from __future__ import annotations

import pytest

from draws import FULL, some
from pde.spectrum.shapes import KINDS, shape_case

CHEAP = [seed for seed in range(len(KINDS)) if KINDS[seed] not in ("polygon", "holes")]
ALSO_ELSEWHERE = ("disc", "steklov", "rectangle", "density", "equilateral", "isosceles")
"""Kinds that test_shapes has, too, and triangles: one is that of the generator's own test below."""
DRAWN = [seed for seed in CHEAP if FULL or KINDS[seed] not in ALSO_ELSEWHERE]


@pytest.mark.parametrize("seed", some(DRAWN, 4))
def test_random_shapes_are_within_their_bounds(seed: int) -> None:
    case = shape_case(seed)
    ratio, found = case.ratio(seed)
    assert found.converged
    assert ratio <= 10
    if found.assurance.startswith("guaranteed"):
        assert ratio <= 1


def test_the_generator_can_fail() -> None:
    """A wrong reference is noticed: the comparison is no tautology."""
    case = shape_case(KINDS.index("isosceles"))
    wrong = type(case)(case.name, case.problem, lambda number: 1.001 * case.known(number), case.count, case.tol)
    assert wrong.ratio()[0] > 10
