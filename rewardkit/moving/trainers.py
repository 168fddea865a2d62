"""Reward functions of OpenRLHF, slime with Miles, EasyR1 and AReaL, as they are, for one completion a call.

Each is called with what its trainer passes, by the trainer's names; :mod:`rewardkit.moving.function` has what all moves
share.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from types import SimpleNamespace
from typing import Any, Unpack

from rewardkit.declare.decorator import Reward, name_of
from rewardkit.declare.options import NamedOptions
from rewardkit.declare.spec import Kind
from rewardkit.errors import BadReturnError, RewardDefinitionError
from rewardkit.messages import prompt_text
from rewardkit.moving.function import (
    AsyncMovedFunction,
    AuthorCall,
    MovedFunction,
    check_function,
    metrics_and_reason,
    names_column,
    parameters_of,
    required_of,
    reward_of,
    score_from,
    scored,
    scores_from,
    signature_of,
    takes_all,
)
from rewardkit.shown.text import shortened

_TRUTHS = ("label", "ground_truth", "answer")
"""Where a row's ground truth is looked for, where no column is named."""


class TrainerFunction(MovedFunction):
    """A function that a trainer calls; its settings are the column of the ground truth, and what else the move takes.

    A subclass says what the trainer passes, and how the result is read.
    """

    @property
    def truth_column(self) -> str | None:
        """The column of the ground truth; ``None`` where no column was named."""
        column: str | None = self.settings[0]
        return column

    @cached_property
    def __signature__(self) -> inspect.Signature:
        """The columns that a call takes of ours: the rollout, the row, and those that are named."""
        required = ["completions" if self.in_groups else "completion"]
        required += [self.truth_column] if self.truth_column and names_column(self.truth_column) else []
        required += [name for name in self.named_columns if name in required_of(self.moved) and name not in required]
        return signature_of(["prompt", "completion_ids", "example"], required)

    @property
    def hints(self) -> Mapping[str, Any]:
        names = dict.fromkeys(self.__signature__.parameters, object)
        return {**names, "completion": str, "completions": list[str], "example": Mapping[str, Any]}

    @property
    def in_groups(self) -> bool:
        """Whether a call has the completions of one prompt."""
        return False

    @property
    def named_columns(self) -> Sequence[str]:
        """The parameters of the author's that are columns of the row."""
        return ()

    def author_call(self, columns: Mapping[str, Any]) -> AuthorCall:
        own = ("prompt", "completion", "completions", "completion_ids", "example")
        row = {**(columns.get("example") or {}), **{name: value for name, value in columns.items() if name not in own}}
        texts = list(columns["completions"]) if self.in_groups else [columns["completion"]]
        ids = columns.get("completion_ids")
        all_ids = ids if self.in_groups and ids is not None else [ids] * len(texts)
        prompt = columns.get("prompt")
        return self.trainer_call("" if prompt is None else prompt, texts, list(all_ids), row)

    def trainer_call(self, prompt: Any, texts: Sequence[str], ids: Sequence[Any], row: Mapping[str, Any]) -> AuthorCall:
        """Return the call that the trainer would make for these completions of a prompt."""
        raise NotImplementedError

    def passed(self, keywords: Mapping[str, Any]) -> dict[str, Any]:
        """Return those of the trainer's keywords that the author's function takes."""
        return {name: value for name, value in keywords.items() if self.takes_all or name in self.parameters}

    def truth(self, row: Mapping[str, Any]) -> Any:
        """Return a row's ground truth; ``None`` without one, LookupError where a named column is not there."""
        if self.truth_column is not None:
            if self.truth_column not in row:
                raise LookupError(f"the row has no {self.truth_column!r}, which names the ground truth")
            return row[self.truth_column]
        spec = _object(row.get("reward_spec"))
        return next((row[name] for name in _TRUTHS if name in row), spec.get("ground_truth"))


