"""The cache of replies: its key, what it keeps, its bound, sharing, and what happens when it breaks."""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import pickle
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builtin_rewards.judge.cache import JudgeCache, question_key
from builtin_rewards.judge.endpoint.values import Reply, Request, Token, Usage
from builtin_rewards.judge.errors import JudgeSetupError

_REQUEST = Request("m", ({"role": "user", "content": "grade this"},), {"max_tokens": 10, "temperature": 0.0})
_REPLY = Reply("4", "m-2026-01-01", usage=Usage(10, 2, 3), requests=2)
_ROOT = Path(__file__).parents[3]


@pytest.fixture
def cache(tmp_path: Path) -> JudgeCache:
    return JudgeCache(tmp_path / "judge.db")


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


_TEXTS = st.text(st.characters(exclude_categories=()), max_size=8)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
    max_leaves=6,
)
_QUESTIONS = st.tuples(
    st.none() | _TEXTS,
    st.builds(
        Request,
        _TEXTS,
        st.lists(st.fixed_dictionaries({"role": _TEXTS, "content": _TEXTS}), max_size=3).map(tuple),
        st.dictionaries(_TEXTS, _VALUES, max_size=3),
        st.integers(0, 9),
    ),
    _TEXTS,
)

"""The key needs no file."""


@settings(max_examples=50)
@given(_QUESTIONS, _QUESTIONS)
def test_two_questions_have_one_key_only_if_they_are_one(one: Any, other: Any) -> None:
    """Whatever differs, the key differs; lone surrogates and NUL included."""
    same = json.dumps(_plain(one), sort_keys=True) == json.dumps(_plain(other), sort_keys=True)
    assert same == (question_key(*one) == question_key(*other))


def _plain(question: Any) -> Any:
    base_url, request, version = question
    return [base_url, dataclasses.asdict(request), version]


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
    assert 64 == len(key)


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
    assert cache.put("k", reply)
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
    assert not cache.put("k", reply)
    assert cache.get("k") is None


def test_the_first_reply_under_a_key_stays(cache: JudgeCache) -> None:
    """Two processes that asked at once then read the same."""
    assert [True, False] == [cache.put("k", _REPLY), cache.put("k", Reply("5", "m"))]
    reply = cache.get("k")
    assert reply is not None
    assert "4" == reply.text


def test_stats_tell_what_is_kept_and_what_was_found(cache: JudgeCache) -> None:
    """Entries of the file, hits and misses of this process."""
    cache.put("a", _REPLY)
    cache.put("b", _REPLY)
    for key in ("a", "a", "c"):
        cache.get(key)
    assert (2, 2, 1) == cache.stats()


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
    assert (1, 0) == copy.stats()[1:]


@pytest.mark.parametrize("bound", [0, -1, 1.5, True, None, "1GB"], ids=repr)
def test_a_bound_that_is_none_is_refused(tmp_path: Path, bound: Any) -> None:
    """The message names the setting and the value."""
    with pytest.raises(JudgeSetupError, match=f"max_bytes={bound!r}"):
        JudgeCache(tmp_path / "judge.db", max_bytes=bound)


def test_an_unusable_path_is_refused_when_the_cache_is_made(tmp_path: Path) -> None:
    """A folder, for one."""
    with pytest.raises(JudgeSetupError, match=r"JudgeCache\(path=\.\.\.\): .* is a folder"):
        JudgeCache(tmp_path)


# --- its bound


