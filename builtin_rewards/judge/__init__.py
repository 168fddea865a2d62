"""Language models as judges: graders, comparers, juries and chains of them, each a reward as any other.

``llm`` grades one completion by a ``rubric``, ``pairwise`` and ``listwise`` compare those of a group, ``jury`` makes
one score of several judges, ``fallback`` asks the next judge when one cannot answer, and ``after`` asks a cheap reward
first. They share ``model``, which takes a question from its cache key to the verdict. ``builtin_rewards.endpoint``
asks the server, as it does for served reward models.
"""

from builtin_rewards.endpoint.budget import Budget, Price
from builtin_rewards.endpoint.endpoint import RetryPolicy
from builtin_rewards.endpoint.errors import (
    BudgetSpentError,
    Fault,
    JudgeError,
    JudgeReplyError,
    JudgeSetupError,
    JudgeUnavailableError,
)
from builtin_rewards.endpoint.limits import Load
from builtin_rewards.judge.after import Cascade
from builtin_rewards.judge.cache import JudgeCache
from builtin_rewards.judge.fallback import Fallback
from builtin_rewards.judge.jury import Jury, Reduction
from builtin_rewards.judge.listwise import ListwiseJudge
from builtin_rewards.judge.llm import LLMJudge
from builtin_rewards.judge.pairwise import PairwiseJudge
from builtin_rewards.judge.prompt import Template
from builtin_rewards.judge.rubric import Criterion

__all__ = [
    "Budget",
    "BudgetSpentError",
    "Cascade",
    "Criterion",
    "Fallback",
    "Fault",
    "JudgeCache",
    "JudgeError",
    "JudgeReplyError",
    "JudgeSetupError",
    "JudgeUnavailableError",
    "Jury",
    "LLMJudge",
    "ListwiseJudge",
    "Load",
    "PairwiseJudge",
    "Price",
    "Reduction",
    "RetryPolicy",
    "Template",
]
