"""A run's record as values: what every view uses, the command line as well as pages and notebooks."""

from __future__ import annotations

import functools
import itertools
import json
import math
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from rewardkit.errors import RecordError
from rewardkit.messages import completion_text
from rewardkit.record import questions
from rewardkit.record.batch_rows import text_back
from rewardkit.record.columns import read_table, score_sums
from rewardkit.record.completion_rows import read_completions
from rewardkit.record.fits import Fits, check_split, status_of
from rewardkit.record.identities import Identities, read_identities, read_questions
from rewardkit.record.log_pages import LogPage, LogPlace, Wanted, entry_of, read_page
from rewardkit.record.opened_record import PAGE
from rewardkit.record.outcomes import object_of, outcome_of, weights_in
from rewardkit.record.passes import Pass, PassColumns, columns_of, second_scores
from rewardkit.record.pictures.storing import RecordedPictures
from rewardkit.record.recorded_numbers import RecordedNumbers
from rewardkit.record.run_end import RunEnd, run_end
from rewardkit.record.search_pattern import SearchPattern
from rewardkit.record.sessions import is_alive
from rewardkit.record.store import RecordRow
from rewardkit.record.table import CompletionTable, Floats, Whole
from rewardkit.record.texts import unpacked
from rewardkit.record.values import Completion, LogEntry, PromptSums, RecordedPrompt, Version
from rewardkit.types import Outcome, Rollout, Status