class OpenRLHFFunction(TrainerFunction):
    """``reward_func(queries, prompts, labels)``, called with lists of one."""

    def trainer_call(self, prompt: Any, texts: Sequence[str], ids: Sequence[Any], row: Mapping[str, Any]) -> AuthorCall:
        before = prompt_text(prompt)
        keywords = {"queries": [before + texts[0]], "prompts": [before], "labels": [self.truth(row)]}
        return AuthorCall(self.passed(keywords), _read_openrlhf)


def _read_openrlhf(value: object) -> Any:
    """Return the reward of a result: a number, a tensor or list of one, or an object with ``rewards``."""
    metrics: dict[str, float] = {}
    reason = None
    if isinstance(value, Mapping):
        if "rewards" not in value:
            raise BadReturnError(f"returned {shortened(repr(value), 80)}; OpenRLHF expects a number under 'rewards'")
        logs = value.get("extra_logs")
        if isinstance(logs, Mapping):
            metrics, reason = metrics_and_reason({name: _single(part) for name, part in logs.items()})
        value = value["rewards"]
    return scored(score_from(_single(value)), metrics, reason)


def _single(value: Any) -> Any:
    """Return the element of a list or tensor of one; anything else as it is."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    return value[0] if isinstance(value, list | tuple) and len(value) == 1 else value


class SlimeFunction(TrainerFunction):
    """``custom_rm(args, sample)``, or ``group_rm(args, samples)``, of slime and Miles."""

    @property
    def in_groups(self) -> bool:
        return bool(self.settings[1])

    @property
    def trainer_args(self) -> Mapping[str, Any]:
        """What stands in the trainer's ``args``."""
        return dict(self.settings[2])

    def trainer_call(self, prompt: Any, texts: Sequence[str], ids: Sequence[Any], row: Mapping[str, Any]) -> AuthorCall:
        args = SimpleNamespace(**{"reward_key": None, "n_samples_per_prompt": len(texts), **self.trainer_args})
        samples = [self._sample(index, prompt, texts[index], ids[index], row) for index in range(len(texts))]
        first, second = list(self.parameters)[:2]
        keywords = {first: args, second: samples if self.in_groups else samples[0]}
        return AuthorCall(keywords, partial(self._read, args.reward_key, samples))

    def _sample(self, index: int, prompt: Any, text: str, ids: Any, row: Mapping[str, Any]) -> SimpleNamespace:
        known_ids = list(ids or ())
        return SimpleNamespace(
            group_index=0, index=index, prompt=prompt, response=text, label=self.truth(row), tokens=known_ids,
            response_length=len(known_ids), metadata=dict(_object(row.get("metadata")) or row), reward=None,
            reward_spec=_object(row.get("reward_spec")), loss_mask=None, remove_sample=False,
            status=SimpleNamespace(value="completed", name="COMPLETED"),
        )  # fmt: skip

    def _read(self, reward_key: str | None, samples: Sequence[SimpleNamespace], value: object) -> Any:
        values = scores_from(value, len(samples), "slime") if self.in_groups else [value]
        scores = [_read_slime(reward_key, sample, each) for sample, each in zip(samples, values, strict=True)]
        return scores if self.in_groups else scores[0]


def _read_slime(reward_key: str | None, sample: SimpleNamespace, value: object) -> Any:
    """Return the score of a sample; ``None`` where the function takes it out of the training."""
    metrics: dict[str, float] = {}
    reason = None
    if isinstance(value, Mapping):
        key = reward_key or "score"
        if key not in value:
            raise BadReturnError(
                f"returned {shortened(repr(value), 80)}, without {key!r}; name the key with "
                "from_slime(args={'reward_key': ...})"
            )
        metrics, reason = metrics_and_reason({name: part for name, part in value.items() if name != key})
        value = value[key]
    return scored(None if sample.remove_sample else score_from(value), metrics, reason)


