"""The pieces of :mod:`rewardkit.coerce`: one module for each kind of annotation.

They depend in one direction: ``literals`` and ``rule`` know nobody; ``scalars``, ``containers``, ``records``,
``unions`` and ``foreign`` know those two; ``rewardkit.coerce`` reads annotations and puts them together.
"""
