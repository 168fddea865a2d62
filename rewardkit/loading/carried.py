"""How a reward's text travels: through a record to a running training, to other machines, from a browser to a file.

A path leads nowhere on another machine, or to another file, and a file may be edited later. So the text travels, and is
written where no other text is, to a path named by its content: a new text is a new module, in the training as in its
workers. What a written file imports is looked for beside the original. Installed packages do not travel. What no file
defines goes through a record as its pickled value.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import os
import pickle
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rewardkit.declare.compose import Composable, Composite
from rewardkit.declare.decorator import Reward
from rewardkit.declare.options import RewardOptions
from rewardkit.declare.text_reward import TextReward, reward_from_source
from rewardkit.errors import RewardDefinitionError, RewardError, RewardLoadError, RewardTransportError
from rewardkit.function import described
from rewardkit.loading.registry import RewardLike, as_named, resolve
from rewardkit.record.description import Description, describe
from rewardkit.record.secrets import Secrets
from rewardkit.run_code import RunCode
from rewardkit.transport import CARRIED_FILES, FILE_MODULES, dumps
from rewardkit.versions.own_modules import home_of, is_own

FOLDER = "rewards"  # The folder beside a record that has the files of changed rewards
MOST_BYTES = 32 << 20  # Bytes of all files that travel to another machine


def write_file(file: Path, data: bytes) -> Path:
    """Write a file in one step, unless it is there with this content; a link in its place is replaced."""
    if file.is_symlink() or not file.is_file() or file.read_bytes() != data:
        file.parent.mkdir(parents=True, exist_ok=True)
        fresh = file.with_name(f".{file.name}.{os.getpid()}")
        fresh.unlink(missing_ok=True)
        with fresh.open("xb") as stream:
            stream.write(data)
        fresh.replace(file)
    return file


def write_module(text: str, original: str, folder: Path | str) -> Path:
    """Write a module's text below a folder, where no other text is, and let it import what the original could.

    The file has the original's name.
    """
    path = Path(original)
    data = text.encode("utf-8", "surrogatepass")
    digest = hashlib.sha256(original.encode("utf-8", "surrogatepass") + b"\0" + data).hexdigest()[:12]
    file = write_file(Path(folder).resolve() / digest / path.name, data)
    if path.is_absolute() and path.parent.is_dir() and str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    return file


# Through a record.


def carry(like: RewardLike | Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a reward as the record carries it, ready for JSON, under its name in the run.

    ``like`` is a reference such as ``"file.py:name"``, a function, a reward, or one given as text. Raises RewardError
    where it leads nowhere, is not a reward, or cannot be carried.
    """
    if isinstance(like, Mapping):
        return _text_body(like, name)
    if isinstance(like, str):
        path, _, attribute = like.rpartition(":")
        if path.endswith(".py"):
            return {"kind": "file", "reference": f"{Path(path).resolve()}:{attribute}", "text": _read(Path(path))}
        if like.endswith(".py"):
            raise RewardLoadError(f"{like!r}: name the function, as {like}:correct")
    reward = as_named(resolve(like), name)
    if isinstance(reward, TextReward):
        source = described(reward.spec.function).source_text
        function = reward.spec.function.__name__
        return {"kind": "text", "source": source, "name": function, "options": _options(reward)}
    return {**_body(reward, describe(reward)), "options": _options(reward), "digits": reward.version}


def load(body: Mapping[str, Any], name: str, folder: Path) -> Composable:
    """Return a reward that :func:`carry` made ready, under its name in the run; its files are written below ``folder``.

    Raises RewardError where it does not import, or is another version here than its ``digits`` say.
    """
    reward = as_named(_reward_of(body, folder), name)
    digits, options = body.get("digits"), body.get("options")
    if digits is not None and reward.version != digits and options and isinstance(reward, Reward):
        reward = reward.with_options(**{**options, "name": name})
    if digits is not None and reward.version != digits:
        raise RewardLoadError(
            f"reward {name!r} is version {reward.version} here, and {digits} was asked for: a file that it imports is "
            "different, or was changed since"
        )
    return reward


def _body(reward: Composable, about: Description) -> dict[str, Any]:
    """Return how to find a reward that exists: by its file's text, by an installed module, or by its value."""
    reference, text = about.reference, about.module
    if reference is None:
        return _value_body(reward, about)
    origin, _, attribute = reference.rpartition(":")
    if not origin.endswith(".py"):
        file = getattr(sys.modules.get(origin), "__file__", None)
        if file is None or not is_own(Path(file)) or text is None:
            return {"kind": "import", "reference": reference}
        reference = f"{Path(file).resolve()}:{attribute}"
    if text is None:
        raise RewardLoadError(f"reward {reward.name!r}: {origin} cannot be read")
    return {"kind": "file", "reference": reference, "text": _without_secrets(text, reference)}


def _value_body(reward: Composable, about: Description) -> dict[str, Any]:
    """Return a reward that no file defines as its pickled value; a composition cannot travel so."""
    if not isinstance(reward, Reward):
        raise RewardDefinitionError(
            f"{reward.name!r} is a composition that no file defines; define it in a file and name it, as file.py:name"
        )
    value = dumps(reward, reward)
    _without_secrets(value.decode("latin-1"), f"reward {reward.name!r}")
    return {
        "kind": "value", "reference": None, "value": base64.b64encode(value).decode(), "python": _python(),
        "source": about.source,
    }  # fmt: skip


