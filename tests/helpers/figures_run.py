"""A run with all that makes figures hard, and its record as plain arrays, read by SQL alone."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np

from rewardkit.record.recorder import Recorder
from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Cause, Outcome, Rollout, Status

NAMES = ("correct", "style", "judge", "tiny")
WEIGHTS = ((10.0, -0.5, 0.05, 0.0), (10.0, -2.0, 0.05, 1.0), (1.0, 0.0, 0.05, -10.0))  # One for two steps each
STEPS, RANKS, PROMPTS, GROUP, EPOCH_STEPS = 6, 2, 5, 4, 3
GAP_STEP, NEW_VERSION_STEP = 4, 3  # Where all calls of the judge fail, and where its second version begins
LEVELS = ("easy", "hard")


def record_training(path: Path) -> None:
    """Record steps of two ranks in two epochs, with an evaluation after each epoch."""
    chance = np.random.default_rng(34)
    with Recorder(path) as first, Recorder(path, rank=1) as second:
        for step in range(STEPS):
            for recorder in (first, second):
                recorder.record(_batch(chance, step, PROMPTS, GROUP), step=step, epoch=step / EPOCH_STEPS)
                assert recorder.flush()
            if step % EPOCH_STEPS == EPOCH_STEPS - 1:
                first.record(_batch(chance, step, PROMPTS, 2), step=step, epoch=step / EPOCH_STEPS, split="eval")
                assert first.flush()


def record_file(path: Path, seed: int, *, prompts: int = 12, samples: int = 3) -> None:
    """Record a scored file of several solutions a question, whose rows differ in the sample's number."""
    chance = np.random.default_rng(seed)
    with Recorder(path) as recorder:
        recorder.record(_batch(chance, 0, prompts, samples, numbered=True))


def _batch(chance: Any, step: int, prompts: int, group: int, *, numbered: bool = False) -> ScoreBatch:
    """Return a batch in which correct may fail without a default, style skips, and the judge fails with one."""
    count = prompts * group
    keys = [(prompt, sample) for prompt in range(prompts) for sample in range(group)]
    rollouts = [
        Rollout(
            f"prompt {prompt}",
            f"answer {chance.integers(1_000_000)}",
            {"level": LEVELS[prompt % 2], **({"sample": sample} if numbered else {})},
            completion_ids=[0] * int(chance.integers(1, 90)),
        )
        for prompt, sample in keys
    ]
    scores = [chance.integers(0, 2, count).astype(float), *chance.normal(size=(3, count)).round(3)]
    columns = {}
    for number, name in enumerate(NAMES):
        version = f"{number + (10 if name == 'judge' and step >= NEW_VERSION_STEP else 0):012}"
        columns[name] = [
            _outcome(name, float(score), float(draw), step, version, float(took))
            for score, draw, took in zip(
                scores[number], chance.random(count), chance.random(count).round(4) / 100, strict=True
            )
        ]
    return ScoreBatch(rollouts, columns, dict(zip(NAMES, WEIGHTS[step // 2], strict=True)))


def _outcome(name: str, score: float, draw: float, step: int, version: str, took: float) -> Outcome:
    paid = {"requests": 1.0, "cost_usd": round(draw / 100, 5)} if name == "judge" else {}
    if name == "correct" and draw < 0.06:
        return Outcome(
            Status.FAILED, None, cause=Cause.EXCEPTION, error="ValueError: no", version=version, duration_s=took
        )
    if name == "style" and draw < 0.2:
        return Outcome(Status.SKIPPED, None, version=version, duration_s=took)
    if name == "judge" and (draw < 0.15 or step == GAP_STEP):
        return Outcome(
            Status.FAILED, -1.0, cause=Cause.TIMEOUT, error="late", version=version, duration_s=took, metrics=paid
        )
    return Outcome(Status.SCORED, score, "so", version=version, duration_s=took, metrics=paid)


_QUERY = """
SELECT c.id, b.step, c.epoch, b.split, s.rank, c.prompt, b.id, c."group", c.tokens, c.status, c.scores, c.seconds,
       b.weights, b.versions, c.advantage
FROM completion c JOIN batch b ON b.id = c.batch JOIN session s ON s.id = b.session ORDER BY c.id
"""


class Plain:
    """A record as arrays, a row for each completion in the order of recording."""

    def __init__(self, path: Path) -> None:
        with contextlib.closing(sqlite3.connect(path / "record.db")) as connection:
            rows = list(zip(*connection.execute(_QUERY).fetchall(), strict=True))
            self.versions = dict(connection.execute("SELECT id, reward || '@' || number FROM version").fetchall())
            self.paid = connection.execute(
                "SELECT said.completion, json_extract(metrics, '$.cost_usd'), version.number FROM said"
                " JOIN version ON version.id = said.version WHERE metrics IS NOT NULL AND pass = 0"
            ).fetchall()
        self.ids, self.steps = np.array(rows[0]), np.array([-1 if step is None else step for step in rows[1]])
        self.epochs = np.array([-1.0 if epoch is None else epoch for epoch in rows[2]])
        self.splits, self.ranks, self.prompts = np.array(rows[3]), np.array(rows[4]), np.array(rows[5])
        self.batches, self.groups, self.tokens = np.array(rows[6]), np.array(rows[7]), np.array(rows[8], float)
        self.status = np.array([list(letters.lower()) for letters in rows[9]])
        self.raw = np.frombuffer(b"".join(rows[10]), "<f8").reshape(-1, len(NAMES))
        self.seconds = np.frombuffer(b"".join(rows[11]), "<f4").reshape(-1, len(NAMES)).astype(float)
        self.weights = np.array([json.loads(text) for text in rows[12]])
        self.labels = np.array([[self.versions[number] for number in json.loads(text)] for text in rows[13]])
        self.scores = np.where(self.status == "s", self.raw, np.nan)  # those that the rewards gave themselves
        self.totals = self._totals()

    def _totals(self) -> Any:
        """Return the weighted sums: a failure without a default leaves none, a skip adds nothing."""
        counts = self.weights != 0
        lost = (counts & (self.status == "f") & np.isnan(self.raw)).any(axis=1)
        without = ~(counts & ~np.isnan(self.raw)).any(axis=1)
        sums = np.nansum(np.where(counts, self.weights * self.raw, 0.0), axis=1)
        return np.where(lost | without, np.nan, sums)

    def train(self, step: int | None = None) -> Any:
        """Return a mask of the completions of training, of one step or of all."""
        return (self.splits == "train") & ((self.steps == step) if step is not None else True)
