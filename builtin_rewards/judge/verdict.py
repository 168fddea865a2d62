"""The verdict in replies: grades and reasons, or the error that tells why not; there is no default grade."""

from __future__ import annotations

import contextlib
import functools
import html
import itertools
import json
import math
import re
import statistics
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, create_model

from builtin_rewards.endpoint.errors import Fault, JudgeError, JudgeReplyError, JudgeUnavailableError
from builtin_rewards.endpoint.messages import Reply, Token
from builtin_rewards.judge.formats import Format, object_start, object_text
from builtin_rewards.judge.rubric import Rubric, Scale
from builtin_rewards.reading.broken_json import read_broken_json
from builtin_rewards.reading.json_values import read_json

M = TypeVar("M", bound=BaseModel)

MINIMUM_MASS = 0.5  # the least mass with which a weighted grade replaces the sampled one: more than half is known
# A key with its object or its digit. No JSON string holds such a text, because its quotation marks are escaped.
_KEY = re.compile(r'"([A-Za-z0-9_-]{1,64})"\s*:\s*(?:\{|([0-9])(?=\s*[,}]))')
_GRADE = re.compile(r"\s*([0-9])(?![^\s,}])")
_ESCAPE = re.compile(r"\\+(?:u([0-9a-fA-F]{4})|[nrtbf])")
_WHOLE_NUMBER = re.compile(r"(\d)\.0+(?!\d)")
_WORD = re.compile(r"-?\d+(?:\.\d+)*|[^\W_]+")
QUOTED = "is quoted from what the judge was shown"  # by which an audit knows such a reply
_PREVIEW_CHARS = 200
_MAX_FAULTS = 3
_CACHED_MODELS = 64
# Reasons for a reply's end before it was whole, beside OpenAI's ``length``: Mistral's, and of failing servers.
_BROKEN_OFF = frozenset({"model_length", "max_tokens", "error", "abort"})


@dataclass(frozen=True, slots=True)
class Verdict:
    grades: Mapping[str, float | None]  # By criterion, on the rubric's scale; `None` if it does not apply
    reasons: Mapping[str, str]  # By criterion
    score: float | None  # What the grades come to, in [0, 1]; `None` if no criterion applies
    spread: float = 0.0  # Standard deviation of the scores of the verdicts that it combines, over their number
    samples: int = field(default=1, kw_only=True)  # How many verdicts it combines


def _replace_surrogates(value: object) -> object:
    """Return text without lone surrogates, which UTF-8 cannot hold, so that a cut emoji spoils no verdict."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


class _Bare(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class _Reasoned(_Bare):
    reason: Annotated[str, BeforeValidator(_replace_surrogates)]


class Preference(_Reasoned):
    """Which of two answers a judge prefers, and why."""

    winner: Literal["A", "B", "tie"] = Field(alias="verdict")


@functools.lru_cache(_CACHED_MODELS)
def _verdict_model(names: tuple[str, ...], scale: Scale, not_applicable: bool, reasoned: bool) -> type[BaseModel]:
    """Return the model of a verdict; criteria are aliases, because their names may not be Python's."""
    integral = BeforeValidator(lambda value: int(value) if isinstance(value, float) and value.is_integer() else value)
    score: Any = Annotated[int, integral, Field(ge=scale.low, le=scale.high)]
    base = _Reasoned if reasoned else _Bare
    grade = create_model("Grade", __base__=base, score=(score | None if not_applicable else score, ...))
    fields: dict[str, Any] = {f"criterion_{at}": (grade, Field(alias=name)) for at, name in enumerate(names)}
    return create_model("Grades", __config__=_Bare.model_config, **fields)


