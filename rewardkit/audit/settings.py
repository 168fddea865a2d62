"""What the author asks of an audit, each with its default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sandbox import LOAD_TIMEOUT_S

TIME_LIMIT_S = 1800.0


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one audit.

    Attributes:
        accept_share: A completion is paid if its score is more than this share of the way from the row's floor
            to its full level, 0 to 1; at 1 only the full level is.
        slow_share: A call is slow if it takes more than this share of the reward's deadline, 0 to 1.
        heavy_rows: Rows on which the heavy probes are tried.
        repeated_rows: Rows whose honest forms are scored a second time.
        workers: Worker processes; ``None`` for the runtime's own choice.
        load_timeout_s: Seconds that a worker may take to load the reward.
        time_limit_s: Seconds after which nothing more is tried; what was tried is judged.
        skipped: Families and rules of thumb that the author calls not applicable, with the reason.
    """

    accept_share: float = 0.5
    slow_share: float = 0.5
    heavy_rows: int = 2
    repeated_rows: int = 5
    workers: int | None = None
    load_timeout_s: float = LOAD_TIMEOUT_S
    time_limit_s: float = TIME_LIMIT_S
    skipped: Mapping[str, str] = field(default_factory=dict)
