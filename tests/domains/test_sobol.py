"""Sobol sequences are the same as those of SciPy, whatever the dimension, the generator and the calls."""

import warnings

import numpy as np
import pytest
from scipy.stats import qmc

from rannpde.domains.sobol import INITIAL, SobolSequence


@pytest.mark.parametrize("dim", range(1, len(INITIAL) + 1))
def test_the_points_are_those_of_scipy(dim):
    for seed in range(3):
        own, other = np.random.default_rng(seed), np.random.default_rng(seed)
        sequence, engine = SobolSequence(dim, own), qmc.Sobol(dim, scramble=True, rng=other)
        for count in (1, 3, 0, 60, 64, 1000):
            with warnings.catch_warnings():  # of draws whose number is no power of two
                warnings.simplefilter("ignore", UserWarning)
                wanted = engine.random(count)
            assert np.array_equal(sequence.draw(count), wanted)
        assert own.random() == other.random()


def test_scrambled_points_are_balanced():
    """Each of 2^k equal parts of an axis holds as many of 2^m points."""
    points = SobolSequence(4, np.random.default_rng(7)).draw(1024)
    for column in points.T:
        assert np.bincount((column * 64).astype(int), minlength=64).tolist() == [16] * 64
