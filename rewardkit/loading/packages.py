"""Packages for the workers alone: installed once into a cached folder that is keyed by their list."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rewardkit.errors import PackageInstallError

INSTALL_TIMEOUT_S = 900


def cache_folder() -> Path:
    """Return the folder of rewardkit's caches: ``$REWARDKIT_CACHE``, else the user's cache folder."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("REWARDKIT_CACHE") or Path(home) / "rewardkit")


def overlay_for(packages: Sequence[str]) -> Path:
    """Return the folder in which these packages are installed, installing them the first time.

    The folder is keyed by the list, its order aside, the Python version and the platform. Two processes
    that ask at once wait for one installation, and one that fails leaves nothing behind.

    Raises:
        PackageInstallError: pip could not install them; the message ends with pip's own words.
    """
    requirements = sorted({package.strip() for package in packages})
    key = "\n".join([*requirements, sys.version.split()[0], sysconfig.get_platform()])
    folder = cache_folder() / "packages" / hashlib.sha256(key.encode()).hexdigest()[:16]
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            fresh = Path(tempfile.mkdtemp(prefix="install-", dir=folder.parent))
            try:
                _install(requirements, fresh)
                fresh.rename(folder)
            finally:
                shutil.rmtree(fresh, ignore_errors=True)
    return folder


def _install(packages: list[str], folder: Path) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder), "--", *packages]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S)  # noqa: S603
    except subprocess.TimeoutExpired:
        raise PackageInstallError(f"{', '.join(packages)}: pip took longer than {INSTALL_TIMEOUT_S} s") from None
    if done.returncode != 0:
        message = "\n".join((done.stderr or done.stdout).strip().splitlines()[-6:])
        raise PackageInstallError(f"{', '.join(packages)} cannot be installed for the workers:\n{message}")
