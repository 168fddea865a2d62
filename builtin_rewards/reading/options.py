"""Which letter a completion chooses: every usual way of writing one, and none that only looks like it.

Owns :func:`letters_chosen`; what the letters are worth is ``builtin_rewards.matching.multiple_choice``'s work. All
letters are read alike: where a text is cut off, or lists the options, none has an advantage by its place.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from builtin_rewards.reading.denials import (
    clause_denies,
    denied_after,
    denied_before,
    supposed_before,
    withdrawn_after,
)
from builtin_rewards.reading.marks import boxes, tags
from builtin_rewards.reading.turn import after_thinking
from builtin_rewards.reading.typography import fold, lowered, normalise

_READ_CHARS = 50_000
"""Characters, the last ones, in which a choice is looked for."""
_WINDOW_CHARS = 160
"""Characters after a cue in which its letter must stand."""
_BARE_CHARS = 60
"""Characters of the longest line that may be a letter and words such as ``option``."""
_SPELLED_CHARS = 2000
"""Characters of the longest text that is compared with a choice's own."""
_SPARE_CHARS = 40
"""Characters more than twice a choice's own that a text which spells it out may have."""
_MOST_SAID = 200
"""Of more statements, judgements or lines the last ones are read."""
_TAGS = "(?:final[_ -]?)?(?:answer|choice|option|letter|response)"


_CUES = {
    "noun": "answer|ans|choice|option|letter|response|solution|selection|conclusion|result|verdict|final|chosen|"
    "selected|antwort|lösung|respuesta|solución|opción|réponse|choix|lettre|resposta|gabarito|alternativa|opção|letra|"
    "risposta|soluzione|opzione|antwoord|jawaban|"
    "ответ|вариант|الإجابة|الاجابة|إجابة|الجواب|الخيار",
    "pick": "choose|chose|pick|select|go with|going with|go for|say|"
    "choisis|elijo|escojo|wähle|escolho|scelgo|выбираю|####",
    "concludes": "hence|so|thus|therefore|then|consequently|it is|it's|it must be|it has to be|"
    "that is|i think|i believe|also|"
    "folglich|donc|por lo tanto|por tanto|portanto|logo|quindi|dunque|c'est|следовательно|значит|поэтому|итак|"
    "leaves|leaving|leaves only|leaves us with|leaves us with only|إذن|لذلك",
    "guesses": "or|probably|likely|maybe|perhaps|possibly|alternatively",
    "denies": "not|no|nope|nein|nicht|pas|non|não|не|нет",
    "corrects": "wait|actually|sorry|oops|correction|rather|i mean|i meant|make that|on second thought",
}
"""The words that name an answer, by what they do."""
_SOLID_CUES = {
    "solid": "答案|答え|正解|回答|解答|选项|選項|選択肢|정답|답변|답",
    "pick": "选择|選擇|选|選",
    "corrects": "应该是|應該是|更正|いや|아니요",
    "concludes": "因此|所以|故|よって|したがって|따라서|그러므로|不是[a-z][,、]?(?:而是|是)|[a-z]ではなく",
}
"""The same in languages that do not part their words."""
_FILLER = (
    r"(?:(?:therefore|thus|definitely|clearly|simply|indeed|most likely|probably|likely|maybe|perhaps|"
    r"possibly|correct|right|best|final|the|"
    r"answer|option|choice|letter|first|second|third|fourth|fifth|last|it is|it's|no|wait|it must be|is|was|should be|"
    r"must be|la|le|el|lo|il|die|der|das|opción|alternativa|opção|letra|lettre|réponse|opzione|lettera|buchstabe|"
    r"вариант|ответ|под буквой|буква|الخيار|الحرف|الإجابة)\b[\s:,*_]{1,4}|l'"
    r"|(?-i:[ao])\s(?=[(*\"]{0,3}(?-i:[A-Z])\b|letra|alternativa|opção)|(?:选项|選項|選択肢|보기)\s?){0,6}"
)
_FOLLOWS = {
    kind: re.compile(follow + _FILLER, re.IGNORECASE)
    for kind, follow in {
        "noun": r"(?:[\s*_`\"')]{1,4}(?:(?:to|for) (?:the|this) (?:question|problem)|choice|option|letter|here|finale?|"
        r"corre(?:ct|kt)\w{0,2}|corret+a|richtig\w{0,2}|الصحيحة|الصحيح|النهائية|yang benar)){0,3}"
        r"(?:,\s[^,.\n]{1,30},)?[\s*_`\"')\]]{0,6}"
        r"(?:(?:is|was|are|would be|must be|should be|will be|has to be|ist|lautet|es|est|è|é|"
        r"это|является|adalah|هي|هو|'s)(?![a-zà-ÿ])|[=-]>|[=:→⇒-])[\s:*_]{0,8}",
        "solid": r"\s?(?:应该|應該)?[是为為选選はがは은는이]?[\s:*_]{0,6}",
        "pick": r"[\s:*_]{0,4}",
        "concludes": r"[\s,:*_]{0,4}",
        "guesses": r"[\s,:*_]{1,4}",
        "denies": r"(?P<but>\s(?:es |é |è )?[(*\"]{0,3}[a-z][)*\"]{0,3},?\s"
        r"(?:but(?: rather)?|rather|sino|sondern|mais|mas|ma|\u0430)\s)?(?(but)|\s?[,.:;!-]{1,3}\s{0,3})",
        "corrects": r"[\s,.:;!*_-]{0,4}",
    }.items()
}
"""What stands between such a word and the letter."""


