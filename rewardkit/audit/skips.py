"""What an author says is meant so: families, rules of thumb and flaws of rows that do not count against a reward.

``# audit: skip NAME REASON`` anywhere in a reward's function says it, several names by ``# audit: skip NAME,NAME
REASON``, and both need the reason. A family of probes that makes no sense for a reward, or a rule of thumb, is then
left out by an audit; a kind of flaw that ``check`` finds is shown as accepted, with the reason.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rewardkit.audit.probe import Family
from rewardkit.audit.rules_of_thumb import KINDS
from rewardkit.audit.source import pieces_of
from rewardkit.declare.decorator import Reward
from rewardkit.errors import RewardDefinitionError

AUDIT_NAMES = tuple(dict.fromkeys([*map(str, Family), *KINDS]))
"""What an audit leaves out: families and rules of thumb."""
FLAW_NAMES = (
    "paid_like_gold", "not_recognised", "other_language", "trusts_objects", "constant_passes", "mutants_live",
    "no_reference",
)  # fmt: skip
"""What ``check`` accepts: the kinds of flaws that do not fail it."""
_ALL_NAMES = (*AUDIT_NAMES, *FLAW_NAMES)
_NOUNS = {
    AUDIT_NAMES: "no family or rule of thumb",
    FLAW_NAMES: "no kind of flaw that check accepts",
    _ALL_NAMES: "no family, rule of thumb or kind of flaw that check accepts",
}


def audit_skips(reward: Reward[..., Any]) -> dict[str, str]:
    """Return the families and rules of thumb that the author's comments call not applicable, with the reasons.

    Raises RewardDefinitionError where a comment names neither these nor a flaw, or gives no reason.
    """
    return {name: reason for name, reason in _commented(reward).items() if name in AUDIT_NAMES}


def accepted_flaws(reward: Reward[..., Any]) -> dict[str, str]:
    """Return the kinds of flaws that the author's comments call intended, with the reasons; raise as audit_skips."""
    return {name: reason for name, reason in _commented(reward).items() if name in FLAW_NAMES}


def takes_comments(reward: Reward[..., Any]) -> bool:
    """Return whether a reward has source of its user's: one of a server has none, and built-in ones are not edited."""
    pieces = pieces_of(reward)
    return bool(pieces) and "site-packages" not in pieces[0].file and not _is_builtin(pieces[0].file)


def _is_builtin(file: str) -> bool:
    return "builtin_rewards" in Path(file).parts


def check_name(name: str, names: tuple[str, ...], where: str) -> str:
    """Return a name that is among :data:`AUDIT_NAMES` or :data:`FLAW_NAMES`; raise RewardDefinitionError otherwise."""
    if name not in names:
        raise RewardDefinitionError(f"{where}: {_NOUNS[names]} {name!r}; expected {', '.join(names)}")
    return name


def _commented(reward: Reward[..., Any]) -> dict[str, str]:
    """Return all names that comments of a reward's function give, with the reasons."""
    reasons: dict[str, str] = {}
    pieces = pieces_of(reward)
    if not pieces:
        return reasons
    function = pieces[0]
    for comment in function.comments(1, len(function.lines)):
        verb, _, rest = comment.partition(" ")
        if verb == "skip":
            names, _, reason = rest.strip().partition(" ")
            where = f"reward {reward.name!r}: # audit: {comment}"
            reasons.update((check_name(name, _ALL_NAMES, where), reason.strip()) for name in names.split(","))
            if not reason.strip():
                raise RewardDefinitionError(f"{where}: give the reason behind it")
    return reasons
