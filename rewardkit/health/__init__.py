"""Public: health checks over recorded completions, of rewards that are flat, gamed, broken or noisy."""

from rewardkit.health.alerts import Alert, FlagTarget
from rewardkit.health.detectors import DETECTORS
from rewardkit.health.examine import Diagnosis, diagnose_rows, diagnose_run
from rewardkit.health.flag import Flag, OnFlag
from rewardkit.health.live import LiveHealth
from rewardkit.health.noise import Noise, noise_of
from rewardkit.health.watch import Watch

__all__ = [
    "DETECTORS",
    "Alert",
    "Diagnosis",
    "Flag",
    "FlagTarget",
    "LiveHealth",
    "Noise",
    "OnFlag",
    "Watch",
    "diagnose_rows",
    "diagnose_run",
    "noise_of",
]
