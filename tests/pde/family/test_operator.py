"""Operators learned in closed form."""

import numpy as np
import pytest

import rannpde as rp

X = np.arange(16) / 16


def inputs(count, rng):
    """Random periodic functions: a mean and three waves."""
    rng = np.random.default_rng(rng)
    waves = sum(
        rng.normal(size=(count, 1)) / k * np.sin(2 * np.pi * k * X) + rng.normal(size=(count, 1)) / k
        * np.cos(2 * np.pi * k * X)
        for k in (1, 2, 3)
    )  # fmt: skip
    return 0.5 * waves + rng.normal(size=(count, 1))


def advected(functions):
    """Heat that is carried by the mean of the function: it commutes with shifts, and is not linear."""
    modes = np.fft.rfft(functions, axis=1)
    k = np.arange(modes.shape[1])
    carried = np.exp(-2j * np.pi * k * functions.mean(axis=1, keepdims=True) - 0.02 * (2 * np.pi * k) ** 2)
    return np.fft.irfft(modes * carried, 16)


@pytest.mark.parametrize("periodic", [True, False])
def test_a_linear_operator_is_exact(periodic):
    rows = inputs(120, 0)
    smooth = np.fft.irfft(np.fft.rfft(rows, axis=1) * np.exp(-0.1 * np.arange(9) ** 2), 16)
    operator = rp.Operator.fit(rows, smooth, periodic=periodic, width=50)
    assert operator.held_out < 1e-5
    fresh = inputs(20, 1)
    assert operator.error(fresh, np.fft.irfft(np.fft.rfft(fresh, axis=1) * np.exp(-0.1 * np.arange(9) ** 2), 16)) < 1e-5


def test_the_held_out_error_is_that_of_fresh_examples():
    rows = inputs(400, 2)
    operator = rp.Operator.fit(rows, advected(rows), width=300)
    fresh = inputs(300, 3)
    error = operator.error(fresh, advected(fresh))
    assert error < 0.3
    assert error / 2 < operator.held_out < 2 * error  # 40 held-out examples: a quarter of it is its standard error


def test_shifts_are_learned_exactly():
    rows = inputs(80, 4)
    operator = rp.Operator.fit(rows, advected(rows), periodic=True, width=100)
    fresh = inputs(5, 5)
    shifted = operator(np.roll(fresh, 7, axis=1))
    assert np.allclose(shifted, np.roll(operator(fresh), 7, axis=1), atol=1e-9)


def test_units_do_not_matter():
    rows = inputs(100, 6)
    plain = rp.Operator.fit(rows, advected(rows), width=100)
    scaled = rp.Operator.fit(1e6 * rows + 3e6, 1e-7 * advected(rows), width=100)
    assert scaled.held_out == pytest.approx(plain.held_out, rel=0.05)


def test_solves_of_a_problem_are_learned():
    def solution(load):
        return load.mean() * X * (1 - X) / 2

    operator = rp.Operator.learn(inputs(40, 7), solution, width=20)
    assert operator.held_out < 1e-6


def test_files(tmp_path):
    rows = inputs(60, 8)
    for periodic in (True, False):
        operator = rp.Operator.fit(rows, advected(rows), periodic=periodic, width=30)
        again = rp.load(operator.save(tmp_path / "operator.npz"))
        assert np.allclose(again(rows), operator(rows), rtol=1e-12, atol=1e-12)
        assert again.report() == operator.report()
        assert operator(rows[0]).shape == (16,)


def test_wrong_input():
    rows = inputs(30, 9)
    for arguments in ((rows[:5], rows[:5]), (rows, rows[:7]), (rows[0], rows)):
        with pytest.raises(rp.InputError):
            rp.Operator.fit(*arguments)
    with pytest.raises(rp.InputError, match="periodic grid"):
        rp.Operator.fit(rows, rows[:, ::2], periodic=True)
    with pytest.raises(rp.InputError, match="16 values"):
        rp.Operator.fit(rows, rows, width=5)(rows[:, :3])
