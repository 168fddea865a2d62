"""The pieces of :mod:`rewardkit.coercion.coerce`: one module for each kind of annotation.

They depend in one direction: ``literals`` and ``rule`` know nobody; ``scalars``, ``containers``, ``records``,
``unions`` and ``foreign`` know those two; ``rewardkit.coercion.coerce`` reads annotations and puts them together.
"""
