"""Multiple choice: the letter that a completion chooses, however it is written; no letter gains by its place."""

from __future__ import annotations

import functools
import itertools
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import NamedTuple

from builtin_rewards.reading.boxes_and_tags import boxes, tags
from builtin_rewards.reading.latex import clean
from builtin_rewards.reading.negation import TAKEN_BACK, clause_denies, denies, objection, supposed_before
from builtin_rewards.reading.normalisation import fold, lower_in_step, normalise
from builtin_rewards.reading.thoughts import after_thinking

_READ_CHARS = 50_000  # how many of the last characters are searched for a choice
_WINDOW_CHARS = 160  # how many characters around a cue may hold its letter
# The longest line that names a letter; a line that spells out a choice may be twice that choice longer.
_SPARE_CHARS = 60
_MAX_STATEMENTS = 200  # how many statements, judgements or lines are read, from the end
_TAGS = "(?:final[_ -]?)?(?:answer|choice|option|letter|response)"

_CUES = {  # the words that name an answer, by what they do
    "noun": "answer|ans|choice|option|letter|response|solution|selection|conclusion|result|verdict|final|chosen|"
    "selected|statement|the one|exception|antwort|lösung|respuesta|solución|opción|réponse|choix|lettre|resposta|"
    "gabarito|alternativa|opção|letra|risposta|soluzione|opzione|antwoord|jawaban|jawabannya|pilihan|opsi|ответ|вариант|"
    "відповідь|الإجابة|الاجابة|إجابة|الجواب|الخيار|پاسخ|جواب|jibu|chaguo|ìdáhùn|ìdáhùn náà|idahun|cevap|yan\u0131t|"
    "đáp án|câu trả lời|svar|svaret|odpowiedź|odpověď|răspuns|răspunsul|válasz|vastaus|απάντηση|תשובה|התשובה|"
    "उत्तर|जवाब|विकल्प|উত্তর|উত্তরটি|বিকল্প|ค\u0e4d\u0e32ตอบ|ค\u0e4d\u0e32ตอบคือ",
    "solid": "答案|答え|正解|回答|解答|选项|選項|選択肢|정답|답변|답",
    "pick": "choose|chose|pick|select|take|go with|going with|go for|say|choisis|elijo|escojo|wähle|escolho|scelgo|"
    "выбираю|####|选择|選擇|选|選",
    "concludes": "hence|so|thus|therefore|then|consequently|it is|it's|it must be|it has to be|that is|i think|"
    "i believe|also|without a doubt|no doubt|leaves|leaving|leaves only|leaves us with|leaves us with only|"
    "i'd answer|i would answer|folglich|donc|por lo tanto|por tanto|portanto|logo|quindi|dunque|c'est|"
    "следовательно|значит|поэтому|итак|"
    "إذن|لذلك|因此|所以|故|よって|したがって|따라서|그러므로|ではなく",
    "contrasts": "but|but rather|sondern|sino|mais|mas|ma|\u0430|而是",
    "guesses": "or|probably|likely|maybe|perhaps|possibly|alternatively",
    "denies": "not|no|nope|nein|nicht|pas|non|não|не|нет",
    "corrects": "wait|actually|sorry|oops|correction|rather|i mean|i meant|make that|on second thought|"
    "应该是|應該是|更正|いや|아니요",
}
_FOLLOWING = dict.fromkeys(_CUES, r"[\s,:*_]{0,4}") | {  # what stands between such a word and the letter
    "noun": r"(?:[\s*_`\"')]{1,4}(?:(?:to|for) (?:the|this) (?:question|problem)|choice|option|letter|here|finale?|"
    r"(?:that|which) [^.,:;!?\n]{1,40}?|corre(?:ct|kt)\w{0,2}|corret+a|sahihi|tó tọ́|chính xác|đúng|yang benar|"
    r"richtig\w{0,2}|الصحيحة|الصحيح|النهائية)){0,3}(?:,\s[^,.\n]{1,30},)?[\s*_`\"')\]]{0,6}"
    r"(?:(?:'s|\b(?:is|was|are|would be|must be|should be|will be|has to be|(?:appears|seems|turns out|looks) to be|"
    r"ni|là|är|er|হলো|হল|হচ্ছে|है|ist|lautet|es|est|è|é|это|является|adalah|"
    r"هي|هو))(?![a-zà-ÿ])|[=-]>|[=:→⇒\u0983-]|(?<=[\u0900-\u0eff])\s(?=[(*]{0,3}[A-Z]\b))[\s:*_]{0,8}",
    "solid": r"\s?(?:应该|應該)?[是为為选選はがは은는이]?[\s:*_]{0,6}",
    "denies": r"\s?[,.:;!-]{1,3}\s{0,3}",
    "corrects": r"[\s,.:;!*_-]{0,4}",
}
_LEADING = (  # more words that a line may say before its letter
    "definitely|clearly|simply|indeed|most likely|likely|probably|maybe|perhaps|possibly|i'd say|i would say|that's|"
    "the|my|correct|right|best|first|second|third|fourth|fifth|last|is|was|should be|must be|la|le|el|lo|il|die|der|"
    "das|es ist|es|est|è|é|это|richtige|lettera|buchstabe|под буквой|буква|الحرف"
)


