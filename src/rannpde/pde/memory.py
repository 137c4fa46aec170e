"""Memory: what this process holds, and what is free for it, as the operating system reports it."""

from __future__ import annotations

import os
from pathlib import Path

MEMORY_SHARE = 0.5
"""Share of the free memory that a solve may take, unless another limit is given."""
CONTAINERS = (
    ("", "memory.max", "memory.current", ""),
    ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_"),
)
"""Folder, limit, use and prefix of statistics of a control group, in the second and in the first version of Linux."""
RECLAIMABLE = ("inactive_file", "active_file")
"""Pages of files: they count as used, and the system gives them away when memory is asked for."""


def resident_memory() -> float | None:
    """Bytes that this process holds in memory; None where the system does not report it."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return float(pages * os.sysconf("SC_PAGE_SIZE"))


def default_memory(system: Path = Path("/")) -> float | None:
    """Half of the bytes that are free; None where the system does not report them.

    system : the folder that holds ``proc`` and ``sys``
    """
    try:
        free = _table(system / "proc/meminfo")["MemAvailable"] * 1024
    except (OSError, ValueError, LookupError):
        return None
    for folder, most, taken, prefix in CONTAINERS:  # a container may have less
        group = system / "sys/fs/cgroup" / folder
        try:
            limit, used = (float((group / name).read_text(encoding="ascii")) for name in (most, taken))
            pages = _table(group / "memory.stat")
            reclaimable = sum(pages.get(prefix + name, 0.0) for name in RECLAIMABLE)
        except (OSError, ValueError, LookupError):  # no such group, or no limit ("max")
            continue
        free = min(free, max(limit - used + reclaimable, 0.0))
    return MEMORY_SHARE * free


def _table(file: Path) -> dict[str, float]:
    """Names and numbers of the lines of a file such as ``/proc/meminfo``."""
    rows = (line.split() for line in file.read_text(encoding="ascii").splitlines())
    return {row[0].rstrip(":"): float(row[1]) for row in rows}


def readable(size: float) -> str:
    """A number of bytes as a person says it.

    >>> readable(2.5e9), readable(3e6)
    ('2.5 GB', '3 MB')
    """
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 10**6:.0f} MB"
