"""Time, memory and Ctrl-C: whenever a solve ends, what it has found comes back, and nothing foreign is raised."""

from __future__ import annotations

import os
import signal
import warnings
from functools import cache
from time import perf_counter, process_time, sleep

import numpy as np
import pytest

import rannpde as rp
from rannpde.checkpoints import Cause, Ended, affordable, checkpoint, factorising, guarded, reserve
from rannpde.errors import InputError
from rannpde.pde import budget as budgets
from rannpde.pde.budget import (
    PROBE_SIZE,
    RESOLVED,
    Budget,
    MeasuredSpeeds,
    Watch,
    deferred_interrupts,
    timed_by,
    watched,
)
from rannpde.pde.cells.constraints import continuity
from rannpde.pde.lines.features.basis import SVD_FLOPS, leading_svd, product
from rannpde.pde.memory import MEMORY_SHARE, default_memory
from rannpde.pde.monitor import Monitor, Status

UNIT = rp.Box(x=(0, 1), y=(0, 1))


def poisson(**more):
    return rp.Problem("laplace(u) = -exp(u)", UNIT, {"wall": rp.On("boundary", "u = 0")}, **more)


def heat():
    domain = rp.SpaceTime(t=(0, 1), x=(0, 1))
    conditions = {"start": rp.On("t=0", "u = x*(1 - x)"), "ends": rp.On(("x=0", "x=1"), "u = 0")}
    return rp.Problem("u_t = 0.1*u_xx + u*(1 - u)", domain, conditions)


