"""Models behind OpenAI's graders ``score_model`` and ``label_model``, for :func:`rewardkit.moving.from_grader`."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from builtin_rewards.endpoint.errors import JudgeReplyError, JudgeSetupError
from builtin_rewards.judge.llm import REASON_CHARS
from builtin_rewards.judge.model import JudgeModel, Question, charge, cost_metrics, open_bill
from builtin_rewards.judge.prompted import MARGIN_S, question_limit
from builtin_rewards.judge.settings import AskingSettings, check
from builtin_rewards.judge.verdict import read_reply
from builtin_rewards.reading.thoughts import leaves_thought_open, messages_without_thoughts, without_thoughts
from rewardkit import Score
from rewardkit.extending import turns

_SAMPLING = {  # the service's sampling parameters that are settings of a judge; the others are options of its requests
    "temperature": "temperature",
    **dict.fromkeys(("max_completions_tokens", "max_completion_tokens", "max_tokens"), "max_tokens"),
}
_ROUNDS = 2  # a call waits for those before it for as long as for its own reply


class ModelGrade:
    """What asks the model of one grader, by its JSON, :class:`AskingSettings` and ``shows``.

    JudgeSetupError names a wrong setting.
    """

    def __init__(self, config: Mapping[str, Any], asking: Mapping[str, Any]) -> None:
        asking = dict(asking)
        self._shows = asking.pop("shows", "answer")
        check({"shows": self._shows})
        unknown = [name for name in asking if name not in AskingSettings.__annotations__]
        if unknown:
            settings = ", ".join(AskingSettings.__annotations__)
            raise JudgeSetupError(f"asking[{unknown[0]!r}]: no setting of a model that is asked; expected {settings}")
        sampling = {name: value for name, value in (config.get("sampling_params") or {}).items() if value is not None}
        own = {_SAMPLING[name]: sampling.pop(name) for name in list(sampling) if name in _SAMPLING}
        arguments: dict[str, Any] = {"temperature": None, **asking, **own}
        arguments["options"] = {**arguments.get("options", {}), **sampling}
        self._name = config.get("name") or config["type"]
        self._model = JudgeModel(config["model"], **arguments)
        self._passing = config.get("passing_labels")
        self._lowest = None if self._passing is not None else config["range"][0]
        self._reply = _reply_model(config)

    @property
    def version(self) -> str:
        """The model and what it is asked for; the grader's own text is not in it."""
        return repr((self._model.identity, self._reply.model_json_schema(), self._shows))

    @property
    def timeout_s(self) -> float:
        """Seconds that a grade may take, with the wait for those before it."""
        return _ROUNDS * self._model.deadline_s + MARGIN_S

    @property
    def on_one_host(self) -> bool:
        """Whether a budget counts on this host alone."""
        return self._model.budget is not None and self._model.budget.is_of_one_host

    def set_up(self) -> None:
        """See that the server has the model; JudgeSetupError if not."""
        self._model.set_up()

    def visible(self, prompt: Any, completion: Any) -> Any:
        """Return what the model is shown of a completion: the answer alone, unless ``shows`` is ``"all"``."""
        if self._shows == "all":
            return completion
        inside = leaves_thought_open(prompt)
        if isinstance(completion, str):
            return without_thoughts({"content": completion}, inside=inside).message["content"]
        return messages_without_thoughts(completion, inside=inside).messages

    async def grade(self, messages: list[dict[str, Any]]) -> Score:
        """Return what the model says of a conversation; JudgeError if it says nothing that can be read."""
        question = Question(tuple(messages), self._reply.model_json_schema(), "grader 1")
        with open_bill() as bill:
            async with turns(self._model.server_key, question_limit(self._model)):
                reader = functools.partial(read_reply, model=self._reply, is_harmless=self._is_worst)
                read = question.own_reply(reader)
                answer = await self._model.attempt(self._name, question, read)
            charge(answer)
        if isinstance(answer.value, JudgeReplyError):
            raise answer.value
        fields = answer.value.model_dump()
        result, reasoning = fields["result"], fields["reasoning"][:REASON_CHARS]
        if self._passing is None:
            return Score(float(result), reasoning, cost_metrics(bill))
        return Score(float(result in self._passing), f"{result}: {reasoning}", cost_metrics(bill))

    def _is_worst(self, value: BaseModel) -> bool:
        """Return whether it is the worst grade, which no completion can keep from being read by quoting it."""
        result = value.model_dump()["result"]
        return bool(result == self._lowest) if self._passing is None else result not in self._passing


class _Graded(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    reasoning: str


def _reply_model(config: Mapping[str, Any]) -> type[BaseModel]:
    """Return the form of a reply: one of the grader's labels, or a number of its range."""
    if config.get("passing_labels") is not None:
        label: Any = Literal[tuple(config["labels"])]
        return create_model("LabelReply", __base__=_Graded, result=(label, ...))
    low, high = config["range"]
    number: Any = Annotated[float, Field(ge=low, le=high)]
    return create_model("ScoreReply", __base__=_Graded, result=(number, ...))
