"""Fault isolation for callables that the author trusts: any hang, crash or leak costs that call alone.

    pool.py      the parent's loop: hears workers, watches deadlines, has the dead replaced
    dispatch.py  which call goes to which worker next
    blame.py     what becomes of the calls that a worker did not answer
    link.py      the parent's end of the warden
    slot.py      the parent's view of one worker
    warden.py    the process that forks workers and cleans up after them; nursery.py forks those that load slowly
    worker.py    the process that runs calls: serial.py one at a time, threads.py and loop.py many at once
    desk.py      what these three have in common
    capture.py   what each call prints and logs
    page.py      the memory in which a worker says what it is doing
    clock.py     a call's clock, which stands still while a jail starts
    wire.py      frames, records and batches between parent and worker

*Covered:* exceptions, hangs (also with signals ignored), crashes, exits, runaway memory, floods of output,
left-over children and threads, closed descriptors, a killed parent. *Not covered:* code that means harm. A
worker has the user's rights; what a model wrote belongs in the jail.
"""