def solved(problem, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return rp.solve(problem, **settings)


CASES = {
    "lines": (heat, 1e-4),
    "cells": (poisson, 1e-4),
    "collocation": (poisson, 1e-3),
    "trefftz": (lambda: rp.Problem("laplace(u) = 0", UNIT, {"wall": rp.On("boundary", "u = exp(x)*sin(y)")}), 1e-9),
    "weak": (lambda: rp.Problem("laplace(u) = -1", UNIT, {"wall": rp.On("boundary", "u = 0")}), 1e-5),
}


ASKED = ("lines", "cells", "collocation")
"""Methods with checkpoints; the iterations of the others are short."""


class PressedAt(Watch):
    """Presses Ctrl-C at one of its checkpoints."""

    count = 0
    when = 10**9

    def check(self):
        PressedAt.count += 1
        if PressedAt.count == PressedAt.when:
            self.budget.press()
        super().check()


@pytest.fixture
def pressed(monkeypatch):
    monkeypatch.setattr(budgets, "Watch", PressedAt)
    PressedAt.count, PressedAt.when = 0, 10**9
    return PressedAt


@cache
def whole_solve(method: str) -> tuple[Status, int]:
    """How a solve ends that nothing disturbs, and the number of its checkpoints."""
    make, tol = CASES[method]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(budgets, "Watch", PressedAt)
        PressedAt.count, PressedAt.when = 0, 10**9
        return solved(make(), tol=tol, method=method).status, PressedAt.count


@pytest.mark.parametrize("method", ASKED)
def test_ctrl_c_at_any_checkpoint_keeps_what_was_found(method, pressed):
    make, tol = CASES[method]
    status, total = whole_solve(method)
    points = make().domain.sample(50, rng=0)
    for when in np.random.default_rng(len(method)).integers(1, total + 1, 2):
        pressed.count, pressed.when = 0, int(when)
        kept = []
        try:
            solution = solved(make(), tol=tol, method=method, progress=kept.append)
        except KeyboardInterrupt:  # there was nothing yet
            assert not any(one.estimate is not None for one in kept)
            continue
        assert solution.status in (Status.INTERRUPTED, status)
        told = [one.estimate for one in kept if one.estimate is not None]
        assert not told or np.isfinite(solution.estimate) or np.isfinite(solution(points)).any()


@pytest.mark.parametrize("method", ASKED)
def test_time_that_ends_at_any_checkpoint_gives_a_result(method, pressed, monkeypatch):
    """The clock is set forward at one of the checkpoints: what comes back can be called and written to a file."""
    make, tol = CASES[method]
    _, total = whole_solve(method)
    for when in (1, *np.random.default_rng(7 * len(method)).integers(1, total + 1, 2)):
        pressed.count, pressed.when = 0, int(when)
        monkeypatch.setattr(Budget, "interrupted", property(lambda self: False))
        solution = solved(make(), tol=tol, method=method)
        assert solution.status in (Status.BUDGET, Status.CONVERGED), solution.reason
        assert solution(make().domain.sample(5, rng=0)).shape == (5,)
        monkeypatch.undo()
        monkeypatch.setattr(budgets, "Watch", PressedAt)


@pytest.fixture
def interruptible():
    """Ctrl-C raises KeyboardInterrupt, also where the tests were started in the background of a shell, which has it
    ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_a_real_signal_ends_a_solve_and_leaves_the_handler_as_it_was():
    before = signal.getsignal(signal.SIGINT)
    sent = []

    def send(progress):
        if not sent:
            sent.append(progress)
            os.kill(os.getpid(), signal.SIGINT)

    solution = solved(poisson(), tol=1e-10, method="cells", progress=send)
    assert solution.status is Status.INTERRUPTED
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("after", ["_judged", "reading"])
def test_a_signal_after_the_last_step_loses_nothing(after, monkeypatch):
    """After the last method has ended, and while a caller works with the solution."""
    before = signal.getsignal(signal.SIGINT)

    def interrupted(*arguments):
        os.kill(os.getpid(), signal.SIGINT)
        return arguments[0]

    with deferred_interrupts():
        if after == "_judged":
            monkeypatch.setattr("rannpde.pde.solve._judged", interrupted)
        solution = solved(
            rp.Problem("u_xx = exp(u)", rp.Interval(0, 1), {"ends": rp.On("boundary", "u = 0")}), tol=1e-6
        )
        if after == "reading":
            interrupted(0)
            with pytest.raises(KeyboardInterrupt):  # the second one is meant
                interrupted(0)
        assert solution.converged
    assert signal.getsignal(signal.SIGINT) is before


def test_an_interrupt_that_a_progress_function_raises_keeps_the_last_iteration():
    told = []

    def stop(progress):
        told.append(progress)
        if progress.estimate is not None:
            raise KeyboardInterrupt

    for method, (make, tol) in CASES.items():
        solution = solved(make(), tol=tol, method=method, progress=stop)
        assert solution.status in (Status.INTERRUPTED, Status.CONVERGED), method
        assert np.isfinite(solution(make().domain.sample(5, rng=0))).any()


def test_a_solve_without_time_gives_back_its_initial_guess(tmp_path):
    solution = solved(heat(), tol=1e-6, seconds=1e-9)
    assert solution.status is Status.BUDGET
    assert solution.method.name == "unsolved"
    assert "initial guess" in solution.reason
    values = solution(np.array([[0.0, 0.5], [0.3, 0.5]]))
    assert values[0] == pytest.approx(0.25)
    assert np.isnan(values[1])
    again = rp.load(solution.save(tmp_path / "guess.npz"))
    assert again(np.array([[0.0, 0.5]]))[0] == pytest.approx(0.25)
    assert str(solution.report()).startswith("u: DID NOT CONVERGE")


def test_memory_is_refused_before_it_is_taken():
    # not even a first trial fits, whatever memory the process has to use again
    with pytest.raises(InputError, match=r"memory is too small: .* more than the .* allowed.*memory="):
        solved(poisson(), tol=1e-6, memory=1e4, method=rp.Collocation(width=3000))
    with pytest.raises(InputError, match="memory is -1"):
        rp.solve(poisson(), memory=-1)


@cache
def heat_values():
    """Points, and the solution there to nine digits."""
    points = heat().domain.sample(200, rng=0)
    return points, solved(heat(), tol=1e-9, method="lines")(points)


@pytest.mark.parametrize("results", [1, 2])
def test_what_was_found_before_memory_ended_comes_back(monkeypatch, results):
    """The process holds 200 MB more from the first or second estimate on, of which 120 MB are allowed; a checkpoint of
    the next iteration sees it, and what comes back is the solution of that estimate."""
    found = []
    monkeypatch.setattr(budgets, "resident_memory", lambda: 1e9 + (2e8 if len(found) >= results else 0.0))
    monkeypatch.setattr(budgets, "READING_SHARE", np.inf)  # memory is read at every checkpoint

    def note(progress):
        if progress.estimate is not None:
            found.append(progress.estimate)

    solution = solved(heat(), tol=1e-9, memory=120e6, method="lines", progress=note)
    assert len(found) == results
    assert solution.status is Status.MEMORY
    assert "more than the 120 MB allowed" in solution.reason  # at a checkpoint, or when more is asked for
    points, wanted = heat_values()
    error = np.linalg.norm(solution(points) - wanted) / np.linalg.norm(wanted)
    assert error < 10 * solution.estimate
    assert 0.5 * found[-1] <= solution.estimate <= found[-1]


def test_the_default_is_half_of_what_is_free():
    limit = default_memory()
    assert limit is None or limit > 0


GROUPS = {
    "second": ("", "memory.max", "memory.current", ""),
    "first": ("memory/", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_"),
}


@pytest.mark.parametrize("version", GROUPS)
@pytest.mark.parametrize(
    ("limit", "free"), [("max", 8e9), ("6000000000", 5e9), ("2000000000", 1e9), ("900000000", 0.0)]
)
def test_pages_of_files_are_free_memory_also_in_a_container(tmp_path, version, limit, free):
    """Of 4 GB used, 3 GB are pages of files."""
    folder, most, used, prefix = GROUPS[version]
    group = tmp_path / "sys/fs/cgroup" / folder
    group.mkdir(parents=True)
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemTotal:       16000000 kB\nMemAvailable:    7812500 kB\n")
    (group / most).write_text(f"{limit}\n")
    (group / used).write_text("4000000000\n")
    (group / "memory.stat").write_text(f"{prefix}inactive_file 2000000000\n{prefix}active_file 1000000000\nanon 1000\n")
    assert default_memory(tmp_path) == pytest.approx(MEMORY_SHARE * free)


def test_a_system_that_does_not_tell_sets_no_limit(tmp_path):
    assert default_memory(tmp_path) is None


def test_seconds_may_be_those_of_the_processor():
    """Whoever else uses the machine, a solve has the same time: waiting does not count, and work does."""
    with timed_by(process_time):
        budget = Budget(seconds=0.02)
    inner = Monitor(None, budget).within(0.5)
    sleep(0.05)
    assert not budget.exhausted
    assert not inner.exhausted
    while process_time() < budget.started + 0.021:
        pass
    assert budget.exhausted
    assert inner.exhausted
    assert Budget(seconds=60.0).clock is perf_counter  # only within the block


def test_a_solve_by_the_processors_time_ends_by_it():
    waiting = [0.0]

    def clock() -> float:  # an hour by this clock after a hundred questions
        waiting[0] += 36.0
        return waiting[0]

    with timed_by(clock):
        solution = solved(poisson(), tol=1e-12, method="cells", seconds=1800.0)
    assert solution.status is Status.BUDGET


def test_a_watch_raises_at_the_deadline_and_once_more_at_the_latest_moment(monkeypatch):
    now = [100.0]
    budget = Budget(seconds=10.0, started=100.0, clock=lambda: now[0])
    with watched(budget):
        checkpoint()
        now[0] = 110.1
        with pytest.raises(Ended) as stop:
            checkpoint()
        assert stop.value.cause is Cause.TIME
        checkpoint()  # the result is being assembled
        now[0] = 111.6
        with pytest.raises(Ended):
            checkpoint()
        checkpoint()
    checkpoint()


def test_a_factorisation_that_cannot_end_in_time_is_not_begun(monkeypatch):
    now = [0.0]
    budget = Budget(seconds=10.0, started=0.0, clock=lambda: now[0])
    budget.speeds.known["qr"] = 1e9
    with watched(budget):
        with factorising("qr", 5e9):
            pass
        budget.speeds.known["qr"] = 1e9
        assert affordable(0.1, "qr") == pytest.approx(1e9)
        with pytest.raises(Ended), factorising("qr", 5e10):
            raise AssertionError("it was begun")


@pytest.mark.parametrize("tick", [1e-9, 4e-3])
def test_the_speed_of_a_product_is_measured_by_clocks_that_advance_in_steps(tick, monkeypatch):
    """A product took no time by the clock of a process whose time is limited, which advances with the scheduler: its
    speed allowed everything, and solves of a second took more than two."""
    now = [0.0]

    def clock() -> float:
        now[0] += 1e-3  # what a product takes
        return now[0] // tick * tick

    monkeypatch.setattr(budgets, "perf_counter", lambda: 0.0)
    seconds = MeasuredSpeeds().predicted(2.0 * PROBE_SIZE**3, "product", clock)
    assert 1e-3 / 2 < seconds < 2 * 1e-3


def test_factorisations_that_a_clock_does_not_resolve_are_measured_together():
    speeds = MeasuredSpeeds()
    speeds.known["qr"] = 1e9
    for seconds in (0.0, RESOLVED / 2, 0.0):
        speeds.record(1e8, "qr", seconds)
        assert speeds.known["qr"] == 1e9
    speeds.record(1e8, "qr", RESOLVED / 2)
    assert speeds.known["qr"] == pytest.approx(4e8 / RESOLVED)
    speeds.record(1e8, "qr", RESOLVED)
    assert speeds.known["qr"] == pytest.approx(1e8 / RESOLVED)


def test_products_of_features_are_predicted():
    """That of all features and the functions that vanish on the boundary took more than half a second, unasked."""
    watch = Watch(Budget(seconds=10.0, clock=lambda: 0.0, started=0.0))
    watch.budget.speeds.known["product"] = 1e6
    with guarded(watch):
        assert product(np.ones((3, 2)), np.ones((2, 4))).shape == (3, 4)
        with pytest.raises(Ended):
            product(np.ones((500, 500)), np.ones((500, 500)))


@pytest.mark.parametrize("decaying", [True, False])
def test_a_full_decomposition_is_predicted_apart_from_the_search_for_a_range(decaying):
    """Random combinations of the columns suffice where singular values decay. Where they do not, the whole matrix is
    decomposed after that, which takes several times as long: predicted by the speed of the other, it ended far too
    late."""
    rng = np.random.default_rng(0)
    sizes = 10.0 ** -np.arange(0, 60, 0.3) if decaying else np.ones(200)
    matrix = np.linalg.qr(rng.normal(size=(400, 200)))[0] * sizes @ np.linalg.qr(rng.normal(size=(200, 200)))[0]
    begun = []

    class Recorded(Watch):
        def begin(self, flops, kind):
            begun.append((kind, flops))

    with guarded(Recorded(Budget(seconds=100.0))):
        left, singular, right = leading_svd(matrix.copy())
    assert np.abs((left * singular) @ right - matrix).max() < 1e-13
    (first, search), (second, decomposition) = begun
    assert (first, second) == ("range", "svd")
    whole = (SVD_FLOPS[0] * 400 + SVD_FLOPS[1] * 200) * 200**2
    assert decomposition < whole / 3 if decaying else decomposition == whole
    assert 0 < search < whole


def test_memory_is_asked_only_below_a_solve():
    reserve(1e18, "everything")
    with watched(Budget(memory=1e6)):
        with pytest.raises(Ended, match=r"everything would take the memory from .* to 1000000000\.0 GB"):
            reserve(1e18, "everything")
        with guarded(None):
            reserve(1e18, "everything")


def test_a_budget_within_another_shares_its_interrupt():
    monitor = Monitor(None, Budget(seconds=100.0))
    inner = monitor.within(0.5).rest()
    assert 45 < inner.budget.remaining < 51
    monitor.budget.press()
    assert inner.exhausted
    assert inner.ending is Status.INTERRUPTED


def test_the_budget_is_asked_for_every_cell_whose_faces_are_coupled(monkeypatch):
    """Some hundred cells took more than a second without a question, and the solve overran its time by as much."""
    asked = []
    monkeypatch.setattr(continuity, "checkpoint", lambda: asked.append(1))
    solution = solved(poisson(), tol=1e-4, method="cells")
    assert len(asked) >= sum(one.width for one in solution.history.iterations) > 0
