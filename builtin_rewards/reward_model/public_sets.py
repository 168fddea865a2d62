"""Rows of public preference sets in the columns that they come with, made rows of a prompt, chosen and rejected.

Owns which columns a set has and which completion its verdict prefers: JudgeBench, PPE, HelpSteer2 and 3, LLMBar and
RMB. What a prompt or a completion may be is :mod:`~builtin_rewards.reward_model.preferences`'s.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn, TypeAlias

from rewardkit import DataError
from rewardkit.extending import shorten

FIRST, SECOND, NEITHER = 1, -1, 0
ValuesOfRow: TypeAlias = Mapping[str, Any]

_CONFLICTS = ("sampled_conflict_pairs", "conflict_pairs")
_RESPONSE = re.compile(r"response_([1-9]\d{0,3})")


class PlacedRow(NamedTuple):
    """A row, and where it stands."""

    where: str
    values: ValuesOfRow


def is_preference(row: ValuesOfRow) -> bool:
    """Return whether a row holds a preference: in the usual columns, or in those of a public set."""
    return "chosen" in row or _reader_of(row) is not None


def usual_rows(where: str, row: ValuesOfRow) -> list[PlacedRow]:
    """Return the rows with ``prompt``, ``chosen`` and ``rejected`` that a row stands for, most often one.

    A row in the columns of no public set comes back as it is. A row that prefers neither completion stands for none,
    and one of PPE's Best-of-K for its conflict pairs; the other columns go along.

    Raises:
        DataError: A verdict cannot be read; names row and column.
    """
    reader = _reader_of(row)
    return [PlacedRow(where, row)] if reader is None else reader(where, row)


def _reader_of(row: ValuesOfRow) -> Callable[[str, ValuesOfRow], list[PlacedRow]] | None:
    """Return what reads the rows of the public set that has these columns; ``None`` for any other row."""
    if "chosen" in row and "rejected" in row:
        return None
    return next((reader for columns, reader in _READERS.items() if columns <= row.keys()), None)


@dataclass(frozen=True, slots=True)
class TwoResponses:
    """The columns of a set whose rows have two responses and a verdict.

    The verdict is one of the labels, without regard to case; or without labels a whole number from -3 to 3, below 0
    where the first response is better.
    """

    prompt: str
    first: str
    second: str
    verdict: str
    labels: Mapping[str, int]  # which response each label prefers

    @property
    def columns(self) -> frozenset[str]:
        return frozenset((self.prompt, self.first, self.second, self.verdict))

    def read(self, where: str, row: ValuesOfRow) -> list[PlacedRow]:
        """Return the row with its better response as chosen; nothing for a tie, nor for two equal responses."""
        preferred = self._preferred(where, row[self.verdict])
        sides = row[self.first], row[self.second]
        if preferred == NEITHER or sides[0] == sides[1]:
            return []
        chosen, rejected = sides if preferred == FIRST else sides[::-1]
        return [PlacedRow(where, _usual(row, row[self.prompt], chosen, rejected, self.columns))]

    def _preferred(self, where: str, value: object) -> int:
        word = str(value).strip().casefold()
        if self.labels:
            if word not in self.labels:
                refuse_column(where, self.verdict, f"expected one of {', '.join(self.labels)}, got {shorten(value)}")
            return self.labels[word]
        number = re.fullmatch(r"([+-]?)[0-3](\.0)?", word)
        if number is None or isinstance(value, bool):
            refuse_column(where, self.verdict, f"expected a whole number from -3 to 3, got {shorten(value)}")
        strength = int(float(word))
        return NEITHER if strength == 0 else FIRST if strength < 0 else SECOND


_TWO_RESPONSES = (
    # ScalerLab/JudgeBench: README, "Data".
    TwoResponses("question", "response_A", "response_B", "label", {"a>b": FIRST, "b>a": SECOND, "a=b": NEITHER}),
    # lmarena-ai/PPE-Human-Preference-V1: the votes of Chatbot Arena.
    TwoResponses(
        *("prompt", "response_1", "response_2", "winner"),
        {"model_a": FIRST, "model_b": SECOND, "tie": NEITHER, "tie (bothbad)": NEITHER},
    ),
    # nvidia/HelpSteer3, preference: README, "Preference"; and HelpSteer2's preferences.
    TwoResponses("context", "response1", "response2", "overall_preference", {}),
    TwoResponses("prompt", "response_1", "response_2", "preference_strength", {}),
    # princeton-nlp/LLMBar: README, "Dataset".
    TwoResponses("input", "output_1", "output_2", "label", {"1": FIRST, "2": SECOND}),
)


def _best_of_k(where: str, row: ValuesOfRow) -> list[PlacedRow]:
    """Return a row a conflict pair of PPE's Best-of-K (lmarena/PPE): a right and a wrong response, by their indices.

    Without such pairs all right responses are chosen and all wrong ones rejected; nothing where all are alike.
    """
    names = sorted((name for name in row if _RESPONSE.fullmatch(name)), key=lambda name: int(name.rpartition("_")[2]))
    scores, responses = _listed(where, row, "scores"), [row[name] for name in names]
    if len(scores) != len(responses) or not all(isinstance(score, bool | int | float) for score in scores):
        refuse_column(
            where, "scores", f"expected a number for each of {len(responses)} responses, got {shorten(scores)}"
        )
    consumed = {"prompt", "scores", *_CONFLICTS, *names}
    column = next((name for name in _CONFLICTS if row.get(name) is not None), None)
    if column is None:
        right, wrong = (
            [text for text, score in zip(responses, scores, strict=True) if bool(score) is side]
            for side in (True, False)
        )
        return [PlacedRow(where, _usual(row, row["prompt"], right, wrong, consumed))] if right and wrong else []
    rows = []
    for number, pair in enumerate(_listed(where, row, column)):
        if not _is_conflict(pair, scores):
            refuse_column(where, column, f"[{number}]: expected a right and a wrong response, got {shorten(pair)}")
        worse, better = (responses[index] for index in sorted(pair, key=lambda index: scores[index]))
        rows.append(PlacedRow(f"{where}/{number + 1}", _usual(row, row["prompt"], better, worse, consumed)))
    return rows


def _is_conflict(pair: object, scores: Sequence[float]) -> bool:
    """Return whether a pair is two indices of responses, one scored above the other."""
    if not isinstance(pair, list | tuple) or len(pair) != 2 or not all(type(index) is int for index in pair):
        return False
    return all(0 <= index < len(scores) for index in pair) and scores[pair[0]] != scores[pair[1]]


def _rmb_pair(where: str, row: ValuesOfRow) -> list[PlacedRow]:
    """Return a row of RMB's pairwise set (Zhou-Zoey/RMB-Reward-Model-Benchmark)."""
    better, worse = _answer(where, row["chosen"], "chosen"), _answer(where, row["reject"], "reject")
    consumed = {"conversation_input", "chosen", "reject"}
    return [PlacedRow(where, _usual(row, _conversation(where, row), better, worse, consumed))]


