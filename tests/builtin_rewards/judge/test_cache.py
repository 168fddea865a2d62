"""The cache of replies: its key, what it keeps, its bound, sharing, and what happens when it breaks."""

from __future__ import annotations

import dataclasses
import logging
import os
import pickle
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from builtin_rewards.endpoint.errors import JudgeSetupError
from builtin_rewards.endpoint.messages import Reply, Request, Token, Usage
from builtin_rewards.judge.cache import JudgeCache, question_key

_REQUEST = Request("m", ({"role": "user", "content": "grade this"},), {"max_tokens": 10, "temperature": 0.0})
_REPLY = Reply("4", "m-2026-01-01", usage=Usage(10, 2, 3), requests=2)
_ROOT = Path(__file__).parents[3]


@pytest.fixture
def cache(tmp_path: Path) -> JudgeCache:
    made = JudgeCache(tmp_path / "judge.db")
    made.set_up()
    return made


def _run(*programs: tuple[str, ...]) -> list[str]:
    """Run Python programs with their arguments side by side and give what they print."""
    started = [
        subprocess.Popen([sys.executable, "-c", *program], cwd=_ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for program in programs
    ]
    ended = [process.communicate(timeout=300) for process in started]
    assert [b""] * len(ended) == [err for _, err in ended]
    return [out.decode() for out, _ in ended]


# --- the key


_SCHEMA = {"type": "json_schema", "json_schema": {"name": "verdict", "schema": {"properties": {"a": {"maximum": 5}}}}}
_OTHER_SCHEMA = {"type": "json_schema", "json_schema": {"name": "verdict", "schema": {"properties": {"a": {}}}}}


@pytest.mark.parametrize(
    ("base_url", "change", "version"),
    [
        pytest.param("http://b/v1", {}, "1", id="server"),
        pytest.param(None, {}, "1", id="no server named"),
        pytest.param("http://a/v1", {"model": "n"}, "1", id="model"),
        pytest.param("http://a/v1", {"messages": ({"role": "user", "content": "Grade this"},)}, "1", id="message"),
        pytest.param("http://a/v1", {"messages": ({"role": "system", "content": "grade this"},)}, "1", id="role"),
        pytest.param("http://a/v1", {"messages": ()}, "1", id="no message"),
        pytest.param("http://a/v1", {"messages": ({"role": "user", "content": "\ud800\0"},)}, "1", id="odd text"),
        pytest.param("http://a/v1", {"options": {**_REQUEST.options, "temperature": 0.1}}, "1", id="temperature"),
        pytest.param("http://a/v1", {"options": {**_REQUEST.options, "seed": 1}}, "1", id="one more option"),
        pytest.param("http://a/v1", {"options": {**_REQUEST.options, "response_format": _SCHEMA}}, "1", id="schema"),
        pytest.param(
            "http://a/v1", {"options": {**_REQUEST.options, "response_format": _OTHER_SCHEMA}}, "1", id="inside it"
        ),
        pytest.param("http://a/v1", {"index": 1}, "1", id="sample"),
        pytest.param("http://a/v1", {}, "2", id="prompt version"),
    ],
)
def test_each_part_changes_the_key(base_url: str | None, change: Any, version: str) -> None:
    """Also a bound deep inside a schema of the same name."""
    key = question_key("http://a/v1", _REQUEST, "1")
    assert key != question_key(base_url, dataclasses.replace(_REQUEST, **change), version)
    assert (
        "579c76baf1e45d0a87124a43e99de4068c16385b39a0588bc90922830b7131e8" == key
    )  # or replies that were paid for are found no more


def test_the_order_of_options_does_not_change_the_key() -> None:
    """Nor does the process: it is the hash of canonical JSON."""
    turned = dataclasses.replace(_REQUEST, options=dict(reversed(_REQUEST.options.items())))
    assert question_key("u", _REQUEST, "1") == question_key("u", turned, "1")


def test_a_request_that_is_no_json_is_refused() -> None:
    """A key made of its memory address would never be found again."""
    with pytest.raises(JudgeSetupError, match="use plain values"):
        question_key("u", dataclasses.replace(_REQUEST, options={"response_format": object()}), "1")


# --- what is kept


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(_REPLY, id="plain"),
        pytest.param(Reply("no usage", "m"), id="no usage"),
        pytest.param(Reply("nul \0, surrogate \ud800, \u2028, é", "m"), id="odd text"),
        pytest.param(
            Reply("5", "m", tokens=(Token("5", -0.1, (("5", -0.1), ("\udc00", float("-inf")))), Token("", -3.5))),
            id="log-probabilities",
        ),
    ],
)
def test_a_reply_comes_back_as_it_was(cache: JudgeCache, reply: Reply) -> None:
    """Except that no request was sent for it."""
    assert cache.get("k") is None
    cache.put("k", reply)
    assert dataclasses.replace(reply, requests=0) == cache.get("k")


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(Reply("cut", "m", finish_reason="length"), id="truncated"),
        pytest.param(Reply("cut", "m", finish_reason="content_filter"), id="filtered"),
        pytest.param(Reply("?", "m", finish_reason=None), id="no finish reason"),
        pytest.param(Reply("", "m", refusal="I cannot grade this"), id="refusal"),
        pytest.param(Reply("4", "m", refusal=""), id="refusal without words"),
        pytest.param(Reply("", "m"), id="empty"),
    ],
)
def test_what_is_no_whole_answer_is_not_kept(cache: JudgeCache, reply: Reply) -> None:
    """So it is asked again."""
    cache.put("k", reply)
    assert cache.get("k") is None


