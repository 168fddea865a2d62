"""What a grader and a comparer share: a prompt filled from columns, and a model that is asked in turn.

Owns :class:`PromptedReward`, the base of both, :class:`Prompted`, that of their functions, and the choice of template
and columns. What is asked, and what becomes of the answers, is theirs.
"""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import itertools
import keyword
import logging
import math
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

from builtin_rewards.judge.conversation import Image, Turn, Turns, last_said
from builtin_rewards.judge.costs import charge
from builtin_rewards.judge.endpoint.client import StandIn
from builtin_rewards.judge.endpoint.values import Reply
from builtin_rewards.judge.errors import Fault, JudgeReplyError, JudgeSetupError, JudgeUnavailableError
from builtin_rewards.judge.fallback import JudgeReward, judge_options
from builtin_rewards.judge.formats import Format
from builtin_rewards.judge.model import Answer, JudgeModel, Question
from builtin_rewards.judge.prefilter import content_free
from builtin_rewards.judge.prompt import MAX_CHARS, Template, Value, chars_left_out
from builtin_rewards.judge.rows import PASSAGES, rubric_annotation
from builtin_rewards.judge.rubric import Rubric
from builtin_rewards.judge.templates import builtin_template, of_conversations
from builtin_rewards.judge.turns import turns
from rewardkit import Reward, RewardOptions, Rollout
from rewardkit.spec import CallContext

MARGIN_S = 10.0
"""Seconds that a call's deadline has beyond the judgement's own: importing the client library is not charged to it."""
_QUESTIONS_A_REQUEST = 1.25
"""Questions begun for each request that may be in flight, lest those that wait for their next try leave room unused: at
20 % of faults and a latency of 1 s they wait for a sixth of their time."""
_RESERVED = frozenset({"prompt", "completion", "completions", "messages", "completion_ids", "example", "step", "epoch"})
_INSTRUCTIONS = ("system", "developer")
_LEFT_OUT = {"system": "system prompts", "tools": "tool calls or results", "turns": "earlier turns", "images": "images"}
_said: set[tuple[str, frozenset[str]]] = set()
"""Of which judges it was said already what they leave out, in this process."""
_log = logging.getLogger("rewardkit")

P = TypeVar("P", bound="Prompted")
R = TypeVar("R", bound="PromptedReward")
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Columns:
    """Which dataset columns fill a template's fields.

    Attributes:
        by_field: Column by field, for the fields beside prompt and completion.
        prompt: Whether the template shows the prompt; where it does not, a call need not give one.
        group: Whether one call judges all completions of a prompt.
        rubric: The column with the criteria of a row; ``None`` where they are the judge's.
        like: What such a rubric has beside its criteria.
    """

    by_field: Mapping[str, str]
    prompt: bool
    group: bool = False
    rubric: str | None = None
    like: Rubric | None = None

    @property
    def signature(self) -> inspect.Signature:
        """The parameters that a run fills."""
        empty = inspect.Parameter.empty
        defaults = {"prompt": empty if self.prompt else ""}
        kind = inspect.Parameter.KEYWORD_ONLY
        return inspect.Signature(
            [inspect.Parameter(name, kind, default=defaults.get(name, empty)) for name in self.hints]
        )

    @property
    def hints(self) -> dict[str, Any]:
        """The parameters' annotations: a gold column that says nothing, ``""`` or ``"None"``, is ``None``."""
        reserved: dict[str, Any] = {"prompt": object}
        reserved |= {"completions": list[object]} if self.group else {"completion": object}
        reserved |= dict.fromkeys(self.by_field.values(), PASSAGES)
        return reserved if not self.rubric or not self.like else reserved | {self.rubric: rubric_annotation(self.like)}

    def missing(self, columns: Mapping[str, Any]) -> str | None:
        """Gives why a row cannot be judged, where a column has no value."""
        read = [*self.by_field.values(), *([self.rubric] if self.rubric else [])]
        missing = next((column for column in read if columns[column] is None), None)
        return None if missing is None else f"the row has nothing in column {missing!r}"

    def values(self, columns: Mapping[str, Any]) -> dict[str, str]:
        """Gives the text of each field but prompt and completions."""
        return {field: columns[column] for field, column in self.by_field.items()}


