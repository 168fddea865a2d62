"""Answers from documents: right, with sources that exist, and in words that the documents have."""

import re

from builtin_rewards.citations import citation
from builtin_rewards.matching import contains_all
from rewardkit import Score, reward


@reward(score_range=(0, 1))
def faithful(completion: str, sources: list[str], prompt: str) -> Score:
    """The share of the completion's numbers and names that a source or the question has."""
    evidence = " ".join([*sources, prompt]).casefold()
    text = re.sub(r"\[[\d, -]+\]", "", completion)  # its marks of sources are no claims
    claims = re.findall(r"\d[\d.,]*\d|\d|(?<=[a-z,;] )[A-Z]\w+", text)
    if not claims:
        return Score(0.0, "no claims")
    supported = [claim for claim in claims if re.search(rf"(?<!\w){re.escape(claim.casefold())}(?!\w)", evidence)]
    return Score(len(supported) / len(claims), f"{len(supported)} of {len(claims)} claims stand in a source")


right = contains_all.with_options(name="right")
grounded = (0.5 * right + 0.25 * citation + 0.25 * faithful).named("grounded")
