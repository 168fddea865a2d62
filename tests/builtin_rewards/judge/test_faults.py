"""What a hostile server may say, what becomes of the judgement, and in how many requests: the table of the reference.

Each reply is sent to a judge of its own, as often as it asks, by one server; what the table says of it stands in
``docs/reference/judge.md`` as well.
"""

from __future__ import annotations

import asyncio
import json
import logging
import pickle
import resource
import time
import traceback
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import fault_server
import pytest
from fault_server import CANARY, Action, completion, ok, status, too_many

from builtin_rewards.endpoint.endpoint import TRIED_AGAIN
from builtin_rewards.endpoint.errors import Fault, JudgeError
from builtin_rewards.endpoint.foreign import MOST_BYTES
from builtin_rewards.judge import Criterion, JudgeCache, LLMJudge, RetryPolicy
from rewardkit import Score

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "judge.md"
POLICY = RetryPolicy(first_wait_s=0.01, longest_wait_s=0.02, longest_retry_after_s=2.0)
TRIES = POLICY.attempts
VERDICT = '{"correct": {"reason": "as it should be", "score": 4}}'
GOOD = 0.75
"""The score of ``VERDICT``."""
WRONG = f"no; you sent {CANARY}, that is {CANARY[:9]}****{CANARY[-4:]}"
"""What an error says: the key, whole and masked."""
UNNAMED = "Content-Type: application/json\r\n"


class Row(NamedTuple):
    """One reply: what it comes to, in how many requests, what is sent in turn, and words of the error."""

    ends: Fault | float
    requests: int
    sent: Sequence[Action]
    words: str = ""


def always(ends: Fault | float, requests: int, action: Action, words: str = "") -> Row:
    return Row(ends, requests, [action], words)


def said(text: Any, ends: Fault | float, **parts: Any) -> Row:
    """A completion with this content: one request, and a second one where it cannot be read."""
    return always(ends, 2 if ends in (F.UNREADABLE, F.WRONG_SCHEMA, F.OUT_OF_RANGE) else 1, ok(text, **parts))


def message(ends: Fault | float, requests: int = 1, **parts: Any) -> Row:
    """A completion whose message is of these parts."""
    return always(ends, requests, completion({"choices": [{"index": 0, "message": parts, "finish_reason": "stop"}]}))


def json_body(value: Any) -> Action:
    return Action(json.dumps(value).encode())


def graded(score: Any) -> str:
    return f'{{"correct": {{"reason": "r", "score": {score}}}}}'


def http(head: str, body: bytes = b"", code: int = 200) -> Action:
    return Action(raw=f"HTTP/1.1 {code} Said\r\n{UNNAMED}{head}\r\n\r\n".encode() + body)


def refusing(name: str, words: str) -> Row:
    """Says no to a parameter, and takes the request without it."""
    return Row(GOOD, 2, [status(400, words, param=name), ok(VERDICT)])


BODY = ok(VERDICT).body
PACKER = zlib.compressobj(wbits=31)
GZIP = PACKER.compress(BODY) + PACKER.flush()
ELSEWHERE = (("Location", f"http://203.0.113.1/v1?key={CANARY}"),)
SILENT = ("never answers", "sends a byte now and then")
"""Replies whose judgement ends by its deadline."""
F: TypeAlias = Fault

