"""How JSON is asked for, what a server takes, and what may stand around the JSON."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from builtin_rewards.endpoint.errors import Fault, JudgeUnavailableError
from builtin_rewards.endpoint.foreign import Addressee, names_format, translate
from builtin_rewards.endpoint.messages import Reply
from builtin_rewards.judge.formats import (
    LONGEST_OBJECT,
    Changes,
    Format,
    Negotiator,
    apply_changes,
    format_instruction,
    object_start,
    object_text,
    response_format,
)
from builtin_rewards.judge.rubric import Criterion, Rubric, preference_schema

SCHEMA, OBJECT, TEXT = Format
RUBRIC = Rubric((Criterion("correct", "Is it right?"), Criterion("brief", "Is it short?")), (1, 5))


class HttpError(Exception):
    """Stands for the client library's error: a status and a body."""

    def __init__(self, status_code: int, body: object) -> None:
        super().__init__(f"Error code: {status_code}")
        self.status_code = status_code
        self.body = body


def refused(status: int, body: object = None, model: str = "m") -> JudgeUnavailableError:
    """Makes the error that an endpoint raises for a response of this status."""
    error = translate(HttpError(status, body), Addressee("http://127.0.0.1/v1", model))
    assert isinstance(error, JudgeUnavailableError)
    return error


@dataclass
class Server:
    """Takes some formats, and refuses the others with an error."""

    takes: frozenset[Format]
    error: Callable[[Format], JudgeUnavailableError]
    asked: list[Format] = field(default_factory=list)
    changes: Changes = field(default_factory=dict)

    async def send(self, format: Format, changes: Changes) -> Reply:
        self.changes = changes
        self.asked.append(format)
        await asyncio.sleep(0)
        if format not in self.takes:
            raise self.error(format)
        return Reply("{}", "m")


def test_each_format_is_asked_for_as_the_api_takes_it() -> None:
    """A strict schema, a bare object, or nothing at all."""
    schema = {"type": "object"}
    strict = {"name": "verdict", "schema": schema, "strict": True}
    assert {"type": "json_schema", "json_schema": strict} == response_format(SCHEMA, schema)
    assert {"type": "json_object"} == response_format(OBJECT, schema)
    assert None is response_format(TEXT, schema)


def test_the_instruction_shows_the_schema_as_an_example() -> None:
    """All keys stand in order, each grade as a place holder with its bounds."""
    words = format_instruction(RUBRIC.json_schema())
    line = next(line for line in words.splitlines() if line.startswith("{"))
    filled = json.loads(re.sub(r'(?<!")<a whole number from 1 to 5>', "3", line))
    assert {"correct": 3, "brief": 3} == {name: given["score"] for name, given in filled.items()}
    assert "JSON" in words


def test_the_instruction_of_a_preference_lists_its_values() -> None:
    """What may be said of two answers is said in the prompt."""
    assert '<one of "A", "B", "tie">' in format_instruction(preference_schema())


@pytest.mark.parametrize(
    ("format", "text", "expected"),
    [
        (SCHEMA, ' {"a": 1}\n', '{"a": 1}'),
        (SCHEMA, '"A"', '"A"'),
        (SCHEMA, '```json\n{"a": 1}\n```', '{"a": 1}'),
        (SCHEMA, '<think>{"a": 2}</think>\n{"a": 1}', '{"a": 1}'),
        (OBJECT, '```json\n{"a": 1}\n```', '{"a": 1}'),
        (OBJECT, '<think>x</think>```json\n{"a": 1}\n```', '{"a": 1}'),
        (OBJECT, '{"a": 1}', '{"a": 1}'),
        (OBJECT, '<think>{"a": 2}</think>\n{"a": 1}', '{"a": 1}'),
        (OBJECT, 'no opening tag {"a": 2}</think>{"a": 1}', '{"a": 1}'),
        (OBJECT, '```json\n{"a": 1}', '{"a": 1}'),
        (SCHEMA, '```python\n{"a": 1}\n```<|im_end|>', '{"a": 1}'),
        (TEXT, '{"a": 1}', '{"a": 1}'),
        (TEXT, 'first {"a": 2}, then {"a": 1}\n\n', '{"a": 1}'),
        (TEXT, 'so:\n```json\n{"a": 1}\n```\n', '{"a": 1}'),
        (TEXT, 'so:\n```\n{"a": 1}\n```', '{"a": 1}'),
        (TEXT, 'so:\n```json\n{"a": 1}', '{"a": 1}'),
        (TEXT, '<think>x</think>{"a": "} \\" {"}', '{"a": "} \\" {"}'),
        (TEXT, 'an odd " before {"a": "\\\\"}', '{"a": "\\\\"}'),
    ],
)
def test_the_object_is_found_where_the_format_lets_it_stand(format: Format, text: str, expected: str) -> None:
    """Blanks, reasoning, words and a fence may stand around it, by format."""
    assert expected == object_text(text, format)


