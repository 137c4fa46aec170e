"""What the fuzzers share: how many cases, a watchdog for every one, and a tally of what came of them.

``RANNPDE_FUZZ`` is the number of cases of each file; then they are new ones every time, otherwise always the same.
"""

from __future__ import annotations

import faulthandler
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from hypothesis import HealthCheck, settings

from draws import draws

CASES = int(os.environ.get("RANNPDE_FUZZ", draws(80, 700)))
SECONDS = 5.0
"""Of the processor's time, so that a busy machine does not matter; a case takes milliseconds."""
PATIENCE = 120.0
"""Seconds by the clock after which the process ends, for code that neither works nor can be interrupted."""


def fuzzing(share: float) -> Callable[[Any], Any]:
    """Settings of one fuzzer that has this share of the cases of its file."""
    return settings(
        max_examples=max(1, round(share * CASES)),
        derandomize="RANNPDE_FUZZ" not in os.environ,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


class Hung(Exception):
    """A case took longer than the watchdog waits."""


@contextmanager
def watchdog(case: str) -> Iterator[None]:
    """Hung after some seconds; code that cannot be interrupted ends the process, with its traceback."""

    def bark(*_: object) -> None:
        raise Hung(f"no answer within {SECONDS:g} s: {case[:500]!r}")

    faulthandler.dump_traceback_later(PATIENCE, exit=True)
    old = signal.signal(signal.SIGVTALRM, bark)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, old)
        faulthandler.cancel_dump_traceback_later()


def report(tally: Counter[str]) -> None:
    """To be read with ``pytest -s``; anything uncaught or hung fails its test."""
    print("\n" + ", ".join(f"{name} {count}" for name, count in sorted(tally.items())))
