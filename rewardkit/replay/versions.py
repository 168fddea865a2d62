"""A recorded version of a reward, found again: by its reference, or by the text of its file as it was recorded.

What is found is the version only where its fingerprint is the recorded one. Importing runs the file's code in this
process, as every command that takes a reference does; so open only records that you trust.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from rewardkit.declare.compose import Composable, Composite
from rewardkit.declare.decorator import Reward
from rewardkit.declare.options import RewardOptions
from rewardkit.declare.text_reward import reward_from_source
from rewardkit.errors import RewardError
from rewardkit.loading.carried import write_module
from rewardkit.loading.registry import as_named, resolve
from rewardkit.replay.single_scorer import obstacle

_NOT_IMPORTED = " cannot be imported: "


class Described(Protocol):
    """What a record has of a version."""

    @property
    def reward(self) -> str:
        """The reward's name in the run."""

    @property
    def number(self) -> int:
        """1 for the first version of this name."""

    @property
    def digits(self) -> str:
        """The fingerprint; empty where it is not known."""

    @property
    def reference(self) -> str | None:
        """Where it was defined, as ``/folder/file.py:name`` or ``module:name``."""

    @property
    def source(self) -> str | None:
        """The source of its function."""

    @property
    def module(self) -> str | None:
        """The text of the file that the reference names."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """Its options and settings."""


class FoundVersion(NamedTuple):
    """A version that was looked for."""

    reward: Composable | None  # The very version; `None` where it is not there
    why: str = ""  # Why it is not there
    address: str | None = None  # What names it at the servers that scored it, as `http://rewards:8000#correct`


class VersionFinder:
    """Finds recorded versions; use it in a ``with`` statement, at whose end the files that it wrote are removed.

    A file that changed is written as it was recorded, to a folder of its own, and imported from there.
    """

    def __init__(self) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._versions: dict[tuple[str, str], FoundVersion] = {}
        self._originals: dict[str, str] = {}
        self._path = list(sys.path)

    def __enter__(self) -> VersionFinder:
        return self

    def __exit__(self, *error: object) -> None:
        sys.path[:] = self._path
        if self._folder is not None:
            self._folder.cleanup()

    def find(self, version: Described) -> FoundVersion:
        """Return a recorded version, or why it cannot be loaded; each is looked for once."""
        key = version.reward, version.digits
        if key not in self._versions:
            match = self._search(version)
            reason = None if match.reward is None else obstacle(match.reward)
            self._versions[key] = match if reason is None else FoundVersion(None, reason)
        return self._versions[key]

    def find_now(self, version: Described) -> FoundVersion:
        """Return what a version's reference leads to now, under its recorded name; or else the version as recorded."""
        if version.reference is not None:
            now, _ = self._resolve(version.reference, version)
            if now is not None:
                as_recorded = now.version == version.digits
                with contextlib.redirect_stdout(sys.stderr):
                    return FoundVersion(now if as_recorded else as_named(resolve(version.reference), version.reward))
        return self.find(version)

    def written_from(self, file: str) -> str:
        """Return the file whose recorded text a file is; the file itself if it was not recorded."""
        return self._originals.get(file, file)

    def _search(self, version: Described) -> FoundVersion:
        """Look for a version where its reference leads now, then in its recorded text."""
        if not version.digits:
            return FoundVersion(None, "its fingerprint was not recorded")
        if version.reference is None:
            return self._from_text(version)
        now, why = self._resolve(version.reference, version)
        if now is not None and now.version == version.digits:
            return FoundVersion(now)
        if now is not None:
            why = f"{version.reference} has changed: it is version {now.version} now, and was {version.digits}"
        if version.module is None:
            return FoundVersion(None, why)
        then, problem = self._resolve(self._write_recorded(version), version)
        if then is not None and then.version == version.digits:
            return FoundVersion(then)
        besides = "gives another version, too"
        if then is None:
            besides = f"does not import: {problem.rpartition(_NOT_IMPORTED)[2]}"
        return FoundVersion(None, f"{why}; its recorded text {besides}")

    def _from_text(self, version: Described) -> FoundVersion:
        """Return the reward of a version that was defined by text alone; else say why no reference leads to it."""
        server = version.settings.get("server")
        if isinstance(server, str):
            return FoundVersion(None, f"it was scored by a server, {server}", f"{server}#{version.reward}")
        if version.source is not None:
            with contextlib.suppress(RewardError):
                options = {key: value for key, value in _options(version).items() if key != "name"}
                reward = reward_from_source(version.source, version.reward, **options)
                if reward.version == version.digits:
                    return FoundVersion(reward)
        or_served = ", or scored by a server" if version.source is None else ""  # records of older releases do not say
        where = "a script, a notebook or a function, where no reference leads"
        return FoundVersion(None, f"it was defined in {where}{or_served}")

    def _resolve(self, reference: str, version: Described) -> tuple[Composable | None, str]:
        """Return what a reference leads to, with the recorded name and options; or why it leads nowhere."""
        try:
            with contextlib.redirect_stdout(sys.stderr):
                return _with_recorded_options(resolve(reference), version), ""
        except Exception as error:  # whatever an import raises
            message = (str(error).strip() or type(error).__name__).splitlines()[-1]
            has_name = reference.rpartition(":")[0] in message
            return None, message if has_name else f"{reference}{_NOT_IMPORTED}{message}"

    def _write_recorded(self, version: Described) -> str:
        """Write a version's file as it was recorded, and return the reference into it."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="rewardkit-versions-")
        origin, _, name = str(version.reference).rpartition(":")
        original = origin if origin.endswith(".py") else f"{origin.rpartition('.')[2]}.py"
        file = write_module(version.module or "", original, self._folder.name)
        self._originals[str(file)] = original
        return f"{file}:{name}"


def _with_recorded_options(reward: Composable, version: Described) -> Composable:
    """Return a reward under the name, and with the options, that the record has."""
    if reward.version == version.digits:
        return reward
    if isinstance(reward, Composite):
        return as_named(reward, version.reward)
    assert isinstance(reward, Reward)
    options = _options(version)
    return reward.with_options(**options) if options else reward


def _options(version: Described) -> dict[str, Any]:
    """Return the options of a reward that the record has, without those that this release does not know."""
    options = version.settings.get("options")
    names = RewardOptions.__dataclass_fields__
    return {key: value for key, value in options.items() if key in names} if isinstance(options, Mapping) else {}
