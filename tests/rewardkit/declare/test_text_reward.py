"""Rewards given as text: they behave as any other, and nothing of them runs outside a jail."""

from __future__ import annotations

import inspect
import pickle
import sys
import textwrap
from pathlib import Path
from typing import Any, Literal

import pytest
from patience import in_time
from slow_start import DEADLINE_S, slow_python

from rewardkit import (
    Cause,
    CoercionError,
    ConfigError,
    Outcome,
    RewardDefinitionError,
    RewardFunctionsConfig,
    RewardTextError,
    Rollout,
    Runtime,
    Score,
    Status,
    clip,
    reward_from_source,
)
from rewardkit.jailed.jail import close_shared
from sandbox.errors import RestrictedSourceError

pytestmark = pytest.mark.usefixtures("shared_jail")


def _text(text: str) -> str:
    return textwrap.dedent(text).strip("\n") + "\n"


CORRECT = _text('''
    import re

    _NUMBER = re.compile(r"-?\\d+")


    def _last_number(text):
        found = _NUMBER.findall(text)
        return int(found[-1]) if found else None


    def correct(completion: str, answer: int, worth: list[float] | None = None) -> float:
        """The last number is the answer."""
        print("looking at", repr(completion))
        if _last_number(completion) == answer:
            return sum(worth) if worth else 1.0
        return 0.0
''')


@pytest.mark.parametrize("lane", ["inline", "worker"])
def test_it_scores_as_any_other(lane: str) -> None:
    """Columns that are strings are coerced, optional ones may be absent, prints are in the logs."""
    correct = reward_from_source(CORRECT)
    rollouts = [
        Rollout("2+2=", "that is 4", {"answer": "4", "other": "x"}),
        Rollout("2+2=", "5", {"answer": "4"}),
        Rollout("2+2=", "4", {"answer": "4", "worth": "[0.25, 0.5]"}),
        Rollout("2+2=", "4", {"answer": "four"}),
        Rollout("2+2=", [{"role": "assistant", "content": "it is 4"}], {"answer": "4"}),
    ]
    with Runtime([correct], lane=lane, workers=2) as runtime:
        outcomes = runtime.score(rollouts)["correct"]
    assert [1.0, 0.0, 0.75, 0.0, 1.0] == [outcome.score for outcome in outcomes]
    assert (Cause.COERCION, "column 'answer' of example 3: expected int, got 'four'") == (
        outcomes[3].cause,
        outcomes[3].error,
    )
    assert ["looking at 'that is 4'\n", "looking at 'it is 4'\n"] == [outcomes[0].logs, outcomes[4].logs]
    assert {correct.version} == {outcome.version for outcome in outcomes}


def test_it_is_described_as_any_other() -> None:
    """Name, docstring, signature, columns and options are those of the text and of the call."""
    correct = reward_from_source(CORRECT, timeout_s=2.0, score_range=(0, 1), default=None)
    assert ("correct", "correct", "The last number is the answer.") == (correct.name, correct.__name__, correct.__doc__)
    assert ("answer",) == correct.spec.required_columns
    assert ["completion", "answer", "worth"] == list(inspect.signature(correct.function).parameters)
    assert {"completion": str, "answer": int, "worth": list[float] | None} == dict(correct.spec.hints)
    assert (2.0, (0.0, 1.0), None) == (correct.options.timeout_s, correct.options.score_range, correct.options.default)


def test_it_is_called_as_the_function_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    """By position or keyword, with columns coerced; what it prints is printed."""
    correct = reward_from_source(CORRECT)
    assert 1.0 == correct("it is 4", answer="4")
    assert "looking at 'it is 4'\n" == capsys.readouterr().out
    with pytest.raises(CoercionError, match="column 'answer'"):
        correct("4", answer="four")
    with pytest.raises(TypeError):
        correct.function("4", 4)
    with pytest.raises(TypeError, match=r"correct\(\) lacks 'answer'; it takes completion, answer, worth"):
        correct("4")


def test_it_travels_and_composes() -> None:
    """It pickles as text, keeps its version and options, and is part of compositions."""
    correct = reward_from_source(CORRECT, timeout_s=3.0).with_options(name="right")
    again = pickle.loads(pickle.dumps(correct))
    assert ("right", 3.0, correct.version) == (again.name, again.options.timeout_s, again.version)
    assert 1.0 == again(completion="4", answer=4)
    whole = clip(0.5 * correct + 0.5 * reward_from_source("def one():\n    return 1\n"), 0, 1).named("whole")
    with Runtime([whole], lane="inline") as runtime:
        assert [0.5] == runtime.score([Rollout("p", "5", {"answer": "4"})]).totals