ROWS: dict[str, Row] = {
    # statuses
    "429": always(F.RATE_LIMIT, TRIES, too_many(), "HTTP 429: Rate limit reached; allow fewer requests"),
    "429 with `Retry-After: 0.02`": always(F.RATE_LIMIT, TRIES, too_many("0.02")),
    "429 with `Retry-After` as a date that is past": always(F.RATE_LIMIT, TRIES, too_many(formatdate(0, usegmt=True))),
    "429 with `Retry-After` as a date in an hour": always(
        F.RATE_LIMIT, 1, too_many(formatdate(time.time() + 3600, usegmt=True)), "longest_retry_after_s=2"
    ),
    "429 with `retry-after-ms: 20`": always(F.RATE_LIMIT, TRIES, status(429, WRONG, headers={"retry-after-ms": "20"})),
    "429 with a negative `Retry-After`": always(F.RATE_LIMIT, TRIES, too_many("-7")),
    "429 with words in `Retry-After`": always(F.RATE_LIMIT, TRIES, too_many("soon")),
    "429 with `Retry-After: 1e999`": always(F.RATE_LIMIT, 1, too_many("1e999"), "it asks to wait inf s"),
    "429 with a `Retry-After` beyond `longest_retry_after_s`": always(
        F.RATE_LIMIT, 1, too_many("3600"), "it asks to wait 3600 s"
    ),
    "429 twice, then a verdict": Row(GOOD, 3, [too_many("0.01"), too_many(), ok(VERDICT)]),
    "408": always(F.SERVER_ERROR, TRIES, status(408, WRONG)),
    "409": always(F.SERVER_ERROR, TRIES, status(409, WRONG)),
    "500": always(F.SERVER_ERROR, TRIES, status(500, WRONG), "HTTP 500: no; you sent [key]"),
    "500 that names a format": Row(GOOD, 2, [status(500, "json_schema is unknown"), ok(VERDICT)]),
    "502 with a page": always(F.SERVER_ERROR, TRIES, fault_server.html(502), "HTTP 502: Welcome"),
    "503": always(F.SERVER_ERROR, TRIES, status(503, WRONG), "tried 4 times"),
    "503, then a verdict": Row(GOOD, 2, [status(503), ok(VERDICT)]),
    "504": always(F.SERVER_ERROR, TRIES, status(504, WRONG)),
    "524": always(F.SERVER_ERROR, TRIES, status(524, WRONG)),
    "529 without a body": always(F.SERVER_ERROR, TRIES, Action(status=529), "HTTP 529: no words"),
    "301 to another host": always(F.REJECTED, 1, Action(status=301, headers=ELSEWHERE), "points to http://203.0.113.1"),
    "307 to another host": always(F.REJECTED, 1, Action(status=307, headers=ELSEWHERE), "not followed; set base_url"),
    "302 to nowhere": always(F.REJECTED, 1, Action(status=302), "not followed"),
    "400": always(F.REJECTED, 1, status(400, WRONG), "HTTP 400: no; you sent [key]"),
    "400 that names the key for a parameter": always(F.REJECTED, 1, status(400, "no", param=CANARY)),
    "400 without words": always(F.REJECTED, 1, Action(status=400), "HTTP 400: no words"),
    "400 that names `max_tokens`": refusing("max_tokens", "'max_tokens' is not supported with this model"),
    "400 that names `temperature`": refusing("temperature", "'temperature' does not support 0.0 with this model"),
    "400 that names `response_format`": Row(GOOD, 2, [status(400, "response_format is not supported"), ok(VERDICT)]),
    "401": always(F.REJECTED, 1, status(401, WRONG), "HTTP 401: no; you sent [key], that is [key]; check the key"),
    "402": always(F.QUOTA, 1, status(402, WRONG), "raise the account's limit"),
    "403": always(F.REJECTED, 1, status(403, WRONG), "the key may not use this model"),
    "403 of the content": always(
        F.CONTENT_FILTER, 1, status(403, "flagged by moderation"), "refuses what this question holds"
    ),
    "404": always(F.REJECTED, 1, status(404, "no such model"), "check base_url, which mostly ends with /v1"),
    "413": always(F.CONTEXT_LENGTH, 1, status(413, "too large"), "lower max_chars"),
    "422": always(F.REJECTED, 1, status(422, "messages: field required")),
    "`insufficient_quota`": always(F.QUOTA, 1, fault_server.quota(), "You exceeded your current quota"),
    # connections
    "a reset before the body": always(F.CONNECTION, TRIES, fault_server.reset(0), "tried 4 times"),
    "a reset in the body": always(F.CONNECTION, TRIES, fault_server.reset(40)),
    "a connection closed without a word": always(F.CONNECTION, TRIES, Action(raw=b"")),
    "no HTTP": always(F.CONNECTION, TRIES, Action(raw=b"SSH-2.0-OpenSSH_9.6\r\n\r\n")),
    "a `Content-Length` beyond the body": always(F.CONNECTION, TRIES, http(f"Content-Length: {len(BODY) + 9}", BODY)),
    "a `Content-Length` that cuts the body": always(F.NOT_A_COMPLETION, TRIES, http("Content-Length: 40", BODY)),
    "a `Content-Length` of words": always(F.CONNECTION, TRIES, http("Content-Length: many", BODY)),
    "broken chunks": always(F.CONNECTION, TRIES, http("Transfer-Encoding: chunked", b"zz\r\n" + BODY)),
    "chunks that end early": always(
        F.CONNECTION, TRIES, http("Transfer-Encoding: chunked", b"%x\r\n" % (len(BODY) + 9) + BODY)
    ),
    "a body that ends with the connection": always(GOOD, 1, http("Connection: close", BODY)),
    "a header of a megabyte": always(F.CONNECTION, TRIES, http("X-Long: " + "x" * 2**20, BODY)),
    "never answers": always(F.DEADLINE, 1, fault_server.stall(), "s; 1 try was made, none ended before it"),
    "sends a byte now and then": always(F.DEADLINE, 1, fault_server.dribble(VERDICT, 0.2), "raise deadline_s"),
    # bodies of status 200
    "a page": always(
        F.NOT_A_COMPLETION, TRIES, fault_server.html(), "HTTP 200 with no JSON: 'Welcome'; check base_url"
    ),
    "nothing": always(F.NOT_A_COMPLETION, TRIES, Action(), "HTTP 200 with no JSON"),
    "204": always(F.NOT_A_COMPLETION, TRIES, Action(status=204)),
    "a list": always(F.NOT_A_COMPLETION, TRIES, json_body([1, 2])),
    "a number": always(F.NOT_A_COMPLETION, TRIES, json_body(7)),
    "`null`": always(F.NOT_A_COMPLETION, TRIES, json_body(None), "HTTP 200 with no choices; check base_url"),
    "brackets, 100,000 deep": always(F.NOT_A_COMPLETION, TRIES, Action(b"[" * 100_000)),
    "JSON that is cut off": always(F.NOT_A_COMPLETION, TRIES, fault_server.truncated_json()),
    "two objects": always(F.NOT_A_COMPLETION, TRIES, Action(BODY + BODY)),
    "a stream of events": always(
        F.NOT_A_COMPLETION, TRIES, Action(b"data: " + BODY + b"\n\ndata: [DONE]\n\n"), "without stream=true"
    ),
    "an error": always(F.NOT_A_COMPLETION, TRIES, json_body({"error": {"message": WRONG}}), "with status 200"),
    "an error with code 429": always(F.RATE_LIMIT, TRIES, json_body({"error": {"message": "slow", "code": 429}})),
    "an error with code 500": always(F.SERVER_ERROR, TRIES, json_body({"error": {"message": WRONG, "code": 500}})),
    "an error with code 401": always(F.REJECTED, 1, json_body({"error": {"message": WRONG, "code": 401}})),
    "choices that are empty": always(F.NOT_A_COMPLETION, TRIES, fault_server.empty_choices(), "the model gave nothing"),
    "choices that are `null`": always(F.NOT_A_COMPLETION, TRIES, fault_server.null_choices(), "the model gave nothing"),
    "choices that are text": always(F.NOT_A_COMPLETION, TRIES, completion({"choices": VERDICT})),
    "a choice without message": always(F.NOT_A_COMPLETION, TRIES, completion({"choices": [{"index": 0}]})),
    "a choice that is `null`": always(F.NOT_A_COMPLETION, TRIES, completion({"choices": [None]})),
    "a byte order mark first": always(GOOD, 1, Action(b"\xef\xbb\xbf" + BODY)),
    "gzip": always(GOOD, 1, fault_server.packed(GZIP, "gzip")),
    "gzip that is not gzip": always(
        F.NOT_A_COMPLETION, TRIES, fault_server.packed(BODY, "gzip"), "incorrect header check"
    ),
    "gzip that is cut off": always(F.NOT_A_COMPLETION, TRIES, fault_server.packed(GZIP[:60], "gzip")),
    "an unknown packing": always(F.NOT_A_COMPLETION, TRIES, fault_server.packed(GZIP, "rot13"), "with no JSON"),
    "gzip in ten layers": always(F.NOT_A_COMPLETION, TRIES, fault_server.packed(GZIP, ", ".join(["gzip"] * 10))),
    "gzip of 2 GB": always(F.UNREADABLE, 1, fault_server.bomb(2048), "with more than 16 MB, and was read no further"),
    "more than 16 MB": always(F.UNREADABLE, 1, Action(b" " * (MOST_BYTES + 1)), "no reply is so long"),
    "an error of 17 MB": always(F.UNREADABLE, 1, Action(b"x" * (17 * 2**20), 500), "HTTP 500 with more than 16 MB"),
    # what the model says
    "a verdict": said(VERDICT, GOOD),
    "content in blocks": said([{"type": "text", "text": VERDICT[:9]}, {"type": "text", "text": VERDICT[9:]}], GOOD),
    "a verdict in a fence": said(f"```json\n{VERDICT}\n```", GOOD),
    "a verdict behind `<think>`": said(f"<think>3 or 4?</think>{VERDICT}", GOOD),
    "`finish_reason` missing": said(VERDICT, GOOD, finish_reason=None),
    "usage missing": said(VERDICT, GOOD, usage=None),
    "usage negative": said(VERDICT, GOOD, usage={"prompt_tokens": -1, "completion_tokens": -1}),
    "usage of 10^30 tokens": said(VERDICT, GOOD, usage={"prompt_tokens": 10**30, "completion_tokens": 1}),
    "usage of words": said(VERDICT, GOOD, usage="much"),
    "malformed logprobs": said(VERDICT, GOOD, logprobs={"content": [{"token": 7, "logprob": "x"}, None]}),
    "words, then a verdict": Row(GOOD, 2, [ok("A clear 5 of 5."), ok(VERDICT)]),
    "LaTeX in the reason": said(VERDICT.replace("as it", r"\( x \)"), GOOD),
    "half a surrogate in the reason": said(VERDICT.replace("as it", "\\ud800"), GOOD),
    "the key in the reason": said(VERDICT.replace("as it", CANARY), GOOD),
    "the key for the model's name": always(GOOD, 1, completion({**json.loads(BODY), "model": CANARY})),
    "the key among the logprobs": said(VERDICT, GOOD, logprobs={"content": [{"token": CANARY, "logprob": -1.0}]}),
    "the key for `finish_reason`": said(VERDICT, GOOD, finish_reason=CANARY),
    "no content": said(None, F.EMPTY),
    "empty content": said("", F.EMPTY),
    "content that is a number": said(4, F.EMPTY),
    "an image for content": said([{"type": "image_url", "image_url": {"url": "x"}}], F.EMPTY),
    "a tool call for content": message(F.EMPTY, content=None, tool_calls=[{"id": "1", "type": "function"}]),
    "reasoning alone": message(F.EMPTY, content="", reasoning_content="Hm."),
    "a refusal": always(F.REFUSED, 1, fault_server.refusal(f"I cannot take {CANARY}")),
    "`finish_reason: length`": said(VERDICT, F.TRUNCATED, finish_reason="length"),
    "`finish_reason: content_filter`": said(VERDICT, F.CONTENT_FILTER, finish_reason="content_filter"),
    "`finish_reason: error`": always(F.SERVER_ERROR, TRIES, ok(VERDICT, finish_reason="error")),
    "a verdict with an error beside it": always(
        F.NOT_A_COMPLETION, TRIES, completion({**json.loads(BODY), "error": {"message": WRONG}})
    ),
    "words": said("A clear 5 of 5.", F.UNREADABLE),
    "JSON cut off in the content": said(VERDICT[:30], F.UNREADABLE),
    "half a `<think>` block": said(f"<think>3 or 4? {VERDICT}", F.UNREADABLE),
    "two verdicts": said(VERDICT + VERDICT, F.UNREADABLE),
    "a key twice": said('{"correct": {"reason": "r", "score": 1, "score": 5}}', F.UNREADABLE),
    "`NaN` for a grade": said(graded("NaN"), F.UNREADABLE),
    "another schema": said('{"mood": "good"}', F.WRONG_SCHEMA),
    "a list of grades": said("[4]", F.WRONG_SCHEMA),
    "further keys": said(VERDICT[:-1] + ', "extra": 1}', F.WRONG_SCHEMA),
    "a grade as text": said(graded('"4"'), F.WRONG_SCHEMA),
    "a grade that is `true`": said(graded("true"), F.WRONG_SCHEMA),
    "a grade off the scale": said(graded(99), F.OUT_OF_RANGE),
    "a grade of 10^400": said(graded("1" + "0" * 400), F.UNREADABLE),
}


