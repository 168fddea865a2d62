"""Audits every built-in reward with the rows of ``docs/examples/rewards``, and writes ``docs/reference/audit.md``.

    python docs/audit_page.py [NAME ...]

It takes some minutes. With names it audits only those, prints what came of them, and leaves the page as it is.
Exits with 1 where a reward does not pass.
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

**Tried** counts completions, **paid** those that were wrongly paid, **slow** and **crashed** calls that took half of
their deadline, or raised.
**Refused** is the share of honest ways of writing a right answer that are not paid: an exact match refuses most of
them on purpose, so that is no fault.
A family is **left out** where it would accuse a reward of what it is for; the source says so beside the code, with a
reason.
"""


def main() -> int:
    """Audit, print, write the page; gives the exit code."""
    names = sys.argv[1:] or sorted(path.stem for path in ROWS.glob("*.jsonl"))
    found = []
    for name in names:
        found.append(audit(name))
        print(_row(found[-1]), flush=True)
    if not sys.argv[1:]:
        PAGE.write_text(page(found), encoding="utf-8")
    return 0 if all(one["passed"] for one in found) else 1


def audit(name: str) -> dict[str, Any]:
    """Gives the report of one reward's audit."""
    command = [sys.executable, "-m", "rewardkit", "audit", name, "--data", str(ROWS / f"{name}.jsonl"), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own command
    if done.returncode not in (0, 1):
        sys.exit(f"{name}: {done.stderr}")
    report: dict[str, Any] = json.loads(done.stdout)[0]
    return report


def page(found: list[dict[str, Any]]) -> str:
    """Gives the page's text."""
    rows = ["| reward | tried | paid | refused | slow | crashed |", "|---|---|---|---|---|---|", *map(_row, found)]
    left = [
        f"- `{one['reward']}`, {family}: {_skipped(told)}."
        for one in found
        for family, told in one["families"].items()
        if _skipped(told)
    ]
    total = sum(_count(one, "accepted") for one in found)
    said = f"{len(found)} rewards, {sum(_count(one, 'tried') for one in found):,} completions, {total} wrongly paid."
    return "\n\n".join([HEAD.strip(), said, "\n".join(rows), "## Left out", "\n".join(left)]) + "\n"


def _row(one: dict[str, Any]) -> str:
    counts = [f"{_count(one, key):,}" for key in ("tried", "accepted")]
    late = [str(_count(one, key)) for key in ("slow", "crashed")]
    return f"| `{one['reward']}` | {' | '.join(counts)} | {one['false_reject_share']:.0%} | {' | '.join(late)} |"


def _count(one: dict[str, Any], key: str) -> int:
    return sum(family[key] for family in one["families"].values())


def _skipped(family: dict[str, Any]) -> str:
    """Gives why the reward's author left a family out; ``""`` where it was tried, or does not apply."""
    why = family["not_applicable"] or ""
    return why.removeprefix(LEFT_OUT) if why.startswith(LEFT_OUT) else ""


LEFT_OUT = "left out: "

if __name__ == "__main__":
    sys.exit(main())
