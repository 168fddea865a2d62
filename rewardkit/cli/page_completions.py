"""The completions on the page of a run: the worst and the best, what changed most, each prompt through the epochs."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from rewardkit.cli.page_parts import NONE, Markup, RunReport, element, figure, folded_away, section, table, text_block
from rewardkit.record.values import Completion, PromptEpoch
from rewardkit.replay.recorded_run import Run
from rewardkit.shown.text import counted, shortened
from rewardkit.types import Outcome, Status, Text

SIDE_CHARS = 6_000  # characters of a completion, and of a traceback, that are shown
_ENDS, _MOVED, _PROMPTS = 2, 2, 50
_PROMPT_CHARS = 1_500
_MESSAGES = 20


def completions_section(report: RunReport) -> Markup:
    """Return the worst and best completions of the last step side by side, and the prompts that changed most."""
    run, split = report.run, report.split
    steps = run.steps(split)
    last = steps[-1] if steps else None
    best = run.by_id(run.ranked(last, _ENDS, best=True, split=split))
    worst = run.by_id(run.ranked(last, _ENDS, best=False, split=split))
    of_step = "" if last is None else f" of step {last:,}"
    parts: list[Markup] = []
    if not best:
        parts.append(element("p", "No completion has a reward.", kind="quiet"))
    elif best[0].reward == worst[0].reward:
        parts += [element("h3", f"All completions{of_step} have the same reward, such as"), whole_completion(best[0])]
    else:
        parts += [element("h3", f"Worst and best completions{of_step}, by the weighted sum")]
        ends = [(low, high) for low, high in zip(worst, best, strict=False) if low.reward != high.reward]
        parts += [_pair(_Side("worst", low), _Side("best", high)) for low, high in ends]
    parts += _most_changed(report)
    return section("completions", "Completions", *parts)


def _most_changed(report: RunReport) -> Iterator[Markup]:
    """Yield the prompts whose mean reward fell and rose most, each with two completions."""
    ranked = [move for move in _moves(report.run, report.split) if move.change is not None]
    ranked.sort(key=lambda move: move.change or 0.0)
    falls = [move for move in ranked[:_MOVED] if (move.change or 0.0) < 0]
    rises = [move for move in ranked[::-1][:_MOVED] if (move.change or 0.0) > 0]
    for verdict, moves in (("got worse", falls), ("got better", rises)):
        for move, ends in ((move, _ends_of(report, move)) for move in moves):
            if ends is not None:
                before, after = f"{figure(move.first)} in epoch {move.epochs[0]:,}", figure(move.last)
                title = f"Prompt {move.index:,} {verdict}: mean reward {before}, {after} in epoch {move.epochs[-1]:,}"
                yield from (element("h3", title), _pair(*ends))


@dataclass(frozen=True, slots=True)
class _Move:
    """What became of a prompt: its mean reward, the weighted sum, in its first and its last epoch."""

    index: int
    completions: int
    epochs: Sequence[int]
    first: float | None
    last: float | None
    best: float | None

    @property
    def change(self) -> float | None:
        if len(self.epochs) < 2 or self.first is None or self.last is None:
            return None
        return self.last - self.first


def _moves(run: Run, split: str) -> list[_Move]:
    by_prompt = itertools.groupby(run.prompt_epochs(split), lambda row: row.prompt_index)
    return [_move(index, list(rows)) for index, rows in by_prompt]


def _move(index: int, rows: Sequence[PromptEpoch]) -> _Move:
    """Return what became of a prompt; rows without an epoch count only where there are no others."""
    timed = [row for row in rows if row.epoch is not None] or rows
    best = max((row.best for row in rows if row.best is not None), default=None)
    epochs = [row.epoch for row in timed if row.epoch is not None]
    return _Move(index, sum(row.completions for row in rows), epochs, timed[0].mean, timed[-1].mean, best)


class _Side(NamedTuple):
    """One of two completions that are shown beside each other."""

    title: str
    row: Completion


def _ends_of(report: RunReport, move: _Move) -> tuple[_Side, _Side] | None:
    """Return the completions of the first and last epoch that best show the change; ``None`` if one has no reward."""
    ends: list[_Side] = []
    got_worse = (move.change or 0.0) < 0
    completions = list(report.run.completions(prompt=move.index, split=report.split))
    for epoch, best in ((move.epochs[0], got_worse), (move.epochs[-1], not got_worse)):
        of_epoch = [row for row in completions if row.epoch is not None and int(row.epoch) == epoch]
        rows = [row for row in of_epoch if row.reward is not None]
        if not rows:
            return None
        row = (max if best else min)(rows, key=lambda row: (row.reward or 0.0, -row.id))
        ends.append(_Side(f"{'best' if best else 'worst'} of epoch {epoch:,}", row))
    return ends[0], ends[1]


def _pair(left: _Side, right: _Side) -> Markup:
    """Return two completions side by side; a prompt that they share stands once above them."""
    is_shared = left.row.prompt_index == right.row.prompt_index
    above = [_prompt(left.row)] if is_shared else []
    sides = [
        element(
            "div", element("h4", f"{title}: {completion_place(row)}"), *([] if is_shared else [_prompt(row)]),
            _text(row.completion), _scores(row), kind="side",
        )
        for title, row in (left, right)
    ]  # fmt: skip
    return element("div", *above, element("div", *sides, kind="sides"), kind="pair")


def whole_completion(row: Completion) -> Markup:
    where = element("p", completion_place(row), kind="quiet")
    return element("div", where, _prompt(row), _text(row.completion), _scores(row))


def completion_place(row: Completion) -> str:
    epoch = "" if row.epoch is None else f", epoch {row.epoch:.2f}"
    return f"{step_of(row)}{epoch}, prompt {row.prompt_index:,}, completion {row.id:,}"


def step_of(row: Completion) -> str:
    return "no step" if row.step is None else f"step {row.step:,}"


def _prompt(row: Completion) -> Markup:
    return folded_away(f"Prompt {row.prompt_index:,}: {_first_words(row.prompt)}", _text(row.prompt, _PROMPT_CHARS))


def _first_words(text: Text, chars: int = 80) -> str:
    return shortened(_flat(text, 4 * chars), chars)


def _flat(text: Text, chars: int) -> str:
    if isinstance(text, str):
        return text[:chars]
    return " ".join(_message(message)[:chars] for message in text)[:chars]


def _message(message: Mapping[str, Any]) -> str:
    """Return the text of a message: its content, and its calls of tools as JSON."""
    content = message.get("content")
    text = content if isinstance(content, str) else "" if content is None else json.dumps(content, default=str)
    calls = message.get("tool_calls")
    return "\n".join(filter(None, [text, json.dumps(calls, indent=2, default=str) if calls else ""]))


def _text(text: Text | None, chars: int = SIDE_CHARS) -> Markup:
    """Return a prompt or a completion; of messages the first ones, each with its role."""
    if text is None:
        return element("p", "The text was not recorded.", kind="quiet")
    if isinstance(text, str):
        return text_block(text, chars=chars)
    parts = []
    for message in text[:_MESSAGES]:
        parts.append(element("p", str(message.get("role", "?")), kind="role"))
        parts.append(text_block(_message(message), chars=chars // 4))
    if len(text) > _MESSAGES:
        parts.append(element("p", f"and {counted(len(text) - _MESSAGES, 'message')} more", kind="quiet"))
    return element("div", *parts)


def _scores(row: Completion) -> Markup:
    """Return the table of a completion's outcomes, and below it its sums, advantage and length."""
    rows = [
        [f"{name}@{row.versions[name]}", _score(outcome), outcome.reason or outcome.error or ""]
        for name, outcome in row.outcomes.items()
    ]
    sums = [f"total {figure(row.total)}", f"plain sum {figure(row.plain_sum)}"]
    sums += [] if row.advantage is None else [f"advantage {figure(row.advantage)}"]
    sums += [] if row.tokens is None else [f"{counted(row.tokens, 'token')}{', truncated' if row.truncated else ''}"]
    below = element("p", ", ".join(sums), kind="quiet")
    return element("div", table(["reward", "score", "reason"], rows, left=3, wide=("reason",)), below)


