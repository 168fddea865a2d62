"""What trainers are told of turns: the numbers of a scored batch, rewards a token, one line where a trainer takes none.

:mod:`rewardkit.credit` makes advantages of the numbers; :mod:`trainer_adapter.credit_trainer` hands them to TRL.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from rewardkit import Composable, Message, Outcome, ScoreBatch
from rewardkit.credit import TurnNumbers, count_turns, turn_numbers, turn_spans

BatchTurns: TypeAlias = Mapping[str, Sequence[TurnNumbers]]
"""For each reward with ``credit`` what it says of the turns of each completion of a batch."""
Text: TypeAlias = str | Sequence[Message]
_log = logging.getLogger("trainer_adapter")
_logged: set[tuple[str, tuple[str, ...]]] = set()


class TurnCredit(NamedTuple):
    """A completion's total by turns, for trainers that take a reward a turn or a token.

    Attributes:
        turns: For each turn of the assistant the weighted sum of its numbers, ``None`` where none is known.
        rest: What the total has besides: of rewards without credit, and of those whose turns are not known.
    """

    turns: tuple[float | None, ...]
    rest: float

    @property
    def sum(self) -> float:
        """What all turns and the rest add up to."""
        return math.fsum([self.rest, *(number for number in self.turns if number is not None)])

    def token_rewards(self, mask: Sequence[Any]) -> list[float] | None:
        """Return a reward for each token: a turn's number at its last token, the rest at the last that counts.

        A turn whose number is not known adds nothing, since a token has no other word for that.

        Args:
            mask: Which tokens the model wrote, one a token of the completion, without padding.

        Returns:
            ``None`` where it is not known which tokens are a turn's: there are more or fewer runs of them than turns.
        """
        spans = turn_spans(mask)
        if not mask or len(spans) != len(self.turns):
            return None
        rewards = [0.0] * len(mask)
        rewards[-1] = self.rest
        for number, (_, end) in zip(self.turns, spans, strict=True):
            rewards[end - 1] += number or 0.0
        return rewards


class CreditedNumber(float):
    """A completion's total that brings its turns along, through what takes numbers alone; it pickles with them."""

    credit: TurnCredit
    tokens: list[float] | None = None

    @classmethod
    def of(cls, total: float, credit: TurnCredit) -> CreditedNumber:
        """Return a total with its turns."""
        number = cls(total)
        number.credit = credit
        return number


def turn_credit(
    total: float, outcomes: Mapping[str, Outcome], weights: Mapping[str, float], completion: Text
) -> TurnCredit:
    """Return a completion's total by turns, from its outcomes; rewards without numbers of turns are the rest."""
    numbers: dict[str, tuple[float | None, ...]] = {}
    for name, outcome in outcomes.items():
        own = turn_numbers(completion, outcome).numbers
        if weights[name] and any(number is not None for number in own):
            numbers[name] = own
    scored = [weights[name] * (outcomes[name].score or 0.0) for name in numbers]
    turns: list[float | None] = []
    for turn in range(count_turns(completion)):
        parts = [(weights[name], column[turn]) for name, column in numbers.items()]
        terms = [weight * number for weight, number in parts if number is not None]
        turns.append(math.fsum(terms) if terms else None)
    return TurnCredit(tuple(turns), math.fsum([total, *(-score for score in scored)]))


def crediting(rewards: Mapping[str, Composable]) -> tuple[str, ...]:
    """Return the names of the rewards that give each turn a number."""
    return tuple(name for name, reward in rewards.items() if reward.credit)


def batch_turns(batch: ScoreBatch, rewards: Mapping[str, Composable]) -> BatchTurns:
    """Return what the rewards with ``credit`` say of the turns of a scored batch, completion by completion."""
    return {
        name: [
            turn_numbers(rollout.completion, outcome)
            for rollout, outcome in zip(batch.rollouts, batch[name], strict=True)
        ]
        for name in crediting(rewards)
    }


def tell_of_one_number(rewards: Mapping[str, Composable], trainer: str, advice: str | None = None) -> None:
    """Log once that the turns' numbers become one, where a trainer takes no more, or rewards are added up.

    Args:
        rewards: The rewards, by name.
        trainer: The trainer's name.
        advice: What takes a number a turn instead; ``None`` where the trainer itself does.
    """
    names = crediting(rewards)
    summed = [name for name in rewards if name not in names and any(leaf.credit for leaf in rewards[name].leaves)]
    facts = [(tuple(summed), "the turns of a composition are not known", "give each reward a weight instead")]
    if advice is not None:
        facts.append((names, f"{trainer} takes one number a completion", advice))
    for listed, reason, remedy in facts:
        if listed and (trainer, listed) not in _logged:
            _logged.add((trainer, listed))
            _log.warning("%s: %s, so each turn's number is lost in one; %s", ", ".join(listed), reason, remedy)