@dataclass(frozen=True, repr=False)
class Ended:
    """What became of every row: a score or an error, the requests, all that was logged, the cache, and memory."""

    came: Mapping[str, Score | JudgeError]
    requests: Counter[str]
    logged: str
    kept: bytes
    grown_kb: int


def judge(url: str, row: str, **settings: Any) -> LLMJudge:
    deadline_s = 6.0 if row in SILENT else 60.0  # within which a busy machine has sent its one request
    criteria = [Criterion("correct", "Is it right?")]
    return LLMJudge("m", criteria, base_url=url, retry=POLICY, deadline_s=deadline_s, **settings)


async def _ended(one: LLMJudge) -> Score | JudgeError:
    try:
        score = await one(prompt="p", completion="It is 4.")
    except JudgeError as error:
        return error
    assert isinstance(score, Score)
    return score


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """Each reply once, those that end by their deadline beside the others."""
    rows, asked, folder = list(ROWS), Counter[str](), tmp_path_factory.mktemp("faults")

    def script(number: int, body: Mapping[str, Any], headers: Mapping[str, str]) -> Action:
        row = rows[int(headers[":path"].split("/")[2])]
        asked[row] += 1
        sent = ROWS[row].sent
        return sent[min(asked[row], len(sent)) - 1]

    async def ask(server: fault_server.FaultServer) -> dict[str, Score | JudgeError]:
        cache = JudgeCache(folder / "judge.db")
        judges = {row: judge(f"{server.url}/{place}", row, cache=cache) for place, row in enumerate(rows)}
        silent = {row: asyncio.create_task(_ended(judges[row])) for row in SILENT}
        quick = {row: await _ended(one) for row, one in judges.items() if row not in SILENT}
        return quick | {row: await task for row, task in silent.items()}

    with pytest.MonkeyPatch.context() as patch, fault_server.FaultServer(script) as server:
        patch.setenv("OPENAI_API_KEY", CANARY)
        logs = _Logs()
        logging.getLogger().addHandler(logs)
        before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        try:
            came = asyncio.run(ask(server))
        finally:
            logging.getLogger().removeHandler(logs)
        grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb
    kept = b"".join(path.read_bytes() for path in folder.iterdir())
    return Ended(came, asked, "\n".join(logs.lines), kept, grown_kb)