def _either(words: Iterable[str]) -> str:
    """Gives a pattern of any of some words, sorted by their first letter, for that is found many times as fast."""
    heads: dict[str, list[str]] = {}
    for word in sorted(words, reverse=True):
        heads.setdefault(word[0], []).append(word[1:])
    return "|".join(f"{head}(?:{'|'.join(rest)})" for head, rest in heads.items())


_KINDS = {word: kind for kind, words in _CUES.items() for word in words.split("|")}
_CUE = re.compile(rf"(?<!\w)(?:{_either(_KINDS)})(?!\w)")
_SOLID_CUE = re.compile("|".join(f"(?P<{kind}>{words})" for kind, words in _SOLID_CUES.items()))
_PICKER = re.compile(
    r"(?:^|\b(?:i|we|me|us|let's|would|will|must|should|i'd|i'll|we'll|so|thus|"
    r"therefore|je|ich|eu|also|now|then|have to)\b,?"
    r"|[.:#*])\s{0,3}$",
    re.IGNORECASE,
)
"""Who picks: not ``those who`` or ``to``."""
_SURVEYS = re.compile(
    r"\b(?:each|every|all|any|other|another|possible|which|what|whichever|following|two|three|four|five|these|those|"
    r"(?:choos|select|pick|find|determin|identify|consider|evaluat|check|compar|examin|analy[sz]|assess|test|eliminat"
    r"|review|look)\w*)\s(?:\w{1,12}\s){0,3}$|(?<!my )\b(?:first|second|third|fourth|last)\s$",
    re.IGNORECASE,
)
"""Words before ``option:`` after which the options are gone through, and none is chosen."""
_SURVEY = re.compile(
    r"^(?![^\n]*\b(?:compared|considered|checked|evaluated|examined|reviewed|analy[sz]ed|assessed|looked|went)\b)"
    r"[^\n]*\b(?:options|choices|candidates|one by one|in turn|step by step|go through|(?:choose|select|pick) the|"
    r"(?:each|every|which|possible|following) (?:\w{1,12} )?(?:option|choice|answer|letter|statement)s?|"
    r"opciones|optionen|opzioni|op\u00e7\u00f5es|\u0432\u0430\u0440\u0438\u0430\u043d\u0442\u044b)\b"
    r"(?![^\n]{0,160}\b(?:is|are)\s{0,3}:?[\s*_]*$)",
    re.IGNORECASE,
)
"""A line that speaks of the options before it lists them, and not of what was done with them before an answer."""
_INTRODUCES = re.compile(rf":[\s*_]*$|{_SURVEY.pattern}", re.IGNORECASE)
_LETTER = re.compile(r"[\s*_`\"'(\[<]{0,16}(?P<letter>[A-Za-z])(?P<close>[*_`\"')\]>]{0,6})")
_JOINED = re.compile(
    r"[\s*_]{0,3}(?:,|;|/|&|\u3001|\b(?:or|and|oder|und|ou|et|o|y|или|и)\b|或|和|または){1,2}[\s*_]{0,3}(?:(?:or|and|option|choice)\s)?",
    re.IGNORECASE,
)
_GOES_ON = re.compile(
    r"\s{0,16}(?:$|[.,;:!)(\]\n\u3001-\u30ff\u4e00-\u9fff\uac00-\ud7af-]"
    r"|(?:because|since|as|for|which|that|with|due|given|and|or|but|not|here|over|by|in|from|the|so|therefore|hence|"
    r"thus|answer|final|porque|ya|weil|denn|da|parce|car|perché|pois|потому|так|है|لأن)\b)",
    re.IGNORECASE,
)
"""What may follow a letter that no article or pronoun is."""
_ENDS = re.compile(
    r"\s{0,16}(?:$|\n|[.!;:](?:[\s*_]|$)|[\u3001\u3002]|,?\s(?:because|since|as|for|not|and not|rather than|"
    r"instead of|which|over|here|given|"
    r"hence|so|thus|therefore|but|porque|weil|denn|parce)\b|\(|です|だ|입니다)"
)
_SPOKEN_OF = re.compile(
    r"\s{1,3}(?:is|was|are|isn't|would|cannot|can't|does|says|states|means|refers)\b|\s?[ではじ가이]{1,3}\s?(?:ない|なく|아니|아닙)|不"
)
_ALTERNATIVE = re.compile(
    r"(?:\b(?:or|oder|ou|или|as well as|possibly|maybe|perhaps)\b|或|和|または|또는)\s{0,3}"
    r"(?:(?:option|choice|maybe|possibly|perhaps|even|also|rather)\s){0,2}[(*\"]{0,3}([A-Z])(?=[)*\".,:;!?\s]|$)"
)
_BESIDES = re.compile(
    r"[.,;]\s(?:(?:[Bb]ut|[Aa]nd|[Tt]hough|[Aa]lthough)\s)?[(*]{0,3}([A-Z])[)*]{0,3}"
    r"(?::?\s(?:too|as well|for others|(?:with |at )?\d{1,3}%)|"
    r"\sis (?:also )?(?:acceptable|possible|plausible|valid)\b(?! (?:only|if)))"
)
"""What leaves another letter open behind one: ``B; A too``, ``B. But A is possible``."""
_SENTENCE_END = re.compile(r"[.!?](?=[\s*_\"')]|$)|\n")
_LED = re.compile(
    r"[*_`#>\s-]{0,8}(?:(?:[Oo]ption|[Cc]hoice|[Aa]nswer)\s{1,3})?"
    r"(?:[(\[](?P<inside>[A-Za-z])[)\]]"
    r"|(?P<plain>[A-Z])(?:[*_]{0,3}[).:]|\s{1,3}-(?=\s)|,?(?=\s{1,3}(?:because|since)\b)))[*_:.]{0,4}(?:\s|$)"
)
_RULED_OUT = re.compile(
    r"\b(?:is|are|was|seems?)\s(?:\w{1,12}\s)?(?:wrong|incorrect|false|impossible|out|"
    r"not (?:right|correct|the|it|possible))\b|[\u274c\u2717\u2718]|[-:(]\s?(?:wrong|incorrect)\b",
    re.IGNORECASE,
)
_TELLS = re.compile(r"\b(?:is|was|are|were|isn't|ha[sd]|have|does|can|cannot|could|would|means?|refers?|lies)\b")
_BECAUSE = re.compile(r"\b(?:because|since|as)\b", re.IGNORECASE)
"""What a line says of its letter, and so does not choose it, if it gives no reason for it."""
_BUT = (
    r"(?!\s(?:only|if|in part|partly|about|that|when|unless|insofar|to)\b|,?\s(?:but|yet|though|although|except)\b"
    r"|[^.!\n]{0,30}\?)"
)
_COPULAS = "is|must be|has to be|should be|es|est|ist|é|è|está|является|это|-|هي|هو"
_VERDICT = re.compile(
    rf"(?<=\s)(?:{_either(_COPULAS.split('|'))})\s"
    r"(?:(?:the|la|le|el|o|a|die|das|my|our|definitely|clearly|indeed|therefore|thus|only) ){0,3}"
    r"(?:correct|right|best|answer|richtig|korrekt|richtige antwort|juste|bonne réponse|correcte|correcta|correcto|"
    r"correta|certa|corretta|giusta|respuesta|réponse|resposta|risposta|правильн\w{2,3}|верн\w{2,3}|الصحيح|صحيح|الإجابة)\b"
    + _BUT
)
_SOLID_VERDICT = re.compile(r"\s?(?:[是为為がはも]|[가이는은]\s)(?:正确|正確|正解|正しい|正답|정답)" + _BUT)
_SUBJECT = re.compile(
    r"(?:(?<![\w'-])|(?<=[\u3000-\u9fff\uac00-\ud7af]))"
    r"(?:(?-i:[A-Z])|[(\[*\"'`]{1,3}[a-z](?=[)\]*\"'`])|(?:option|choice|answer|letter) \(?[a-z])[)\]*_\"'`]{0,4}"
    r"(?:\s?(?:,|/|\bor\b|\band\b|\bnor\b)\s?[(*]{0,3}(?-i:[A-Z])[)*]{0,3}){0,5}$",
    re.IGNORECASE,
)
_ALONE = re.compile(r"(?<![A-Za-z])[A-Za-z](?![A-Za-z])")
_TICKS = "\u2705\u2713\u2714\u2611"
_TICKED = re.compile(rf"[{_TICKS}]|[-:(\u2192]\s?(?:correct|right)[.!)*\s]{{0,5}}$", re.IGNORECASE)
_NO_TICKS = dict.fromkeys(map(ord, _TICKS))
_LATEX = re.compile(r"\\(?:text|textbf|textit|mathrm|mathbf|mathsf|boldsymbol|rm|bf)\b|\\[()\[\],;! ]|[{}$]")
_CONTRAST = re.compile(
    r"(?<!if )\b(?i:not|rather than|instead of|over)\s"
    r"(?:[(*]{0,3}[A-Z][)*]{0,3}(?![\w'])(?:,?\s(?:or|and|nor)\s|,\s)?){1,6}"
)
"""Letters that are named to be set aside: ``B, not A or C``."""
_ARTICLE = re.compile(r"\b(?:is|the|it's|that's|so|hence|thus|therefore|then)\W*$", re.IGNORECASE)
_LABEL = re.compile(r"\||.*[A-Za-z]\W*:\W*$|#+\s*(?:[Oo]ption|[Cc]hoice)\b")
"""A line that begins something about a letter: a table's row, ``A:``, ``### Option A``."""
_FINISHED = re.compile(r"[.!?\u3002][\s*_`\"')\]}]*\Z")
_DOUBTED = re.compile(
    r"[\s.,)*]{0,4}(?:or is it\b|\((?:wrong|incorrect|false)\b|my (?:mistake|bad)\b|actually,? no\b)", re.IGNORECASE
)
_NOBODY = re.compile(r"\b(?:nobody|no one)\s(?:\w{1,12}\s){0,4}$", re.IGNORECASE)
_LINE, _PART = re.compile(r"\n"), re.compile(r"\n|[.!]\s")
_CLAUSE = re.compile(r"[.!?:;,]\s{1,3}")
_BEFORE_CHARS, _SUBJECT_CHARS = 60, 40
_AROUND = "*_`\"'()[]<>.:!\u3002"
_PREFIX = re.compile(
    rf"(?:(?:{_CUES['noun']}|{_CUES['concludes']}|definitely|i'd say|i would say|that's|the|my|correct|right|best|"
    r"la|le|el|die|der|das|es ist|es|est|è|é|это|richtige|so)\b[\s:,*_]{1,4}|l'){0,6}",
    re.IGNORECASE,
)


