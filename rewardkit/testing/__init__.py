"""Tools for authors of rewards: tables of cases, laws, and stand-ins for what tests should not reach.

expectation.py  what a case expects of an outcome
source.py       case files as text, with places
table.py        cases, read and checked
words.py        how completions are shown
verdict.py      cases, run
accept.py       expected scores, changed in the file
cases.py        a table as a pytest function
hostile.py      completions that rewards meet and tests forget
laws.py         what holds for every reward
search.py       looking for a completion that breaks a law
fakes.py        a fake judge, rollouts from rows
fixtures.py     what the pytest fixtures give
"""

from rewardkit.testing.cases import cases
from rewardkit.testing.expectation import Expectation
from rewardkit.testing.fakes import Asked, FakeJudge, rollouts_from_rows
from rewardkit.testing.fixtures import Runtimes
from rewardkit.testing.laws import Law, LawBroken, assert_laws
from rewardkit.testing.table import Case, Table, read_table
from rewardkit.testing.verdict import CaseResult

__all__ = [
    "Asked",
    "Case",
    "CaseResult",
    "Expectation",
    "FakeJudge",
    "Law",
    "LawBroken",
    "Runtimes",
    "Table",
    "assert_laws",
    "cases",
    "read_table",
    "rollouts_from_rows",
]
