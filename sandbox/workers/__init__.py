"""Fault isolation for callables that the author trusts: any hang, crash or leak costs that call alone.

    pool.py      the parent's engine: feeds workers, watches deadlines, blames, restarts
    slot.py      the parent's view of one worker
    warden.py    the process that forks workers and cleans up after them
    worker.py    the process that runs calls one at a time; threads.py and loop.py run many at once
    capture.py   what each call prints and logs
    page.py      the memory in which a worker says what it is doing
    clock.py     a call's clock, which stands still while a jail starts
    wire.py      frames, records and batches between parent and worker

*Covered:* exceptions, hangs (also with signals ignored), crashes, exits, runaway memory, floods of output,
left-over children and threads, closed descriptors, a killed parent. *Not covered:* code that means harm. A
worker has the user's rights; what a model wrote belongs in the jail.
"""
