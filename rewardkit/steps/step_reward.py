"""``@step_reward``: it scores each step of a completion, and makes one score of these.

:mod:`rewardkit.steps.reading` finds the steps, and :mod:`rewardkit.steps.scores` makes one score of theirs.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Unpack, overload

from rewardkit.declare.callables import is_async, set_by_partials, without_partials
from rewardkit.declare.compose import Composable
from rewardkit.declare.decorator import Reward, check_can_be_reward, make_options, name_of
from rewardkit.declare.options import DEFAULT_ASYNC_CONCURRENCY, NamedOptions, RewardOptions
from rewardkit.declare.spec import Kind, hints_of
from rewardkit.errors import BadReturnError, RewardDefinitionError
from rewardkit.forms import Form, TextParameter
from rewardkit.function import RewardFunction, Versioned
from rewardkit.runtime.attempt import score_of
from rewardkit.steps.credit_plan import CreditPlan, credit_plan, gain_options
from rewardkit.steps.reading import steps_of
from rewardkit.steps.scores import StepPlan, head_of
from rewardkit.transport import find, locate
from rewardkit.types import STEP_KINDS, Score, Step
from rewardkit.versions.fingerprint import Fingerprint

STEPS_IN_TIME = 16  # A step reward that is made of a reward has so many times that reward's `timeout_s`
_NOT_GIVEN: Any = object()


@dataclass(frozen=True, eq=False)
class Stepwise(RewardFunction, Versioned):
    """The function of a step reward: it finds the steps, has each scored, and makes one score of theirs.

    It wraps the author's function, whose source is then read, and by whose name a worker finds the step reward.
    Around a reward its docstring says what becomes of that reward's scores.
    """

    scored: Any  # what scores a step: the author's function, or a reward
    plan: StepPlan  # which steps are scored, and how their scores become one
    options: RewardOptions  # the options of the step reward
    annotations: Mapping[str, Any]  # the annotations of the function that scores a step

    def __post_init__(self) -> None:
        if isinstance(self.scored, Reward):
            vars(self)["__doc__"] = f"{self.plan.reduce} over {STEP_KINDS[self.plan.each]} of {self.scored.name}"
            return
        names = ("__module__", "__name__", "__qualname__", "__doc__")
        written = without_partials(self.scored)
        vars(self).update({name: getattr(written, name) for name in names if hasattr(written, name)})
        vars(self)["__wrapped__"] = self.scored

    @property
    def function(self) -> Callable[..., Any]:
        """What is called for each step."""
        function: Callable[..., Any] = self.scored.spec.function if isinstance(self.scored, Reward) else self.scored
        return function

    @functools.cached_property
    def __signature__(self) -> inspect.Signature:
        """The parameters that a run fills: the function's, and the rollout in place of the step."""
        kind = inspect.Parameter.KEYWORD_ONLY
        own_parameters = [inspect.Parameter("prompt", kind, default=""), inspect.Parameter("completion", kind)]
        own_names = {"prompt", "completion", self.part, *set_by_partials(self.function)}
        parameters = own_parameters + [
            parameter.replace(kind=kind) if parameter.kind is parameter.POSITIONAL_OR_KEYWORD else parameter
            for name, parameter in inspect.signature(self.function).parameters.items()
            if name not in own_names
        ]
        return inspect.Signature(sorted(parameters, key=lambda parameter: parameter.kind))

    @property
    def hints(self) -> Mapping[str, Any]:
        """The annotations of what a run fills; :attr:`texts` brings prompt and completion into form."""
        own = {name: annotation for name, annotation in self.annotations.items() if name != self.part}
        return own | {"prompt": object, "completion": object}

    @functools.cached_property
    def step_options(self) -> RewardOptions:
        """The options by which a step's own score is judged."""
        step_range = self.plan.step_range if isinstance(self.plan, CreditPlan) else None
        return self.options if step_range is None else replace(self.options, score_range=step_range)

    @property
    def inner(self) -> tuple[Reward[..., Any], ...]:
        """The reward that scores the steps, and those inside it; none where a function does."""
        return (self.scored, *self.scored.inner) if isinstance(self.scored, Reward) else ()

    def set_up(self) -> None:
        """Set up the reward that scores the steps."""
        if isinstance(self.scored, Reward):
            self.scored.set_up()

    @functools.cached_property
    def part(self) -> str | None:
        """The parameter that takes a step; ``None`` where a reward scores it."""
        return next((name for name, annotation in self.annotations.items() if annotation is Step), None)

    @functools.cached_property
    def texts(self) -> dict[str, TextParameter]:
        """The form of ``prompt`` and of ``completion``, for each that the function takes."""
        names = {"prompt", "completion"} & inspect.signature(self.function).parameters.keys()
        names -= set_by_partials(self.function)
        return {name: TextParameter.of(name, self.annotations.get(name, Any), self.options.name) for name in names}

    @property
    def version(self) -> str:
        """What scores depend on: the function or reward, and the plan."""
        return Fingerprint(self.scored, self.plan).digits

    def __call__(self, /, **columns: object) -> Score:
        pairs = []
        for step in self.steps(columns):
            try:
                score = self.to_score(self.function(**self.arguments(step, columns)))
            except BaseException as error:
                self.name_in(error, step)
                raise
            pairs.append((replace(step, before=()), score))  # what is before all of them is long
        return self.combine(pairs, columns)

    def combine(self, pairs: Sequence[tuple[Step, Score]], columns: Mapping[str, Any]) -> Score:
        """Return the one score of a rollout's steps."""
        return self.plan.combine(pairs, columns["completion"])

    def steps(self, columns: Mapping[str, Any]) -> Iterator[Step]:
        """Return the steps of the rollout that a call is given."""
        return steps_of(columns.get("prompt", ""), columns["completion"], self.plan.each, self.plan.labels)

    def arguments(self, step: Step, columns: Mapping[str, Any]) -> dict[str, Any]:
        """Return the function's arguments: its columns and the step; a reward gets the step as a rollout."""
        arguments = dict(columns)
        texts: dict[str, Any] = {"prompt": arguments.pop("prompt", ""), "completion": arguments.pop("completion")}
        if self.part is not None:
            arguments[self.part] = step
        else:
            as_text = "completion" in self.texts and self.texts["completion"].form is Form.TEXT
            texts = {"prompt": [*step.before], "completion": step.text if as_text else [*step.messages]}
            arguments |= {"messages": [*step.before, *step.messages]} if "messages" in arguments else {}
        return arguments | {name: taken.form_value(texts[name]) for name, taken in self.texts.items()}

    def name_in(self, error: BaseException, step: Step) -> None:
        """Add a note on the step to an error, in place of the note from an earlier time that it was raised."""
        note = _Note(f"in {head_of(step)}, one of {step.count}")
        note.of = self.scored
        with suppress(Exception):  # a class of errors may be frozen, or have notes of its own; the error counts then
            notes = getattr(error, "__notes__", ())
            error.__notes__ = [
                *(note_before for note_before in notes if getattr(note_before, "of", None) is not self.scored),
                note,
            ]

    def to_score(self, value: object) -> Score:
        """Return the value of a step's function as a score; raise BadReturnError where it is not a score."""
        try:
            return score_of(self.step_options, value)
        except ValueError as reason:
            raise BadReturnError(str(reason)) from None


