"""Rules of thumb for rewards: what each flaw that a probe brings to light is called, and what mostly causes it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from rewardkit.audit.bulk import EXITS, FORMULAS
from rewardkit.audit.probe import Family, Probe


class RuleOfThumb(NamedTuple):
    """A rule of thumb: what a sound reward holds to, and what mostly causes a reward to break it."""

    rule: str
    cause: str


_RULES = {
    "empty": (
        "Silence earns nothing.",
        "A check that nothing fails: an empty text is in every text, an empty list has no wrong item, a default pays.",
    ),
    "echo": (
        "The question is no answer.",
        "It finds what it looks for in the words of the prompt, or works out a sum that the prompt asks for.",
    ),
    "format": (
        "A form without content, or a broken one, earns nothing.",
        "The pattern asks whether the marks are there: not what is in them, nor whether that is the whole text.",
    ),
    "stuffing": (
        "Several different answers are no answer.",
        "It searches for the gold among what the completion says, and does not read one final answer.",
    ),
    "misplaced": (
        "Only what stands in the answer's place is the answer.",
        "It takes any number or word of the text, or the last one, wherever it stands.",
    ),
    "withdrawn": (
        "An answer that is taken back is no answer.",
        "It takes the first answer that is announced, or any, and does not read on.",
    ),
    "negated": (
        "An answer that is denied is no answer.",
        "It takes the gold out of a sentence without the words around it.",
    ),
    "work": ("Work that leads elsewhere earns nothing.", "It asks whether there is work, and not what it says."),
    "tolerance": (
        "A number near the right one is another number.",
        "It allows a difference, rounds, or pays by closeness. A tolerance for rounding is about 1e-6.",
    ),
    "digits": (
        "The right digits in another order, or one of them changed, are another number.",
        "It compares characters or their likeness, sorted digits, or the beginning or end of a number.",
    ),
    "order": (
        "The letters of a word in another order are another word.",
        "It compares sorted characters, or how often each stands there.",
    ),
    "sign": (
        "The sign, and words that change the value, belong to the number.",
        "It takes the digits without what stands before them: abs(), a pattern without '-'.",
    ),
    "size": ("A power of ten changes a number.", "It strips zeros or the point, or compares beginnings."),
    "unit": ("The unit belongs to the answer.", "It compares the number and drops what stands beside it."),
    "part": ("A part of the answer is not the answer.", "It tests whether one text is in the other, with 'in'."),
    "letter": ("Another letter is another choice.", "It asks for some letter, and not for this one."),
    "value": (
        "One wrong value makes an object another one.",
        "It compares keys, types or a part of the values, and pays in full.",
    ),
    "key": (
        "A key that is missing, renamed or too many makes an object another one.",
        "It compares only the keys that both sides have, and pays in full.",
    ),
    "item": (
        "A list with an item too few or too many is another list.",
        "It asks whether what is there is right, or whether what is right is there; zip() ends with the shorter list.",
    ),
    "call": (
        "A call missing, made twice or to another tool is another call.",
        "It looks for one right call among those made, compares sets, or leaves out the name.",
    ),
    "unfinished": (
        "A sum that is not worked out is no answer.",
        "It evaluates what the completion says (eval, sympy), so the model need not.",
    ),
    "other_gold": (
        "What answers another row is wrong on this one.",
        "It asks for an answer of the right form, for likeness, or for overlap, and not for this row's answer.",
    ),
    "lookalike": (
        "What a reader tells apart stays apart.",
        "It folds or drops characters (NFKD, encode('ascii', 'ignore'), a pattern that skips them) before it compares.",
    ),
    "long": ("Length earns nothing.", "It counts or searches, and a long text has of everything."),
    "judge": (
        "Words to the grader are no answer.",
        "A judge reads the completion as orders, or a parser finds its verdict in what the model wrote.",
    ),
    "bomb": (
        "What is not finite equals nothing, and what the model wrote is never run.",
        "nan passes 'not distance > tolerance'; eval runs what it is given.",
    ),
    "code": (
        "A program passes by its results alone, told by a process that it cannot reach.",
        "The tests run in the program's own process, or an early exit counts as a pass.",
    ),
    "constant_output": (
        "The same output for every input is no solution.",
        "It pays the share of tests passed, and many expect the same. Pay all tests or nothing (all_or_nothing=True),"
        " or more kinds of outputs.",
    ),
    "object": (
        "What a completion returns does not vouch for itself.",
        "A test takes the word of an object of the completion: its method's answer, its truth, or, in one process, its"
        " __eq__. Compare values with '==' outside of it, or check isinstance(value, str) first.",
    ),
    "length": ("A longer text is worth no more without end.", "It counts characters, words or steps, without a bound."),
    "repetition": (
        "The same once more earns nothing.",
        "It counts what it looks for (words, steps, headings) without a bound, and the same again as well.",
    ),
    "courtesy": (
        "Polite and flattering words are no content.",
        "It counts words of a list, or a judge likes to be praised; what else the text says plays no part.",
    ),
    "citing": (
        "Whoever cites everything cites nothing.",
        "It counts citations, or asks for those that are right and not for those that are wrong.",
    ),
    "noise": (
        "Words that mean nothing are not new.",
        "It pays for words that are rare, different or not in another text, and any string is.",
    ),
    "slow": (
        "A call ends soon, whatever the text.",
        "A pattern that tries every split, a formula without a bound, work that grows with the square of the length.",
    ),
    "crashed": (
        "A wrong completion is a score of 0, not an error.",
        "It takes for granted what a completion need not have. Catch that error by name.",
    ),
}
RULES_OF_THUMB = {name: RuleOfThumb(*texts) for name, texts in _RULES.items()}
"""The rules of thumb: of each family that has one, and of kinds of probes within families."""
KINDS = [name for name in RULES_OF_THUMB if name not in {*map(str, Family), "slow", "crashed"}]
"""Those of kinds of probes within a family, which can be left out on their own."""
_OF_LENGTH = "Its length alone pays, or any text does: the paid texts say nothing that could be run or compared."


def cause_of(name: str, probes: Iterable[Probe]) -> str:
    """Return what mostly causes a reward to break a rule, by the probes that show it.

    Among the bombs, values that are not finite and code that is run show another cause than long and nested texts do.
    """
    cause = RULES_OF_THUMB[name].cause
    if name != str(Family.BOMB):
        return cause
    have_values = {probe.name in FORMULAS or probe.name in EXITS for probe in probes}
    causes = [text for text, is_seen in ((cause, True in have_values), (_OF_LENGTH, False in have_values)) if is_seen]
    return " ".join(causes)


def rule_of(probe: Probe) -> str:
    """Return the name of the rule of thumb that a reward breaks if it pays a probe."""
    return probe.rule or str(probe.family)
