"""Resource limits of one evaluation."""

from __future__ import annotations

import resource

LimitValues = list[tuple[int, tuple[int, int]]]
"""Resources of :mod:`resource`, each with its soft and hard limit."""


def values(memory_bytes: int, cpu_s: int, file_bytes: int, open_files: int, processes: int) -> LimitValues:
    """Return what limits a process and its children; no limit is raised. ``processes`` of this user: 0 for no limit."""
    limits = [
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_FSIZE, file_bytes),
        (resource.RLIMIT_NOFILE, open_files),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, cpu_s + 1),
    ]
    if processes:
        limits.append((resource.RLIMIT_NPROC, processes))
    bounded: LimitValues = []
    for limit, value in limits:
        _, hard = resource.getrlimit(limit)
        most = value if hard == resource.RLIM_INFINITY else min(value, hard)
        soft = min(cpu_s, most) if limit == resource.RLIMIT_CPU else most  # SIGXCPU comes first, which Python dies of
        bounded.append((limit, (soft, most)))
    return bounded


def restrict(limits: LimitValues) -> None:
    """Limit this process and its children, for ever."""
    for limit, bounds in limits:
        resource.setrlimit(limit, bounds)
