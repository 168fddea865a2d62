"""Which rewards a file has: those with a public name, and no helpers of theirs."""

from __future__ import annotations

from pathlib import Path

import pytest

from rewardkit.cli.listing import describe
from rewardkit.errors import RewardLoadError
from rewardkit.loading.registry import entry_points, resolve, resolve_all

SOURCE = """from builtin_rewards.structured import json_fields
from rewardkit import reward

_compare = json_fields(abs=0.005).with_options(name="compare")


@reward
def fields(completion: str, gold: dict) -> float:
    return _compare(completion=completion, answer=gold).value


_alias = fields
"""


def test_a_name_with_an_underscore_is_no_reward_of_the_file(tmp_path: Path) -> None:
    """It is one where it is named, and a reward with a public name too is one of the file."""
    file = tmp_path / "helped.py"
    file.write_text(SOURCE)
    assert ["fields"] == [reward.name for reward in resolve_all(str(file))]
    assert ["compare"] == [reward.name for reward in resolve_all(f"{file}:_compare")]


JUDGES = """from builtin_rewards.formats import format_tags
from builtin_rewards.matching import exact_match
from rewardkit import reward, reward_from_source

@reward
def plain(completion: str) -> float:
    return 1.0

chain = 0.5 * plain + 0.5 * exact_match
with_settings = format_tags(tags=("plan",))
as_text = reward_from_source("def as_text(completion): return 1.0")
"""
IMPORTS = {
    "by name": "from origin import plain, chain, with_settings, as_text",
    "under other names": "from origin import plain as a, chain as b, with_settings as c, as_text as d",
    "all": "from origin import *",
    "in a branch": "try:\n    from origin import plain, chain, with_settings, as_text\nexcept ImportError:\n    pass",
    "as a part": "from origin import plain, chain, with_settings, as_text\n_sum = chain + as_text",
}


@pytest.mark.parametrize("statement", IMPORTS.values(), ids=IMPORTS)
def test_what_a_file_only_imports_is_not_scored(tmp_path: Path, statement: str) -> None:
    """Of whatever kind it is; a name that the file binds too is its own, and with nothing else there is a way."""
    origin = f"origin_of_{tmp_path.name}"  # a process imports a module once
    (tmp_path / f"{origin}.py").write_text(JUDGES)
    text = statement.replace("origin", origin)
    own = "from rewardkit import reward\n@reward\ndef short(completion: str) -> float:\n    return 1.0\n"
    (tmp_path / "mine.py").write_text(f"{text}\n{own}")
    assert ["short"] == [reward.name for reward in resolve_all(str(tmp_path / "mine.py"))]
    (tmp_path / "alone.py").write_text(text)
    with pytest.raises(RewardLoadError, match=r"it imports are scored by their names: .*alone\.py:(as_text|a)$"):
        resolve_all(str(tmp_path / "alone.py"))
    (tmp_path / "total.py").write_text(f"{text}\nfrom {origin} import chain, plain\nchain = chain + plain\n")
    assert ["0.5*plain + 0.5*exact_match + plain"] == [made.name for made in resolve_all(str(tmp_path / "total.py"))]


def test_a_package_that_offers_rewards_by_name_has_them_all() -> None:
    """Its own module defines none of them."""
    assert {name for name, point in entry_points().items() if point.module.startswith("builtin_rewards.")} == {
        reward.name for reward in resolve_all("builtin_rewards")
    }


FOREIGN = "def accuracy(completions, answer, **kwargs):\n    return [1.0 for _ in completions]\n"


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("", r"mark a function with @reward$"),
        (FOREIGN, r"'accuracy': parameter 'completions' is a list.*from_trl\(accuracy\)"),
        (FOREIGN + "def usable(completion):\n    return 1.0\n", r"needs no mark: .*rewards\.py:usable$"),
    ],
    ids=["empty", "of another trainer", "one that would do"],
)
def test_a_file_without_rewards_has_a_way_that_works(tmp_path: Path, source: str, said: str) -> None:
    """It names a function that can be scored by its name alone, or why the first cannot."""
    (tmp_path / "rewards.py").write_text(source)
    with pytest.raises(RewardLoadError, match=said):
        resolve_all(f"{tmp_path}/rewards.py")


def test_changed_settings_are_part_of_the_description(tmp_path: Path) -> None:
    """The docstring of the factory speaks of its defaults."""
    source = "from builtin_rewards.formats import format_tags\nmine = format_tags(tags=('plan', 'final'))\n"
    (tmp_path / "mine.py").write_text(source)
    changed, default = describe(resolve(f"{tmp_path}/mine.py:mine"))["doc"], describe(resolve("format_tags"))["doc"]
    assert f"With tags=('plan', 'final'), and otherwise as by default: {default}" == changed
    (tmp_path / "mine.py").write_text(source.replace("('plan', 'final')", "tuple(f't{n}' for n in range(99))"))
    assert 200 + len(default) > len(describe(resolve(f"{tmp_path}/mine.py:mine"))["doc"])


def test_a_path_without_its_ending_is_told_the_file(tmp_path: Path) -> None:
    """The file beside it has the name that was meant."""
    (tmp_path / "mine.py").write_text("")
    with pytest.raises(RewardLoadError, match=r"mine: not a Python file; did you mean .*mine\.py\?"):
        resolve_all(f"{tmp_path}/mine:correct")
    with pytest.raises(RewardLoadError, match=r"other: not a Python file$"):
        resolve_all(f"{tmp_path}/other:correct")
