"""Roots within brackets, of many functions at once."""

import numpy as np
import pytest

from rannpde.domains.roots import bisected, bracketed_roots

FUNCTIONS = {
    "cubic": (lambda x, c: (x - c) ** 3, lambda x, c: 3 * (x - c) ** 2),
    "steep": (
        lambda x, c: np.tanh(1e4 * (x - c)),
        lambda x, c: 1e4 / np.cosh(np.minimum(1e4 * np.abs(x - c), 300)) ** 2,
    ),
    "falling": (lambda x, c: np.exp(-x) - np.exp(-c), lambda x, c: -np.exp(-x)),
    "misleading slope": (lambda x, c: x - c, lambda x, c: np.zeros_like(x)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("scale", [1.0, 1e-6, 1e6])
def test_roots_are_found_to_rounding_wherever_they_lie(name, scale):
    value, slope = FUNCTIONS[name]
    roots = np.random.default_rng(0).uniform(0.01, 0.99, 50)
    low, high = np.zeros(50), np.full(50, scale)

    def both(x):
        return value(x / scale, roots), slope(x / scale, roots) / scale

    rising = both(high)[0] > both(low)[0]
    found = bracketed_roots(both, low, high, 0.5 * (low + high), rising, 1e-15 * scale)
    # a root of order three is known to the third root of rounding only
    assert np.abs(found / scale - roots).max() < (1e-4 if name == "cubic" else 1e-13)
    lower, upper = bisected(lambda x: (both(x)[0] < 0) == rising, low, high)
    assert ((lower <= upper) & (np.abs(upper / scale - roots) < (1e-5 if name == "cubic" else 1e-12))).all()


def test_nothing_is_asked_where_there_are_no_brackets():
    low, high = bisected(lambda x: pytest.fail("asked"), np.empty(0), np.empty(0))
    assert len(low) == len(high) == 0
