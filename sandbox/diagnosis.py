"""What this machine offers for the isolation of code: facts of the kernel, and a trial of each level."""

from __future__ import annotations

import contextlib
import os
import platform
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

from sandbox.client import Sandbox
from sandbox.errors import SandboxUnavailableError
from sandbox.jail import kernel, landlock, probe
from sandbox.jail.levels import Level


@dataclass(frozen=True, slots=True)
class LevelTrial:
    """The outcome of trying a level."""

    level: Level
    reached: bool  # whether it starts and no attack on it succeeds
    why: str  # why it is not reached; ``""`` if it is
    attacks: dict[str, bool]  # what was tried, and whether it succeeded; empty where the level does not start


def machine() -> dict[str, str]:
    """Return facts of this machine by name, each in words."""
    facts = {
        "system": f"{platform.system()} {platform.release()} on {platform.machine()}",
        "python": f"{platform.python_version()} ({sys.executable})",
        "user": f"{os.getuid()}" + (" (root)" if os.getuid() == 0 else ""),
    }
    if "COLAB_RELEASE_TAG" in os.environ or "google.colab" in sys.modules:
        facts["notebook"] = "Google Colab"
    if not kernel.supported():
        return {**facts, "jail": "none: Linux on x86_64 or aarch64 is needed"}
    version = landlock.abi()
    facts["Landlock"] = f"ABI {version}" if version else "not there, or not in the kernel's lsm= list"
    facts["seccomp"] = _read("/proc/sys/kernel/seccomp/actions_avail") or "not there"
    facts["user namespaces"] = _user_namespaces()
    marks = {"/.dockerenv": "Docker", "/run/.containerenv": "Podman"}
    facts["container"] = next((name for mark, name in marks.items() if Path(mark).exists()), "none seen")
    return facts


def trial(level: Level) -> LevelTrial:
    """Start a sandbox at a level and try every attack on it."""
    attacks = list(probe.attacks_on(level))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a diagnosis reports it as well
            sandbox = Sandbox(level=level, workers=1).start()
    except SandboxUnavailableError as fault:
        successes = {name: name in fault.succeeded for name in attacks} if fault.succeeded else {}
        return LevelTrial(level, False, fault.reasons.get(level, str(fault)), successes)
    sandbox.close()
    return LevelTrial(level, True, "", dict.fromkeys(attacks, False))


def trials() -> list[LevelTrial]:
    """Try every level that isolates, the best first."""
    return [trial(level) for level in (Level.STRICT, Level.STANDARD, Level.SECCOMP_ONLY)]


def _read(path: str) -> str:
    with contextlib.suppress(OSError):
        return Path(path).read_text().strip()
    return ""


def _user_namespaces() -> str:
    most = _read("/proc/sys/user/max_user_namespaces")
    hindrances = []
    if most in ("", "0"):
        hindrances.append("switched off (user.max_user_namespaces is 0)" if most else "not in this kernel")
    if _read("/proc/sys/kernel/unprivileged_userns_clone") == "0" and os.getuid() != 0:
        hindrances.append("kernel.unprivileged_userns_clone is 0")
    if _read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1" and os.getuid() != 0:
        hindrances.append("kernel.apparmor_restrict_unprivileged_userns is 1")
    return "; ".join(hindrances) or f"allowed by the kernel's settings (at most {most})"