def _alternation(*alternatives: str) -> str:
    """Return a pattern of any of some words, a longer one before what it begins with."""
    return "|".join(sorted("|".join(alternatives).split("|"), reverse=True))


_KINDS = {word: kind for kind, alternatives in _CUES.items() for word in alternatives.split("|")}
_PARTED = rf"(?<!\w)(?:{_alternation(*(word for word in _KINDS if word < chr(0x3000)))})(?!\w)"
_SOLID = _alternation(
    *(word for word in _KINDS if word > chr(0x3000))
)  # the cues of languages without blanks between words
_CUE = re.compile(_PARTED)
_ANY_CUE = re.compile(f"{_PARTED}|{_SOLID}")
_WORDS = _alternation(_CUES["noun"], _CUES["concludes"], _LEADING)
_PREFIX = re.compile(rf"(?!(?:first|second|third),)(?:(?:{_WORDS})\b[\s:,*_]{{1,4}}|l'){{0,6}}", re.IGNORECASE)
_FILLER = (  # words without meaning between a cue and its letter
    rf"(?:(?:{_WORDS}|no|wait)\b[\s:,*_]{{1,4}}|l'|(?:选项|選項|選択肢|보기)\s?"
    r"|(?-i:[ao])\s(?=[(*\"]{0,3}(?-i:[A-Z])\b|letra|alternativa|opção)){0,6}"
)
_FOLLOWS = {kind: re.compile(follow + _FILLER, re.IGNORECASE) for kind, follow in _FOLLOWING.items()}
_PICKER = re.compile(  # the subject before a verb of choosing, such as `I`; not `those who` or `to`
    r"(?i)(?:^|[.:#*]|\b(?:i|we|me|us|let's|\w{1,4}'(?:d|ll|m|re|ve)|would|will|must|should|so|therefore|also|now|then"
    r"|have to|je|ich|eu)\b,?)\s{0,3}$"
)
_GOES_THROUGH = (
    r"\b(?:each|every|chaque|jede|cada|ogni|any|other|another|possible|which|what|whichever|following|two|three|four|five|these|those"
    r"|(?:choos|determin|evaluat|compar|examin|analy[sz]|eliminat)(?:e|ing)|(?:select|pick|find|identify|consider|check"
    r"|assess|test|review|look)(?:ing)?)\s(?:\w{1,12}\s){0,3}"
)
# Words before `option:` that begin a discussion of the options, without a choice.
_SURVEYS = re.compile(rf"{_GOES_THROUGH}$|(?<!my )\b(?:first|second|third|fourth|last)\s$", re.IGNORECASE)
_INTRODUCES = re.compile(
    r"(?i)(?<!\bis)(?<!\bare):[\s*_]*$|\b(?:one by one|in turn|step by step|go through)\b"
    rf"|{_GOES_THROUGH}(?:option|choice|answer|letter|statement|candidate)s?\b"
)  # a line that introduces a list of the options: it ends in a colon, or announces their discussion
_ENDS = (  # what ends the sentence behind a letter, or gives a reason for it
    r"\s{0,16}(?:$|\n|[.!;:](?:[\s*_]|$)|-\s|[\u0964\u3001\u3002(]|です|だ|입니다|,?\s(?i:because|since|as|for|which|over|here|given"
    r"|hence|so|thus|therefore|but|not|and not|rather than|instead of|porque|weil|denn|parce|car|perché|pois|потому)\b)"
)
_GOES_ON = (  # what may follow a letter, but no article or pronoun
    rf"{_ENDS}|\s{{0,16}}(?:[.,;:!)\]\u3001-\u30ff\u4e00-\u9fff\uac00-\ud7af-]"
    r"|(?i:that|with|due|and|or|by|in|from|the|answer|final|ya|da|так|है|हैं|হল|হলো|হবে|لأن)(?!\w))"
)
# A verb that makes a statement about a letter, instead of choosing it.
_SAYS = r"(?:is|was|are|were|isn't|ha[sd]|have|would|could|can|cannot|can't|does|says|states|means|refers|lies)\b"
_SPOKEN_OF = rf"\s{{1,3}}{_SAYS}|\s?[ではじ가이]{{1,3}}\s?(?:ない|なく|아니|아닙)|不"
_JOINED = (  # what joins several letters: `A and B`
    r"[\s*_]{0,3}(?i:[,;/&、或和]|または|\b(?:or|and|oder|und|ou|et|o|y|или|и)\b){1,2}[\s*_]{0,3}"
    r"(?i:(?:or|and|option|choice)\s)?"
)
_SINGLE = r"[(\[*_\"'`]{0,3}(?-i:[A-Z])[)\]*_\"'`]{0,3}(?![\w'])"
_OPEN_TOO = re.compile(  # words that leave another letter open: `or A`, `B; A too`, `B. But A is possible`.
    r"(?i)(?:^[^.!?\n]*(?:\b(?:or|oder|ou|или|as well as|possibly|maybe|perhaps)\b|或|和|または|또는)\s{0,3}"
    rf"(?:(?:option|choice|maybe|possibly|perhaps|even|also|rather)\s){{0,2}}|[.,;]\s(?:(?:but|and|though|although)\s)?"
    rf"(?={_SINGLE}(?::?\s(?:too|as well|for others|(?:with |at )?\d{{1,3}}%)"
    rf"|\sis (?:also )?(?:acceptable|possible|plausible|valid)\b(?! (?:only|if)))))({_SINGLE})"
)
_CONTRAST = re.compile(  # letters that are excluded: `B, not A or C`
    r"(?i)(?<!if )(?:\b(?:and|but)\s)?\b(?:not|rather than|instead of|over)\s"
    rf"(?:{_SINGLE}(?:,?\s(?:or|and|nor)\s|,\s)?)+"
)
_LED = re.compile(  # `B)`, `(B)`, `B.` or `B, because` at the start of a line
    r"[*_`#>\s-]{0,8}(?:(?:[Oo]ption|[Cc]hoice|[Aa]nswer)\s{1,3})?(?:[(\[](?P<inside>[A-Za-z])[)\]]|(?P<plain>[A-Z])"
    r"(?:[*_]{0,3}[).:]|\s{1,3}-(?=\s)|,?(?=\s{1,3}(?:because|since)\b)))[*_:.]{0,4}(?:\s|$)"
)
_LOWER_LED = re.compile(r"(?<!\S)[a-z](?=[).]\s{1,3}\S)")
_RULED_OUT = re.compile(  # a line that calls its letter wrong
    r"(?i)\b(?:is|are|was|seems?)\s(?:\w{1,12}\s)?(?:wrong|incorrect|false|impossible|out|"
    r"not (?:right|correct|the|it|possible))\b|[\u274c\u2717\u2718]|[-:(]\s?(?:wrong|incorrect)\b"
)
_TELLS = re.compile(rf"(?:(?!because|since|as).)*?\b{_SAYS}")
_VERDICT = re.compile(  # `is correct` and its like, not under a condition
    r"(?:(?<=\s)(?:is|must be|has to be|should be|(?:seems|appears|looks)(?: to be)?|"
    r"es|est|ist|é|è|está|является|это|-|هي|هو)\s"
    r"(?:(?:the|la|le|el|o|a|die|das|my|our|definitely|clearly|indeed|therefore|thus|only) ){0,3}"
    r"(?:correct[aeo]?|right|best|answer|one that (?:works|fits|satisfies|meets|matches|holds)|richtig|korrekt|"
    r"richtige antwort|juste|bonne réponse|certa|corretta|giusta|respuesta|réponse|resposta|risposta|"
    r"(?:правильн|верн)\w{2,3}|الصحيح|صحيح|الإجابة)\b"
    r"|\s?(?:[是为為がはも]|[가이는은]\s)(?:正确|正確|正解|正しい|정답))"
    r"(?!\s(?:only|if|in part|partly|about|that|when|unless|insofar|to)\b|,?\s(?:but|yet|though|although|except)\b"
    r"|[^.!\n]{0,30}\?)"
)
_SUBJECT = re.compile(  # the letters that a verdict is about
    rf"(?i)(?:(?<![\w'-])|(?<=[\u3000-\u9fff\uac00-\ud7af]))(?:{_SINGLE}|[(\[*\"'`]{{1,3}}[a-z][)\]*\"'`]{{1,4}}"
    rf"|(?:option|choice|answer|letter) \(?[a-z]\)?)(?:\s?(?:,|/|\b(?:or|and|nor)\b)\s?{_SINGLE}){{0,5}}$"
)
# A letter without rivals: `only B satisfies both conditions`.
_ONLY = re.compile(
    rf"(?i)(?<!not )\bonly (?:(?:option|choice|answer|statement|alternative) )?({_SINGLE})\s"
    r"(?:satisf|work|fit|meet|match|hold|remain|appl|qualif|makes sense|is (?:left|consistent|true|valid|possible)\b)"
)
# The letters that other scripts count choices with, in the order of A, B, C; some scripts have several rows.
_ROWS = (
    "أ ب ج د \u0647|\u0627 ب ت ث|ক খ গ ঘ ঙ|অ ব ড ঢ|এ বি সি ডি ই|क ख ग घ ङ|अ ब स द|ए बी सी डी ई|"
    "가 나 다 라 마|ㄱ ㄴ ㄷ ㄹ ㅁ|ア イ ウ エ オ|甲 乙 丙 丁 戊|ก ข ค ง จ"
)
_LATIN = {native: chr(65 + index) for row in _ROWS.split("|") for index, native in enumerate(row.split())}
_NATIVE = re.compile(  # such a letter alone: between brackets, marks and ends of lines
    rf"(?:(?<=[(\[\"':*_\u0983])|(?<!\S))(?:{'|'.join(sorted(_LATIN, reverse=True))})"
    r"(?=[)\].:;,\"'*_\u060c\u0964\u3001\u3002]|\s*(?:$|\n)|\s(?:है|হল|হলো|হবে|لأن))",
    re.MULTILINE,
)
_ALONE = re.compile(r"(?<![A-Za-z])[A-Za-z](?![A-Za-z])")
_TICKS = "\u2705\u2713\u2714\u2611"
_TICKED = re.compile(rf"[{_TICKS}]|[-:(\u2192]\s?(?:correct|right)[.!)*\s]{{0,5}}$", re.IGNORECASE)
_LATEX = re.compile(r"\\(?:text|textbf|textit|mathrm|mathbf|mathsf|boldsymbol|rm|bf|[dt]?frac)\b|\\[()\[\],;! ]|[{}$]")
_END = re.compile(_ENDS)
_FINISHED = re.compile(r"[.!?\u0964\u3002][\s*_`\"')\]}]*\Z")  # otherwise the text was cut off
_LINE = re.compile(r"\S(?:[^\n]*\S)?")
_SENTENCE = re.compile(r"[^\s.!](?:[^\n.!]|[.!](?!\s))*")
_CLAUSE = re.compile(r"[.!?:;,]\s{1,3}")
_LETTERED = re.compile(r"[(\[]?([A-Za-z])[)\].:]\s{1,4}(?=\S)")  # a choice's counting letter before its text


