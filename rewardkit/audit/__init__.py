"""The audit: attacks a reward with its author's own rows and says what it wrongly pays for and wrongly refuses.

``families`` has each family's rule in words; ``rows`` reads the rows and their gold; ``honest`` writes right answers;
``answers``, ``neighbours``, ``parts``, ``texts``, ``bulk`` and ``programs`` write the attacks, ``talk`` has them as
messages; ``run`` scores them in workers; ``judge`` decides what each score means and makes a ``verdict``; ``thumbs``
names the rules that flaws break; ``lint`` reads the reward's source; ``report`` is all of it as JSON.
"""
