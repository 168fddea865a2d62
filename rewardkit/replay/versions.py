"""A recorded version of a reward, found again: by its reference, or by the text of its file as it was recorded.

What is found is the version only where its fingerprint is the recorded one. Importing runs the file's code in this
process, as every command that takes a reference does; so open only records that you trust.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from rewardkit.declare.compose import Composable, Composite
from rewardkit.declare.decorator import Reward
from rewardkit.declare.options import RewardOptions
from rewardkit.declare.text_reward import reward_from_source
from rewardkit.errors import RewardError
from rewardkit.loading.registry import as_named, resolve
from rewardkit.replay.single_scorer import why_not

_NOT_IMPORTED = " cannot be imported: "


class Described(Protocol):
    """What a record keeps of a version."""

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
    """A version that was looked for.

    Attributes:
        reward: The very version; ``None`` where it is not there.
        why: Why it is not there.
    """

    reward: Composable | None
    why: str = ""


class VersionFinder:
    """Finds recorded versions; use it in a ``with`` statement, which keeps the files that it writes out.

    A file that changed is written out as it was recorded, to a folder of its own, and imported from there.
    """

    def __init__(self) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._known: dict[tuple[str, str], FoundVersion] = {}
        self._origins: dict[str, str] = {}
        self._path = list(sys.path)

    def __enter__(self) -> VersionFinder:
        return self

    def __exit__(self, *error: object) -> None:
        sys.path[:] = self._path
        if self._folder is not None:
            self._folder.cleanup()

    def find(self, version: Described) -> FoundVersion:
        """Return a recorded version, or why it cannot be had; each is looked for once."""
        key = version.reward, version.digits
        if key not in self._known:
            found = self._found(version)
            wrong = None if found.reward is None else why_not(found.reward)
            self._known[key] = found if wrong is None else FoundVersion(None, wrong)
        return self._known[key]

    def find_now(self, version: Described) -> FoundVersion:
        """Return what a version's reference leads to now, under its recorded name; or else the version as recorded."""
        if version.reference is not None:
            now, _ = self._resolved(version.reference, version)
            if now is not None:
                as_recorded = now.version == version.digits
                with contextlib.redirect_stdout(sys.stderr):
                    return FoundVersion(now if as_recorded else as_named(resolve(version.reference), version.reward))
        return self.find(version)

    def written_from(self, file: str) -> str:
        """Return the file whose recorded text a file is; the file itself if it was not recorded."""
        return self._origins.get(file, file)

    def _found(self, version: Described) -> FoundVersion:
        if not version.digits:
            return FoundVersion(None, "its fingerprint was not recorded")
        if version.reference is None:
            return self._of_text(version)
        now, why = self._resolved(version.reference, version)
        if now is not None and now.version == version.digits:
            return FoundVersion(now)
        if now is not None:
            why = f"{version.reference} has changed: it is version {now.version} now, and was {version.digits}"
        if version.module is None:
            return FoundVersion(None, why)
        then, wrong = self._resolved(self._as_it_was(version), version)
        if then is not None and then.version == version.digits:
            return FoundVersion(then)
        besides = "gives another version, too"
        if then is None:
            besides = f"does not import: {wrong.rpartition(_NOT_IMPORTED)[2]}"
        return FoundVersion(None, f"{why}; its recorded text {besides}")

    def _of_text(self, version: Described) -> FoundVersion:
        """Return a reward that was given as text, whose source is all of it."""
        if version.source is not None:
            with contextlib.suppress(RewardError):
                options = {key: value for key, value in _options(version).items() if key != "name"}
                made = reward_from_source(version.source, version.reward, **options)
                if made.version == version.digits:
                    return FoundVersion(made)
        return FoundVersion(None, "it was defined in a script, a notebook or a function, where no reference leads")

    def _resolved(self, reference: str, version: Described) -> tuple[Composable | None, str]:
        """Return what a reference leads to, with the recorded name and options; or why it leads nowhere."""
        try:
            with contextlib.redirect_stdout(sys.stderr):
                return _as_recorded(resolve(reference), version), ""
        except Exception as fault:  # whatever an import raises
            said = (str(fault).strip() or type(fault).__name__).splitlines()[-1]
            named = reference.rpartition(":")[0] in said
            return None, said if named else f"{reference}{_NOT_IMPORTED}{said}"

    def _as_it_was(self, version: Described) -> str:
        """Write a version's file as it was recorded, and return the reference into it."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="rewardkit-versions-")
        place, _, name = str(version.reference).rpartition(":")
        beside = Path(place).parent
        if place.endswith(".py") and beside.is_dir() and str(beside) not in sys.path:
            sys.path.append(str(beside))  # what the file imports lies there
        stem = Path(place).stem if place.endswith(".py") else place.rpartition(".")[2]
        folder = Path(self._folder.name) / f"{version.number}-{version.digits}"
        folder.mkdir(exist_ok=True)
        file = folder / f"{stem}.py"
        file.write_text(version.module or "", encoding="utf-8")
        self._origins[str(file)] = place if place.endswith(".py") else f"{stem}.py"
        return f"{file}:{name}"


def _as_recorded(found: Composable, version: Described) -> Composable:
    """Return a reward under the name, and with the options, that the record has."""
    if found.version == version.digits:
        return found
    if isinstance(found, Composite):
        return as_named(found, version.reward)
    assert isinstance(found, Reward)
    options = _options(version)
    return found.with_options(**options) if options else found


def _options(version: Described) -> dict[str, Any]:
    options = version.settings.get("options")
    known = RewardOptions.__dataclass_fields__
    return {key: value for key, value in options.items() if key in known} if isinstance(options, Mapping) else {}