class Chosen(NamedTuple):
    """The letters that a completion chooses, several for a stuffed answer, and the rule that decided."""

    letters: frozenset[str]
    rule: str


class _Statement(NamedTuple):
    """Letters that a text names, where they begin and end, and whether they correct those before."""

    start: int
    end: int
    letters: frozenset[str]
    corrects: bool = False


def letters_chosen(completion: str, letters: str, choices: Sequence[str] | None) -> Chosen:
    """Return the letters that a completion names as its answer after its thoughts, and the rule that decided.

    The rules are those of ``multiple_choice``; several letters are a stuffed answer. A letter that is denied, asked,
    supposed or withdrawn does not count, and a correction (``No, C.``) withdraws the letter before it.
    """
    folded = _with_latin_letters(fold(after_thinking(completion)[-_READ_CHARS:]))
    text = _without_latex(folded)
    reader = _Reader(letters, _by_text(letters, tuple(choices or ())))
    for rule, find_statements, source in (
        ("a box or tags", reader.marks, folded),
        ("a statement", reader.statements, text),
        ("a judgement", reader.judgements, text),
        ("a line of its own", reader.lone_lines, text),
        ("a marked line", reader.edge_lines, text),
        ("the text of a choice", reader.edge_texts, text),
    ):
        if standing := _standing_letters(source, find_statements(source)):
            return Chosen(standing, rule)
    return Chosen(frozenset(), "")


