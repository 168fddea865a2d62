"""All that runs inside the jail: the zygote, and what its children do with the code that nobody trusts.

``zygote`` forks a child for each evaluation, ``children`` reaps them, and ``workfolder`` cleans up after them.
``runner`` is what such a child does, ``asserts`` runs test text in a child of its own, and ``guards`` is what a gated
text finds in place of Python's builtins. Only the standard library, :mod:`sandbox.jail` and :mod:`sandbox.plain` are
imported here. The outside reads whatever they say of a completion as coming from a process that it shared.
"""
