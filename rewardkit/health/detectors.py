"""The detectors by name, what each needs and says of itself, and the runner that asks all of them about a window."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import numpy as np

from rewardkit.health import (
    copies,
    divergence,
    exploits,
    faults,
    gradient,
    jumps,
    languages,
    lengths,
    noise,
    phrases,
    trends,
    variety,
)
from rewardkit.health.evidence import CLIPPED, Evidence
from rewardkit.health.evidence import lengths as lengths_of
from rewardkit.health.flag import SHOWN_ROWS, Detection, Flag
from rewardkit.health.measures import by_group

FAMILIES: Mapping[str, str] = {
    "signal": "Signal: is there anything to learn from?",
    "hacking": "Hacking: is it learned for the wrong reason?",
    "faults": "Faults: does the scoring work?",
    "noise": "Noise: does the reward agree with itself?",
}
"""The families of detectors, with the question that each answers."""
Find: TypeAlias = Callable[..., Detection | None]
"""A detector's function of a window and the baseline, and of a reward's name where it looks at each reward.

The baseline may be ``None``; a detector that needs one is not asked then.
"""


@dataclass(frozen=True, slots=True)
class Detector:
    name: str  # Its name, which does not change; `health/<name>` is its metric
    family: str  # What it is about: `signal`, `hacking`, `faults` or `noise`
    find: Find  # Its function; the docstring has formula, threshold, source and limits
    each: bool = False  # Whether it looks at each reward by itself
    total: bool = False  # Whether it then also looks at the total, where it has found nothing of a single reward
    needs: tuple[str, ...] = ()  # What it cannot do without, by the names of `NEEDS`
    at_once: bool = True  # Whether it can flag without a baseline


def _of(family: str, find: Find, *needs: str, each: bool = False, total: bool = False) -> Detector:
    return Detector(find.__name__, family, find, each or total, total, needs, "baseline" not in needs)


DETECTORS: Mapping[str, Detector] = {
    detector.name: detector
    for detector in (
        _of("signal", gradient.zero_variance, "groups"),
        _of("signal", gradient.ceiling, "groups"),
        _of("signal", gradient.std_collapse, "baseline", "groups"),
        _of("signal", gradient.dominance, "groups", "rewards", each=True),
        _of("signal", gradient.prompt_scale, "groups"),
        _of("signal", trends.format_saturated, "baseline", "rewards"),
        _of("signal", divergence.conflict, "groups", "rewards", each=True),
        _of("signal", gradient.constant, each=True),
        _of("signal", gradient.defaults, each=True),
        _of("hacking", trends.reward_jump, "baseline", total=True),
        _of("hacking", jumps.length_jump, "steps", "lengths"),
        _of("hacking", jumps.format_jump, "steps", "texts"),
        _of("hacking", jumps.token_jump, "steps", "texts"),
        _of("hacking", phrases.phrase_spread, "baseline", "texts"),
        _of("hacking", lengths.length_drift, "baseline", "lengths"),
        _of("hacking", lengths.length_reward, "groups", "lengths", total=True),
        _of("hacking", languages.language_switch, "baseline", "texts"),
        _of("hacking", copies.prompt_copies, "texts"),
        _of("hacking", variety.duplicates_in_group, "groups", "texts"),
        _of("hacking", variety.duplicates_across_prompts, "prompts", "texts"),
        _of("hacking", variety.distinct_words, "baseline", "groups", "texts"),
        _of("hacking", variety.repetition, "texts"),
        _of("hacking", exploits.tampering, "texts"),
        _of("hacking", exploits.judge_directed, "texts"),
        _of("hacking", exploits.answer_stuffing, "texts"),
        _of("hacking", exploits.guess_list, "texts"),
        _of("hacking", exploits.audited, "audit", each=True),
        _of("hacking", divergence.held_out_falls, "baseline", "held_out", each=True),
        _of("hacking", divergence.reward_falls, "baseline", "rewards", each=True),
        _of("hacking", divergence.judge_drift, "baseline", "check", each=True),
        _of("faults", faults.failures, each=True),
        _of("faults", faults.timeouts, each=True),
        _of("faults", faults.failing_pays, each=True),
        _of("faults", faults.skips, each=True),
        _of("faults", faults.slow_rewards, each=True),
        _of("faults", lengths.clipped, "truncated"),
        _of("faults", faults.prefilled, "texts", each=True),
        _of("noise", noise.noise, "groups", "again", each=True),
    )
}
"""The detectors by name."""


class _Need(NamedTuple):
    """What a detector may need: whether it is there, and what to say where it is not."""

    is_met: Callable[[Evidence, Evidence | None], bool]
    reason: str


NEEDS: Mapping[str, _Need] = {
    "baseline": _Need(lambda window, baseline: baseline is not None, "no earlier steps to compare with"),
    "steps": _Need(lambda window, _: jumps.has_two_sides(window), "fewer than 6 steps to compare neighbours in"),
    "groups": _Need(lambda window, _: _groups(window) >= 4, "too few groups of two completions or more"),
    "rewards": _Need(lambda window, _: len(window.paid) > 1, "only one reward with a weight"),
    "check": _Need(lambda window, _: len(window.table.scores) > 1, "only one reward, and no other to compare with"),
    "held_out": _Need(lambda window, _: 0 in window.weights.values(), "no reward of weight 0"),
    "lengths": _Need(lambda window, _: not np.isnan(lengths_of(window)).all(), "no lengths and no texts are recorded"),
    "truncated": _Need(
        lambda window, _: not np.isnan(window.table.truncated).all() or CLIPPED in window.metrics,
        "whether completions were truncated is not recorded",
    ),
    "texts": _Need(lambda window, _: bool(window.sampled().texts), "no texts are recorded"),
    "prompts": _Need(lambda window, _: len(np.unique(window.table.prompts)) >= 4, "fewer than 4 prompts"),
    "audit": _Need(lambda window, _: bool(window.audits), "no audit of the run (rewardkit audit --run RUN)"),
    "again": _Need(lambda window, _: bool(window.again), "no second scoring of these completions (rewardkit rescore)"),
}
"""What detectors need, by name."""

_WITHOUT_SIGNAL = ("zero_variance", "ceiling", "std_collapse")
"""What says nothing further of a run whose every reward is a constant."""


_COPIES = ("duplicates_in_group", "distinct_words")
"""What says nothing further of completions that all repeat their prompt."""


def _groups(window: Evidence) -> int:
    return window.cached("groups", lambda: int((by_group(window.table.rewards, window.table.groups).counts > 1).sum()))


def missing_need(detector: Detector, window: Evidence, baseline: Evidence | None) -> str | None:
    """Return why a detector cannot look at a window; ``None`` where it can."""
    if not len(window.table):
        return "no completions"
    return next((NEEDS[need].reason for need in detector.needs if not NEEDS[need].is_met(window, baseline)), None)


def flags_of(
    window: Evidence, baseline: Evidence | None = None, detectors: Sequence[Detector] | None = None
) -> list[Flag]:
    """Return the detectors' flags of a window, one for each detector and reward, without those that repeat another."""
    if not len(window.table):
        return []
    with np.errstate(over="ignore", invalid="ignore"):  # what scores of 1e300 make infinite is beyond no threshold
        flags = [flag for detector in detectors or DETECTORS.values() for flag in _detect(detector, window, baseline)]
    raised = {(flag.detector, flag.reward) for flag in flags}
    names = {flag.detector for flag in flags}
    silent = bool(window.paid) and all(("constant", name) in raised for name in window.paid)
    return [
        flag
        for flag in flags
        if not (silent and flag.detector in _WITHOUT_SIGNAL)
        and not (flag.detector == "std_collapse" and "ceiling" in names)
        and not (flag.detector in _COPIES and "prompt_copies" in names)
    ]