def test_its_version_is_that_of_the_text() -> None:
    """Another text, another function of it or another option is another version; a rebuilt one is not."""
    text = "def a():\n    return 1\n\ndef b():\n    return 1\n"
    versions = [
        reward_from_source(text, "a").version,
        reward_from_source(text, "b").with_options(name="a").version,
        reward_from_source(text + "# more\n", "a").version,
        reward_from_source(text, "a", retries=1).version,
    ]
    assert 4 == len(set(versions))
    assert versions[0] == reward_from_source(text, "a").version


def _outcome(body: str, *, lane: str = "inline", **options: Any) -> Outcome:
    """What comes of a text whose function ``f(completion)`` has that body."""
    text = "def f(completion):\n" + textwrap.indent(_text(body), "    ")
    with Runtime([reward_from_source(text, **options)], lane=lane, workers=1, max_infrastructure_rate=1.0) as runtime:
        (outcome,) = runtime.score([Rollout("p", "c")])["f"]
    return outcome


SCORES: dict[str, tuple[str, tuple[Any, ...]]] = {
    "an int": ("return 3", (Status.SCORED, 3.0, None, {})),
    "a bool": ("return True", (Status.SCORED, 1.0, None, {})),
    "a Fraction": ("import fractions\nreturn fractions.Fraction(1, 4)", (Status.SCORED, 0.25, None, {})),
    "None": ("return None", (Status.SKIPPED, None, None, {})),
    "nothing": ("pass", (Status.SKIPPED, None, None, {})),
    "a Score": ("return Score(0.5, 'why', {'n': 2})", (Status.SCORED, 0.5, "why", {"n": 2.0})),
    "a Score by keyword": ("return Score(value=1, metrics={'n': 2})", (Status.SCORED, 1.0, None, {"n": 2.0})),
    "a Score of None": ("return Score(None, reason='no sum')", (Status.SKIPPED, None, "no sum", {})),
}


@pytest.mark.parametrize(("body", "expected"), SCORES.values(), ids=SCORES)
def test_what_it_returns_is_the_outcome(body: str, expected: tuple[Any, ...]) -> None:
    """A number, None or a Score, as for every reward."""
    outcome = _outcome(body)
    assert expected == (outcome.status, outcome.score, outcome.reason, outcome.metrics)


BAD_RETURNS = {
    "text": ("return '1'", "returned str '1'; expected a finite number, a Score or None"),
    "a list": ("return [1] * 500", "returned list [1, 1, 1"),
    "nan": ("return float('nan')", "returned nan; expected a finite number"),
    "infinity": ("return 10 ** 400 * 1.5 if False else 1e308 * 10", "returned inf; expected a finite number"),
    "a huge int": ("return 10 ** 400", "returned int too large for a float"),
    "a huge Fraction": (
        "from fractions import Fraction\nreturn Fraction(10 ** 400)",
        "returned Fraction too large for",
    ),
    "a huge Decimal": (
        "from decimal import Decimal\nreturn Decimal('1e400')",
        "returned Decimal too large for a float",
    ),
    "a huge Decimal in a Score": (
        "from decimal import Decimal\nreturn Score(Decimal('1e400'))",
        "returned Score with the value Decimal too large for a float",
    ),
    "a Decimal that signals": (
        "from decimal import Decimal\nreturn Decimal('sNaN')",
        "returned Decimal Decimal('sNaN')",
    ),
    "an object": ("class Odd:\n    pass\nreturn Odd()", "returned Odd <"),
    "itself": ("return Score", "returned type <class"),
    "a Score inside a Score": ("return Score(Score(1))", "returned Score with the value Score Score(1,"),
    "a Score of text": ("return Score('1')", "returned Score with the value str '1'"),
    "a metric of text": ("return Score(1, metrics={'a': 'b'})", "returned Score with the metric 'a'=str 'b'"),
    "metrics that are none": ("return Score(1, metrics=3)", "returned Score with metrics=int 3"),
    "a metric of nan": ("return Score(1, metrics={'a': float('nan')})", "returned metric 'a'=float nan"),
    "out of its range": ("return 2", "returned 2.0, outside score_range=(0.0, 1.0)"),
}


