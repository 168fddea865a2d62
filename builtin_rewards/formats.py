"""Rewards for the form of a completion: tags, patterns, XML, Markdown, fenced blocks.

They do not read the content: pair each with a reward for that, such as ``gate(format_tags, math_answer)``.
"""

from __future__ import annotations

import functools
import re
import warnings
from collections import Counter
from collections.abc import Sequence
from xml.parsers import expat

from builtin_rewards.adjustable import adjustable, require
from builtin_rewards.reading.markdown import heading_title, last_code, read_markdown, split_fences
from builtin_rewards.reading.normalisation import fold, says, shows
from builtin_rewards.reading.thoughts import after_thinking, begins_in_thought, strip_frame
from rewardkit import Reward, Score, reward
from rewardkit.extending import shorten
from sandbox import language_name

_TAG_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_SHOWN_CHARS = 200


@adjustable
def format_tags(
    tags: Sequence[str] = ("think", "answer"), *, nonempty: bool = True, first_is_open: bool = False
) -> Reward[..., Score]:
    """Return ``format_tags`` with these settings.

    Args:
        tags: The names, each once, in the order in which they must stand.
        nonempty: Whether each must hold a letter, a digit or a sign such as ``+``.
        first_is_open: Whether the prompt ends with the first tag, opened: then the completion does not open it.
    """
    names = (tags,) if isinstance(tags, str) else tuple(tags)
    is_valid = len({name.lower() for name in names}) == len(names) > 0 and all(map(_TAG_NAME.fullmatch, names))
    require(is_valid, "names of ASCII letters, digits and _ . -, each once", tags=tags)
    lead = f"<{names[0]}>" if first_is_open else ""

    @reward(score_range=(0, 1))
    def format_tags(completion: str) -> Score:
        """1.0 if the completion is ``<think>...</think><answer>...</answer>`` alone, less for each tag at fault.

        Formula: good tags / (n + 1), n the number of tags; 1.0 where all are good, stand in order and have only white
        space around and between them. A tag is good if it is opened once and closed once in the whole completion, in
        that order, holds a letter, a digit or a sign such as ``+`` (``.`` and ``&nbsp;`` are blank), and overlaps no
        other of the tags. A look-alike of a tag (other case, full-width letters, zero-width characters, spaces or
        attributes inside) earns nothing, and costs the tag that it looks like. Stop tokens at the very end
        (``<|im_end|>``) are not read. Never ``None``.
        """
        # audit: skip format the form is what it pays for; what stands in it, another reward must judge
        return _tags_score(lead + strip_frame(completion), names, nonempty)

    return format_tags


def _tags_score(text: str, names: tuple[str, ...], nonempty: bool) -> Score:
    looks = Counter(look[1].lower() for look in _tag_pattern(names).finditer(fold(text).translate(_BRACKETS)))
    results = {name: _read_tag(text, name, looks[name.lower()], nonempty) for name in names}
    spans = {name: result for name, result in results.items() if not isinstance(result, str)}
    faults = [f"<{name}> {result}" for name, result in results.items() if isinstance(result, str)]
    ranges = [*spans.values()]
    mixed = [name for name, (start, end) in spans.items() if sum(a < end and start < b for a, b in ranges) > 1]
    faults += [f"<{name}> overlaps another tag" for name in mixed]
    good = float(len(spans) - len(mixed))
    if not faults:
        edges = [0, *(edge for span in spans.values() for edge in span), len(text)]
        if edges != sorted(edges):
            faults = ["the tags are out of order"]
        elif any(text[start:end].strip() for start, end in zip(edges[::2], edges[1::2], strict=True)):
            faults = ["there is text outside the tags"]
    reason = "; ".join(faults) or "all tags are there, in order"
    return Score(good / (len(names) + 1) if faults else 1.0, reason=reason, metrics={"good_tags": good})


def _read_tag(text: str, name: str, looks: int, nonempty: bool) -> tuple[int, int] | str:
    """Return where a tag begins and ends, or what is wrong with it."""
    opening, closing = f"<{name}>", f"</{name}>"
    opens, closes = text.count(opening), text.count(closing)
    if (opens, closes) != (1, 1):
        return f"is opened {opens}, closed {closes} times" if opens + closes else "is missing"
    if looks != 2:
        return "has a look-alike"
    start, end = text.index(opening), text.index(closing)
    if end < start:
        return "is closed before it is opened"
    empty = nonempty and not says(text[start + len(opening) : end])
    return "is empty" if empty else (start, end + len(closing))


