"""Negation of answers: the words around an answer that deny, doubt or withdraw it, within a bounded distance."""

from __future__ import annotations

import re

TAKEN_BACK = "the answer is taken back"
BEFORE_CHARS = 100  # how many characters before an answer are searched for a denial
BEHIND_CHARS = 160  # how many characters behind an answer are searched for a denial or a withdrawal

_NOT = r"(?:\b(?:not|never|cannot|neither|nor|isnt|nobody|no one|no es|nicht|n['\u2019]est pas|не)\b|n['\u2019]t\b|不)"
_SIGN = r"(?:\\neq?(?![a-z])|\\not(?![a-z])|\\(?:neg|lnot)(?![a-z])|(?<![\w)])!=|=/=|[≠¬≢∉])"
_WRONG = r"(?:wrong|incorrect|false|mistaken|bad|rejected|untrue)"
_DOUBT = (
    r"(?:(?<!\bno )(?<!without )(?<!without a )(?<!beyond )(?<!any )\bdoubt(?:s|ed|ful)?\b"
    r"|\b(?:unlikely|deny|denies|disagree|disbelieve|refuse|hardly|no longer|far from|used to be)\b)"
)
_NOUN = r"(?:answers?|results?|values?|solutions?|options?|choices?|letters?|numbers?|lists?|sets?)"
_TRAP = r"(?:mistake|error|misconception|trap|distractor|misreading|myth)"
_RULE_OUT = r"(?:reject|dismiss|discard|exclude|eliminate|rule out)"
_RULED_OUT = r"(?:rejected|dismissed|discarded|excluded|eliminated|ruled out|out of the question)"
_OPEN = r"[\s:$(\[\\*_\"'`{<>=]*"
_DENIER = re.compile(  # `far` denies its whole clause, `near` what follows it
    rf"(?i)(?P<far>{_NOT}|{_DOUBT}|{_SIGN}|\b(?:any|every)thing (?:but|besides)\b|\bexcept(?: for)?\b"
    r"|(?<!\bnone )(?<!\bno )\bother than\b)"
    r"|(?P<near>\b(?:any|every|all)(?:\s\w+)?\s(?:but|besides)\b|\b(?:instead of|rather than|differ(?:s|ent)? from)\b"
    r"|\bwithout(?! (?:a|any)? ?doubt)\b|\bnone of (?:them|these|those)\b"
    r"|\b(?:reject|dismiss|discard|exclud|eliminat|rul(?:e|ed|es|ing) out)\w*)"
    rf"|\b(?:{_WRONG}|impossible|whether|if|unless|no way|suppose|assume|assuming|{_TRAP}(?= to\b)"
    rf"|(?:common|typical|usual|frequent|classic)\s(?:{_TRAP}|{_WRONG}))\b"
)
_BRIDGE = (  # words that may stand between a denial and the answer
    rf"(?:\s+(?:be|equals?|to|the|an?|my|as|of|we|you|I|is|are|was|were|it|it['\u2019]s|this|that|just|simply|really|actually"
    r"|exactly|correct|true|right|sure|certain|final|possible|case|root|think|believe|say|claim|conclude|accept|agree|suppose|guess"
    rf"|get|would|will|should|must|could|can|have|{_NOUN}))"
)
_BRIDGED = re.compile(rf"{_BRIDGE}*(?:\s*=|\s+[a-z]\s*=)?{_OPEN}$", re.IGNORECASE)
_BRIDGED_BY_WORDS = re.compile(rf"(?:{_BRIDGE}+|\s+[a-z]\s*=){_OPEN}$", re.IGNORECASE)
_WORD = r"[^\s.;:!?]{1,30}"
_VERB_LAST = re.compile(
    rf"(?i)(?:\b(?:is|are|was|were|equals)(?:\s(?:equal to|therefore|thus|then|exactly))?|[:=])(?P<is>{_OPEN})$"
)
_OF_SUBJECT = re.compile(
    rf"(?i)\b(?:the(?!\s(?:\w+\s)?(?:answer|result)\b)|those|numbers?|values?|probability|chance)(?:\s{_WORD}+){{0,14}}?\s"
    rf"(?:(?:who|that|which|whose|where|when|while|by)\s(?:{_WORD}+\s){{0,8}}?(?:\w{{1,12}}(?=n['\u2019]t))?"
    rf"(?:{_NOT}|(?:except|{_WRONG})\b)|(?:other than|of not)\b|(?<!\bis )(?<!\bwas )(?<!\bhas )(?<!\bdoes )(?<=s )"
    rf"not\b|of\s(?!(?:the|an?|my)\s)(?:\w{{1,20}}\s){{0,2}}?{_WRONG}\b)"
    rf"(?:\s(?!(?:think|believe|say|claim|mean|imply|show|suppose|agree|that|it|really|quite|exactly|just|ever|even|equal"
    rf"|be|is|are|was|were|equals)\b){_WORD}){{1,14}}?"
    rf"\s?{_VERB_LAST.pattern.removeprefix('(?i)')}"
)  # a subject with a negation of its own, up to its verb: `the number of those who did not pass is`
_CLAUSE_ENDS = re.compile(r"[.,;:!?\n]|\b(?:but|so|hence|therefore)\b")
_CALLS_WRONG = re.compile(rf"\b(?:is|are|was|were) {_WRONG}\b", re.IGNORECASE)
_IS_WRONG = re.compile(rf"[^A-Za-z]*\d[^A-Za-z]*(?:\\text)?[\s{{]+(?:is|was)\s(?:not\s|{_WRONG}\b)", re.IGNORECASE)
_NEGATES = re.compile(rf"\b(?:not|no|never|nor|neither|cannot|without|\w{{2,6}}nt|{_WRONG})\b|[≠¬≢∉]")
_GIVEN_UP = re.compile(  # the writer announces a wrong answer, or none
    rf"(?i)\b{_WRONG} (?:final )?{_NOUN}\b[^.!?\n]{{0,20}}$"
    r"|\b(?:I|we) (?:cannot|can['\u2019]?t|can not|could(?: not|n['\u2019]t)|am unable to|do(?: not|n['\u2019]t))"
    r" (?:know|solve|answer|find|determine|compute)\b[^.!?\n]{0,40}[.!]?[\s(\[*]*$"
)
_SUPPOSES = re.compile(  # conditions, reports and guesses
    r"(?i)\b(?:whether|if|unless|suppos\w+|assum\w+|imagine|claim\w*)\b"
    r"|\b(?:might|may|could)(?=\s(?:(?!the )\w{1,12} )?(?:be|say|think|argue|believe|guess|suspect|conclude|answer"
    r"|choose|pick|expect|equal|seem|look)\b|\W*$)"
    rf"|\b{_WRONG}\b(?!\s(?!(?:{_NOUN}|items?|ones?|final|possible|guess\w*|idea|to|that|is|are"
    r"|was|were|and|or|because|since|as|here)\b)[a-z])"
    r"|\b(?:some|many|others|people|students)\s(?:\w{1,12}\s)?(?:say|think|believe|argue|choose|answer|hold)\b"
)
_ASKS = re.compile(  # the start of a question
    r"(?i)(?:^|[.!?\n;:,]\s*|\b(?:so|but|then|hmm|well|wait),?\s)"
    r"(?:(?:is|are|was|could|can|might|may|would|should|does)\s(?:it|this|that|the|my|our|[a-z])"
    r"|who (?:says|said)|what if|how about)\b[^.!?\n]*$"
)

