"""The jail: the walls that the Linux kernel offers around a process, built with ctypes alone.

Nothing here knows of rewards, and nothing but the standard library is imported: these modules are
loaded inside the zygote, whose memory every evaluation inherits.
"""
