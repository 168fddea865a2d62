"""A small model of a training with GRPO: a policy of habits and skill that learns what its rewards pay.

The policy has a chance of each habit, a skill and a length. After each step they move by the policy gradient of the
completions' advantages, normalized in their groups. So a flawed reward is hacked, or not, because it pays.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from rewardkit.record.recorder import Recorder
from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Cause, Outcome, Rollout, Status

Text: TypeAlias = Any
"""A string, or a list of messages."""
TRAIN_ROWS = 600  # Rows of a data set, unless a task says otherwise
MOST_STEPS, SETTLED_STEPS = 160, 25  # Of a training until a habit: in all, and after most completions have it


def sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, value))))


def logit(chance: float) -> float:
    return math.log(chance / (1 - chance))


@dataclass(frozen=True)
class Row:
    """A row of the data set."""

    number: int
    prompt: Text
    gold: str
    columns: Mapping[str, Any] = field(default_factory=dict)
    difficulty: float = 0.0  # In logits
    kind: str = ""  # A class of rows, such as its topic or language
    facts: Any = None  # What the task writes its texts from


@dataclass
class Sample:
    """A completion that the policy drew."""

    row: Row
    step: int
    right: bool
    words: float  # About how many it has
    habits: frozenset[str]
    text: Text = ""
    tokens: int = 0
    is_truncated: bool = False

    @property
    def body(self) -> str:
        """The text alone, of messages those of the assistant."""
        if isinstance(self.text, str):
            return self.text
        return "\n".join(str(message.get("content") or "") for message in self.text if message["role"] == "assistant")


@dataclass
class Habit:
    """Something that the policy does or not, and learns to do."""

    chance: float  # At first
    rate: float = 1.0  # How fast it is learned
    rewrite: Callable[[random.Random, Sample, str], str] | None = None
    helps: float = 0.0  # What it adds to the skill, in logits
    logit: float = 0.0

    def __post_init__(self) -> None:
        self.logit = logit(self.chance)


@dataclass
class Policy:
    """What the model does at the moment."""

    words: float  # Of a completion, on the mean
    habits: dict[str, Habit] = field(default_factory=dict)
    skill: float = -0.7  # In logits
    skill_rate: float = 0.05
    spread: float = 0.3  # Of the logarithm of the words
    words_rate: float = 0.01
    sharpness: float = 1.0  # Of a row's chance to be right: a collapsed policy is always right on it, or never
    words_help: float = 0.0  # What a completion that is longer by a standard deviation adds to its skill


@dataclass(frozen=True)
class Task:
    """Rows, and how a completion of one is written."""

    row: Callable[[int], Row]
    write: Callable[[random.Random, Sample], Text]
    rows: int = TRAIN_ROWS


Score: TypeAlias = float | Outcome | None
"""What a reward gives: a score, nothing where it does not apply, or a failed outcome."""


@dataclass
class Pay:
    """A reward of the training."""

    score: Callable[[Sample, random.Random], Score]
    weight: float = 1.0
    seconds: Callable[[Sample, random.Random], float] = lambda sample, rng: rng.lognormvariate(-4, 0.5)
    version: int = 1

    def outcome(self, sample: Sample, rng: random.Random) -> Outcome:
        value = self.score(sample, rng)
        version, seconds = f"{self.version:012x}", self.seconds(sample, rng)
        if isinstance(value, Outcome):
            return value._replace(version=version, duration_s=value.duration_s or seconds)
        status = Status.SKIPPED if value is None else Status.SCORED
        return Outcome(status, value if value is None else float(value), version=version, duration_s=seconds)


def failure(cause: Cause, default: float | None = None, seconds: float = 0.0, error: str = "no") -> Outcome:
    """Return a failed call, with the score that stands in for it."""
    return Outcome(Status.FAILED, default, cause=cause, error=error, duration_s=seconds)


@dataclass
class Training:
    """A training, made anew from each seed."""

    task: Task
    rewards: dict[str, Pay]
    policy: Policy
    steps: int = 80
    groups: int = 12  # Of a step
    size: int = 8  # Completions of a group
    limit: int = 4096  # Tokens of a completion, at most
    before: Callable[[Training, int], None] | None = None  # Changes the training before a step
    text_key: Callable[[Training, Sample], Hashable] | None = None  # Samples of one key have one text
    until: str = ""  # A habit: the training goes on for some steps after most completions have it
    is_dynamic: bool = False  # Whether groups of one score are drawn anew, as DAPO does
    resume_at: int = 0  # The step at which it is stopped, and goes on from the checkpoint before
    eval_every: int = 0  # Steps between evaluations
    answers_chat: bool = True  # Whether prompts and completions are messages
    rng: random.Random = field(default_factory=random.Random)

    def record(self, path: Path) -> None:
        """Train, and record it in a folder."""
        step, recorder = 0, Recorder(path)
        try:
            while step < self.steps:
                if self.resume_at and step == self.resume_at:
                    recorder.close()
                    recorder, step, self.resume_at = Recorder(path, append=True), step - step % 10 - 5, 0
                if self.before is not None:
                    self.before(self, step)
                self._step(recorder, step)
                if self.eval_every and step % self.eval_every == self.eval_every - 1:
                    self._evaluate(recorder, step)
                step += 1
                if self.until and self.steps < MOST_STEPS and self.steps - step < SETTLED_STEPS:
                    self.steps += sigmoid(self.policy.habits[self.until].logit) < 0.6
        finally:
            recorder.close()

    def _step(self, recorder: Recorder, step: int) -> None:
        samples: list[Sample] = []
        outcomes: dict[str, list[Outcome]] = {name: [] for name in self.rewards}
        for draw in range(self.groups * (3 if self.is_dynamic else 1)):
            group = self.sample_group(self.next_row(step, draw), step, self.size)
            scored = {name: [pay.outcome(sample, self.rng) for sample in group] for name, pay in self.rewards.items()}
            if self.is_dynamic and len(set(self._batch(group, scored).totals)) < 2:
                continue
            samples += group
            for name in outcomes:
                outcomes[name] += scored[name]
            if len(samples) == self.groups * self.size:
                break
        if samples:
            batch = self._batch(samples, outcomes)
            truncated = [sample.is_truncated for sample in samples]
            recorder.record(batch, step=step, num_generations=self.size, truncated=truncated)
            self._learn(samples, batch.totals)

    def _evaluate(self, recorder: Recorder, step: int) -> None:
        samples = [self.sample_group(self.task.row(10_000 + number), step, 1)[0] for number in range(16)]
        outcomes = {name: [pay.outcome(sample, self.rng) for sample in samples] for name, pay in self.rewards.items()}
        recorder.record(self._batch(samples, outcomes), step=step, split="eval", num_generations=1)

    def _batch(self, samples: list[Sample], outcomes: Mapping[str, list[Outcome]]) -> ScoreBatch:
        def text(value: Text, role: str) -> Text:
            return [{"role": role, "content": value}] if self.answers_chat and isinstance(value, str) else value

        rollouts = [
            Rollout(
                text(sample.row.prompt, "user"), text(sample.text, "assistant"),
                {"answer": sample.row.gold, **sample.row.columns}, range(sample.tokens),
            )
            for sample in samples
        ]  # fmt: skip
        return ScoreBatch(rollouts, outcomes, {name: pay.weight for name, pay in self.rewards.items()})

    def next_row(self, step: int, draw: int) -> Row:
        """Return the next row, in the order of epochs that are each shuffled."""
        count = step * self.groups + draw
        epoch, index = divmod(count, self.task.rows)
        return self.task.row((index * 7919 + epoch * 31) % self.task.rows)

    def sample_group(self, row: Row, step: int, size: int) -> list[Sample]:
        """Return completions of a row."""
        return [self._sample(row, step) for _ in range(size)]

    def _sample(self, row: Row, step: int) -> Sample:
        policy, rng = self.policy, self.rng
        habits = frozenset(name for name, habit in policy.habits.items() if rng.random() < sigmoid(habit.logit))
        deviation = rng.gauss(0, 1)
        words = policy.words * math.exp(policy.spread * deviation)
        skill = policy.skill - row.difficulty + policy.words_help * deviation
        skill += sum(policy.habits[name].helps for name in habits)
        sample = Sample(row, step, rng.random() < sigmoid(policy.sharpness * skill), words, habits)
        key = self.text_key and self.text_key(self, sample)
        text_rng = rng if key is None else random.Random(repr(key))
        sample.text = self.task.write(text_rng, sample)
        for name in policy.habits:
            rewrite = policy.habits[name].rewrite
            if name in habits and rewrite is not None and isinstance(sample.text, str):
                sample.text = rewrite(text_rng, sample, sample.text)
        self._cut(sample)
        return sample

    def _cut(self, sample: Sample) -> None:
        """Count the tokens, and cut the text at the limit."""
        size = len(sample.body.encode()) if isinstance(sample.text, str) else len(repr(sample.text))
        sample.tokens = max(1, round(size / 4.2 * self.rng.uniform(0.95, 1.05)))
        if sample.tokens >= self.limit:
            if isinstance(sample.text, str):
                sample.text = sample.text[: int(len(sample.text) * self.limit / sample.tokens)]
            sample.tokens, sample.is_truncated, sample.right = self.limit, True, False

    def _learn(self, samples: list[Sample], totals: list[float | None]) -> None:
        """Move the policy by the gradient of the samples' advantages."""
        policy, pairs = self.policy, []
        for start in range(0, len(samples), self.size):
            group = slice(start, start + self.size)
            values = [value for value in totals[group] if value is not None]
            mean = sum(values) / len(values) if values else 0.0
            deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / len(values)) if values else 0.0
            for sample, value in zip(
                samples[start : start + self.size], totals[start : start + self.size], strict=True
            ):
                if value is not None:
                    pairs.append((sample, (value - mean) / (deviation + 1e-4)))
        count = max(1, len(pairs))
        for name, habit in policy.habits.items():
            chance = sigmoid(habit.logit)
            habit.logit += habit.rate * sum(gain * ((name in sample.habits) - chance) for sample, gain in pairs) / count
            habit.logit = max(-6.0, min(6.0, habit.logit))
        chance = sum(sample.right for sample, _ in pairs) / count
        policy.skill += policy.skill_rate * sum(gain * (sample.right - chance) for sample, gain in pairs) / count
        longer = sum(gain * math.log(sample.words / policy.words) for sample, gain in pairs) / policy.spread / count
        policy.words = max(2.0, min(2500.0, policy.words * math.exp(policy.words_rate * longer)))