def _rmb_best(where: str, row: ValuesOfRow) -> list[PlacedRow]:
    """Return a row of RMB's best-of-N set: the best answer, and the losers."""
    losers = [_answer(where, loser, "loser_list") for loser in _listed(where, row, "loser_list")]
    best = _answer(where, row["bon_best"], "bon_best")
    consumed = {"conversation_input", "bon_best", "loser_list"}
    return [PlacedRow(where, _usual(row, _conversation(where, row), [best], losers, consumed))]


_READERS: Mapping[frozenset[str], Callable[[str, ValuesOfRow], list[PlacedRow]]] = {
    **{form.columns: form.read for form in _TWO_RESPONSES},
    frozenset({"prompt", "response_1", "scores"}): _best_of_k,
    frozenset({"conversation_input", "chosen", "reject"}): _rmb_pair,
    frozenset({"conversation_input", "bon_best", "loser_list"}): _rmb_best,
}


def _usual(row: ValuesOfRow, prompt: object, chosen: object, rejected: object, consumed: Iterable[str]) -> ValuesOfRow:
    """Return a row in the usual columns, with those of the set that were not consumed."""
    others = {name: value for name, value in row.items() if name not in frozenset(consumed)}
    return {**others, "prompt": prompt, "chosen": chosen, "rejected": rejected}


def _conversation(where: str, row: ValuesOfRow) -> list[Mapping[str, Any]]:
    """Return RMB's conversation as messages, without the language of each."""
    messages = _listed(where, row, "conversation_input")
    if not all(isinstance(message, Mapping) for message in messages):
        refuse_column(where, "conversation_input", f"expected a list of messages, got {shorten(messages)}")
    return [{name: value for name, value in message.items() if name != "language"} for message in messages]


def _answer(where: str, value: object, column: str) -> str:
    """Return the text of an answer of RMB's, an object with the model's name beside it."""
    content = _decode(value)
    answer = content.get("answer") if isinstance(content, Mapping) else None
    if not isinstance(answer, str):
        refuse_column(where, column, f"expected an object with the text 'answer', got {shorten(value)}")
    return answer


def _listed(where: str, row: ValuesOfRow, column: str) -> list[Any]:
    """Return the list that a column has."""
    value = _decode(row[column])
    if not isinstance(value, list | tuple):
        refuse_column(where, column, f"expected a list, got {shorten(value)}")
    return list(value)


def _decode(value: Any) -> Any:
    """Return what a cell of CSV spells as JSON, an array as a list, and any other value as it is."""
    if isinstance(value, str):
        with contextlib.suppress(ValueError, RecursionError):
            return json.loads(value)
    return value.tolist() if hasattr(value, "tolist") else value


def refuse_column(where: str, column: str, problem: str) -> NoReturn:
    """Raise DataError for what a column of a row holds, or lacks."""
    raise DataError(f"{where}: column {column!r} {problem}")