class Chosen(NamedTuple):
    """What a completion chooses.

    Attributes:
        letters: The letters; none where it chooses none, several for a stuffed answer.
        rule: The rule of reading that decided; ``""`` where none did.
    """

    letters: frozenset[str]
    rule: str


class _Said(NamedTuple):
    """Letters that a text names at a place: where they begin, where they end, whether they correct, and are judged."""

    start: int
    end: int
    letters: frozenset[str]
    corrects: bool = False
    judged: bool = False


def letters_chosen(completion: str, letters: str, choices: Sequence[str] | None) -> Chosen:
    """Gives the letters that a completion names as its answer, and the rule that decided.

    What a turn says after its thoughts counts, of it the last 50,000 characters. The first of these rules by which a
    letter stands decides; several letters that stand by it are a stuffed answer:

    1. *a box or tags*: ``\\boxed{B}``, ``<answer>B</answer>``, ``<choice>``, ``<option>``, all of them together.
    2. *a statement*: ``the answer is (B)``, ``Answer: B``, ``I choose B``, ``#### B``, ``Hence, B.``, ``not A but B``,
       ``that leaves B``, in the usual languages; with ``choices`` also ``the answer is Paris``.
    3. *a judgement*: ``B is correct``, ``B) Paris is right``, a tick beside the letter; with ``choices`` also
       ``Paris is correct``.
    4. *a line of its own*: ``B``, ``(b)``, ``**B**``, ``B.``, ``option B``.
    5. *a marked line*: the first or the last line, where it begins with ``B)``, ``B.``, ``(B)`` or ``B, because`` and
       is no part of a list of the options.
    6. *the text of a choice*, with ``choices``, as the whole answer or as the last line.

    What is denied, asked, supposed or taken back does not stand: ``not B``, ``B?``, ``if B is right``, ``B is a common
    mistake``, ``The answer is B. Wait, that is wrong.`` A correction (``No, C.``) takes back the letter before it.
    Where the options are only gone through (``Let's evaluate each option:``), none is chosen.

    Args:
        completion: The model's text.
        letters: The letters that may be chosen, in upper case.
        choices: The choices' own texts, in the order of the letters.
    """
    whole = fold(after_thinking(completion)[-_READ_CHARS:])
    text = _without_latex(whole)
    reader = _Reader(letters, choices)
    for rule, read, where in (
        ("a box or tags", reader.marked, whole),
        ("a statement", reader.stated, text),
        ("a judgement", reader.judged, text),
        ("a line of its own", reader.alone, text),
        ("a marked line", reader.led_lines, text),
        ("the text of a choice", reader.spelled_out, text),
    ):
        if standing := _standing(where, read(where)):
            return Chosen(standing, rule)
    return Chosen(frozenset(), "")


