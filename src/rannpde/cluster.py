"""Dask, where it is there: what comes from it, the client in use, work on its workers, and what to say when it fails.

Dask is the optional extra ``rannpde[distributed]``; nothing here imports it before an object of Dask is met.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any
from uuid import uuid4

import numpy as np

from rannpde.arrays import Array
from rannpde.errors import InputError, reject, require
from rannpde.threads import one_core

EXTRA = "pip install 'rannpde[distributed]'"
POLL_SECONDS = 0.2
"""How often the client looks up from waiting: what a progress bar needs; the end is noticed at once."""

CONNECT_SECONDS = 20.0
"""How long a scheduler may take to answer: one that is busy takes some seconds."""


class ClusterError(InputError):
    """The cluster cannot be reached, was lost, or loses workers again and again; the message says what to do."""


@dataclass(frozen=True)
class Blocks:
    """How far a distributed fit is: blocks of rows that are summed, of how many, seconds since it began."""

    done: int
    total: int
    seconds: float

    def __str__(self) -> str:
        return f"{self.done} of {self.total} blocks, {self.seconds:.1f} s"


def require_dask(argument: str) -> None:
    """Refuse the argument unless Dask and its scheduler are installed."""
    for name in ("dask.array", "distributed"):
        try:
            import_module(name)
        except ImportError:
            reject(argument, "Dask's", f"a NumPy array, as the package {name.split('.')[0]} is not here", EXTRA)


def current_client() -> Any | None:
    """The client that is in use, or None; a program that never made one pays nothing."""
    if "distributed" not in sys.modules:
        return None
    from distributed import Client

    try:
        client = Client.current()
    except ValueError:
        return None
    if client.status == "closed":  # one that was closed within its own ``with``
        return None
    if client.asynchronous:
        reject("the current client", "asynchronous", "an ordinary one", "use Client(…) without asynchronous=True")
    return client


def connect(address: str) -> Any:
    """A client of the scheduler at that address; ClusterError when none answers in time."""
    require_dask("scheduler")
    from distributed import Client

    try:
        return Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ClusterError(
            f"scheduler {address} does not answer ({_first_line(error)}); start one with 'dask scheduler' and workers "
            "with 'dask worker ADDRESS', and give the address that the scheduler prints, like tcp://host:8786"
        ) from None


def map_rows(
    function: Callable[..., Any], owner: Any, points: Any, *arguments: Any, dim: int, shape: tuple[int, ...]
) -> Any:
    """A Dask array of rows of that shape: function(owner, block, *arguments) of every block of rows of the points.

    points : a Dask array (M, dim), in any chunks; (M,) too where dim is 1
    """
    require_dask("points")
    import dask.array as da
    from dask import delayed

    require(isinstance(points, da.Array), "points", type(points).__name__, "an array", "one of NumPy's or of Dask's")
    fitting = points.ndim in (1, 2) and (points.shape[1:] or (1,)) == (dim,)
    require(fitting, "points with shape", points.shape, f"of shape (M, {dim})", "one row per point")
    rows = points[:, None] if points.ndim == 1 and shape else points
    rows = rows.rechunk({1: -1}) if rows.ndim == 2 else rows
    return rows.map_blocks(
        _on_block,
        function,
        delayed(owner, pure=True, traverse=False),  # one key: it travels once to each worker
        arguments,
        dtype=float,
        meta=np.empty((0,) * (1 + len(shape))),
        chunks=(rows.chunks[0], *((size,) for size in shape)),
        drop_axis=[1] if rows.ndim == 2 and not shape else [],
    )


def _on_block(
    block: Array, function: Callable[..., Array], owner: Any, arguments: tuple[Any, ...], block_id: tuple[int, ...]
) -> Array:
    with one_core():
        try:
            return function(owner, block, *arguments)
        except InputError as error:
            raise InputError(f"block {block_id[0]}: {error}") from None


def tell(topic: str, message: Iterable[Any]) -> None:
    """Send plain numbers from inside a task to the client that waits for it; outside a worker nothing happens."""
    from distributed import get_worker

    with suppress(ValueError):
        get_worker().log_event(topic, [fact.item() if isinstance(fact, np.generic) else fact for fact in message])


def new_topic() -> str:
    """A name under which the tasks of one call report their progress."""
    return f"rannpde-{uuid4().hex}"


def compute(lazy: Any, topic: str = "", listen: Callable[[Any], None] | None = None) -> Any:
    """The value of a delayed object: on the current client, or by Dask's own threads when there is none.

    listen : called, in this thread, with every message that tasks send under the topic; Ctrl-C cancels the tasks
    """
    client = current_client()
    if client is None:
        return lazy.compute()
    with cluster_errors(client), listening(client, topic) as messages:
        future = client.compute(lazy)
        try:
            for _ in waiting([future]):
                while messages and listen is not None:
                    listen(messages.popleft())
            return future.result()
        finally:
            future.cancel()


def call_all(
    function: Callable[..., Any],
    calls: Sequence[Sequence[Any]],
    topic: str = "",
    listen: Callable[[Any], None] | None = None,
) -> list[Any]:
    """function(*call) for every call, on the current client; the first error ends all. ``listen`` as in ``compute``."""
    client = current_client()
    assert client is not None
    with cluster_errors(client), listening(client, topic) as messages:
        futures = [client.submit(function, *call, pure=False) for call in calls]
        try:
            for _ in waiting(futures):
                while messages and listen is not None:
                    listen(messages.popleft())
                for future in futures:
                    if future.status == "error":
                        future.result()
            return [future.result() for future in futures]
        finally:
            client.cancel(futures)


@contextmanager
def listening(client: Any, topic: str) -> Iterator[deque[Any]]:
    """Messages of tasks under that topic, in the order in which they come."""
    messages: deque[Any] = deque()
    client.subscribe_topic(topic, lambda event: messages.append(event[1]))
    try:
        yield messages
    finally:
        if client.status == "running":
            client.unsubscribe_topic(topic)


def waiting(futures: list[Any]) -> Iterator[None]:
    """Turns of a loop that ends when all futures are done, with a last turn then."""
    from distributed import wait

    while any(not future.done() for future in futures):
        with suppress(TimeoutError):
            wait(futures, timeout=POLL_SECONDS)
        yield
    yield


@contextmanager
def cluster_errors(client: Any, kept: str = "") -> Iterator[None]:
    """Dask's own failures as a ClusterError that says what to do; kept: what was not lost."""
    from distributed import CancelledError
    from distributed.comm import CommClosedError
    from distributed.scheduler import KilledWorker

    end = f"; {kept}" if kept else ""
    try:
        yield
    except KilledWorker as error:
        raise ClusterError(
            f"{killed(error)}; give workers more memory, or use a smaller width or smaller chunks{end}"
        ) from None
    except (CancelledError, CommClosedError, OSError) as error:
        if isinstance(error, OSError) and client.status == "running" and not isinstance(error, CommClosedError):
            raise  # of a task, such as a file that cannot be read
        raise ClusterError(
            f"the connection to the scheduler was lost ({_first_line(error)}); start it again and repeat the call{end}"
        ) from None
    except (ModuleNotFoundError, RuntimeError) as error:
        cause = error if isinstance(error, ModuleNotFoundError) else error.__cause__
        if not isinstance(cause, ModuleNotFoundError):
            raise
        raise ClusterError(f"{cause.name} is not installed on the cluster; use one environment everywhere") from None


