"""All that runs inside the jail: the zygote, and what its children do with the code that nobody trusts.

``zygote`` forks a child for each evaluation, ``children`` reaps them, and ``workfolder`` cleans up after them.
``runner`` is what such a child does, ``asserts`` runs test text in a child of its own, and ``guards`` is what a gated
text finds in place of Python's builtins. Nothing but the standard library, :mod:`sandbox.jail` and the plain values of
:mod:`sandbox.plain` is imported here. Whatever these modules say of a completion passed through a process that the
completion shared: the outside (``client``, ``process``, ``evaluation``, ``checks``) reads it as such.
"""
