"""Writes ``docs/reference/detectors.md`` from the docstrings of the health checks' detectors.

    python docs/detectors_page.py [--check]

With ``--check`` it writes nothing, and exits with 1 where the page is not what it would write.
"""

from __future__ import annotations

import sys
from pathlib import Path

from rewardkit.health.detectors import DETECTORS, FAMILIES, NEEDS, Detector, about

PAGE = Path(__file__).parent / "reference" / "detectors.md"
HEAD = """# Detectors

What `rewardkit diagnose` looks for, as the detectors' docstrings describe it.
`python docs/detectors_page.py` writes this page.
[Why is my reward flat?](../how-to/why-is-my-reward-flat.md) has them at work.

A **window** is the steps that are looked at together, 10 by default.
The **baseline** is the first 20 steps since the versions of the rewards last changed; 10 are enough to begin with.
A detector that flags **at once** needs no baseline, because what it finds is a fault whatever was before.
The others compare with the baseline; on rows without steps they cannot look, and say so.
A **bound** of a mean lies 3.3 standard errors from it, taken over groups or steps.
The scale **from worst to best** is the weighted sum between those of the lowest and highest scores seen.
So weights that follow a schedule move nothing.
Texts are read of at most 256 completions of a window, in whole groups.
"""


def page() -> str:
    """Return the page's text."""
    parts = [HEAD.strip()]
    for family, title in FAMILIES.items():
        parts += [f"## {title}", *(_section(one) for one in DETECTORS.values() if one.family == family)]
    return "\n\n".join(parts) + "\n"


def _section(detector: Detector) -> str:
    told = about(detector)
    needs = "; ".join(NEEDS[need].reason for need in detector.needs if need != "baseline")
    lines = [f"- **{name}:** {text}" for name, text in told.parts.items()]
    subject = "each reward by itself" if detector.each else "the run"
    lines.append(f"- **About:** {subject}{', else the total' if detector.total else ''}.")
    lines += [f"- **Not looked at:** {needs}."] if needs else []
    lines.append(f"- **At once:** {'yes' if detector.at_once else 'no, it needs a baseline'}.")
    return "\n".join([f"### `{detector.name}`\n", told.summary, "", *lines])


def main() -> int:
    """Write the page, or compare it."""
    if sys.argv[1:] != ["--check"]:
        PAGE.write_text(page(), encoding="utf-8")
        return 0
    if PAGE.read_text(encoding="utf-8") == page():
        return 0
    print(f"{PAGE} is not what the docstrings say; run: python docs/detectors_page.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
