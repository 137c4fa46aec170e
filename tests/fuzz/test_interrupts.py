"""Ctrl-C in a terminal: a few of the interrupts of ``tests/fuzz/interrupts.py``."""

from __future__ import annotations

import sys

import pytest

from draws import some


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
@pytest.mark.parametrize(("problem", "delay"), some([("rod", 0.5), ("rod", 2.0), ("plate", 1.0)], 1))
def test_ctrl_c_in_a_terminal_loses_nothing(tmp_path, problem, delay):
    """Whatever the machine was doing at that time, there is a saved solution or a word that there was none."""
    from fuzz.interrupts import interrupted

    outcome, text = interrupted(tmp_path, problem, delay)
    assert outcome in ("kept", "nothing yet", "finished"), text
