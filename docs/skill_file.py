"""Writes the skill for coding assistants that the wheel has: the page ``docs/skills/rewardkit.md`` with its header.

python docs/skill_file.py
"""

from __future__ import annotations

from pathlib import Path

DOCS = Path(__file__).parent
PAGE = DOCS / "skills" / "rewardkit.md"
SKILL = DOCS.parent / "rewardkit" / "skills" / "rewardkit" / "SKILL.md"
HEADER = """\
---
name: rewardkit
description: Write, test, audit and plug in reward functions for RL fine-tuning (GRPO and others) with rewardkit. Use when code imports rewardkit, builtin_rewards or trainer_adapter, or a task asks for a reward function.
---

"""  # noqa: E501 - a header has its description in one line


def skill() -> str:
    """Return the skill: what assistants choose it by, and the page."""
    return HEADER + PAGE.read_text(encoding="utf-8")


if __name__ == "__main__":
    SKILL.parent.mkdir(parents=True, exist_ok=True)
    SKILL.write_text(skill(), encoding="utf-8")
