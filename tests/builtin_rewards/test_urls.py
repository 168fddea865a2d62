"""The reward for well-formed URLs of the right hosts."""

from __future__ import annotations

import pickle

import pytest

from builtin_rewards.urls import url_valid

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
        ("<think>https://evil.com</think>https://good.com", 1.0),
        ("\u53c2\u89c1https://good.com\u3002\u4e0b\u4e00\u53e5", 1.0),
        ("\uff08https://good.com/a\uff09\uff0c\u300ahttps://good.com/b\u300b", 1.0),
        ("<think>https://good.com</think>None.", 0.0),
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
        ("https://good.com\uff0eevil.com https://good.com\uff61evil.com https://good.com\uff20evil.com", 0.0),
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
        ("https://example.org\uff0c下一句", 1.0),
        ("参见https://example.org/a。", 1.0),
        ("参见https://example.org。然后", 1.0),
        ("「https://example.org/a」、https://example.com\uff01", 1.0),
        ("https://example.org。evil.com", 0.0),
        ("https://example.org。中国/a", 0.0),
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


def test_it_travels() -> None:
    """With its settings."""
    for made in (url_valid, good_com):
        assert pickle.loads(pickle.dumps(made))(completion="https://good.com").value == 1.0