_BRACKETS = str.maketrans(dict.fromkeys("\u2039\u27e8\u3008", "<") | dict.fromkeys("\u203a\u27e9\u3009", ">"))


@functools.lru_cache(64)
def _tag_pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    """Return the pattern of the tags and of what looks like them. The possessive repeats keep it linear."""
    alternatives = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    return re.compile(rf"<\s*+[/\u2044\u2215]?\s*+((?i:{alternatives}))(?:[\s/][^<>]{{0,80}})?>", re.ASCII)


@adjustable
def regex_match(pattern: str | None = None, *, full: bool = True) -> Reward[..., Score]:
    """Return ``regex_match`` with these settings.

    Args:
        pattern: The pattern of all rows, in Python's syntax; ``None`` reads the column ``pattern``.
        full: Whether the whole completion must match, otherwise some part of it.
    """
    fault = None if pattern is None else _compile(pattern) if pattern else "empty"
    require(not isinstance(fault, str), f"a pattern: {fault}", pattern=pattern)
    default = pattern

    @reward(score_range=(0, 1))
    def regex_match(completion: str, pattern: str | None = None) -> Score:
        """1.0 if the whole completion matches the pattern, otherwise 0.0.

        Anchored at both ends, white space included: a pattern that allows for a last line break says so (``\\s*``).
        The column ``pattern`` is a regular expression of Python's ``re``, with its flags in it (``(?si)``); the setting
        of that name goes before it. ``None`` where the row has no pattern, or one that does not compile. Some patterns
        take exponential time, such as ``(a+)+$``: the worker's deadline alone ends them (``timeout``).
        """
        expression = default or pattern
        if not expression:
            return Score(None, reason="the row has no pattern")
        regex = _compile(expression)
        if isinstance(regex, str):
            return Score(None, reason=f"the row's pattern does not compile: {regex}")
        if (regex.fullmatch if full else regex.search)(completion):
            return Score(1.0, reason="matches")
        return Score(0.0, reason=f"does not match {shorten(expression, _SHOWN_CHARS)}")

    return regex_match


@functools.lru_cache(256)
def _compile(pattern: str) -> re.Pattern[str] | str:
    try:
        with warnings.catch_warnings(action="ignore"):
            return re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return str(error)


@adjustable
def xml_valid(root: str | None = None) -> Reward[..., Score]:
    """Return ``xml_valid`` with these settings.

    Args:
        root: The name that the outermost element must have; ``None`` for any.
    """
    require(root is None or root.strip(), "a name", root=root)

    @reward(score_range=(0, 1))
    def xml_valid(completion: str) -> Score:
        """1.0 if the completion is one well-formed XML document, otherwise 0.0 with the reason.

        It reads the last fenced block marked ``xml``, else the last unmarked one, else the whole completion, without
        thoughts unless it begins with the tag of an element. Well-formed means XML 1.0 as expat of the standard library
        reads it. It refuses a document type declaration, and with it every entity bomb and external entity. Never
        ``None``.
        """
        # audit: skip format the form is what it pays for; what stands in it, another reward must judge
        completion = strip_frame(completion)
        text = completion.lstrip()
        is_element = text.startswith("<") and not begins_in_thought(text)
        source = last_code(completion if is_element else after_thinking(completion), ("xml",))
        if source is None:
            return Score(0.0, reason="no XML in the completion")
        fault, outermost = _xml_fault(source.strip())
        if fault is None and root is not None and outermost != root:
            fault = f"the outermost element is {shorten(outermost, _SHOWN_CHARS)}, not {root!r}"
        return Score(1.0, reason="well-formed") if fault is None else Score(0.0, reason=fault)

    return xml_valid


def _xml_fault(source: str) -> tuple[str | None, str]:
    """Return what is wrong with a document, and the name of its outermost element."""
    names: list[str] = []

    def refuse(*declaration: object) -> None:
        raise ValueError("it has a document type declaration")

    parser = expat.ParserCreate()
    parser.StartElementHandler = lambda name, _: names.append(name)
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(source, True)
    except (expat.ExpatError, ValueError) as error:  # a lone surrogate is a ValueError too
        return f"not well-formed: {error}", ""
    return None, names[0]


