"""Whether an answer stands: the words and signs around it that deny it, doubt it or take it back.

Three places speak against an answer: what stands right before it (``not 42``, ``the wrong answer is 42``, ``I doubt
that it is 42``), what goes on right behind it (``42 is wrong``, ``42? No``), and the sentence behind it (``42. Wait,
that is wrong``). Words further off are not read, nor are other languages than English but for their plainest "not" and,
in German, French, Russian and Chinese, their plainest "that is wrong".
All patterns are anchored at the answer and look at a bounded number of characters, so each call takes a bounded time.
"""

from __future__ import annotations

import re

BEFORE_CHARS = 100
"""Characters before an answer in which a denial is looked for."""
BEHIND_CHARS = 160
"""Characters behind an answer in which a denial or a withdrawal is looked for."""

_NOT = (
    r"(?:\b(?:not|never|cannot|neither|nor|isnt|isn t)\b|n['\u2019]t\b|\bno es\b|\bnicht\b|\bn['\u2019]est pas\b"
    r"|\b\u043d\u0435\b|\u4e0d)"
)
_SIGN = r"(?:\\neq?(?![a-z])|\\not(?![a-z])|\\(?:neg|lnot)(?![a-z])|(?<![\w)])!=|=/=|[\u2260\u00ac\u2262\u2209])"
_BUT = (
    r"(?:\b(?:any(?:thing| \w+)?|every(?:thing| \w+)?|all)\s+(?:but|besides|except(?:\s+for)?)\b"
    r"|(?<!\bnone )(?<!\bno )\bother than\b|\bexcept(?:\s+for)?\b|\binstead of\b|\brather than\b"
    r"|\bdiffer(?:s|ent)? from\b)"
)
_WRONG = r"(?:wrong|incorrect|false|mistaken|bad|rejected|untrue)"
_DOUBT = (
    r"(?:(?<!\bno )(?<!without )(?<!without a )(?<!beyond )(?<!any )\bdoubt(?:s|ed|ful)?\b"
    r"|\b(?:unlikely|deny|denies|disagree|disbelieve|refuse|hardly|no longer|far from|used to be)\b)"
)
_NOUN = r"(?:answers?|results?|values?|solutions?|options?|choices?|letters?|numbers?)"
_TRAP = r"(?:mistake|error|misconception|trap|distractor|misreading|myth)"
_ENDS = r"(?=\s*(?:$|[.,;:!?)\n\u2026\u2014]|because\b|since\b|as\b|either\b|at all\b|after all\b|here\b|\*))"
_OPEN = r"[\s:$(\[\\*_\"'`{<>=]*"
_PREMISE = (
    rf"(?:{_DOUBT}|\b(?:{_WRONG}|impossible|whether|if|unless|no way|suppose|assume|assuming)\b)"
    r"(?:\s+(?:to\s+\w+|of|that|we|you|I|say|claim))*"
)
"""What makes a statement behind it a doubt or a case that is only supposed."""
_THE_ANSWER = rf"(?:the|an?|as|{_NOUN}|root)"

_HINTS = (
    *("not", "nor", "never", "neither", "nicht", "no es", "no one", "nobody", "n't", "n\u2019t", "isnt", "isn t"),
    *("cant", "no longer", "but", "besides", "except", "other than", "instead", "rather", "wrong", "incorrect"),
    *("false", "mistak", "bad", "untrue", "error", "trap", "myth", "misconception", "distractor", "misreading"),
    *("doubt", "deny"),
    *("unlikely", "denies", "disagree", "disbelieve", "refuse", "hardly", "far from", "used to", "impossible", "if"),
    *("n'est", "n\u2019est", "\u043d\u0435", "none of", "differ", "no way", "unless"),
    *("whether", "suppos", "assum", "unable", "reject", "dismiss", "discard", "exclud", "eliminat", "rule", "ruling"),
    *("\u4e0d", "\\ne", "\\lnot", "!=", "=/=", "\u2260", "\u00ac", "\u2262", "\u2209"),
)
"""One of these is in all that denies from before; to look for them takes a hundredth of what the patterns take."""

