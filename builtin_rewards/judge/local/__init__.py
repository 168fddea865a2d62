"""A small model behind a real server on this machine, to try judges with: no account, no key, no GPU.

:mod:`~builtin_rewards.judge.local.setup` fetches what it needs, :mod:`~builtin_rewards.judge.local.server` runs
it, :mod:`~builtin_rewards.judge.local.run` is the command. What speaks HTTP is the JavaScript beside them.
"""

from __future__ import annotations

from builtin_rewards.judge.local.server import LocalJudgeServer

__all__ = ["LocalJudgeServer"]
