"""Which letter a completion chooses: every usual way of writing one, and none that only looks like it.

Owns :func:`letters_chosen`; what the letters are worth is ``builtin_rewards.matching.multiple_choice``'s work.
Cues are found by plain search and read with anchored, bounded patterns, so any completion takes a few passes.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Sequence

from builtin_rewards.reading.turn import after_thinking
from builtin_rewards.reading.typography import fold, normalise

_READ_CHARS = 50_000
"""Characters, the last ones, in which a choice is looked for."""
_WINDOW_CHARS = 160
"""Characters after a cue in which its letter must stand."""
_BARE_CHARS = 60
"""Characters of the longest line that may be a letter and words such as ``option``."""
_SPELLED_CHARS = 2000
"""Characters of the longest text that is compared with a choice's own."""

_NOUNS = ("answer", "ans", "choice", "option", "letter", "response", "solution", "chosen", "selected")
_FOREIGN = ("antwort", "respuesta", "risposta", "resposta", "r\u00e9ponse")
_VERBS = ("choose", "chose", "pick", "select", "go with")
_SIGNS = ("####", "\u7b54\u6848", "\u9009")  # the last two: answer, choose
_VERDICTS = (
    " is correct",
    " is right",
    " is the correct",
    " is the right",
    " is the best",
    " is the answer",
    " is my answer",
)

_TAGGED = re.compile(r"<answer>([^<]{0,2000})</answer>", re.IGNORECASE)
_LATEX_MARKS = "\\{}$"
_BRACES = re.compile(r"\\boxed\s{0,8}\{|\\[{}]|[{}]")
_LATEX = re.compile(r"\\(?:text|textbf|textit|mathrm|mathbf|mathsf|boldsymbol|rm|bf)\b|\\[()\[\],;! ]|[{}$]")
_FILLER = (
    r"(?:(?:therefore|thus|definitely|clearly|simply|indeed|most likely|probably|likely|correct|right|best|final|the|"
    r"answer|option|choice|letter|is|first|second|third|fourth|fifth|last)\b[\s:,*_]{1,4}){0,5}"
)
_AFTER = {
    _NOUNS + _FOREIGN: re.compile(
        r"[\s*_`\"')]{0,6}(?:(?:to|for) (?:the|this) (?:question|problem) )?[\s*_]{0,4}"
        r"(?:is|was|are|would be|must be|should be|will be|has to be|ist|es|est|\u00e8|\u00e9|=|:|->|\u2192|-)(?![a-z])"
        rf"[\s:*_]{{0,8}}{_FILLER}",
        re.IGNORECASE,
    ),
    _VERBS: re.compile(rf"[\s:*_]{{1,4}}{_FILLER}", re.IGNORECASE),
    _SIGNS: re.compile(r"[\s:*_]{0,4}[\u662f\u4e3a\u9009:]?[\s:*_]{0,4}"),
}
_STEMS = ("ans", "cho", "posta")


def _by_stem() -> dict[str, dict[str, re.Pattern[str]]]:
    """Gives the words that statements are made with and what follows them, by a part that several have in common."""
    cues: dict[str, dict[str, re.Pattern[str]]] = {}
    for words, follow in _AFTER.items():
        for word in words:
            cues.setdefault(next((stem for stem in _STEMS if stem in word), word), {})[word] = follow
    return cues