def _text_body(like: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a reward given as text; RewardDefinitionError where it has no source, or a secret in it."""
    if not isinstance(like.get("source"), str):
        raise RewardDefinitionError(f"reward {name!r} given as text: expected a mapping with 'source', got {like!r}")
    source = _without_secrets(like["source"], f"reward {name!r}")
    return {
        "kind": "text",
        "source": source,
        "name": like.get("name") or name,
        "options": dict(like.get("options") or {}),
    }


def _reward_of(body: Mapping[str, Any], folder: Path) -> Composable:
    """Return the reward of a body of each kind; a file's text is written below ``folder`` and imported from there."""
    match body["kind"]:
        case "file":
            original, _, attribute = body["reference"].rpartition(":")
            file = write_module(body["text"], original, folder)
            try:
                return resolve(f"{file}:{attribute}")
            except RewardError as error:  # it names the file that the user knows
                raise RewardLoadError(str(error).replace(str(file), original)) from error
        case "import":
            return resolve(body["reference"])
        case "text":
            options = {key: value for key, value in body["options"].items() if key != "name"}
            return reward_from_source(body["source"], body["name"], **options)
    if body["python"] != _python():
        raise RewardLoadError(
            f"the reward comes from Python {body['python']}, and here is {_python()}; put it in a file"
        )
    reward = pickle.loads(base64.b64decode(body["value"]))  # noqa: S301 - as its file's text, which is run as well
    assert isinstance(reward, Composable)
    return reward


def _python() -> str:
    return ".".join(map(str, sys.version_info[:2]))


def _options(reward: Composable) -> dict[str, Any] | None:
    """Return the options as JSON can hold them; ``None`` for a composition."""
    if isinstance(reward, Composite) or not isinstance(reward, Reward):
        return None
    options = {field.name: getattr(reward.options, field.name) for field in dataclasses.fields(RewardOptions)}
    return {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in options.items()
        if isinstance(value, str | int | float | bool | tuple | None)
    }


def _read(path: Path) -> str:
    """Return the text of a reward's file; RewardLoadError where it cannot be read."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise RewardLoadError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise RewardLoadError(f"{path}: not text in UTF-8") from None
    return _without_secrets(text, str(path))


def _without_secrets(text: str, source: str) -> str:
    """Return a text in which no secret of the environment stands: a record is not the place for one."""
    hidden = Secrets({}).hide(text)
    if hidden != text:
        pairs = zip(text.splitlines(), hidden.splitlines(), strict=False)
        name = re.search(r"<(\w+)>", next(changed for line, changed in pairs if line != changed))
        variable = name[1] if name else "a variable"
        raise RewardDefinitionError(f"{source}: the value of {variable} stands in it; read it from the environment")
    return text


# To another machine.


def carried_files(code: RunCode) -> dict[str, bytes]:
    """Return the files that a run's modules need on another machine, by their paths below the folder there.

    Packages travel whole, because they may read files of their own.

    Raises RewardTransportError where a file cannot be read, or all are more than 32 MB.
    """
    files: dict[str, bytes] = {}
    texts = code.texts
    packages: set[Path] = set()
    for name, module in code.modules.items():
        file = Path(module.file)
        if name.startswith(FILE_MODULES):
            files[f"{CARRIED_FILES}/{name.removeprefix(FILE_MODULES)}/{file.name}"] = module.text
            continue
        home = home_of(file)
        top = _path_below(home)
        if home.suffix == ".py":
            files[top] = module.text
        elif home not in packages:
            packages.add(home)
            for part in sorted(home.rglob("*")):
                if part.is_file() and "__pycache__" not in part.parts:
                    _add(files, f"{top}/{part.relative_to(home)}", part, texts.get(os.path.realpath(part)))
    return files


def _add(files: dict[str, bytes], path: str, file: Path, text: bytes | None) -> None:
    """Add a file to those that travel, as the run has it; RewardTransportError where they are too many bytes."""
    try:
        files[path] = file.read_bytes() if text is None else text
    except OSError as error:
        raise RewardTransportError(f"{file} cannot travel to other machines: {error.strerror or error}") from error
    size = sum(map(len, files.values()))
    if size > MOST_BYTES:
        raise RewardTransportError(
            f"the reward's own files cannot travel to other machines: with {file} they have {size:,} bytes, more than "
            f"{MOST_BYTES:,}. Install their package on every machine"
        )


def _path_below(home: Path) -> str:
    """Return a module's or package's path below the folder on ``sys.path`` that it was found in.

    For one inside folders without ``__init__.py`` that is not its name alone.
    """
    entries = {os.path.realpath(entry or os.getcwd()) for entry in sys.path}
    return next((str(home.relative_to(folder)) for folder in home.parents if str(folder) in entries), home.name)


def unpack(files: Mapping[str, bytes], folder: Path) -> Path:
    """Write files that travelled below a folder, once for the same content, and return where they lie."""
    digest = hashlib.sha256()
    for path, content in sorted(files.items()):
        digest.update(f"{path}\0{len(content)}\0".encode())
        digest.update(content)
    home = folder / digest.hexdigest()[:24]
    if home.is_dir():
        return home
    folder.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix="new-", dir=folder))
    try:
        for path, content in files.items():
            (fresh / path).parent.mkdir(parents=True, exist_ok=True)
            (fresh / path).write_bytes(content)
        fresh.rename(home)
    except OSError:
        if not home.is_dir():  # another process wrote the same meanwhile
            raise
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return home
