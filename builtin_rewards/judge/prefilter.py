r"""Answers that say nothing, told without asking a judge.

Owns :func:`content_free`. Judges give such answers full marks up to 80-90% of the time (arXiv 2507.08794), and a
policy in training finds them; what says nothing needs no judge.

The rule: what follows the last ``</think>`` (nothing, where a thought opens the text and never ends) is folded
(typography, width, case) and stripped of empty formatting: answer tags, role and fence lines of prompts, empty code
fences, ``\boxed{}`` and its like. It is content-free when nothing is left, when only punctuation is left, or when its
words are listed openers (:data:`OPENERS`) one after the other with nothing but punctuation around.

Of an answer longer than ``max_chars``, 32,000 or all that a judge is shown if that is more, only the two ends are
looked at, so many characters together: what stands between is not shown. An opener or formatting that the cut parts is
one none the less.

Covered: blanks and unseen characters; punctuation; the openers of the paper and their like, also repeated, combined,
in headings and emphasis, in any width and case, of any length.

Not covered, and left to the judge: an opener in letters of another alphabet that look alike; openers not listed; a
sentence that only restates the question.

Never content-free, because each may be an answer: any number, any word that is not part of an opener, symbols that
are not ASCII (the empty set, pi, a tick, an emoji), an operator of up to three characters (``%``, ``&&``, ``!==``), an
empty pair (``[]``, ``{}``), and what equals the reference.
"""

from __future__ import annotations

import re
import unicodedata

from builtin_rewards.judge.prompt import MAX_CHARS
from builtin_rewards.reading.turn import after_thinking
from builtin_rewards.reading.typography import fold, normalise

_MASTER_KEYS = (
    "thought process",
    "let's solve this problem step by step",
    "solution",
    "\u89e3",  # Chinese: solution
    "\u304b\u3044\u305b\u3064",  # Japanese: explanation
    "respuesta",
)
"""The reasoning openers of arXiv 2507.08794 (its other master keys are a blank, ".", "," and ":")."""

_STEP_BY_STEP = (
    "let's think step by step",  # arXiv 2205.11916
    "let's work this out in a step by step way to be sure we have the right answer",  # arXiv 2211.01910
    "take a deep breath and work on this problem step by step",  # arXiv 2309.03409
)
"""Prompts that ask for reasoning, which models give back as openers."""

_WORDINGS = (
    "thinking process",
    "my thought process",
    "let us think step by step",
    "let me think step by step",
    "let's think about this step by step",
    "let's think about it step by step",
    "let us solve this problem step by step",
    "let us solve the problem step by step",
    "let me solve this problem step by step",
    "let's solve the problem step by step",
    "let's solve this step by step",
    "let's solve it step by step",
    "let me solve this step by step",
    "let me solve it step by step",
    "let's do this step by step",
    "let's break this down step by step",
    "let's break it down step by step",
    "let's solve this problem",
    "let's begin",
    "let's start",
    "let me think",
    "let me think about this",
    "the solution",
    "solution process",
    "step by step solution",
    "here is the solution",
    "here's the solution",
    "the solution is",
    "the solution is as follows",
    "the solution to this problem is",
    "to solve this problem",
    "to solve the problem",
    "answer",
    "the answer",
    "my answer",
    "final answer",
    "the final answer",
    "my final answer",
    "the answer is",
    "my answer is",
    "the final answer is",
    "the correct answer is",
    "the answer to the question is",
    "here is the answer",
    "here is my answer",
    "here's the answer",
    "here's my answer",
    "therefore the answer is",
    "so the answer is",
    "therefore the final answer is",
    "so the final answer is",
    "answer to grade",
    "reference answer",
)
"""The same openers in other words, bare labels of an answer, and labels of the built-in prompts; our own list."""