_CUES = _by_stem()
_DENIED = re.compile(
    r"(?:\b(?:not|never|no|wrong|incorrect|other|cannot)|n't)(?: +\w{1,10})?[ *_]{1,3}$"
    r"|\bnot (?:true|right|correct) that (?:the )?$",
    re.IGNORECASE,
)
_DENYING = ("no", "never", "wrong", "incorrect", "other", "n't")
"""Texts of which every denial holds one."""
_BEFORE_VERDICT = re.compile(r"(?:^|[\s(*_\"'`])([A-Za-z])[)*_\"'`]{0,4}$")
_PREFIX = re.compile(
    r"(?:(?:so|thus|therefore|hence|i think|i believe|i'd say|i would say|it is|it's|it must be|that is|that's|the|my|"
    r"final|correct|right|best|answer|option|choice|letter)\b[\s:,*_]{1,4}){0,6}",
    re.IGNORECASE,
)
_LETTER = re.compile(r"[\s*_`\"'(\[<]{0,6}(?P<letter>[A-Za-z])(?P<close>[*_`\"')\]>]{0,6})")
_AROUND = "*_`\"'()[]<>.:~!"
_AROUND_ALL = _AROUND + " \t\n\r\v\f#,;/&|"
"""What may stand around a letter, and between two."""
_JOINED = re.compile(
    r"[\s*_]{0,3}(?:,|;|/|&|\bor\b|\band\b){1,2}[\s*_]{0,3}(?:(?:or|and|option|choice)\s)?", re.IGNORECASE
)
_GOES_ON = re.compile(
    r"\s{0,9}(?:$|[.,;:!?)\]\n-]"
    r"|(?:because|since|as|for|is|which|that|with|due|given|and|or|but|not|here|by|in|from)\b)",
    re.IGNORECASE,
)
_SPOKEN_OF = re.compile(r"\s{1,3}(?:is|was|are|isn't|would|cannot|can't|does)\b", re.IGNORECASE)
_UNDONE = re.compile(
    r"[*_`\"')\]]{0,6},?\s{1,3}(?:which |that |this |it )?(?:is|was|would be|isn't|wasn't)\s"
    r"(?:an? |the )?(?:\w{1,12} ){0,2}?"
    r"(?:mistake|wrong|incorrect|false|error|misconception|trap|distractor|misreading|myth)\b"
    r"|[*_`\"')\]]{0,6}\?\s{1,3}(?:no|nope|wrong)\b",
    re.IGNORECASE,
)
"""What takes back a statement that it stands right behind."""
_ENDING = re.compile(
    r"(?:^|[.;,:!?]\s{1,3}|\b(?:so|which|and)\s{1,3})"
    r"(?:(?:(?:that|which|this|it)\s)?(?:only\s)?leaves(?:\sus\swith)?(?:\sonly)?"
    r"|(?:it\sis\s|it's\s)?not\s[(*]{0,3}[A-Z][)*]{0,3},?\sbut)"
    r"\s(?:option\s|choice\s)?[(*]{0,3}(?P<letter>[A-Z])[)*]{0,3}[.!*\s]{0,4}$",
    re.IGNORECASE,
)
"""How a last line ends that has ruled the other letters out."""
_LED = re.compile(
    r"[*_`#>\s]{0,6}(?:(?:[Oo]ption|[Cc]hoice|[Aa]nswer)\s{1,3})?"
    r"(?:[(\[](?P<inside>[A-Za-z])[)\]]"
    r"|(?P<plain>[A-Z])(?:[*_]{0,3}[).:]|\s{1,3}-(?=\s)|,?(?=\s{1,3}(?:because|since)\b)))[*_:.]{0,4}(?:\s|$)"
)


def letters_chosen(completion: str, letters: str, choices: Sequence[str] | None) -> set[str]:
    """Gives the letters that a completion names as its answer; empty for none, several for a stuffed answer.

    What follows the last ``</think>`` counts, of it the last 50,000 characters. The first of these that names a
    letter decides:

    1. ``<answer>...</answer>`` and ``\\boxed{...}``, all of them together.
    2. Statements: ``the answer is (B)``, ``Answer: B``, ``I choose B``, ``B is correct``, ``#### B``; with
       ``choices`` also ``Paris is correct``. One that is taken back (``... is a common mistake``) is none.
    3. Lines that are letters and nothing else: ``B``, ``(b)``, ``**B**``, ``B.``, ``option B``.
    4. The first and the last line, where they begin with a marked letter: ``B) Paris``, ``B. Paris``, ``B, because``.
       Without one, a last line that ends in ``that leaves B`` or ``not A, but B``.
    5. With ``choices``, the text of one as the whole answer or as the last line.

    Args:
        completion: The model's text.
        letters: The letters that may be chosen, in upper case.
        choices: The choices' own texts, in the order of the letters.
    """
    text = fold(after_thinking(completion)[-_READ_CHARS:])
    reader = _Reader(letters, choices)
    decided = reader.all_of(_marked(text)) or reader.stated(text)
    if decided:
        return decided
    lines = [line for line in map(str.strip, text.splitlines()) if line]
    return (
        _union(reader.bare(line) for line in lines if len(line) <= _BARE_CHARS)
        or _union(reader.led(line) for line in lines[:1] + lines[-1:])
        or _union(reader.left(line) for line in lines[-1:])
        or _union(reader.spelled(phrase) for phrase in (text, *lines[-1:]))
    )


def _union(sets: Iterable[set[str]]) -> set[str]:
    return set().union(*sets)


def _marked(text: str) -> Iterator[str]:
    """Gives what stands in answer tags and in boxes; a box that is not closed does not count."""
    if "</" in text:
        for tagged in _TAGGED.finditer(text):
            yield tagged[1]
    if "\\boxed" not in text:
        return
    opened: list[int] = []
    for match in _BRACES.finditer(text):
        if match[0].startswith("\\boxed"):
            opened.append(match.end())
        elif match[0] == "{":
            opened.append(-1)
        elif match[0] == "}" and opened and (start := opened.pop()) >= 0:
            yield text[start : min(match.start(), start + _SPELLED_CHARS)]


