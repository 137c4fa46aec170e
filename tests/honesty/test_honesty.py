"""Random problems with known solutions: nothing that says it converged is wrong, and nothing hangs or breaks.

The cheap families only, always the same seeds, more of them in ``make test-all``; ``make honesty COUNT=5000`` goes on
from there with all of them.
"""

from __future__ import annotations

import pytest

import honesty.delicate
import honesty.rough
import honesty.spaces  # noqa: F401 (their families join the others)
from draws import FULL, draws, seeds
from honesty.cases import FAMILIES, OWN_SEEDS, case
from honesty.judge import Tally, judge

CHEAP = {
    "transport": (1, 6), "decaying_waves": (1, 6), "forced_circle": (1, 4), "pulse": (4, 25), "backward_heat": (1, 3),
    "diffusion": (1, 8), "reaction": (1, 8), "divergence": (1, 4), "inflow": (1, 3), "wave": (1, 6),
    "stationary": (3, 20), "layer": (8, 43), "first_order": (6, 30), "resonance": (1, 1), "insulated": (1, 1),
}  # fmt: skip
"""Family → cases in ``make test``, a second or two of each, and in ``make test-all``; what once was found wrong is
in test_known."""
SOUND = {
    "fast_waves": (5, 20), "motions": (1, 8), "bent": (1, 6), "shapes": (1, 3), "moving_shapes": (1, 2),
    "many_dimensions": (1, 2), "vortices": (1, 2), "mixed_conditions": (1, 4), "elasticity": (1, 3), "contrast": (1, 4),
    "crack": (1, 4),
}  # fmt: skip
"""Families whose last iteration is often far better than the one before, so that estimates may be too large."""
SECONDS = 60.0
"""Far more than any of them needs, so that a busy machine does not decide."""


EXPENSIVE = {
    "cauchy", "contradiction", "evolution_by_collocation", "moving_plane", "narrow_load", "ordinary", "outflow",
    "plane", "rough_circle", "rough_heat", "schroedinger", "unsupported", "checkerboard", "beam_in_space",
}  # fmt: skip
"""Families that only ``make honesty`` runs."""


def test_every_family_is_run_here_or_is_known_to_be_expensive():
    assert not CHEAP.keys() & SOUND.keys()
    assert CHEAP.keys() | SOUND.keys() == FAMILIES.keys() - EXPENSIVE


@pytest.mark.parametrize("family", CHEAP)
def test_what_converged_is_right(family):
    tally, drawn = Tally(), seeds(family, *CHEAP[family])
    for seed in drawn:
        tally.add(judge(case(seed, (family,)), SECONDS))
    print("\n" + tally.table())
    assert not tally.defects, "\n".join(map(str, tally.defects))
    counts = tally.counts[family]
    assert counts["tried"] == len(drawn)
    assert not counts["refused"]
    known = 0 if family == "backward_heat" else counts["tried"] - counts["unknown"]  # noise decides there
    # estimates of a random problem are a matter of luck at the edge of the factor of ten, more so in few draws
    assert counts["honest"] >= (0.8 if FULL else 0.6) * known, tally.table()


@pytest.mark.parametrize("family", SOUND)
def test_what_converged_is_right_and_no_estimate_too_small(family):
    tally = Tally()
    for seed in seeds(family, *SOUND[family]):
        tally.add(judge(case(seed, (family,)), SECONDS))
    assert not tally.defects, "\n".join(map(str, tally.defects))
    counts = tally.counts[family]
    assert counts["converged"] >= 0.7 * counts["tried"], tally.table()
    assert counts["too small"] <= 0.1 * counts["tried"], tally.table()


@pytest.mark.parametrize("family", OWN_SEEDS)
def test_nothing_delicate_is_converged_and_wrong(family):
    """What has several solutions, or cannot be resolved in these seconds, need not converge."""
    for seed in seeds(family, 1, 12):
        found = judge(case(seed, (family,)), 2.0)
        assert not found.defect, str(found)
        assert "refused" not in found.words or "not unique" in found.told, str(found)


def test_data_that_do_not_balance_are_refused_by_name():
    for seed in range(draws(2, 4)):
        found = judge(case(seed, ("unsupported",)), SECONDS)
        assert "refused" in found.words
        assert "a constant in u" in found.told


@pytest.mark.parametrize("family", [*FAMILIES, *OWN_SEEDS])
def test_a_case_can_be_printed_and_repeated(family):
    one, other = (case(3, (family,)) for _ in range(2))
    assert str(one).split(", exact")[0] == str(other).split(", exact")[0]
    assert f"seed 3, {family}" in str(one)