def test_no_reply_is_kept_beyond_the_bound(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What is there stays, for it was paid for; one warning says so."""
    cache = JudgeCache(tmp_path / "judge.db", max_bytes=50_000)
    with caplog.at_level(logging.WARNING):
        kept = [cache.put(str(number), Reply("x" * 1000, "m")) for number in range(400)]
        cache.close()  # what is in the log comes into the file
        kept += [cache.put(f"more {number}", Reply("x" * 1000, "m")) for number in range(2)]
    assert (True, False) == (kept[0], kept[-1])
    assert cache.get("0") is not None
    (record,) = caplog.records
    assert "has its max_bytes=50000" in record.getMessage()


# --- shared


_WRITER = """
import sys
from builtin_rewards.judge import cache as caching
from builtin_rewards.judge.cache import JudgeCache
from builtin_rewards.judge.endpoint.values import Reply
caching._BUSY_S = 60.0  # one that stands still in the middle of a put is waited for
cache, who = JudgeCache(sys.argv[1]), int(sys.argv[2])
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
    cache = JudgeCache(path)
    assert 360 == cache.stats().entries


def test_threads_share_it(cache: JudgeCache) -> None:
    """Each thread finds what all have put."""

    def use(who: int) -> None:
        for number in range(20):
            cache.put(f"{who}-{number}", Reply(f"{who} {number}", "m"))

    threads = [threading.Thread(target=use, args=(who,)) for who in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    texts = [reply.text for who in range(8) for number in range(20) if (reply := cache.get(f"{who}-{number}"))]
    assert [f"{who} {number}" for who in range(8) for number in range(20)] == texts


# --- broken


@pytest.mark.parametrize(
    "body",
    [
        "",
        "not JSON",
        "[]",
        "null",
        '["4", "m", null]',
        '[4, "m", null, null]',
        '["4", "m", [1], null]',
        '["4","m",0,0]',
    ],
)
def test_a_broken_entry_is_a_miss(cache: JudgeCache, body: str) -> None:
    """It can then be put again."""
    cache.put("k", _REPLY)
    connection = sqlite3.connect(cache.path)
    with connection:
        connection.execute("UPDATE replies SET body = ?", (body,))
    connection.close()
    assert cache.get("k") is None
    assert cache.put("k", _REPLY)
    assert cache.get("k") is not None


def test_a_broken_file_answers_as_an_empty_cache_and_says_so_once(
    cache: JudgeCache, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing is raised into a judgement."""
    cache.put("k", _REPLY)
    cache.close()
    cache.path.write_bytes(b"garbage " * 1000)
    with caplog.at_level(logging.WARNING):
        assert [None, None, False] == [cache.get("k"), cache.get("k"), cache.put("l", _REPLY)]
    assert (None, 0, 2) == cache.stats()
    (record,) = caplog.records
    assert "judgements go on without it" in record.getMessage()
    assert "name another and keep this: its replies were paid for" in record.getMessage()
    assert str(cache.path) in record.getMessage()


def test_a_locked_file_answers_as_an_empty_cache(cache: JudgeCache, caplog: pytest.LogCaptureFixture) -> None:
    """After a short wait, and without waiting again the next time."""
    other = sqlite3.connect(cache.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with caplog.at_level(logging.WARNING):
        assert [False] * 50 == [cache.put(str(number), _REPLY) for number in range(50)]
    other.close()
    assert 1 == len(caplog.records)


_FULL = """
import resource, sys
from builtin_rewards.judge.cache import JudgeCache
from builtin_rewards.judge.endpoint.values import Reply
cache = JudgeCache(sys.argv[1])
cache.put("before", Reply("x", "m"))
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
kept = [cache.put(str(number), Reply("x" * 5000, "m")) for number in range(100)]
print(kept[0], kept[-1], cache.stats().misses)
"""


def test_a_full_disk_breaks_no_judgement(tmp_path: Path) -> None:
    """Puts fail quietly but for one warning; what was kept is still there afterwards."""
    program = "import logging; logging.basicConfig(stream=__import__('sys').stdout, format='%(message).16s')\n" + _FULL
    (out,) = _run((program, str(tmp_path / "judge.db")))
    assert ["the judge cache ", "True False 0"] == out.splitlines()
    cache = JudgeCache(tmp_path / "judge.db")
    assert cache.get("before") is not None


def test_the_file_is_for_its_owner_alone(cache: JudgeCache) -> None:
    """Completions may be private."""
    cache.put("k", _REPLY)
    modes = {entry.stat().st_mode & 0o777 for entry in os.scandir(cache.path.parent)}
    assert {0o600} == modes


def test_a_cache_that_can_only_be_read_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that was paid for and is shared: what it has is found, nothing is kept, and nobody is warned."""
    first = JudgeCache(tmp_path / "judge.db")
    first.put("k", _REPLY)
    first.close()
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    cache = JudgeCache(tmp_path / "judge.db")
    assert (_REPLY.text, None) == (cache.get("k").text, cache.get("l"))  # type: ignore[union-attr]  # it is there
    assert not cache.put("l", _REPLY)
    assert (1, 1, 1) == (cache.stats().entries, cache.stats().hits, cache.stats().misses)
