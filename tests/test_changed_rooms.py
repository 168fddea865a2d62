"""The fast lane's choice: a changed file has the tests of its room run, and whatever holds for all packages."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from changed_rooms import ALWAYS, PACKAGES, ROOT, changed_since, selected_tests


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ([], set()),
        (["rewardkit/coercion/coerce.py"], {"tests/rewardkit/coercion/test_coerce.py"}),
        (["rewardkit/dashboard/page/tabs/runs/runs.js"], {"tests/rewardkit/dashboard/test_serve.py"}),
        (["rewardkit/statistics.py"], {"tests/rewardkit/test_statistics.py"}),
        (["sandbox/workers/page.py"], {"tests/sandbox/workers/test_page.py"}),
        (["tests/rewardkit/test_statistics.py"], {"tests/rewardkit/test_statistics.py"}),
        (["tests/helpers/release_check.py"], {"tests/test_wheel.py"}),
        (["docs/how-to/reward-code.md"], {"tests/test_docs.py"}),
        ([".github/workflows/fast.yml"], {"tests/test_workflows.py"}),
        (["rewardkit/gone/module.py", "tests/rewardkit/gone/test_module.py"], set()),
    ],
    ids=["nothing", "module", "page", "loose", "room", "test", "helper", "docs", "workflow", "removed"],
)
def test_a_changed_file_has_the_tests_of_its_room_run(changed: list[str], expected: set[str]) -> None:
    """The contracts are always among them."""
    chosen = selected_tests(changed)
    assert {*ALWAYS, *expected} <= {*chosen}
    assert all((ROOT / test).is_file() for test in chosen)


def test_a_loose_module_with_tests_of_its_own_has_no_others_run() -> None:
    """And a room not those of another room."""
    assert {"tests/rewardkit/test_statistics.py", *ALWAYS} == {*selected_tests(["rewardkit/statistics.py"])}
    rooms = {str(Path(test).parent) for test in {*selected_tests(["rewardkit/rows/reader.py"])} - {*ALWAYS}}
    assert {"tests/rewardkit/rows"} == rooms


def test_every_module_has_tests_that_run_for_it() -> None:
    """No change of a package is examined by the contracts alone."""
    modules = [path.relative_to(ROOT).as_posix() for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    assert len(modules) > 500
    assert [] == [module for module in modules if {*selected_tests([module])} == {*ALWAYS}]


def test_what_is_not_committed_is_changed_too(tmp_path: Path) -> None:
    """Against another branch: what was committed since, what was not, and new files."""

    def git(*arguments: str) -> None:
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)

    git("init", "--initial-branch", "main")
    for name in ("old.py", "committed.py", "edited.py"):
        (tmp_path / name).write_text("1\n")
    git("add", ".")
    git("commit", "-m", "first")
    git("checkout", "-b", "branch")
    (tmp_path / "committed.py").write_text("2\n")
    git("commit", "-a", "-m", "second")
    (tmp_path / "edited.py").write_text("2\n")
    (tmp_path / "new.py").write_text("2\n")
    assert ["committed.py", "edited.py", "new.py"] == changed_since("main", tmp_path)
