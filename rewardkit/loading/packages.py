"""Packages for the workers alone: installed once into a cached folder that is keyed by what they are."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from rewardkit.errors import PackageInstallError
from rewardkit.run_code import Package

INSTALL_TIMEOUT_S = 900
_ARCHIVES = (".whl", ".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
_LEFT_OUT = frozenset({".git", ".venv", "__pycache__", "node_modules"})  # of a project's folder
_BUILT = frozenset({"build", "dist"})  # what an installation leaves at its top
_WITH_REST = re.compile(r"(?P<path>.*?)(?P<rest>(\[[^\[\]]*\])?\s*(;.*)?)", re.DOTALL)


def cache_folder() -> Path:
    """Return the folder of rewardkit's caches: ``$REWARDKIT_CACHE``, else the user's cache folder."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("REWARDKIT_CACHE") or Path(home) / "rewardkit")


def absolute(requirement: str, base: Path) -> str:
    """Return a requirement with its local path made absolute, as seen from a folder; any other one as it is."""
    requirement = requirement.strip()
    path, rest = _split(requirement)
    if path is None or requirement.startswith("file:") or _named(requirement):
        return requirement
    return os.path.abspath(base / os.path.expanduser(path)) + rest


def located(requirements: Sequence[str], base: Path | None = None) -> list[Package]:
    """Return packages by their requirements, each once, with what their local files are now.

    Raises:
        PackageInstallError: A local file cannot be read.
    """
    full = dict.fromkeys(absolute(requirement, base or Path.cwd()) for requirement in requirements)
    return [Package(requirement, _digest(requirement)) for requirement in sorted(full)]


def _named(requirement: str) -> bool:
    """Whether a requirement names its package before what it is installed from: ``mine @ ./mine-1.0.whl``."""
    return re.match(r"[\w.-]+\s*(\[[^]]*\])?\s*@", requirement) is not None


def _split(requirement: str) -> tuple[str | None, str]:
    """Return a requirement's local path, if it has one as pip sees it, and the extras and the marker after that."""
    match = _WITH_REST.fullmatch(requirement.partition("@")[2].strip() if _named(requirement) else requirement)
    assert match is not None
    path, rest = match["path"], match["rest"]
    if path.startswith("file:"):
        return unquote(urlsplit(path).path), rest
    is_local = "/" in path or path.startswith(".") or path.lower().endswith(_ARCHIVES)
    return (path if is_local and "://" not in path else None), rest


def _digest(requirement: str) -> str:
    """Return a digest of a requirement's local file or folder; ``""`` for one that is not local."""
    path, _ = _split(requirement)
    if path is None:
        return ""
    digest = hashlib.sha256()
    try:
        for file in _files(Path(path)):
            with file.open("rb") as stream:
                content = hashlib.file_digest(stream, "sha256").hexdigest()
            digest.update(f"{file.relative_to(path)}\0{content}\0".encode("utf-8", "surrogateescape"))
    except OSError as error:
        raise PackageInstallError(f"{requirement} cannot be installed for the workers: {error}") from None
    return digest.hexdigest()


def _files(path: Path) -> Iterator[Path]:
    """Return a file itself, or the files of a project's folder, in order."""
    if not path.is_dir():
        yield path
        return
    for folder, folders, names in os.walk(path):
        skipped = _LEFT_OUT | _BUILT if Path(folder) == path else _LEFT_OUT
        folders[:] = sorted(name for name in folders if name not in skipped and not name.endswith(".egg-info"))
        yield from (Path(folder, name) for name in sorted(names) if Path(folder, name).is_file())


def overlay_for(packages: Sequence[Package]) -> Path:
    """Return the folder in which these packages are installed, installing them the first time.

    The folder is keyed by the packages, by the content of those that are local files, by the Python version and the
    platform. Two processes that ask at once wait for one installation, and one that fails or is killed leaves nothing
    that counts.

    Raises:
        PackageInstallError: They cannot be installed, or a local file is not what it was; the message ends with the
            installer's own words.
    """
    key = "\n".join([*map(str, packages), sys.version.split()[0], sysconfig.get_platform()])
    folder = cache_folder() / "packages" / hashlib.sha256(key.encode()).hexdigest()[:16]
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            for left in folder.parent.glob(f"{folder.name}-*"):  # by one that was killed
                shutil.rmtree(left, ignore_errors=True)
            fresh = Path(tempfile.mkdtemp(prefix=f"{folder.name}-", dir=folder.parent))
            try:
                _check(packages)
                _install([package.requirement for package in packages], fresh)
                _check(packages)  # it was not built anew meanwhile
                fresh.rename(folder)
            finally:
                shutil.rmtree(fresh, ignore_errors=True)
    return folder


def _check(packages: Sequence[Package]) -> None:
    """Raise PackageInstallError where a local file is not what it was."""
    for package in packages:
        if _digest(package.requirement) != package.digest:
            raise PackageInstallError(
                f"{package.requirement} is another file than when the runtime was made, or than on the machine where "
                "it was made; make the runtime anew, or put the same file there"
            )


def _installer() -> list[str]:
    """Return the command that installs into a folder for this Python.

    Raises PackageInstallError, with the remedy, where this Python has nothing that installs.
    """
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip", "install", "--quiet"]
    uv = shutil.which("uv")
    if uv is not None:
        return [uv, "pip", "install", "--quiet", "--python", sys.executable]
    base = getattr(sys, "_base_executable", sys.executable)
    if subprocess.run([base, "-m", "pip", "--version"], capture_output=True).returncode == 0:  # noqa: S603
        return [base, "-m", "pip", "--python", sys.executable, "install", "--quiet"]
    raise PackageInstallError(
        f"packages cannot be installed for the workers: {sys.executable} has no pip, and there is no uv on the path; "
        f"run {sys.executable} -m ensurepip, or install uv"
    )


def _install(packages: list[str], folder: Path) -> None:
    """Install packages into a folder; PackageInstallError with the installer's last lines where that fails."""
    command = [*_installer(), "--target", str(folder), "--", *packages]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S)  # noqa: S603
    except subprocess.TimeoutExpired:
        raise PackageInstallError(f"{', '.join(packages)}: pip took longer than {INSTALL_TIMEOUT_S} s") from None
    if done.returncode != 0:
        message = "\n".join((done.stderr or done.stdout).strip().splitlines()[-6:])
        raise PackageInstallError(f"{', '.join(packages)} cannot be installed for the workers:\n{message}")
