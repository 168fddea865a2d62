"""How good a reward is: on preferences, on a canary set over time, and against a gold reward.

scored_row.py          one row's scores and what they are worth
preference_report.py   figures over rows, by subset, with intervals
preference_scoring.py  which reward a command means, and its scores
report_printing.py     a report on a terminal
canary.py              a measurement in a run's record, and whether it has fallen
over_optimisation.py   a proxy against a gold reward over the divergence
commands.py            ``rewardkit rm eval`` and ``rewardkit rm monitor``
"""

from trainer_adapter.reward_evaluation.over_optimisation import (
    OverOptimisation,
    best_of_n_over_optimisation,
    over_optimisation,
    run_over_optimisation,
)
from trainer_adapter.reward_evaluation.preference_report import PreferenceReport, SubsetReport, evaluate_preferences

__all__ = [
    "OverOptimisation",
    "PreferenceReport",
    "SubsetReport",
    "best_of_n_over_optimisation",
    "evaluate_preferences",
    "over_optimisation",
    "run_over_optimisation",
]
