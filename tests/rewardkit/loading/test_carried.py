"""Which files travel, and where they lie on another machine."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from rewardkit import RewardTransportError
from rewardkit.loading import carried
from rewardkit.loading.carried import carried_files, unpack
from rewardkit.loading.own_code import code_of
from rewardkit.loading.registry import resolve
from rewardkit.run_code import Sources

REWARDS = """
import json
import near_of_carried
from pack_of_carried import part
from rewardkit import reward

@reward
def one(completion: str) -> float:
    import late_of_carried
    return 1.0
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "rewards_carried.py").write_text(REWARDS)
    (tmp_path / "near_of_carried.py").write_text("import deep_of_carried\n")
    (tmp_path / "deep_of_carried.py").write_text("")
    (tmp_path / "late_of_carried.py").write_text("")
    (tmp_path / "not_used.py").write_text("")
    pack = tmp_path / "pack_of_carried"
    pack.mkdir()
    (pack / "__init__.py").write_text("")
    (pack / "part.py").write_text("from . import words\n")
    (pack / "words.py").write_text("")
    (pack / "words.json").write_text(json.dumps(["a"]))
    return tmp_path / "rewards_carried.py"


def files_of(reference: str) -> dict[str, bytes]:
    return carried_files(code_of([resolve(reference).spec.function.__module__], Sources()))  # type: ignore[attr-defined]


def test_a_file_travels_with_what_it_imports_at_any_depth(file: Path) -> None:
    """Also inside functions, and packages whole; what is installed or not used stays."""
    files = files_of(str(file))
    path = next(path for path in files if path.endswith("/rewards_carried.py"))
    assert {
        path,
        "near_of_carried.py",
        "deep_of_carried.py",
        "late_of_carried.py",
        "pack_of_carried/__init__.py",
        "pack_of_carried/part.py",
        "pack_of_carried/words.py",
        "pack_of_carried/words.json",
    } == set(files)
    assert path.startswith("rewardkit_carried/")


def test_what_is_too_large_is_refused_by_name(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(carried, "MOST_BYTES", 100)
    with pytest.raises(RewardTransportError, match=r"more than 100\. Install their package on every machine"):
        files_of(str(file))


def test_installed_rewards_carry_nothing() -> None:
    assert {} == files_of("exact_match")


def test_files_are_unpacked_once_for_the_same_content(tmp_path: Path) -> None:
    files = {"a/b.py": b"X = 1\n", "c.py": b""}
    home = unpack(files, tmp_path / "carried")
    assert b"X = 1\n" == (home / "a" / "b.py").read_bytes()
    assert home == unpack(dict(reversed(files.items())), tmp_path / "carried")
    assert home != unpack({**files, "c.py": b"Y = 2\n"}, tmp_path / "carried")
    assert 2 == len(list((tmp_path / "carried").iterdir()))
    assert str(home) not in sys.path