class _Logs(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.getMessage()} {record.__dict__}")


@pytest.mark.parametrize("row", ROWS)
def test_a_reply_ends_as_the_table_says(ended: Ended, row: str) -> None:
    """As a score only where there is a verdict; else as its fault, in so many requests, with words that help."""
    came, expected = ended.came[row], ROWS[row]
    if isinstance(came, JudgeError):
        assert expected.ends == came.fault, came
        assert came.fault not in TRIED_AGAIN or expected.requests == came.requests
        assert expected.words in str(came)
    else:
        assert (expected.ends, expected.requests) == (came.value, came.metrics["requests"])
    assert expected.requests == ended.requests[row]


def test_the_key_is_seen_nowhere(ended: Ended) -> None:
    """Neither whole nor in a longer part, in no error, score, traceback, pickle, log or file of the cache."""
    shown = [ended.logged, ended.kept.decode("latin-1")]
    for came in ended.came.values():
        shown += [repr(came), str(came), pickle.dumps(came).decode("latin-1")]
        if isinstance(came, JudgeError):
            trace = traceback.TracebackException.from_exception(came, capture_locals=True)
            trace.stack = traceback.StackSummary.from_list([one for one in trace.stack if one.filename != __file__])
            shown += [repr(vars(came)), *trace.format()]
            assert came.__cause__ is None
    assert [] == [text for text in shown for part in (CANARY, CANARY[3:12], CANARY[-8:]) if part in text]


