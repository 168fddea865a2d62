"""Where a quick way is taken, it gives what the plain way gives, on texts made to tell the two apart."""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builtin_rewards import echo, groups, overlap, urls
from builtin_rewards.reading import lists, options, typography
from builtin_rewards.repetition import units

BLANKS = (" ", " ", "\n", "\t", "\x1c", "\u3000", "\u2028", "\x85")
ODD = (
    *("\u2019", "\u201c", "\u2014", "\u2212", "\u00e9", "\u00d7", "\u00b2", "\u00bd", "\u2260", "\u200b", "\u4e2d"),
    *("\u3002", "\u00b7", "\u2026", "\u0665", "\uff15", "\u0301", "\ud800", "\u0130", "\u212a", "\u00bf", "\u00ab"),
)


def joined(*pieces: str) -> st.SearchStrategy[str]:
    """Gives texts of a few pieces, and now and then of anything."""
    parts = st.lists(st.sampled_from(pieces), max_size=9)
    return parts.map("".join) | parts.map(" ".join) | st.tuples(parts.map("".join), st.text(max_size=5)).map("".join)


texts = joined(*BLANKS, *ODD, *string.punctuation, "the", "a", "5", "42", "Paris", "C", "B")
prose = joined(
    *BLANKS, *"+-#%,.:/$", *"5", "1,000", ",000", "a", "the", "Paris", "x", "C", "\u00b7", "\u2026", "\u00e9"
)
sums = joined(
    *(" ", "\n", "  ", "not", "NOT", *"+-.,/x_e", "5", "12", "3.5", "-.5", "+.5", "1,000", "1e3", "1. ", "- "),
    *("\u2022 ", "\u0665", "\u00d7"),
)
listings = joined(
    *" \n,;:&$", "and", "or", " and ", " or ", "x", "red", "The", "- ", "1. ", "2) ", "\\text{b}", "\\,", "{", "\u00e9"
)
picks = joined(
    *(" ", "\n", " ", "B", "b", "(C)", "**A**", "D.", "*", ")", ",", "#", "or", "and", "not ", "no ", "wrong ", "n't "),
    *("the answer is", "Answer:", "ans: ", "option", "I choose", " is correct", "Paris", "not Rome", "the answer is 5"),
    *("\\text{B}", "$", "the*", "\u1680", "\x1c", "\u4e00", "\u9009", "\u0131ncorrect ", "respuesta es "),
)
webs = joined("http:", "//", "/", "www.", "a.com", "a", " ", "(", ")", "](", ":", ".", "@", "_", "\u00e9", "<", "\\")
words = joined(" ", "\n", "a", "b", "c", "B", "a b c d", "a, b", ".", "\u3000", "\u00e9")
few = settings(max_examples=80)
often = settings(max_examples=200)


def plainly_folded(text: str) -> str:
    """Folding as it is described, character by character."""
    text = typography._RAISED.sub(lambda run: "^" + run.group(), text)
    return unicodedata.normalize("NFKC", "".join(map(typography._plain, text)))


def plainly_unmarked(text: str) -> str:
    """Taking punctuation out as it is described, character by character."""
    return "".join(
        char for place, char in enumerate(text) if not typography._is_mark(char) or typography._is_meant(text, place)
    )


def plain_words(text: str) -> list[str]:
    """Normalising as it is described."""
    folded = plainly_folded(text).casefold()
    parted = plainly_unmarked(folded).split()
    return [word for word in parted if word not in ("a", "an", "the")] or parted or folded.split()


@often
@given(texts)
def test_folding(text: str) -> None:
    """Texts fold as their characters do, whatever few or many of them change."""
    assert plainly_folded(text) == typography.fold(text)
    everything = text + "".join(typography._QUOTES) + "".join(map(chr, range(0x2010, 0x2016)))
    assert plainly_folded(everything) == typography.fold(everything)


@often
@given(texts | prose, st.lists(st.sampled_from(("paris", "5", "the", "c", "1000", "x", "\u00e9")), unique=True))
def test_normalising(text: str, wanted: list[str]) -> None:
    """Words are the same taken one by one, line by line, counted in the whole text, and told from its beginning."""
    plain = plain_words(text)
    assert plain == typography.normal_words(text)
    assert [" ".join(plain_words(line)) for line in text.split("\n")] == typography.normalise_lines(text)
    counts = Counter(plain)
    assert (len(plain), {word: counts[word] for word in wanted}) == typography.tally(text, wanted)
    assert typography.may_be("a " * 60 + text, (" ".join(plain), "paris"))


@often
@given(texts)
def test_counting_words(text: str) -> None:
    """Words are counted as ``str.split`` parts them."""
    assert len(text.split()) == typography.count_words(text)


@often
@given(sums)
def test_numbers(text: str) -> None:
    """Numbers that are looked for digit by digit are those that the pattern finds."""
    found = lists._numbers_in(text, lists._kinds(text))
    assert repr(lists._numbers_in(text, None)) == repr(found)