def _standing_letters(text: str, statements: Iterable[_Statement]) -> frozenset[str]:
    """Return the letters that are not denied, supposed or withdrawn."""
    survivors: list[_Statement] = []
    is_withdrawn = False
    for statement in deque(statements, _MAX_STATEMENTS):
        if statement.corrects and survivors and not is_withdrawn:
            survivors = [earlier for earlier in survivors if earlier.letters != survivors[-1].letters]
        reason = objection(text, statement.start, statement.end, min(statement.letters))
        is_withdrawn = reason == TAKEN_BACK
        if is_withdrawn:
            survivors = [earlier for earlier in survivors if earlier.letters != statement.letters]
        elif not reason and not supposed_before(text, statement.start):
            survivors.append(statement)
    return frozenset().union(*(statement.letters for statement in survivors))


def _lines(text: str) -> list[tuple[int, str]]:
    return [(line.start(), line[0]) for line in _LINE.finditer(text)]


def _with_latin_letters(text: str) -> str:
    """Return the text with Latin letters in place of those that other scripts count choices with."""
    if text.isascii():
        return text
    return _NATIVE.sub(lambda letter: _LATIN[letter[0]].ljust(len(letter[0])), text)


def _without_latex(text: str) -> str:
    """Return the text with blanks in place of LaTeX's commands and braces, at the same places."""
    return _LATEX.sub(lambda mark: " " * len(mark[0]), text)


