"""The dashboard: a local web page on recorded runs, for ``rewardkit ui``."""