def read_verdict(
    reply: Reply, rubric: Rubric, format: Format = Format.JSON_SCHEMA, negative: Set[str] = frozenset()
) -> Verdict:
    """Return a reply's verdict, an object of :meth:`Rubric.json_schema`; see :func:`formats.object_text`.

    Grades are read strictly: ``4.0`` is the whole number 4, as in JSON Schema; ``"4"``, ``true`` and ``4.5`` are not,
    and of two grades neither counts. Reasons are read leniently, see :func:`builtin_rewards.reading.broken_json`.
    A verdict that is quoted from the question does not count, unless it gives the worst grades only, so that no
    completion can keep its own bad grade from being read; of the ``negative`` criteria the highest grade is the worst.
    JudgeReplyError has the first fault that applies, ``TRUNCATED`` even where the reply is whole by chance.
    """
    model = _verdict_model(rubric.names, rubric.scale, rubric.not_applicable, rubric.reasoned)
    worst = [rubric.scale.high if name in negative else rubric.scale.low for name in rubric.names]

    def is_worst(value: BaseModel) -> bool:
        return worst == [part["score"] for part in value.model_dump().values()]

    values = read_reply(reply, format, model, is_worst).model_dump().values()
    parts = dict(zip(rubric.names, values, strict=True))
    grades = {name: part["score"] for name, part in parts.items()}
    return Verdict(grades, {name: part.get("reason", "") for name, part in parts.items()}, rubric.normalised(grades))


def read_preference(reply: Reply, format: Format = Format.JSON_SCHEMA) -> Preference:
    """Return which of two answers a reply prefers, read as strictly as :func:`read_verdict` reads."""
    return read_reply(reply, format, Preference)


def combine(verdicts: Sequence[Verdict | JudgeError], rubric: Rubric) -> Verdict:
    """Return verdicts' mean and spread, with the reasons of the nearest; raise where half or more are missing."""
    usable = [verdict for verdict in verdicts if isinstance(verdict, Verdict)]
    if 2 * len(usable) <= len(verdicts):
        raise _missing_verdicts_error([error for error in verdicts if isinstance(error, JudgeError)], len(verdicts))
    grades = {name: _mean([verdict.grades[name] for verdict in usable]) for name in rubric.names}
    score = rubric.normalised(grades)
    scores = [verdict.score for verdict in usable if verdict.score is not None]
    nearest = min(usable, key=lambda verdict: abs((verdict.score or 0.0) - (score or 0.0)))
    return Verdict(grades, nearest.reasons, score, statistics.pstdev(scores) if scores else 0.0, samples=len(usable))


def join_verdicts(parts: Sequence[Verdict], rubric: Rubric) -> Verdict:
    """Return the verdict that verdicts on one criterion each make together."""
    grades = {name: grade for part in parts for name, grade in part.grades.items()}
    reasons = {name: reason for part in parts for name, reason in part.reasons.items()}
    return Verdict(grades, reasons, rubric.normalised(grades))


def _mean(grades: Sequence[float | None]) -> float | None:
    """Return the mean of the grades; ``None`` if more than half of them are."""
    numbers = [grade for grade in grades if grade is not None]
    return statistics.fmean(numbers) if 2 * len(numbers) >= len(grades) else None


def _missing_verdicts_error(errors: Sequence[JudgeError], samples: int) -> JudgeError:
    """Return the error for too few verdicts; no outage if half of the samples or more are unreadable."""
    outages = [error for error in errors if isinstance(error, JudgeUnavailableError)]
    unreadable = [error for error in errors if error not in outages]
    is_unreadable = 2 * len(unreadable) >= samples
    kind, causes = (JudgeReplyError, unreadable) if is_unreadable else (JudgeUnavailableError, outages)
    faults = Counter(error.fault for error in errors).most_common()
    counts = ", ".join(f"{count} {fault or 'unknown'}" for fault, count in faults)
    summary = f"{samples - len(errors)} of {samples} samples gave a verdict, and more than half must: {counts}"
    ((fault, _),) = Counter(error.fault for error in causes).most_common(1)
    result = kind(f"{summary}; the first: {causes[0]}", fault)
    result.requests = sum(error.requests for error in errors)
    return result


