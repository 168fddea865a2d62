"""An audit as people and machines read it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from builtin_rewards.judge.audit.families import RECIPES, Family
from builtin_rewards.judge.audit.found import Audit
from builtin_rewards.judge.audit.limits import Limits, breaches
from builtin_rewards.judge.audit.measures import Drift, Example, Share
from rewardkit.cli.screen import table
from rewardkit.cli.text import shortened

_SHOWN_EXAMPLES = 2
_JSON_EXAMPLES = 5
_SHOWN_CHARS = 60


def as_json(audit: Audit, limits: Limits) -> dict[str, Any]:
    """Gives the audit with plain values; shares with their rate and interval, at most five examples a family."""
    broken = breaches(audit, limits)
    ready: dict[str, Any] = _ready(audit)
    for family, one in ready["families"].items():
        one["examples"] = one["examples"][:_JSON_EXAMPLES]
        one |= {"rule": RECIPES[Family(family)].rule, "source": RECIPES[Family(family)].source}
    if audit.self_preference is not None:
        ready["self_preference"]["excess"] = audit.self_preference.excess
    return {"passed": not broken, "breaches": broken, "limits": dataclasses.asdict(limits), **ready}


def _ready(value: Any) -> Any:
    if isinstance(value, Share):
        rate, low, high = value.interval
        return {"count": value.hits, "of": value.of, "rate": rate, "low": low, "high": high}
    if dataclasses.is_dataclass(value):
        return {field.name: _ready(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(name): _ready(one) for name, one in value.items()}
    return [_ready(one) for one in value] if isinstance(value, tuple) else value


def print_audit(audit: Audit, limits: Limits, console: Console) -> None:
    """Print the table of families, the other measures, the worst examples and the verdict; 80 columns are enough."""
    models = f" ({', '.join(audit.models)})" if audit.models else ""
    rows = f"{audit.rows} of {audit.total_rows:,} rows, {audit.form}"
    console.print(Text.assemble((audit.judge, "bold"), f"{models}  {rows}; {audit.calls:,} verdicts"))
    console.print(
        f"[dim]Accepted is a score of {audit.accept:g} or more, on a scale from 0 to 1. Tried are wrong answers that "
        f"are refused as they are; the last two columns are right answers with a harmless addition of the same shape."
        f"[/]\n"
    )
    console.print(_table(audit))
    console.print()
    for name, words in _measures(audit).items():
        console.print(Text.assemble((f"{name}  ", "bold"), words))
    for name, why in _by_reason(audit.not_possible).items():
        console.print(Text.assemble(("not possible: ", "bold yellow"), f"{name}: {why}"))
    if audit.first_error is not None:
        words = f"{audit.failed:,} of {audit.calls:,} calls failed; the first: {shortened(audit.first_error, 300)}"
        console.print(Text(words, style="red"))
    for family, one in audit.families.items():
        by_name = {example.name: example for example in reversed(one.examples)}
        for example in list(by_name.values())[::-1][:_SHOWN_EXAMPLES]:
            _print_example(family, example, console)
    broken = breaches(audit, limits)
    closing = f"NOT passed: {'; '.join(broken)}" if broken else "passed"
    console.print()
    console.print(Text(closing, style="bold"))


def _table(audit: Audit) -> Table:
    shown = table("family", "tried", "accepted", "95%", "failed", "benign drift", "newly refused")
    for column in shown.columns[1:]:
        column.justify = "right"
    for family, one in audit.families.items():
        accepted = Text(f"{one.accepted.hits:g}" if one.accepted.of else "-")
        if one.accepted.hits and family is not Family.NEUTRAL:
            accepted.stylize("red")
        shown.add_row(
            Text(family, style="bold"),
            f"{one.accepted.of:,}",
            accepted,
            _interval(one.accepted),
            f"{one.failed:,}" if one.failed else "-",
            _drift(one.benign_drift),
            f"{one.newly_refused.hits:g}/{one.newly_refused.of}",
        )
    return shown


def _measures(audit: Audit) -> dict[str, str]:
    """Gives the measures beside the families, in words, by name."""
    found = {
        "right answers accepted as they are": _share(audit.bare_right),
        "wrong answers accepted as they are": f"{_share(audit.bare_wrong)}; these are not attacked",
    }
    padded = audit.families[Family.VERBOSITY]
    if padded.wrong_drift.answers:
        found["padding"] = (
            f"moves wrong answers by {_drift(padded.wrong_drift)}, right ones by {_drift(padded.benign_drift)}"
        )
    if (place := audit.position) is not None:
        found["position"] = (
            f"verdict flips with the order {_share(place.flips)}; first place wins {_share(place.first)}; "
            f"McNemar p = {place.p:.2g}" + (f"; {place.failed} failed" if place.failed else "")
        )
    if (again := audit.stability) is not None:
        spread = "" if again.spread is None else f"; mean standard deviation {again.spread:.3f}"
        found[f"stability over {again.samples}"] = f"verdict changes {_share(again.unstable)}{spread}" + (
            f"; {again.failed} failed" if again.failed else ""
        )
    if (labels := audit.calibration) is not None:
        shares = {"accuracy": labels.accuracy, "better of a pair": labels.pairs}
        numbers = {"AUC": labels.auc, "ECE": labels.ece, "Brier": labels.brier, "Spearman": labels.spearman}
        words = [f"{name} {_share(share)}" for name, share in shares.items() if share is not None]
        words += [f"{name} {number:.2f}" for name, number in numbers.items() if number is not None]
        found["labels"] = "; ".join(words) or "nothing was scored"
    if (own := audit.self_preference) is not None:
        found["self-preference"] = (
            f"{', '.join(own.families)}: accepts {_share(own.own)} of its own, {own.own_right.rate:.0%} right; "
            f"{_share(own.others)} of others, {own.others_right.rate:.0%} right; excess {own.excess:+.0%}"
        )
    return found


def _by_reason(not_possible: Mapping[str, str]) -> dict[str, str]:
    """Gives names, several of one reason together, with the reason."""
    names: dict[str, list[str]] = {}
    for name, why in not_possible.items():
        names.setdefault(why, []).append(name)
    return {", ".join(listed): why for why, listed in names.items()}


def _print_example(family: Family, one: Example, console: Console) -> None:
    before = "" if one.before is None else f"{one.before:.2g} before, "
    name = shortened(one.name, 40)
    head = Text.assemble((f"{family} ", "bold"), ("accepted", "red"), f"  line {one.line}, {name}: {before}")
    console.print(head.append(f"{one.score:.2g} with it"), no_wrap=True, overflow="ellipsis")
    console.print(Text(f"    “{_ends(one.text)}”"), no_wrap=True, overflow="ellipsis")
    if one.said:
        console.print(Text(f"    {shortened(one.said, _SHOWN_CHARS)}", style="dim"), no_wrap=True, overflow="ellipsis")


def _ends(text: str) -> str:
    """Gives the two ends of a text, for an addition may stand at either."""
    flat = shortened(text, len(text) + 1)
    half = _SHOWN_CHARS // 2
    return flat if len(flat) <= 2 * half else f"{flat[:half]} … {flat[-half:]}"


def _share(share: Share) -> str:
    if not share.of:
        return "- (none)"
    return f"{share.hits:g} of {share.of} = {share.rate:.0%} [{_interval(share)}]"


def _interval(share: Share) -> str:
    _, low, high = share.interval
    return f"{100 * low:.0f}-{high:.0%}" if share.of else "-"


def _drift(drift: Drift) -> str:
    return "-" if drift.mean is None else f"{drift.mean:+.2f}"
