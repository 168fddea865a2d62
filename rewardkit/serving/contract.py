"""What becomes of a rollout that is scored, skipped, failed or unknown, on each route: the one table of it.

Most trainers know no "unknown": a null ends their step or is taken for a number. Each route says it as its trainer can
be told, and no route invents a score: where only a number can be said it is 0.0, counted as unknown in the metrics and,
where the trainer logs what a reply holds, in the reply.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Outcome, Status


class RowFate(StrEnum):
    """What is known of a rollout's total."""

    SCORED = "scored"  # Every reward with weight that applies gave a score
    SKIPPED = "skipped"  # No reward with weight applies: there is no total, and nothing failed
    FAILED = "failed"  # A reward with weight failed, and its default stands in: there is a total
    UNKNOWN = "unknown"  # A reward with weight failed, and nothing stands in: there is no total


@dataclass(frozen=True, slots=True)
class RouteReply:
    """What a route says of a fate."""

    number: str  # What stands where the trainer wants a number: `"total"`, `"null"`, `"0.0"` or `"NaN"`
    beside: str  # What says the rest, in words


def _replies(
    scored: str, skipped: str, failed: str, unknown: str, missing: str = "0.0"
) -> Mapping[RowFate, RouteReply]:
    """Return a route's replies, from the text beside the number for each fate; ``missing`` replaces a missing total."""
    return {
        RowFate.SCORED: RouteReply("total", scored),
        RowFate.SKIPPED: RouteReply(missing, skipped),
        RowFate.FAILED: RouteReply("total", failed),
        RowFate.UNKNOWN: RouteReply(missing, unknown),
    }


_OUTCOME, _CAUSE = "each reward's outcome", "each reward's outcome, with its cause"
_FLAGS = "`extra_logs` has `unknown`, `skipped`, `failed` and `failed/NAME` as 0.0 or 1.0, and scores as `reward/NAME`"
_SAME, _NAN = "with `?reward_key=` the same flags", "with `?reward_key=` the same flags; with `?unknown=nan` NaN"
TABLE: Mapping[str, Mapping[RowFate, RouteReply]] = {
    "/v1/score": _replies(_OUTCOME, _OUTCOME, _CAUSE, _CAUSE, "null"),
    "/get_reward": _replies(_FLAGS, _FLAGS, _FLAGS, _FLAGS),
    "/slime": _replies(_SAME, _NAN, _SAME, _NAN),
    "/verify": _replies(
        "`mask_sample` false, each reward's score",
        "`mask_sample` true, also in `instance_config`",
        "`mask_sample` false, `failure_kind`, `failure_reason`",
        "`mask_sample` true, also in `instance_config`; `failure_kind`, `failure_reason`, `_ng_failure_class`",
    ),
    "/evaluate": _replies(
        "`is_score_valid` true, each reward in `metrics`",
        "`is_score_valid` false",
        "`is_score_valid` true, the reward's in `metrics` false",
        "`is_score_valid` false, `error` with the cause",
    ),
    "/score": _replies(
        "nothing: the reply is numbers alone", "nothing", "nothing", "nothing; the server warns in its log"
    ),
}
"""What each route says of each fate."""


_OWN_FORM = '/v1/score takes {"rollouts": [{"prompt": "…", "completion": "…", "example": {"COLUMN": …}}]}'
_SENDERS = {
    "/get_reward": "OpenRLHF",
    "/slime": "slime",
    "/verify": "NeMo Gym",
    "/evaluate": "eval-protocol",
    "/score": "LLaMA-Factory",
}


def form_of(route: str) -> str:
    """Return what a route takes, for a request that has another form; a trainer's route names the trainer."""
    sender = _SENDERS.get(route)
    return _OWN_FORM if sender is None else f"{route} reads what {sender} sends; for requests of your own {_OWN_FORM}"


class ToldRow(NamedTuple):
    """One rollout as the routes tell of it.

    Attributes:
        fate: What is known of its total.
        total: The weighted sum; ``None`` where it is skipped or unknown.
        outcomes: The outcomes by reward.
        failed: The name of the first reward with weight that failed; ``None`` where none did.
    """

    fate: RowFate
    total: float | None
    outcomes: Mapping[str, Outcome]
    failed: str | None

    @property
    def number(self) -> float:
        """The total, or 0.0 in place of a missing one where a reply must have a number."""
        return 0.0 if self.total is None else self.total

    @property
    def why(self) -> str | None:
        """Why a reward failed, in a sentence; ``None`` where no reward did."""
        if self.failed is None:
            return None
        outcome = self.outcomes[self.failed]
        return f"reward {self.failed!r}: {outcome.cause}: {outcome.error}"

    @property
    def flags(self) -> dict[str, float]:
        """The fate as numbers, for a trainer's logs; always the same keys."""
        return {str(fate): float(self.fate is fate) for fate in (RowFate.UNKNOWN, RowFate.SKIPPED, RowFate.FAILED)}

    @property
    def logs(self) -> dict[str, float]:
        """All that is known as numbers, for a trainer's logs; always the same keys, whatever rewards are named.

        ``unknown``, ``skipped`` and ``failed`` are 0.0 or 1.0, and so is ``failed/<reward>``; ``reward/<reward>`` is
        its score, and 0.0 for a row without that score.
        """
        scores = {f"reward/{name}": float(score) for name, score in self.scores.items()}
        failed = {f"failed/{name}": float(outcome.cause is not None) for name, outcome in self.outcomes.items()}
        return {**self.flags, **scores, **failed}

    @property
    def scores(self) -> dict[str, float]:
        """Each reward's score, 0.0 for a reward without one; always the same keys."""
        return {name: 0.0 if outcome.score is None else outcome.score for name, outcome in self.outcomes.items()}


def told_rows(batch: ScoreBatch) -> list[ToldRow]:
    """Return each rollout of a batch with its fate, its total, its outcomes and the reward that failed."""
    names = list(batch.outcomes)
    failing = [  # only their outcomes are looked at, row by row
        name
        for name, column in batch.outcomes.items()
        if batch.weights[name] != 0 and Status.FAILED in [outcome.status for outcome in column]
    ]
    scored, skipped = RowFate.SCORED, RowFate.SKIPPED  # Python 3.11 takes long to find a member
    totals = batch.totals
    by_row = zip(*batch.outcomes.values(), strict=True)
    if not failing:
        return [
            ToldRow(skipped if total is None else scored, total, dict(zip(names, row, strict=True)), None)
            for total, row in zip(totals, by_row, strict=True)
        ]
    rows = []
    for total, row in zip(totals, by_row, strict=True):
        outcomes = dict(zip(names, row, strict=True))
        failed = [name for name in failing if outcomes[name].status is Status.FAILED]
        if not failed:
            rows.append(ToldRow(skipped if total is None else scored, total, outcomes, None))
            continue
        unknown = [name for name in failed if outcomes[name].score is None]
        rows.append(ToldRow(RowFate.UNKNOWN if unknown else RowFate.FAILED, total, outcomes, (unknown or failed)[0]))
    return rows