def _standing(text: str, said: Iterable[_Said]) -> frozenset[str]:
    """Gives the letters of all that stands: what is not denied, supposed or taken back."""
    kept: list[_Said] = []
    taken_back = False
    for one in deque(said, _MOST_SAID):
        if one.corrects and kept and not taken_back:
            kept = _without(kept, kept[-1].letters)
        taken_back = False
        denied = clause_denies if one.judged else denied_before
        if denied(text, one.start) or supposed_before(text, one.start):
            continue
        if denied_after(text, one.end):
            continue
        stop = _SENTENCE_END.search(text, one.end, one.end + _WINDOW_CHARS)
        ends = {one.end, stop.start() if stop else one.end}
        if any(_DOUBTED.match(text, end) for end in ends) or withdrawn_after(text, one.end, min(one.letters)):
            kept, taken_back = _without(kept, one.letters), True
            continue
        kept.append(one)
    return frozenset().union(*(one.letters for one in kept))


def _without(said: Iterable[_Said], letters: frozenset[str]) -> list[_Said]:
    return [one for one in said if one.letters != letters]


def _lines(text: str, parts: re.Pattern[str] = _LINE) -> list[tuple[int, str]]:
    """Gives the lines of a text that are not blank, each with its place."""
    place, found = 0, []
    for end in [*(part.end() for part in parts.finditer(text)), len(text)]:
        if line := text[place:end].strip():
            found.append((text.index(line, place), line))
        place = end
    return found


