"""LaTeX and Unicode writings of one answer in the one that the readers know, without fonts, sizes and spaces."""

from __future__ import annotations

import re

from builtin_rewards.reading.normalisation import FRACTIONS

_INVISIBLE = "\u200b\u200c\u200d\u2060\ufeff\u00ad\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_AROUND, _AT_END = " \t\r\n*`", ".,;: \t\r\n*`"
_SIGNS = (
    "\u00d7\u00b7\u22c5\u00f7\u03c0\u221e\u2264\u2265\u2260\u222a\u2229\u2208\u2205\u00b1\u00b0\u00ba\u00b5\u03bc\u03a9\u2126"
    "\u00c5\u212b\u211d\u2228\u2227\u27e8\u27e9"
)
_NAMES = (
    r"\times \cdot \cdot \div \pi \infty \le \ge \ne \cup \cap \in \emptyset \pm ^\circ ^\circ \mu \mu \Omega \Omega"
    r" \AA \AA \mathbb{R} \lor \land \langle \rangle"
)
_FOLDED: dict[int, str] = {
    **{code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)},
    **dict.fromkeys(map(ord, "\u00a0\u2007\u2009\u200a\u202f\u3000"), " "),
    **dict.fromkeys(map(ord, "\u2212\u2010\u2011\u2012\u2013\ufe63"), "-"),
    **{ord(sign): f"{command} " for sign, command in zip(_SIGNS, _NAMES.split(), strict=True)},
    **dict(zip(map(ord, "\u2044\u2019\u2032\u2033\u3002"), "/''\".", strict=True)),
    **FRACTIONS,
}
_SMALL = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻₀₁₂₃₄₅₆₇₈₉", "0123456789-0123456789")
_RUN = re.compile("(⁻?[⁰¹²³⁴⁵⁶⁷⁸⁹]+)|[₀₁₂₃₄₅₆₇₈₉]+")
_ROOT = re.compile("√\\s*(?:\\(([^()]*)\\)|(\\d+|[a-z]))")  # without LaTeX
_COLOUR = r"\\(?:text)?color\s*\{[^{}]*\}"
_IN_BRACES = r"\{((?:[^{}]|\{[^{}]*\})*)\}"
_FONT = (
    r"\\(?:text(?:bf|rm|it|tt|sf|sc|sl|up|md|normal)?|emph|[mh]box|math(?:rm|bf|it|sf|tt|normal)|operatorname|underline"
    r"|bm|boldsymbol|ensuremath)"
)
_STYLE = (
    r"\\(?:bf|rm|it|sf|tt|sc|sl|em|bfseries|itshape|ttfamily|tiny|scriptsize|footnotesize|small|normalsize|[lL]arge|LARGE"
    r"|[hH]uge|(?:display|text|script)style)(?![A-Za-z])"
)
_SPACE = r"\\(?:(?:q?quad|(?:thin|med|thick)space)(?![A-Za-z])|[hv]space\*?\{[^{}]*\}|[hv]?phantom\{[^{}]*\})"
_COMMANDS = tuple(  # what LaTeX's commands are read as, in this order; `\0` stands for a dollar that is money
    (re.compile(pattern), instead)
    for pattern, instead in (
        (r"\0", " "),
        (r"(?<!\\)\\\\(?=(?:[dtcsx]?frac|sqrt|text|pi|boxed)(?![A-Za-z]))", r"\\"),  # escaped twice, as in JSON
        (r"\\\$", "\0"),
        (rf",\\!\s*|\{{,\}}|{_FONT}\s*\{{,\}}", ","),
        (r"\\(?:left|right|[bB]igg?[lr]?)(?=[^A-Za-z])|\\!", ""),
        (r"\\%", "%"),
        (rf"(?<!\\)\\[()\[\],;: ]|(?<!~)~(?!~)|{_SPACE}|{_STYLE}|(?<![\w}}^_])\{{\}}|(?<=\d)\{{\}}", " "),
        (rf"^\s*(?:\{{\s*)?{_COLOUR}\s*(?:\{{([^{{}}]*)\}}|([^{{}}]*)\}})\s*$|{_COLOUR}", r"\1\2"),
        (r"\\(?:mathring|r)\s*\{\s*A\s*\}", r"\\AA "),
        (r"\\euro(?![A-Za-z])", "€"),
        (r"\\pounds(?![A-Za-z])", "£"),
        # upright letters that are a unit as such, and not in a formula
        (rf"(?<=[\d}}])\s*{_FONT}\s*\{{\s*d\s*\}}\s*$", " day "),
        (rf"(?<=[\d}}])\s*{_FONT}\s*\{{\s*t\s*\}}\s*$", " tonne "),
        (rf"(?:(?<=\d{{3}})|(?<=[2-9]\d)|(?<=\.\d))\s*{_FONT}\s*\{{\s*pm\s*\}}\s*$", " picometer "),
        # twice, for a font in a font
        (rf"{_FONT}\s*{_IN_BRACES}", r" \1 "),
        (rf"{_FONT}\s*{_IN_BRACES}", r" \1 "),
        (r"^\s*\{([^{},;]*)\}\s*$", r"\1"),
        (r"\^\s*\{?\s*\\prime\s*\}?", "'"),
        (r"\^\s*\{?\s*\\circ\s*\}?|\\degrees?\b", " degrees "),
        (r"\\[dtcsx]frac(?![A-Za-z])|\\nicefrac(?![A-Za-z])", r"\\frac"),
        (r"\{([^{}]*[^{}\s])\s*\\over(?![A-Za-z])\s*([^{}]*)\}", r"\\frac{\1}{\2}"),
        (r"^([^{}\\]*[^{}\\\s])\s*\\over(?![A-Za-z])\s*([^{}\\]*)$", r"\\frac{\1}{\2}"),
    )
)
_SPACES_AT_END = re.compile(r"(?:(?<!\\)\\[,;:!]|(?<!\\)\\$|(?<!~)~|(?<=[\d\s])\{\}|\s)+$")
_THEREFORE = re.compile(
    r"^(?:(?:[\u2234\u21d2\u2192]|=>|\\(?:therefore|implies|(?:Long)?[rR]ightarrow)(?![A-Za-z]))\s*)+"
)
_ALIGNED = re.compile(r"\\begin\s*\{((?:align(?:ed)?|gather(?:ed)?|split|equation)\*?)\}([\s\S]*?)\\end\s*\{\1\}")
_REPEATED = re.compile(  # `0.333...`, `0.(3)`, `0.3 repeating`
    r"(?<![\w.])(\d{0,40})\.(?:(\d{0,20}?)(\d{1,12}?)\3{1,60}(?:\.{3,}|\s?\\[lc]?dots(?![A-Za-z]))|(\d{0,40})\((\d{1,12})\)(?![\w(])"
    r"|(\d{1,12})\s(?:repeating|recurring)\b)(?:\.{3})?"
)