class _Note(str):
    """A note of a step reward, told from others by ``of``: what scores its steps."""

    of: Any


class _Ending(Exception):
    """Carries what would end the whole event loop if a task raised it."""


class AsyncStepwise(Stepwise):
    """The same where the steps are awaited: side by side, at most ``concurrency`` of them at once on an event loop."""

    async def __call__(self, /, **columns: object) -> Score:  # type: ignore[override]
        """Return the one score of all steps; where one fails, raise its error after the others have ended."""
        import asyncio  # slow to import, and who awaits has it loaded

        from rewardkit.loops import turns

        line = turns(self, self.options.concurrency or DEFAULT_ASYNC_CONCURRENCY)

        async def score(step: Step) -> tuple[Step, Score]:
            try:
                async with line:
                    return step, self.to_score(await self.function(**self.arguments(step, columns)))
            except (SystemExit, KeyboardInterrupt) as ending:
                self.name_in(ending, step)
                raise _Ending from ending
            except BaseException as error:
                self.name_in(error, step)
                raise

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(score(step)) for step in self.steps(columns)]
        except BaseExceptionGroup as failed:  # the first that failed ends the others
            first_error = failed.exceptions[0]
            if isinstance(first_error, _Ending) and first_error.__cause__ is not None:
                first_error = first_error.__cause__
            raise first_error from None
        return self.combine([task.result() for task in tasks], columns)