class RunReader(RecordedNumbers, RecordedPictures):
    """The record of a run, read lazily. Reading does not disturb a process that is writing.

    A reader belongs to the thread that opened it. Steps count the optimizer steps done when a completion was scored:
    the first batch of a training is of step 0.

    Args:
        run: The run's folder, or its file, or the address of a run in a database,
            ``"postgresql://user@host/database?run=one"``.

    Raises:
        RecordError: It is missing, empty, not a record, or of a newer release; or its server cannot be had.
    """

    def __repr__(self) -> str:
        try:
            size = f"{self.count():,} completions, {len(self.steps())} steps"
        except RecordError:  # closed, of another thread, or damaged: its reader is told
            size = "cannot be read here"
        return f"<{type(self).__name__} {self.name!r}: {size}>"

    @property
    def rewards(self) -> list[str]:
        """The rewards' names, in the order in which they were first recorded."""
        return [name for (name,) in self._rows("SELECT reward FROM version GROUP BY reward ORDER BY min(id)")]

    @property
    def versions(self) -> list[Version]:
        """All versions of all rewards, oldest first."""
        query = (
            "SELECT version.*, s.body AS source_body, m.body AS module_body FROM version"
            " LEFT JOIN text s ON s.id = version.source LEFT JOIN text m ON m.id = version.module ORDER BY version.id"
        )
        rows = self._rows(query)
        with self._decoding():
            return [_version(row) for row in rows]

    @property
    def own_versions(self) -> list[Version]:
        """The versions that the run itself scored with, oldest first; without those of a rescore."""
        return [version for version in self.versions if version.origin == "run"]

    @property
    def sessions(self) -> list[dict[str, Any]]:
        """The processes that recorded: id, rank, purpose, began, seen, ended, about."""
        with self._decoding():
            return [
                dict(row) | {"about": object_of(row["about"])}
                for row in self._rows("SELECT * FROM session ORDER BY id")
            ]

    @property
    def events(self) -> list[dict[str, Any]]:
        """What happened beside the scoring, oldest first: id, time, step, kind, body."""
        rows = self._rows("SELECT * FROM event ORDER BY id")
        with self._decoding():
            return [dict(row) | {"body": object_of(row["body"])} for row in rows]

    @property
    def running(self) -> bool:
        """Whether a process still records: one that did not end, and is alive as far as this machine can tell."""
        return any(is_alive(session) for session in self.sessions)

    @property
    def end(self) -> RunEnd:
        """How far the run is: running, finished, stopped by an error, or killed; and why."""
        return run_end(self.sessions, self.events)

    @property
    def data_version(self) -> int:
        """A number that changes when another process writes to the record."""
        with self._errors():
            return self._connection.stamp

    @property
    def last_id(self) -> int:
        """The greatest ``id`` of a completion; 0 without any."""
        return int(self._rows("SELECT coalesce(max(id), 0) FROM completion")[0][0])

    @property
    def left_out(self) -> int:
        """How many completions were recorded without their text, because the disk was slower than the run."""
        return int(self._rows("SELECT coalesce(sum(left_out), 0) FROM batch")[0][0])

    def left_out_ids(self) -> list[int]:
        """Return the completions whose text was left out."""
        return [number for (number,) in self._tuples("SELECT id FROM completion WHERE completion IS NULL ORDER BY id")]

    @property
    def prompt_count(self) -> int:
        """How many prompts there are; their indices count from 0."""
        return int(self._rows("SELECT count(*) FROM prompt")[0][0])

    @property
    def passes(self) -> list[Pass]:
        """The times that completions were scored again, oldest first."""
        query = (
            "SELECT pass.*, version.reward, version.number,"
            " (SELECT count(*) FROM rescored WHERE rescored.pass = pass.id) AS completions"
            " FROM pass JOIN version ON version.id = pass.version ORDER BY pass.id"
        )
        rows = self._rows(query)
        with self._decoding():
            return [
                Pass(
                    row["id"], row["reward"], row["number"], row["completions"], row["began"], row["ended"],
                    json.loads(row["about"]),
                )
                for row in rows
            ]  # fmt: skip

    def pass_columns(self, number: int) -> PassColumns:
        """Return the numbers of a pass, in the order of the completions."""
        query = "SELECT completion, score, status, seconds FROM rescored WHERE pass = ? ORDER BY completion"
        return columns_of(self._tuples(query, number))

    def again(self, table: CompletionTable) -> dict[str, Floats]:
        """Return the second scores of a table's completions, by reward and by the very version that gave the first."""
        return second_scores(table, [(scoring, self.pass_columns(scoring.id)) for scoring in self.passes])

    def rescored(self, number: int, ids: Sequence[int]) -> dict[int, Outcome]:
        """Return the outcomes of a pass by completion id, for those of ``ids`` that it scored."""
        details = self._rows_in(f"{questions.SAID} WHERE said.pass = ? AND said.completion IN ({{}})", ids, number)
        by_completion = {row["completion"]: row for row in details}
        rows = self._rows_in(f"{questions.RESCORED} AND rescored.completion IN ({{}})", ids, number)
        with self._decoding():
            return {
                row["completion"]: outcome_of(
                    row["status"], math.nan if row["score"] is None else row["score"], row["seconds"], row["digits"],
                    by_completion.get(row["completion"]),
                )
                for row in rows
            }  # fmt: skip

    def completions(
        self,
        *,
        step: int | None = None,
        prompt: int | None = None,
        reward: str | None = None,
        min_score: float | None = None,
        max_score: float | None = None,
        status: str | Status | None = None,
        split: str | None = None,
        after: int = 0,
        limit: int | None = None,
    ) -> Iterator[Completion]:
        """Yield the completions that fit all arguments, in the order of recording.

        Args:
            step: Of this step.
            prompt: Of the prompt with this index.
            reward: With an outcome of this reward; the scores and status below are its.
            min_score: At least this score; without ``reward``, this total: the weighted sum. The default of a failed
                call is a score for ``status="failed"`` alone.
            max_score: At most this score or total.
            status: With this status; needs ``reward``.
            split: ``"train"`` or ``"eval"``.
            after: Only those with a greater ``id``: the next page goes on after the last one's.
            limit: At most so many.

        Raises:
            RecordError: There is no such reward, status or split, ``status`` is given without a reward, or ``limit`` is
                less than 0.
        """
        check_split(split)
        if limit is not None and limit < 0:
            raise RecordError(f"limit={limit}: expected 0 or more, or None for all")
        fits = self._fits(reward, min_score, max_score, status)
        parts = (
            self._of_batches(step, split, fits, after)
            if prompt is None
            else self._of_prompt(prompt, step, split, fits, after)
        )
        ids = itertools.islice(itertools.chain.from_iterable(parts), limit)
        while page := list(itertools.islice(ids, PAGE)):
            yield from self.by_id(page)

    def by_id(self, ids: Sequence[int], rewards: Collection[str] | None = None) -> list[Completion]:
        """Return completions by their numbers in the record, in that order; those that are not there are left out.

        Args:
            ids: The numbers.
            rewards: The rewards whose outcomes are wanted; all unless given.
        """
        with self._decoding():
            completions = read_completions(self._rows_in, self._named, ids, rewards)
        return [completions[number] for number in ids if number in completions]

    def weights_of(self, completion: int) -> dict[str, float]:
        """Return the weights of the rewards in a completion's batch, by name; empty without such a completion."""
        query = (
            "SELECT versions, weights FROM batch JOIN completion ON batch.id = completion.batch WHERE completion.id = ?"
        )
        for versions, weights in self._tuples(query, completion):
            names = self._names(versions)
            return dict(zip(names, weights_in(weights, len(names)), strict=True))
        return {}

    def ranked(self, step: int | None, limit: int, *, best: bool, split: str = "train") -> list[int]:
        """Return the ids of the completions with the best or worst rewards of a step, the best or worst first.

        Args:
            step: The step; ``None`` for what was scored at no step.
            limit: How many.
            best: Whether the best, else the worst.
            split: ``"train"`` or ``"eval"``.
        """
        rows = self._rows(questions.BEST if best else questions.WORST, split, step, limit)
        return [number for (number,) in rows]

    def prompts(self, after: int = -1) -> Iterator[RecordedPrompt]:
        """Yield the prompts in the order in which they were first seen.

        Args:
            after: Only those with a greater ``index``.
        """
        while rows := self._rows(questions.PROMPT, after, PAGE):
            with self._decoding():
                batch = [_prompt(row) for row in rows]
            yield from batch
            after = rows[-1]["id"]

    def prompts_by_index(self, indices: Sequence[int]) -> list[RecordedPrompt]:
        """Return prompts by their indices, in order of these; those that are not there are left out."""
        rows = self._rows_in(questions.PROMPTS, sorted(indices))
        with self._decoding():
            return [_prompt(row) for row in rows]

    @property
    def questions(self) -> Whole:
        """The index of the first prompt with the same text as each prompt, in the order of the prompts."""
        return read_questions(self._tuples)

    def prompt(self, index: int) -> RecordedPrompt:
        """Return a prompt by its index.

        Raises:
            RecordError: There is no such prompt.
        """
        prompts = self.prompts_by_index([index])
        if not prompts:
            count = self.prompt_count
            those = f"it has those from 0 to {count - 1}" if count else "it has none yet"
            raise RecordError(f"{self.name}: no prompt {index}; {those}")
        return prompts[0]

    def rollouts(self, ids: Sequence[int]) -> list[Rollout | None]:
        """Return completions as they can be scored again; ``None`` for one whose text was left out, or that is gone."""
        rollouts = {
            row.id: Rollout(row.prompt, row.completion, row.columns)
            for row in self.by_id(ids)
            if row.completion is not None
        }
        return [rollouts.get(number) for number in ids]

    def texts(self, ids: Sequence[int]) -> list[str | None]:
        """Return completions' texts, messages as the text of the last one; ``None`` for one that was left out."""
        numbers = [int(number) for number in ids]
        read = functools.cache(lambda body: completion_text(text_back(unpacked(body))))
        rows = self._rows_in(f"{questions.TEXT} WHERE completion.id IN ({{}})", numbers)
        with self._decoding():
            texts = {number: read(body) for number, body in rows}
        return [texts.get(number) for number in numbers]

    def table(
        self,
        steps: tuple[int, int] | None = None,
        split: str | None = "train",
        *,
        prompt: int | None = None,
        question: int | None = None,
    ) -> CompletionTable:
        """Return completions as columns.

        Args:
            steps: From this step to that one, both included; all unless given.
            split: ``"train"``, ``"eval"``, or ``None`` for both.
            prompt: Of the prompt with this index.
            question: Of all prompts with the same text as this one, whatever the other columns of their rows say.
        """
        low, high = steps or (None, None)
        with self._decoding():
            return read_table(self._tuples, self._named, low, high, split, prompt, question)

    def identities(self, table: CompletionTable) -> Identities:
        """Return digests of the texts of a table's completions, equal for equal texts in every record."""
        with self._decoding():
            return read_identities(self._tuples, table.ids, table.prompts)

    def prompt_sums(self, after: int, until: int, reward: str | None = None) -> list[PromptSums]:
        """Return sums over a stretch of completions, by prompt and by whole epoch.

        Args:
            after: Only completions with a greater ``id``.
            until: Only those with this ``id`` or a smaller one.
            reward: Whose scores are summed, all its versions together; ``None`` for the totals.
        """
        if reward is None:
            return [PromptSums(*row) for row in self._tuples(questions.PROMPT_SUMS, after, until)]
        with self._decoding():
            return score_sums(self._tuples, self._named, reward, after, until)

    def moments(self, prompt: int, *, whole_question: bool = False) -> list[tuple[int, float | None, str]]:
        """Return the number, the epoch and the split of each of a prompt's completions, in the order of recording.

        With ``whole_question`` those of all prompts with the same text.
        """
        return self._tuples(questions.MOMENTS_OF_QUESTION if whole_question else questions.MOMENTS, prompt)

    def logs(
        self,
        *,
        reward: str | None = None,
        step: int | None = None,
        status: str | Status | None = None,
        grep: str | None = None,
        split: str | None = None,
        after: int = 0,
    ) -> Iterator[LogEntry]:
        """Yield the calls that printed, logged, failed or gave a reason, in the order of recording.

        Args:
            reward: Of this reward.
            step: Of this step.
            status: With this status.
            grep: With a match of this regular expression in output, error, traceback or reason.
            split: ``"train"`` or ``"eval"``.
            after: Only of completions with a greater ``id``.

        Raises:
            RecordError: There is no such reward, status or split, or ``grep`` is not a regular expression, or takes too
                long on a text.
        """
        check_split(split)
        self._fits(reward, None, None, None)
        wanted_status = None if status is None else status_of(status)
        pattern = None if grep is None else SearchPattern(grep)
        while True:
            rows = self._rows(questions.LOGS, after=after, reward=reward, step=step, split=split, most=PAGE)
            is_last = len(rows) < PAGE
            if not is_last:  # a completion's last calls may lie on the next page
                last = rows[-1]["completion"]
                rows = [row for row in rows if row["completion"] < last] or rows
            with self._decoding():
                entries = [entry_of(row, self._named) for row in rows]
            for entry in entries:
                outcome = entry.outcome
                if wanted_status not in (None, outcome.status):
                    continue
                texts = (outcome.logs, outcome.error, outcome.traceback, outcome.reason)
                owner = f"what {entry.reward} said of completion {entry.completion}"
                if pattern is None or any(pattern.find(text, owner) for text in texts if text):
                    yield entry
            if is_last:
                return
            after = rows[-1]["completion"]

    def log_page(
        self,
        wanted: Wanted,
        start: LogPlace | None = None,
        *,
        backwards: bool = False,
        limit: int = 50,
        budget_s: float | None = None,
    ) -> LogPage:
        """Return a page of log entries, from a place on or back from it.

        Args:
            wanted: Which entries.
            start: The place, which itself is left out; the beginning or the end unless given.
            backwards: Whether the newest come first.
            limit: At most so many entries.
            budget_s: Seconds after which the page ends early, and says where; a few hundredths unless given.
        """
        with self._decoding():
            return read_page(
                self._rows, self._named, wanted, start, backwards=backwards, limit=limit, budget_s=budget_s
            )

    def _fits(self, reward: str | None, low: float | None, high: float | None, status: str | Status | None) -> Fits:
        """Return which completions a search wants; RecordError for a reward that the run has not, or a status alone."""
        if reward is not None and reward not in (names := self.rewards):
            raise RecordError(f"{self.name}: no reward {reward!r}; it has {', '.join(names) or 'none yet'}")
        if status is not None and reward is None:
            raise RecordError(f"status={status!r}: a status is one reward's; name the reward as well")
        return Fits(reward, low, high, None if status is None else status_of(status))

    def _of_prompt(
        self, prompt: int, step: int | None, split: str | None, fits: Fits, after: int
    ) -> Iterator[list[int]]:
        """Yield the ids of a prompt's completions that fit, some at a time."""
        query = questions.OF_PROMPT.format(fits.columns_sql)
        while rows := self._tuples(query, prompt=prompt, after=after, step=step, split=split, most=PAGE):
            fitting: list[int] = []
            with self._decoding():
                for versions, group in itertools.groupby(rows, lambda row: str(row[-1])):
                    fitting += fits.ids(list(group), self._names(versions))
            yield fitting
            after = rows[-1][0]

    def _of_batches(self, step: int | None, split: str | None, fits: Fits, after: int) -> Iterator[list[int]]:
        """Yield the ids of completions that fit, batch by batch; skip batches whose sums rule out a fit."""
        if step is None and fits.of_totals:
            yield from self._with_totals(split, fits, after)
            return
        rows = self._tuples("SELECT batch FROM completion WHERE id > ? ORDER BY id LIMIT 1", after)
        if not rows:
            return
        query = questions.FAILED_OF_BATCH if fits.only_failed else questions.OF_BATCH.format(fits.columns_sql)
        first, count = rows[0][0], 1
        bounds = {"step": step, "split": split, **fits._asdict()}
        if fits.status is Status.FAILED:
            bounds |= {"low": None, "high": None}  # sums have no defaults of failed calls
        while batches := self._tuples(questions.BATCHES, first=first, most=count, **bounds):
            for batch, versions in batches:
                rows = self._tuples(query, batch=batch, after=after, reward=fits.reward)
                with self._decoding():
                    fitting = fits.ids(rows, self._names(versions))
                yield fitting
            first, count = batches[-1][0] + 1, min(2 * count, PAGE)

    def _with_totals(self, split: str | None, fits: Fits, after: int) -> Iterator[list[int]]:
        """Yield the ids of completions whose totals fit, some at a time."""
        bounds = {"split": split, "low": fits.low, "high": fits.high, "most": PAGE}
        while rows := self._tuples(questions.WITH_TOTAL, after=after, **bounds):
            yield [number for (number,) in rows]
            after = rows[-1][0]

    def _names(self, versions: str) -> list[str]:
        return [name for name, _, _ in self._named(json.loads(versions))]


def _version(row: RecordRow) -> Version:
    return Version(
        row["reward"], row["number"], row["digits"], row["origin"], row["reference"], _unpacked(row["source_body"]),
        _unpacked(row["module_body"]), object_of(row["settings"]), row["first_step"], row["began"], row["id"],
    )  # fmt: skip


def _prompt(row: RecordRow) -> RecordedPrompt:
    return RecordedPrompt(row["id"], text_back(unpacked(row["prompt_body"])), object_of(unpacked(row["columns_body"])))


def _unpacked(body: bytes | None) -> str | None:
    return None if body is None else unpacked(body)