@pytest.mark.parametrize(
    ("format", "text"),
    [
        (OBJECT, 'so: {"a": 1}'),
        (SCHEMA, 'so: {"a": 1}'),
        (OBJECT, 'so: ```json\n{"a": 1}\n```'),
        (OBJECT, '<think>x</think> so: {"a": 1}'),
        (OBJECT, '<think>still at it {"a": 1}'),
        (TEXT, '{"a": 1} is my verdict'),
        (TEXT, '{"a": 1}.'),
        (TEXT, '{"a": 1}```'),
        (TEXT, '"{"a": 1}"'),
        (TEXT, '<think>still at it {"a": 1}'),
        (TEXT, "no object"),
        (TEXT, '{"a": 1]}'),
        (TEXT, "[1]"),
        (TEXT, "}"),
        (TEXT, "{" + " " * LONGEST_OBJECT + "}"),
        (SCHEMA, "{" + " " * LONGEST_OBJECT + "}"),
        (OBJECT, "{" + " " * LONGEST_OBJECT + "}"),
    ],
)
def test_an_object_elsewhere_is_none(format: Format, text: str) -> None:
    """What is not at its place is refused, however much like a verdict it looks."""
    with pytest.raises(ValueError, match=r"."):
        object_text(text, format)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda parts: st.lists(parts, max_size=3) | st.dictionaries(st.text(), parts, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(), JSON, max_size=3)


@given(before=st.text(), value=OBJECTS, ascii=st.booleans())
@example(before='{"', value={'"\\': "}{"}, ascii=True)
def test_the_object_that_ends_a_text_is_found(before: str, value: dict[str, object], ascii: bool) -> None:
    """Whatever stands before an object, quotation marks and braces included, it is found whole."""
    written = json.dumps(value, ensure_ascii=ascii)
    assert len(before) == object_start(before + written)


@given(text=st.text(alphabet='{}[]":,\\1 a', max_size=14))
def test_at_most_one_place_begins_an_object_that_ends_a_text(text: str) -> None:
    """The place found is the only one from which the text is JSON to its end."""
    text += "}"
    places = [at for at, letter in enumerate(text) if letter == "{" and is_json(text[at:])]
    assert places in ([], [object_start(text)])


def is_json(text: str) -> bool:
    """Tells whether a text is JSON."""
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def ask(negotiator: Negotiator, send: Callable[[Format, Changes], Awaitable[Reply]]) -> Format:
    """Asks once and gives the format that was answered."""
    return asyncio.run(ask_once(negotiator, send))


async def ask_once(negotiator: Negotiator, send: Callable[[Format, Changes], Awaitable[Reply]]) -> Format:
    """Return the format that was answered."""
    return (await negotiator.ask(send))[1]


WORDS = {"message": "Unknown parameter: 'response_format.json_schema'"}


@pytest.mark.parametrize(
    "error",
    [
        refused(400, WORDS),
        refused(422, {"detail": [{"loc": ["body", "response_format"]}]}),
        refused(404, "json mode is not supported"),
        refused(500, {"detail": "type json_schema is unsupported"}),
    ],
    ids=lambda error: str(error.status),
)
def test_a_schema_that_the_server_rejects_is_asked_for_in_words(error: JudgeUnavailableError) -> None:
    """The same is asked for as text, which is the first asked for the next time."""
    server, negotiator = Server(frozenset({TEXT}), lambda _: error), Negotiator()
    ask(negotiator, server.send)
    ask(negotiator, server.send)
    assert [SCHEMA, TEXT, TEXT] == server.asked


