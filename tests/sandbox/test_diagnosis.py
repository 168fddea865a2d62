"""What a diagnosis says of languages."""

from __future__ import annotations

from sandbox import Level, language_trials
from sandbox.languages.catalogue import LANGUAGES


def test_every_language_has_a_version_or_a_reason() -> None:
    """One that is missing says how it is had; one that starts processes needs a jail that ends them."""
    trials = {trial.name: trial for trial in language_trials()}
    assert [*LANGUAGES] == [*trials]
    for trial in trials.values():
        assert (trial.version == "") == (trial.why != "") == (trial.install != "")
    assert {"bash", "c", "cpp", "rust"} == {name for name, trial in trials.items() if trial.level is Level.STRICT}
