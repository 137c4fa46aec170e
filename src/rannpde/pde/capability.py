"""What some problems contain, and only some methods can solve."""

from __future__ import annotations

from enum import Enum


class Capability(Enum):
    """A part of a problem that a method solves only if it says so; the value is the reason why it does not."""

    UNBOUNDED_SPACE = "space is all of R^d"
    FUNCTIONALS = "it contains {}, which is no value at the point itself"
    SLITS = "the domain has a slit, across which the solution jumps"
    INEQUALITIES = "a field is bounded by an inequality, which only the weak form solves"
    FREE_CORNERS = "free sides of a plate meet at {}, where only the weak form knows that no force acts"
