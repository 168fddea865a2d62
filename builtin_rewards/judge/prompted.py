"""What a grader and a comparer share: a prompt filled from columns, and a model that is asked in turn.

Owns :class:`PromptedReward`, the base of both, :class:`Prompted`, that of their functions, and the choice of template
and columns. What is asked, and what becomes of the answers, is theirs.
"""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import keyword
import math
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from builtin_rewards.judge.costs import charge
from builtin_rewards.judge.endpoint.values import Reply
from builtin_rewards.judge.errors import Fault, JudgeReplyError, JudgeSetupError, JudgeUnavailableError
from builtin_rewards.judge.fallback import JudgeReward, judge_options
from builtin_rewards.judge.formats import Format
from builtin_rewards.judge.model import Answer, JudgeModel, Question
from builtin_rewards.judge.prefilter import content_free
from builtin_rewards.judge.prompt import MAX_CHARS, Template
from builtin_rewards.judge.templates import builtin_template
from builtin_rewards.judge.turns import turns
from rewardkit import Reward, RewardOptions

MARGIN_S = 10.0
"""Seconds that a call's deadline has beyond the judgement's own: importing the client library is not charged to it."""
_QUESTIONS_A_REQUEST = 1.25
"""Questions begun for each request that may be in flight, lest those that wait for their next try leave room unused: at
20 % of faults and a latency of 1 s they wait for a sixth of their time."""
_RESERVED = frozenset({"prompt", "completion", "completions", "messages", "completion_ids", "example", "step", "epoch"})

P = TypeVar("P", bound="Prompted")
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Columns:
    """Which dataset columns fill a template's fields.

    Attributes:
        by_field: Column by field, for the fields beside prompt and completion.
        prompt: Whether the template shows the prompt.
        group: Whether one call judges all completions of a prompt.
    """

    by_field: Mapping[str, str]
    prompt: bool
    group: bool = False

    @property
    def signature(self) -> inspect.Signature:
        """The parameters that a run fills."""
        return inspect.Signature([inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in self.hints])

    @property
    def hints(self) -> dict[str, Any]:
        """The parameters' annotations: a gold column that says nothing, ``""`` or ``"None"``, is ``None``."""
        reserved: dict[str, Any] = {"prompt": str} if self.prompt else {}
        reserved |= {"completions": list[str]} if self.group else {"completion": str}
        return reserved | dict.fromkeys(self.by_field.values(), str | None)

    def missing(self, columns: Mapping[str, Any]) -> str | None:
        """Gives the first column without a value; ``None`` where all have one."""
        return next((column for column in self.by_field.values() if columns[column] is None), None)

    def values(self, columns: Mapping[str, Any]) -> dict[str, str]:
        """Gives the text of each field but the completions."""
        values = {field: columns[column] for field, column in self.by_field.items()}
        return values | ({"prompt": columns["prompt"]} if self.prompt else {})


@dataclass(frozen=True, eq=False, kw_only=True)
class Prompted:
    """The function of a judge that asks a model.

    Attributes:
        name: The judge's name, in messages and in a budget's ledger.
        model: Who is asked.
        template: The prompt.
        columns: What fills it.
        prefilter: Whether answers that say nothing are not asked about.
        max_chars: Characters kept of each text.
        reason_chars: ``maxLength`` of each reason; ``None`` for none.
    """

    name: str
    model: JudgeModel
    template: Template
    columns: Columns
    prefilter: bool
    max_chars: int
    reason_chars: int | None

    def __post_init__(self) -> None:
        for setting, least in (("max_chars", 2), ("reason_chars", 20)):
            value = getattr(self, setting)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
                raise JudgeSetupError(f"{setting}={value!r}: expected a whole number of characters, at least {least}")

    @property
    def __signature__(self) -> inspect.Signature:
        return self.columns.signature

    @property
    def hints(self) -> dict[str, Any]:
        """The parameters' annotations."""
        return self.columns.hints

    @property
    def inner(self) -> tuple[Reward[..., Any], ...]:
        """No rewards."""
        return ()

    @property
    def rounds(self) -> int:
        """Judgements one after another that a call's deadline has room for: one, and the others' it waits for."""
        raise NotImplementedError

    def says_nothing(self, completion: str, values: Mapping[str, str]) -> str | None:
        """Gives why an answer is not asked about, ``None`` where it is. One of the usual length is read as a whole."""
        if not self.prefilter:
            return None
        return content_free(completion, values.get("reference"), max_chars=max(self.max_chars, MAX_CHARS))

    async def attempt(self, question: Question, read: Callable[[Reply, Format], T]) -> Answer[T | JudgeReplyError]:
        """Asks a question when it is its turn, see :meth:`JudgeModel.attempt`; its deadline begins then.

        Raises:
            JudgeUnavailableError: No reply could be had, or its turn did not come.
        """
        async with self._turn():
            answer = await self.model.attempt(self.name, question, read)
        charge(answer)
        return answer

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Waits in the judge's own line, so that none fills its server's, and then in the server's."""
        most = at_once(self.model)
        wait_s = (self.rounds - 1) * self.model.deadline_s
        async with AsyncExitStack() as held:
            try:
                async with asyncio.timeout(wait_s):
                    for line in (turns(self, most), turns(self.model.place, most)):
                        await held.enter_async_context(line)
            except TimeoutError:
                raise JudgeUnavailableError(
                    f"{self.model.where}, model {self.model.model!r}: not asked, for {most} other questions were under "
                    f"way for {wait_s:g} s; raise the load's concurrency if the server takes more, or deadline_s",
                    Fault.DEADLINE,
                ) from None
            yield

    @property
    def version(self) -> str:
        """What scores depend on, as words: the model, what it is asked, and how it is read."""
        fields = [field.name for field in dataclasses.fields(self) if field.name not in ("name", "model")]
        return repr((type(self).__name__, self.model.identity, [(name, getattr(self, name)) for name in fields]))

    @property
    def prompt_version(self) -> str:
        """The template with its version, for the cache."""
        return f"{self.template.name} {self.template.version}"

    def named(self: P, name: str) -> P:
        """Gives the same under another name."""
        return dataclasses.replace(self, name=name)


