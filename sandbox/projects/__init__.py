"""Folders of code in other languages than Python with their own tests, made into programs that the jail runs.

The tests and what they test share the program, so what it prints is no verdict: :mod:`rewardkit.suites` runs them
several times, with changed tests.
"""
