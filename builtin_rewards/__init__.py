"""Rewards that come with rewardkit; each is imported from a module of its own."""

import importlib.util
from pathlib import Path

_spec = importlib.util.find_spec("rewardkit")
_init = Path(str(_spec and _spec.origin))
# Read, and not imported: another package may not import on this Python, or have overwritten this file alone.
if _init.is_file() and "RewardFunctionsConfig" not in _init.read_text(encoding="utf-8"):
    import importlib.metadata

    _holders = importlib.metadata.packages_distributions()
    theirs = sorted({*_holders.get("rewardkit", ())} - {*_holders.get(__name__, ())})
    raise ImportError(
        f"another package named 'rewardkit' is in the way, {_init}: "
        f"uninstall it (pip uninstall {' '.join(theirs) or 'PACKAGE'}) and install this one again, or give each an "
        "environment of its own"
    )

import rewardkit  # noqa: E402, F401 - it says in one line where no reward can run


def __getattr__(name: str) -> object:
    """Name the import of a reward that is looked for here.

    Raises:
        AttributeError: There is no such reward.
        ImportError: It is in a module, which the error names.
    """
    if not name.startswith("_") and importlib.util.find_spec(f"{__name__}.{name}") is None:
        from importlib.metadata import entry_points

        for offered in entry_points(group="rewardkit.rewards", name=name):
            raise ImportError(f"{name!r} is in a module of its own: from {offered.module} import {offered.attr}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
