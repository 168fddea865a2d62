"""The audit: attacks a reward with its author's own rows, and finds what it wrongly pays for and wrongly refuses.

``rows`` reads the rows and their gold; ``honest`` writes right answers; ``answers``, ``neighbours``, ``parts``,
``texts``, ``bulk`` and ``programs`` write the attacks, each a ``probe`` of a family; ``talk`` writes messages;
``engine`` scores them in workers; ``assessment`` decides what each score means and makes a ``result``;
``rules_of_thumb`` names what flaws break; ``lint`` reads the reward's source.

Of a run, ``recorded`` reads the newest completions, ``mutants`` changes the best paid of them, and ``exploits`` scores
the changed ones and decides, by the levels of ``assessment``, which are paid and should not be.
"""
