"""Summaries: of the asked length, with what must be in them, in words of their own."""

from builtin_rewards.echo import no_prompt_echo
from builtin_rewards.length import length_between
from builtin_rewards.matching import contains_all
from builtin_rewards.repetition import repetition_penalty

brief = length_between(8, 40).with_options(name="brief")
covered = contains_all.with_options(name="covered")
summary = (0.4 * covered + 0.3 * brief + 0.3 * no_prompt_echo + repetition_penalty).named("summary")
