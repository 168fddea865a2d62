"""The ``trl`` mapping: checked against the configuration classes of the TRL that is installed."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tiny_grpo import third_party_warnings

from rewardkit import ConfigError
from trainer_adapter.trl_settings import check_settings, make_config

trl = pytest.importorskip("trl", reason="the extra train is not installed")
pytestmark = [third_party_warnings, pytest.mark.filterwarnings("ignore::DeprecationWarning")]
OF_GRPO = rf"GRPOConfig of trl {re.escape(trl.__version__)}"


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("importance_sampling_level", "sequence", "sequence"),
        ("epsilon_high", "28e-2", 0.28),
        ("epsilon_high", None, None),
        ("delta", 4, 4.0),
        ("mask_truncated_completions", True, True),
        ("report_to", ["tensorboard"], ["tensorboard"]),
        ("lr_scheduler_kwargs", {"num_cycles": 2}, {"num_cycles": 2}),
        ("pad_to_multiple_of", 8, 8),
    ],
)
def test_a_setting_of_the_installed_version_is_taken(name: str, value: Any, expected: Any) -> None:
    """Numbers may be text, as YAML reads 1e-5."""
    assert {name: expected} == check_settings("GRPOConfig", {name: value})


@pytest.mark.parametrize(
    ("class_name", "settings", "message"),
    [
        ("GRPOConfig", {"importance_sampling_lvl": "token"},
         rf"trl.importance_sampling_lvl: {OF_GRPO} has no such setting; did you mean 'importance_sampling_level'"),
        ("GRPOConfig", {"qqq": 1}, rf"^trl.qqq: {OF_GRPO} has no such setting; no name is near it$"),
        ("GRPOConfig", {"epsilon_high": "wide"}, rf"^trl.epsilon_high='wide': {OF_GRPO} expects float \| None$"),
        ("GRPOConfig", {"mask_truncated_completions": 3}, r"trl.mask_truncated_completions=3: .* expects bool$"),
        ("GRPOConfig", {"delta": True}, r"trl.delta=True: GRPOConfig of trl .* expects float \| None$"),
        ("GRPOConfig", {"importance_sampling_level": 1}, r"trl.importance_sampling_level=1: .* expects str$"),
        (r"RewardConfig", {"importance_sampling_level": "token"}, "RewardConfig of trl .* has no such setting"),
        ("RewardConfig", {"weight_decay": "none"}, r"trl.weight_decay='none': RewardConfig of trl .* expects float$"),
    ],
)  # fmt: skip
def test_a_wrong_setting_is_named_with_the_version(class_name: str, settings: dict[str, Any], message: str) -> None:
    """One line has the setting, its value, the class, TRL's version, and near names or the type."""
    with pytest.raises(ConfigError, match=message) as refusal:
        check_settings(class_name, settings)
    assert "\n" not in str(refusal.value)


def test_what_trl_refuses_is_a_configuration_error(tmp_path: Any) -> None:
    """A combination that TRL finds wrong is told in one line."""
    sizes = {"generation_batch_size": 8, "steps_per_generation": 3}
    with pytest.raises(ConfigError, match=r"^TRL's GRPOConfig refuses its settings: .*steps_per_generation") as refusal:
        make_config(trl.GRPOConfig, {"output_dir": str(tmp_path), "use_cpu": True, "bf16": False, **sizes})
    assert "\n" not in str(refusal.value)
