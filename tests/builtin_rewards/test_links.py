"""Rewards for citations and URLs."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from builtin_rewards.citations import citation
from builtin_rewards.urls import url_valid

THREE = ["a", "b", "c"]


@pytest.mark.parametrize(
    ("completion", "score"),
    [
        ("Snow is white [1].", 1.0),
        ("Snow [1][2], rain [1, 3], ice [1-3], hail [2\u20133; 1].", 1.0),
        ("[1] says so.", 1.0),
        ("`x[0]` is set [1].", 1.0),
        ("```\ny[7]\n```\nIt is [2].", 1.0),
        ("So it is [1].\n\n[1]: http://x", 1.0),
        ("Snow [1], rain [4].", 0.5),
        ("Snow [1], rain [0].", 0.5),
        ("Snow [1, 2], rain [4], ice [2-9].", 0.5),
        ("Snow [1], rain [3-1].", 0.5),
        ("Snow [2023-01-05] [1].", 0.5),
        ("Snow [1], rain [99999999999999999999].", 0.5),
        ("So it is [1].\n\n[5]: http://x", 0.5),
        ("[1]: http://x", 0.0),
        ("Snow [4].", 0.0),
        ("[1]", 0.0),
        ("[1][2], [3].\n", 0.0),
        ("Snow (1).", 0.0),
        ("Snow [\uff11].", 0.0),
        ("Snow [\u0661].", 0.0),
        ("Snow [a].", 0.0),
        ("```\n[1]\n```", 0.0),
        ("Snow [1", 0.0),
        ("", 0.0),
        (" \n", 0.0),
        ("\0", 0.0),
        ("\ud800", 0.0),
        ("[" * 100_000, 0.0),
        ("x " + "[1," * 50_000, 0.0),
        ("x [" + "1" * 100_000, 0.0),
        ("x " + "[1]:" * 50_000, 1.0),
        ("x " + "[1-3]" * 50_000, 1.0),
    ],
)
def test_citations(completion: str, score: float) -> None:
    """At least one source is cited, and each number that is none costs."""
    for sources in (THREE, '["a", "b", "c"]', 3):
        assert score == pytest.approx(citation(completion=completion, sources=sources).value)


@pytest.mark.parametrize("sources", [None, "", "none", [], "[]", 0, -1, True, 2.5], ids=repr)
def test_rows_without_sources_are_skipped(sources: Any) -> None:
    """Nothing can be cited there."""
    assert citation(completion="Snow [1].", sources=sources).value is None


def test_settings_of_citations() -> None:
    """How many sources, all of them, all or nothing; wide ranges are not written out."""
    assert 0.5 == citation(minimum=2)(completion="Snow [1].", sources=THREE).value
    assert 1.0 == citation(minimum=9)(completion="Snow [1-3].", sources=THREE).value
    assert 2 / 3 == citation(all_sources=True)(completion="Snow [1, 3].", sources=THREE).value
    assert 0.0 == citation(all_or_nothing=True)(completion="Snow [1], [4].", sources=THREE).value
    assert 1.0 == citation(all_sources=True)(completion="Snow [1-5] [4-99] [100-999999999].", sources=999_999_999).value
    with pytest.raises(ValueError, match="minimum=0"):
        citation(minimum=0)


good_com = url_valid(["good.com", "b\u00fccher.example"])


@pytest.mark.parametrize(
    ("completion", "score"),
    [
        ("See https://good.com/a.", 1.0),
        ("(see https://good.com/a_(b)), then http://www.good.com:8080/x?y=%20#z!", 1.0),
        ("[text](https://good.com/a_(b)) and <https://a.good.com>.", 1.0),
        ("**https://good.com/a**, 'https://good.com/b', `https://good.com/c`", 1.0),
        ("HTTPS://GOOD.COM./", 1.0),
        ("https://b\u00fccher.example/\u00e9", 1.0),
        ("https://good.com/x and [a](page.html) and a/b//c", 1.0),
        ("https://good.com and https://evil.com", 0.5),
        ("[https://good.com](https://evil.com)", 0.5),
        ("https://good.com [x](javascript:alert(1))", 0.5),
        ("https://good.com [x](data:text/html,hi)", 0.5),
        ("https://good.com [x](//evil.com)", 0.5),
        ("https://good.com www.good.com", 0.5),
        ("https://evil.com", 0.0),
        ("https://good.com@evil.com", 0.0),
        ("https://good.com:x@evil.com/", 0.0),
        ("https://user@good.com", 0.0),
        ("https://good.com\\@evil.com", 0.0),
        ("https:\\\\good.com", 0.0),
        ("https:/good.com", 0.0),
        ("https:///good.com", 0.0),
        ("https://good.com.evil.com", 0.0),
        ("https://evilgood.com", 0.0),
        ("https://good.com%2eevil.com", 0.0),
        ("https://good.com\u3002evil.com", 0.0),
        ("https://good.com\u2215.evil.com", 0.0),
        ("https://g\u043e\u043ed.com", 0.0),
        ("https://go\u200bod.com", 0.0),
        ("https://xn--gd-jia.com", 0.0),
        ("https://good.com:99999", 0.0),
        ("https://good.com:0", 0.0),
        ("https://good.com:x", 0.0),
        ("https://good.com/%zz", 0.0),
        ("https://[::1", 0.0),
        ("https://", 0.0),
        ("ftp://good.com", 0.0),
        ("xhttps://good.com", 0.0),
        ("good.com", 0.0),
        ("", 0.0),
        (" \n", 0.0),
        ("\0", 0.0),
        ("\ud800 http://\ud800", 0.0),
        ("http://" + "a" * 100_000, 0.0),
        ("http://" + "a." * 50_000, 0.0),
        ("https://evil.com/" + "((((" * 50_000, 0.0),
        ("](" * 50_000, 0.0),
        ("a" * 200_000, 0.0),
        ("a:/" * 50_000, 0.0),
    ],
)
def test_urls_of_allowed_hosts(completion: str, score: float) -> None:
    """Only the host itself and its subdomains; tricks with names, users, slashes and letters are bad."""
    assert score == pytest.approx(good_com(completion=completion).value)


@pytest.mark.parametrize(
    ("completion", "score"),
    [
        ("https://example.org/a", 1.0),
        ("https://a-b.example.co.uk", 1.0),
        ("http://localhost/", 0.0),
        ("http://127.0.0.1/", 0.0),
        ("http://0x7f.1/", 0.0),
        ("http://2130706433/", 0.0),
        ("http://[::1]/", 0.0),
        ("https://-a.com", 0.0),
        ("https://a..com", 0.0),
        ("https://a_b.com", 0.0),
        ("https://xn--80ak6aa92e.com", 0.0),
        ("https://\u0430pple.com", 0.0),
        ("https://paypal.com@evil.com", 0.0),
        ("https://" + ".".join(["a" * 60] * 5) + ".com", 0.0),
    ],
)
def test_urls_of_any_host(completion: str, score: float) -> None:
    """Public names in ASCII alone."""
    assert score == url_valid(completion=completion).value


def test_settings_of_urls() -> None:
    """Schemes, how many, all or nothing; names that are none are refused."""
    assert 1.0 == url_valid("localhost")(completion="http://localhost:80/").value
    assert 1.0 == url_valid("127.0.0.1")(completion="http://127.0.0.1/").value
    assert 0.0 == url_valid(schemes="https")(completion="http://example.org").value
    assert 1.0 == url_valid(schemes=["ftp"])(completion="ftp://example.org").value
    assert 1.0 == url_valid(minimum=0)(completion="none").value
    assert 0.5 == url_valid(minimum=2)(completion="http://example.org http://example.org").value
    assert 0.0 == url_valid(all_or_nothing=True)(completion="http://example.org http://x").value
    for settings in ({"hosts": []}, {"hosts": ["a/b"]}, {"hosts": ["*.a.com"]}, {"schemes": []}, {"minimum": -1}):
        with pytest.raises(ValueError, match=f"{next(iter(settings))}="):
            url_valid(**settings)


@pytest.mark.parametrize("made", [citation, url_valid, citation(minimum=2), good_com])
def test_rewards_travel(made: Any) -> None:
    """They pickle, and score the same afterwards."""
    again = pickle.loads(pickle.dumps(made))
    columns = {"sources": THREE} if made.name == "citation" else {}
    assert made(completion="[1] https://good.com", **columns) == again(completion="[1] https://good.com", **columns)
