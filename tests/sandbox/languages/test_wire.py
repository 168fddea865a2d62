"""Values between a client and the drivers: round trips, and bytes of completions that are no answers."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from one_hash import items_with_one_hash

from sandbox.effort import Effort
from sandbox.errors import NotPlainError
from sandbox.languages.wire import MAX_WIRE_DEPTH, DriverAnswer, decode_answer, encode_call

_KEYS = st.none() | st.booleans() | st.integers() | st.text()
_VALUES = st.recursive(
    _KEYS | st.floats(allow_nan=False),
    lambda values: st.lists(values) | st.dictionaries(_KEYS, values) | st.sets(st.text(), max_size=1),
    max_leaves=20,
)


def _echo(*arguments: object) -> DriverAnswer:
    """Return the answer of a driver that sends a call's arguments back as they came."""
    return decode_answer(b'{"v":' + encode_call(arguments).rstrip() + b"}\n", Effort())


@given(st.lists(_VALUES, max_size=4))
def test_what_is_encoded_is_decoded_to_the_same(arguments):
    """A call's arguments come back as they are."""
    assert repr(arguments) == repr(_echo(*arguments).value)


@given(st.lists(_VALUES, max_size=4))
def test_a_call_is_one_line(arguments):
    """No value breaks the line that it is in."""
    assert 1 == encode_call(arguments).count(b"\n")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, b"[null]"),
        (True, b"[true]"),
        (7, b"[7]"),
        (-0.0, b"[-0.0]"),
        (7.0, b"[7.0]"),
        (1e300, b"[1e+300]"),
        (2**63, b'[{"$i":"9223372036854775808"}]'),
        (-(2**63), b"[-9223372036854775808]"),
        (math.inf, b'[{"$f":"Infinity"}]'),
        (-math.inf, b'[{"$f":"-Infinity"}]'),
        (math.nan, b'[{"$f":"NaN"}]'),
        ("a\n\u00e9\U0001f600", b'["a\\n\\u00e9\\ud83d\\ude00"]'),
        ((1, [2]), b"[[1,[2]]]"),
        ({}, b'[{"$m":[]}]'),
        ({1: "x", "y": [2]}, b'[{"$m":[[1,"x"],["y",[2]]]}]'),
        ({3}, b'[{"$s":[3]}]'),
    ],
    ids=repr,
)
def test_values_have_one_form(value, text):
    """Each value has one form on the line."""
    assert text + b"\n" == encode_call([value])


@pytest.mark.parametrize(
    "value",
    [b"x", 1j, object(), [len], {"a": {1: b""}}, 10**4200],
    ids=["bytes", "complex", "object", "function", "within", "digits"],
)
def test_what_other_languages_lack_is_refused(value):
    """A value that no language could read is no call."""
    with pytest.raises(NotPlainError):
        encode_call([value])


def test_arguments_that_are_too_deep_or_too_large_are_refused():
    """Depth and size of a call are bounded."""
    deep: list = []
    for _ in range(MAX_WIRE_DEPTH + 10):
        deep = [deep]
    for argument in (deep, "x" * (9 << 20)):
        with pytest.raises(NotPlainError):
            encode_call([argument])


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        (b'{"v":1}', DriverAnswer(1)),
        (b'{"v":{"$u":1}}', DriverAnswer(None)),
        (b'{"v":{"$o":[["a",1],["b",[]]]}}', DriverAnswer({"a": 1, "b": []})),
        (b'{"v":{"$m":[[[1,2],3]]}}', DriverAnswer({(1, 2): 3})),
        (b'{"v":{"$t":[1,[2]]}}', DriverAnswer((1, [2]))),
        (b'{"v":{"$s":[{"$t":[[]]}]}}', DriverAnswer({((),)})),
        (b'{"v":{"$s":[[1,[2]],"x"]}}', DriverAnswer({(1, (2,)), "x"})),
        (b'{"v":{"$i":"-123456789012345678901234567890"}}', DriverAnswer(-123456789012345678901234567890)),
        (b'{"e":"no"}', DriverAnswer(error="no")),
        (b'{"v":null,"a":[[0,[1]],[2,"x"]]}', DriverAnswer(None, changed=((0, [1]), (2, "x")))),
    ],
)
def test_answers_are_read(line, answer):
    """Each form of an answer has its meaning."""
    assert answer == decode_answer(line, Effort())