_OTHER_LANGUAGES = (
    "\u89e3\u7b54",  # Chinese, Japanese: solution
    "\u89e3\u6cd5",  # Chinese, Japanese: way of solving
    "\u89e3\u8aac",  # Japanese: explanation, the paper's in ideographs
    "\u7b54\u6848",  # Chinese: answer
    "\u56de\u7b54",  # Chinese, Japanese: answer
    "\u7b54\u3048",  # Japanese: answer
    "\u601d\u8003\u8fc7\u7a0b",  # Chinese: thought process
    "\u8ba9\u6211\u4eec\u4e00\u6b65\u4e00\u6b65\u5730\u89e3\u51b3\u8fd9\u4e2a\u95ee\u9898",  # let's solve it by steps
    "\ud480\uc774",  # Korean: solution
    "\uc815\ub2f5",  # Korean: correct answer
    "soluci\u00f3n",
    "la respuesta es",
    "resolvamos este problema paso a paso",
    "solu\u00e7\u00e3o",
    "resposta",
    "soluzione",
    "risposta",
    "la r\u00e9ponse est",
    "r\u00e9ponse",
    "r\u00e9solvons ce probl\u00e8me \u00e9tape par \u00e9tape",
    "l\u00f6sung",
    "antwort",
    "die antwort ist",
    "l\u00f6sen wir dieses problem schritt f\u00fcr schritt",
    "\u0440\u0435\u0448\u0435\u043d\u0438\u0435",  # Russian: solution
    "\u043e\u0442\u0432\u0435\u0442",  # Russian: answer
)
"""Their counterparts in the languages of the paper and the commonest others; our own list."""

OPENERS = (*_MASTER_KEYS, *_STEP_BY_STEP, *_WORDINGS, *_OTHER_LANGUAGES)
"""Words that announce an answer and are none, in lower case and without punctuation."""

_TAGS = "think|thinking|thought|reasoning|answer|final_answer|solution|response|result|prompt|completion|reference"
_FENCE_TAGS = "prompt|completion|reference|source|first|second"
_FORMATTING = re.compile(
    rf"</?\s{{0,8}}(?:(?:{_TAGS})|(?:{_FENCE_TAGS})-[0-9a-f]{{1,64}})\s{{0,8}}/?>"
    r"|<\|[a-z0-9_]{1,40}\|>"
    r"|```[\w+#.-]{0,32}[^\S\n]*+\n\s*+```"
    r"|\\(?:boxed|fbox|text|textbf|textit|mathrm|mathbf)\s{0,8}\{"
    r"|\\(?:begin|end)\{[a-z]{1,20}\*?\}"
)
"""Formatting that says nothing by itself. HTML's own elements are not in it: ``<output>`` may be an answer."""
_CUT_START = re.compile(r"(?:```[\w+#.-]{0,32}\s*+|(?:</?\s{0,8}|<\||\\)[a-z_|{*]{0,40})\Z")
_CUT_END = re.compile(r"\A[a-z_|*]{0,40}\s{0,8}[>{]")
"""What a cut may leave of formatting."""
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*+")
_OPERATOR = re.compile(
    r"(?:(?!([-*_#~])\1\1)[-!#%&*+/<=>?@\\^|~_]{1,3}|\$|\(\s?\)|\[\s?\]|\\?\{\s?\\?\}|''|\"\")\}{0,4}"
)
"""Operators but not Markdown's rules, and empty pairs; braces may follow whose box is gone."""
_AROUND_OPERATORS = "`$*\"'. "
_CUT_WORD = re.compile(r"\s\S{0,100}\Z")
_HEAD_CHARS = 4000
"""Characters in which a word of a real answer is looked for before the whole text is."""


def _words(text: str) -> list[str]:
    return _WORD.findall(fold(text).casefold())


_LONGEST_FIRST = sorted({" ".join(_words(opener)) for opener in OPENERS}, key=len, reverse=True)
_STARTS = frozenset(opener[:chars] for opener in _LONGEST_FIRST for chars in range(1, len(opener)))
_ENDS = frozenset(opener[-chars:] for opener in _LONGEST_FIRST for chars in range(1, len(opener)))
"""What a cut may leave of an opener."""
_OPENER_WORDS = frozenset(word for opener in _LONGEST_FIRST for word in _words(opener))
_LONGEST_WORD = max(map(len, _OPENER_WORDS))
# The longest first and never given back, so that a text is read once.
_ONLY_OPENERS = re.compile(f"(?>(?:{'|'.join(re.escape(opener) for opener in _LONGEST_FIRST)}) )++")