def read_reply(
    reply: Reply, format: Format, model: type[M], is_harmless: Callable[[M], bool] = lambda value: False
) -> M:
    """Return a reply's content as a model, which allows nothing else; raise as :func:`read_verdict` does.

    An object that is quoted from the question does not count, unless it ``is_harmless``.
    """
    finish = reply.finish_reason or ""
    problems = (
        (reply.refusal, Fault.REFUSED, "is a refusal"),
        (finish == "length", Fault.TRUNCATED, "was cut off at its length limit; raise max_tokens"),
        (finish.lower() in _BROKEN_OFF, Fault.TRUNCATED, f"was broken off (finish_reason {finish!r})"),
        (finish == "content_filter", Fault.CONTENT_FILTER, "was ended by the provider's content filter"),
        (not reply.text.strip(), Fault.EMPTY, f"is empty (finish_reason {reply.finish_reason!r})"),
    )
    for is_so, fault, problem in problems:
        if is_so:
            raise _reply_error(fault, problem, reply.refusal or reply.text)
    try:
        value, texts = _read_object(reply.text, format, model)
        if _is_quoted(value, texts, reply.question) and not is_harmless(value):
            raise ValueError(f"its object {QUOTED}")
        return value
    except ValidationError as error:
        raise _schema_error(error, reply.text) from None
    except ValueError as error:
        raise _reply_error(Fault.UNREADABLE, f"cannot be read as a verdict: {error}", reply.text) from None


def _read_object(text: str, format: Format, model: type[M]) -> tuple[M, list[str]]:
    """Return the object of a reply, JSON or nearly JSON, and its text, as it stands there and as JSON.

    A ValueError says why it is not JSON, or not the model's.
    """
    try:
        part = object_text(text, format)
        return model.model_validate(read_json(part)), [part]
    except ValueError:
        fields = {field.alias or name: field.annotation for name, field in model.model_fields.items()}
        parts = [part for part in fields.values() if isinstance(part, type) and issubclass(part, BaseModel)]
        keys = fields.keys() | {name for part in parts for name in part.model_fields}
        with contextlib.suppress(ValueError):
            part = object_text(text, format, fields.keys())
            value = read_broken_json(part, sorted(keys))
            return model.model_validate(value), [part, json.dumps(value)]
        raise


def _is_quoted(value: BaseModel, texts: Sequence[str], question: str) -> bool:
    """Return whether an object stands in a question's data, whatever its blanks, marks, escapes and order of keys."""
    fields = value.model_dump(mode="json", by_alias=True)
    parts = {name: part for name, part in fields.items() if isinstance(part, dict)} or {"": fields}
    if any(key not in question for part in parts.values() for key in part):
        return False
    bare = _bare(question)
    if any(_bare(form) in bare for form in (*texts, json.dumps(fields), json.dumps(fields, ensure_ascii=False))):
        return True
    terms = _terms(question)
    return all(_is_part_quoted(name, part, terms) for name, part in parts.items())


def _is_part_quoted(name: str, part: dict[str, object], terms: str) -> bool:
    """Return whether a grade stands in the words with its reason, which tells a quotation from words by chance."""
    if not _terms(str(part.get("reason", part.get("reasoning", "")))).strip():
        return False
    orders = (part, dict(reversed(part.items())))
    return any(_terms(json.dumps({name: order}, ensure_ascii=False)) in terms for order in orders)


def _bare(text: str) -> str:
    text = text.replace("\\", "").replace("'", '"')
    return "".join(_WHOLE_NUMBER.sub(r"\1", text).split())


def _terms(text: str) -> str:
    """Return the words and numbers of a text between blanks, without marks and escapes."""
    text = _ESCAPE.sub(lambda match: chr(int(match[1], 16)) if match[1] else " ", html.unescape(text))
    terms = _WORD.findall(_WHOLE_NUMBER.sub(r"\1", text))
    return f" {' '.join(terms)} "