_BEFORE = re.compile(
    rf"{_NOT}(?:\s+(?:be|equal|equals|to|the|a|an|answer|is|just|simply|really|actually|value|result|exactly|correct"
    r"|true|right|case|option|choice|letter|that|it|think|believe|say|claim|accept|agree|suppose|would|will|should|must|could|can))*"
    rf"{_OPEN}$"
    rf"|{_BUT}{_OPEN}$|{_SIGN}\s*=?{_OPEN}$"
    rf"|\b{_WRONG}\s+(?:(?:final|possible)\s+)?{_NOUN}\s*(?:(?:is|was|are|would be|here)\b|[:=])*{_OPEN}$"
    rf"|{_PREMISE}\s+(?:(?:it|this|(?:the|my)\s+(?:(?:final|correct)\s+)?answer)\s+"
    rf"(?:is|was|be|equals|could be|would be|can be)|it['\u2019]s|to be)\b{_OPEN}$"
    rf"|\bnone of (?:them|these|those)\s(?:is|are|was|were|equals?)\b{_OPEN}$"
    rf"|\b(?:common|typical|usual|frequent|classic)\s(?:{_TRAP}|{_WRONG}\s{_NOUN})\s(?:is|was|would be)\b{_OPEN}$"
    rf"|\b(?:{_WRONG}|{_TRAP}|impossible)\s+to\s+\w+(?:\s+(?:that|it|is|{_THE_ANSWER}))*{_OPEN}$"
    r"|\b(?:reject|dismiss|discard|exclud|eliminat|rul(?:e|ed|es|ing) out)\w*"
    rf"(?:\s+{_THE_ANSWER})*(?:\s+[a-z]\s*=)?{_OPEN}$",
    re.IGNORECASE,
)
_OF_SUBJECT = re.compile(
    r"\b(?:numbers?|probability|chance|odds|percent(?:age)?|fraction|proportion|sum|product|total|amount|average"
    r"|mean|smallest|largest|greatest|least|lowest|highest|minimum|maximum|first|last|values?|integers?)"
    r"(?:\s[^\s.;:!?]{1,30}){0,6}?\s"
    rf"(?:(?:who|that|which|whose|where|when)\s(?:[^\s.;:!?]{{1,30}}\s){{0,4}}?(?:\w{{1,12}}(?=n['\u2019]t))?"
    rf"(?:{_NOT}|(?:nobody|no one|except|{_WRONG})\b)|(?:other than|of not)\b"
    rf"|(?<!\bis )(?<!\bwas )(?<!\bhas )(?<!\bdoes )(?<=s )not\b"
    rf"|of\s(?!(?:the|an?|my)\s)(?:\w{{1,20}}\s){{0,2}}?{_WRONG}\b)"
    rf"(?:\s(?!(?:think|believe|say|claim|mean|imply|show|suppose|agree"
    rf"|really|quite|exactly|just|ever|even|equal|be|is|are|was|were|equals)\b)[^\s.;:!?]{{1,30}}){{1,12}}?"
    rf"\s?(?:\b(?:is|are|was|were|equals)(?:\s(?:equal to|therefore|thus|then|exactly))?|[:=])(?P<is>{_OPEN})$",
    re.IGNORECASE,
)
"""A subject that says what is not so of what it counts, up to its verb: ``the number of those who did not pass is``."""
_CLAUSE_ENDS = re.compile(r"[.,;:!?\n]|\bbut\b|\bso\b|\bhence\b|\btherefore\b")
_DENIAL = re.compile(
    rf"{_NOT}|{_DOUBT}|\b(?:(?:any|every)thing (?:but|besides)|except|nobody|no one)\b"
    rf"|(?<!\bnone )(?<!\bno )\bother than\b|{_SIGN}",
    re.IGNORECASE,
)
_CALLS_WRONG = re.compile(
    rf"\b(?:anything|everything|all|any) (?:but|except)\b|\b(?:is|are|was|were) {_WRONG}\b", re.IGNORECASE
)
_IS_WRONG = re.compile(rf"[^A-Za-z]*\d[^A-Za-z]*(?:\\text)?[\s{{]+(?:is|was)\s(?:not\s|{_WRONG}\b)", re.IGNORECASE)
_NEGATES = re.compile(
    rf"\b(?:not|no|never|nor|neither|cannot|without|\w{{2,6}}nt|{_WRONG})\b|[\u2260\u00ac\u2262\u2209]"
)
_GIVEN_UP = re.compile(
    rf"\b{_WRONG} (?:final )?{_NOUN}\b[^.!?\n]{{0,20}}$"
    r"|\b(?:I|we) (?:cannot|can['\u2019]?t|can not|could(?: not|n['\u2019]t)|am unable to|do(?: not|n['\u2019]t))"
    r" (?:know|solve|answer|find|determine|compute)\b[^.!?\n]{0,40}[.!]?[\s(\[*]*$",
    re.IGNORECASE,
)

