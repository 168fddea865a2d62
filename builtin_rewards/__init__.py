"""Rewards that come with rewardkit; each is imported from a module of its own."""

import rewardkit

if not hasattr(rewardkit, "RewardFunctionsConfig"):
    import importlib.metadata

    theirs = sorted({*importlib.metadata.packages_distributions().get("rewardkit", ())} - {"rewardkit"})
    raise ImportError(
        f"another package named 'rewardkit' is in the way, {rewardkit.__file__}: "
        f"uninstall it (pip uninstall {' '.join(theirs) or 'PACKAGE'}) and install this one again"
    )
