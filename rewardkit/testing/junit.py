"""Results of cases as a JUnit report, which GitLab, Jenkins and GitHub's actions read.

The format is the one that these readers share: suites of cases, where a case may hold a ``failure``, an ``error`` or
the mark ``skipped``.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rewardkit.testing.verdict import CaseResult
from rewardkit.types import Status

_NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MOST_CHARS = 20_000


class JunitSuite(NamedTuple):
    """One table of cases."""

    name: str  # what the table is called, such as its path
    reward: str  # the reward's name, with which readers group cases
    verdicts: Sequence[CaseResult]  # its cases
    accepted: frozenset[str] = frozenset()  # ids of cases whose outcome has become what is expected


def junit(suites: Iterable[JunitSuite]) -> str:
    """Return a JUnit report: XML 1.0, UTF-8.

    A case that is not as expected is a ``failure``; where its call failed and no failure was expected, an ``error``. A
    reward that skips a completion as the case expects passes, because that is its outcome. Characters that XML does not
    have become U+FFFD.
    """
    root = ElementTree.Element("testsuites", name="rewardkit test")
    elements = [_suite(root, suite) for suite in suites]
    for count in ("tests", "failures", "errors", "skipped"):
        root.set(count, str(sum(int(suite.get(count, "0")) for suite in elements)))
    root.set("time", f"{sum(float(suite.get('time', '0')) for suite in elements):.6f}")
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _suite(root: ElementTree.Element, suite: JunitSuite) -> ElementTree.Element:
    """Add a table's cases to the report; return their element, with its counts and times set."""
    element = ElementTree.SubElement(root, "testsuite", name=_text(suite.name))
    counts, seconds = {"failure": 0, "error": 0}, 0.0
    for verdict in suite.verdicts:
        case_s = sum(outcome.duration_s for outcome in verdict.outcomes)
        seconds += case_s
        attributes = {"classname": _text(suite.reward), "name": _text(verdict.case.id), "time": f"{case_s:.6f}"}
        case = ElementTree.SubElement(element, "testcase", attributes)
        if verdict.passed or verdict.case.id in suite.accepted:
            continue
        counts[_add_difference(case, verdict)] += 1
    element.set("tests", str(len(suite.verdicts)))
    element.set("failures", str(counts["failure"]))
    element.set("errors", str(counts["error"]))
    element.set("skipped", "0")
    element.set("time", f"{seconds:.6f}")
    return element


def _add_difference(case: ElementTree.Element, verdict: CaseResult) -> str:
    """Say in a case's element what is not as expected; return ``"error"`` where a call failed, else ``"failure"``."""
    differences = list(verdict.differences())
    failed_calls = [difference for difference in differences if difference.outcome.status is Status.FAILED]
    kind = "error" if failed_calls else "failure"
    index, expected, outcome = (failed_calls or differences)[0]
    where = f"completion {index}: " if verdict.case.group else ""
    got = outcome.error if failed_calls else outcome.score
    element = ElementTree.SubElement(case, kind, message=_text(f"{where}expected {expected}, got {got}"))
    element.set("type", str(outcome.cause or outcome.status))
    element.text = _text(verdict.diff())
    return kind


def _text(text: str) -> str:
    """Return a text that XML can hold."""
    return _NOT_IN_XML.sub("\ufffd", text[:_MOST_CHARS])