class EasyR1Function(TrainerFunction):
    """``compute_score(reward_inputs)`` for a batch, called with lists of one, or ``compute_score(reward_input)``."""

    def trainer_call(self, prompt: Any, texts: Sequence[str], ids: Sequence[Any], row: Mapping[str, Any]) -> AuthorCall:
        entry = {**row, "response": texts[0], "ground_truth": self.truth(row)}
        if ids[0] is not None:
            entry["response_length"] = len(ids[0])
        is_batch = "reward_inputs" in self.parameters
        keywords = {"reward_inputs": [entry]} if is_batch else {"reward_input": entry}
        return AuthorCall(keywords, partial(_read_easyr1, is_batch))


def _read_easyr1(is_batch: bool, value: object) -> Any:
    if is_batch:
        (value,) = scores_from(value, 1, "EasyR1")
    if not isinstance(value, Mapping) or "overall" not in value:
        raise BadReturnError(f"returned {shortened(repr(value), 80)}; EasyR1 expects a number under 'overall'")
    metrics, reason = metrics_and_reason({name: part for name, part in value.items() if name != "overall"})
    return scored(score_from(value["overall"]), metrics, reason)


class ArealFunction(TrainerFunction):
    """``f(prompt, completions, prompt_ids, completion_ids, **data)`` of AReaL, where every column is a keyword."""

    _OWN = ("prompt", "completions", "prompt_ids", "completion_ids")

    @property
    def named_columns(self) -> Sequence[str]:
        return [name for name in self.parameters if name not in self._OWN and names_column(name)]

    def trainer_call(self, prompt: Any, texts: Sequence[str], ids: Sequence[Any], row: Mapping[str, Any]) -> AuthorCall:
        own = {"prompt": prompt_text(prompt), "completions": texts[0], "prompt_ids": None, "completion_ids": ids[0]}
        return AuthorCall(self.passed({**row, **own}), lambda value: score_from(_single(value)))


class AsyncOpenRLHFFunction(AsyncMovedFunction, OpenRLHFFunction):
    """The same for an ``async def``."""


class AsyncSlimeFunction(AsyncMovedFunction, SlimeFunction):
    """The same for an ``async def``."""


class AsyncEasyR1Function(AsyncMovedFunction, EasyR1Function):
    """The same for an ``async def``."""


class AsyncArealFunction(AsyncMovedFunction, ArealFunction):
    """The same for an ``async def``."""


def from_openrlhf(
    function: Callable[..., Any], /, *, label: str | None = None, **options: Unpack[NamedOptions]
) -> Reward[..., Any]:
    """Return a reward of a ``reward_func(queries, prompts, labels)`` that was written for OpenRLHF.

    It is called with lists of one: the query is the prompt's text with the completion's. It returns a number, a tensor
    or list of one, or an object with ``rewards``, whose ``extra_logs`` become metrics.

    Args:
        function: The function, plain or ``async``.
        label: The column of the label; unless given, ``label``, ``ground_truth`` or ``answer``, whichever the row has.
        options: As for :func:`rewardkit.reward`.

    Raises:
        RewardDefinitionError: It is no such function.
    """
    _check(function, "from_openrlhf", {"queries", "prompts", "labels"}, needs="queries")
    return reward_of((OpenRLHFFunction, AsyncOpenRLHFFunction), function, (label,), Kind.SINGLE, options)