_ENDS = r"(?=\s*(?:$|[.,;:!?)\n…—]|(?:because|since|as|for|in|by|and|but|either|at all|after all|here)\b|\*))"
_CLOSE = r"[\s$%)\]}\\*_\"'`,]{0,8}"
_VERB = (
    r"(?:is|was|are|were|['\u2019]s|ca|does|did|do|wo|could|can|will|would be|must be|seems|looks|has been|had been)\s?"
    r"(?:(?:an?|the)\s)?(?:(?!(?:not|that|this|it)\b)\w{1,12}\s){0,2}?"
)
_PREDICATE = (
    r"(?:(?:not|n['\u2019]t)(?:\s(?:be|seem|look|sound|quite|the|right|correct|true|it|answer|possible|work|hold|fit)){0,4}"
    rf"|{_WRONG}|{_TRAP}|{_RULED_OUT}(?:\s(?:it|that|this))?|lie|impossible|doubtful|unlikely|dubious){_ENDS}"
)
_AFTER = re.compile(  # `is wrong`, `? No`, `. I doubt it` behind an answer
    rf"(?i){_CLOSE}\s(?:(?:is|was|are|were|seems|looks) (?:(?:clearly|still|far|way|much|only|just|merely) )*"
    r"(?:too (?:high|low|large|small|big|many|few|long|short|much|little|great)\b"
    r"|an? (?:(?:upper|lower) bound|estimate|guess|approximation)\b|out of (?:range|bounds)\b)|fails?\b(?! to\b))"
    rf"|{_CLOSE}[.!]?(?:</\w{{1,12}}>)?[\s.!(]*(?:(?:and|but|then|later|which|this|that|it|answer)\s+)*(?:{_VERB})?{_PREDICATE}"
    rf"|{_CLOSE}\s(?:or|maybe|perhaps) not{_ENDS}|{_CLOSE}\?[\s*\"'`)]{{0,4}}(?:no|nope|not|wrong)\b|{_CLOSE}or is it\b"
    rf"|{_CLOSE}[.;?]{{0,2}}\s{{1,3}}(?:(?:but|though|although|which|and|then|later|I|we|really|seriously|strongly)\s+)*"
    rf"(?:(?:doubt|deny|do(?: not|n['\u2019]t)\s+(?:think|believe))(?:\s+(?:it|that|this|so))?{_ENDS}"
    rf"|(?:{_RULE_OUT}|ruled)\s(?:it|that|this)\b)"
)
_REST = re.compile(r"(?:[^.!?\n]|\.(?=\d))*")
_SIGH = (  # words before a withdrawal: `Wait, `
    r"(?:(?:wait|hmm+|hm|hold on|oh|ah|oops|whoops|actually|but|sorry|no|nope|well|(?:my )?apologies|i see|rather"
    r"|on second thoughts?|in fact|please|nein|non|нет)\b[\s,.!:;…\u2013—-]*)"
)
_LAST = rf"(?:that|this|my|the)(?: (?:last|previous|above|first))? {_NOUN}"
_WITHDRAWS = re.compile(  # words that withdraw an answer; `other` is a number in its place: `I mean 41`
    r"(?i)[\s$)\]}\\*_\"'`,;—-]{0,8}(?:</\w{1,12}>)?[\s.!?…。*\"'`$)\u2013—-]*"
    rf"(?:{_SIGH}{{0,5}}(?:i (?:think|believe) )?(?:"
    rf"(?:(?:that|this|it|which|the above|{_LAST})\s?|(?P<named>(?!my\b)\S{{1,40}})\s){_VERB}{_PREDICATE}"
    rf"|(?:scratch|strike|ignore|disregard|forget|discard) (?:(?:that|this|it|the above){_ENDS}|{_LAST}\b)"
    rf"|(?:no|nope)(?:(?!\. ?\d)[,.!;:—]|\s+-|\s*$|\s(?:wait|that|it|the answer|i)\b)|(?:o+|whoo)ps\b|not really{_ENDS}"
    r"|never ?mind\b|just kidding\b|correction\b|i meant\b|i was joking|my (?:mistake|bad|error)\b"
    r"|i (?:was|am) (?:wrong|mistaken)\b|i (?:take|took|got) (?:that|it|this) (?:back|wrong)\b|i messed up\b"
    rf"|i (?:(?:think i|must have|have) |['\u2019]ve )?(?:made an? (?:\w{{1,12}} )?(?:mistake|error){_ENDS}"
    r"|forgot\b(?! to (?:mention|say|add|note))"
    r"|mis(?:read|calculated|counted|understood|typed|spoke|interpreted|took)\b)"
    rf"|let me (?:redo|rethink|try|start)(?: (?:this|that|it|again|over))+{_ENDS}"
    r"|let me (?:correct|fix) (?:that|this|it|my|the)\b|(?<=actually, )let me re(?:compute|calculate|do)\b"
    rf"|(?:das|c['\u2019]est|это) (?:ist |war )?(?:falsch|nicht richtig|faux|не(?:верно|правильно)){_ENDS}"
    r"|不对|不對|错了|錯了)"
    rf"|(?:{_SIGH}{{0,5}}(?:(?:it|that|this|the answer) (?:should|ought to|must) (?:be|have been)|i mean|better|edit"
    rf"|make (?:that|it)|correction)|{_SIGH}{{0,4}}(?:sorry|actually|in fact|rather)[\s,.!:]{{1,3}}"
    r"(?:(?:it|that)(?: is|['\u2019]s)|the (?:\w{1,12} )?answer (?:is|should be))?)"
    r"[,:]?\s?[$\\(*]{0,4}(?:boxed\{)?(?P<other>[-+]?\d[\d.,/]*)(?=[$\\)*}]{0,4}\s*(?:$|[.,;!\n])))"
)
_CHECKS = re.compile(
    r"(?i)[.!?]?\s+(?:let me|let['\u2019]s) (?:re-?|double-? ?)?(?:check|verify|think|compute|test)\b[^.!?\n]{0,40}"
)
_ASKED = re.compile(rf"{_CLOSE}\?(?![\s*\"'`)]{{0,4}}(?:yes|yep|right|correct|indeed|it is)\b)", re.IGNORECASE)