def _schema_error(error: ValidationError, text: str) -> JudgeReplyError:
    """Return the error for JSON of another form; a grade off the scale is the fault only if the form is right."""
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    form = [fault for fault in faults if fault["type"] not in ("greater_than_equal", "less_than_equal")]
    paths = [(".".join(map(str, fault["loc"])), fault["msg"]) for fault in (form or faults)[:_MAX_FAULTS]]
    problems = "; ".join(f"{_preview(path or 'the whole')}: {message}" for path, message in paths)
    if form:
        return _reply_error(Fault.WRONG_SCHEMA, f"has not the form asked for: {problems}", text)
    return _reply_error(Fault.OUT_OF_RANGE, f"has {problems}", text)


def _reply_error(fault: Fault, problem: str, text: str) -> JudgeReplyError:
    return JudgeReplyError(f"the judge's reply {problem}{text and f'; it begins {_preview(text)}'}", fault)


def _preview(text: str) -> str:
    """Return the beginning of a text on one line, with unprintable characters escaped."""
    return repr(text[:_PREVIEW_CHARS]) + ("..." if len(text) > _PREVIEW_CHARS else "")


def weigh_grades(
    reply: Reply, verdict: Verdict, rubric: Rubric, minimum_mass: float = MINIMUM_MASS
) -> tuple[Verdict, dict[str, float]]:
    """Return a reply's verdict with each grade replaced by its mean, and the masses by criterion.

    The formula is G-Eval's (arXiv 2303.16634, section 2): score = sum over grades s of p(s) * s. A grade is a digit, so
    it lies in one token. An alternative token counts if it is a digit followed by its end, a blank, a comma or a brace.
    The *mass* is the probability of all that counts, and the mean is taken over the mass scaled to 1, so it is off by
    at most (1 - mass) * (highest - lowest grade): exact if the server holds the model to the schema. A grade stays as
    sampled if its mass is below ``minimum_mass``, if it is not a digit (``4.0``), or if its token came without
    alternatives.
    """
    tokens, grades, masses = reply.tokens or (), dict(verdict.grades), dict[str, float]()
    text = "".join(token.text for token in tokens)
    ends = list(itertools.accumulate(len(token.text) for token in tokens))
    for name, position in _digit_positions(text):
        index = bisect_right(ends, position)
        token = tokens[index]
        likely = likelihoods(token, position - ends[index] + len(token.text), rubric.scale)
        total = math.fsum(likely.values())
        if total and verdict.grades.get(name) == int(text[position]):
            masses[name] = min(1.0, total)
            if masses[name] >= minimum_mass:
                mean = math.fsum(grade * likelihood for grade, likelihood in likely.items()) / total
                grades[name] = min(max(mean, min(likely)), max(likely))
    return replace(verdict, grades=grades, score=rubric.normalised(grades)), masses


def _digit_positions(text: str) -> Iterator[tuple[str, int]]:
    """Yield each criterion with the index of its digit in a text's last object, perhaps before end-of-turn tokens."""
    text = text[: text.rfind("}") + 1]
    start, criterion = object_start(text), ""
    for key in [] if start is None else _KEY.finditer(text, start):
        if key[2] is None:
            criterion = key[1]
        elif key[1] == "score":
            yield criterion, key.start(2)


def likelihoods(token: Token, position: int, scale: Scale) -> dict[int, float]:
    """Return each grade's probability at a token's digit; some servers list the sampled token, even twice."""
    head = token.text[:position].rstrip()
    probabilities: dict[str, float] = {}
    for text, logprob in ((token.text, token.logprob), *token.top) if token.top else ():
        probability = 0.0 if math.isnan(logprob) else math.exp(min(0.0, logprob))
        probabilities[text] = max(probability, probabilities.get(text, 0.0))
    masses: dict[int, float] = {}
    for text, probability in probabilities.items():
        grade = _GRADE.match(text.removeprefix(head)) if text.startswith(head) else None
        if grade and scale.low <= int(grade[1]) <= scale.high and probability:
            masses[int(grade[1])] = masses.get(int(grade[1]), 0.0) + probability
    return masses
