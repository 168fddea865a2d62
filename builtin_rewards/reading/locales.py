"""Numbers of other languages: decimal commas, and points, blanks or apostrophes between thousands."""

from __future__ import annotations

import re

# The languages that write a decimal comma, those that write a point, and the countries that differ (Unicode's CLDR).
_COMMA_TEXT = """
az be bg bs ca cs da de el es et eu fi fr gl hr hu hy id is it ka kk lt lv mk nb nl nn no pl pt ro ru sk sl sq sr sv tr
uk uz vi
"""
_POINT_TEXT = "am ar bn cy en fa fil ga gu he hi ja km kn ko ml mr ms my ne pa si sw ta te th ur yo zh zu"
_OTHERWISE_TEXT = "de-ch de-li it-ch es-mx es-us es-gt es-hn es-ni es-pa es-pe es-pr es-sv es-do en-za"
_COMMA_LANGUAGES, _POINT_LANGUAGES = frozenset(_COMMA_TEXT.split()), frozenset(_POINT_TEXT.split())
_OTHERWISE = frozenset(_OTHERWISE_TEXT.split())

_COMMA = re.compile(  # numbers whose comma, points or apostrophes cannot be English
    r"(?<![\w.,'])(?:(?P<whole>\d{1,3}(?:[. ']\d{3})+|\d+)"
    r",(?P<places>\d{1,2}|\d{4,}|(?<=\b0,)\d+|(?<=\d[. ']\d{3},)\d+)"
    r"|(?P<points>\d{1,3}(?:\.\d{3}){2,})"
    r"|(?P<marks>\d{1,3}(?:'\d{3})+(?:\.\d+)?|\d{1,3}(?: \d{3})+\.\d+))(?![\w']|[.,]\d)"
)
_APOSTROPHES = re.compile(r"(?<![\w.,'])\d{1,3}(?:'\d{3})+(?![\w'])")
_COMMA_OF_LOCALE = re.compile(r"(?<![\w.,'])(?P<whole>\d{1,3}(?:[. ']\d{3})+|\d+)(?:,(?P<places>\d+))?(?![\w']|[.,]\d)")


def writes_comma(locale: str) -> bool | None:
    """Return whether a locale (``de``, ``pt-BR``) writes a decimal comma; ``None`` for one that is not known."""
    name = locale.strip().lower().replace("_", "-").partition(".")[0]
    language = name.partition("-")[0]
    if language not in _COMMA_LANGUAGES | _POINT_LANGUAGES:
        return None
    return (language in _COMMA_LANGUAGES) != (name in _OTHERWISE)


def with_points(text: str, *, comma: bool | None) -> str:
    """Return a text with the numbers of a locale in English writing.

    ``comma`` is what :func:`writes_comma` says; ``None`` for a text whose locale is open, in which only those numbers
    are rewritten that cannot be English: ``3,14`` and ``1.234,5``, and not ``1.234``.
    """
    if comma is False:
        return _APOSTROPHES.sub(lambda match: match[0].replace("'", ""), text) if "'" in text else text
    return (_COMMA_OF_LOCALE if comma else _COMMA).sub(_with_point, text)


def _with_point(match: re.Match[str]) -> str:
    groups = match.groupdict()
    if groups.get("marks"):
        return re.sub("[' ]", "", match[0])
    whole = re.sub(r"[. ']", "", groups["whole"] or groups.get("points") or "")
    return f"{whole}.{groups['places']}" if groups["places"] else whole
