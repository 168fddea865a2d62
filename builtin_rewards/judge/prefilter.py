r"""Answers without content, found without asking a judge.

Judges give such answers full marks up to 80-90% of the time (arXiv 2507.08794), and a policy in training finds them.
The text after the last thought is folded and stripped of empty formatting. It is content-free if nothing is left,
or only marks that end a sentence and Markdown's rules, or only openers with marks around them. Anything else may be an
answer: a number, a word, a symbol, an empty pair (``[]``), whatever equals the reference, and an unknown opener.
"""

from __future__ import annotations

import re

from builtin_rewards.judge.prompt import MAX_CHARS
from builtin_rewards.reading.normalisation import fold, normalise
from builtin_rewards.reading.thoughts import after_thinking, strip_frame

OPENERS = (  # words that announce an answer without giving one, in lower case and without punctuation
    # Of arXiv 2507.08794, 2211.01910 and 2309.03409; labels of the built-in prompts; and see _FORMS.
    *("thought process", "thinking process", "\u89e3", "\u304b\u3044\u305b\u3064", "respuesta"),
    "let's work this out in a step by step way to be sure we have the right answer",
    "take a deep breath and work on this problem step by step",
    *("answer to grade", "reference answer"),
)
_FORMS = (  # openers that come in several wordings
    r"(?:let's|let us|let me) (?:think|solve|work|break|do)(?: (?:about|this|it|the|problem|out|down))* step by step",
    r"(?:let's|let us|let me) (?:solve (?:this|the) problem|think(?: about (?:this|it))?)",
    r"(?:(?:so|therefore|here is|here's) )?(?:(?:the|my) )?(?:(?:final|correct) )?(?:answer|solution)"
    r"(?: to (?:this|the) (?:problem|question))?(?: is(?: as follows)?)?",
    r"to solve (?:this|the) problem",
)
_TAGS = "think|thinking|thought|reasoning|answer|final_answer|solution|response|result|prompt|completion|reference"
_FENCES = "prompt|completion|conversation|reference|source|first|second|answer-[0-9]{1,3}"
_FORMATTING = re.compile(  # without content of its own; none of HTML's elements: ``<output>`` may be an answer
    rf"</?\s{{0,8}}(?:(?:{_TAGS})|(?:{_FENCES})-[0-9a-f]{{1,64}})\s{{0,8}}/?>"
    r"|<\|[a-z0-9_]{1,40}\|>"
    r"|```(?:[\w+#.-]{0,32}[^\S\n]*+\n\s*+```)?"
    r"|\\(?:boxed|fbox|text|textbf|textit|mathrm|mathbf)\s{0,8}\{"
    r"|\\(?:begin|end)\{[a-z]{1,20}\*?\}"
)
_WORD = re.compile(r"[^\W_]+(?>'[^\W_]+)*+")
# Marks that end a sentence, the brace of a box, unreadable characters, and Markdown's rules.
_SILENT = re.compile("(?>[\\s\x00.,:;}\u2026\u3001\u3002\ufffd\ud800-\udfff]|([-*_#~])\\1\\1+|[!?]{4,})*+")
_DRESS = frozenset(".,:;!?'\"*_#>-`~()[]{}$\\/\u2026\u3001\u3002\u300c\u300d\ufffd")  # marks around openers
# Possessive, so that a text is read once.
_ONLY_OPENERS = re.compile(f"(?>(?:{'|'.join([*(re.escape(fold(opener)) for opener in OPENERS), *_FORMS])}) )++")
_CUT_WORD = re.compile(r"\S{0,40}\Z")


def content_free(completion: str, reference: str | None = None, *, max_chars: int = MAX_CHARS) -> str | None:
    r"""Return why an answer has no content, in a short phrase, or ``None`` if it may have some.

    A completion that equals the reference always has content. Only ``max_chars`` characters of a completion are read,
    half of them at either end, as many as a judge is shown.

    Example:
        >>> content_free("**Solution:**")
        "it announces an answer ('solution') and gives none"
        >>> content_free("The solution is 4") is None
        True
    """
    answer = after_thinking(completion)
    bare = _strip_formatting(answer, max_chars)
    reason = _why_free(bare)
    if reason is None or (reference and bare and normalise(bare) == normalise(_strip_formatting(reference, max_chars))):
        return None
    return reason if bare or answer == strip_frame(completion) else "nothing follows its thinking"


def _strip_formatting(text: str, max_chars: int) -> str:
    """Return a text folded and without formatting; of one that is too long, its two ends."""
    half = max_chars // 2
    if len(text) > max_chars:  # the parts of a word that is cut are no known words
        text = f"{_CUT_WORD.sub('', text[:half])} {_CUT_WORD.sub('', text[: -half - 1 : -1])[::-1]}"
    return _FORMATTING.sub(" ", fold(text).casefold()).strip()


def _why_free(text: str) -> str | None:
    """Return why a folded text without formatting has no content; ``None`` if it may have some."""
    if not text:
        return "it is empty"
    tokens = _WORD.findall(text)
    if not tokens:
        return "it has neither words nor symbols" if _SILENT.fullmatch(text) else None
    is_plain = all(char.isalnum() or char.isspace() or char in _DRESS for char in set(text))
    if not is_plain or not _ONLY_OPENERS.fullmatch(" ".join(tokens) + " "):
        return None
    tail = text[text.rindex(tokens[-1]) + len(tokens[-1]) :]
    tail = re.sub(r"^\S*", "", tail)  # ``answer: -`` may be an answer, and ``**answer**`` is not
    return f"it announces an answer ({' '.join(tokens)[:60]!r}) and gives none" if _SILENT.fullmatch(tail) else None
