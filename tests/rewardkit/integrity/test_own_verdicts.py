"""No act forges a verdict of this project's own, in any language that has acts."""

from __future__ import annotations

import pytest

from rewardkit.integrity.examiner import ExaminationPlan, examine
from rewardkit.integrity.forging_acts import read_acts

OWN = [
    "check-asserts", "check", "asserts", "inputs", "patched", "stdin", "checker", "interactor", "workspace", "suite"
]  # fmt: skip
OWN_LANGUAGES = ["suite-javascript", "suite-go", "suite-java"] + [
    f"{language}{form}" for language in ("javascript", "cpp", "go", "java", "bash") for form in ("", "-stdin")
]
SHORT = ("equal.", "exit.os_exit", "inside.", "frames.", "late.", "lies.", "output.", "workspace.conftest")
SHORT_EVERY = 4
"""Of the acts in Python that begin so, without ``--full`` one in four is tried."""
SHORT_LANGUAGES = ("exit.", "copies.", "inside.")
COMPILED = ("cpp", "go", "java")
"""Languages whose every act takes seconds to compile; without ``--full`` those of one family are tried."""


@pytest.mark.slow
@pytest.mark.cases(3)
@pytest.mark.parametrize("name", OWN + OWN_LANGUAGES)
def test_no_act_forges_our_verdicts(name: str, request: pytest.FixtureRequest) -> None:
    """None of those that pass elsewhere most often; with ``--full`` none at all."""
    own = [act.name for act in read_acts("python") if act.name.startswith(SHORT)][::SHORT_EVERY]
    short = tuple(own) if name in OWN else ("copies.",) if name.removesuffix("-stdin") in COMPILED else SHORT_LANGUAGES
    chosen = () if request.config.getoption("--full") else short
    target = {"name": f"rewardkit-{name}", "own_isolation": "yes"}
    figures = examine(ExaminationPlan(target, chosen=chosen, tries=1, most_s=1200.0, load_s=400.0, deadline_s=60.0))
    if "LanguageUnavailable" in figures.no_figure:
        pytest.skip(figures.no_figure)
    assert ("", []) == (figures.no_figure, figures.names("forged") + figures.names("unstable"))
    assert {} == dict(figures.not_tried)
    assert figures.tried >= 3
