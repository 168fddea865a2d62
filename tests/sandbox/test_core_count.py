"""How many cores and workers a process has, as machines, containers and Slurm say it."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandbox import cores, default_workers, usable_cores
from sandbox.core_count import core_count, quota_of, worker_count

MACHINES = {
    "a laptop": (8, None, {}, 8, "may run on"),
    "one core": (1, None, {}, 1, "may run on"),
    "a node of 256": (256, None, {}, 256, "may run on"),
    "pinned by taskset or NUMA": (32, None, {}, 32, "may run on"),
    "a container with a whole limit": (256, 16.0, {}, 16, "control group, 16"),
    "a pod with a limit of 2500m": (256, 2.5, {}, 3, "control group, 2.5"),
    "a pod with a limit of 500m": (256, 0.5, {}, 1, "control group, 0.5"),
    "a limit above the machine": (8, 64.0, {}, 8, "may run on"),
    "a task of Slurm": (128, None, {"SLURM_CPUS_PER_TASK": "24"}, 24, "SLURM_CPUS_PER_TASK"),
    "a task of Slurm that is pinned too": (12, None, {"SLURM_CPUS_PER_TASK": "24"}, 12, "may run on"),
    "eight tasks of Slurm on a node": (
        *(128, None, {"SLURM_CPUS_ON_NODE": "128", "SLURM_STEP_TASKS_PER_NODE": "8(x2)"}),
        *(16, "SLURM_CPUS_ON_NODE"),
    ),
    "a job of Slurm with a part of the node": (128, None, {"SLURM_CPUS_ON_NODE": "32"}, 32, "SLURM_CPUS_ON_NODE"),
    "variables that are no numbers": (8, None, {"SLURM_CPUS_PER_TASK": "many", "SLURM_CPUS_ON_NODE": ""}, 8, "may run"),
    "a variable of zero": (8, None, {"SLURM_CPUS_PER_TASK": "0"}, 8, "may run on"),
}


@pytest.mark.parametrize("machine", MACHINES)
def test_the_least_of_what_the_machine_says_counts(machine: str) -> None:
    """The reason names what is least."""
    allowed, quota, variables, expected, reason = MACHINES[machine]
    count = core_count(allowed, quota, variables)
    assert expected == count.cores
    assert reason in count.reason


GROUPS = {
    "version 2, in a container": ("0::/\n", {"cpu.max": "250000 100000\n"}, 2.5),
    "version 2, unbounded": ("0::/\n", {"cpu.max": "max 100000\n"}, None),
    "version 2, the root has no file": ("0::/\n", {}, None),
    "version 2, a parent is bounded": (
        "0::/kubepods/burstable/pod1\n",
        {"kubepods/cpu.max": "max 100000", "kubepods/burstable/cpu.max": "400000 100000",
         "kubepods/burstable/pod1/cpu.max": "max 100000"},
        4.0,
    ),
    "version 2, the least counts": (
        "0::/slice/job\n", {"slice/cpu.max": "1600000 100000", "slice/job/cpu.max": "800000 100000"}, 8.0,
    ),
    "version 1, mounted at its own folder": (
        "4:cpu,cpuacct:/docker/abc\n1:name=systemd:/\n",
        {"cpu,cpuacct/cpu.cfs_quota_us": "150000", "cpu,cpuacct/cpu.cfs_period_us": "100000"},
        1.5,
    ),
    "version 1, by the host's path": (
        "4:cpu:/jobs/7\n", {"cpu/jobs/7/cpu.cfs_quota_us": "600000", "cpu/jobs/7/cpu.cfs_period_us": "100000"}, 6.0,
    ),
    "version 1, unbounded": ("4:cpu:/\n", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, None),
    "both versions": (
        "4:cpu:/\n0::/\n",
        {"cpu/cpu.cfs_quota_us": "300000", "cpu/cpu.cfs_period_us": "100000", "cpu.max": "max 100000"},
        3.0,
    ),
    "other controllers": ("7:cpuset:/\n", {"cpuset/cpu.cfs_quota_us": "1", "cpuset/cpu.cfs_period_us": "1"}, None),
    "nothing": ("", {}, None),
    "what nobody writes": ("0::/\n::\n\nabc\n", {"cpu.max": "a b c"}, None),
    "a period of zero": ("0::/\n", {"cpu.max": "100000 0"}, None),
}  # fmt: skip


@pytest.mark.parametrize("groups", GROUPS)
def test_quotas_of_control_groups_are_read(groups: str, tmp_path: Path) -> None:
    """Those of version 1 and 2, of a process's own group and of those above it."""
    text, files, expected = GROUPS[groups]
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    assert expected == quota_of(text, str(tmp_path))


@pytest.mark.parametrize(
    ("count", "ranks", "expected"),
    [(1, 1, 1), (2, 1, 2), (3, 1, 3), (4, 1, 4), (6, 1, 4), (16, 1, 8), (32, 1, 16), (64, 1, 16), (256, 1, 16),
     (2, 2, 1), (1, 8, 1), (16, 8, 2), (128, 8, 8), (192, 8, 12), (256, 8, 16)],
)  # fmt: skip
def test_workers_by_default(count: int, ranks: int, expected: int) -> None:
    """All cores of a small share, half of a large one."""
    assert expected == worker_count(count, ranks)


def test_this_process_has_cores_and_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes of a training have a share each, where the number is asked for one of them."""
    assert 1 <= default_workers() <= cores() == usable_cores().cores
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "1000")
    assert 1 == default_workers(among_ranks=True) <= default_workers()
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", "1")
    assert 1 == cores()
