"""What rewardkit reads of a reward's function where that is an object: a judge, a step reward, a reward given as text.

Plain functions, partials and users' own objects are not of this kind: :func:`described` returns the defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rewardkit.run_code import Sources


class Versioned:
    """A value that states its version itself, so that a fingerprint does not read its source and settings."""

    @property
    def version(self) -> str:
        """Text that changes when what decides the score may have changed; computed when it is first asked for."""
        raise NotImplementedError

    def version_at(self, sources: Sources) -> str:
        """Return the version at the start of a run, whose files are what ``sources`` has."""
        return self.version


class RewardFunction:
    """The base of a reward's function that is an object. Everything has a default that suits a plain function."""

    @property
    def hints(self) -> Mapping[str, Any] | None:
        """The parameters' annotations, resolved; ``None`` where they are those of the signature."""
        return None

    @property
    def unannotated(self) -> frozenset[str]:
        """The names in ``hints`` to which the author gave no annotation, so that their columns are passed on as is."""
        return frozenset()

    @property
    def inner(self) -> tuple[Any, ...]:
        """The rewards that it calls itself, at any depth; not typed, as a reward is made of its function."""
        return ()

    @property
    def source_text(self) -> str | None:
        """The text that runs in a jail in place of the function; ``None`` where the function runs as it is."""
        return None

    @property
    def on_one_host(self) -> bool:
        """Whether all its calls must be made on one host, because they share a file that no other host has."""
        return False

    @property
    def charges(self) -> Mapping[str, float]:
        """The USD that the ledger of its budget counts so far, by the ledger's path; empty without a budget."""
        return {}

    def set_up(self) -> None:
        """Check that what it needs is there; a runtime calls this once, in its own process.

        Raises:
            RewardDefinitionError: Something is missing; the message says what helps.
        """

    def load(self) -> None:
        """Load what its calls need, such as weights; called in the process that runs them, before the first one.

        Raises:
            ConfigError: It cannot be loaded; the runtime's first batch then raises RewardLoadError with these words.
        """

    @property
    def load_timeout_s(self) -> float:
        """Seconds that :meth:`load` may take; a runtime allows its own ``load_timeout_s`` where that is longer."""
        return 0.0


_PLAIN = RewardFunction()


def described(function: object) -> RewardFunction:
    """Return a reward's function where it is such an object, else the defaults."""
    return function if isinstance(function, RewardFunction) else _PLAIN