def _score(outcome: Outcome) -> Markup:
    """Return an outcome's score, or its status and cause in words."""
    if outcome.status is Status.SCORED:
        return element("span", figure(outcome.score), kind="scored")
    stands_in = "" if outcome.score is None else f", {figure(outcome.score)} stands in"
    cause = f" ({outcome.cause})" if outcome.cause else ""
    return element("span", f"{outcome.status}{cause}{stands_in}", kind=str(outcome.status))


def prompts_section(report: RunReport) -> Markup:
    """Return the table of the prompts, those whose mean reward changed most first."""
    moves = _moves(report.run, report.split)
    if not moves:
        return section("prompts", "Prompts", element("p", "There are no prompts.", kind="quiet"))
    largest = sorted(moves, key=lambda move: -abs(move.change or 0.0))[:_PROMPTS]
    prompts = {move.index: report.run.prompt(move.index) for move in largest}
    names = list(dict.fromkeys(name for prompt in prompts.values() for name in prompt.columns))[:3]
    rows = [
        [
            f"{move.index:,}", _first_words(prompts[move.index].prompt, 120),
            *(_first_words(str(prompts[move.index].columns.get(name, "")), 40) for name in names),
            f"{move.completions:,}", _span(move.epochs), figure(move.first), figure(move.last), _change(move.change),
            figure(move.best),
        ]
        for move in largest
    ]  # fmt: skip
    head = ["prompt", "text", *names, "completions", "epochs", "first", "last", "change", "best"]
    note = (
        "First and last are the mean totals (weighted sums) of the prompt's first and last epoch, best is the best"
        " reward of all. The prompts that changed most come first. "
        + report.note_limit("prompts", _PROMPTS, len(moves))
    )
    return section("prompts", "Prompts", table(head, rows, left=2 + len(names), wide=("text",)), note=note)


def _span(epochs: Sequence[int]) -> str:
    if not epochs:
        return NONE
    return f"{epochs[0]:,}" if len(epochs) == 1 else f"{epochs[0]:,}-{epochs[-1]:,}"


def _change(value: float | None) -> str:
    if value is None:
        return NONE
    return element("span", f"{value:+.4g}", kind="up" if value > 0 else "down" if value < 0 else "")
