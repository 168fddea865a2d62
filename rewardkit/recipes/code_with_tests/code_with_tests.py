"""Code with tests: the share of the tests that pass, once the code compiles."""

from builtin_rewards.code import code_compiles, code_tests
from rewardkit import gate

tested = gate(code_compiles, code_tests).named("tested")