_CLOSE = r"[\s$%)\]}\\*_\"'`,]{0,8}"
_AFTER = re.compile(
    r"[\s$%)\]}\\*_\"'`,.!]{0,8}(?:</\w{1,12}>[\s.!]{0,4})?"
    r"(?:\(?(?:this|that|it|which|but|that's|answer)\s+)*(?:is|was|would be|are)?\s*"
    rf"(?:not\b|n['\u2019]t\b|\b{_WRONG}\b)(?!\s+(?:only|just))"
    r"(?:\s+(?:the\s+)?(?:correct|right|answer|true|it)|[.!\s$]*$|\s*[.!\n])"
    rf"|{_CLOSE}(?:(?:and|but|which|that|this|it|then|later|I|we|is|was|were|has been|had been|must be)\s+)*"
    r"(?:(?:rejected|discarded|dismissed|excluded|eliminated|ruled out|out of the question)"
    r"(?=\s*(?:$|[.,;:!\n]|(?:it|that|this|as|because|since|by|later)\b))"
    r"|(?:reject|discard|dismiss|exclude|eliminate|rule|ruled)\s+(?:it|that|this)\b)"
    rf"|{_CLOSE}\s\(?(?:(?:which|that|this|it)\s+)?(?:is|was|would be|seems|looks|isn['\u2019]t|wasn['\u2019]t)\s"
    rf"(?:an?\s|the\s)?(?:(?!not\b)\w{{1,12}} ){{0,2}}?(?:{_WRONG}|{_TRAP}|doubtful|unlikely|dubious|impossible)\b"
    rf"|{_CLOSE}\s(?:(?:can(?:not|['\u2019]t)|could(?: not|n['\u2019]t))\s+be(?:\s+(?:right|correct|true|it))?"
    rf"|(?:does|do|did)(?: not|n['\u2019]t)\s+(?:work|hold|fit)){_ENDS}"
    rf"|{_CLOSE}[.;]?\s?\??\s{{1,3}}(?:(?:but|though|although|which|and)\s+)?(?:I|we)\s+"
    r"(?:(?:really|seriously|strongly)\s+)?"
    rf"(?:doubt|deny|reject|do(?: not|n['\u2019]t)\s+(?:think|believe))(?:\s+(?:it|that|this|so))?{_ENDS}"
    rf"|{_CLOSE}\?[\s*\"'`)]{{0,4}}(?:no|nope|not|wrong)\b"
    rf"|{_CLOSE}\s(?:or|maybe|perhaps) not{_ENDS}",
    re.IGNORECASE,
)
_REST = re.compile(r"(?:[^.!?\n]|\.(?=\d))*")
_SIGH = (
    r"(?:(?:wait|hmm+|hm|hold on|oh|ah|oops|whoops|actually|but|sorry|no|nope|well|(?:my )?apologies|i see"
    r"|on second thoughts?|in fact|please|nein|non|\u043d\u0435\u0442)\b[\s,.!:;\u2026\u2013\u2014-]*)"
)
_FOREIGN_WRONG = (
    r"(?:das|c['\u2019]est|\u044d\u0442\u043e) (?:ist |war )?"
    r"(?:falsch|nicht richtig|faux|\u043d\u0435(?:\u0432\u0435\u0440\u043d\u043e"
    r"|\u043f\u0440\u0430\u0432\u0438\u043b\u044c\u043d\u043e))"
)
_LAST = rf"(?:that|this|my|the)(?: (?:last|previous|above|first))? {_NOUN}"
_WITHDRAWS = re.compile(
    r"[\s$)\]}\\*_\"'`,;\u2014-]{0,8}(?:</\w{1,12}>)?[\s.!?\u2026\u3002*\"'`$)\u2013\u2014-]*"
    rf"(?:{_SIGH}){{0,5}}(?:i (?:think|believe) )?(?:"
    rf"(?:that|this|it|which|{_LAST}|(?P<named>(?!my\b)\S{{1,40}}))\s?(?:is|was|'s|\u2019s|ca|does|did|wo|could|can|will)?\s?"
    r"(?:(?:seems|looks|must be|clearly|obviously|actually|still|also|completely|just|an?|the)\s){0,3}"
    r"(?:(?:not|n['\u2019]t)\s(?:(?:be|seem|look|sound|quite|the|a)\s){0,3}"
    rf"(?:right|correct|true|it|answer|possible|work){_ENDS}"
    rf"|(?:{_WRONG}|mistake|error|lie|impossible){_ENDS})"
    rf"|(?:scratch|strike|ignore|disregard|forget|discard) (?:(?:that|this|it|the above){_ENDS}|{_LAST}\b)"
    r"|never ?mind\b|just kidding\b|correction\b"
    r"|i (?:was|am) (?:wrong|mistaken)\b|i (?:take|took) (?:that|it|this) back\b"
    rf"|i (?:(?:think i|must have|have) |['\u2019]ve )?made an? (?:\w{{1,12}} )?(?:mistake|error){_ENDS}"
    r"|i (?:think i |must have |have )?mis(?:read|calculated|counted|understood|typed|spoke|interpreted|took)\b"
    rf"|not really{_ENDS}|my (?:mistake|bad|error){_ENDS}|i was joking\b"
    rf"|the above (?:is|was) (?:{_WRONG}|not (?:right|correct|true)){_ENDS}"
    rf"|let me (?:redo|rethink|try|start)(?: (?:this|that|it|again|over))+{_ENDS}"
    rf"|(?<=actually, )let me re(?:compute|calculate|do)\b"
    rf"|{_FOREIGN_WRONG}{_ENDS}|\u4e0d\u5bf9|\u4e0d\u5c0d|\u9519\u4e86|\u932f\u4e86"
    r"|i (?:messed up|got (?:that|it|this) wrong)\b|let me (?:correct|fix) (?:that|this|it|my|the)\b|i meant\b"
    r")",
    re.IGNORECASE,
)
_REFUSES = re.compile(
    r"[\s*_\"'`$)\]}]{0,8}(?:</\w{1,12}>)?[.!?\u2026\u2014,;\s-]?[\s*\"'`$)]*"
    r"(?:(?:wait|hmm+|oh|sorry|hold on)\b[\s,.!\u2026]*){0,3}"
    r"(?:(?:no|nope)(?:(?!\. ?\d)[,.!;:\u2014]|\s+-|\s*$|\s+(?:wait|that|it|the answer|i)\b)|oops\b|whoops\b"
    r"|(?:sorry|actually)[,.!:]?\s+(?:i meant\b"
    r"|(?:(?:it|that)(?:'s|\u2019s| is| should be)|the (?:\w{1,12} )?answer (?:is|should be))\s+\W{0,4}(?:\d|boxed)))",
    re.IGNORECASE,
)
_CORRECTS = re.compile(
    r"[\s$)\]}\\*_\"'`,;]{0,8}(?:</\w{1,12}>)?[.!?\u2026\u2013\u2014;\s-]{0,4}"
    rf"(?:(?:{_SIGH}){{0,4}}(?:(?:it|that|this|the answer) (?:should|ought to|must) (?:be|have been)"
    r"|i mean|make (?:that|it)|rather"
    r"|better|edit|correction)"
    r"|(?:(?:wait|hmm+|oh|sorry|no|but|well),? ){0,2}(?:in fact|actually|rather),?"
    r"(?: (?:it is|it['\u2019]s|that is|that['\u2019]s))?)"
    r"[,:]?\s[$\\(*]{0,4}(?:boxed\{)?(?P<other>[-+]?\d[\d.,/]*)(?=[$\\)*}]{0,4}\s*(?:$|[.,;!\n]))",
    re.IGNORECASE,
)
"""Another number that is put in place of an answer: ``I mean 41``."""
_ASKS = re.compile(
    r"(?:^|[.!?\n;:,]\s*|\b(?:so|but|then|hmm|well|wait),?\s)"
    r"(?:(?:is|are|was|could|can|might|may|would|should|does)\s(?:it|this|that|the|my|our|[a-z])"
    r"|who (?:says|said)|what if|how about)\b[^.!?\n]*$",
    re.IGNORECASE,
)
_ASKED = re.compile(rf"{_CLOSE}\?(?![\s*\"'`)]{{0,4}}(?:yes|yep|right|correct|indeed|it is)\b)", re.IGNORECASE)
_SUPPOSES = re.compile(
    r"\b(?:whether|if|unless|suppos\w+|assum\w+|imagine|claim\w*)\b"
    r"|\b(?:might|may|could)(?=\s(?:(?!the )\w{1,12} )?(?:be|say|think|argue|believe|guess|suspect|conclude|answer"
    r"|choose|pick|expect|equal|seem|look)\b|\W*$)"
    rf"|\b{_WRONG}\b(?!\s(?!(?:{_NOUN}|lists?|sets?|items?|ones?|final|possible|guess\w*|statements?|idea|to|that|is|are"
    r"|was|were|and|or|because|since|as|here)\b)[a-z])"
    r"|\b(?:some|many|others|people|students)\s(?:\w{1,12}\s)?(?:say|think|believe|argue|choose|answer|hold)\b",
    re.IGNORECASE,
)


