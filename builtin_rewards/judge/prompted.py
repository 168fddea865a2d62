"""What judges that ask a model share: a prompt filled from columns, and a model that is asked in turn."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import keyword
import logging
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self, TypeVar

from builtin_rewards.endpoint.backends import StandIn
from builtin_rewards.endpoint.budget import charges_of
from builtin_rewards.endpoint.errors import Fault, JudgeError, JudgeReplyError, JudgeSetupError, JudgeUnavailableError
from builtin_rewards.judge.column_coercion import PASSAGES, rubric_annotation
from builtin_rewards.judge.conversation import Image, Turn, Turns, last_text, tools_turn, turns_of
from builtin_rewards.judge.fallback import JudgeReward, judge_options
from builtin_rewards.judge.formats import Format
from builtin_rewards.judge.members import JudgeFunction
from builtin_rewards.judge.model import JudgeModel, Question, Read, ReadReply, charge, charge_lost
from builtin_rewards.judge.prefilter import content_free
from builtin_rewards.judge.prompt import MAX_CHARS, Template, Value, omitted_chars
from builtin_rewards.judge.rubric import Rubric
from builtin_rewards.judge.settings import AskingSettings, JudgeSettings, check, check_names
from builtin_rewards.judge.templates import builtin_template, of_conversations
from builtin_rewards.reading.thoughts import Shows, leaves_thought_open
from rewardkit import Kind, RewardOptions, Rollout
from rewardkit.extending import CallContext, Versioned, check_rollouts, turns

MARGIN_S = 10.0  # beyond a judgement's deadline, in its call's: importing the client library is not charged to it
# Questions begun for each request that may be in flight, so that waits between tries leave no room unused: at 20 % of
# faults and a latency of 1 s a question waits for a sixth of its time.
_QUESTIONS_A_REQUEST = 1.25
_RESERVED = frozenset({"prompt", "completion", "completions", "messages", "completion_ids", "example", "step", "epoch"})
_FILLED_BY_JUDGE = {"prompt", "completion", "conversation", "first", "second", "answers", "criteria", "scale"}
_TOOLS = "tools"  # the column with the tools that could be called, as in TRL's data sets
_SHOWING = ("shows", "split_special_tokens", "prefilter", "max_chars", "reason_chars", "images")
_LEFT_OUT = {"system": "system", "developer": "system"}
_logged = set[tuple[str, frozenset[str]]]()  # judges and what they leave out, as far as this process has logged it
_log = logging.getLogger("rewardkit")

R = TypeVar("R", bound="PromptedReward")
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Columns:
    """Which columns fill a template's fields, column by field, and what a call is about."""

    by_field: Mapping[str, str]
    prompt: bool  # a call must give it
    group: bool = False  # one call judges all completions of a prompt
    rubric: str | None = None  # the column that has the criteria
    like: Rubric | None = None  # what that column's rubric has in all else

    @property
    def required(self) -> list[str]:
        """The columns without which a row is skipped."""
        return [*self.by_field.values(), *([self.rubric] if self.rubric else [])]

    def missing(self, columns: Mapping[str, Any]) -> str | None:
        """Return why a row cannot be judged, if a column has no value."""
        missing = next((column for column in self.required if columns[column] is None), None)
        return None if missing is None else f"the row has nothing in column {missing!r}"

    def values(self, columns: Mapping[str, Any]) -> dict[str, str]:
        """Return the text of each field but prompt and completions."""
        return {field: columns[column] for field, column in self.by_field.items()}

    def prompt_turns(self, columns: Mapping[str, Any], shows: Shows) -> Turns:
        """Return the turns of the prompt, after the tools that could be called, if the row has them."""
        tools = None if _TOOLS in self.required else tools_turn(columns.get(_TOOLS))
        return (*([] if tools is None else [tools]), *turns_of(columns.get("prompt", ""), "prompt", shows))