@pytest.mark.parametrize(
    "error",
    [
        refused(400),
        refused(400, {"message": "Bad Request"}),
        refused(401),
        refused(403, WORDS),
        refused(429, WORDS),
        refused(404, {"message": "no such model"}),
        refused(400, {"message": "this is not supported"}),
        refused(400, {"message": "max_tokens is too large: 1024; the model writes 512"}),
        refused(400, {"message": "too long"}, model="json_schema-judge"),
        refused(500),
        refused(502, "<html>no schema here</html>"),
        refused(503, {"message": "overloaded"}),
        JudgeUnavailableError("refused", Fault.CONNECTION),
        JudgeUnavailableError("no response_format", Fault.REJECTED),
    ],
    ids=lambda error: str(error),
)
def test_other_errors_are_no_step_down(error: JudgeUnavailableError) -> None:
    """An outage, a wrong key, a full quota and a prompt too long are raised after one request."""
    server, negotiator = Server(frozenset(), lambda _: error), Negotiator()
    with pytest.raises(JudgeUnavailableError) as raised:
        ask(negotiator, server.send)
    assert (error, [SCHEMA], SCHEMA) == (raised.value, server.asked, negotiator.format)
    assert (error.status == 400) == ("try format='text'" in str(error))


def test_a_step_is_remembered_only_where_the_weaker_format_is_taken() -> None:
    """A request that no format saves leaves the format as it was."""
    server = Server(frozenset(), lambda _: refused(400, "no schema helps"))
    negotiator = Negotiator()
    with pytest.raises(JudgeUnavailableError):
        ask(negotiator, server.send)
    assert ([SCHEMA, TEXT], SCHEMA) == (server.asked, negotiator.format)


def test_an_outage_on_the_way_down_teaches_nothing() -> None:
    """The outage is what is raised, and the next request begins where this one did."""
    errors = {SCHEMA: refused(400, WORDS), TEXT: refused(503)}
    server, negotiator = Server(frozenset(), lambda format: errors[format]), Negotiator()
    with pytest.raises(JudgeUnavailableError) as raised:
        ask(negotiator, server.send)
    assert (errors[TEXT], SCHEMA) == (raised.value, negotiator.format)


def test_requests_that_learn_the_same_at_once_step_once() -> None:
    """Sixty-four in flight against a server without schemas: each is rejected once."""
    server = Server(frozenset({TEXT}), lambda _: refused(400, WORDS))
    negotiator = Negotiator()

    async def many() -> list[Format]:
        return await asyncio.gather(*(ask_once(negotiator, server.send) for _ in range(64)))

    assert [TEXT] * 64 == asyncio.run(many())
    assert (TEXT, 64, 64) == (negotiator.format, server.asked.count(SCHEMA), server.asked.count(TEXT))


def test_a_late_reply_in_a_stricter_format_is_no_step_back() -> None:
    """Of several servers behind one address the one that takes least decides, and the format does not flap."""
    server, negotiator = Server(frozenset({TEXT}), lambda _: refused(400, WORDS)), Negotiator()
    released = asyncio.Event()

    async def slow(*_: object) -> Reply:
        await released.wait()
        return Reply("{}", "m")

    async def both() -> list[Format]:
        late = asyncio.create_task(ask_once(negotiator, slow))
        await asyncio.sleep(0)
        early = await ask_once(negotiator, server.send)
        released.set()
        return [early, await late]

    assert ([TEXT, SCHEMA], TEXT) == (asyncio.run(both()), negotiator.format)


def test_a_fixed_format_is_never_left() -> None:
    """What the user fixed is asked once, and its rejection is the answer."""
    server, negotiator = Server(frozenset({TEXT}), lambda _: refused(400, WORDS)), Negotiator(OBJECT)
    with pytest.raises(JudgeUnavailableError):
        ask(negotiator, server.send)
    for _ in range(9):
        negotiator.note(OBJECT, Fault.UNREADABLE)
    assert ([OBJECT], OBJECT) == (server.asked, negotiator.format)


@pytest.mark.parametrize(
    ("format", "notes", "expected"),
    [
        (SCHEMA, [Fault.UNREADABLE, Fault.WRONG_SCHEMA, Fault.UNREADABLE], TEXT),
        (SCHEMA, [Fault.UNREADABLE] * 2, SCHEMA),
        (SCHEMA, [None, *[Fault.UNREADABLE] * 9], SCHEMA),
        (SCHEMA, [Fault.REFUSED, Fault.TRUNCATED, Fault.EMPTY, Fault.OUT_OF_RANGE], SCHEMA),
        (TEXT, [Fault.UNREADABLE] * 9, SCHEMA),
    ],
    ids=["three", "two", "once heeded", "other faults", "notes of another format"],
)
def test_a_server_that_pays_no_heed_to_the_format_is_found_out(
    format: Format, notes: list[Fault | None], expected: Format
) -> None:
    """Three replies that are not what the server was to enforce, and none that is: it is asked for text."""
    negotiator = Negotiator()
    for fault in notes:
        negotiator.note(format, fault)
    assert expected is negotiator.format


