"""What holds for all tests."""

import gc

import pytest
from hypothesis import HealthCheck, settings

from draws import draws

# machines are shared: how long an input takes to be made says nothing about the test
settings.register_profile(
    "drawn", max_examples=draws(40, 100), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("drawn")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Thousands of collected tests and loaded modules stay to the end: the garbage collector need not look at them."""
    gc.collect()
    gc.freeze()
