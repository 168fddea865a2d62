"""The versions on the page of a run: what changed in each reward, and what was asked for while the run went on."""

from __future__ import annotations

import difflib
import itertools
import json
from collections.abc import Iterator, Sequence

from rewardkit.cli.page_parts import Markup, difference, element, folded_away, section, table, text_block
from rewardkit.cli.page_source import NONE, RunReport
from rewardkit.cli.render import day
from rewardkit.record.values import Version

_CODE_CHARS = 20_000
_LINES = 400


def changes_section(report: RunReport) -> Markup:
    versions = report.run.own_versions
    rows = [
        [version.label, NONE if version.first_step is None else f"{version.first_step:,}", day(version.began),
         version.digits, version.reference or NONE]
        for version in versions
    ]  # fmt: skip
    head = ["version", "from step", "recorded", "fingerprint", "defined in"]
    parts: list[Markup] = [table(head, rows, left=len(head), wide=("defined in",))]
    parts += [_difference(old, new) for old, new in _following(versions)]
    changed = {version.reward for version in versions if version.number > 1}
    parts += [
        folded_away(f"{version.label}: source", text_block(_code(version) or _settings(version), "code", _CODE_CHARS))
        for version in versions
        if version.reward not in changed
    ]
    rows = [
        [day(request.asked), request.reward, str(request.action), str(request.state),
         NONE if request.step is None else str(request.step), request.words or NONE]
        for request in report.run.changes
    ]  # fmt: skip
    if rows:
        head = ["when", "reward", "what", "answer", "at step", "why"]
        parts += [element("h3", "Asked for while the run went on"), table(head, rows, left=len(head), wide=("why",))]
    return section("changes", "Changes of the rewards", *parts)


def _following(versions: Sequence[Version]) -> Iterator[tuple[Version, Version]]:
    """Yield each version with the one that it took the place of."""
    ordered = sorted(versions, key=lambda version: (version.reward, version.number))
    for old, new in itertools.pairwise(ordered):
        if old.reward == new.reward:
            yield old, new


def _difference(old: Version, new: Version) -> Markup:
    before, after = _code(old), _code(new)
    if before == after:
        before, after = _settings(old), _settings(new)
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), old.label, new.label, lineterm="", n=5)
    excerpt = list(itertools.islice(lines, _LINES + 1))
    rest = ["… and more"] if len(excerpt) > _LINES else []
    title = f"{old.label} → {new.label}" + ("" if new.first_step is None else f", from step {new.first_step:,}")
    nothing = element("p", "No difference of the source is recorded.", kind="quiet")
    return folded_away(title, difference([*(line[:500] for line in excerpt[:_LINES]), *rest]) if excerpt else nothing)


def _code(version: Version) -> str:
    return (version.source or version.module or "")[:_CODE_CHARS]


def _settings(version: Version) -> str:
    return json.dumps(version.settings, indent=2, sort_keys=True, default=str)[:_CODE_CHARS]