NEW_NAME = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
NO_HEAT = (
    "Unsupported value: 'temperature' does not support 0.0 with this model. Only the default (1) value is supported."
)
EXTRA = {"detail": [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs"}]}
REFUSALS: dict[str, tuple[JudgeUnavailableError, dict[str, str | None]]] = {
    "tokens": (refused(400, {"message": NEW_NAME, "param": "max_tokens"}), {"max_tokens": "max_completion_tokens"}),
    "value": (refused(400, {"error": {"message": NO_HEAT}}), {"temperature": None}),
    "pydantic": (refused(422, EXTRA), {"seed": None}),
    "deprecated": (refused(400, "`temperature` is deprecated for this model"), {"temperature": None}),
    "an old server": (refused(400, "Unknown field: max_completion_tokens"), {"max_completion_tokens": "max_tokens"}),
    "named by its place": (refused(400, {"error": {"message": "not supported", "param": "top_p"}}), {"top_p": None}),
}


@pytest.mark.parametrize(("error", "changes"), REFUSALS.values(), ids=REFUSALS)
def test_a_parameter_that_the_server_refuses_is_changed_once(
    error: JudgeUnavailableError, changes: dict[str, str | None]
) -> None:
    """The same is asked again without it, or under its other name, and so is everything after it; the format stays."""
    negotiator, sent = Negotiator(), []

    async def send(format: Format, change: Changes) -> Reply:
        sent.append(dict(change))
        if not change:
            raise error
        return Reply("{}", "m")

    assert [SCHEMA, SCHEMA] == [ask(negotiator, send), ask(negotiator, send)]
    assert [{}, changes, changes] == sent


def test_several_parameters_are_changed_one_after_another() -> None:
    """As a model that reasons wants it; a complaint that a change does not mend is raised, and nothing is learned."""
    tokens, heat = REFUSALS["tokens"], REFUSALS["value"]
    negotiator, mended = Negotiator(), True

    async def send(_: Format, change: Changes) -> Reply:
        for error, wanted in (tokens, heat):
            if not mended or not wanted.keys() <= change.keys():
                raise error
        return Reply("{}", "m")

    ask(negotiator, send)
    assert tokens[1] | heat[1] == negotiator.changes
    negotiator, mended = Negotiator(), False
    with pytest.raises(JudgeUnavailableError, match="'max_tokens' is not supported"):
        ask(negotiator, send)
    assert {} == negotiator.changes


def test_options_are_sent_as_the_server_takes_them() -> None:
    """Renamed, left out, or as they are."""
    options = {"max_tokens": 5, "temperature": 0.0, "seed": 1}
    assert {"max_completion_tokens": 5, "seed": 1} == apply_changes(
        options, {"max_tokens": "max_completion_tokens", "temperature": None}
    )


LENGTHS = {"max_completion_tokens": 4096, "max_tokens": 1024}


@pytest.mark.parametrize("changes", [{"max_tokens": "max_completion_tokens"}, {"max_completion_tokens": "max_tokens"}])
@pytest.mark.parametrize("options", [LENGTHS, dict(reversed(LENGTHS.items()))], ids=["said first", "said last"])
def test_a_length_that_the_user_set_outlives_a_renaming(options: dict[str, int], changes: Changes) -> None:
    """Where the judge's own max_tokens comes to go by its name, or it by that one's."""
    (name,) = changes.values()
    assert {name: 4096} == apply_changes(options, changes)
    extra = {"extra_body": {"max_completion_tokens": 4096}}
    assert extra == apply_changes({**extra, "max_tokens": 1024}, {"max_tokens": "max_completion_tokens"})


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model", True),
        ("Input should be 'text' or 'json_object'", True),
        ("guided decoding is unsupported", True),
        ("failed to parse grammar", True),
        ("overloaded, try again", False),
        ("this is not supported", False),
        ("maximum context length is 4096 tokens", False),
    ],
)
def test_words_about_formats_are_told_from_others(words: str, expected: bool) -> None:
    """What servers say when they do not take a format, and what they say of other things."""
    assert expected is names_format(words)