def denied_before(text: str, start: int) -> bool:
    """Whether the words or signs right before a place deny what stands there: ``not``, ``I doubt that it is``."""
    before = text[max(0, start - BEFORE_CHARS) : start]
    before = _without_subject(before[max(map(before.rfind, ".;?")) + 1 :])
    return any(
        (_BRIDGED if denier.lastgroup else _BRIDGED_BY_WORDS).match(before, denier.end())
        for denier in _DENIER.finditer(before)
    )


def clause_denies(text: str, start: int) -> bool:
    """Return whether the clause before a place denies or doubts anywhere, or the writer gives up before it."""
    before = _without_subject(text[max(0, start - BEHIND_CHARS) : start])
    return (
        _GIVEN_UP.search(before) is not None
        or denied_before(before, len(before))
        or any(denier.lastgroup == "far" for denier in _DENIER.finditer(_CLAUSE_ENDS.split(before)[-1]))
    )


def _without_subject(before: str) -> str:
    """Return the text before an answer without the subject of its verb, if only that is negated."""
    denier = _VERB_LAST.search(before) and _DENIER.search(before)
    return _OF_SUBJECT.sub(r"\g<is>", before) if denier else before


def supposed_before(text: str, start: int) -> bool:
    """Return whether the clause before a place only supposes or reports: ``if``, ``some might say``."""
    clause = _CLAUSE_ENDS.split(text[max(0, start - BEFORE_CHARS) : start])[-1]
    return _SUPPOSES.search(clause) is not None and _SUPPOSES.search(_without_subject(clause)) is not None