def content_free(completion: str, reference: str | None = None, *, max_chars: int = MAX_CHARS) -> str | None:
    r"""Gives why an answer says nothing, in a short phrase, or ``None`` where it may say something.

    Takes time linear in ``max_chars``, and next to none for the rest of the text.

    Args:
        completion: The answer, its thinking included.
        reference: The right answer, where there is one: a completion that equals it says something, whatever it is.
        max_chars: Characters of it that are looked at; at least so many as a judge is shown.

    Example:
        >>> content_free("**Solution:**")
        "it announces an answer ('solution') and gives none"
        >>> content_free("The solution is 4") is None
        True
    """
    answer = after_thinking(completion)
    if _says_something_at_once(answer):
        return None
    bare = _bare_ends(answer, max_chars)
    why = _why_free(bare)
    if why is None or (reference and bare and normalise(bare) == normalise(_bare_ends(reference, max_chars))):
        return None
    return why if bare or "think>" not in completion else "nothing follows its thinking"


def _bare(text: str) -> str:
    return _FORMATTING.sub(" ", fold(text).casefold()).strip()


def _bare_ends(text: str, max_chars: int) -> str:
    """Gives what is left of the text, or of the two ends of a long one."""
    if len(text) <= max_chars:
        return _bare(text)
    chars = max_chars // 2
    head, tail = text[: max_chars - chars], text[-chars:]
    first = _bare(_CUT_START.sub(" ", fold(head).casefold()))
    last = _bare(_CUT_END.sub(" ", fold(tail).casefold()))
    # Only what stands at the cut may be cut: an answer "a" among blanks is no beginning of "answer".
    if fold(head[-2:]).strip():
        first = _without_start(first)
    if fold(tail[:2]).strip():
        last = _without_end(last)
    return f"{first} {last}".strip()


def _without_start(bare: str) -> str:
    """Takes the start of an opener from the end of a text."""
    for chars in range(min(len(bare), len(_LONGEST_FIRST[0])), 0, -1):
        if bare[-chars:] in _STARTS and not bare[-chars - 1 : -chars].isalnum():
            return bare[:-chars]
    return bare


def _without_end(bare: str) -> str:
    """Takes the end of an opener from the start of a text."""
    for chars in range(min(len(bare), len(_LONGEST_FIRST[0])), 0, -1):
        if bare[:chars] in _ENDS and not bare[chars : chars + 1].isalnum():
            return bare[chars:]
    return bare


def _says_something_at_once(answer: str) -> bool:
    """Whether the head of a long text has a symbol, or a word that no opener has."""
    if len(answer) <= _HEAD_CHARS:
        return False
    head = _bare(_CUT_WORD.sub("", answer[:_HEAD_CHARS]))
    if "```" in head:  # A code fence that is cut looks like the name of its language.
        return False
    *words, last = _WORD.findall(head) or [""]  # The last may be cut, where the head has no blanks.
    return not _OPENER_WORDS.issuperset(words) or len(last) > _LONGEST_WORD or _has_symbol(head)


def _why_free(bare: str) -> str | None:
    if not bare:
        return "it is empty"
    if _has_symbol(bare):
        return None
    words = _WORD.findall(bare)
    if not words:
        return None if _is_operator(bare) else "it has neither words nor symbols"
    if not _OPENER_WORDS.issuperset(words) or not _ONLY_OPENERS.fullmatch(" ".join(words) + " "):
        return None
    rest = bare[bare.rindex(words[-1]) + len(words[-1]) :]
    return None if _ends_in_operator(rest) else f"it announces an answer ({' '.join(words)[:60]!r}) and gives none"


def _ends_in_operator(rest: str) -> bool:
    """Whether nothing but an operator stands apart from the last word: ``answer: %``, and not ``**answer**``."""
    _, *apart = re.split(r"\s", rest, maxsplit=1)
    return bool(apart) and _is_operator(apart[0].strip())


def _is_operator(text: str) -> bool:
    return any(_OPERATOR.fullmatch(form) for form in (text, text.strip(_AROUND_OPERATORS)))


def _has_symbol(text: str) -> bool:
    return not text.isascii() and any(_is_symbol(char) for char in set(text))


def _is_symbol(char: str) -> bool:
    """Whether a character that is no letter or digit may be an answer."""
    if char < "\x80" or char.isalnum() or char == "\ufffd":
        return False
    return unicodedata.category(char) in ("Sm", "So", "Sc", "Mn", "Mc", "Me", "Co", "Cn", "Nl", "No")
