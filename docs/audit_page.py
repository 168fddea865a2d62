"""Audits every built-in reward with the rows of ``docs/examples/rewards``, and writes ``docs/reference/audit.md``.

    python docs/audit_page.py [NAME ...]

It takes some minutes. With names it audits only those, prints what came of them, and leaves the page as it is.
Beside a reward that does not pass stand the rules of thumb that it breaks, with an example each. Exits with 1 then.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROWS = Path(__file__).parent / "examples" / "rewards"
PAGE = Path(__file__).parent / "reference" / "audit.md"
HEAD = """# The audit of the built-in rewards

What `rewardkit audit` says of the rewards that come with rewardkit, on the rows in
[`docs/examples/rewards`](../examples/rewards/); `python docs/audit_page.py` makes the audit and writes this page.
[Audit a reward](../how-to/audit-a-reward.md) has the families of attacks and their rules.
With the completions of these rows as a run, `rewardkit audit --run` calls none of the rewards exploitable.

**Not judged** are rewards that read no answer: nothing that was tried speaks against them, and what fills the form or
the length that they pay for, another reward must judge.
**Tried** counts completions, **paid** those that were wrongly paid, **slow** and **crashed** calls that took half of
their deadline, or raised.
**Refused** is the share of honest ways of writing a right answer that are not paid: an exact match refuses most of
them on purpose, so that is no fault.
A family or rule of thumb is **left out** where it would accuse a reward of what it is for; the source says so beside
the code, with a reason.
"""


def main() -> int:
    """Audit, print, write the page; gives the exit code."""
    names = sys.argv[1:] or sorted(path.stem for path in ROWS.glob("*.jsonl"))
    found = []
    for name in names:
        found.append(audit(name))
        print(_row(found[-1]), *_flaws(found[-1]), sep="\n", flush=True)
    if not sys.argv[1:]:
        PAGE.write_text(page(found), encoding="utf-8")
    return 1 if any(one["verdict"] == "not passed" for one in found) else 0


def audit(name: str) -> dict[str, Any]:
    """Return the report of one reward's audit."""
    command = [sys.executable, "-m", "rewardkit", "audit", name, str(ROWS / f"{name}.jsonl"), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own command
    if done.returncode not in (0, 1, 4):
        sys.exit(f"{name}: {done.stderr}")
    report: dict[str, Any] = json.loads(done.stdout)["rewards"][0]
    return report


def page(found: list[dict[str, Any]]) -> str:
    """Return the page's text."""
    rows = ["| reward | verdict | tried | paid | refused | slow | crashed |", "|---|---|---|---|---|---|---|"]
    rows += map(_row, found)
    left = [f"- `{one['reward']}`, {name}: {why}." for one in found for name, why in _left_out(one).items()]
    total = sum(_count(one, "accepted") for one in found)
    said = f"{len(found)} rewards, {sum(_count(one, 'tried') for one in found):,} completions, {total} wrongly paid."
    return "\n\n".join([HEAD.strip(), said, "\n".join(rows), "## Left out", "\n".join(left)]) + "\n"


def _row(one: dict[str, Any]) -> str:
    counts = [f"{_count(one, key):,}" for key in ("tried", "accepted")]
    late = [str(_count(one, key)) for key in ("slow", "crashed")]
    cells = [f"`{one['reward']}`", one["verdict"], *counts, f"{one['false_reject_share']:.0%}", *late]
    return f"| {' | '.join(cells)} |"


def _flaws(one: dict[str, Any]) -> list[str]:
    """Return what is wrong with a reward: a line a rule of thumb, with the first completion that broke it."""
    kinds = ("accepted", "slow", "crashed")
    shown = [example for family in one["families"].values() for kind in kinds for example in family["examples"][kind]]
    firsts = {example["rule"]: example for example in reversed(shown)}
    told = [
        f"    {name}: {flaw['count']}, such as {firsts.get(name, {}).get('completion', '')[:160]!r}"
        for name, flaw in one["flaws"].items()
    ]
    return told + [f"    {finding['name']}: {finding['words']}" for finding in one["findings"]]


def _count(one: dict[str, Any], key: str) -> int:
    return sum(family[key] for family in one["families"].values())


def _left_out(one: dict[str, Any]) -> dict[str, str]:
    """Return the families and rules of thumb that the reward's author left out, with the reasons."""
    reasons = {family: told["not_applicable"] or "" for family, told in one["families"].items()}
    skipped = {name: why.removeprefix(LEFT_OUT) for name, why in reasons.items() if why.startswith(LEFT_OUT)}
    return skipped | one["left_out"]


LEFT_OUT = "left out: "

if __name__ == "__main__":
    sys.exit(main())
