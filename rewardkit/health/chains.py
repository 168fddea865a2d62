"""Which links of chains scored in place of the first, such as a rule while a judge was down."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

_LINK = "link/"
MOST_FALLBACK = 0.2
"""The share of a chain's scores that later links may give before ``diagnose`` says so."""


def link_shares(metrics: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Return the share of a chain's scores that each link gave, in the order of the links; ``{}`` for no chain."""
    chained = [own for own in metrics if any(name.startswith(_LINK) for name in own)]
    names = dict.fromkeys(name for own in chained for name in own if name.startswith(_LINK))
    return {name.removeprefix(_LINK): math.fsum(own.get(name, 0.0) for own in chained) / len(chained) for name in names}


def fallback_chains(shares: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """Return the chains, by reward, whose later links gave more than a fifth of the scores."""
    return {
        reward: dict(chain) for reward, chain in shares.items() if math.fsum(list(chain.values())[1:]) > MOST_FALLBACK
    }


def fallback_line(reward: str, shares: Mapping[str, float], command: str) -> str:
    """Return a sentence on a chain whose later links scored much; ``command`` shows why the first did not answer."""
    (first, share), *later = shares.items()
    others = ", ".join(f"{name} {own:.0%}" for name, own in later if own)
    return f"{reward}: its first link, {first}, gave {share:.0%} of the scores, and others {others}; {command}"
