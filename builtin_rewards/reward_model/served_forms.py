"""How vLLM and SGLang are asked for the scores of a reward model, and what their answers say: values in, values out.

Sources: vLLM's ``entrypoints/pooling`` (classify, pooling, scoring) and SGLang's ``entrypoints/http_server.py`` and
``openai/serving_score.py``, with their documents on classification, pooling and reward models.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from rewardkit import InfrastructureError
from rewardkit.extending import shortened

ServerKind: TypeAlias = Literal["vllm", "sglang"]
ServedRoute: TypeAlias = Literal["classify", "pooling", "score"]
ROUTES: dict[str, tuple[ServedRoute, ...]] = {"vllm": get_args(ServedRoute), "sglang": ("classify", "score")}
"""The routes of each server, in the order in which they are tried where none is named."""


class UnreadableAnswerError(Exception):
    """An answer of status 200 from which no score can be read, or whose scores are of unknown texts."""


@dataclass(frozen=True, slots=True)
class ServedText:
    """A text as a server is sent it: its tokens, or what the server makes tokens of.

    Attributes:
        ids: Its tokens; ``None`` where the server makes them.
        messages: Its chat messages, to which the server applies its chat template.
        prompt: The text of the prompt, of a pair.
        completion: That of the completion.
    """

    ids: tuple[int, ...] | None
    messages: tuple[Mapping[str, Any], ...] = ()
    prompt: str = ""
    completion: str = ""


class ServedRequest(NamedTuple):
    """A path below the server's address, and the body that is posted there."""

    path: str
    body: dict[str, Any]


def takes_many(route: ServedRoute, server: ServerKind, texts: Sequence[ServedText], *, plain: bool) -> bool:
    """Return whether one request can hold several texts: messages, and SGLang's queries, go one by one."""
    if route == "score":
        return server == "vllm"
    return plain or all(text.ids is not None for text in texts)


def request_of(
    server: ServerKind,
    route: ServedRoute,
    model: str | None,
    texts: Sequence[ServedText],
    *,
    plain: bool = False,
    label_token_ids: Sequence[int] = (),
) -> ServedRequest:
    """Return the request for the scores of texts; ``plain`` sends prompt and completion pasted, where no ids are."""
    named = {} if model is None else {"model": model}
    if route == "score":
        return _score_request(server, named, texts, label_token_ids)
    if server == "sglang":
        if texts[0].ids is not None:
            return ServedRequest("classify", {**named, "input_ids": [[*(text.ids or ())] for text in texts]})
        return ServedRequest("classify", {**named, "text": [text.prompt + text.completion for text in texts]})
    body: dict[str, Any] = {**named, "use_activation": False}  # the logit: by default one label's goes by a sigmoid
    if route == "pooling":
        body["encoding_format"] = "float"
    if texts[0].ids is not None:
        body["input"] = [[*(text.ids or ())] for text in texts]
    elif plain:
        body["input"] = [text.prompt + text.completion for text in texts]
    else:
        body["messages"] = [dict(message) for message in texts[0].messages]
    return ServedRequest(route, body)


def _score_request(
    server: ServerKind, named: dict[str, str], texts: Sequence[ServedText], label_token_ids: Sequence[int]
) -> ServedRequest:
    """Return the request to a route of pairs: vLLM's of cross-encoders, or SGLang's of a token's probability."""
    if server == "sglang":
        labels = {"label_token_ids": [*label_token_ids], "apply_softmax": True} if label_token_ids else {}
        return ServedRequest("v1/score", {**named, "query": texts[0].prompt, "items": [texts[0].completion], **labels})
    sides = {"text_1": [text.prompt for text in texts], "text_2": [text.completion for text in texts]}
    return ServedRequest("score", {**named, **sides, "use_activation": False})


def scores_of(content: Any, count: int) -> list[float | InfrastructureError]:
    """Return the scores in an answer, one a text in the order asked; a score that is no finite number is an error.

    Raises:
        UnreadableAnswerError: It is no answer of any route, or has another count or another order of texts.
    """
    entries = _entries_of(content)
    if len(entries) != count:
        raise UnreadableAnswerError(f"answered {len(entries)} scores for {count} {'text' if count == 1 else 'texts'}")
    for position, entry in enumerate(entries):
        index = entry.get("index", position) if isinstance(entry, Mapping) else position
        if index != position:
            raise UnreadableAnswerError(f"answered in another order: score {position} is that of text {index!r}")
    return [_score_of(entry) for entry in entries]


def _entries_of(content: Any) -> list[Any]:
    """Return an answer's entries, one a text."""
    if isinstance(content, str):
        raise UnreadableAnswerError(f"answered no JSON: {shortened(' '.join(content.split()), 80)!r}")
    if isinstance(content, Mapping):
        if "embedding" in content:
            return [content]  # SGLang's of one text
        content = content.get("data", content.get("scores"))
    elif isinstance(content, list) and not all(isinstance(entry, Mapping) for entry in content):
        content = None  # numbers without a name may be of anything
    if not isinstance(content, list):
        raise UnreadableAnswerError("answered no scores: expected 'data', 'scores' or a list with 'embedding'")
    return content


def _score_of(entry: Any) -> float | InfrastructureError:
    """Return the one number of an entry; of numbers for each token the last token's."""
    value = entry
    if isinstance(entry, Mapping):
        value = next((entry[name] for name in ("score", "probs", "data", "embedding") if name in entry), None)
    if isinstance(value, list) and value and isinstance(value[-1], list):
        value = value[-1]
    if isinstance(value, list):
        if len(value) != 1:
            return InfrastructureError(f"answered {len(value)} numbers for a text; a reward model's head has one label")
        value = value[0]
    try:
        score = math.nan if isinstance(value, bool) or not isinstance(value, int | float) else float(value)
    except OverflowError:  # JSON bounds no number, and a whole one may have hundreds of digits
        score = math.inf
    if not math.isfinite(score):
        return InfrastructureError(f"answered a score that is no finite number: {shortened(repr(value), 60)}")
    return score