@functools.lru_cache(maxsize=64)
def _by_text(letters: str, choices: tuple[str, ...]) -> dict[str, str]:
    texts = [normalise(_without_latex(choice)) for choice in choices]
    return {text: letter for text, letter in zip(texts, letters, strict=False) if text and texts.count(text) == 1}


@functools.lru_cache(maxsize=64)
def _letter_pattern(letters: str, firm: bool) -> re.Pattern[str]:
    """Return the pattern of letters that may be chosen; if ``firm``, a mark and the sentence's end must follow."""
    close = r"(?=[*_`\"')\]>])" if firm else ""
    letter = (
        rf"[\s*_`\"'(\[<{_TICKS}]{{0,16}}(?:[{letters}]|[{letters.lower()}]{close})"
        rf"(?!\?|['+#%^=\\.-]\w)(?:[*_`\"')\]>]{{1,6}}(?!\?)|(?={_GOES_ON}))(?!{_SPOKEN_OF})"
    )
    return re.compile(f"{letter}(?:{_JOINED}{letter})*")


@functools.lru_cache(maxsize=1024)
def _bare_letters(letters: str, line: str) -> frozenset[str]:
    line = re.sub(r"\sit is\b", "", _CONTRAST.sub("", line)).strip(f" \t*_`\"'.#:=>\u2192\u21d2\u2234,{_TICKS}")
    rest = _PREFIX.sub("", line, count=1)
    match = _letter_pattern(letters, rest != line).match(rest)  # "It is the c" is cut off
    if match is None or rest[match.end() :].strip(" *_`\"'()[]<>.:!\u3002"):
        return frozenset()
    return frozenset(map(str.upper, _ALONE.findall(match[0]))) & set(letters)


