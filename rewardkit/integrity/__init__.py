"""Can a completion forge this harness? Acts that pass without solving, and what runs them on any harness.

The folder needs the standard library alone and can be copied into another project: ``python -m rewardkit.integrity``,
or ``python integrity`` beside a copy. :mod:`.forging_acts` reads the acts, :mod:`.secret_task` draws the task,
:mod:`.targets` says what a harness is, and :mod:`.examiner` runs the acts in bounded processes.

*Covered:* harnesses that grade a completion by code: calls of a function, programs, folders; and graders of texts.

*Not covered:* that a harness is right. An act that passes shows a hole; acts that do not pass show nothing of others.
"""