def _without_latex(text: str) -> str:
    """Gives the text with blanks in place of LaTeX's commands and braces, every other character in its place."""
    return _LATEX.sub(lambda mark: " " * len(mark[0]), text)


@functools.lru_cache(maxsize=64)
def _by_text(letters: str, choices: tuple[str, ...]) -> dict[str, str]:
    """Gives the letter of each choice's text; a group's completions ask for the same ones."""
    texts = [_comparable(choice) for choice in choices]
    return {text: letter for text, letter in zip(texts, letters, strict=False) if text and texts.count(text) == 1}


def _comparable(text: str) -> str:
    """Gives a text as choices are compared; their LaTeX is read as the completion's is."""
    return normalise(_without_latex(text.replace("\\dfrac", "\\frac").replace("\\tfrac", "\\frac")))


def _cues(text: str) -> list[tuple[str, int, int]]:
    """Gives the kinds and places of the words that name an answer, in order."""
    low = lowered(text)
    found = [(_KINDS[cue[0]], *cue.span()) for cue in _CUE.finditer(low)]
    if not text.isascii():
        found += [(cue.lastgroup or "", *cue.span()) for cue in _SOLID_CUE.finditer(low)]
        found.sort(key=lambda cue: cue[1])
    return found


def _misses(kind: str, before: str, behind: str) -> bool:
    """Whether a word of a kind names no answer between what stands before it in its line and behind it."""
    if kind in ("noun", "solid"):
        return _SURVEYS.search(before) is not None
    if kind == "pick":  # "Choose the correct answer: A) Rome B) Paris"
        is_order = ":" in behind and not before.strip()
        return is_order or (before[-1:].isascii() and _PICKER.search(before) is None)
    if kind == "guesses":
        return before.strip(" *_")[-1:] not in ("", ".", "!", "?")
    return False


