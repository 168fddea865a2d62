"""Rewards that score each step of a completion."""
