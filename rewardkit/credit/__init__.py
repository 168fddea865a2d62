"""Public: what each turn of a completion earned, and the advantages that are made of it.

A reward of ``@step_reward(credit=...)`` gives each turn of the assistant a number beside the completion's.
:func:`turn_scores` reads them from an outcome, with the place of each; :func:`turn_totals` adds up those of several
rewards; :func:`turn_advantages` compares them inside their groups, in one of the ways of :data:`NORMALIZATIONS`.

A number that is not known is ``None`` here and ``nan`` in arrays. It counts in no mean and its advantage is 0, as TRL
has it of a completion without a reward: it teaches nothing. It is never taken for the number 0.
"""

from rewardkit.credit.comparison import NORMALIZATIONS, RETURNS, turn_advantages, turn_totals
from rewardkit.credit.earnings import TurnNumbers, TurnScore, turn_numbers, turn_scores, turn_spans
from rewardkit.steps.reading import count_turns

__all__ = [
    "NORMALIZATIONS",
    "RETURNS",
    "TurnNumbers",
    "TurnScore",
    "count_turns",
    "turn_advantages",
    "turn_numbers",
    "turn_scores",
    "turn_spans",
    "turn_totals",
]
