"""How many processor cores this process may use, and how many workers that makes.

The kernel's list of cores is not all: a container may have a share of their time (a quota of its control group, as
Kubernetes makes of a limit), and Slurm may have given a task fewer than it can see.
"""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Mapping
from typing import NamedTuple

FEW_WORKERS, MOST_WORKERS = 4, 16
"""Workers by default: up to the first as many as cores, beyond the half of the cores, at most the second.

The other half is for the trainer's own threads and for the jails, in which a check is while its worker waits."""
_CONTROL_GROUPS = "/sys/fs/cgroup"


class CoreCount(NamedTuple):
    """How many cores may be used, at least 1, and what says so, in words."""

    cores: int
    reason: str


def core_count(allowed: int, quota: float | None, environment: Mapping[str, str]) -> CoreCount:
    """Return how many cores a process may use, from what the machine says.

    Args:
        allowed: Cores on which the kernel lets it run.
        quota: Cores whose time its control group has, such as 1.5; ``None`` for no bound.
        environment: Its variables, of which Slurm's are read.

    >>> core_count(64, 15.5, {"SLURM_CPUS_PER_TASK": "32"})
    CoreCount(cores=16, reason='the quota of its control group, 15.5')
    """
    bounds = [CoreCount(max(1, allowed), "those that it may run on")]
    if quota is not None:
        bounds.append(CoreCount(max(1, math.ceil(quota)), f"the quota of its control group, {quota:g}"))
    per_task, on_node = (environment.get(f"SLURM_CPUS_{name}", "") for name in ("PER_TASK", "ON_NODE"))
    if per_task.isdecimal() and int(per_task):
        bounds.append(CoreCount(int(per_task), "SLURM_CPUS_PER_TASK"))
    elif on_node.isdecimal() and int(on_node):
        tasks = environment.get("SLURM_STEP_TASKS_PER_NODE", "").split("(")[0].split(",")[0]
        here = int(tasks) if tasks.isdecimal() and int(tasks) else 1
        bounds.append(CoreCount(max(1, int(on_node) // here), "SLURM_CPUS_ON_NODE"))
    return min(bounds, key=lambda bound: bound.cores)


def worker_count(cores: int, ranks: int = 1) -> int:
    """Return the workers by default of a process that shares cores with others of its training, ``ranks`` in all.

    >>> [worker_count(cores) for cores in (1, 2, 4, 8, 16, 64, 256)]
    [1, 2, 4, 4, 8, 16, 16]
    >>> worker_count(128, ranks=8)
    8
    """
    share = max(1, cores // ranks)
    return min(share, max(FEW_WORKERS, min(MOST_WORKERS, share // 2)))


def quota_of(groups: str, root: str = _CONTROL_GROUPS) -> float | None:
    """Return the cores whose time a control group has, the least of its own and those above; ``None`` for no bound.

    Args:
        groups: What ``/proc/self/cgroup`` says, of version 1, 2 or both.
        root: Where the control groups are mounted.
    """
    quotas = []
    for line in groups.splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers and "cpu" not in controllers.split(","):
            continue
        folders = [""] + [path[:index] for index in range(1, len(path) + 1) if path[index : index + 1] in ("/", "")]
        for mount in (root,) if not controllers else (f"{root}/{controllers}", f"{root}/cpu"):
            quotas += [_quota(f"{mount}{folder.rstrip('/')}", is_first=bool(controllers)) for folder in folders]
    return min((quota for quota in quotas if quota is not None), default=None)


def _quota(folder: str, *, is_first: bool) -> float | None:
    """Return the quota of a folder of control groups, of version 1 where ``is_first``; ``None`` where it has none."""
    if is_first:
        texts = [_read(f"{folder}/cpu.cfs_{name}_us").strip() for name in ("quota", "period")]
    else:
        texts = _read(f"{folder}/cpu.max").split()
    if len(texts) != 2 or not all(text.isdecimal() and int(text) for text in texts):  # "max", or -1
        return None
    return int(texts[0]) / int(texts[1])


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read()
    except (OSError, UnicodeDecodeError):
        return ""


def usable_cores() -> CoreCount:
    """Return how many cores this process may use, and why not more."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return core_count(allowed, _own_quota(), os.environ)


@functools.cache
def _own_quota() -> float | None:
    """Return the quota that this process's control group had when it was first asked for: each jailed call asks."""
    return quota_of(_read("/proc/self/cgroup"))


def cores() -> int:
    """Return how many processor cores this process may use, at least 1."""
    return usable_cores().cores


def local_ranks() -> int:
    """Return how many processes of this process's training its launcher started on this host, at least 1.

    torchrun and accelerate say it in ``LOCAL_WORLD_SIZE``, DeepSpeed's launcher in ``LOCAL_SIZE``.
    """
    ranks = os.environ.get("LOCAL_WORLD_SIZE") or os.environ.get("LOCAL_SIZE") or ""
    return max(1, int(ranks)) if ranks.isdecimal() else 1


def default_workers(*, among_ranks: bool = False) -> int:
    """Return how many workers this process has by default; with ``among_ranks`` of its share of the host's cores."""
    return worker_count(cores(), local_ranks() if among_ranks else 1)
