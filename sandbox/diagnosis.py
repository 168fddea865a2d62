"""What this machine offers for the isolation of code: facts of the kernel, a trial of each level, and languages."""

from __future__ import annotations

import contextlib
import os
import platform
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from sandbox.client import Sandbox
from sandbox.core_count import usable_cores, worker_count
from sandbox.errors import SandboxUnavailableError
from sandbox.jail import kernel, landlock, probe
from sandbox.jail.levels import Level
from sandbox.languages.catalogue import LANGUAGES
from sandbox.languages.language import Language
from sandbox.languages.toolchains import MissingToolchain, find_toolchain


@dataclass(frozen=True, slots=True)
class LevelTrial:
    """The outcome of trying a level."""

    level: Level
    reached: bool  # whether it starts and no attack on it succeeds
    why: str  # why it is not reached; ``""`` if it is
    attacks: dict[str, bool]  # what was tried, and whether it succeeded; empty where the level does not start


@dataclass(frozen=True, slots=True)
class LanguageTrial:
    """Whether the tools of a language run on this machine."""

    name: str
    version: str  # what its first tool prints as its version; ``""`` where it does not run
    level: Level  # the lowest at which its programs are run
    why: str  # why it does not run; ``""`` if it does
    install: str  # how it is had, where it does not run


def machine() -> dict[str, str]:
    """Return facts of this machine by name, each in words."""
    count, reason = usable_cores()
    facts = {
        "system": f"{platform.system()} {platform.release()} on {platform.machine()}",
        "python": f"{platform.python_version()} ({sys.executable})",
        "user": f"{os.getuid()}" + (" (root)" if os.getuid() == 0 else ""),
        "cores": f"{count} ({reason}); workers by default: {worker_count(count)}",
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


def language_trials() -> list[LanguageTrial]:
    """Look for the tools of every language but Python, and have each print its version."""
    with ThreadPoolExecutor() as pool:
        return list(pool.map(_language_trial, LANGUAGES.values()))


def _language_trial(language: Language) -> LanguageTrial:
    stages = [stage for stage in (language.compile, language.run) if stage is not None]
    level = Level.STRICT if any(stage.walls.forks for stage in stages) else Level.STANDARD
    if not kernel.supported():
        return LanguageTrial(language.name, "", level, "no jail here", "a machine with Linux")
    toolchain = find_toolchain(language)
    if isinstance(toolchain, MissingToolchain):
        return LanguageTrial(language.name, "", level, toolchain.reason, toolchain.install)
    return LanguageTrial(language.name, toolchain.version, level, "", "")


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
