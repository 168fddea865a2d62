"""Rewards that come with rewardkit; each is imported from a module of its own."""
