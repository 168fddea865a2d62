"""How each trainer asks for rewards and wants them told: request bodies to rollouts, and scores to replies.

Every function here is pure. The shapes are those of OpenRLHF 0.11, slime, NeMo Gym, eval-protocol and LLaMA-Factory;
what a reply says of a rollout without a score is :mod:`~rewardkit.serving.contract`'s table.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev
from typing import Any, TypeAlias

from rewardkit.blocks.block import Block, BlockKind, to_json
from rewardkit.blocks.calls import read_block
from rewardkit.blocks.content import answer_text
from rewardkit.messages import message_text
from rewardkit.serving.bodies import (
    RefusedError,
    a_list,
    a_number,
    a_rollout,
    a_text,
    an_object,
    outcome_fields,
    preview,
    samples_of,
    unknown_fields,
)
from rewardkit.serving.contract import RowFate, ToldRow
from rewardkit.serving.queries import completion_in, follows_prompt
from rewardkit.types import Rollout

Query: TypeAlias = Mapping[str, str]
_MAX_MEASURED = 1e150  # A number beyond has a square that no float holds, and so no deviation


@dataclass(frozen=True, slots=True)
class ScoreRequest:
    """What a request asks for; ``samples`` tell equal rows apart, ``None`` where the trainer sends nothing."""

    rollouts: Sequence[Rollout]  # The rows
    gather: bool = True  # Whether rows wait for the rest of their group, where the server has a group size
    samples: Sequence[str | None] | None = None
    step: int | None = None  # Optimizer steps done
    epoch: float | None = None  # Passes over the data done
    doubt: str = ""  # What may be wrong with it, for the server's log


ReadBody: TypeAlias = Callable[[dict[str, Any], Query, int], ScoreRequest]
WriteReply: TypeAlias = Callable[[dict[str, Any], Query, Sequence[ToldRow]], Any]


def read_native(body: dict[str, Any], query: Query, max_rows: int) -> ScoreRequest:
    """Return the request of ``/v1/score``; unless ``gather`` says otherwise, a single row waits for its group."""
    unknown = body.keys() - {"rollouts", "step", "epoch", "gather"}
    if unknown:
        raise RefusedError(422, f"{unknown_fields(unknown)}; there are rollouts, step, epoch and gather")
    rows = a_list(body, "rollouts", max_rows)
    gather = body.get("gather", len(rows) == 1)
    if type(gather) is not bool:
        raise RefusedError(422, f"gather: expected true or false, got {preview(gather)}")
    rollouts = [a_rollout(row, f"rollouts[{number}]") for number, row in enumerate(rows)]
    step, epoch = a_number(body, "step", whole=True), a_number(body, "epoch", whole=False)
    return ScoreRequest(rollouts, gather, samples_of(rows), step, epoch)


def native_row(row: ToldRow) -> dict[str, Any]:
    """Return one row of ``/v1/score``: its total and the outcome of each reward."""
    outcomes = {name: outcome_fields(outcome) for name, outcome in row.outcomes.items()}
    return {"total": row.total, "fate": row.fate, "outcomes": outcomes}


def reply_native(body: dict[str, Any], query: Query, rows: Sequence[ToldRow]) -> dict[str, Any]:
    """Return the reply of ``/v1/score``: the totals, and each row with its outcomes; nulls are unknown or skipped."""
    return {"totals": [row.total for row in rows], "rows": [native_row(row) for row in rows]}


def read_openrlhf(body: dict[str, Any], query: Query, max_rows: int) -> ScoreRequest:
    """Return OpenRLHF's request, ``{"query": [...], "prompts": [...], "labels": [...]}``; its lists may be empty.

    A query is the prompt with the completion after it, see :func:`completion_in`. The label is the column ``answer``,
    and ``label`` too.
    """
    queries, prompts, labels = (a_list(body, name, max_rows) for name in ("query", "prompts", "labels"))
    if not len(queries) == len(prompts) == len(labels):
        raise RefusedError(422, f"{len(queries)} query, {len(prompts)} prompts, {len(labels)} labels: expected as many")
    rollouts, doubt = [], ""
    for number, (query_text, prompt, label) in enumerate(zip(queries, prompts, labels, strict=True)):
        for name, text in (("query", query_text), ("prompts", prompt)):
            if type(text) is not str:
                raise RefusedError(422, f"{name}[{number}]: expected a string, got {preview(text)}")
        if not doubt and not follows_prompt(query_text, prompt):
            doubt = f"query[{number}] does not begin with prompts[{number}], so all of it is scored as the completion"
        rollouts.append(Rollout(prompt, completion_in(query_text, prompt), {"answer": label, "label": label}))
    return ScoreRequest(rollouts, doubt=doubt)


def reply_openrlhf(body: dict[str, Any], query: Query, rows: Sequence[ToldRow]) -> dict[str, Any]:
    """Return the reply that OpenRLHF reads: rewards, scores from 0 to 1 for its filter, and numbers for its logs."""
    logs: defaultdict[str, list[float]] = defaultdict(list)
    for row in rows:
        for name, value in row.logs.items():
            logs[name].append(value)
    rewards = [row.number for row in rows]
    return {"rewards": rewards, "scores": [min(1.0, max(0.0, reward)) for reward in rewards], "extra_logs": dict(logs)}


def read_slime(body: dict[str, Any], query: Query, max_rows: int) -> ScoreRequest:
    """Return slime's request, ``{"prompt", "response", "label"}``; the label is column ``answer``, and ``label``."""
    if query.get("unknown", "zero") not in ("zero", "nan"):
        raise RefusedError(422, f"unknown={query['unknown'][:40]!r}: expected zero or nan")
    label = body.get("label")
    completion = a_text(body.get("response"), "response")
    return ScoreRequest([Rollout(a_text(body.get("prompt"), "prompt"), completion, {"answer": label, "label": label})])