def denies(text: str) -> bool:
    """Return whether a short text denies, doubts or calls anything wrong."""
    return any(denier.lastgroup for denier in _DENIER.finditer(text)) or _CALLS_WRONG.search(text) is not None


def calls_wrong(text: str) -> bool:
    """Return whether a text is an answer without words that is called wrong: ``0 is false``."""
    return _IS_WRONG.match(text) is not None


def negations(text: str) -> int:
    """Return how often a normalised text negates or calls something wrong, in words or signs."""
    return len(_NEGATES.findall(text))


def begins_denied(text: str) -> bool:
    denier = _DENIER.match(text.lstrip("* \t"))
    return denier is not None and denier.lastgroup == "far"


def denied_after(text: str, end: int) -> bool:
    """Return whether the rest of the sentence denies what is before a place: ``is wrong``, ``? No``, ``rejected``."""
    return _AFTER.match(text[end : end + BEHIND_CHARS]) is not None


def withdrawn_after(text: str, end: int, answer: str = "") -> bool:
    """Return whether the sentence behind an answer, or behind its own sentence, withdraws it: ``No, that is wrong``.

    ``Wait`` alone, a check (``let me verify``) and a sentence that names another answer (``Wait, 41 is wrong`` behind
    42) withdraw nothing; another number in its place (``I mean 41``) does.
    """
    behind = text[end : end + BEHIND_CHARS]
    rest = _REST.match(behind)
    end_of_sentence = rest.end() if rest else 0
    check = _CHECKS.match(behind, end_of_sentence)
    starts = {0, end_of_sentence, check.end() if check else 0}
    matches = [_WITHDRAWS.match(behind, start) for start in starts]
    return any(
        _core(match["named"] or answer) == _core(answer)
        and (not match["other"] or _core(match["other"]) != _core(answer))
        for match in matches
        if match
    )


def _core(answer: str) -> str:
    return answer.strip(" \t\r\n.,;:$*_`\"'()[]{}\\").casefold()


def objection(text: str, start: int, end: int, answer: str = "", *, since: int = 0) -> str:
    """Return why the answer at a place does not count, or an empty text.

    ``answer`` is its text, for a withdrawal that names it. Before ``since``, where the phrase begins that states it,
    only a denial of the whole statement counts (``It is not true that the answer is 42``).
    """
    line = text[max(0, since - BEFORE_CHARS) : since].rpartition("\n")[2].rstrip(" \t\"'*_")
    lead = text[max(since, start - BEFORE_CHARS) : start]
    if denied_before(f"{line} it is ", len(line) + 7) or denied_before(lead, len(lead)):
        return "the answer is denied before it"
    if denied_after(text, end):
        return "the answer is denied after it"
    if _ASKED.match(text, end) and _ASKS.search(text[max(0, start - BEFORE_CHARS) : start]):
        return "the answer is only asked about"
    return TAKEN_BACK if withdrawn_after(text, end, answer) else ""
