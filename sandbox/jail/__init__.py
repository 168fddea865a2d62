"""The jail: what the Linux kernel gives to shut a process in, by ctypes alone.

Nothing here knows of rewards, and nothing but the standard library is imported: these modules are
loaded inside the zygote, whose memory every evaluation inherits.
"""