class Raw(bytes):
    """A reply that is JSON already."""


def reply_slime(body: dict[str, Any], query: Query, rows: Sequence[ToldRow]) -> Any:
    """Return the reply that is slime's reward: a number, or with ``?reward_key=`` an object that has it."""
    (row,) = rows
    if "reward_key" in query:
        return {**row.logs, query["reward_key"]: row.number}
    if row.total is None and query.get("unknown") == "nan":
        return Raw(b"NaN")  # as Python's reader takes it, and slime's is
    return row.number


def read_gym(body: dict[str, Any], query: Query, max_rows: int) -> ScoreRequest:
    """Return NeMo Gym's request of ``/verify``; the row's fields other than Gym's own (``_ng_...``) are the columns."""
    params = an_object(body.get("responses_create_params"), "responses_create_params")
    response = an_object(body.get("response"), "response")
    example = {
        name: value
        for name, value in body.items()
        if name not in ("responses_create_params", "response") and not name.startswith("_ng_")
    }
    turns = params.get("input")
    prompt = turns if type(turns) is str else _messages(turns, "responses_create_params.input", "user")
    sample = body.get("_ng_rollout_id")
    completion = _messages(response.get("output"), "response.output", "assistant")
    return ScoreRequest([Rollout(prompt, completion, example)], samples=[sample if type(sample) is str else None])


def _messages(items: object, where: str, role: str) -> str | list[dict[str, Any]]:
    """Return the items of OpenAI's Responses format as chat messages."""
    if type(items) is not list:
        raise RefusedError(422, f"{where}: expected a list of items, got {preview(items)}")
    messages: list[dict[str, Any]] = []
    for number, item in enumerate(items):
        kind = an_object(item, f"{where}[{number}]").get("type", "message")
        if kind == "message":
            content = message_text({"role": str(item.get("role", role)), "content": _content_of(item.get("content"))})
            messages.append({"role": str(item.get("role", role)), "content": content})
            continue
        for part in read_block(item):
            if part.kind is BlockKind.CALL:
                messages.append({"role": "assistant", "content": "", "tool_calls": [_call_of(part)]})
            elif part.kind is BlockKind.ANSWER:
                messages.append({"role": "tool", "tool_call_id": part.id or "", "content": answer_text(part.value)})
    return a_text(messages, where) if messages else ""


def _content_of(content: object) -> str | list[Any] | None:
    return content if type(content) is list or content is None else str(content)


def _call_of(call: Block) -> dict[str, Any]:
    """Return a call of the Responses format as OpenAI's chats write it; one in a form that is not read as it is."""
    if not call.is_read:
        return dict(an_object(call.source, "item"))
    arguments = "{}" if call.value is None else to_json(call.value)
    return {
        "id": call.id or "", "type": "function", "function": {"name": call.name or "", "arguments": arguments},
    }  # fmt: skip


def reply_gym(body: dict[str, Any], query: Query, rows: Sequence[ToldRow]) -> dict[str, Any]:
    """Return the reply of ``/verify``: the request with the reward, each reward's score, and the mask.

    A reward with the name of one of the row's own fields has its score as ``reward/<name>``.
    """
    (row,) = rows
    is_masked = row.total is None
    scores = {f"reward/{name}" if name in body else name: score for name, score in row.scores.items()}
    reply: dict[str, Any] = {**scores, **body, "reward": row.number, "mask_sample": is_masked}
    if is_masked:
        config = body.get("instance_config")
        reply["instance_config"] = {**(config if type(config) is dict else {}), "mask_sample": True}
    if row.failed is not None:
        cause = row.outcomes[row.failed].cause
        reply |= {"failure_kind": f"rewardkit:{cause}", "failure_reason": row.why}
    if row.fate is RowFate.UNKNOWN:
        reply["_ng_failure_class"] = "verifier_failed"
    return reply


