"""Versions of rewards: fingerprints that change when what a reward does may have changed."""
