"""How rewards are run: from a batch of rollouts to a batch of scores, in one line.

    plan -> lanes -> findings -> settle -> combine

Each module imports only what stands before it in this list, and import-linter checks that.

names.py     what other libraries call the things that a reward takes
cache.py     outcomes of deterministic rewards
plan.py      which calls a batch needs, and the bytes that travel
attempt.py   one attempt at one call, pure: values in, a finding out
target.py    what a worker process is given to run: an attempt
settle.py    findings in, outcomes out; decides what is tried again
lanes.py     a plan's calls, run in worker processes or inline, and handed to settle
batch.py     the leaves' outcomes, combined into the scores of a batch
open_batch.py  a batch whose completions are scored while others of it are being made
alarms.py    warnings of a reward that fails too often
runtime.py   the entrance: makes the pool and the cache once, and sends batches along the line
"""
