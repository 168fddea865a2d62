"""Names are nouns of the field: how many say only that something was found, told or kept, and where they may stand."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("sandbox", "rewardkit", "builtin_rewards", "trainer_adapter")
VAGUE = frozenset(
    ["one", "found", "told", "said", "known", "given", "kept", "shown", "held", "asked", "place", "words"]
)
"""Words that do not say what a thing is, so that a line with them cannot be read alone."""
MOST_VAGUE_IN_1000 = 10
MOST_ANY_SHARE = 0.03
NOT_WORSE: dict[str, int] = {
    "builtin_rewards/judge/conversation.py": 1,
    "builtin_rewards/matching.py": 3,
    "builtin_rewards/reward_model/best_of.py": 1,
    "rewardkit/audit/exploits.py": 1,
    "rewardkit/audit/result.py": 1,
    "rewardkit/health/flag.py": 1,
    "rewardkit/record/changes.py": 2,
    "trainer_adapter/trainer_rewards.py": 1,
}
"""Files that may have so many vague names and no more; each of the others may have none."""


@cache
def _trees() -> dict[str, ast.Module]:
    files = [file for package in PACKAGES for file in sorted((ROOT / package).rglob("*.py"))]
    return {str(file.relative_to(ROOT)): ast.parse(file.read_text(encoding="utf-8")) for file in files}


def _bound_names(tree: ast.Module) -> Iterator[str]:
    """Yield the names of functions, classes, variables and parameters."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg


def test_names_say_what_a_thing_is() -> None:
    """At most 10 of 1,000 bound names are vague, and no file has more than it had."""
    vague: Counter[str] = Counter()
    total = 0
    for file, tree in _trees().items():
        names = list(_bound_names(tree))
        total += len(names)
        vague[file] = sum(name.strip("_") in VAGUE for name in names)
    worse = {file: (count, NOT_WORSE.get(file, 0)) for file, count in vague.items() if count > NOT_WORSE.get(file, 0)}
    assert {} == worse, "vague names now, and how many the file may have"
    assert 1000 * vague.total() / total <= MOST_VAGUE_IN_1000


def test_the_list_of_files_with_vague_names_is_short_and_true() -> None:
    """A file that has fewer now may have no more than that again."""
    counts = {file: sum(name.strip("_") in VAGUE for name in _bound_names(tree)) for file, tree in _trees().items()}
    assert NOT_WORSE == {file: counts.get(file, 0) for file in NOT_WORSE}


def test_few_parameters_may_be_anything() -> None:
    """``Any`` turns off the type checker; ``object`` asks for a check."""
    arguments = [
        node
        for tree in _trees().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.arg) and node.arg not in ("self", "cls")
    ]
    anything = [node for node in arguments if isinstance(node.annotation, ast.Name) and node.annotation.id == "Any"]
    assert len(anything) / len(arguments) <= MOST_ANY_SHARE


def test_rooms_are_few_and_a_file_name_stands_twice_at_most() -> None:
    """More than a handful of loose modules are a room that nobody has named; a name that stands often is a question."""
    loose = [file for file in _trees() if file.startswith("rewardkit/") and file.count("/") == 1]
    assert len(loose) <= 20
    names = Counter(Path(file).name for file in _trees())
    often = {name for name, count in names.items() if count > 2}
    assert {"__init__.py", "errors.py", "cli.py"} >= often


def test_files_are_short() -> None:
    """A module is one concept, of 520 lines at most."""
    long = {file: len((ROOT / file).read_text(encoding="utf-8").splitlines()) for file in _trees()}
    assert {} == {file: lines for file, lines in long.items() if lines > 520}
