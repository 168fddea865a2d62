"""The workflows: they are read as YAML, call what is there, may do little, and name versions of what they use."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / ".github" / "workflows"
WORKFLOWS = sorted(path.name for path in FOLDER.glob("*.yml"))
WRITES = {
    ("publish.yml", "publish"): {"id-token": "write", "attestations": "write"},
    ("security.yml", "code"): {"contents": "read", "security-events": "write"},
}
"""Jobs that may do more than read the repository."""


def _workflow(name: str) -> dict[Any, Any]:
    workflow = yaml.safe_load((FOLDER / name).read_text(encoding="utf-8"))
    assert isinstance(workflow, dict)
    return workflow


def _steps(name: str) -> Iterator[dict[str, Any]]:
    for job in _workflow(name)["jobs"].values():
        yield from job["steps"]


def test_each_lane_has_a_workflow() -> None:
    """The whole, what answers first, macOS, versions, security, and publishing."""
    assert ["ci.yml", "fast.yml", "macos.yml", "publish.yml", "security.yml", "versions.yml"] == WORKFLOWS


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_has_what_it_needs_and_an_end(name: str) -> None:
    """A name, an occasion (which YAML reads as the word true), and jobs with a machine, steps and a time."""
    workflow = _workflow(name)
    assert (
        {"name", True, "permissions", "jobs"} <= workflow.keys() <= {"name", True, "permissions", "jobs", "concurrency"}
    )
    for job in workflow["jobs"].values():
        assert 0 < job["timeout-minutes"] <= 90
        assert job["runs-on"]
        assert all(len({"run", "uses"} & step.keys()) == 1 for step in job["steps"])
        needs = job.get("needs", [])
        assert {*([needs] if isinstance(needs, str) else needs)} <= workflow["jobs"].keys()


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_may_read_the_repository_and_no_more(name: str) -> None:
    """But for the jobs that publish and that show what was found; and no later step finds the token of the checkout."""
    workflow = _workflow(name)
    assert {"contents": "read"} == workflow["permissions"]
    more = {(name, job): body["permissions"] for job, body in workflow["jobs"].items() if "permissions" in body}
    assert {key: value for key, value in WRITES.items() if key[0] == name} == more
    for step in _steps(name):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


@pytest.mark.parametrize("name", WORKFLOWS)
def test_what_others_wrote_is_named_by_its_version(name: str) -> None:
    """Actions and programs that are fetched to be run."""
    for step in _steps(name):
        if "uses" in step:
            assert re.fullmatch(r"[\w.-]+/[\w./-]+@v\d+(\.\d+){0,2}|[\w.-]+/[\w./-]+@[0-9a-f]{40}", step["uses"])
        for program in re.findall(r"pipx run (\S+)", step.get("run", "")):
            assert re.fullmatch(r"[\w-]+==[\d.]+", program), program


@pytest.mark.parametrize("name", WORKFLOWS)
def test_what_a_workflow_calls_is_there(name: str) -> None:
    """Each target of `make`, each script of ours, and each variable that is handed to a target."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z][a-z-]*):.*##", makefile, re.MULTILINE))
    called = 0
    for step in _steps(name):
        for command in re.split(r"&&|\|\||\n", step.get("run", "")):
            words = shlex.split(command)
            if words and words[0] == "make":
                called += 1
                assert words[1] in targets, command
                for variable in (word.partition("=")[0] for word in words[2:]):
                    assert re.search(rf"^{variable} \?=", makefile, re.MULTILINE), command
            for word in words:
                if re.fullmatch(r"(?:\.ci|tests|docs)(?:/[\w.-]+)+", word):
                    called += 1
                    assert (ROOT / word).exists(), command
    assert called or name == "security.yml"


@pytest.mark.parametrize("name", WORKFLOWS)
def test_no_text_of_a_stranger_becomes_a_command(name: str) -> None:
    """A branch's name or a title reaches a shell as a variable of the environment, never as text of the command."""
    assert [] == [step["run"] for step in _steps(name) if "${{" in step.get("run", "")]


def test_nothing_is_published_that_was_not_checked_and_installed() -> None:
    """And the job that has the index's trust runs no command of the repository's."""
    jobs = _workflow("publish.yml")["jobs"]
    commands = " ".join(step.get("run", "") for step in jobs["build"]["steps"])
    assert "twine==" in commands
    assert "check --strict" in commands
    assert 'release_check.py dist "$GITHUB_REF_NAME"' in commands
    assert {"build", "install"} == {*jobs["publish"]["needs"]}
    assert [] == [step for step in jobs["publish"]["steps"] if "run" in step]
    assert ["v*"] == _workflow("publish.yml")[True]["push"]["tags"]


def test_new_versions_are_proposed() -> None:
    """Of actions and of packages."""
    updates = yaml.safe_load((ROOT / ".github" / "dependabot.yml").read_text(encoding="utf-8"))["updates"]
    assert {"github-actions", "pip"} == {update["package-ecosystem"] for update in updates}