class View(NamedTuple):
    """What a judge is shown of a conversation."""

    template: Template
    values: dict[str, Value]
    images: tuple[Image, ...]


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
        images: Whether the model takes images.
    """

    name: str
    model: JudgeModel
    template: Template
    columns: Columns
    prefilter: bool
    max_chars: int
    reason_chars: int | None
    images: bool

    def __post_init__(self) -> None:
        for setting, least in (("max_chars", 2), ("reason_chars", 20)):
            value = getattr(self, setting)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
                raise JudgeSetupError(f"{setting}={value!r}: expected a whole number of characters, at least {least}")
        if not isinstance(self.images, bool):
            raise JudgeSetupError(f"images={self.images!r}: expected True where the model takes images, else False")

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

    async def __call__(self, **columns: Any) -> Any:
        raise NotImplementedError

    def rendered(self, columns: Mapping[str, Any]) -> tuple[Question, ...]:
        """The questions for these arguments of a call; none where nothing is asked."""
        raise NotImplementedError

    def says_nothing(self, answer: Turns, reference: str | None) -> str | None:
        """Gives why an answer is not asked about, ``None`` where it is: one of its turns says something.

        Tool calls and images say something.
        """
        if not self.prefilter or not all(turn.is_text for turn in answer):
            return None
        most = max(self.max_chars, MAX_CHARS)
        whys = [content_free(turn.said, reference, max_chars=most) for turn in answer if turn.graded]
        return whys[-1] if whys and all(whys) else None

    def unseen(self, prompt: Turns, *answers: Turns) -> str | None:
        """Gives why the judge cannot see what it would grade; ``None`` where it can."""
        if not all(any(turn.graded for turn in answer) for answer in answers):
            return "the completion has no turn of the assistant"
        shown = [*self._shown(prompt), *itertools.chain(*answers)]
        kinds = Counter(kind for turn in shown for kind in turn.unseen)
        if not self.images:
            kinds["image"] += sum(len(turn.images) for turn in shown)
        parts = ", ".join(f"{count} of type {kind}" for kind, count in kinds.items() if count)
        hint = "; images=True passes images on to a model that takes them" if kinds["image"] and not self.images else ""
        return f"the judge cannot see all parts of this conversation: {parts}{hint}" if parts else None

    def left_out(self, prompt: Turns) -> dict[str, float]:
        """Gives how much of a prompt the template does not show, as metrics, and says so once in a log."""
        shown = self._shown(prompt)
        rest = [turn for turn in prompt if not any(turn is one for one in shown)]
        question = _question(prompt)  # a template without {prompt} is meant to be one
        kinds = Counter(_kind(turn) for turn in rest if turn is not question)
        kinds["images"] = sum(len(turn.images) for turn in rest)
        found = {kind: float(count) for kind, count in kinds.items() if count}
        if found and (once := (self.name, frozenset(found))) not in _said:
            _said.add(once)
            words = ", ".join(_LEFT_OUT[kind] for kind in found)
            _log.warning(
                f"judge {self.name!r}: template {self.template.name!r} leaves out {words}; {{conversation}} shows all"
            )
        return {f"left_out/{kind}": count for kind, count in found.items()}

    def shortened(self, view: View, values: Mapping[str, str]) -> dict[str, float]:
        """Gives how many characters of what the template shows are left out for want of room, as a metric."""
        given = [value for name, value in {**view.values, **values}.items() if name in view.template.uses]
        chars = sum(chars_left_out(value, self.max_chars) for value in given)
        return {"left_out/shortened": float(chars)} if chars else {}

    def view(self, prompt: Turns, answers: Mapping[str, Turns]) -> View:
        """Gives what is shown of a prompt and of the answers, which are fields of the template.

        A built-in template shows all turns where there is more than a question and its answer.
        """
        graded = answers.get("completion", ())
        template = of_conversations(self.template) if _is_long(prompt, graded) else self.template
        values: dict[str, Value] = {name: _answer(turns) for name, turns in answers.items()}
        values |= {"prompt": last_said(prompt, "user"), "conversation": (*prompt, *graded)}
        shown = [*self._shown(prompt), *itertools.chain(*answers.values())]
        return View(template, values, tuple(image for turn in shown for image in turn.images))

    def _shown(self, prompt: Turns) -> Turns:
        """Gives the turns of a prompt that the template shows."""
        uses = (of_conversations(self.template) if _is_long(prompt, ()) else self.template).uses
        question = _question(prompt)
        return prompt if "conversation" in uses else (question,) if question and "prompt" in uses else ()

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


def _question(prompt: Turns) -> Turn | None:
    """Gives the turn that ``{prompt}`` shows."""
    return next((turn for turn in reversed(prompt) if turn.role == "user" and (turn.said or turn.unseen)), None)


def _is_long(prompt: Turns, answer: Turns) -> bool:
    """Whether there is more than a question and its answer."""
    alone = [turn.role for turn in prompt] in ([], ["user"]) and [turn.role for turn in answer] in ([], ["assistant"])
    return not alone or not all(turn.is_plain for turn in (*prompt, *answer))


def _kind(turn: Turn) -> str:
    return "system" if turn.role in _INSTRUCTIONS else "tools" if turn.uses_tools else "turns"


def _answer(turns: Turns) -> Value:
    """Gives a completion: its text where that is all, else its turns."""
    return turns if _is_long((), turns) else last_said(turns, "assistant")


class PromptedReward(JudgeReward):
    """A judge that asks a model."""

    @property
    def model(self) -> JudgeModel:
        """The model behind it."""
        return self._prompted.model

    @property
    def _prompted(self) -> Prompted:
        assert isinstance(self._judging, Prompted)
        return self._judging

    def with_client(self: R, client: StandIn) -> R:
        """Gives the same judge that asks this client in its server's place, such as a ``FakeJudge`` in a test."""
        model = replace(self.model, client=client, verify=False)
        return self.having(replace(self._prompted, model=model))  # type: ignore[return-value]  # of its own kind

    def render(self, *rollouts: Rollout, **columns: Any) -> list[Mapping[str, Any]]:
        """Gives the messages that the judge would send, as it would send them; none where nothing would be asked.

        Of a rubric that is asked about one criterion at a time, the messages of all questions one after another.

        Args:
            rollouts: What is judged: one rollout, and two or more for a judge of groups.
            columns: In their place ``prompt``, ``completion`` (or ``completions``) and the row's columns.
        """
        given = rollouts or _rollouts(columns)
        arguments = self.spec.bind(given, CallContext(), range(len(given)))
        format = Format(self.model.format or Format.JSON_SCHEMA)
        asked = self._prompted.rendered(arguments)
        return [message for question in asked for message in self.model.request(question, format).messages]


