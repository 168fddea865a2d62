"""Rewards that compare a completion with the row's answer as text: the same, contained, chosen, alike, listed.

They compare text, not meaning: for 1/2 and 0.5 there are rewards for mathematics. The column ``answer`` holds the
gold. A row whose ``answer`` is empty, ``None`` or ``null`` is skipped: the score is ``None``.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence

from builtin_rewards.adjustable import adjustable, require
from builtin_rewards.extras import extra
from builtin_rewards.reading.answer import answer_as_text, final_answer
from builtin_rewards.reading.choices import choice_texts, gold_letter, letters_chosen
from builtin_rewards.reading.lists import items_listed, matched_numbers, numbers_listed, plain_item
from builtin_rewards.reading.negation import negations
from builtin_rewards.reading.normalisation import fold, normalise, part_by_script, struck_out, uses
from builtin_rewards.reading.thoughts import after_thinking
from rewardkit import Reward, Score, reward
from rewardkit.extending import shorten

_NO_GOLD = Score(None, reason="the row has no answer")
_NO_TERMS = Score(None, reason="no terms: neither the column 'answer' nor the setting has any")
_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_DIGITS = re.compile(r"[-+]?\d[\d.,/:]*")  # also dates and times
_SHOWN_TERMS = 5


def _compare_answers(
    completion: str, answer: str | None, form: Callable[[str], str], compare: Callable[[str, str], Score]
) -> Score:
    """Return how the final answer compares with the gold, both in a form; the reason names the rule that found it."""
    gold = form(final_answer(answer).strip()) if answer else ""
    if not gold:
        return _NO_GOLD
    extraction = answer_as_text(completion)
    score = compare(form((extraction.answer or "").strip()), gold)
    rule = f"{extraction.rule}, {extraction.problem}" if extraction.problem else extraction.rule
    return Score(score.value, reason=f"{score.reason} ({rule})", metrics=score.metrics)


def _equality_score(text: str, gold: str) -> Score:
    return Score(float(text == gold), reason=f"{shorten(text)} is {'' if text == gold else 'not '}{shorten(gold)}")


@reward(score_range=(0, 1))
def exact_match(completion: str, answer: str | None) -> Score:
    """1.0 if the completion is the answer, character by character, otherwise 0.0.

    It compares the marked answer, in the last ``\\boxed{}`` or else the last ``<answer>`` tags, else all text after the
    thoughts. The same rule, which the reason names, reads the gold. Marked answers that differ, or are denied or
    withdrawn, do not count. Blanks and line ends around, and stop tokens at the end (``<|im_end|>``), make no
    difference; case, punctuation and everything else does. Columns: ``answer``, the text.
    """
    return _compare_answers(completion, answer, str, _equality_score)


@reward(score_range=(0, 1))
def normalized_match(completion: str, answer: str | None) -> Score:
    """1.0 if the completion is the answer but for case, punctuation, articles and blanks, otherwise 0.0.

    Source: the exact match of SQuAD (Rajpurkar et al., arXiv 1606.05250), after NFKC and without zero-width characters.
    Unlike there, punctuation that makes another number or name counts: ``-5`` is not ``5``, ``3.5`` not ``35``, ``5%``
    not ``5``, ``C++`` not ``C``. The text compared, and the column ``answer``, are those of ``exact_match``: an answer
    inside a sentence, a negated one or several do not match.
    """
    return _compare_answers(completion, answer, normalise, _equality_score)


@adjustable
def fuzzy_match(threshold: float = 0.8) -> Reward[..., Score]:
    """Return ``fuzzy_match`` with these settings.

    Args:
        threshold: The similarity, 0 to 1, below which the score is 0.0.
    """
    require(0 <= threshold <= 1, "0 to 1", threshold=threshold)

    def compare(text: str, gold: str) -> Score:
        similarity = extra("rapidfuzz.fuzz").ratio(text, gold, score_cutoff=100 * threshold) / 100
        if not similarity:
            return Score(0.0, reason=f"{len(text)} characters, less than {threshold:.2f} alike")
        if sorted(_DIGITS.findall(text)) != sorted(_DIGITS.findall(gold)):
            return Score(0.0, reason="its numbers are not the answer's")
        if negations(text) != negations(gold) or struck_out(text) != struck_out(gold):
            return Score(0.0, reason="one of the two is negated or struck out")
        return Score(similarity, reason=f"{similarity:.2f} alike")

    @reward(score_range=(0, 1))
    def fuzzy_match(completion: str, answer: str | None) -> Score:
        """How alike the completion and the answer are, 0 to 1; 0.0 below the threshold.

        Formula: rapidfuzz's ratio, 2 M / T, with M the length of the texts' longest common subsequence and T the sum of
        their lengths, both as ``normalized_match`` compares them. It forgives slips, not facts: 0.0 where the numbers
        in the two differ, or one has more negations (``not``, ``never``, ``wrong``, an unequal or not sign) than the
        other. The text compared, and the column ``answer``, are those of ``exact_match``.
        """
        # audit: skip misplaced a word more or less is a slip that it forgives
        return _compare_answers(completion, answer, normalise, compare)

    return fuzzy_match


@reward(score_range=(0, 1))
def edit_similarity(completion: str, answer: str | None) -> Score:
    """How few edits turn the completion into the answer, 0 to 1.

    Formula: 1 - d / max(n, m), with d the Levenshtein distance in characters and n, m the two lengths, after NFKC and
    without blanks around; case and punctuation count. It measures likeness of text: a neighbouring number is alike too.
    The text compared, and the column ``answer``, are those of ``exact_match``.
    """
    # audit: skip misplaced,negated,lookalike a measure of likeness: it pays for what the two texts share
    return _compare_answers(completion, answer, lambda text: fold(text).strip(), _edit_score)


def _edit_score(text: str, gold: str) -> Score:
    edits = int(extra("rapidfuzz.distance.Levenshtein").distance(text, gold))
    longest = max(len(text), len(gold))
    return Score(1 - edits / longest, reason=f"{edits} edits in {longest} characters", metrics={"edits": edits})


@reward(score_range=(0, 1))
def token_f1(completion: str, answer: str | None) -> Score:
    """How far the completion's words and the answer's are the same, 0 to 1: the F1 of SQuAD.

    Formula: 2 P R / (P + R) over the words of both, normalised as in ``normalized_match`` and counted as often as they
    occur; P is the share of the completion's words that the answer has, R the share of the answer's that the completion
    has. Source: Rajpurkar et al., arXiv 1606.05250, section 6. In scripts without blanks between words, such as
    Chinese, Japanese and Thai, each letter counts as a word, as in MLQA (arXiv 1910.07475). Word order and negation do
    not count, longer answers cost precision. The text compared, and the column ``answer``, are those of
    ``exact_match``.
    """
    # audit: skip misplaced,negated,lookalike a measure of likeness: it pays for what the two texts share
    return _compare_answers(completion, answer, normalise, _overlap_score)


def _overlap_score(text: str, gold: str) -> Score:
    tokens, gold_tokens = (Counter(part_by_script(side).split()) for side in (text, gold))
    return _f1((tokens & gold_tokens).total(), tokens.total(), gold_tokens.total(), "words")


def _f1(overlap: int, size: int, gold_size: int, noun: str) -> Score:
    metrics = {"precision": overlap / size if size else 0.0, "recall": overlap / gold_size}
    reason = f"{overlap} of the answer's {gold_size} {noun} among {size}"
    return Score(2 * overlap / (size + gold_size), reason=reason, metrics=metrics)


_Terms = Sequence[str] | str | None
_Matches = tuple[list[str], list[str]]


def _terms(value: _Terms) -> list[str]:
    terms = [value] if isinstance(value, str) else value or ()
    return [term for term in dict.fromkeys(" ".join(term.split()) for term in terms) if term]


def _search(
    terms: _Terms, *, whole_words: bool, ignore_case: bool, negated: bool = True
) -> Callable[[str, _Terms], _Matches]:
    """Return a function that tells which terms, of the setting or else the row, a completion uses and which not."""
    default = _terms(terms)
    require(terms is None or default, "a text or a list of texts", terms=terms)

    def prepare(text: str) -> str:
        return fold(text).casefold() if ignore_case else fold(text)

    def search(completion: str, column: _Terms) -> _Matches:
        text = prepare(after_thinking(completion))
        matches: _Matches = ([], [])
        for term in default or _terms(column):
            is_used = uses(text, prepare(term) or term, whole_words=whole_words, negated=negated)
            matches[not is_used].append(term)
        return matches

    return search


def _list_terms(terms: Sequence[str]) -> str:
    more = f" and {len(terms) - _SHOWN_TERMS} more" if len(terms) > _SHOWN_TERMS else ""
    return ", ".join(map(shorten, terms[:_SHOWN_TERMS])) + more


@adjustable
def contains_all(
    terms: Sequence[str] | str | None = None, *, words: bool = True, ignore_case: bool = True, negated: bool = False
) -> Reward[..., Score]:
    """Return ``contains_all`` with these settings.

    Args:
        terms: What must be there, the same for every row; ``None`` for the column ``answer``.
        words: A term must stand as a word of its own: ``cat`` is not in ``concatenate``, nor ``42`` in ``3.42``.
        ignore_case: Upper and lower case are the same.
        negated: A term also counts where one of the three words before it in its clause negates it.
    """
    search = _search(terms, whole_words=words, ignore_case=ignore_case, negated=negated)

    @reward(score_range=(0, 1))
    def contains_all(completion: str, answer: list[str] | str | None = None) -> Score:
        """The share of the terms that the completion contains, 0 to 1; each counts once.

        Formula: terms found / terms. It reads words, not meaning: ``not Paris`` and ``isn't the Paris`` do not
        count as Paris (``not only Paris`` and ``not Rome but Paris`` do), but ``Paris is wrong`` does. Thoughts are
        not read. Case, full-width letters and zero-width characters make no difference. Columns: ``answer``, a text
        or a list of texts, unless the setting ``terms`` is given. ``None`` where there are no terms.
        """
        # audit: skip stuffing,misplaced,negated,lookalike,item,citing it looks for terms, whatever else there is
        matches, misses = search(completion, answer)
        total = len(matches) + len(misses)
        if not total:
            return _NO_TERMS
        reason = f"missing: {_list_terms(misses)}" if misses else None
        return Score(len(matches) / total, reason=reason, metrics={"found": len(matches), "terms": total})

    return contains_all


@adjustable
def contains_any(
    terms: Sequence[str] | str | None = None, *, words: bool = True, ignore_case: bool = True, negated: bool = False
) -> Reward[..., Score]:
    """Return ``contains_any`` with these settings.

    Args:
        terms: What may be there, the same for every row; ``None`` for the column ``answer``.
        words: A term must stand as a word of its own, as in ``contains_all``.
        ignore_case: Upper and lower case are the same.
        negated: A term also counts where one of the three words before it in its clause negates it.
    """
    search = _search(terms, whole_words=words, ignore_case=ignore_case, negated=negated)

    @reward(score_range=(0, 1))
    def contains_any(completion: str, answer: list[str] | str | None = None) -> Score:
        """1.0 if the completion contains at least one of the terms, otherwise 0.0.

        Terms, and the column ``answer``, are those of ``contains_all``. A completion that lists many guesses contains
        the right one too: where there is one right answer, compare whole answers instead.
        """
        # audit: skip stuffing,misplaced,negated,lookalike,item,citing it looks for terms, whatever else there is
        matches, misses = search(completion, answer)
        if not matches:
            return Score(0.0, reason=f"none of {_list_terms(misses)}") if misses else _NO_TERMS
        return Score(1.0, reason=f"found {_list_terms(matches)}")

    return contains_any


@adjustable
def contains_none(
    terms: Sequence[str] | str | None = None, *, words: bool = True, ignore_case: bool = True
) -> Reward[..., Score]:
    """Return ``contains_none`` with these settings.

    Args:
        terms: What must not be there, the same for every row; ``None`` for the column ``forbidden``.
        words: Only a term that stands as a word of its own counts: ``ass`` is not in ``class``.
        ignore_case: Upper and lower case are the same.
    """
    search = _search(terms, whole_words=words, ignore_case=ignore_case)

    @reward(score_range=(0, 1))
    def contains_none(completion: str, forbidden: list[str] | str | None = None) -> Score:
        """1.0 if the completion contains none of the terms, otherwise 0.0.

        A negated term counts all the same; thoughts are not read. A completion of blanks scores 0.0. Columns:
        ``forbidden``, a text or a list of texts, unless the setting ``terms`` is given. ``None`` where there are no
        terms.
        """
        matches, misses = search(completion, forbidden)
        if not matches and not misses:
            return _NO_TERMS
        if matches or not fold(after_thinking(completion)).strip():
            return Score(0.0, reason=f"found {_list_terms(matches)}" if matches else "the completion is empty")
        return Score(1.0)

    return contains_none


@adjustable
def multiple_choice(*, letters: str = "ABCDEFGHIJ", first_index: int = 0) -> Reward[..., Score]:
    """Return ``multiple_choice`` with these settings.

    Args:
        letters: The letters that may be chosen where the row has no ``choices``; else as many as there are choices.
        first_index: The index of the first choice where ``answer`` is a number: 0 as in MMLU, or 1.
    """
    allowed = letters.upper()
    is_valid = len(set(allowed)) == len(allowed) >= 2 and set(allowed) <= set(_ALPHABET)
    require(is_valid, "at least two different Latin letters", letters=letters)
    require(first_index >= 0, "0 or more", first_index=first_index)
    alphabet = "".join(dict.fromkeys(allowed + _ALPHABET))

    @reward(score_range=(0, 1))
    def multiple_choice(completion: str, answer: str | None, choices: list[str] | str | None = None) -> Score:
        """1.0 if the completion chooses the right letter and no other, otherwise 0.0.

        In the last 50,000 characters after the thoughts, the first of these rules that finds a letter decides: letters
        in tags (``<answer>``, ``<choice>``, ``<option>``) and ``\\boxed{}``; statements (``the answer is (B)``,
        ``Answer: B``, ``I choose B``, ``Hence, B.``, ``not A but B``, in the languages of MMMLU and others, also with a
        choice's text); judgements (``B is correct``, ``only B works``, a tick beside it); lines that are a letter
        (``B``, ``(b)``, ``**B**``, ``option B``); the first or the last line where it begins with ``B)``, ``B.``,
        ``(B)`` or ``B, because``; a choice's own text as the first sentence or the last line. The reason names the
        rule. Letters that Arabic, Bengali, Chinese, Hindi, Japanese, Korean and Thai count choices with stand for
        ``A``, ``B`` and so on where they stand alone. A small letter counts in the only line of a
        short text, as in ``b. 4``.

        A letter that is denied, asked, supposed or withdrawn (``Wait, that is wrong``) does not count, and where the
        options are only listed or discussed, none is chosen. Several letters by one rule, or a letter with another
        choice's text, are a stuffed answer: 0.0. The words ``A`` and ``I``, and Cyrillic or Greek look-alikes, are no
        letters.

        Columns: ``answer``, a letter, one before its text (``B. London``), the index of a choice (see the setting
        ``first_index``) or a choice's own text; ``choices``, their texts in order, if the row has them: a list, or a
        text with a line for each that begins with its letter (``A) Rome``). ``None`` where the row has no answer, or
        one that is not a letter, index or text of a choice, or fits two different choices.
        """
        if not answer or not answer.strip():
            return _NO_GOLD
        texts = choice_texts((choices,) if isinstance(choices, str) else tuple(choices)) if choices else None
        if texts is None and isinstance(choices, str) and choices.strip():
            return Score(None, reason=f"the row's choices {shorten(choices)} are no list")
        letters = alphabet[: len(texts)] if texts else allowed
        gold = gold_letter(answer, letters, texts, first_index)
        if gold is None:
            return Score(None, reason=f"the row's answer {shorten(answer)} is not one of the choices")
        selection, rule = letters_chosen(completion, letters, texts)
        reason = f"{rule} chooses {', '.join(sorted(selection))}, right is {gold}" if selection else "no letter chosen"
        return Score(float(selection == {gold}), reason=reason, metrics={"letters": len(selection)})

    return multiple_choice


@adjustable
def numeric_list(*, ordered: bool = False, rel: float = 1e-6, abs: float = 1e-9) -> Reward[..., Score]:
    """Return ``numeric_list`` with these settings.

    Args:
        ordered: Numbers must stand at the same place in both lists.
        rel: Largest difference that counts as equal, relative to the larger number.
        abs: Largest difference that counts as equal.
    """
    require(0 <= rel < math.inf and 0 <= abs < math.inf, "numbers from 0 on", rel=rel, abs=abs)

    @reward(score_range=(0, 1))
    def numeric_list(completion: str, answer: list[float | str] | float | str | None) -> Score:
        """How far the completion's list of numbers is the answer's, 0 to 1.

        Formula: F1 = 2 m / (n + g), with m the numbers that pair off within the tolerance, each used once, n the
        completion's numbers and g the answer's: a number repeated or made up costs, and never helps. The completion's
        list stands, after the thoughts, in ``<answer>`` tags or ``\\boxed{}``, else anywhere; it is the list in
        brackets that holds a number, else all numbers there, except line counters (``1.``, ``2.``). A list that is
        denied (``not``, ``never``, ``anything but``, an unequal sign before it in its clause, ``is wrong`` behind it)
        or withdrawn (``Wait, that is wrong``) does not count. 0.0 where none is left, for boxes or bracketed lists that
        differ, and for a text of over 100,000 characters. Columns: ``answer``, a list of numbers, or text that holds
        one. ``None`` where it has no number.
        """
        gold = _gold_numbers(answer if isinstance(answer, list) else [answer])
        if not gold:
            return Score(None, reason="the row's answer has no numbers")
        numbers, fault = numbers_listed(completion)
        if fault:
            return Score(0.0, reason=fault)
        lists = [([a], [b]) for a, b in zip(numbers, gold, strict=False)] if ordered else [(numbers, gold)]
        return _f1(sum(matched_numbers(a, b, rel, abs) for a, b in lists), len(numbers), len(gold), "numbers")

    return numeric_list


def _gold_numbers(answer: Sequence[float | str | None]) -> list[float]:
    numbers: list[float] = []
    for part in answer:
        values = numbers_listed(part)[0] if isinstance(part, str) else [] if part is None else [float(part)]
        if not values or any(number != number for number in values):
            return []
        numbers += values
    return numbers


@reward(score_range=(0, 1))
def set_f1(completion: str, answer: list[str] | str | None) -> Score:
    """How far the completion's items and the answer's are the same set, 0 to 1.

    Formula: F1 = 2 m / (n + g), with m the items in both, n the completion's and g the answer's, all normalised as in
    ``normalized_match``; repeating one changes nothing, made-up ones cost. The completion's list is found as in
    ``numeric_list``. Its items are those of the list in square brackets, else of the lines with list markers (in ``-
    **red**: warm`` the bold text), else of all lines. They have no label before a colon, and are parted at commas,
    semicolons, ``and`` and ``or``, and at ``|`` and ``/`` where the answer has no such mark. List markers are dashes, a
    number 1, two or more numbers in any order, and letters that count from ``a``. Times keep their colon, and an item
    of the answer with a comma or ``and`` in it is one item. The words before a list in its sentence (``The colours
    are``), ``Sure!`` and a table's head are no items. Columns: ``answer``, a list of texts, or a text that lists them.
    ``None`` where it has no item.
    """
    gold_items = answer if isinstance(answer, list) else []
    gold = frozenset(items_listed(answer)[0] if isinstance(answer, str) else map(plain_item, gold_items)) - {""}
    if not gold:
        return Score(None, reason="the row's answer has no items")
    gold_text = "".join(gold_items or answer or "")
    marks = "".join(mark for mark in "|/" if mark not in gold_text)
    items, fault = items_listed(completion, gold, gold_items, marks)
    if fault:
        return Score(0.0, reason=fault)
    item_set = set(items)
    return _f1(len(item_set & gold), len(item_set), len(gold), "items")
