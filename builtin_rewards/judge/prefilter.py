r"""Answers that say nothing, told without asking a judge.

Owns :func:`content_free`. Judges give such answers full marks up to 80-90% of the time (arXiv 2507.08794), and a
policy in training finds them; what says nothing needs no judge.

The rule: what follows the last ``</think>`` (nothing, where a thought opens the text and never ends) is folded
(typography, width, case) and stripped of empty formatting: answer tags, role and fence lines of prompts, empty code
fences, ``\boxed{}`` and its like. It is content-free when nothing is left, when only punctuation is left, or when its
words are openers, one after the other, with nothing but punctuation around.

Never content-free, because each may be an answer: any number, any word that is not part of an opener, symbols that
are not ASCII (the empty set, pi, a tick, an emoji), an operator of up to three characters (``%``, ``&&``, ``!==``), an
empty pair (``[]``, ``{}``), and what equals the reference. Left to the judge: openers in letters of another alphabet
that look alike, openers that are not known, and a sentence that only restates the question.
"""

from __future__ import annotations

import re
import unicodedata

from builtin_rewards.judge.prompt import MAX_CHARS
from builtin_rewards.reading.turn import after_thinking
from builtin_rewards.reading.typography import fold, normalise

OPENERS = (
    # The reasoning openers of arXiv 2507.08794; its other master keys are a blank, ".", "," and ":".
    *("thought process", "let's solve this problem step by step", "solution"),
    *("\u89e3", "\u304b\u3044\u305b\u3064", "respuesta"),
    # Prompts that ask for reasoning and come back as openers: arXiv 2205.11916, 2211.01910, 2309.03409.
    "let's think step by step",
    "let's work this out in a step by step way to be sure we have the right answer",
    "take a deep breath and work on this problem step by step",
    # The same in other words, and labels of the built-in prompts.
    *(
        "thinking process",
        "my thought process",
        "let me think",
        "let me think about this",
        "let's begin",
        "let's start",
    ),
    *("let me think step by step", "let us solve this step by step", "let's break it down step by step"),
    *("let's start", "let's solve this problem", "solution process", "step by step solution", "to solve the problem"),
    *("answer", "my answer", "the final answer", "the solution is", "here is the answer", "so the final answer is"),
    *("the solution to this problem is", "the answer to the question is", "answer to grade", "reference answer"),
    # Their counterparts in Chinese, Japanese, Korean, Spanish, Portuguese, Italian, French, German and Russian.
    *("\u89e3\u7b54", "\u89e3\u6cd5", "\u7b54\u6848", "\u56de\u7b54", "\u601d\u8003\u8fc7\u7a0b"),
    "\u8ba9\u6211\u4eec\u4e00\u6b65\u4e00\u6b65\u5730\u89e3\u51b3\u8fd9\u4e2a\u95ee\u9898",
    *("\u89e3\u8aac", "\u7b54\u3048", "\ud480\uc774", "\uc815\ub2f5"),
    *("soluci\u00f3n", "la respuesta es", "resolvamos este problema paso a paso"),
    *("solu\u00e7\u00e3o", "resposta", "soluzione", "risposta"),
    *("la r\u00e9ponse est", "r\u00e9ponse", "r\u00e9solvons ce probl\u00e8me \u00e9tape par \u00e9tape"),
    *("l\u00f6sung", "antwort", "die antwort ist", "l\u00f6sen wir dieses problem schritt f\u00fcr schritt"),
    *("\u0440\u0435\u0448\u0435\u043d\u0438\u0435", "\u043e\u0442\u0432\u0435\u0442"),
)
"""Words that announce an answer and are none, in lower case and without punctuation."""

