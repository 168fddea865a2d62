"""The examinations of ``check``: a new one is named here, and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence

from rewardkit.examinations.examination import Examination
from rewardkit.examinations.golds import GoldExamination
from rewardkit.examinations.programs import ProgramExamination

EXAMINATIONS: Sequence[Examination] = (GoldExamination(), ProgramExamination())
