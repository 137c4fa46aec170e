"""Largest and smallest values in time, and frequencies: of strings in random units, and what is refused."""

import numpy as np
import pytest

import rannpde as rp
from draws import draws
from rannpde.pde.outputs.signals import Signal
from rannpde.pde.problem.toml import from_table, to_table


def string(seed):
    """A string u = o + a cos(ω (t - t0)) sin(π x / L): its period, and the problem over some periods of it."""
    rng = np.random.default_rng(seed)
    length, speed, size = (10.0 ** rng.uniform(-2, 2, 3)).tolist()
    offset = float(rng.choice([0.0, 3.0])) * size
    omega = np.pi * speed / length
    period = 2 * np.pi / omega
    start = float(rng.uniform(-1, 1)) * period
    end = start + float(rng.uniform(2.6, 4.0)) * period
    wave = f"{offset!r} + {size!r}*cos({omega!r}*(t - {start!r}))*sin(pi*x/{length!r})"
    outputs = {
        "highest": rp.Output(f"u({length / 2!r})", kind="maximum in time"),
        "lowest": rp.Output(f"u({length / 2!r})", kind="minimum in time", t=(start + 0.4 * period, end)),
        "sum": rp.Output("u", kind="maximum in time", t=(start + 0.7 * period, start + 1.4 * period)),
        "rate": rp.Output(f"u({length / 3!r})", kind="frequency"),
    }
    conditions = {
        "start": rp.On(f"t={start!r}", [f"u = {wave.replace('t - ', f'{start!r} - ')}", "u_t = 0"]),
        "ends": rp.On("boundary", f"u = {offset!r}"),
    }
    domain = rp.SpaceTime(t=(start, end), x=(0, length))
    problem = rp.Problem(f"u_tt = {speed**2!r}*u_xx", domain, conditions, outputs=outputs)
    exact = {
        "highest": offset + size, "lowest": offset - size, "sum": length * (offset + 2 * size / np.pi),
        "rate": 1 / period,
    }  # fmt: skip
    return problem, exact, start, period


@pytest.mark.parametrize("seed", range(draws(1, 3)))
def test_a_string_swings_as_it_should(seed):
    problem, exact, start, period = string(seed)
    solution = rp.solve(problem, tol=1e-6)
    assert solution.converged
    for name, value in exact.items():
        found = solution.outputs[name]
        assert found.converged
        assert abs(float(found) - value) <= found.bound + 1e-6 * abs(value)
        assert found.bound < 1e-3 * abs(value)
    assert solution.outputs["sum"].location[0] == pytest.approx(start + period, abs=1e-2 * period)
    assert "between t" in str(problem.outputs["sum"])
    assert from_table(to_table(problem)).outputs == problem.outputs


def test_signals_that_do_not_oscillate_have_no_frequency():
    times = np.linspace(0, 1, 50)
    rising = Signal(times, times**2)
    assert np.isnan(rising.frequency()[0])
    assert rising.largest(1.0) == pytest.approx((1.0, 1.0))
    assert rising.within(2.0, 3.0) is None
    drifting = Signal(times, np.sin(40 * times * (1 + times)))
    assert drifting.frequency()[1] > 0.1 * drifting.frequency()[0]  # its last period is not like the others


@pytest.mark.parametrize(
    ("output", "words"),
    [
        (rp.Output("u(0.5)", kind="frequency", t=(0.0, 9.0)), "between 0 and 1"),
        (rp.Output("dn(u)", kind="maximum in time"), "name a side"),
    ],
)
def test_what_cannot_be_looked_at_in_time_is_refused(output, words):
    conditions = {"t=0": "u = sin(pi*x)", "boundary": "u = 0"}
    with pytest.raises(rp.InputError, match=words):
        rp.Problem("u_t = u_xx", rp.SpaceTime(t=(0, 1), x=(0, 1)), conditions, outputs={"m": output})
    if output.t is not None:
        with pytest.raises(rp.InputError, match="no time"):
            rp.Problem("u_xx = 1", rp.Box(x=(0, 1)), {"boundary": "u = 0"}, outputs={"m": output})
        with pytest.raises(rp.InputError, match="first and last"):
            rp.Output("u(0.5)", kind="frequency", t=(1.0, 0.0))