def statement_denied(text: str, start: int) -> bool:
    """Whether the words before a statement such as ``the answer is 42`` deny it: ``It is not true that``, ``I doubt``.

    So do ``wrong``, ``if``, ``suppose`` and ``whether`` right before it.
    """
    before = _before(text, start).rstrip(" \t\"'*_")
    return before[-1:] not in ("", "\n") and _BEFORE.search(before + " it is ") is not None


def denied_before(text: str, start: int) -> bool:
    """Whether the words or signs right before a place deny or doubt what stands there: ``not``, ``anything but``.

    So do ``the wrong answer is``, ``I doubt that it is``, ``if the answer is``, ``I reject``, ``it is a mistake to
    answer`` and signs such as an unequal sign.
    """
    before = _before(text, start)
    return bool(before) and _BEFORE.search(_without_subject(before)) is not None


def clause_denies(text: str, start: int) -> bool:
    """Whether a denial or a doubt stands anywhere in the clause before a place, or the writer gives up before it."""
    before = _without_subject(_before(text, start, BEHIND_CHARS))
    return bool(before) and (
        _GIVEN_UP.search(before) is not None
        or _BEFORE.search(before[-BEFORE_CHARS:]) is not None
        or _DENIAL.search(_CLAUSE_ENDS.split(before)[-1]) is not None
    )