class StepReward(Reward[..., Any]):
    """What ``@step_reward`` makes; its ``function`` is what scores one step, as its author wrote it."""

    def __init__(self, steps: Stepwise, version: str | None = None) -> None:
        self._steps = steps
        super().__init__(steps, Kind.SINGLE, steps.options, version=version)
        self.__wrapped__ = steps.function  # a function that names itself leads there, and not in a circle

    @property
    def function(self) -> Callable[..., Any]:
        return self._steps.function

    @property
    def credit(self) -> str | None:
        """``"turns"`` or ``"potential"`` where each turn has a number of its own; else ``None``."""
        return self._steps.plan.credit if isinstance(self._steps.plan, CreditPlan) else None

    def with_client(self, client: object) -> StepReward:
        """Return the same on a judge that asks this client in place of its server; see :meth:`Reward.with_client`."""
        if not isinstance(self._steps.scored, Reward):
            super().with_client(client)
        return StepReward(replace(self._steps, scored=self._steps.scored.with_client(client)))

    def _having(self, options: RewardOptions) -> StepReward:
        return StepReward(replace(self._steps, options=options))

    def __call__(self, *arguments: object, **columns: object) -> Any:
        """Score one completion; a judge's steps are awaited here where no event loop runs."""
        scored = super().__call__(*arguments, **columns)
        if not self.inner or not self.spec.is_async:
            return scored
        from rewardkit.loops import finished  # imports asyncio, which is slow to import

        return finished(scored)

    def __reduce__(self) -> tuple[Any, ...]:
        location = locate(self, self._steps)
        return (find, location) if location is not None else (StepReward, (self._steps, self.spec.fingerprint.source))


class Settings(NamedOptions, total=False):
    """The settings of :func:`step_reward`: its own, and the options of a reward."""

    each: str
    label: str | Sequence[str] | None
    reduce: str
    discount: float | None
    credit: str | None
    start: float | None


@overload
def step_reward(function: Callable[..., Any], /, **settings: Unpack[Settings]) -> StepReward: ...
@overload
def step_reward(**settings: Unpack[Settings]) -> Callable[[Callable[..., Any]], StepReward]: ...


