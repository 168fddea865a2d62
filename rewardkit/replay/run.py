"""A recorded run, as its users open it: the record, and what can be done with it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rewardkit.record.changes import RewardChange, changes_of
from rewardkit.record.reader import RecordReader

if TYPE_CHECKING:
    from rewardkit.replay.update import RunConfig, Update


class Run(RecordReader):
    """A recorded run, read lazily: ``Run.open("runs/one")``. Reading does not disturb a process that is writing.

    A run belongs to the thread that opened it.
    """

    @classmethod
    def open(cls, run: str | os.PathLike[str]) -> Run:
        """Return the run of a folder or file.

        Raises:
            RecordError: It is missing, empty, not a record, or of a newer release.
        """
        return cls(run)

    @property
    def changes(self) -> list[RewardChange]:
        """The changes of rewards that the training was asked for, oldest first."""
        return changes_of(self._connection)

    def get_config(self) -> RunConfig:
        """Return what of the running training can be changed: its rewards and their weights.

        Raises:
            UpdateRefusedError: The training has ended, or takes no changes.
        """
        from rewardkit.replay.update import config_of

        return config_of(self)

    def update_config(
        self, config: RunConfig, *, shadow: bool = False, wait_s: float = 60.0, workers: int | None = None
    ) -> list[Update]:
        """Change the rewards of the running training to those of a configuration.

        Each new reward is imported, and tried on the last recorded completions; where a check fails, nothing is
        asked. The training takes each change at the beginning of a step, all processes at the same one.

        Args:
            config: What :meth:`get_config` returned, with other functions or weights.
            shadow: Whether changed rewards are first scored beside the old ones, with the weight 0.
            wait_s: Seconds to wait for the training's answer.
            workers: Worker processes of the trial; by default the cores at hand, at most 4.

        Returns:
            The changes with the answers. One whose state is ``"asked"`` was not answered in that time, and stands.

        Raises:
            UpdateRefusedError: The training has ended, or refuses a change; it goes on as before.
            RewardError: A reward does not pass its check.
        """
        from rewardkit.replay.update import config_of, update, wishes

        return update(self, wishes(config, config_of(self), shadow=shadow), wait_s=wait_s, workers=workers)