def _detect(detector: Detector, window: Evidence, baseline: Evidence | None) -> Iterator[Flag]:
    """Yield a detector's flags: at most one, or of one that looks at each reward one a reward, or one of the total."""
    if missing_need(detector, window, baseline) is not None:
        return
    if not detector.each:
        detection = detector.find(window, baseline)
        if detection is not None:
            yield _flag(detector.name, window, detection)
        return
    has_flag = False
    for reward in window.table.scores:
        detection = detector.find(window, baseline, reward)
        if detection is not None:
            has_flag = True
            yield _flag(detector.name, window, detection._replace(reward=reward))
    detection = detector.find(window, baseline, None) if detector.total and not has_flag else None
    if detection is not None:
        yield _flag(detector.name, window, detection)


def _flag(name: str, window: Evidence, detection: Detection) -> Flag:
    first, last = window.span
    rows = tuple(int(row_id) for row_id in window.table.ids[detection.rows][:SHOWN_ROWS])
    numbers = float(detection.value), detection.threshold, detection.baseline
    flag = Flag(name, detection.reward, first, last, *numbers, detection.message, detection.action, rows)
    return replace(flag, quote=detection.quote)


_PART = re.compile(r"^(Formula|Source|Limits): ", re.MULTILINE)


class About(NamedTuple):
    """What a detector says of itself."""

    summary: str  # What it finds, in a sentence
    parts: Mapping[str, str]  # `Formula`, `Source` and `Limits`, in sentences


def about(detector: Detector) -> About:
    summary, *pieces = _PART.split(inspect.getdoc(detector.find) or "")
    parts = {name: _flowing(text) for name, text in zip(pieces[::2], pieces[1::2], strict=True)}
    return About(_flowing(summary), {name: f"{text[:1].upper()}{text[1:]}" for name, text in parts.items()})


def _flowing(text: str) -> str:
    return " ".join(text.split()).replace("``", "`")