class _Reader:
    """Reads phrases as letters.

    Attributes:
        letters: The letters that may be chosen.
        by_text: The letter of each choice's normalised text, where no two choices share it.
    """

    def __init__(self, letters: str, choices: Sequence[str] | None) -> None:
        self.letters = letters
        self.by_text = _by_text(letters, tuple(choices)) if choices else {}

    def marked(self, text: str) -> Iterator[_Said]:
        """Gives what stands in boxes and answer tags that are closed."""
        marks = [mark for mark in (*boxes(text), *tags(text, _TAGS)) if mark.closed]
        for mark in sorted(marks, key=lambda mark: mark.start):
            plain = _without_latex(mark.content[:_SPELLED_CHARS]).strip()
            found = self.bare(plain) or self.led(plain) or _standing(plain, self.stated(plain)) or self.spelled(plain)
            if found:
                yield _Said(mark.start, mark.end, frozenset(found))

    def stated(self, text: str) -> Iterator[_Said]:
        """Gives the letters of statements, and of the choices that statements spell out."""
        for kind, start, end in _cues(text):
            follow = _FOLLOWS[kind].match(text, end, end + _WINDOW_CHARS)
            if follow is None:
                continue
            place = follow.end()
            before = text[max(0, start - _BEFORE_CHARS) : start].rpartition("\n")[2]
            is_contrast = kind == "denies" and follow["but"] is not None
            if not is_contrast and _misses(kind, before, follow[0]):
                continue
            letters, stop = self._said(text[place : place + _WINDOW_CHARS], firm=kind not in ("noun", "solid"))
            if not letters or ("\n" in follow[0] and self._goes_through(text, place)):
                continue
            if not _NOBODY.search(before):
                corrects = kind in ("corrects", "denies") and not is_contrast
                yield _Said(place, place + stop, frozenset(letters), corrects=corrects)

    def _goes_through(self, text: str, place: int) -> bool:
        """Whether the options are listed there: the line after the next one begins with another letter."""
        ahead = [
            self._leader(line) or "".join(self.bare(line))
            for _, line in _lines(text[place : place + _SPELLED_CHARS])[:8]
        ]
        return len(set(filter(None, ahead))) > 1

    def _said(self, said: str, *, firm: bool) -> tuple[set[str], int]:
        """Gives the letters that a text begins with and where they end; if ``firm``, nothing may be said of them."""
        line = said.partition("\n")[0]
        listed, end = self.listed(said, firm=firm)
        found = self.led(line) | listed
        if found:
            return found | self._alternatives(said[end:]), end
        return (set(), 0) if firm else (self.spelled(line), len(line))

    def _alternatives(self, behind: str) -> set[str]:
        """Gives the letters that the rest of a sentence leaves open besides."""
        sentence = _CONTRAST.sub("", _SENTENCE_END.split(behind, maxsplit=1)[0])
        return {*_ALTERNATIVE.findall(sentence), *_BESIDES.findall(behind)} & set(self.letters)

    def judged(self, text: str) -> Iterator[_Said]:
        """Gives the letters that are said to be correct, or ticked."""
        low = lowered(text)
        verdicts = list(_VERDICT.finditer(low))
        if not text.isascii():
            verdicts += _SOLID_VERDICT.finditer(low)
        for verdict in verdicts:
            place = len(text[: verdict.start()].rstrip())
            before = text[max(0, place - _WINDOW_CHARS) : place].rpartition("\n")[2]
            subject = _SUBJECT.search(before[-_SUBJECT_CHARS:])
            clause = _CLAUSE.split(before)[-1]
            if subject:
                found = {letter.upper() for letter in _ALONE.findall(subject[0])} & set(self.letters)
                place -= len(subject[0])
            else:
                found = self.spelled(_unled(clause)) or (self.led(before) if clause in before[:9] + clause else set())
                place -= len(clause)
            if found:
                yield _Said(place, verdict.end(), frozenset(found), judged=True)
        for place, line in _lines(text):
            if _TICKED.search(line):
                plain = line.translate(_NO_TICKS)
                found = self.bare(plain) or self.led(plain)
                if found:
                    yield _Said(place, place + len(line), frozenset(found))

    def alone(self, text: str) -> Iterator[_Said]:
        """Gives the letters of lines that hold nothing else; a heading in a list of the options is none."""
        lines = _lines(text)
        leaders = [self.bare(line) or set(self._leader(line)) for _, line in lines]
        order = [min(letters) for letters in leaders if letters]
        counted = {letter for one, other in itertools.pairwise(order) for letter in (one, other) if _next(one) == other}
        for number, (place, line) in enumerate(lines):
            found = self.bare(line)
            begins = _LABEL.match(line) or (line[0] == "#" and number + 1 < len(lines))
            if found and not begins and not found & counted and not (number and _SURVEY.search(lines[number - 1][1])):
                yield _Said(place, place + len(line), frozenset(found))

    def bare(self, line: str) -> set[str]:
        """Gives the letters of a line that holds nothing else, apart from words such as ``option``."""
        if len(line) > _BARE_CHARS:
            return set()
        line = _CONTRAST.sub("", line.strip(" \t*_`\"'.#>")).lstrip("=>\u2192\u21d2\u2234 ")
        prefix = _PREFIX.match(line)
        found: set[str] = set()
        for part in re.split(r"[,;/&|\s]+", line[prefix.end() if prefix else 0 :]):
            inside = part.strip(_AROUND)
            if not inside or (found and inside.lower() in ("and", "or")):
                continue
            if len(inside) != 1 or inside.upper() not in self.letters or part.endswith("?"):
                return set()
            if part.islower() and part == inside and prefix and _ARTICLE.search(prefix[0]):
                return set()  # "It is the c", cut off
            found.add(inside.upper())
        return found

    def led_lines(self, text: str) -> Iterator[_Said]:
        """Gives the letter that leads the first or the last line, where no line begins with another letter."""
        lines = _lines(text)
        leaders = {self._leader(line) or "".join(self.bare(line.lstrip("-* "))) for _, line in lines}
        if not lines or len(leaders - {""}) > 1:
            return
        (place, line), is_whole = lines[0], lines[0][1][-1:] in ".!*)"
        if self.led(line) and len(lines) > 1 and not _FINISHED.search(text):
            return  # what is said of it is cut off
        if len(lines) > 1 and not self.led(line) and not _INTRODUCES.search(lines[-2][1]):
            (place, line), is_whole = lines[-1], False
        tells = not is_whole and _TELLS.search(_BECAUSE.split(line, maxsplit=1)[0])
        found = set() if tells else self.led(line)
        listed = any(re.search(rf"\b{re.escape(_next(letter))}[).:]\s", line) for letter in found)
        if found and not listed and not _RULED_OUT.search(line):
            yield _Said(place, place + len(line), frozenset(found))

    def _leader(self, line: str) -> str:
        """Gives the letter that leads a line with a mark after it; ``""`` for none."""
        match = _LED.match(line)
        letter = (match["inside"] or match["plain"]).upper() if match else ""
        return letter if letter in self.letters else ""

    def led(self, line: str) -> set[str]:
        """Gives the letter that leads a line with a mark after it; another choice's text after it adds that one's.

        One of which the line goes on to say that it is wrong is none.
        """
        match = _LED.match(line)
        letter = self._leader(line)
        said = line[match.end() :] if match else ""
        if not letter or _RULED_OUT.match(said):
            return set()
        return {letter} | self.spelled(said) | self._alternatives(said[:_WINDOW_CHARS])

    def listed(self, said: str, *, firm: bool = False) -> tuple[set[str], int]:
        """Gives the letter that a text begins with, those joined to it by commas, ``or`` and ``and``, and their end.

        If ``firm``, the sentence must end behind them.
        """
        found: set[str] = set()
        place = end = 0
        while (match := self._letter_at(said, place, firm=firm)) is not None and not _SPOKEN_OF.match(
            said, match.end()
        ):
            found.add(match["letter"].upper())
            end = match.end()
            joined = _JOINED.match(said, end)
            if joined is None:
                break
            place = joined.end()
        return (set(), 0) if firm and not _ENDS.match(said, end) else (found, end)

    def _letter_at(self, said: str, place: int, *, firm: bool) -> re.Match[str] | None:
        """Gives the letter written there, if it is one that may be chosen, and no word, article or formula."""
        match = _LETTER.match(said, place)
        if match is None or match["letter"].upper() not in self.letters:
            return None
        if firm and match["letter"].islower() and not match["close"]:
            return None
        after, beyond = said[match.end() : match.end() + 1], said[match.end() + 1 : match.end() + 2]
        if after == "?" or (after in tuple("'+#%^=\\-.") and beyond.isalnum()):
            return None
        return match if match["close"][-1:] in tuple(")]*_`\"'>") or _GOES_ON.match(said, match.end()) else None

    def spelled_out(self, text: str) -> Iterator[_Said]:
        """Gives the letter whose choice the first sentence or the last line spells out, if no other one does."""
        if not self.by_text:
            return
        parts = _lines(text, _PART)
        named = [(place, part, letter) for place, part in parts for letter in self.spelled(part)]
        if len({letter for _, _, letter in named}) == 1:
            place, part, letter = named[-1]
            before = [said for at, said in parts if at < place][-1:]
            if (place, part) in (parts[0], parts[-1]) and not any(map(_SURVEY.search, before)):
                yield _Said(place, place + len(part), frozenset(letter))

    def spelled(self, said: str) -> set[str]:
        """Gives the letter whose choice a phrase spells out, up to its end or the end of its first sentence."""
        if not self.by_text or self._leader(said):
            return set()  # "A) Rome" would be "Rome" without its article
        longest = 2 * max(map(len, self.by_text)) + _SPARE_CHARS
        for phrase in {said, said[: longest + 2].partition(". ")[0]}:
            if len(phrase) > longest:
                continue
            letter = self.by_text.get(_comparable(phrase))
            if letter is not None:
                return {letter}
        return set()


def _next(letter: str) -> str:
    return chr(ord(letter) + 1)


def _unled(clause: str) -> str:
    """Gives a clause without words such as ``so`` at its beginning."""
    prefix = _PREFIX.match(clause.strip())
    return clause.strip()[prefix.end() if prefix else 0 :]


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