@pytest.mark.parametrize(("body", "words"), BAD_RETURNS.values(), ids=BAD_RETURNS)
def test_what_is_no_score_is_a_bad_return(body: str, words: str) -> None:
    """The cause is bad_return, and the message shows the value."""
    outcome = _outcome(body, score_range=(0, 1), default=-1.0)
    assert (Status.FAILED, Cause.BAD_RETURN, -1.0) == (outcome.status, outcome.cause, outcome.score)
    assert words in (outcome.error or "")


FAILURES: dict[str, tuple[str, Cause, str]] = {
    "an exception": ("x = 1\nreturn {}['key']", Cause.EXCEPTION, "KeyError: 'key' (line 3)"),
    "an exception of its own": (
        "class OddError(Exception):\n    pass\nraise OddError('no sum', 3)",
        Cause.EXCEPTION,
        "OddError: ('no sum', 3) (line 4)",
    ),
    "an exit": ("raise SystemExit(0)", Cause.EXCEPTION, "SystemExit: 0 (line 2)"),
    "recursion": ("def g():\n    return g()\nreturn g()", Cause.EXCEPTION, "RecursionError: "),
    "too much memory": ("return len([0] * 10 ** 10)", Cause.EXCEPTION, "MemoryError (line 2)"),
    "what only shows at run time": (
        "return '{0.__class__}'.format(1)",
        Cause.EXCEPTION,
        "AttributeError: the attribute '__class__' is not available here (line 2)",
    ),
    "a loop": ("while True:\n    pass", Cause.TIMEOUT, "no answer within 0.5 s"),
    "a loop that catches": (
        "while True:\n    try:\n        while True:\n            pass\n    except BaseException:\n        pass",
        Cause.TIMEOUT,
        "no answer within 0.5 s",
    ),
    "a regular expression without end": (
        "import re\nre.match(r'(a+)+$', 'a' * 60 + 'b')",
        Cause.TIMEOUT,
        "no answer within 0.5 s",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("body", "cause", "words"), FAILURES.values(), ids=FAILURES)
def test_what_goes_wrong_in_it_is_a_failure_with_its_cause(body: str, cause: Cause, words: str) -> None:
    """The default stands in; the error has type, message and line of the text."""
    options: dict[str, Any] = {"timeout_s": 0.5} if cause is Cause.TIMEOUT else {}
    outcome = _outcome(body, default=0.25, **options)
    assert (Status.FAILED, cause, 0.25) == (outcome.status, outcome.cause, outcome.score)
    assert (outcome.error or "").startswith(words)


def test_its_traceback_shows_its_own_lines() -> None:
    """The frames are the text's, with their lines, and none of ours."""
    text = _text("""
        def _half(n):
            return 1 / n


        def f(completion):
            return _half(0)
    """)
    with Runtime([reward_from_source(text)], lane="inline") as runtime:
        (outcome,) = runtime.score([Rollout("p", "c")])["f"]
    assert "ZeroDivisionError: division by zero (line 2)" == outcome.error
    assert [
        'File "<text of f>", line 6, in f',
        "return _half(0)",
        'File "<text of f>", line 2, in _half',
        "return 1 / n",
    ] == [line.strip() for line in (outcome.traceback or "").splitlines()]


def test_a_traceback_is_short_whatever_the_jail_sends() -> None:
    """A text that had got hold of its jail could tell of a million frames at its longest line."""
    made = reward_from_source("def f(completion):\n    return [" + "1, " * 20_000 + "]\n")
    error = made.function._own_error(["x"] * 9, {"y": 1}, [[2, "f"]] * 100_000)  # type: ignore[attr-defined]
    assert error.trace is not None
    assert 8 == error.trace.count("File")
    assert len(error.trace) < 30_000
    assert " (line 2)" == str(error)


def test_a_deadline_in_the_jail_costs_no_worker() -> None:
    """The jail ends what takes too long, so the worker lives on; what was printed before is known."""
    text = "def f(completion):\n    print('before')\n    while completion == 'loop':\n        pass\n    return 1\n"

    def scored(time_s: float) -> tuple[Outcome, Outcome, bool]:
        with Runtime([reward_from_source(text, timeout_s=time_s)], workers=1) as runtime:
            runtime.score([Rollout("p", "c")])
            before = runtime.processes
            loop, fine = runtime.score([Rollout("p", "loop"), Rollout("p", "c")])["f"]
            assert loop.error == f"no answer within {time_s:g} s"
            return loop, fine, before == runtime.processes

    loop, fine, lives = in_time(scored, lambda found: found[2] and found[1].score is not None and found[0].logs, 2.0)
    assert lives
    assert (Cause.TIMEOUT, "before\n") == (loop.cause, loop.logs)
    assert (1.0, "before\n") == (fine.score, fine.logs)


def test_the_start_of_the_jail_is_not_the_texts_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Called as a plain function, its first call has all its time, however long the jail takes to start."""

    def error(time_s: float) -> str:
        monkeypatch.setattr(sys, "executable", slow_python(tmp_path, time_s))
        close_shared()
        with pytest.raises(RewardTextError) as caught:
            reward_from_source("def f(completion):\n    return 1 / 0\n", timeout_s=time_s)(completion="c")
        return str(caught.value)

    assert "ZeroDivisionError: division by zero (line 2)" == in_time(error, lambda found: "Zero" in found, DEADLINE_S)


def test_failed_calls_are_retried_as_asked() -> None:
    """retries counts for a text as for any reward."""
    assert 3 == _outcome("raise ValueError('again')", retries=2).attempts
    assert 1 == _outcome("return 'odd'", retries=2).attempts


def test_a_flood_of_prints_is_cut_and_costs_no_score() -> None:
    """The log keeps its beginning and counts the rest."""
    outcome = _outcome("for n in range(20_000):\n    print('x' * 99)\nreturn 1")
    assert 1.0 == outcome.score
    assert outcome.logs.startswith("xxx")
    assert outcome.logs.endswith("[... 1,984,000 more characters dropped]")


def test_many_calls_run_at_once_where_concurrency_says_so() -> None:
    """On the lane of threads each call has a jail of its own, and scores stay in order."""
    text = "def f(completion: str):\n    print(completion)\n    return len(completion)\n"
    rollouts = [Rollout("p", "x" * (n + 1)) for n in range(40)]
    with Runtime([reward_from_source(text, concurrency=4)], workers=1) as runtime:
        batch = runtime.score(rollouts)
    assert [float(n + 1) for n in range(40)] == batch.totals
    assert [rollout.completion + "\n" for rollout in rollouts] == [outcome.logs for outcome in batch["f"]]


def test_equal_calls_of_a_cached_text_run_once() -> None:
    """cache=True serves equal calls from one."""
    text = "def f(completion: str):\n    return len(completion)\n"
    with Runtime([reward_from_source(text, cache=True)], lane="inline") as runtime:
        outcomes = runtime.score([Rollout("p", "ab"), Rollout("p", "ab")])["f"]
    assert [(2.0, False), (2.0, True)] == [(outcome.score, outcome.cached) for outcome in outcomes]


def test_calls_share_nothing() -> None:
    """What one call leaves in its globals, the next does not see."""
    text = "SEEN = []\ndef f(completion: str):\n    SEEN.append(1)\n    return len(SEEN)\n"
    with Runtime([reward_from_source(text)], workers=1) as runtime:
        assert [1.0, 1.0, 1.0] == runtime.score([Rollout("p", "c")] * 3).totals


def test_every_reserved_name_is_filled() -> None:
    """prompt, messages, completion_ids, example, step, epoch and other columns are there for a text too."""
    text = _text("""
        def f(prompt, messages, completion_ids, example: dict, step, epoch, **rest: int):
            return Score(len(messages), reason=f"{prompt} {completion_ids} {example} {step} {epoch} {rest}")
    """)
    with Runtime([reward_from_source(text)], lane="inline") as runtime:
        (outcome,) = runtime.score([Rollout("p", "c", {"a": "1"}, [5, 6])], step=3, epoch=0.5)["f"]
    assert (2.0, "p [5, 6] {'a': '1'} 3 0.5 {'a': 1}") == (outcome.score, outcome.reason)


def test_a_value_that_cannot_enter_a_jail_is_named() -> None:
    """A column of a typed dataset that holds an object is a coercion error."""
    rollout = Rollout("p", "c", {"given": Path("x")})
    with Runtime([reward_from_source("def f(given):\n    return 1\n")], lane="inline") as runtime:
        (outcome,) = runtime.score([rollout])["f"]
    assert Cause.COERCION is outcome.cause
    assert (outcome.error or "").startswith("argument 'given': a value of type")


def test_what_remains_of_a_row_is_there_where_it_is_plain() -> None:
    """``**rest`` gets the columns that can enter a jail; a parameter that cannot is still named."""
    rollout = Rollout("p", "c", {"plain": [1], "image": Path("x"), "answer": Path("y")})
    with Runtime([reward_from_source("def f(**rest):\n    print(sorted(rest))\n    return 1\n")]) as runtime:
        (outcome,) = runtime.score([rollout])["f"]
    assert (1.0, False, True) == (outcome.score, "image" in outcome.logs, "plain" in outcome.logs)
    with Runtime([reward_from_source("def f(answer, **rest):\n    return 1\n")], lane="inline") as runtime:
        (outcome,) = runtime.score([rollout])["f"]
    assert "argument 'answer': a value of type PosixPath is not plain, and cannot enter a jail" == outcome.error


def test_the_lines_of_a_failure_are_those_that_python_counts() -> None:
    """U+2028 and a form feed end no line, and a column is counted in characters."""
    text = "S = 'a\u2028b\x0cc'\n\ndef f(completion):\n    return 1 / 0  # here\n"
    with Runtime([reward_from_source(text)], lane="inline") as runtime:
        (outcome,) = runtime.score([Rollout("p", "c")])["f"]
    assert "ZeroDivisionError: division by zero (line 4)" == outcome.error
    assert "return 1 / 0  # here" in (outcome.traceback or "")


def test_odd_text_passes_through(capsys: pytest.CaptureFixture[str]) -> None:
    """Lone surrogates, NUL and other scripts reach the text as they are."""
    odd = "\ud800\0é漢🎉"
    told = reward_from_source("def f(completion: str):\n    print(completion)\n    return len(completion)\n")
    assert float(len(odd)) == told(completion=odd)
    assert "\\ud800\0é漢🎉\n" == capsys.readouterr().out


ANNOTATIONS: dict[str, Any] = {
    "str": str,
    "'int'": int,
    "float | None": float | None,
    "Optional[bool]": bool | None,
    "typing.Union[int, str]": int | str,
    "list": list,
    "List[int]": list[int],
    "dict[str, list[int]]": dict[str, list[int]],
    "tuple[int, ...]": tuple[int, ...],
    "tuple[int, str]": tuple[int, str],
    "set[str]": set[str],
    "Literal['a', 1, None]": Literal["a", 1, None],
    "Any": Any,
    "None": None,
}


@pytest.mark.parametrize(("written", "expected"), ANNOTATIONS.items(), ids=ANNOTATIONS)
def test_annotations_are_read_and_not_run(written: str, expected: Any) -> None:
    """Each kind of annotation that a column may have is understood, without an import."""
    assert expected == reward_from_source(f"def f(x: {written}): pass").spec.hints["x"]


REFUSED = {
    "an import": ("import os\ndef f(): pass", "line 1, column 1: import of 'os' is not allowed"),
    "an attribute": ("def f(x):\n    return x.__dict__", "line 2, column 14: the attribute '__dict__'"),
    "several things": ("import os\ndef f(x):\n    return open(x)", r"(?s)line 1, column 1: .*\nline 3, column 12: "),
    "several things of a signature": (
        "def f(é=print, b: g() = 1): pass",
        r"line 1, column 9: the default .*\nline 1, column 19: annotation",
    ),
    "what is no Python": ("def f(:", "line 1, column 7: not Python"),
    "async def": ("async def f(): pass", "line 1, column 1: async def is not allowed"),
    "a group": ("def f(completions): pass", "a reward given as text scores one completion, not a group"),
    "no function": ("x = 1", "there is no public function in it"),
    "only a private function": ("def _f(): pass", "there is no public function in it"),
    "two functions": ("def f(): pass\ndef g(): pass", "it has the functions f, g; name one of them"),
    "*args": ("def f(*a): pass", "takes its value by position"),
    "a positional parameter": ("def f(a, /): pass", "takes its value by position"),
    "an annotation that is no type": ("def f(x: g()): pass", r"line 1, column 10: annotation g\(\): expected"),
    "an annotation unknown": ("def f(x: 'ndarray'): pass", "annotation 'ndarray': expected str, int, float"),
    "a list of two": ("def f(x: list[int, str]): pass", r"annotation list\[int, str\]: expected"),
    "a Literal of a list": ("def f(x: Literal[[1]]): pass", "expected str, int"),
    "a deep annotation": (f"def f(x: '{'(' * 500}'): pass", "expected str, int"),
    "a generator function": ("def f(x):\n    if x:\n        yield 1", "line 3, column 9: 'yield' makes it a"),
    "a generator by a default": ("def f(x):\n    def g(y=(yield)): pass", "line 2, column 14: 'yield' makes"),
    "a default that is no literal": ("def f(x=print): pass", "the default of parameter 'x' is not a literal: print"),
    "no text": (3, "a reward's source is text, not 3"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "words"), REFUSED.values(), ids=REFUSED)
def test_a_text_that_is_no_reward_is_refused(text: Any, words: str) -> None:
    """The refusal comes at once, names the place, and nothing of the text has run."""
    with pytest.raises(RewardDefinitionError, match=words):
        reward_from_source(text)


def test_the_gates_own_error_is_the_cause() -> None:
    """Whoever wants line, column and construct finds them."""
    with pytest.raises(RewardDefinitionError) as caught:
        reward_from_source("\n\nimport os")
    cause = caught.value.__cause__
    assert isinstance(cause, RestrictedSourceError)
    assert (3, 1, "import os") == (cause.line, cause.column, cause.construct)


@pytest.mark.parametrize("options", [{"bogus": 1}, {"timeout_s": 0}, {"name": "a/b"}], ids=str)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    """As in @reward."""
    with pytest.raises(RewardDefinitionError):
        reward_from_source("def f(): pass", **options)


YAML = """
functions:
  right:
    source: |
      def correct(completion: str, answer: int) -> float:
          return float(completion == str(answer))
    options:
      timeout_s: 20
      score_range: [0, 1]
  second:
    source: |
      def first(completion):
          return 1
      def second(completion):
          return 2
  other:
    name: first
    source: |
      def first(completion):
          return 1
      def second(completion):
          return 2
"""


def test_a_yaml_file_holds_rewards_as_text(tmp_path: Path) -> None:
    """The name in the file is the reward's; of several functions it is the one of that name, or the one named."""
    (tmp_path / "rewards.yaml").write_text(YAML)
    config = RewardFunctionsConfig.from_yaml(tmp_path / "rewards.yaml")
    with Runtime(config, workers=1) as runtime:
        scores = runtime.score([Rollout("p", "4", {"answer": "4"})]).scores
        right = runtime.rewards["right"]
    assert {"right": [1.0], "second": [2.0], "other": [1.0]} == scores
    assert 20 == right.options.timeout_s  # type: ignore[attr-defined]  # it is a reward


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"sauce": "def f(): pass"}, ConfigError, r"functions\.one: unknown field 'sauce'; the fields are name, opt"),
        ({"name": "f"}, ConfigError, r"functions\.one\.source: expected the text of a function, got None"),
        ({"source": 3}, ConfigError, r"functions\.one\.source: expected the text of a function, got 3"),
        ({"source": "def f(): pass", "name": 3}, ConfigError, r"functions\.one\.name: expected the name"),
        ({"source": "def f(): pass", "options": [1]}, ConfigError, r"functions\.one\.options: expected a mapping"),
        ({"source": "def f(): pass", "options": {"a": 1}}, ConfigError, r"functions\.one\.options: unknown field 'a'"),
        ({"source": "import os"}, RewardDefinitionError, "'one': line 1, column 1: import of 'os'"),
    ],
    ids=["field", "no source", "source", "name", "options", "option", "refused"],
)
def test_a_wrong_text_in_a_configuration_is_named(given: Any, error: type[Exception], words: str) -> None:
    """The message has the field and what was expected."""
    with pytest.raises(error, match=words):
        RewardFunctionsConfig.from_dict({"functions": {"one": given}}).resolve()


def test_a_file_offers_its_rewards_given_as_text(tmp_path: Path) -> None:
    """A file of rewards whose functions are text is read as any other."""
    (tmp_path / "texts.py").write_text(
        "from rewardkit import reward_from_source\n"
        "long = reward_from_source('def long(completion):\\n    return len(completion)\\n')\n"
    )
    with Runtime([str(tmp_path / "texts.py")], workers=1) as runtime:
        assert {"long": [3.0]} == runtime.score([Rollout("p", "abc")]).scores


def test_a_score_may_be_compared_with_one_of_ours() -> None:
    """Called as a function, a text that returns a Score gives rewardkit's own."""
    assert Score(1, "why", {"n": 2}) == reward_from_source("def f(): return Score(1, 'why', {'n': 2})")()
