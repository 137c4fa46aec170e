"""Random small problems that are solved: no foreign exception and no overrun, whatever the statement.

``python tests/fuzz/solved.py`` runs ten thousand of them; ``make fuzz`` some that are new every time.
"""

from __future__ import annotations

import os
from collections import Counter

import numpy as np
import pytest

from draws import draws
from fuzz.solved import FOREIGN, attempt
from fuzz.watch import report

COUNT = int(os.environ.get("RANNPDE_FUZZ", "0")) // 10 or draws(8, 24)
"""A tenth of the cases of other fuzzers: each of these is solved."""
ALLOWED = 20.0
"""Seconds of the processor's time after which a solve with a budget of one second has overrun it here. Compilation of
kernels and the first statement of a process take several."""


@pytest.mark.parametrize("part", range(4))
def test_whatever_is_solved_raises_only_errors_of_ours(part):
    tally: Counter[str] = Counter()
    fresh = int(np.random.SeedSequence().generate_state(1)[0]) if "RANNPDE_FUZZ" in os.environ else 0
    for number in range(COUNT // 4):
        one = attempt(fresh + 1_000_000 * part + number)
        assert not one.outcome.startswith(FOREIGN), (one.outcome, one.text)
        assert one.seconds < ALLOWED, one.text
        tally[one.outcome] += 1
    report(tally)
