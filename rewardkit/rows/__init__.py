"""From a file to the rows as a trainer hands them to rewards: the one reader of data sets."""

from rewardkit.rows.reader import Row, read_rollouts, read_rows

__all__ = ["Row", "read_rollouts", "read_rows"]
