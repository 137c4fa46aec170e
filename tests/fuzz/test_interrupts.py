"""Ctrl-C in a terminal: a few of the interrupts of ``tests/fuzz/interrupts.py``."""

from __future__ import annotations

import sys

import pytest


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
@pytest.mark.parametrize(("problem", "delay"), [("rod", 2.0), pytest.param("plate", 1.0, marks=pytest.mark.slow)])
def test_ctrl_c_in_a_terminal_loses_nothing(tmp_path, problem, delay):
    """Whatever the machine was doing at that time, there is a saved solution or a word that there was none."""
    from fuzz.interrupts import interrupted

    outcome, text = interrupted(tmp_path, problem, delay)
    assert outcome in ("kept", "nothing yet", "finished"), text
