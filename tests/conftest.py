"""What holds for all tests."""

import gc

import pytest
from hypothesis import settings

from draws import draws

settings.register_profile("drawn", max_examples=draws(40, 100))
settings.load_profile("drawn")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Thousands of collected tests and loaded modules stay to the end: the garbage collector need not look at them."""
    gc.collect()
    gc.freeze()