def _lowered(text: str) -> str:
    """Gives the text in lower case, every character in its place."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(low if len(low := char.lower()) == 1 else char for char in text)


def _places(text: str, word: str) -> Iterator[int]:
    place = text.find(word)
    while place >= 0:
        yield place
        place = text.find(word, place + len(word))


@functools.lru_cache(maxsize=64)
def _by_text(letters: str, choices: tuple[str, ...]) -> dict[str, str]:
    """Gives the letter of each choice's text; a group's completions ask for the same ones."""
    texts = [normalise(choice) for choice in choices]
    return {text: letter for text, letter in zip(texts, letters, strict=False) if text and texts.count(text) == 1}


class _Reader:
    """Reads phrases as letters.

    Attributes:
        letters: The letters that may be chosen.
        by_text: The letter of each choice's normalised text, where no two choices share it.
    """

    def __init__(self, letters: str, choices: Sequence[str] | None) -> None:
        self.letters = letters
        self.by_text = _by_text(letters, tuple(choices)) if choices else {}

    def all_of(self, phrases: Iterable[str]) -> set[str]:
        """Gives the letters of phrases that are marked as the answer."""
        found: set[str] = set()
        for phrase in phrases:
            plain = _without_latex(phrase).strip()
            found |= self.bare(plain) or self.led(plain) or self.stated(plain) or self.spelled(plain)
        return found

    def stated(self, text: str) -> set[str]:
        """Gives the letters of statements, and of the choices that statements spell out."""
        lowered = _lowered(text)
        found: set[str] = set()
        for stem, words in _CUES.items():
            if stem in lowered:
                for word, follow in words.items():
                    found |= self._announced(text, lowered, word, follow)
        return found | self._judged(text, lowered)

    def _announced(self, text: str, lowered: str, word: str, follow: re.Pattern[str]) -> set[str]:
        """Gives the letters of the statements that are made with one word."""
        found: set[str] = set()
        for place in _places(lowered, word):
            end = place + len(word)
            if word[0].isalpha() and word.isascii() and not _is_word(lowered, place, end):
                continue
            link = follow.match(text, end, end + _WINDOW_CHARS)
            if link and not _is_denied(text[max(0, place - 24) : place]):
                found |= self._said(_without_latex(text[link.end() : end + _WINDOW_CHARS]))
        return found

    def _said(self, said: str) -> set[str]:
        line = said.partition("\n")[0] if said[:1] != "\n" else said
        return self.led(line) | self.listed(said) or self.spelled(line)

    def _judged(self, text: str, lowered: str) -> set[str]:
        """Gives the letters that are said to be correct."""
        found: set[str] = set()
        for words in _VERDICTS:
            for place in _places(lowered, words) if words in lowered else ():
                end = place + len(words)
                if lowered[end : end + 1].isalpha() or lowered[end : end + 1] == "?" or _UNDONE.match(text, end):
                    continue
                judged = _BEFORE_VERDICT.search(text[max(0, place - 8) : place])
                if judged and judged[1].upper() in self.letters:
                    if not _is_denied(text[max(0, place - 24) : place].rstrip(_AROUND)[:-1]):
                        found.add(judged[1].upper())
                elif self.by_text:
                    found |= self.spelled(_clause(text[max(0, place - _WINDOW_CHARS) : place]))
        return found

    def left(self, line: str) -> set[str]:
        """Gives the letter that a line's end leaves when the others are ruled out."""
        ending = _ENDING.search(line[-_WINDOW_CHARS:])
        return {ending["letter"].upper()} & set(self.letters) if ending else set()

    def listed(self, said: str) -> set[str]:
        """Gives the letter that a text begins with, and those joined to it by commas, ``or`` and ``and``."""
        found: set[str] = set()
        place = 0
        while (match := self._letter_at(said, place)) is not None:
            if _UNDONE.match(said, match.end()) or (found and _SPOKEN_OF.match(said, match.end())):
                break  # "B, for A is wrong" chooses B alone
            found.add(match["letter"].upper())
            joined = _JOINED.match(said, match.end())
            if joined is None:
                break
            place = joined.end()
        return found

    def _letter_at(self, said: str, place: int) -> re.Match[str] | None:
        """Gives the letter written there, if it is one that may be chosen, and no word, article or formula."""
        match = _LETTER.match(said, place)
        if match is None or match["letter"].upper() not in self.letters:
            return None
        after, beyond = said[match.end() : match.end() + 1], said[match.end() + 1 : match.end() + 2]
        if (after.isalnum() and match["close"][-1:] not in (")", "]")) or (after == "." and beyond.isalnum()):
            return None
        if after in tuple("'+#%^=\\-") and beyond.strip():
            return None
        is_article = not match["close"] and (match["letter"] in "AI" or match["letter"].islower())
        return None if is_article and not _GOES_ON.match(said, match.end()) else match

    def bare(self, line: str) -> set[str]:
        """Gives the letters of a line that holds nothing else, apart from words such as ``option``."""
        if len(line) > _WINDOW_CHARS or not _ends_bare(line):
            return set()
        line = _without_latex(line).strip(" \t*_`\"'.#>~")
        prefix = _PREFIX.match(line)
        found: set[str] = set()
        for part in re.split(r"[,;/&|\s]+", line[prefix.end() if prefix else 0 :]):
            inside = part.strip(_AROUND)
            if not inside or (found and inside.lower() in ("and", "or")):
                continue
            if len(inside) != 1 or inside.upper() not in self.letters:
                return set()
            found.add(inside.upper())
        return found

    def led(self, line: str) -> set[str]:
        """Gives the letter that leads a line with a mark after it; another choice's text after it adds that one's."""
        line = line[:_SPELLED_CHARS]
        match = _LED.match(line)
        letter = (match["inside"] or match["plain"]).upper() if match else ""
        if match is None or letter not in self.letters:
            return set()
        other = self.by_text.get(normalise(line[match.end() :]), letter) if self.by_text else letter
        return {letter, other}

    def spelled(self, said: str) -> set[str]:
        """Gives the letter whose choice a phrase spells out, up to its end or the end of its first sentence."""
        if not self.by_text or len(said) > _SPELLED_CHARS:
            return set()
        for phrase in dict.fromkeys((said, said.partition(". ")[0])):
            letter = self.by_text.get(normalise(phrase))
            if letter is not None:
                return {letter}
        return set()