class _Reader(NamedTuple):
    """Finds the letters that may be chosen, by themselves or by the texts of their choices (``by_text``)."""

    letters: str
    by_text: dict[str, str]

    def marks(self, text: str) -> Iterator[_Statement]:
        """Yield the letters in boxes and answer tags that are closed."""
        marks = [mark for mark in (*boxes(text), *tags(text, _TAGS)) if mark.closed]
        for mark in sorted(marks, key=lambda mark: mark.start):
            content = _without_latex(mark.content).strip()
            letters = self.find_bare(content) or self.find_leading(content)
            if letters := letters or _standing_letters(content, self.statements(content)) or self.find_spelled(content):
                yield _Statement(mark.start, mark.end, frozenset(letters))

    def statements(self, text: str) -> Iterator[_Statement]:
        """Yield the letters of statements, and of the choices that statements spell out."""
        for cue in (_CUE if text.isascii() else _ANY_CUE).finditer(lower_in_step(text)):
            kind = _KINDS[cue[0]]
            follow = _FOLLOWS[kind].match(text, cue.end(), cue.end() + _WINDOW_CHARS)
            before = text[max(0, cue.start() - 60) : cue.start()].rpartition("\n")[2]
            if follow is None or _misses(kind, before, follow[0]):
                continue
            start = follow.end()
            letters, end = self.find_at(text[start : start + _WINDOW_CHARS], firm=kind not in ("noun", "solid"))
            below = itertools.islice(_LINE.finditer(text, start, start + 10 * _WINDOW_CHARS), 8)
            if letters and ("\n" not in follow[0] or len(self.leaders(line[0] for line in below)) < 2):
                yield _Statement(start, start + end, frozenset(letters), kind in ("corrects", "denies"))

    def find_at(self, text: str, *, firm: bool) -> tuple[set[str], int]:
        """Return the letters at the start of a text, and where they end; if ``firm``, the sentence ends there too."""
        line = text.partition("\n")[0]
        leading = self.find_leading(line)
        match = _letter_pattern(self.letters, firm).match(text)
        if match is None or (firm and not _END.match(text, match.end())):
            return (leading, 0) if leading or firm else (self.find_spelled(line), len(line))
        return self.find_all(match[0]) | leading | self.find_open(text[match.end() :]), match.end()

    def find_all(self, text: str) -> set[str]:
        return {letter.upper() for letter in _ALONE.findall(text)} & set(self.letters)

    def find_open(self, behind: str) -> set[str]:
        """Return the further letters that the text behind a statement leaves open."""
        return self.find_all(" ".join(_OPEN_TOO.findall(_CONTRAST.sub("", behind))))

    def judgements(self, text: str) -> Iterator[_Statement]:
        """Yield the letters that are called correct, or ticked."""
        for verdict in _VERDICT.finditer(lower_in_step(text)):
            window = text[max(0, verdict.start() - _WINDOW_CHARS) : verdict.start()]
            before = window.rstrip().rpartition("\n")[2]
            subject = _SUBJECT.search(before[-40:])
            phrase = subject[0] if subject else _CLAUSE.split(before)[-1]
            letters = self.find_all(phrase) if subject else self.find_spelled(_PREFIX.sub("", phrase, count=1))
            letters = letters or (set() if subject else self.find_leading(before))
            start = verdict.start() - len(window) + len(window.rstrip()) - len(phrase)
            if letters and not clause_denies(text, start):
                yield _Statement(start, verdict.end(), frozenset(letters))
        for only in _ONLY.finditer(text):
            if (letters := self.find_all(only[1])) and not clause_denies(text, only.start()):
                yield _Statement(only.start(1), only.end(1), frozenset(letters))
        for start, line in _lines(text):
            ticks = _TICKED.search(line) and (self.find_bare(line) or self.find_leading(line.strip(_TICKS + " ")))
            if ticks:
                yield _Statement(start, start + len(line), frozenset(ticks))

    def leaders(self, lines: Iterable[str]) -> set[str]:
        return {self.leader(line) or "".join(sorted(self.find_bare(line))) for line in lines} - {""}

    def lone_lines(self, text: str) -> Iterator[_Statement]:
        """Yield the letter of lines without anything else, except headings in a list of the options."""
        lines = _lines(text)
        is_first = bool(lines and self.find_bare(lines[0][1]))
        if len(self.leaders(line for _, line in lines if not (is_first and _RULED_OUT.search(line)))) == 1:
            for (_, before), (start, line) in itertools.pairwise([(0, ""), *lines]):
                is_heading = line[0] in "#|" or line.rstrip("*_`").endswith(":") or _INTRODUCES.search(before)
                if (letters := self.find_bare(line)) and not is_heading:
                    yield _Statement(start, start + len(line), frozenset(letters))

    def find_bare(self, line: str) -> Set[str]:
        """Return the letters of a short line without anything else, apart from words such as ``option``."""
        return _bare_letters(self.letters, line) if len(line) <= _SPARE_CHARS else frozenset()

    def edge_lines(self, text: str) -> Iterator[_Statement]:
        """Yield the letter that leads the first or the last line, where no line begins with another letter."""
        lines = _lines(text)
        if len(lines) == 1 and len(lines[0][1]) <= _SPARE_CHARS and _LOWER_LED.match(lines[0][1]):
            lines = [(lines[0][0], _LOWER_LED.sub(lambda led: led[0].upper(), lines[0][1]))]  # `b. 4`, and no more
        if len(self.leaders(line for _, line in lines)) != 1:
            return
        (start, line), before = lines[0], ""
        is_cut = not _FINISHED.search(text) and (len(lines) > 1 or _TELLS.match(line))
        if not self.find_leading(line):
            (_, before), (start, line) = lines[-2:] if len(lines) > 1 else lines * 2
            is_cut = _TELLS.match(line) or _INTRODUCES.search(before)
        is_list = len({*re.findall(r"\b[A-Z](?=[).:](?:\s|$))", line)}) > 1
        if (letters := self.find_leading(line)) and not (is_cut or is_list or _RULED_OUT.search(line)):
            yield _Statement(start, start + len(line), frozenset(letters))

    def leader(self, line: str) -> str:
        match = _LED.match(line)
        letter = (match["inside"] or match["plain"]).upper() if match else ""
        return letter if letter in self.letters else ""

    def find_leading(self, line: str) -> set[str]:
        """Return the letter that leads a line, unless called wrong there, and that of a choice's text after it."""
        match = _LED.match(line)
        if match is None or not self.leader(line) or _RULED_OUT.match(line, match.end()):
            return set()
        text = line[match.end() :]
        return {self.leader(line)} | self.find_spelled(text) | self.find_open(text[:_WINDOW_CHARS])

    def edge_texts(self, text: str) -> Iterator[_Statement]:
        """Yield the letter whose choice the first sentence or the last line spells out, if no other one does."""
        parts = [(part.start(), part[0]) for part in _SENTENCE.finditer(text)] if self.by_text else []
        hits = [(number, letter) for number, (_, part) in enumerate(parts) for letter in self.find_spelled(part)]
        if len({letter for _, letter in hits}) == 1:
            number, letter = hits[-1]
            start, part = parts[number]
            if number in (0, len(parts) - 1) and not (number and _INTRODUCES.search(parts[number - 1][1])):
                yield _Statement(start, start + len(part), frozenset(letter))

    def find_spelled(self, text: str) -> set[str]:
        """Return the letter whose choice a phrase spells out, as a whole or in its first sentence."""
        if not self.by_text or self.leader(text):
            return set()  # "A) Rome" would be "Rome" without its article
        limit = 2 * max(map(len, self.by_text)) + _SPARE_CHARS
        phrases = {text, text[: limit + 2].partition(". ")[0]}
        return {
            self.by_text.get(normalise(_without_latex(phrase)), "") for phrase in phrases if len(phrase) <= limit
        } - {""}