def test_the_first_reply_under_a_key_stays(cache: JudgeCache) -> None:
    """Two processes that asked at once then read the same."""
    cache.put("k", _REPLY)
    cache.put("k", Reply("5", "m"))
    reply = cache.get("k")
    assert reply is not None
    assert "4" == reply.text


def test_it_pickles_as_its_settings_with_an_absolute_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that runs in another folder finds the same file."""
    monkeypatch.chdir(tmp_path)
    cache = JudgeCache("judge.db", max_bytes=500_000)
    cache.put("k", _REPLY)
    pickled = pickle.dumps(cache)
    assert len(pickled) < 3000
    monkeypatch.chdir("/")
    copy = pickle.loads(pickled)
    assert (tmp_path / "judge.db", 500_000) == (copy.path, copy.max_bytes)
    assert copy.get("k") is not None


@pytest.mark.parametrize(
    ("path", "bound"), [*(("judge.db", bound) for bound in (0, -1, 1.5, True, None, "1GB")), (None, 1)], ids=repr
)
def test_a_setting_that_is_none_is_refused(path: Any, bound: Any) -> None:
    """The message names the settings and the values."""
    with pytest.raises(JudgeSetupError, match=rf"path={path!r}, max_bytes={bound!r}"):
        JudgeCache(path, max_bytes=bound)


def test_an_unusable_path_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    """By what a runtime calls first, and by a first use without one; making the settings touches nothing."""
    cache = JudgeCache(tmp_path)
    for use in (cache.set_up, lambda: cache.get("k"), lambda: pickle.dumps(cache)):
        with pytest.raises(JudgeSetupError, match=r"JudgeCache\(path=\.\.\.\): .*name a file in a writable place"):
            use()


# --- its bound


def test_no_reply_is_kept_beyond_the_bound(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What is there stays, for it was paid for; one warning says so."""
    cache = JudgeCache(tmp_path / "judge.db", max_bytes=50_000)
    with caplog.at_level(logging.WARNING):
        for number in range(400):
            cache.put(str(number), Reply("x" * 1000, "m"))
    assert cache.get("0") is not None
    assert cache.get("399") is None
    cache.close()  # what is in the log comes into the file
    assert 50_000 <= cache.path.stat().st_size < 60_000
    (record,) = caplog.records
    assert "has its max_bytes=50000" in record.getMessage()


# --- shared


