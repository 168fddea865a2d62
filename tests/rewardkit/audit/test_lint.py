"""The lint finds known mistakes in a reward's source, and is silent about what only looks like them."""

from __future__ import annotations

import importlib
import pkgutil
import textwrap
from pathlib import Path

import pytest

import builtin_rewards
from rewardkit import reward_from_source
from rewardkit.audit.lint import has_source, lint
from rewardkit.declare.decorator import Reward
from rewardkit.loading.registry import resolve

HEAD = """\
import random, re, time, datetime, os, requests_like as requests
from random import random as luck
from rewardkit import reward

FORMAT = re.compile(r"<answer>.*</answer>", re.DOTALL)
ONE_LINE = re.compile(r"<answer>.*</answer>")
SEEN = {}
"""

MISTAKES = {
    "bool_of_column": "return float(bool(answer))",
    "silent_except bare": "try:\n    return float(completion)\nexcept:\n    return -1.0",
    "silent_except number": "try:\n    return float(completion)\nexcept Exception:\n    return 0",
    "silent_except pass": "try:\n    return float(completion)\nexcept Exception:\n    pass\nreturn 0.0",
    "unanchored_format match": 'return float(bool(re.match(r"<think>[^<]*</think>", completion)))',
    "unanchored_format search": 'return 1.0 if re.search(r"^<a>[^<]*</a>", completion) else 0.0',
    "unanchored_format compiled": "found = FORMAT.search(completion)\nreturn float(found is not None)",
    "dot_without_lines": 'return float(bool(re.fullmatch(r"<think>.*?</think>", completion)))',
    "dot_without_lines flag": 'return float(bool(re.fullmatch(r"<a>.*</a>", completion, re.I)))',
    "dot_without_lines held": 'p = r"^<a>\\n.*?\\n</a>$"\nreturn float(bool(re.match(p, completion)))',
    "dot_without_lines compiled": "return float(ONE_LINE.fullmatch(completion) is not None)",
    "dot_without_lines all": 'return float(len(re.findall("<a>(.+)</a>", completion)) == 1)',
    "substring_answer": "return float(answer in completion)",
    "substring_answer lower": "text = completion.lower()\nreturn 1.0 if answer.lower() in text else 0.0",
    "substring_answer words": "return float(answer in completion.split())",
    "substring_answer reversed": "return float(completion in answer)",
    "eval": "return float(eval(completion) == 4)",
    "eval held": "code = completion.strip()\nexec(code)\nreturn 1.0",
    "randomness": "return random.random()",
    "randomness imported": "return luck()",
    "randomness unseeded": "return random.Random().random()",
    "network_or_clock clock": "return time.time() % 1",
    "network_or_clock today": "return float(datetime.datetime.now().hour)",
    "network_or_clock inside": "import socket\nreturn float(bool(socket.create_connection(('localhost', 1))))",
    "global_state written": "SEEN[completion] = 1\nreturn 1.0",
    "global_state changed": "return float(SEEN.setdefault(completion, 1))",
    "global_state global": "global SEEN\nSEEN = {}\nreturn 1.0",
}

INNOCENT = {
    "bool of a computed value": "return float(bool(completion.strip()))",
    "named errors": "try:\n    return float(completion)\nexcept ValueError:\n    return 0.0",
    "an error that is told": "try:\n    return float(completion)\nexcept Exception as e:\n    raise ValueError from e",
    "fullmatch": 'return float(bool(re.fullmatch(r"<a>.*</a>", completion, flags=re.S | re.I)))',
    "anchored": 'return float(bool(re.search(r"\\A<a>[^<]*</a>\\Z", completion)))',
    "flags in the pattern": 'return float(bool(re.fullmatch(r"(?is)<a>.*</a>", completion)))',
    "a decimal point": 'return float(bool(re.fullmatch(r"<a>[0-9]+\\.[0-9]*</a>", completion)))',
    "taken out of tags": 'found = re.search("<a>(.)</a>", completion)\nreturn float(bool(found) and found[1] == "4")',
    "searched words": 'return float(re.search(r"sorry", completion) is None)',
    "a choice of constants": 'return float(completion in ("yes", "no"))',
    "one of many golds": "return float(completion.strip() in golds)",
    "literal_eval": "import ast\nreturn float(ast.literal_eval(completion) == 4)",
    "seeded": "return random.Random(completion).random()",
    "a container of its own": "seen = {}\nseen[completion] = 1\nreturn float(len(seen))",
}


