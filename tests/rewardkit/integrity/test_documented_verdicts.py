"""No act forges a verdict of a recipe or of a page, as they are written there."""

from __future__ import annotations

from pathlib import Path

import pytest

from rewardkit.integrity.examiner import ExaminationPlan, examine

DOCUMENTED = {
    "code_with_tests": {"shape": "call"},
    "mathematics": {"shape": "text", "frame": r"The answer is $\boxed{ANSWER}$."},
    "long_reasoning": {"shape": "text", "frame": "<answer>ANSWER</answer>"},
    "solved_by_the_agent": {"shape": "folder"},
    "fixed_by_the_agent": {"shape": "folder"},
    "fixed_repository": {"shape": "folder"},
    "harbor_task": {"shape": "folder"},
    "seeded_bugs": {"shape": "folder"},
}
"""Functions of ``tests/helpers/documented_verdicts.py``, which reads them from recipes and pages."""
SHORT_DOCUMENTED = ("equal.object", "exit.os_exit_call", "workspace.conftest_hook", "stuffing.gold", "negated.not")
KNOWN = {
    "mathematics": {"values.percent"},  # 157% is 157, as many data sets mean it
    "long_reasoning": {"values.percent", "stuffing.nested"},  # of tags in tags the innermost are the answer
}


@pytest.mark.slow
@pytest.mark.cases(2)
@pytest.mark.parametrize("name", DOCUMENTED)
def test_no_act_forges_a_recipe_or_a_guide(name: str, request: pytest.FixtureRequest) -> None:
    """As they stand in their files and pages: some acts, and with ``--full`` all of them."""
    chosen = () if request.config.getoption("--full") else SHORT_DOCUMENTED
    function = f"{Path(__file__).parents[2]}/helpers/documented_verdicts.py:{name}"
    form = {"language": "text" if DOCUMENTED[name]["shape"] == "text" else "python", **DOCUMENTED[name]}
    target = {"kind": "function", "function": function, "own_isolation": "yes", **form}
    figures = examine(ExaminationPlan(target, chosen=chosen, tries=1, most_s=3600.0, load_s=120.0, deadline_s=120.0))
    forged = {*figures.names("forged"), *figures.names("unstable")}
    assert ("", set()) == (figures.no_figure, forged - KNOWN.get(name, set()))
    assert figures.tried >= 1