def _before(text: str, start: int, chars: int = BEFORE_CHARS) -> str:
    """The characters before a place; none where nothing in them can deny."""
    before = text[max(0, start - chars) : start]
    lowered = before.lower()
    return before if any(hint in lowered for hint in _HINTS) else ""


def _without_subject(before: str) -> str:
    """The text before an answer without the subject of its verb, where what that denies is of the subject alone."""
    return _OF_SUBJECT.sub(r"\g<is>", before)


def supposed_before(text: str, start: int) -> bool:
    """Whether the clause before a place only supposes or reports what stands there: ``if``, ``some might say``."""
    before = _without_subject(text[max(0, start - BEFORE_CHARS) : start])
    return _SUPPOSES.search(_CLAUSE_ENDS.split(before)[-1]) is not None


def denies(text: str) -> bool:
    """Whether a short text has a word or sign anywhere that denies or doubts, or calls anything wrong."""
    said = _before(text, len(text), len(text))
    return bool(said) and (_DENIAL.search(said) is not None or _CALLS_WRONG.search(said) is not None)


def calls_wrong(text: str) -> bool:
    """Whether a text is an answer without words and says that it is wrong: ``0 is false``."""
    return _IS_WRONG.match(text) is not None


def negations(text: str) -> int:
    """How often a normalised text negates or calls something wrong, in words or signs."""
    return len(_NEGATES.findall(text))