@adjustable
def code_fence(language: str | None = None, *, exactly: int | None = None, at_least: int = 1) -> Reward[..., Score]:
    """Return ``code_fence`` with these settings.

    Args:
        language: The mark of blocks, or another name of its language (``py``, ``golang``); ``None`` for any.
        exactly: How many such blocks there must be, and none of another mark; ``None`` asks for ``at_least``.
        at_least: How many such blocks there must be at least.
    """
    require(language is None or language.strip(), "a name", language=language)
    require(at_least >= 1, "1 or more", at_least=at_least)
    require(exactly is None or exactly >= 1, "1 or more", exactly=exactly)
    name = None if language is None else language_name(language)

    @reward(score_range=(0, 1))
    def code_fence(completion: str) -> Score:
        """1.0 if the completion has a fenced block that is closed and not empty, otherwise 0.0 with the reason.

        A block stands between two lines of three or more backticks, or tildes, the second at least as long as the
        first. Any block that is not closed, as where a completion is cut off, or that shows nothing, makes the score
        0.0. Blocks in thoughts are not read. Never ``None``.
        """
        blocks, _ = split_fences(after_thinking(completion))
        if not all(block.closed and shows(block.body) for block in blocks):
            return Score(0.0, reason="a block is not closed, or empty")
        count = sum(1 for block in blocks if name in (None, language_name(block.mark)))
        is_right = count >= at_least if exactly is None else count == exactly == len(blocks)
        requirement = f"at least {at_least}" if exactly is None else f"exactly {exactly}"
        reason = f"{count} of {len(blocks)} blocks are {name or 'code'}, {requirement} asked for"
        return Score(float(is_right), reason=reason, metrics={"blocks": float(count)})

    return code_fence


@adjustable
def markdown_structure(
    sections: Sequence[str] = (), *, headings: int = 1, list_items: int = 1, tables: int = 0, code_blocks: int = 0
) -> Reward[..., Score]:
    """Return ``markdown_structure`` with these settings.

    Args:
        sections: Titles of headings that must be there with something below them, in any case.
        headings: How many different headings there must be at least.
        list_items: How many different items of lists there must be at least.
        tables: How many tables with at least one row there must be at least.
        code_blocks: How many fenced blocks, closed and not empty, there must be at least.
    """
    minima = {"headings": headings, "list_items": list_items, "tables": tables, "code_blocks": code_blocks}
    require(min(minima.values()) >= 0, "0 or more", **minima)
    titles = tuple(heading_title(title) for title in ([sections] if isinstance(sections, str) else sections))
    require(len(set(titles)) == len(titles) and all(map(shows, titles)), "titles, each once", sections=sections)
    require(titles or any(minima.values()), "something to ask for", sections=sections, **minima)

    @reward(score_range=(0, 1))
    def markdown_structure(completion: str) -> Score:
        """The share of the asked parts that the completion's Markdown has, 0 to 1; usually one heading, one list item.

        Formula: the mean over what is asked for. A section counts 1 if its heading is there with something below it
        that is not a heading. Each number counts min(found / asked, 1). Fenced blocks hold code, not headings or items;
        headings and items count once for each different text, so that repeating one earns nothing. Headings are
        ``#`` to ``######`` or underlined. Form alone is read, and thoughts are not. Never ``None``.
        """
        markdown = read_markdown(after_thinking(completion))
        parts = {f"section {title!r}": float(markdown.headings.get(title, False)) for title in titles}
        counts = {**markdown._asdict(), "headings": len(markdown.headings)}
        parts |= {
            f"{counts[name]} of {minimum} {name}": min(counts[name] / minimum, 1.0)
            for name, minimum in minima.items()
            if minimum
        }
        gaps = [part for part, share in parts.items() if share < 1.0]
        reason = f"missing: {', '.join(gaps)}" if gaps else "all that is asked for is there"
        metrics = {name: float(number) for name, number in counts.items()}
        return Score(sum(parts.values()) / len(parts), reason=reason, metrics=metrics)

    return markdown_structure
