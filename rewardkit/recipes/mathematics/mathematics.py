"""Mathematics with a verified answer: right or not, and a little for answering in a box."""

from builtin_rewards.math import math_answer
from rewardkit import reward


@reward(score_range=(0, 1))
def boxed(completion: str) -> float:
    """1 if an answer stands in a box."""
    return float("\\boxed{" in completion)


solved = (0.9 * math_answer + 0.1 * boxed).named("solved")
