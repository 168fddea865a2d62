"""Grades are read from replies that are nearly JSON where they are clear, and never where they are not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest
from broken_verdicts import BrokenReply, Writer, draw_reply, write_part

from builtin_rewards.endpoint.errors import JudgeReplyError
from builtin_rewards.endpoint.messages import Reply
from builtin_rewards.judge.verdict import read_verdict

REPLIES, REPLIES_IN_FULL = 800, 30_000
_UNCLEAR_GRADES = (
    *("{} or {next}", "{}/10", "~{}", "{}-{next}", "four", "{},{next}", "{}.5", '"{}"', "'{}'", "**{}**", "", "?"),
    *("{} {next}", "{} out of 10", "+{}", "0{}", "{} // or {next}\n", "true", "{} # {next}?\n", "{}e", "({})", "<{}>"),
)


def _count(pytestconfig: pytest.Config) -> int:
    return REPLIES_IN_FULL if pytestconfig.getoption("--full") else REPLIES


def _read(reply: BrokenReply) -> dict[str, float | None] | None:
    """Return the grades that are read; ``None`` where the reply is refused."""
    try:
        return dict(read_verdict(Reply(reply.text, "m"), reply.rubric, reply.format).grades)
    except JudgeReplyError:
        return None


def test_a_clear_grade_is_read_however_its_reason_is_written(draw_seed: int, pytestconfig: pytest.Config) -> None:
    """Backslashes, line ends, marks, commas, comments and fences cost no grade; a reply's seed is in its message."""
    random = Random(draw_seed)
    replies = [draw_reply(random) for _ in range(_count(pytestconfig))]
    assert [] == [f"{reply} and {grades} is read" for reply in replies if (grades := _read(reply)) != reply.grades]


def _unclear_grade(writer: Writer, name: str, grade: int | None) -> str:
    text = writer.random.choice(_UNCLEAR_GRADES).format(grade or 0, next=(grade or 0) + 1)
    return writer.object([("reason", writer.reason()), ("score", text)], "")


def _two_grades(writer: Writer, name: str, grade: int | None) -> str:
    members = [("reason", writer.reason()), ("score", str(grade)), ("score", str((grade or 0) + 1))]
    return writer.object(members, "")


def _key_in_reason(writer: Writer, name: str, grade: int | None) -> str:
    writer.mark = '"'
    return writer.object([("reason", '"it says "score": 5, and "so" on"'), ("score", str(grade))], "")


def _of_one_part(part: Callable[[Writer, str, int | None], str]) -> Callable[[Random], BrokenReply]:
    """Return what draws replies of which one criterion is written so."""

    def draw(random: Random) -> BrokenReply:
        spoilt: list[str] = []

        def write(writer: Writer, name: str, grade: int | None) -> str:
            if spoilt:
                return write_part(writer, name, grade)
            spoilt.append(name)
            return part(writer, name, grade)

        return draw_reply(random, write)

    return draw


def _cut_off(random: Random) -> BrokenReply:
    """Return a reply that ends with its last grade, or before it."""
    reply = draw_reply(random, lambda writer, _, grade: writer.object([("score", "3"), ("reason", '"so"')], ""), False)
    return replace(reply, text=reply.text[: random.randint(0, reply.text.rindex("reason"))])


def _twice(random: Random) -> BrokenReply:
    """Return two verdicts of which the last is not JSON."""
    reply = draw_reply(random, frame=False)
    return replace(reply, text=f"{reply.text}\n{reply.text.rstrip().removesuffix('}')},}}")


def _talks_on(random: Random) -> BrokenReply:
    reply = draw_reply(random, frame=False)
    return replace(reply, text=f"{reply.text}\n{random.choice(['I hope that helps.', 'Score: 5', '5', 'Or not'])}")


def _lacks_one(random: Random) -> BrokenReply:
    reply = draw_reply(random)
    return replace(reply, rubric=type(reply.rubric)([*reply.rubric.names, "other"], reply.rubric.scale))


def _off_scale(random: Random) -> BrokenReply:
    reply = draw_reply(random, lambda writer, name, _: write_part(writer, name, writer.random.choice([-1, 11, 50])))
    return reply


@pytest.mark.parametrize(
    "draw",
    [
        *map(_of_one_part, (_unclear_grade, _two_grades, _key_in_reason)),
        *(_cut_off, _twice, _talks_on, _lacks_one, _off_scale),
    ],
    ids=["grade", "two grades", "key in reason", "cut off", "two verdicts", "talks on", "lacks one", "off scale"],
)
def test_a_grade_that_is_not_clear_is_never_read(
    draw: Callable[[Random], BrokenReply], draw_seed: int, pytestconfig: pytest.Config
) -> None:
    """Whatever else is right, no grade is made up, chosen of two, or taken from words."""
    random = Random(draw_seed)
    replies = [draw(random) for _ in range(_count(pytestconfig) // 3)]
    assert [] == [f"{reply} and {grades} is read" for reply in replies if (grades := _read(reply)) is not None]