def from_slime(
    function: Callable[..., Any],
    /,
    *,
    label: str | None = None,
    in_groups: bool = False,
    args: Mapping[str, Any] | None = None,
    **options: Unpack[NamedOptions],
) -> Reward[..., Any]:
    """Return a reward of a ``custom_rm(args, sample)`` that was written for slime or Miles.

    The sample has ``prompt``, ``response``, ``label``, ``metadata``, which is the column of that name or the whole row,
    ``reward_spec``, ``tokens`` and ``response_length``. A sample that the function removes (``remove_sample``) is
    skipped. Of an object the number under ``reward_key``, or ``score``, counts, and others are metrics.

    Args:
        function: The function, plain or ``async``.
        label: The column of the label; unless given, ``label``, ``ground_truth``, ``answer`` or ``reward_spec``'s.
        in_groups: It is a ``group_rm(args, samples)``, with all completions of a prompt.
        args: What it reads of the trainer's settings, such as ``{"reward_key": "score"}``.
        options: As for :func:`rewardkit.reward`.

    Raises:
        RewardDefinitionError: It is no such function.
    """
    check_function(function, "from_slime")
    required = [name for name in parameters_of(function) if name in required_of(function)]
    if len(required) != 2 or list(parameters_of(function))[:2] != required:
        raise RewardDefinitionError(f"from_slime: {name_of(function)}() must take two parameters, args and a sample")
    settings = (label, bool(in_groups), tuple((args or {}).items()))
    kind = Kind.GROUP if in_groups else Kind.SINGLE
    return reward_of((SlimeFunction, AsyncSlimeFunction), function, settings, kind, options)


def from_easyr1(
    function: Callable[..., Any], /, *, ground_truth: str | None = None, **options: Unpack[NamedOptions]
) -> Reward[..., Any]:
    """Return a reward of a ``compute_score`` that was written for EasyR1, for a batch or for one completion.

    An input has ``response``, ``ground_truth``, the row's columns, and ``response_length`` where the token ids are
    known. ``overall`` is the score, and the other numbers are metrics.

    Args:
        function: The function, with ``reward_inputs`` or ``reward_input``, plain or ``async``.
        ground_truth: Its column; unless given, ``label``, ``ground_truth`` or ``answer``, whichever the row has.
        options: As for :func:`rewardkit.reward`.

    Raises:
        RewardDefinitionError: It is no such function.
    """
    needs = "reward_input" if "reward_input" in _names(function) else "reward_inputs"
    _check(function, "from_easyr1", {needs}, needs=needs)
    return reward_of((EasyR1Function, AsyncEasyR1Function), function, (ground_truth,), Kind.SINGLE, options)


def from_areal(function: Callable[..., Any], /, **options: Unpack[NamedOptions]) -> Reward[..., Any]:
    """Return a reward of a ``f(prompt, completions, prompt_ids, completion_ids, **data)`` that was written for AReaL.

    ``prompt`` and ``completions`` are texts, each column is a keyword, and ``prompt_ids`` is ``None``.

    Args:
        function: The function, plain or ``async``.
        options: As for :func:`rewardkit.reward`.

    Raises:
        RewardDefinitionError: It is no such function.
    """
    check_function(function, "from_areal")
    if "completions" not in _names(function) and not takes_all(function):
        raise RewardDefinitionError(
            f"from_areal: {name_of(function)}() takes no 'completions', which AReaL passes by that name"
        )
    return reward_of((ArealFunction, AsyncArealFunction), function, (None,), Kind.SINGLE, options)


def _names(function: Callable[..., Any]) -> set[str]:
    """Return a function's parameters; none of what has no signature, which ``check_function`` refuses."""
    return set(parameters_of(function)) if callable(function) and not isinstance(function, Reward) else set()


def _check(function: Callable[..., Any], move: str, names: set[str], *, needs: str) -> None:
    """Raise :class:`RewardDefinitionError` for a function that its trainer could not call."""
    check_function(function, move)
    if needs not in _names(function) and not takes_all(function):
        raise RewardDefinitionError(f"{move}: {name_of(function)}() takes no {needs!r}, which is passed by that name")
    unfilled = sorted(required_of(function) - names)
    if unfilled:
        raise RewardDefinitionError(
            f"{move}: nothing fills {unfilled[0]!r} of {name_of(function)}(); set it with "
            f"functools.partial({name_of(function)}, {unfilled[0]}=...)"
        )


def _object(value: object) -> Mapping[str, Any]:
    """Return a column that holds an object, also as JSON; an empty one for anything else."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {}
    return value if isinstance(value, Mapping) else {}
