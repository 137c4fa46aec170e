"""load(): whatever a file of ours holds."""

from __future__ import annotations

import os

from rannpde.network import Network, storage
from rannpde.network.network import load as load_network
from rannpde.pde.solution import Solution, load_solution


def load(path: str | os.PathLike[str]) -> Network | Solution:
    """The network or solution in that file; FileError for anything else, with the reason."""
    return load_solution(path) if storage.kind_of(path) == "solution" else load_network(path)
