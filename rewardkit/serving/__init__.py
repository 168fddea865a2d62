"""Public: one runtime for many callers, in this process or as a server.

:class:`JoinedRuntime` joins the calls of threads and event loops into batches, and gathers the rows of a prompt into
groups; trainers' adapters use it. :class:`RemoteRuntime` asks servers that ``rewardkit serve`` runs, and
:func:`scorer_of` chooses between these and a runtime here.
:func:`completion_in` takes OpenRLHF's queries apart, and :func:`told_rows` says what is known of each row's total, as
the server's routes and the adapters tell it.
"""

from rewardkit.serving.choice import is_address, scorer_of
from rewardkit.serving.contract import RowFate, ToldRow, told_rows
from rewardkit.serving.joined_runtime import JoinedRuntime
from rewardkit.serving.joining import PartsScorer
from rewardkit.serving.queries import completion_in
from rewardkit.serving.remote import RemoteRuntime
from rewardkit.serving.remote_reward import RemoteReward

__all__ = [
    "JoinedRuntime",
    "PartsScorer",
    "RemoteReward",
    "RemoteRuntime",
    "RowFate",
    "ToldRow",
    "completion_in",
    "is_address",
    "scorer_of",
    "told_rows",
]
