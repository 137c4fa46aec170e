"""Which files pytest looks into for examples in docstrings: those that have some.

To look for them, pytest imports a module and inspects every object in it, in every process of a parallel run. Most
modules have none, and test modules never do.
"""

from collections.abc import Generator
from pathlib import Path

import pytest
from _pytest.doctest import DoctestModule


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    found = yield
    if any(isinstance(one, DoctestModule) for one in found) and ">>>" not in file_path.read_text("utf-8"):
        return [one for one in found if not isinstance(one, DoctestModule)]
    return found