def gym_metrics(body: dict[str, Any]) -> dict[str, Any]:
    """Return NeMo Gym's means and deviations by task and over all, without masked rows and numbers beyond 1e150."""
    responses = a_list(body, "verify_responses", 10_000_000)
    rows = [an_object(row, f"verify_responses[{number}]") for number, row in enumerate(responses)]
    measured = [row for row in rows if row.get("mask_sample") is not True]
    tasks: defaultdict[int, list[dict[str, Any]]] = defaultdict(list)
    for row in measured:
        task = row.get("_ng_task_index", 0)
        if type(task) is not int:
            raise RefusedError(422, f"_ng_task_index: expected a whole number, got {preview(task)}")
        tasks[task].append(row)
    groups = [{"_ng_task_index": task, **_statistics(task_rows)} for task, task_rows in tasks.items()]
    overall = {**_statistics(measured), "masked": len(rows) - len(measured)}
    key = {"mean/reward": overall["mean/reward"]} if "mean/reward" in overall else {}
    return {"group_level_metrics": groups, "agent_metrics": overall, "key_metrics": key}


def _statistics(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the mean and the deviation of each field that has numbers."""
    values: defaultdict[str, list[float]] = defaultdict(list)
    for row in rows:
        for name, value in row.items():
            if type(value) in (int, float) and abs(value) < _MAX_MEASURED and not name.startswith("_ng_"):
                values[name].append(value)
    means = {f"mean/{name}": fmean(column) for name, column in values.items()}
    return {**means, **{f"std/{name}": pstdev(column) for name, column in values.items()}}


def read_evaluate(body: dict[str, Any], query: Query, max_rows: int) -> ScoreRequest:
    """Return eval-protocol's request, ``{"messages", "ground_truth", "kwargs"}``.

    The completion begins with the assistant's first turn; what comes before it is the prompt. The truth is the
    column ``answer``, and ``ground_truth``; the keywords are columns too.
    """
    messages = a_text(body.get("messages"), "messages")
    if isinstance(messages, str):
        raise RefusedError(422, f"messages: expected a list of messages, got {preview(messages)}")
    first = next((index for index, turn in enumerate(messages) if turn["role"] == "assistant"), len(messages))
    if first == len(messages):
        raise RefusedError(422, "messages: no message of the assistant's is in them")
    keywords = an_object(body.get("kwargs") or {}, "kwargs")
    truth = body.get("ground_truth")
    example = {"answer": truth, "ground_truth": truth, **keywords}
    return ScoreRequest([Rollout(messages[:first] or "", messages[first:], example)])


def reply_evaluate(body: dict[str, Any], query: Query, rows: Sequence[ToldRow]) -> dict[str, Any]:
    """Return eval-protocol's result; its metrics take scores from 0 to 1 only, so the exact one is in ``data``."""
    (row,) = rows
    metrics = {}
    for name, outcome in row.outcomes.items():
        score = row.scores[name]
        metrics[name] = {
            "score": min(1.0, max(0.0, score)),
            "is_score_valid": outcome.cause is None and outcome.score is not None,
            "reason": outcome.error or outcome.reason or outcome.status.value,
            "data": {"score": outcome.score, "status": outcome.status.value},
        }
    reasons = [f"{name}: {outcome.reason}" for name, outcome in row.outcomes.items() if outcome.reason]
    reason = row.why or "; ".join(reasons) or row.fate.value
    reply = {"score": row.number, "is_score_valid": row.total is not None, "reason": reason, "metrics": metrics}
    return {**reply, "error": row.why if row.fate is RowFate.UNKNOWN else None}


def read_llama_factory(body: dict[str, Any], query: Query, max_rows: int) -> ScoreRequest:
    """Return LLaMA-Factory's request, ``{"model", "messages": [text]}``; a text is a prompt with its completion."""
    texts = a_list(body, "messages", max_rows)
    for number, text in enumerate(texts):
        if type(text) is not str:
            raise RefusedError(422, f"messages[{number}]: expected a string, got {preview(text)}")
    return ScoreRequest([Rollout("", text) for text in texts])


def reply_llama_factory(body: dict[str, Any], query: Query, rows: Sequence[ToldRow]) -> dict[str, Any]:
    return {"scores": [row.number for row in rows]}


TRANSLATIONS: Mapping[str, tuple[ReadBody, WriteReply]] = {
    "/v1/score": (read_native, reply_native),
    "/get_reward": (read_openrlhf, reply_openrlhf),
    "/slime": (read_slime, reply_slime),
    "/verify": (read_gym, reply_gym),
    "/evaluate": (read_evaluate, reply_evaluate),
    "/score": (read_llama_factory, reply_llama_factory),
}
"""How each route that scores reads a body and tells the scores."""