@often
@given(listings)
def test_lists(text: str) -> None:
    """Markers go, and items part, where plain patterns say so."""
    marker = re.compile(r"^[ \t]*(?:(\d{1,4})[.)]|[-*+\u2022])[ \t]+", re.MULTILINE)
    counted = [found[1] for found in marker.finditer(text) if found[1]]
    counts = len(counted) > 1 and counted == [str(place) for place in range(1, len(counted) + 1)]
    bare = marker.sub(lambda found: "" if counts or not found[1] else found[0], text)
    assert bare == lists._without_markers(text)
    lines = text.splitlines()
    said = [line[found.end() :].split(";") for line in lines if (found := marker.match(line))]
    said = said or [
        re.split(r"[,;&]|\band\b|\bor\b", line.partition(":")[2] if ":" in line else line) for line in lines
    ]
    parts = dict.fromkeys(lists._LATEX.sub(" ", part).strip(" \t\r\"'") for line in said for part in line)
    items = (" ".join(plain_words(part)) for part in parts)
    assert list(dict.fromkeys(filter(None, items))) == lists._items(lists._parts(text))


@often
@given(picks)
def test_choices(text: str) -> None:
    """What is left unread of a line, a statement and a choice's text has no letter, no denial and no choice in it."""
    reader = options._Reader("ABCD", ("Paris", "the answer is 5", "C++", "not Rome"))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(options, "_ends_bare", lambda line: True)
        patched.setattr(options, "may_be", lambda phrase, golds: True)
        expected = [reader.bare(text), reader.spelled(text), reader.stated(text)]
    assert expected == [reader.bare(text), reader.spelled(text), reader.stated(text)]
    assert (options._DENIED.search(text[-24:]) is not None) == options._is_denied(text[-24:])


@often
@given(webs)
def test_urls(text: str) -> None:
    """URLs without a scheme are those that the pattern finds."""
    expected = [(match.start(), match[0]) for match in urls._BARE.finditer(text)]
    assert expected == list(urls._without_scheme(text))


@often
@given(words, words, st.integers(2, 5))
def test_echoes(text: str, prompt: str, width: int) -> None:
    """Words are parted, and runs of them counted as echoes, as they are described."""
    said, asked = echo._words(text), echo._words(prompt + text[3:])
    assert typography.fold(text).lower().translate(echo._MARKS).split() == said
    runs = [said[place : place + width] for place in range(0, len(said) - width + 1, width)]
    runs += [said[-width:]] if len(said) % width else []
    known = [asked[place : place + width] for place in range(len(asked) - width + 1)]
    if len(said) >= width:
        assert (sum(run in known for run in runs), len(runs)) == echo._echoed(said, asked, width)


@often
@given(st.lists(words, min_size=2, max_size=4), st.integers(1, 3))
def test_diversity(completions: list[str], n: int) -> None:
    """Sets of numbered n-grams are as alike as the sets of n-grams are."""
    sets = []
    for text in completions:
        said = units(text)
        sets.append({tuple(said[place : place + n]) for place in range(max(1, len(said) - n + 1))} - {()})
    for own, score in zip(sets, groups.diversity(n).function(completions), strict=True):
        others = [other for other in sets if other is not own and other]
        if own and others:
            alike = sum(len(own & other) / len(own | other) for other in others) / len(others)
            assert 1 - alike == pytest.approx(score.value)


def scored(made: Any, completion: str, references: list[str]) -> float:
    value = made.function(completion, references).value
    assert value is not None
    return float(value)


filled = (texts | words).filter(lambda text: bool(text.strip()))


@few
@given(
    filled,
    st.lists(filled, min_size=1, max_size=3),
    st.sampled_from(("13a", "intl", "char", "zh", "none")),
    st.booleans(),
)
def test_bleu_is_sacrebleus(text: str, references: list[str], tokenize: str, lowercase: bool) -> None:
    """Counting what the references have gives the score that counting everything gives, to the last digit."""
    made = overlap.bleu(tokenize=tokenize, lowercase=lowercase)
    metric = overlap._bleu_metric(4, tokenize, lowercase)
    for completion in (text, text + references[0]):
        expected = min(1.0, max(0.0, metric.sentence_score(completion, references).score / 100))
        assert expected == scored(made, completion, references)


@few
@given(filled, st.lists(filled, min_size=1, max_size=3), st.integers(1, 7), st.integers(1, 3), st.booleans())
def test_chrf_is_sacrebleus(text: str, references: list[str], order: int, beta: int, lowercase: bool) -> None:
    """So does chrF, with and without words."""
    for word_order in (0, 2):
        made = overlap.chrf(char_order=order, word_order=word_order, beta=beta, lowercase=lowercase)
        metric = overlap._chrf_metric(order, word_order, beta, lowercase)
        for completion in (text, text + references[0]):
            expected = min(1.0, max(0.0, metric.sentence_score(completion, references).score / 100))
            assert expected == scored(made, completion, references)


@often
@given(texts)
def test_rouge_reads_rouge_scores_words(text: str) -> None:
    """ROUGE's words are those of rouge-score's tokenizer."""
    tokenizer = pytest.importorskip("rouge_score.tokenizers").DefaultTokenizer(False)
    assert tokenizer.tokenize(text) == overlap._rouge_tokens(text, False)


def test_sacrebleus_caches_do_not_grow() -> None:
    """Its tokenizers would keep the last 65,536 texts each."""
    kind = pytest.importorskip("sacrebleu.tokenizers.tokenizer_13a").Tokenizer13a
    for number in range(5):
        overlap.bleu.function(f"the cat number {number}", "the cat")
    assert 0 == kind.__call__.cache_info().currsize
