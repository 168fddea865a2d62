"""How a changed reward reaches a training that runs in another process: the text of its file goes through the record.

What was accepted is the text, so a later edit of the file changes nothing. The training writes the text to a folder of
its own, named by the text, and imports it from there: a new text is a new module, in the training as in its workers,
and files that the text imports are looked for beside the original. What no file defines goes as its pickled value.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import os
import pickle
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rewardkit.declare.compose import Composable, Composite
from rewardkit.declare.decorator import Reward
from rewardkit.declare.options import RewardOptions
from rewardkit.declare.text_reward import TextReward, reward_from_source
from rewardkit.errors import RewardDefinitionError, RewardError, RewardLoadError
from rewardkit.function import described
from rewardkit.loading.registry import RewardLike, as_named, resolve
from rewardkit.record.description import Description, describe
from rewardkit.record.secrets import Secrets
from rewardkit.transport import dumps
from rewardkit.versions.own_modules import is_own

FOLDER = "rewards"
"""The folder beside a record that has the files of changed rewards."""


def carried(like: RewardLike | Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a reward as the record carries it, ready for JSON.

    Args:
        like: A reference such as ``"file.py:name"``, a function, a reward, or one given as text.
        name: The reward's name in the run.

    Raises:
        RewardError: It leads nowhere, is not a reward, or cannot be carried.
    """
    if isinstance(like, Mapping):
        return _text(like, name)
    if isinstance(like, str):
        place, _, attribute = like.rpartition(":")
        if place.endswith(".py"):
            return {"kind": "file", "reference": f"{Path(place).resolve()}:{attribute}", "text": _read(Path(place))}
        if like.endswith(".py"):
            raise RewardLoadError(f"{like!r}: name the function, as {like}:correct")
    reward = as_named(resolve(like), name)
    if isinstance(reward, TextReward):
        options = _options(reward)
        source = described(reward.spec.function).source_text
        return {"kind": "text", "source": source, "name": reward.spec.function.__name__, "options": options}
    return {**_defined(reward, describe(reward)), "options": _options(reward), "digits": reward.version}


def loaded(body: Mapping[str, Any], name: str, folder: Path) -> Composable:
    """Return a carried reward under its name in the run.

    Args:
        body: What :func:`carried` returned; with ``digits`` it must be that very version.
        name: The reward's name in the run.
        folder: Where files are written.

    Raises:
        RewardError: It does not import, or is another version here.
    """
    found = as_named(_found(body, folder), name)
    wanted, options = body.get("digits"), body.get("options")
    if wanted is not None and found.version != wanted and options and isinstance(found, Reward):
        found = found.with_options(**{**options, "name": name})
    if wanted is not None and found.version != wanted:
        raise RewardLoadError(
            f"reward {name!r} is version {found.version} here, and {wanted} was asked for: a file that it imports is "
            "different, or was changed since"
        )
    return found


def _defined(reward: Composable, about: Description) -> dict[str, Any]:
    """Return how to find a reward that exists: by its file's text, by an installed module, or by its value."""
    reference, text = about.reference, about.module
    if reference is None:
        return _value(reward, about)
    place = reference.rpartition(":")[0]
    if not place.endswith(".py"):
        module = sys.modules.get(place)
        file = getattr(module, "__file__", None)
        if file is None or not is_own(Path(file)) or text is None:
            return {"kind": "import", "reference": reference}
        reference = f"{Path(file).resolve()}:{reference.rpartition(':')[2]}"
    if text is None:
        raise RewardLoadError(f"reward {reward.name!r}: {place} cannot be read")
    return {"kind": "file", "reference": reference, "text": _open(text, reference)}


def _value(reward: Composable, about: Description) -> dict[str, Any]:
    if not isinstance(reward, Reward):
        raise RewardDefinitionError(
            f"{reward.name!r} is a composition that no file defines; define it in a file and name it, as file.py:name"
        )
    value = dumps(reward, reward)
    _open(value.decode("latin-1"), f"reward {reward.name!r}")
    python = ".".join(map(str, sys.version_info[:2]))
    return {
        "kind": "value", "reference": None, "value": base64.b64encode(value).decode(), "python": python,
        "source": about.source,
    }  # fmt: skip


def _text(like: Mapping[str, Any], name: str) -> dict[str, Any]:
    if not isinstance(like.get("source"), str):
        raise RewardDefinitionError(f"reward {name!r} given as text: expected a mapping with 'source', got {like!r}")
    _open(like["source"], f"reward {name!r}")
    options = dict(like.get("options") or {})
    return {"kind": "text", "source": like["source"], "name": like.get("name") or name, "options": options}


def _found(body: Mapping[str, Any], folder: Path) -> Composable:
    match body["kind"]:
        case "file":
            reference = _written(body, folder)
            try:
                return resolve(reference)
            except RewardError as reason:  # say it of the file that the user knows
                here, place = reference.rpartition(":")[0], body["reference"].rpartition(":")[0]
                raise RewardLoadError(str(reason).replace(here, place)) from reason
        case "import":
            return resolve(body["reference"])
        case "text":
            options = {key: value for key, value in body["options"].items() if key != "name"}
            return reward_from_source(body["source"], body["name"], **options)
    here = ".".join(map(str, sys.version_info[:2]))
    if body["python"] != here:
        raise RewardLoadError(f"the reward comes from Python {body['python']}, and here is {here}; put it in a file")
    found = pickle.loads(base64.b64decode(body["value"]))  # noqa: S301 - as its file's text, which is run as well
    assert isinstance(found, Composable)
    return found


def _written(body: Mapping[str, Any], folder: Path) -> str:
    """Write a file's text where no other text is, and return the reference into it."""
    place, _, attribute = body["reference"].rpartition(":")
    original, text = Path(place), body["text"]
    digest = hashlib.sha256(f"{place}\0{text}".encode("utf-8", "surrogatepass")).hexdigest()[:12]
    target = folder.resolve() / digest / original.name
    if not target.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh = target.with_name(f".{target.name}.{os.getpid()}")
        try:
            fresh.write_text(text, encoding="utf-8")
            fresh.replace(target)
        finally:
            fresh.unlink(missing_ok=True)
    if original.parent.is_dir() and str(original.parent) not in sys.path:
        sys.path.append(str(original.parent))  # what the file imports lies there
    return f"{target}:{attribute}"


def _options(reward: Composable) -> dict[str, Any] | None:
    """Return the options as JSON can hold them; ``None`` for a composition."""
    if isinstance(reward, Composite) or not isinstance(reward, Reward):
        return None
    plain = (str, int, float, bool, type(None))
    options = {field.name: getattr(reward.options, field.name) for field in dataclasses.fields(RewardOptions)}
    return {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in options.items()
        if isinstance(value, (*plain, tuple))
    }


def _read(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as reason:
        raise RewardLoadError(f"{path}: {reason.strerror or reason}") from None
    except UnicodeDecodeError:
        raise RewardLoadError(f"{path}: not text in UTF-8") from None
    return _open(text, str(path))


def _open(text: str, what: str) -> str:
    """Return a text in which no secret of the environment stands: a record is not the place for one."""
    hidden = Secrets({}).hidden(text)
    if hidden != text:
        changed = next(two for one, two in zip(text.splitlines(), hidden.splitlines(), strict=False) if one != two)
        name = re.search(r"<(\w+)>", changed)
        variable = name[1] if name else "a variable"
        raise RewardDefinitionError(f"{what}: the value of {variable} stands in it; read it from the environment")
    return text