def _write(folder: Path, body: str, name: str = "judged") -> str:
    file = folder / f"{name}.py"
    head = HEAD.replace(", requests_like as requests", "")
    signature = f"@reward\ndef {name}(completion: str, answer: str, golds: list[str] = None) -> float:\n"
    file.write_text(f"{head}\n{signature}{textwrap.indent(body, '    ')}\n")
    return f"{file}:{name}"


@pytest.mark.parametrize(("name", "body"), MISTAKES.items(), ids=MISTAKES)
def test_a_known_mistake_is_found(tmp_path: Path, name: str, body: str) -> None:
    """The mistake, and no other, is found; with file, line, the line's code, why, and what to write instead."""
    found = lint(resolve(_write(tmp_path, body)))  # type: ignore[arg-type]
    assert [name.partition(" ")[0]] == [one.rule for one in found]
    one = found[0]
    assert str(tmp_path / "judged.py") == one.file
    assert one.code == Path(one.file).read_text().splitlines()[one.line - 1].strip()
    assert one.why
    assert one.fix


@pytest.mark.parametrize(("name", "body"), INNOCENT.items(), ids=INNOCENT)
def test_what_only_looks_like_a_mistake_is_left_alone(tmp_path: Path, name: str, body: str) -> None:
    """Named errors, anchored patterns, seeded randomness and the like are no mistakes."""
    assert [] == lint(resolve(_write(tmp_path, body)))  # type: ignore[arg-type]


def test_a_mutable_default_is_found(tmp_path: Path) -> None:
    """A default that all calls share is state."""
    file = tmp_path / "shared.py"
    file.write_text(
        "from rewardkit import reward\n\n@reward\ndef shared(completion: str, seen: list[str] = []) -> float:\n"
        "    return 1.0\n"
    )
    assert ["global_state"] == [one.rule for one in lint(resolve(f"{file}:shared"))]  # type: ignore[arg-type]


def test_functions_that_the_reward_calls_are_read_too(tmp_path: Path) -> None:
    """A mistake in a function of the same module is found where it stands."""
    file = tmp_path / "calls.py"
    file.write_text(
        "import random\nfrom rewardkit import reward\n\ndef inner(text):\n    return random.random()\n\n"
        "@reward\ndef calls(completion: str) -> float:\n    return inner(completion)\n"
    )
    assert [("randomness", 5)] == [(one.rule, one.line) for one in lint(resolve(f"{file}:calls"))]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("comment", "silent"), [("# audit: ok a game of dice", True), ("# audit: ok", False), ("# ok", False)]
)
def test_a_comment_with_a_reason_silences_a_finding(tmp_path: Path, comment: str, silent: bool) -> None:
    """``# audit: ok REASON`` on the line silences it; without a reason it does not."""
    found = lint(resolve(_write(tmp_path, f"return random.random()  {comment}")))  # type: ignore[arg-type]
    assert silent == (not found)


def test_a_reward_given_as_text_is_read_and_one_without_source_says_so() -> None:
    """The text of a reward is its source; a function made by exec has none."""
    text = "def short(completion: str, answer: str) -> float:\n    return float(answer in completion)\n"
    assert ["substring_answer"] == [one.rule for one in lint(reward_from_source(text))]
    names: dict[str, object] = {}
    exec("from rewardkit import reward\n\n@reward\ndef made(completion: str) -> float:\n    return 1.0\n", names)
    assert [] == lint(names["made"])  # type: ignore[arg-type]
    assert not has_source(names["made"])  # type: ignore[arg-type]


def test_the_rewards_of_the_package_have_no_known_mistake() -> None:
    """An audit accuses none of them; a line that looks like a mistake says why it is none."""
    modules = [
        importlib.import_module(f"builtin_rewards.{module.name}")
        for module in pkgutil.iter_modules(builtin_rewards.__path__)
        if not module.ispkg
    ]
    rewards = {name: value for module in modules for name, value in vars(module).items() if isinstance(value, Reward)}
    assert {"math_answer", "sql_result"} <= set(rewards)
    assert {} == {name: mistakes for name, value in rewards.items() if (mistakes := lint(value))}


def test_a_mistake_behind_a_decorator_is_named_in_its_own_file(tmp_path: Path) -> None:
    """And not in that of the library that decorates."""
    file = tmp_path / "behind.py"
    file.write_text(
        "import contextlib, random\nfrom rewardkit import reward\n\n@contextlib.contextmanager\ndef inner():\n"
        "    yield random.random()\n\n@reward\ndef behind(completion: str) -> float:\n"
        "    with inner() as number:\n        return number\n"
    )
    (mistake,) = lint(resolve(f"{file}:behind"))  # type: ignore[arg-type]
    assert (str(file), 6) == (mistake.file, mistake.line)
