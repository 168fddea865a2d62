"""Harbor's criteria over files: what a folder must contain, and how what it earns is weighed.

They are read, not run: a file of criteria is a list of calls with values written out. What they look at is data of the
sealed folder, so nothing of the completion runs. The weighing is that of harbor-rewardkit 0.2.3.
"""

from __future__ import annotations

import ast
import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rewardkit.errors import SuiteError
from rewardkit.harbor.file_criteria import FILE_CRITERIA, Files
from rewardkit.suites.suite_verdict import SuiteResult
from sandbox import parse

Aggregation = Literal["weighted-mean", "weighted-sum", "all-pass", "any-pass", "threshold", "required-pass"]
_MODULES = ("rewardkit", "rewardkit.criteria")


class _Scoring(BaseModel):
    model_config = ConfigDict(extra="forbid")

    aggregation: str = "weighted-mean"
    threshold: float = 0.5


class _RewardTable(_Scoring):
    name: str | None = None
    weights: dict[str, float] = {}


class _RewardFile(BaseModel):
    model_config = ConfigDict(extra="forbid")

    reward: list[_RewardTable] = Field(default_factory=list)
    scoring: dict[str, _Scoring] = Field(default_factory=dict)


class FileCriterion(NamedTuple):
    """One criterion.

    Attributes:
        name: The file of criteria, and the call.
        weight: What it counts among those of its file.
        share: What share of it files earn, 0.0 to 1.0.
    """

    name: str
    weight: float
    share: Callable[[Files], float]


class CriteriaGroup(NamedTuple):
    """Criteria of a file, or groups of a folder, with how they are put together."""

    inputs: Mapping[str, CriteriaGroup | FileCriterion]
    aggregation: str = "weighted-mean"
    threshold: float = 0.5
    weights: Mapping[str, float] = {}


class CriteriaRewards(NamedTuple):
    """What criteria say: each reward by its name, and each criterion's result."""

    rewards: dict[str, float]
    results: list[SuiteResult]


Layout: TypeAlias = dict[str, CriteriaGroup]


def read_criteria(tests: Mapping[str, bytes], workdir: str) -> tuple[Layout, list[str]]:
    """Return the rewards that the files of a folder ``tests`` define, and what they need that is not here.

    Raises:
        SuiteError: A ``reward.toml`` cannot be read, or names what is not there.
    """
    needs: list[str] = []
    reader = _Reader(tests, workdir, needs)
    inputs = reader.inputs("")
    tables = reader.reward_file("").reward
    has_folders = any(f"{name}.py" not in tests for name in inputs)
    named = {table.name: _checked(table, inputs, "reward.toml") for table in tables if table.name}
    if len(named) < len(tables):
        raise SuiteError("tests/reward.toml: each [[reward]] needs a name")
    layout = _groups(inputs) if has_folders else {"reward": named.pop("reward", CriteriaGroup(inputs))}
    if not inputs and not needs:
        needs.append("criteria, of which tests/ has none")
    return {**layout, **named}, needs


def evaluate(layout: Layout, files: Files) -> CriteriaRewards:
    """Return what a folder's files earn."""
    results: dict[int, SuiteResult] = {}
    rewards = {name: _value(group, files, results) for name, group in layout.items()}
    return CriteriaRewards(rewards, list(results.values()))