def at_once(model: JudgeModel) -> int:
    """Gives how many questions to a server are begun at once."""
    return math.ceil(_QUESTIONS_A_REQUEST * model.load.concurrency)


class PromptedReward(JudgeReward):
    """A judge that asks a model."""

    @property
    def model(self) -> JudgeModel:
        """The model behind it."""
        assert isinstance(self._judging, Prompted)
        return self._judging.model


def judging_options(judging: Prompted, default: float | None) -> RewardOptions:
    """Gives the options of a judge's reward."""
    timeout_s = judging.rounds * judging.model.deadline_s + MARGIN_S
    return judge_options(judging.name, timeout_s, default, score_range=(0, 1), concurrency=at_once(judging.model))


def chosen_template(given: str | Template | None, usual: str, *, pairwise: bool) -> Template:
    """Gives the template that is asked for.

    Raises:
        JudgeSetupError: There is none of that name, or it is of the other kind of judge.
    """
    chosen = given if isinstance(given, Template) else builtin_template(usual if given is None else given)
    if chosen.is_pairwise != pairwise:
        kind, other = ("a PairwiseJudge", "an LLMJudge") if chosen.is_pairwise else ("an LLMJudge", "a PairwiseJudge")
        raise JudgeSetupError(f"template {chosen.name!r} is for {kind}, and this is {other}")
    return chosen


def filled_by(
    template: Template, reference: str | None, columns: Mapping[str, str] | None, *, group: bool = False
) -> Columns:
    """Gives the columns that fill a template.

    Raises:
        JudgeSetupError: A field has no column, or a column no field.
    """
    if columns is not None and not isinstance(columns, Mapping):
        raise JudgeSetupError(f"columns={columns!r}: expected columns by field, such as {{'source': 'article'}}")
    given = dict(columns or {}) | ({} if reference is None else {"reference": reference})
    ours = {"prompt", "completion", "first", "second", "criteria", "scale"}
    fields = sorted(template.uses - ours)
    for field, column in given.items():
        if field not in fields:
            raise JudgeSetupError(f"column {column!r}: template {template.name!r} has no field {{{field}}}")
    by_field = {field: given.get(field, field) for field in fields}
    for field, column in by_field.items():
        if not _is_column(column):
            raise JudgeSetupError(
                f"column {column!r} for {{{field}}}: expected the name of a dataset column, as Python writes names and "
                f"none of {', '.join(sorted(_RESERVED))}; rename the column, and name it in columns={{{field!r}: ...}}"
            )
    if "reference" in fields and "reference" not in given:
        raise JudgeSetupError(
            f"template {template.name!r} needs the right answer: name its dataset column, as reference='answer'"
        )
    return Columns(by_field, "prompt" in template.uses, group)


def _is_column(name: object) -> bool:
    return isinstance(name, str) and name.isidentifier() and not keyword.iskeyword(name) and name not in _RESERVED