def step_reward(function: object = _NOT_GIVEN, /, **settings: Any) -> Any:
    """Mark a function that scores one step of a completion; the steps' scores become one.

    Its parameter annotated :class:`~rewardkit.Step` gets each step in turn; the others are filled as those of
    :func:`~rewardkit.reward`, once a completion. It returns what a reward returns. A step for which it returns ``None``
    is left out; a completion without a scored step is skipped. A step that fails makes the call fail.

    >>> @step_reward(each="span", label="step", reduce="min")
    ... def brief(part: Step, most: int) -> float:
    ...     return float(len(part.text) <= most)
    >>> brief(completion="<step>one</step><step>two and three</step>", most="5").value
    0.0

    Args:
        function: The function; or a reward of one completion, such as a judge, which scores each step as a completion
            of its own, with all before it as the prompt. That reward's options hold, with 16 times its ``timeout_s``.
        each: ``"turn"`` (the default), ``"tool_call"`` or ``"span"``; see :mod:`rewardkit.steps.reading`.
        label: The label of the spans, or several: ``"step"`` for ``<step>...</step>``.
        reduce: ``"mean"`` (the default), ``"min"``, ``"last"``, or ``"discounted"``: the sum of ``discount**k * score``
            over the steps scored, k from 0, divided by the sum of ``discount**k``. That is the discounted return of
            Sutton and Barto (Reinforcement Learning, 2nd edition, equation 3.8), brought into the scores' range.
        discount: Above 0 and at most 1; 0.9 by default.
        credit: ``"turns"`` gives each turn of the assistant a number of its own beside the completion's, for trainers
            that take one a turn: what its steps earned. ``"potential"`` takes the scores for potentials, that is how
            good the state after a turn is: a turn's number is what it changed (Ng, Harada and Russell 1999, without
            discount), and the completion's score is the last potential less ``start``, to which they add up.
        start: The potential before the first turn, for ``"potential"``; 0 by default.
        settings: Besides these the options of :func:`~rewardkit.reward`. ``timeout_s`` is for all steps of a completion
            together, ``score_range`` holds for each, and ``concurrency`` bounds awaited steps as well as calls.

    Raises:
        RewardDefinitionError: The signature or a setting makes no sense; names the value and what helps.
    """

    def mark(scored: Any) -> StepReward:
        choices = {**_default_settings(scored, settings.get("name")), **settings}
        name = name_of(scored) if choices["name"] is None else choices["name"]
        has_reduce, where = "reduce" in settings, f"step reward {name!r}"
        *planned, credit, start = [choices.pop(key, default) for key, default in _USUAL.items()]
        options = make_options(name, {**choices, "name": name}, settings=_USUAL)
        plan = credit_plan(StepPlan.of(where, *planned), where, credit, start, has_reduce=has_reduce)
        plan, options = gain_options(plan, options)
        if isinstance(scored, Reward):
            hints, is_awaited = scored.spec.hints, scored.spec.is_async
        else:
            hints, is_awaited = hints_of(scored, name), is_async(scored)
        _refuse_unfit(scored, options.name, hints)
        kind = AsyncStepwise if is_awaited else Stepwise
        return StepReward(kind(scored, plan, options, hints))

    return mark if function is _NOT_GIVEN else mark(function)


_USUAL = {"each": "turn", "label": None, "reduce": "mean", "discount": None, "credit": None, "start": None}


def _default_settings(scored: Callable[..., Any] | Composable, name: str | None) -> dict[str, Any]:
    """Return the default settings: a function's name, or a reward's options; RewardDefinitionError for all else."""
    if isinstance(scored, Reward):
        options = {field: getattr(scored.options, field) for field in RewardOptions.__dataclass_fields__}
        return options | {"timeout_s": STEPS_IN_TIME * scored.options.timeout_s}
    if isinstance(scored, Composable):
        raise RewardDefinitionError(
            f"step_reward({scored.name!r}): it is a composition; make a step reward of each part, and compose these"
        )
    check_can_be_reward(scored, "step_reward", name)
    return {"name": name_of(scored)}


def _refuse_unfit(scored: object, name: str, hints: Mapping[str, Any]) -> None:
    """Raise RewardDefinitionError where a function or reward cannot score one step."""
    parts = [parameter for parameter, annotation in hints.items() if annotation is Step]
    problem = None
    if not isinstance(scored, Reward):
        if len(parts) != 1:
            counted = f"{' and '.join(parts)} are" if parts else "none is"
            problem = (
                f"one parameter takes the step, and is annotated Step: {counted}; write def {name}(part: Step, ...)"
            )
    elif scored.spec.kind is Kind.GROUP:
        problem = "it scores groups; only a reward of one completion scores a step"
    elif scored.spec.wants_completion_ids:
        problem = "it takes completion_ids, and which token ids are a step's is not known"
    if problem is not None:
        raise RewardDefinitionError(f"step reward {name!r}: {problem}")