_FORMS = (
    r"(?:let's|let us|let me) (?:think|solve|work|break|do)(?: (?:about|this|it|the|problem|out|down))* step by step",
    r"(?:let's|let us|let me) (?:solve (?:this|the) problem|think(?: about (?:this|it))?)",
    r"(?:(?:so|therefore|here is|here's) )?(?:(?:the|my) )?(?:(?:final|correct) )?(?:answer|solution)"
    r"(?: to (?:this|the) (?:problem|question))?(?: is(?: as follows)?)?",
    r"to solve (?:this|the) problem",
)
"""Openers in as many words as there are for them."""
_TAGS = "think|thinking|thought|reasoning|answer|final_answer|solution|response|result|prompt|completion|reference"
_FENCE_TAGS = "prompt|completion|conversation|reference|source|first|second|answer-[0-9]{1,3}"
_FORMATTING = re.compile(
    rf"</?\s{{0,8}}(?:(?:{_TAGS})|(?:{_FENCE_TAGS})-[0-9a-f]{{1,64}})\s{{0,8}}/?>"
    r"|<\|[a-z0-9_]{1,40}\|>"
    r"|```[\w+#.-]{0,32}[^\S\n]*+\n\s*+```"
    r"|\\(?:boxed|fbox|text|textbf|textit|mathrm|mathbf)\s{0,8}\{"
    r"|\\(?:begin|end)\{[a-z]{1,20}\*?\}"
)
"""Formatting that says nothing by itself. HTML's own elements are not in it: ``<output>`` may be an answer."""
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*+")
_OPERATOR = re.compile(
    r"(?:(?!([-*_#~])\1\1)[-!#%&*+/<=>?@\\^|~_]{1,3}|\$|\(\s?\)|\[\s?\]|\\?\{\s?\\?\}|''|\"\")\}{0,4}"
)
"""Operators but not Markdown's rules, and empty pairs; braces may follow whose box is gone."""
_AROUND_OPERATORS = "`$*\"'. "


def _words(text: str) -> list[str]:
    return _WORD.findall(fold(text).casefold())


_IN_FORM = re.compile("|".join(_FORMS))
_LONGEST_FIRST = sorted({" ".join(_words(opener)) for opener in OPENERS}, key=len, reverse=True)
_OTHERS = [re.escape(opener) for opener in _LONGEST_FIRST if not _IN_FORM.fullmatch(opener)]
# The longest first and never given back, so that a text is read once.
_ONLY_OPENERS = re.compile(f"(?>(?:{'|'.join([*_OTHERS, *_FORMS])}) )++")
_CUT_WORD = re.compile(r"\S{0,40}\Z")


def content_free(completion: str, reference: str | None = None, *, max_chars: int = MAX_CHARS) -> str | None:
    r"""Gives why an answer says nothing, in a short phrase, or ``None`` where it may say something.

    Args:
        completion: The answer, its thinking included.
        reference: The right answer, where there is one: a completion that equals it says something, whatever it is.
        max_chars: Characters of it that are looked at, half of them at either end; as many as a judge is shown.

    Example:
        >>> content_free("**Solution:**")
        "it announces an answer ('solution') and gives none"
        >>> content_free("The solution is 4") is None
        True
    """
    bare = _bare(after_thinking(completion), max_chars)
    why = _why_free(bare)
    if why is None or (reference and bare and normalise(bare) == normalise(_bare(reference, max_chars))):
        return None
    return why if bare or "think>" not in completion else "nothing follows its thinking"


def _bare(text: str, max_chars: int) -> str:
    half = max_chars // 2
    shown = text
    if len(text) > max_chars:  # a word that the cut parts would be none that is known
        shown = f"{_CUT_WORD.sub('', text[:half])} {_CUT_WORD.sub('', text[: -half - 1 : -1])[::-1]}"
    return _FORMATTING.sub(" ", fold(shown).casefold()).strip()


def _why_free(bare: str) -> str | None:
    if not bare:
        return "it is empty"
    if not bare.isascii() and any(map(_is_symbol, set(bare))):
        return None
    words = _WORD.findall(bare)
    if not words:
        return None if _is_operator(bare) else "it has neither words nor symbols"
    if not _ONLY_OPENERS.fullmatch(" ".join(words) + " "):
        return None
    rest = bare[bare.rindex(words[-1]) + len(words[-1]) :]
    return None if _ends_in_operator(rest) else f"it announces an answer ({' '.join(words)[:60]!r}) and gives none"


def _ends_in_operator(rest: str) -> bool:
    """Whether nothing but an operator stands apart from the last word: ``answer: %``, and not ``**answer**``."""
    _, *apart = re.split(r"\s", rest, maxsplit=1)
    return bool(apart) and _is_operator(apart[0].strip())


def _is_operator(text: str) -> bool:
    return any(_OPERATOR.fullmatch(form) for form in (text, text.strip(_AROUND_OPERATORS)))


def _is_symbol(char: str) -> bool:
    """Whether a character that is no letter or digit may be an answer."""
    if char < "\x80" or char.isalnum() or char == "\ufffd":
        return False
    return unicodedata.category(char) in ("Sm", "So", "Sc", "Mn", "Mc", "Me", "Co", "Cn", "Nl", "No")