_WRITER = """
import sys
from builtin_rewards.judge.cache import JudgeCache
from builtin_rewards.endpoint.messages import Reply
cache, who = JudgeCache(sys.argv[1]), int(sys.argv[2])
JudgeCache.busy_s = 60.0  # one that stands still in the middle of a put is waited for
wrong = 0
for number in range(120):
    cache.put(f"{who}-{number}", Reply(f"{who} {number}" * 30, "m"))
    for other in range(3):
        found = cache.get(f"{other}-{number}")
        wrong += found is not None and found.text != f"{other} {number}" * 30
print(wrong, all(cache.get(f"{who}-{number}") for number in range(100, 120)))
"""


def test_processes_share_it(tmp_path: Path) -> None:
    """Three make the file, write and read at once: each reply belongs to its key."""
    path = str(tmp_path / "judge.db")
    assert ["0 True\n"] * 3 == _run(*((_WRITER, path, str(who)) for who in range(3)))
    assert [(360,)] == JudgeCache(path).rows("SELECT count(*) FROM replies")


# --- broken


@pytest.mark.parametrize("body", ["", "not JSON", "[]", "null", '["4", "m", [1], null]', '["4","m",0,0]'], ids=repr)
def test_a_broken_entry_is_a_miss(cache: JudgeCache, body: str) -> None:
    """It is asked about again."""
    cache.put("k", _REPLY)
    cache.rows("UPDATE replies SET body = ?", (body,))
    assert cache.get("k") is None


def test_a_broken_file_answers_as_an_empty_cache_and_says_so(
    cache: JudgeCache, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing is raised into a judgement."""
    cache.put("k", _REPLY)
    cache.close()
    cache.path.write_bytes(b"garbage " * 1000)
    with caplog.at_level(logging.WARNING):
        assert [None, None] == [cache.get("k"), cache.get("k")]
        cache.put("l", _REPLY)
    (record,) = caplog.records
    assert "judgements go on without it" in record.getMessage()
    assert "name another and keep this: its replies were paid for" in record.getMessage()
    assert str(cache.path) in record.getMessage()


def test_a_locked_file_answers_as_an_empty_cache(cache: JudgeCache, caplog: pytest.LogCaptureFixture) -> None:
    """After a short wait, and without waiting again the next time."""
    other = sqlite3.connect(cache.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with caplog.at_level(logging.WARNING):
        for number in range(50):
            cache.put(str(number), _REPLY)
    other.close()
    assert [(0,)] == cache.rows("SELECT count(*) FROM replies")
    assert 1 == len(caplog.records)


_FULL = """
import resource, sys
from builtin_rewards.judge.cache import JudgeCache
from builtin_rewards.endpoint.messages import Reply
cache = JudgeCache(sys.argv[1])
cache.put("before", Reply("x", "m"))
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
for number in range(100):
    cache.put(str(number), Reply("x" * 5000, "m"))
"""


def test_a_full_disk_breaks_no_judgement(tmp_path: Path) -> None:
    """Puts fail quietly but for one warning; what was kept is still there afterwards."""
    program = "import logging; logging.basicConfig(stream=__import__('sys').stdout, format='%(message).16s')\n" + _FULL
    (out,) = _run((program, str(tmp_path / "judge.db")))
    assert ["the judge cache "] == out.splitlines()
    cache = JudgeCache(tmp_path / "judge.db")
    assert [True, True, False] == [cache.get(key) is not None for key in ("before", "0", "99")]


def test_a_cache_that_can_only_be_read_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """One that was paid for and is shared: what it has is found, nothing is kept, and nobody is warned."""
    first = JudgeCache(tmp_path / "judge.db")
    first.put("k", _REPLY)
    first.close()
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    cache = JudgeCache(tmp_path / "judge.db")
    assert (_REPLY.text, None) == (cache.get("k").text, cache.get("l"))  # type: ignore[union-attr]  # it is there
    cache.put("l", _REPLY)
    assert cache.get("l") is None
    assert [] == caplog.records