def test_giant_replies_leave_memory_bounded(ended: Ended) -> None:
    """Of 2 GB unpacked and twice 17 MB; the test's server and its own copies are counted too."""
    assert 400_000 > ended.grown_kb


def test_a_port_that_refuses_is_no_score() -> None:
    """Tried as often as any broken connection, and nothing was taken."""
    with fault_server.refused() as url:
        came = asyncio.run(_ended(judge(url, "")))
    assert isinstance(came, JudgeError)
    assert (Fault.CONNECTION, TRIES, True) == (came.fault, came.requests, came.free)
    assert "check that the server runs" in str(came)


def table() -> list[str]:
    """Return the table of the reference: the replies by what they come to and in how many requests."""
    by_end: dict[tuple[str, int], list[str]] = {}
    for row, (ends, requests, *_) in ROWS.items():
        by_end.setdefault((f"`{ends}`" if isinstance(ends, Fault) else "a score", requests), []).append(row)
    lines = [f"| {end} | {requests} | {'; '.join(rows)} |" for (end, requests), rows in by_end.items()]
    return ["| comes to | requests | what the server says |", "|---|---|---|", *sorted(lines)]


def test_the_reference_has_the_table() -> None:
    """What the page says of each reply is what these tests saw."""
    assert 60 <= len(ROWS)
    assert "\n".join(table()) in PAGE.read_text(), "\n".join(["the table is:", *table()])