class View(NamedTuple):
    """What a judge is shown of a conversation."""

    template: Template
    values: dict[str, Value]
    images: tuple[Image, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class PromptedFunction(JudgeFunction, Versioned):
    """The function of a judge that asks a ``model``; its settings are those of :class:`JudgeSettings`."""

    model: JudgeModel
    template: Template
    columns: Columns
    shows: Shows = "answer"
    split_special_tokens: bool = False
    prefilter: bool = True
    max_chars: int = MAX_CHARS
    reason_chars: int | None = None
    images: bool = False

    def __post_init__(self) -> None:
        check({name: getattr(self, name) for name in _SHOWING})

    @property
    def takes(self) -> Mapping[str, tuple[Any, bool]]:
        columns = self.columns
        answers = {"completions": (list[object], True)} if columns.group else {"completion": (object, True)}
        takes: dict[str, tuple[Any, bool]] = {"prompt": (object, columns.prompt), **answers, _TOOLS: (object, False)}
        takes |= dict.fromkeys(columns.by_field.values(), (PASSAGES, True))
        rubric = {columns.rubric: (rubric_annotation(columns.like), True)} if columns.rubric and columns.like else {}
        return takes | rubric

    @property
    def on_one_host(self) -> bool:
        """Whether a budget counts on this host alone."""
        return self.model.budget is not None and self.model.budget.is_of_one_host

    @property
    def charges(self) -> Mapping[str, float]:
        return charges_of(self.model.budget)

    @property
    def rounds(self) -> int:
        """How many judgements, one after another, a call's deadline has room for; it waits for those of other calls."""
        raise NotImplementedError

    def build_questions(self, columns: Mapping[str, Any]) -> tuple[Question, ...]:
        """Return the questions for a call's arguments; none if nothing is asked."""
        raise NotImplementedError

    def answer_turns(self, completion: Any, columns: Mapping[str, Any]) -> Turns:
        """Return the turns of a completion, as far as they are judged. Raises CoercionError."""
        return turns_of(completion, "completion", self.shows, inside=leaves_thought_open(columns.get("prompt")))

    def why_content_free(self, answer: Turns, reference: str | None) -> str | None:
        """Return why an answer without content is not asked about; ``None`` if it is, as with a tool call."""
        if not self.prefilter or not all(turn.is_text for turn in answer):
            return None
        limit = max(self.max_chars, MAX_CHARS)
        reasons = [content_free(turn.said, reference, max_chars=limit) for turn in answer if turn.graded]
        if not reasons or not all(reasons):
            return None
        return "nothing follows its thinking" if answer[-1].is_thought else reasons[-1]

    def why_unseen(self, prompt: Turns, *answers: Turns) -> str | None:
        """Return why the judge cannot see what it would grade; ``None`` if it can."""
        if not all(any(turn.graded for turn in answer) for answer in answers):
            return "the completion has no turn of the assistant"
        turns = [*self._visible_turns(prompt), *itertools.chain(*answers)]
        kinds = Counter(kind for turn in turns for kind in turn.unseen)
        if not self.images:
            kinds["image"] += sum(len(turn.images) for turn in turns)
        parts = ", ".join(f"{count} of type {kind}" for kind, count in kinds.items() if count)
        hint = "; images=True passes images on to a model that takes them" if kinds["image"] and not self.images else ""
        return f"the judge cannot see all parts of this conversation: {parts}{hint}" if parts else None

    def omissions(self, prompt: Turns, answer: Turns) -> dict[str, float]:
        """Return what of prompt and answer is not shown, as metrics; log once what the template leaves out."""
        visible = set(map(id, self._visible_turns(prompt)))
        hidden = [turn for turn in prompt if id(turn) not in visible]
        question = _question(prompt)  # a template without {prompt} is meant to be one
        turns = [turn for turn in hidden if turn is not question]
        kinds = Counter("tools" if turn.uses_tools else _LEFT_OUT.get(turn.role, "turns") for turn in turns)
        kinds["images"] = sum(len(turn.images) for turn in hidden)
        counts = {kind: float(count) for kind, count in kinds.items() if count}
        if counts and (key := (self.name, frozenset(counts))) not in _logged:
            _logged.add(key)
            message = f"template {self.template.name!r} leaves out {', '.join(counts)}; {{conversation}} shows all"
            _log.warning(f"judge {self.name!r}: {message}")
        if chars := sum(turn.thoughts for turn in (*prompt, *answer)):
            counts["thoughts"] = float(chars)
        return {f"left_out/{kind}": count for kind, count in counts.items()}

    def cut_chars(self, view: View, values: Mapping[str, str]) -> dict[str, float]:
        """Return how many characters are left out because a shown text is too long, as a metric."""
        fields = [value for name, value in {**view.values, **values}.items() if name in view.template.uses]
        chars = sum(omitted_chars(value, self.max_chars) for value in fields)
        return {"left_out/shortened": float(chars)} if chars else {}

    def view(self, prompt: Turns, answers: Mapping[str, Turns]) -> View:
        """Return what the judge is shown; a built-in template shows all turns beyond a question and its answer."""
        graded = answers.get("completion", ())
        values: dict[str, Value] = {"prompt": last_text(prompt, "user"), "conversation": (*prompt, *graded)}
        for name, answer in answers.items():  # the text where that is all, else the turns
            values[name] = answer if _is_long((), answer) else last_text(answer, "assistant")
        turns = [*self._visible_turns(prompt), *itertools.chain(*answers.values())]
        return View(self._template(prompt, graded), values, tuple(image for turn in turns for image in turn.images))

    def showing(self, shows: Shows) -> Self:
        return replace(self, shows=shows)

    def fill(self, view: View, texts: Mapping[str, Value]) -> tuple[Mapping[str, Any], ...]:
        """Return the messages of a view, with further texts."""
        return view.template.fill(
            {**view.values, **texts},
            max_chars=self.max_chars,
            images=view.images,
            split_special_tokens=self.split_special_tokens,
        )

    def _template(self, prompt: Turns, answer: Turns) -> Template:
        return of_conversations(self.template) if _is_long(prompt, answer) else self.template

    def _visible_turns(self, prompt: Turns) -> Turns:
        """Return the turns of a prompt that the template shows."""
        uses, question = self._template(prompt, ()).uses, _question(prompt)
        return prompt if "conversation" in uses else (question,) if question and "prompt" in uses else ()

    async def attempt(self, question: Question, read: Read[T]) -> ReadReply[T | JudgeReplyError]:
        """Ask a question in the judge's own line, then in its server's; its deadline begins with its turn there."""
        limit, wait_s = question_limit(self.model), (self.rounds - 1) * self.model.deadline_s
        async with AsyncExitStack() as lines:
            try:
                async with asyncio.timeout(wait_s):
                    for line in (turns(self, limit), turns(self.model.server_key, limit)):
                        await lines.enter_async_context(line)
            except TimeoutError:
                raise JudgeUnavailableError(
                    f"{self.model.where}, model {self.model.model!r}: not asked, because {limit} other questions were "
                    f"under way for {wait_s:g} s; raise the load's concurrency if the server takes more, or deadline_s",
                    Fault.DEADLINE,
                ) from None
            try:
                answer = await self.model.attempt(self.name, question, question.own_reply(read))
            except JudgeError as error:
                charge_lost(self.model.model, error)
                raise
        charge(answer)
        return answer

    async def attempts(self, questions: Sequence[Question], reads: Sequence[Read[T]]) -> list[T | JudgeError]:
        """Ask all questions together; return what was read of each reply or its error. Raises JudgeSetupError."""
        attempts = [self.attempt(question, read) for question, read in zip(questions, reads, strict=True)]
        answers: list[T | JudgeError] = []
        for result in await asyncio.gather(*attempts, return_exceptions=True):
            if isinstance(result, JudgeSetupError) or not isinstance(result, ReadReply | JudgeError):
                raise result  # it holds for all questions, and is not the loss of one
            answers.append(result.value if isinstance(result, ReadReply) else result)
        return answers

    def set_up(self) -> None:
        """Raise JudgeSetupError where the server has no such model or refuses the key; it is asked once a process."""
        self.model.set_up()

    @property
    def version(self) -> str:
        """All that scores depend on, as text: the model, what it is asked, and how it is read."""
        fields = [field.name for field in dataclasses.fields(self) if field.name not in ("name", "model")]
        return repr((type(self).__name__, self.model.identity, [(name, getattr(self, name)) for name in fields]))

    @property
    def prompt_version(self) -> str:
        return f"{self.template.name} {self.template.version}"


def question_limit(model: JudgeModel) -> int:
    """Return how many questions to a server are begun at once."""
    return math.ceil(_QUESTIONS_A_REQUEST * model.load.concurrency)


def _question(prompt: Turns) -> Turn | None:
    """Return the turn that ``{prompt}`` shows."""
    return next((turn for turn in reversed(prompt) if turn.role == "user" and (turn.said or turn.unseen)), None)


def _is_long(prompt: Turns, answer: Turns) -> bool:
    """Return whether there is more than a plain question and its plain answer."""
    alone = [turn.role for turn in prompt] in ([], ["user"]) and [turn.role for turn in answer] in ([], ["assistant"])
    return not alone or not all(turn.is_plain for turn in (*prompt, *answer))


class PromptedReward(JudgeReward):
    _judging: PromptedFunction

    @property
    def model(self) -> JudgeModel:
        """The model behind it."""
        return self._judging.model

    def with_client(self: R, client: StandIn) -> R:
        """Return the same judge on this client in its server's place, such as a ``FakeJudge`` in a test.

        It has no cache, which would hold the replies of another client, and no budget, whose ledger counts what a
        run spends; ``LLMJudge(..., client=client, budget=budget)`` has both.
        """
        model = replace(self.model, client=client, verify=False, cache=None, budget=None)
        return self.with_function(replace(self._judging, model=model))  # type: ignore[return-value]  # of its own kind

    def render(self, *rollouts: Rollout, **columns: Any) -> list[Mapping[str, Any]]:
        """Return the messages of all questions that the judge would ask, if any.

        It takes one rollout, or two and more for a judge of groups; or ``prompt``, ``completion`` (or ``completions``)
        and the row's columns. A missing column is a MissingColumnError.
        """
        answer = "completions" if self.spec.kind is Kind.GROUP else "completion"
        if not rollouts and answer not in columns:
            raise TypeError(f"{self.name}.render() takes rollouts, or {answer}=... with the row's columns")
        row = {name: value for name, value in columns.items() if name not in _RESERVED}
        completions = columns.get("completions") or [columns.get("completion", "")]
        rollouts = rollouts or tuple(Rollout(columns.get("prompt", ""), completion, row) for completion in completions)
        check_rollouts([self], rollouts)
        questions = self._judging.build_questions(self.spec.bind(rollouts, CallContext(), range(len(rollouts))))
        format = Format(self.model.format or Format.JSON_SCHEMA)
        return [message for question in questions for message in self.model.request(question, format).messages]


def judging_options(judging: PromptedFunction, default: float | None) -> RewardOptions:
    # A question has as long again to wait for a slot.
    timeout_s = (judging.rounds + 1) * judging.model.deadline_s + MARGIN_S
    calls = question_limit(judging.model)
    return judge_options(judging.name, timeout_s, default, score_range=(0, 1), concurrency=calls)


def function_fields(
    kind: type[PromptedReward], model: str, settings: JudgeSettings, name: str, default: str
) -> dict[str, Any]:
    """Return the fields of a :class:`PromptedFunction`, with this name and template by default.

    Raises JudgeSetupError for a wrong setting.
    """
    judges = [*PromptedReward.__subclasses__(), *JudgeReward.__subclasses__()]
    check_names(settings, kind, judges)
    own, template = builtin_template(default), settings.get("template")
    if not isinstance(template, Template):
        template = own if template is None else builtin_template(template)
    if template.judge != own.judge:
        raise JudgeSetupError(f"template {template.name!r} is for {template.judge}, and this is {own.judge}")
    columns = columns_for(template, settings.get("reference"), settings.get("columns"), kind.kind is Kind.GROUP)
    showing = {setting: value for setting, value in settings.items() if setting in _SHOWING}
    asking: Any = {setting: value for setting, value in settings.items() if setting in AskingSettings.__annotations__}
    try:
        judge_model = JudgeModel(model, **asking)  # last, because it looks for a key
    except JudgeSetupError as error:
        secrets: list[Any] = [settings, asking]  # any may hold a key, and tracebacks may show locals
        for mapping in secrets:
            mapping.clear()
        raise error.with_traceback(None) from None
    fields = {"name": settings.get("name", name), "model": judge_model, "template": template, "columns": columns}
    return fields | showing


def columns_for(template: Template, reference: str | None, columns: Mapping[str, str] | None, group: bool) -> Columns:
    """Return the columns that fill a template's fields: those named, else a column of the field's name.

    Raises JudgeSetupError for a column whose field the template lacks, for a name that no column can have, and where
    ``reference`` is used but not named.
    """
    check({"columns": columns})
    sources = dict(columns or {}) | ({} if reference is None else {"reference": reference})
    fields = sorted(template.uses - _FILLED_BY_JUDGE)
    for field, column in sources.items():
        if field not in fields:
            raise JudgeSetupError(f"column {column!r}: template {template.name!r} has no field {{{field}}}")
    by_field = {field: sources.get(field, field) for field in fields}
    for field, column in by_field.items():
        check_column(column, f"{{{field}}}", f"columns={{{field!r}: ...}}")
    if "reference" in fields and "reference" not in sources:
        fix = "name its dataset column, as reference='answer'"
        raise JudgeSetupError(f"template {template.name!r} needs the right answer: {fix}")
    return Columns(by_field, prompt=bool({"prompt", "conversation"} & template.uses), group=group)


def check_column(name: object, field: str, setting: str) -> None:
    """Raise JudgeSetupError for a name that no column can have."""
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name) or name in _RESERVED:
        raise JudgeSetupError(
            f"column {name!r} for {field}: expected the name of a dataset column, as Python writes names and "
            f"none of {', '.join(sorted(_RESERVED))}; rename the column, and name it in {setting}"
        )
