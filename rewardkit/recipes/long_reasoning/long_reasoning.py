"""Long reasoning: thoughts and an answer in their tags, in one language, not endless, and right."""

from builtin_rewards.formats import format_tags
from builtin_rewards.language import language_is
from builtin_rewards.length import length_between
from builtin_rewards.math import math_answer

language = language_is(language="en").with_options(name="language")
bounded = length_between(5, 1500).with_options(name="bounded")
reasoned = (0.7 * math_answer + 0.1 * format_tags + 0.1 * language + 0.1 * bounded).named("reasoned")
