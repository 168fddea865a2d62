"""The reward for instructions that a program can check: word counts, keywords, formats and the like.

It knows the 25 kinds of IFEval (Zhou et al., arXiv 2311.07911) and the 58 of IFBench (Pyatkin et al., arXiv
2507.02833). Each module of this folder has a family of kinds, and ``kinds`` has all of them by their ids.
"""

from builtin_rewards.instructions.kinds import KINDS as KINDS
from builtin_rewards.instructions.reward import instructions as instructions
