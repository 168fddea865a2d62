"""What a server says of its rewards, and the reward that a client makes of it: one encoder and one decoder."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rewardkit.declare.bounds import finite
from rewardkit.declare.compose import Composable
from rewardkit.declare.decorator import Reward
from rewardkit.declare.options import RewardOptions
from rewardkit.declare.spec import ColumnMisfit, Kind
from rewardkit.errors import RewardDefinitionError
from rewardkit.forms import Form
from rewardkit.own_columns import ENVIRONMENT_COLUMN

PROTOCOL = 1
"""Raised with each change of what servers and clients send each other; those of different numbers refuse each other."""
_MESSAGES = list[dict[str, Any]]
_ANNOTATIONS: Mapping[str, Any] = {Form.TEXT: str, Form.MESSAGES: _MESSAGES, Form.AS_IS: object}
_EACH: Mapping[str, Any] = {Form.TEXT: list[str], Form.MESSAGES: list[_MESSAGES], Form.AS_IS: list[object]}
_FORMS = (Form.MESSAGES, Form.TEXT, Form.AS_IS)  # of a composition whose parts differ, the first that any part takes


def signature_of(reward: Composable) -> dict[str, Any]:
    """Return a reward's kind, options and columns for a client, as JSON data; a composition has those of its parts."""
    specs = [leaf.spec for leaf in reward.leaves]
    parameters = [parameter for spec in specs for parameter in spec.parameters if not parameter.supplied]
    options = asdict(specs[0].options)
    if len(specs) > 1 or reward.leaves != (reward,):
        timeout_s = min(spec.options.timeout_s for spec in specs)
        options = {"timeout_s": timeout_s, "default": None, "score_range": finite(reward.score_range)}
    hints = {name for spec in specs for name in spec.hints if name not in spec.bare_columns}
    parameters.sort(key=lambda parameter: parameter.required)  # a column that one part needs is needed
    columns = {parameter.name: parameter.required for parameter in parameters if parameter.taken is None}
    forms = {(parameter.name, parameter.taken.form) for parameter in parameters if parameter.taken is not None}
    if reward.scores_groups:  # of which parts may score single completions
        forms = {("completions" if name == "completion" else name, form) for name, form in forms}
    return {
        "kind": Kind.GROUP if reward.scores_groups else Kind.SINGLE,
        "options": {**options, "name": reward.name.replace("/", ":")},  # a composition's name may have what none can
        "is_async": any(spec.is_async for spec in specs),
        "columns": {name: {"required": columns[name], "annotated": name in hints} for name in columns},
        "texts": {name: next(form for form in _FORMS if (name, form) in forms) for name, _ in forms},
        "others": any(spec.rest is not None for spec in specs),
        "credit": reward.credit,
        "parts_without_range": reward.parts_without_range,
    }


class RemoteReward(Reward[..., float]):
    """A reward that a server scores. Its parameters and options are the server's; its function cannot be called.

    Attributes:
        title: Its name on the server.
    """

    def __init__(
        self,
        title: str,
        version: str,
        signature: Mapping[str, Any],
        ask_misfits: Callable[[Sequence[Mapping[str, Any]]], list[ColumnMisfit]],
    ) -> None:
        kind = Kind(signature["kind"])
        hints: dict[str, Any] = {name: Any for name, column in signature["columns"].items() if column["annotated"]}
        if kind is Kind.GROUP and ENVIRONMENT_COLUMN in hints:
            hints[ENVIRONMENT_COLUMN] = list[Any]  # one a completion, not one a prompt
        for name, form in signature["texts"].items():
            hints[name] = (_EACH if name == "completions" else _ANNOTATIONS)[form]
        self.title, self._ask_misfits, self._credit = title, ask_misfits, signature.get("credit")
        self._server: str | None = signature.get("server")
        self._without_range = tuple(signature.get("parts_without_range", [title]))
        super().__init__(_stub(title, signature), kind, RewardOptions(**signature["options"]), hints, version)

    @property
    def name(self) -> str:
        return self.title

    @property
    def server(self) -> str | None:
        return self._server

    @property
    def credit(self) -> str | None:
        return self._credit

    @property
    def parts_without_range(self) -> tuple[str, ...]:
        return self._without_range

    def misfits(self, examples: Sequence[Mapping[str, Any]]) -> list[ColumnMisfit]:
        return self._ask_misfits(examples)

    def set_up(self) -> None:
        """Refuse a runtime here, whose workers have no function to run."""
        raise RewardDefinitionError(f"reward {self.name!r} is scored by a server; score it with its RemoteRuntime")


def _stub(name: str, signature: Mapping[str, Any]) -> Callable[..., float]:
    """Return a function with a served reward's parameters, which raises and has no source that could be read."""

    def refuse(**arguments: object) -> float:
        raise RewardDefinitionError(f"reward {name!r} is scored by a server, and cannot be called here")

    async def refuse_async(**arguments: object) -> float:
        return refuse(**arguments)

    function: Callable[..., Any] = refuse_async if signature["is_async"] else refuse
    optional = {column for column, facts in signature["columns"].items() if not facts["required"]}
    make, keyword, empty = inspect.Parameter, inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.empty
    names = [*signature["texts"], *signature["columns"]]
    parameters = [make(column, keyword, default=None if column in optional else empty) for column in names]
    if signature["others"]:
        parameters.append(make("others", inspect.Parameter.VAR_KEYWORD))
    function.__name__ = function.__qualname__ = name
    function.__code__ = function.__code__.replace(co_filename="<reward server>")  # else this file would be its source
    function.__dict__["__signature__"] = inspect.Signature(parameters)
    return function