class _Reader:
    """Reads the files of a folder of criteria."""

    def __init__(self, tests: Mapping[str, bytes], workdir: str, needs: list[str]) -> None:
        self._tests = tests
        self._workdir = workdir
        self._needs = needs

    def inputs(self, folder: str) -> dict[str, CriteriaGroup | FileCriterion]:
        """Return the groups of a folder: one for each file of criteria, and one for each folder below."""
        below = sorted(name[len(folder) :] for name in self._tests if name.startswith(folder))
        table = self.reward_file(folder)
        inputs: dict[str, CriteriaGroup | FileCriterion] = {}
        for name in below:
            if "/" not in name and name.endswith(".py"):
                if criteria := self._criteria(folder + name):
                    scoring = table.scoring.get(name[:-3], _Scoring())
                    inputs[name[:-3]] = CriteriaGroup(criteria, _aggregation(scoring.aggregation), scoring.threshold)
            elif "/" not in name and name.endswith(".toml") and name != "reward.toml":
                self._needs.append(f"a judge, for tests/{folder}{name} is read by one")
        for child in dict.fromkeys(name.split("/")[0] for name in below if "/" in name):
            if child.startswith((".", "__")):
                continue
            if group := self._folder(f"{folder}{child}/"):
                inputs[child] = group
        if unknown := sorted(set(table.scoring) - set(inputs)):
            raise SuiteError(f"tests/{folder}reward.toml: [scoring.{unknown[0]}]: there is no such file of criteria")
        return inputs

    def _folder(self, folder: str) -> CriteriaGroup | None:
        inputs = self.inputs(folder)
        tables = self.reward_file(folder).reward
        if len(tables) > 1 or any(table.name for table in tables):
            raise SuiteError(f"tests/{folder}reward.toml: a folder below has one [[reward]], without a name")
        if not inputs and tables:
            raise SuiteError(f"tests/{folder}reward.toml: it has a [[reward]], but its folder has no criteria")
        if not inputs:
            return None
        return _checked(tables[0], inputs, f"{folder}reward.toml") if tables else CriteriaGroup(inputs)

    def reward_file(self, folder: str) -> _RewardFile:
        """Return what a folder's ``reward.toml`` says; the defaults where it is missing."""
        name = f"{folder}reward.toml"
        try:
            return _RewardFile.model_validate(tomllib.loads(self._tests.get(name, b"").decode()))
        except ValidationError as wrong:
            first = wrong.errors()[0]
            path = ".".join(map(str, first["loc"]))
            raise SuiteError(f"tests/{name}: {path} = {first['input']!r:.80}: {first['msg']}") from None
        except ValueError as wrong:
            raise SuiteError(f"tests/{name}: no TOML: {wrong}") from None

    def _criteria(self, name: str) -> dict[str, FileCriterion]:
        criteria: dict[str, FileCriterion] = {}
        try:
            statements = parse(self._tests[name].decode()).body
        except (SyntaxError, ValueError) as wrong:
            raise SuiteError(f"tests/{name}: no Python: {wrong}") from None
        for statement in statements:
            if isinstance(statement, ast.Import | ast.ImportFrom) or _is_text(statement):
                continue
            text = ast.unparse(statement)
            criterion = self._criterion(statement, name) if isinstance(statement, ast.Expr) else None
            if criterion is None:
                self._needs.append(f"a container, for tests/{name} has more than criteria of files: {text:.80}")
            else:
                criteria[f"{len(criteria)}"] = criterion
        return criteria

    def _criterion(self, statement: ast.Expr, name: str) -> FileCriterion | None:
        match statement.value:
            case ast.Call(func=ast.Attribute(attr=kind), args=positional, keywords=named) if kind in FILE_CRITERIA:
                pass
            case _:
                return None
        try:
            values = [ast.literal_eval(value) for value in positional]
            options = {keyword.arg or "": ast.literal_eval(keyword.value) for keyword in named}
        except ValueError:
            return None
        weight = options.pop("weight", 1.0)
        label = options.pop("name", None) or f"{kind}({', '.join(map(repr, values))})"
        options.pop("isolated", None)
        share = FILE_CRITERIA[kind].bound(values, options, self._workdir)
        if share is None or not isinstance(weight, int | float) or not math.isfinite(weight):
            return None
        return FileCriterion(f"{name.removesuffix('.py')}::{label}", float(weight), share)


def _groups(inputs: Mapping[str, CriteriaGroup | FileCriterion]) -> Layout:
    return {name: group for name, group in inputs.items() if isinstance(group, CriteriaGroup)}


def _checked(table: _RewardTable, inputs: Mapping[str, CriteriaGroup | FileCriterion], path: str) -> CriteriaGroup:
    if unknown := sorted(set(table.weights) - set(inputs)):
        expected = ", ".join(map(repr, inputs)) or "none"
        raise SuiteError(f"tests/{path}: weights: {unknown[0]!r} is not among {expected}")
    return CriteriaGroup(inputs, _aggregation(table.aggregation), table.threshold, table.weights)


def _aggregation(name: str) -> str:
    plain = name.replace("_", "-")
    if plain not in Aggregation.__args__:  # type: ignore[attr-defined]
        raise SuiteError(f"tests/reward.toml: aggregation = {name!r:.60}: expected one of those of harbor-rewardkit")
    return plain


def _value(group: CriteriaGroup | FileCriterion, files: Files, results: dict[int, SuiteResult]) -> float:
    """Return what a group earns; add each criterion's result by its identity, for several rewards may have it."""
    if isinstance(group, FileCriterion):
        share = group.share(files)
        message = "" if share in (0, 1) else f"{share:.3g}"
        results[id(group)] = SuiteResult(group.name, "passed" if share >= 1 else "failed", message=message)
        return share
    values = [_value(child, files, results) for child in group.inputs.values()]
    weights = [_weight(name, child, group.weights) for name, child in group.inputs.items()]
    return _aggregated(values, weights, group.aggregation, group.threshold)


def _weight(name: str, child: CriteriaGroup | FileCriterion, weights: Mapping[str, float]) -> float:
    return weights.get(name, child.weight if isinstance(child, FileCriterion) else 1.0)


def _aggregated(values: Sequence[float], weights: Sequence[float], aggregation: str, threshold: float) -> float:
    if aggregation in ("all-pass", "required-pass"):
        return float(bool(values) and all(value >= 1 for value in values))
    if aggregation == "any-pass":
        return float(any(value >= 1 for value in values))
    total = math.fsum(value * weight for value, weight in zip(values, weights, strict=True))
    if aggregation == "weighted-sum":
        return total
    mean = total / math.fsum(weights) if math.fsum(weights) else 0.0
    return float(mean >= threshold) if aggregation == "threshold" else mean


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
