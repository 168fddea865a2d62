"""How rewards are run: one attempt, the lanes, and the runtime that drives them.

attempt.py   one attempt at one call, pure: values in, a finding out
target.py    what a worker process is given to run
retry.py     when a failed call is tried again
cache.py     outcomes of deterministic rewards
plan.py      which calls a batch needs, and the bytes that travel
scoring.py   one batch on its way through a lane: results in, outcomes out
inline.py    the lane in the caller's own process
alarms.py    a reward that fails too often says so
batch.py     the scores of a batch
runtime.py   the door
"""