_NO_ANSWERS = [
    b"",
    b"1",
    b"[]",
    b"{}",
    b'{"v":1,"e":"x"}',
    b'{"v":1,"x":2}',
    b'{"e":1}',
    b'{"v":NaN}',
    b'{"v":Infinity}',
    b'{"v":{"$x":"function"}}',
    b'{"v":{"$f":"nan"}}',
    b'{"v":{"$f":["NaN"]}}',
    b'{"v":{"$i":1}}',
    b'{"v":{"$i":"1_0"}}',
    b'{"v":{"$i":"\xd9\xa1"}}',
    b'{"v":{"$i":""}}',
    b'{"v":{"$m":[1]}}',
    b'{"v":{"$m":[[1]]}}',
    b'{"v":{"$m":[[1,1],[1.0,2]]}}',
    b'{"v":{"$m":{}}}',
    b'{"v":{"$o":[[1,1]]}}',
    b'{"v":{"$s":1}}',
    b'{"v":{"plain":1}}',
    b'{"v":{}}',
    b'{"v":{"$u":1,"$f":"NaN"}}',
    b'{"v":1,"a":[[0]]}',
    b'{"v":1,"a":[["0",1]]}',
    b'{"v":1,"a":1}',
    b'{"v":1}{"v":2}',
    b'{"v":' + b"[" * 5000,
    b'{"v":' + b"[" * 5000 + b"]" * 5000 + b"}",
    b'{"v":' + b'{"$s":[' * 300 + b"]}" * 300 + b"}",
    b'{"v":' + b"9" * 5000 + b"}",
    b'{"v":[' + b"1," * 2_000_000 + b"1]}",
    b'{"v":"' + b"x" * (9 << 20) + b'"}',
]


@pytest.mark.parametrize("line", _NO_ANSWERS, ids=lambda line: line[:24].decode(errors="replace"))
def test_what_is_no_answer_is_refused(line):
    """A line of another form is refused as what is not plain."""
    with pytest.raises(NotPlainError):
        decode_answer(line, Effort())


_TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda trees: (
        st.lists(trees)
        | st.dictionaries(st.sampled_from(["$m", "$o", "$s", "$i", "$f", "$u", "$x", "v", "a"]), trees, max_size=2)
    ),
    max_leaves=30,
)


@given(st.binary() | st.builds(lambda tree: json.dumps({"v": tree}).encode(), _TREES))
def test_any_line_is_an_answer_or_refused(line):
    """No bytes raise anything else."""
    try:
        answer = decode_answer(line, Effort())
    except NotPlainError:
        return
    assert isinstance(answer, DriverAnswer)


def test_bytes_that_are_no_text_are_another_text():
    """A completion's invalid UTF-8 is a wrong text, not a fault of ours."""
    assert DriverAnswer("\udcff") == decode_answer(b'{"v":"\xff"}', Effort())


def test_members_chosen_to_be_slow_are_refused():
    """Keys that share a hash do not stall the client."""
    modulus = (1 << 61) - 1
    members = ",".join(str(1 + index * modulus) for index in range(1, 50_000))
    with pytest.raises(NotPlainError):
        decode_answer(f'{{"v":{{"$s":[{members}]}}}}'.encode(), Effort())


def test_items_of_a_member_chosen_to_be_slow_are_refused():
    """A mapping in a set is a set of its items, which keys and values together can give one hash."""
    items = items_with_one_hash(300)
    assert 1 == len({hash(item) for item in items})
    written = ",".join(f'[{key},{{"$i":"{value}"}}]' for key, value in items)
    for line in (f'{{"v":{{"$s":[{{"$m":[{written}]}}]}}}}', f'{{"v":{{"$m":[[{{"$m":[{written}]}},1]]}}}}'):
        with pytest.raises(NotPlainError, match="members with the same hash"):
            decode_answer(line.encode(), Effort())
