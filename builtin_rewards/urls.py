"""The reward for URLs that are well formed and of the right hosts. Nothing is fetched."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import SplitResult, urlsplit

from builtin_rewards.adjustable import adjustable, require
from builtin_rewards.reading.turn import after_thinking
from rewardkit import Reward, Score, reward

_SHOWN = 5
_SHOWN_CHARS = 80
_CHAR = r"[^\s<>\"`{}|^\x00-\x1f\x7f]"
_WITH_SCHEME = re.compile(rf"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]*+:[/\\]{_CHAR}*+")
_WITHOUT_SCHEME = re.compile(rf"(?<![A-Za-z0-9/@.:_-])(?://|www\.)(?!/){_CHAR}++")
_TARGET = re.compile(r"\]\(\s*+<?([^\s<>()]++)")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*+:")
_LABEL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
_BAD_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_MAX_HOST_CHARS = 253


@adjustable
def url_valid(
    hosts: Sequence[str] | None = None,
    *,
    schemes: Sequence[str] = ("http", "https"),
    minimum: int = 1,
    all_or_nothing: bool = False,
) -> Reward[..., Score]:
    """Settings of ``url_valid``.

    Args:
        hosts: The hosts that may be pointed to, each with its subdomains; ``None`` allows every public name.
        schemes: The schemes that URLs may have.
        minimum: How many different good URLs there must be at least; 0 gives 1.0 to a completion without any.
        all_or_nothing: Score 1.0 or 0.0, with no partial credit.
    """
    require(minimum >= 0, "0 or more", minimum=minimum)
    kinds = frozenset(scheme.lower() for scheme in ([schemes] if isinstance(schemes, str) else schemes))
    known = kinds and all(_SCHEME.fullmatch(f"{scheme}:") for scheme in kinds)
    require(known, "names of schemes, such as 'https'", schemes=schemes)
    allowed = None if hosts is None else tuple(host.lower() for host in ([hosts] if isinstance(hosts, str) else hosts))
    named = allowed is None or (allowed and all(map(_is_named, allowed)))
    require(named, "names of hosts, such as 'example.com'", hosts=hosts)

    @reward(score_range=(0, 1))
    def url_valid(completion: str) -> Score:
        """The share of the completion's URLs that are well-formed and point where they may, 0 to 1.

        Formula: g / (g + b) * min(g / m, 1), with g the different good URLs, b the different bad ones and m the
        minimum; 0.0 where there is none. What counts as a URL: what begins with a scheme and a slash, with ``www.``
        or with ``//``, and the targets of Markdown links, unless they point within the site. Brackets and marks that
        close a sentence are no part of it. What stands in a thought does not count.

        Good is a URL with an allowed scheme; a host name of ASCII labels with at least one dot and a last label that
        is no number, or one that the settings name; a port that exists; whole percent escapes. Bad besides: a user
        name before the host (``https://good.com@evil.com``), a backslash, punycode or a host in letters other than
        ASCII, unless the settings name it, and addresses in numbers. With ``hosts``, ``good.com.evil.com`` and
        ``evilgood.com`` are not ``good.com``. Nothing is fetched: that a page exists is not looked at. Never
        ``None``.
        """
        faults = {url: _url_fault(url, kinds, allowed) for url in _urls(after_thinking(completion))}
        bad = [f"{url[:_SHOWN_CHARS]!r}: {fault}" for url, fault in faults.items() if fault is not None]
        good = len(faults) - len(bad)
        metrics = {"good": float(good), "bad": float(len(bad))}
        if not faults:
            return Score(float(minimum == 0), reason="there is no URL", metrics=metrics)
        score = good / len(faults) * (min(good / minimum, 1.0) if minimum else 1.0)
        reason = "; ".join([f"{good} of {len(faults)} URLs are good, {minimum} asked for", *bad[:_SHOWN]])
        return Score(float(score == 1.0) if all_or_nothing else score, reason=reason, metrics=metrics)

    return url_valid


def _urls(text: str) -> list[str]:
    """Gives a text's different URLs, in order."""
    found = [(match.start(), match[0]) for urls in (_WITH_SCHEME, _WITHOUT_SCHEME) for match in urls.finditer(text)]
    inside = {start for start, _ in found}
    for match in _TARGET.finditer(text):
        target = match[1]
        if match.start(1) not in inside and (_SCHEME.match(target) or target[0] == "\\"):
            found.append((match.start(1), target))
    return list(dict.fromkeys(_trimmed(url) for _, url in sorted(found)))


def _trimmed(url: str) -> str:
    """Gives a URL without the marks of the sentence around it; brackets that it opens itself it keeps."""
    end = len(url)
    opened = {")": url.count("("), "]": url.count("[")}
    closed = {")": url.count(")"), "]": url.count("]")}
    cut = min((place for place in (url.find("]("), url.find(")[")) if place >= 0), default=end)
    if cut < end:
        return _trimmed(url[:cut])
    while end:
        last = url[end - 1]
        if last in opened and closed[last] > opened[last]:
            closed[last] -= 1
        elif last not in ".,;:!?'*_\u2019\u201d":
            break
        end -= 1
    return url[:end]


def _url_fault(url: str, schemes: frozenset[str], hosts: tuple[str, ...] | None) -> str | None:
    """Gives what is wrong with a URL, or ``None``."""
    if not _SCHEME.match(url):
        return "no scheme"
    if "\\" in url:
        return "a backslash"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as fault:
        return f"not well-formed: {fault}"
    if parts.scheme not in schemes:
        return f"the scheme {parts.scheme[:_SHOWN_CHARS]!r}"
    if "@" in parts.netloc:
        return "a user name before the host"
    if port == 0 or parts.netloc.endswith(":"):
        return "no such port"
    if _BAD_PERCENT.search(url):
        return "a broken percent escape"
    return _host_fault(parts, hosts)


def _host_fault(parts: SplitResult, hosts: tuple[str, ...] | None) -> str | None:
    host = (parts.hostname or "").removesuffix(".")
    if not host:
        return "no host"
    if hosts is not None:
        named = any(host == one or host.endswith(f".{one}") for one in hosts)
        return None if named and _is_named(host) else f"the host {host[:_SHOWN_CHARS]!r} is none of those allowed"
    if not host.isascii():
        return "a host in letters other than ASCII"
    labels = host.split(".")
    if any(label.startswith("xn--") for label in labels):
        return "a host in punycode"
    if not _is_named(host) or len(labels) < 2 or not any(map(str.isalpha, labels[-1])) or labels[-1].startswith("0x"):
        return "no name of a public host"
    return None


def _is_named(host: str) -> bool:
    """Whether a host is made of labels as names are; those in other letters only where a setting names them."""
    if len(host) > _MAX_HOST_CHARS:
        return False
    return all(_LABEL.fullmatch(label) or (not label.isascii() and label.isalnum()) for label in host.split("."))