def in_latex(text: str) -> str:
    """Return the text with usual mathematical signs in ASCII or LaTeX; look-alike letters and other digits stay."""
    if text.isascii():
        return text
    text = _RUN.sub(lambda run: f"{'^' if run[1] else '_'}{{{run[0].translate(_SMALL)}}}", text)
    return _ROOT.sub(lambda root: f"\\sqrt{{{root[1] or root[2]}}}", text).translate(_FOLDED)


def clean(text: str) -> str:
    """Return an answer without delimiters, markdown, fonts and full stop; invisible characters go at its ends only."""
    text = _THEREFORE.sub("", in_latex(text.strip(_INVISIBLE + _AROUND)).strip(_AROUND))
    if "\\" in text or "{" in text or ("~" in text and "~~" not in text):
        text = _repeating(_SPACES_AT_END.sub("", text)).rstrip(_AT_END)
        text = _ALIGNED.sub(_in_a_line, text) if "\\begin" in text else text
        for command, instead in _COMMANDS:
            text = command.sub(instead, text)
    else:
        text = _repeating(text).rstrip(_AT_END)
    text = text.replace("US$", "$")
    if text.count("$") % 2 == 0:
        text = text.replace("$", "")
    return text.replace("\0", "$").strip(_AROUND).rstrip(_AT_END)


def _repeating(text: str) -> str:
    """Return the text with the repeating decimals of other writings as ``0.\\overline{3}``."""
    if not any(mark in text for mark in ("...", "dots", "(", "ing")) or "." not in text:
        return text
    return _REPEATED.sub(_overlined, text)


def _overlined(match: re.Match[str]) -> str:
    prefix, period = match[2] or match[4] or "", match[3] or match[5] or match[6]
    return f"{match[1]}.{prefix}\\overline{{{period}}}"


def _in_a_line(match: re.Match[str]) -> str:
    """Return aligned lines in one: a chain where they go on with a sign, else a list."""
    lines = [line.replace("&", " ").strip() for line in match[2].strip().removesuffix("\\\\").split("\\\\")]
    return "".join(line if index == 0 or line[:1] == "=" else f", {line}" for index, line in enumerate(lines) if line)
