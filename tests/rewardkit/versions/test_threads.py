"""What other threads do while a reward is looked at: names are added to its module, and more of its files are read."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from rewardkit import RewardLoadError, RewardTransportError, Runtime, reward
from rewardkit.loading.registry import resolve, resolve_all
from rewardkit.record.description import describe
from rewardkit.run_code import Sources
from rewardkit.transport import load_file


class Meanwhile:
    """An object that calls a function as soon as somebody looks at it, as if another thread ran at that moment."""

    def __init__(self, act: Callable[[], object]) -> None:
        self._act = act

    @property  # type: ignore[misc]  # an ordinary class's can be set
    def __class__(self) -> Any:
        self._act()
        return Meanwhile


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file with a reward, whose module gets a new name whenever somebody looks at one of its values."""
    path = tmp_path / "growing.py"
    path.write_text("from rewardkit import reward\n\n@reward\ndef good(completion: str) -> float:\n    return 1.0\n")
    _let_grow(load_file(path))
    return path


def _let_grow(module: ModuleType) -> None:
    names = (f"name_{number}" for number in itertools.count())
    vars(module)["first"] = Meanwhile(lambda: vars(module).setdefault(next(names), Meanwhile(lambda: None)))


def _near_names(path: Path) -> object:
    with pytest.raises(RewardLoadError, match="did you mean 'good'"):
        resolve(f"{path}:goood")
    return None


LOOKS: dict[str, Callable[[Path], object]] = {
    "all of a file's rewards": lambda path: resolve_all(str(path)),
    "near names": _near_names,
    "its description": lambda path: describe(resolve(f"{path}:good")),
    "its runtime": lambda path: Runtime(str(path), lane="inline").close(),
}


@pytest.mark.parametrize("look", LOOKS)
def test_a_reward_is_found_in_a_module_that_grows(file: Path, look: str) -> None:
    """As one does in which an import, or a global, adds a name in another thread."""
    LOOKS[look](file)


def test_what_cannot_travel_is_named_though_it_grows() -> None:
    """The parts that are looked at are those that were there."""
    held: dict[Any, Any] = {}
    numbers = itertools.count()
    held["lock"] = threading.Lock()

    class Grower:
        def __reduce__(self) -> Any:
            held[next(numbers)] = 0
            return Grower, ()

    held["grower"] = Grower()

    @reward
    def keeps(completion: str) -> float:
        return float(len(held))

    with pytest.raises(RewardTransportError, match=r"keeps -> held -> \['lock'\]"):
        Runtime([keeps], workers=1)


class Key:
    """A key of a dictionary, which holds it."""

    def __init__(self, held: dict[Any, Any]) -> None:
        self._held = held

    @property
    def __name__(self) -> str:
        self._held.pop("second", None)
        return "Key"


def test_a_version_is_made_of_a_value_that_changes() -> None:
    """Of what it was when it was looked at; its keys may hold it."""
    held: dict[Any, Any] = {}
    held.update({Key(held): 1, "second": 2})

    @reward
    def keeps(completion: str) -> float:
        return float(len(held))

    assert (12, 1) == (len(keeps.version), len(held))


class Reading(Sources):
    """Files of a run, of which another run reads one more with each that is asked for, as a thread of its own would."""

    def __init__(self, other: Sources, paths: Iterator[Path]) -> None:
        super().__init__()
        self._other = other
        self._paths = paths

    def data(self, file: Path | str) -> bytes | None:
        self._other.data(next(self._paths))
        return super().data(file)


def test_two_threads_make_runtimes_of_one_reward(file: Path, tmp_path: Path) -> None:
    """One takes the reward while the other reads the files that it imports."""
    fingerprint = resolve(f"{file}:good").leaves[0].spec.fingerprint
    first = Sources()
    assert fingerprint is fingerprint.at_start(first)
    for path in (file, tmp_path / "helper.py"):
        first.data(path)
    paths = (tmp_path / f"imported_{number}.py" for number in itertools.count())
    assert fingerprint is fingerprint.at_start(Reading(first, paths))