def begins_denied(text: str) -> bool:
    """Whether a text begins with a word or sign that denies."""
    return _DENIAL.match(text.lstrip("* \t")) is not None


def denied_after(text: str, end: int) -> bool:
    """Whether the sentence that goes on at a place denies what is before it: ``is wrong``, ``? No``, ``rejected``."""
    return _AFTER.match(text[end : end + BEHIND_CHARS]) is not None


def withdrawn_after(text: str, end: int, answer: str = "") -> bool:
    """Whether the sentence behind an answer takes it back: ``Wait, that is wrong``, ``No,``, ``Scratch that``.

    It stands right behind the answer or behind the sentence that the answer stands in. ``Wait`` alone takes nothing
    back, nor does a check (``let me verify``). One that names another answer (``Wait, 41 is wrong`` behind 42) takes
    back that one, and so not this.
    """
    behind = text[end : end + BEHIND_CHARS]
    rest = _REST.match(behind)
    places = {0, rest.end() if rest else 0}
    return any(_withdraws(behind, place, answer) for place in places)


def _withdraws(behind: str, place: int, answer: str) -> bool:
    if _REFUSES.match(behind, place) is not None:
        return True
    other = _CORRECTS.match(behind, place)
    if other is not None and _bare(other["other"]) != _bare(answer):
        return True
    found = _WITHDRAWS.match(behind, place)
    return found is not None and (found["named"] is None or _bare(found["named"]) == _bare(answer))


def _bare(answer: str) -> str:
    return answer.strip(" \t\r\n.,;:$*_`\"'()[]{}\\").casefold()


def objection(text: str, start: int, end: int, answer: str = "", *, since: int = 0) -> str:
    """Says what speaks against an answer that stands at a place; empty where it stands.

    Args:
        text: The text.
        start: Where the answer, or the mark that it stands in, begins.
        end: The place behind it.
        answer: What it says, for a withdrawal that names it.
        since: Where the phrase begins that announces it, if one does; what is before that is not read.
    """
    if denied_before(text[max(since, start - BEFORE_CHARS) : start], min(start - since, BEFORE_CHARS)):
        return "the answer is denied before it"
    if denied_after(text, end):
        return "the answer is denied after it"
    if _ASKED.match(text, end) and _ASKS.search(text[max(0, start - BEFORE_CHARS) : start]):
        return "the answer is only asked about"
    return "the answer is taken back" if withdrawn_after(text, end, answer) else ""