def _clause(before: str) -> str:
    """Gives the last clause of a text, without words such as ``so`` at its beginning."""
    clause = re.split(r"[.!?:;,\n]\s{0,3}", before)[-1].strip()
    prefix = _PREFIX.match(clause)
    return clause[prefix.end() :] if prefix else clause


def _without_latex(text: str) -> str:
    return _LATEX.sub(" ", text) if any(map(text.__contains__, _LATEX_MARKS)) else text


def _is_denied(before: str) -> bool:
    """Whether what stands right before a statement denies it."""
    lowered = before.lower()
    may_be_denied = not before.isascii() or any(map(lowered.__contains__, _DENYING))
    return may_be_denied and _DENIED.search(before) is not None


def _ends_bare(line: str) -> bool:
    """Whether a line may end in a letter that stands alone: a quick look at its end, before it is taken apart."""
    bare = line.rstrip(_AROUND_ALL)
    if bare[-2:-1] in _AROUND_ALL or bare[-1:].isspace() or bare[-2:-1].isspace():
        return True
    return bare[-3:].lower().endswith(("and", "or")) or any(map(line.__contains__, _LATEX_MARKS))


def _is_word(text: str, start: int, end: int) -> bool:
    return not text[start - 1 : start].isalnum() and not text[end : end + 1].isalpha()


_LETTERED = re.compile(r"[(\[]?([A-Za-z])[)\].:]\s{1,4}(?=\S)")


@functools.lru_cache(maxsize=256)
def choice_texts(given: tuple[str, ...]) -> tuple[str, ...] | None:
    """Gives the texts of choices without the letters A, B, C that count them; one text is read line by line.

    ``None`` for one text whose lines are not so counted.
    """
    texts = [line.strip() for line in given[0].splitlines() if line.strip()] if len(given) == 1 else list(given)
    found = [_LETTERED.match(text.lstrip()) for text in texts]
    letters = [match[1].upper() if match else "" for match in found]
    if len(texts) > 1 and letters == [chr(65 + place) for place in range(len(texts))]:
        return tuple(text.lstrip()[match.end() :] for text, match in zip(texts, found, strict=True) if match)
    return given if len(given) > 1 else None


@functools.lru_cache(maxsize=256)
def gold_letter(answer: str, letters: str, choices: tuple[str, ...] | None, first_index: int) -> str | None:
    """Gives the letter that a row's answer stands for, or ``None`` where it is none, or might be two.

    An answer is a letter in any writing (``B``, ``(b)``, ``B.``), one before its choice's text (``B. London``), the
    index of a choice, or a choice's own text.
    """
    reader = _Reader(letters, choices)
    meant = reader.bare(fold(answer).strip())
    stripped = answer.strip()
    if stripped.isascii() and stripped.isdigit() and len(stripped) < 4:
        place = int(stripped) - first_index
        if 0 <= place < len(letters):
            meant.add(letters[place])
    meant |= reader.spelled(answer) or reader.led(answer.strip())
    return meant.pop() if len(meant) == 1 else None