def _misses(kind: str, before: str, gap: str) -> bool:
    """Return whether a cue names no answer, by what stands before it in its line and behind it."""
    if kind == "pick":  # "Choose the correct answer: A) Rome B) Paris"
        return (":" in gap and not before.strip()) or (before[-1:].isascii() and not _PICKER.search(before))
    if kind == "contrasts":  # "It is not A but B"
        return not denies(before)
    if kind == "guesses":
        return before.strip(" *_")[-1:] not in ("", ".", "!", "?")
    return kind in ("noun", "solid") and _SURVEYS.search(before) is not None


@functools.lru_cache(maxsize=256)
def choice_texts(choices: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the texts of choices without counting letters; one text is split into its lines."""
    texts = [text.strip() for text in (choices[0].splitlines() if len(choices) == 1 else choices) if text.strip()]
    matches = [match for text in texts if (match := _LETTERED.match(text))]
    if len(texts) > 1 and [match[1].upper() for match in matches] == [chr(65 + index) for index in range(len(texts))]:
        return tuple(match.string[match.end() :] for match in matches)
    return choices if len(choices) > 1 else None


@functools.lru_cache(maxsize=256)
def gold_letter(answer: str, letters: str, choices: tuple[str, ...] | None, first_index: int) -> str | None:
    """Return the letter that a row's answer stands for (see ``multiple_choice``); ``None`` for none or two."""
    reader = _Reader(letters, _by_text(letters, tuple(choices or ())))
    answer = clean(answer) if answer.lstrip().startswith("\\") else answer
    letter_set = set(reader.find_bare(_with_latin_letters(fold(answer)).strip()))
    index = re.fullmatch(r"\s*(\d{1,3})\s*", answer, re.ASCII)
    if index and 0 <= (position := int(index[1]) - first_index) < len(letters):
        letter_set.add(letters[position])
    letter_set |= reader.find_spelled(answer) or reader.find_leading(answer.strip())
    return letter_set.pop() if len(letter_set) == 1 else None