def _rollouts(columns: Mapping[str, Any]) -> Sequence[Rollout]:
    example = {name: value for name, value in columns.items() if name not in _RESERVED}
    completions = columns.get("completions") or [columns.get("completion", "")]
    return [Rollout(columns.get("prompt", ""), one, example) for one in completions]


def judging_options(judging: Prompted, default: float | None) -> RewardOptions:
    """Gives the options of a judge's reward."""
    timeout_s = judging.rounds * judging.model.deadline_s + MARGIN_S
    return judge_options(judging.name, timeout_s, default, score_range=(0, 1), concurrency=at_once(judging.model))


def chosen_template(given: str | Template | None, usual: str) -> Template:
    """Gives the template that is asked for.

    Raises:
        JudgeSetupError: There is none of that name, or it is of the other kind of judge.
    """
    chosen = given if isinstance(given, Template) else builtin_template(usual if given is None else given)
    own = builtin_template(usual).judge
    if chosen.judge != own:
        raise JudgeSetupError(f"template {chosen.name!r} is for {chosen.judge}, and this is {own}")
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
    ours = {"prompt", "completion", "conversation", "first", "second", "answers", "criteria", "scale"}
    fields = sorted(template.uses - ours)
    for field, column in given.items():
        if field not in fields:
            raise JudgeSetupError(f"column {column!r}: template {template.name!r} has no field {{{field}}}")
    by_field = {field: given.get(field, field) for field in fields}
    for field, column in by_field.items():
        check_column(column, f"{{{field}}}", f"columns={{{field!r}: ...}}")
    if "reference" in fields and "reference" not in given:
        raise JudgeSetupError(
            f"template {template.name!r} needs the right answer: name its dataset column, as reference='answer'"
        )
    return Columns(by_field, bool({"prompt", "conversation"} & template.uses), group)


def check_column(name: object, what: str, setting: str) -> None:
    """Raises where something cannot be the name of a column."""
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name) or name in _RESERVED:
        raise JudgeSetupError(
            f"column {name!r} for {what}: expected the name of a dataset column, as Python writes names and "
            f"none of {', '.join(sorted(_RESERVED))}; rename the column, and name it in {setting}"
        )
