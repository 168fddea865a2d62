"""``from_grader``: a grader of OpenAI's, its JSON as it is, as a reward.

It owns how a grader is read and called; :mod:`rewardkit.moving.grader_kinds` what each kind is. Models that grade are
asked by a package that offers that in the entry-point group :data:`MODELS`, because rewardkit itself knows no model.
"""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Protocol, Unpack

from rewardkit.declare.decorator import Reward, make_options
from rewardkit.declare.options import Options, RewardOptions
from rewardkit.declare.spec import Kind
from rewardkit.errors import BadReturnError, ConfigError, RewardDefinitionError
from rewardkit.function import RewardFunction, Versioned
from rewardkit.moving.function import names_column, signature_of
from rewardkit.moving.grader_kinds import (
    PYTHON_TIMEOUT_S,
    Grader,
    ModelGrader,
    MultiGrader,
    PythonGrader,
    Spaces,
    StringCheck,
    TextSimilarity,
    grader_of,
)
from rewardkit.moving.grader_template import item_of, sample_of
from rewardkit.runtime.attempt import score_of
from rewardkit.types import COST_METRICS, UNMETERED, Score

MODELS = "rewardkit.graders"  # The entry-point group under which packages offer what asks a model, by the grader's type


class AskedModel(Protocol):
    """A model that grades, as a package offers it."""

    @property
    def version(self) -> str:
        """All that its grades depend on, as text."""

    @property
    def timeout_s(self) -> float:
        """Seconds that a grade may take."""

    @property
    def on_one_host(self) -> bool:
        """Whether all calls must be made on one host."""

    def set_up(self) -> None:
        """Check that the model is there."""

    def visible(self, prompt: Any, completion: Any) -> Any:
        """Return what the model is shown of a completion, such as its answer without its thoughts."""

    async def grade(self, messages: list[dict[str, Any]]) -> Score:
        """Return the grade of a conversation."""


@dataclass(frozen=True, eq=False)
class GraderFunction(RewardFunction, Versioned):
    """The function of a grader without models."""

    grader: Grader
    models: Mapping[str, AskedModel]  # What asks the models of its parts, by the part's name; "" where it stands alone

    __name__: str = field(init=False)

    def __post_init__(self) -> None:
        vars(self)["__name__"] = (self.grader.name or self.grader.type).replace("/", "-")
        vars(self)["__doc__"] = f"A grader of type {self.grader.type}."

    @cached_property
    def __signature__(self) -> inspect.Signature:
        """The columns that a call takes: those of its templates, and the row for the rest."""
        columns = [name for name in self.grader.columns if names_column(name)]
        optional = ["prompt", "example"] if self.grader.reads_prompt else ["example"]
        return signature_of(optional, ["completion", *columns])

    @property
    def hints(self) -> Mapping[str, Any]:
        return {**dict.fromkeys(self.__signature__.parameters, object), "example": Mapping[str, Any]}

    @property
    def version(self) -> str:
        versions = {name: model.version for name, model in self.models.items()}
        return repr((self.grader.model_dump(mode="json", by_alias=True), versions))

    @property
    def on_one_host(self) -> bool:
        return any(model.on_one_host for model in self.models.values())

    def set_up(self) -> None:
        for model in self.models.values():
            model.set_up()

    def load(self) -> None:
        self.grader.load()

    def spaces(self, arguments: Mapping[str, Any]) -> Spaces:
        """Return the namespaces ``item`` and ``sample`` that the grader reads, from a call's arguments."""
        columns = {name: value for name, value in arguments.items() if name not in ("completion", "prompt", "example")}
        row = {**(arguments.get("example") or {}), **columns}
        return Spaces(item_of(row, arguments.get("prompt")), sample_of(arguments["completion"]))

    def combine(self, scores: Mapping[str, Any]) -> Score:
        """Return a multi-grader's score, with its parts' as metrics; BadReturnError where a part's is no score."""
        assert isinstance(self.grader, MultiGrader)
        numbers: dict[str, float] = {}
        costs: dict[str, float] = {}
        for name, grade in scores.items():
            try:
                score = score_of(RewardOptions(self.__name__), grade)
            except ValueError as reason:
                raise BadReturnError(f"grader {name!r} {reason}") from None
            if score.value is None:
                return Score(None, f"grader {name!r} gave no score")
            numbers[name] = score.value
            for cost in {*COST_METRICS, UNMETERED} & score.metrics.keys():
                costs[cost] = costs.get(cost, 0.0) + score.metrics[cost]
        grades = {f"grade/{name}": number for name, number in numbers.items()}
        return Score(self.grader.formula.value(numbers), None, grades | costs)

    def __call__(self, /, **arguments: object) -> Any:
        spaces = self.spaces(arguments)
        if not isinstance(self.grader, MultiGrader):
            return _grade(self.grader, spaces)
        return self.combine({name: _grade(part, spaces) for name, part in self.grader.parts.items()})