def killed(error: Any) -> str:
    """The error message for a task whose workers died."""
    return f"{error.allowed_failures + 1} workers died at one task, perhaps for want of memory"


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


class Counter:
    """Counts blocks as messages report them; one that is summed again, as its worker died, counts once."""

    def __init__(self, total: int, progress: Callable[[Blocks], None] | None) -> None:
        self._total, self._progress, self._seen = total, progress, set[int]()
        self._started = time.perf_counter()

    def notice(self, numbers: set[int]) -> None:
        """Record that the blocks of these numbers are summed."""
        if self._progress is None or numbers <= self._seen:
            return
        self._seen |= numbers
        self._progress(Blocks(len(self._seen), self._total, time.perf_counter() - self._started))


@contextmanager
def shown_progress(progress: Callable[[Blocks], None] | None) -> Iterator[Callable[[Blocks], None] | None]:
    """The caller's function, or a bar on a terminal that goes when the work is done, or nothing."""
    there = current_client() is not None
    if progress is not None and not there:
        reject("progress", progress, "left out without a client", "use dask.diagnostics.ProgressBar() instead")
    if progress is not None or not (there and sys.stderr.isatty()):
        yield progress
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("blocks")
        yield lambda blocks: bar.update(task, completed=blocks.done, total=blocks.total)
