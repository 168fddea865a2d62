"""The reward for URLs that are well formed and of the right hosts. Nothing is fetched."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from builtin_rewards.adjustable import adjustable, require
from builtin_rewards.reading.thoughts import after_thinking
from rewardkit import Reward, Score, reward
from rewardkit.extending import shorten

_MAX_LISTED = 5
_SCHEME = r"[A-Za-z][A-Za-z0-9+.-]*+:"
# Wide punctuation ends a URL. A wide full stop before a letter does not: browsers take it for a dot of the host.
_WIDE_END = (
    r"[\u3001\u3008-\u3011\u3014\u3015\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f]"
    r"|[\u3002\uff0e\uff61](?![A-Za-z0-9]|\w{1,63}[./:\u3002])"
)
# Bounded, so that a text of one URL takes linear time.
_REST = rf"(?>(?!\]\(|\)\[|{_WIDE_END})[^\s<>\"`{{}}|^\x00-\x1f\x7f]){{0,4096}}+"
_URL = re.compile(
    rf"(?<![A-Za-z0-9+.-]){_SCHEME}[/\\]{_REST}|(?<![A-Za-z0-9/@.:_-])(?://|www\.)(?!/){_REST}"
    rf"|(?:(?<=\]\()|(?<=\]\(<)|(?<=\]\( ))(?:{_SCHEME}|\\)[^\s<>()]++"
)  # what begins with a scheme and a slash, with `//` or `www.`, and the target of a Markdown link with a scheme
_CLOSES = {")": "(", "]": "["}
_SENTENCE_MARKS = ".,;:!?'*_\u2019\u201d"
_LABEL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?")  # of a host name, RFC 1123
_BAD_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_MAX_HOST_CHARS = 253  # RFC 1035


@adjustable
def url_valid(
    hosts: Sequence[str] | None = None,
    *,
    schemes: Sequence[str] = ("http", "https"),
    minimum: int = 1,
    all_or_nothing: bool = False,
) -> Reward[..., Score]:
    """Return ``url_valid`` with these settings.

    Args:
        hosts: The hosts that may be pointed to, each with its subdomains; ``None`` allows every public name.
        schemes: The schemes that URLs may have.
        minimum: How many different good URLs there must be at least; 0 gives 1.0 to a completion without any.
        all_or_nothing: Score 1.0 or 0.0, with no partial credit.
    """
    require(minimum >= 0, "0 or more", minimum=minimum)
    allowed_schemes = frozenset(scheme.lower() for scheme in ([schemes] if isinstance(schemes, str) else schemes))
    are_schemes = allowed_schemes and all(re.fullmatch(_SCHEME, f"{scheme}:") for scheme in allowed_schemes)
    require(are_schemes, "names of schemes, such as 'https'", schemes=schemes)
    names = [hosts] if isinstance(hosts, str) else hosts
    domains = None if names is None else tuple(name.lower() for name in names)
    are_names = domains is None or (domains and all(map(_is_named, domains)))
    require(are_names, "names of hosts, such as 'example.com'", hosts=hosts)

    @reward(score_range=(0, 1))
    def url_valid(completion: str) -> Score:
        """The share of the completion's URLs that are well-formed and point where they may, 0 to 1.

        Formula: g / (g + b) * min(g / m, 1), with g the different good URLs, b the different bad ones and m the
        minimum; 0.0 without any URL. A URL begins with a scheme and a slash, with ``www.`` or with ``//``, or is
        the target of a Markdown link, unless that points within the site. Brackets and punctuation around it, also of
        Chinese and Japanese, are no part of it. Thoughts are not read.

        A good URL has an allowed scheme; a host name of ASCII labels with at least one dot and a last label that is no
        number, or one that the settings name; a port that exists; whole percent escapes. A URL is bad if it has a user
        name before the host (``https://good.com@evil.com``), a backslash, an address in numbers, or, unless the
        settings name it, punycode or a host in letters other than ASCII. With ``hosts``, ``good.com.evil.com`` and
        ``evilgood.com`` are not ``good.com``. It does not check whether a page exists. Never ``None``.
        """
        urls = map(_trim, _URL.findall(after_thinking(completion)))
        faults = {url: _fault(url, allowed_schemes, domains) for url in urls}
        complaints = [f"{shorten(url)}: {fault}" for url, fault in faults.items() if fault is not None]
        good, total = len(faults) - len(complaints), len(faults)
        metrics = {"good": float(good), "bad": float(len(complaints))}
        if not faults:
            return Score(float(minimum == 0), reason="there is no URL", metrics=metrics)
        score = good / total * (min(good / minimum, 1.0) if minimum else 1.0)
        reason = "; ".join([f"{good} of {total} URLs are good, {minimum} asked for", *complaints[:_MAX_LISTED]])
        return Score(float(score == 1.0) if all_or_nothing else score, reason=reason, metrics=metrics)

    return url_valid


def _trim(url: str) -> str:
    """Return a URL without the punctuation of the sentence around it; it keeps brackets that it opens."""
    while url:
        opens = _CLOSES.get(url[-1])
        if url[-1] not in _SENTENCE_MARKS if opens is None else url.count(url[-1]) <= url.count(opens):
            break
        url = url[:-1]
    return url


def _fault(url: str, schemes: frozenset[str], domains: tuple[str, ...] | None) -> str | None:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        return f"not well-formed: {error}"
    host = (parts.hostname or "").removesuffix(".")
    is_allowed = _is_public(host) if domains is None else f".{host}".endswith(tuple(f".{name}" for name in domains))
    faults = {
        "a backslash": "\\" in url,
        f"the scheme {shorten(parts.scheme)}": parts.scheme not in schemes,
        "a user name before the host": "@" in parts.netloc,
        "no such port": port == 0 or parts.netloc.endswith(":"),
        "a broken percent escape": _BAD_PERCENT.search(url),
        f"the host {shorten(host)} is not one of those allowed": not is_allowed or not _is_named(host),
    }
    return next((fault for fault, occurs in faults.items() if occurs), None)


def _is_public(host: str) -> bool:
    labels = host.split(".")
    is_plain = host.isascii() and len(labels) > 1 and not any(label.startswith("xn--") for label in labels)
    return is_plain and any(map(str.isalpha, labels[-1])) and not labels[-1].startswith("0x")


def _is_named(host: str) -> bool:
    """Return whether a host is made of labels as names are, in ASCII unless a setting names it."""
    labels = host.split(".") if len(host) <= _MAX_HOST_CHARS else [""]
    return all(_LABEL.fullmatch(label) or (not label.isascii() and label.isalnum()) for label in labels)