class AskingGraderFunction(GraderFunction):
    """The same where models are asked, side by side."""

    async def __call__(self, /, **arguments: object) -> Any:
        import asyncio  # slow to import, and who awaits has it loaded

        spaces = self.spaces(arguments)

        async def grade(name: str, grader: Grader) -> Any:
            if isinstance(grader, ModelGrader):
                model = self.models[name]
                completion = model.visible(arguments.get("prompt"), arguments["completion"])
                return await model.grade(grader.messages(self.spaces({**arguments, "completion": completion})))
            return await asyncio.to_thread(_grade, grader, spaces)

        if not isinstance(self.grader, MultiGrader):
            return await grade("", self.grader)
        parts = self.grader.parts
        grades = await asyncio.gather(*(grade(name, part) for name, part in parts.items()))
        return self.combine(dict(zip(parts, grades, strict=True)))


def _grade(grader: Grader, spaces: Spaces) -> Any:
    """Return the grade of a grader that asks no model and is no multi-grader."""
    assert isinstance(grader, StringCheck | TextSimilarity | PythonGrader)
    return grader.grade(spaces)


def from_grader(
    config: Mapping[str, Any] | str | os.PathLike[str],
    *,
    asking: Mapping[str, Any] | None = None,
    **options: Unpack[Options],
) -> Reward[..., Any]:
    """Return a reward of a grader that was written for OpenAI's graders, whose JSON stays as it is.

    ``item`` is the dataset's row, and ``sample`` the completion: ``output_text``, ``output_json`` where it is JSON,
    ``output_tools`` and ``choices``. A missing variable, an error of a part or a number outside the range is a failure
    with the reward's default, where the service gave 0.

    >>> from rewardkit.moving import from_grader
    >>> grader = {"type": "string_check", "name": "capital", "operation": "ilike",
    ...           "input": "{{ sample.output_text }}", "reference": "{{ item.capital }}"}
    >>> from_grader(grader)(completion="It is PARIS.", capital="Paris")
    1.0

    Args:
        config: The grader: an object, its JSON, or the path of a ``.json`` file with it.
        asking: How the models of ``score_model`` and ``label_model`` are asked, see docs/reference/judge.md, Asking:
            ``{"base_url": "http://localhost:8000/v1"}``. They are shown the answer alone, without a model's thoughts,
            unless ``"shows"`` is ``"all"``. The service's own ``sampling_params`` are kept.
        options: As for :func:`rewardkit.reward`; the name and the range of scores are the grader's.

    Raises:
        RewardDefinitionError: The grader has an unknown type, or a field of it makes no sense.
        ConfigError: No package that can ask a model is installed.
    """
    try:
        grader = grader_of(_config(config))
    except RecursionError:
        raise RewardDefinitionError(
            "grader: objects are nested without end; a multi-grader's parts are plain"
        ) from None
    parts = grader.parts if isinstance(grader, MultiGrader) else {"": grader}
    models = {name: _model(part, asking or {}) for name, part in parts.items() if isinstance(part, ModelGrader)}
    function = (AskingGraderFunction if models else GraderFunction)(grader, models)
    usual: dict[str, Any] = {"score_range": grader.range}
    if models:
        usual["timeout_s"] = max(model.timeout_s for model in models.values())
    elif any(isinstance(part, PythonGrader) for part in parts.values()):
        usual["timeout_s"] = 2 * PYTHON_TIMEOUT_S
    return Reward(function, Kind.SINGLE, make_options(function.__name__, {**usual, **options}))


def _config(config: object) -> Any:
    """Return a grader's configuration, whichever way it was given."""
    if isinstance(config, Mapping):
        return config
    if not isinstance(config, str | os.PathLike):
        raise RewardDefinitionError(f"grader: expected an object, its JSON, or a .json file's path, got {config!r}")
    text = os.fspath(config)
    if isinstance(config, os.PathLike) or text.strip().endswith(".json"):
        try:
            text = Path(text).read_text(encoding="utf-8")
        except OSError as reason:
            raise RewardDefinitionError(f"grader {text!r}: {reason.strerror or reason}") from reason
        except UnicodeDecodeError as reason:
            raise RewardDefinitionError(f"grader {text!r}: not UTF-8: {reason.reason}") from None
    try:
        return json.loads(text)
    except ValueError as reason:
        raise RewardDefinitionError(f"grader: not JSON: {reason}") from None


def _model(grader: ModelGrader, asking: Mapping[str, Any]) -> AskedModel:
    """Return what asks the model of a grader, from the first package that offers it."""
    offers = list(entry_points(group=MODELS, name=grader.type))
    if not offers:
        raise ConfigError(f"{grader.where}: no installed package asks a model for a {grader.type} grader")
    model: AskedModel = offers[0].load()(grader.model_dump(mode="json", by_alias=True), asking)
    return model
