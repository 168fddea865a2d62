"""Who gets in: the token, the host's name, where a request comes from, and what an address may look like."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from served import TOKEN, WRITE_TOKEN, Served, recorded_run, serving
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from rewardkit.dashboard.guard import HEADERS, Guard
from rewardkit.web.listening import is_loopback


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of one run, beside a secret that no address leads to."""
    home = tmp_path_factory.mktemp("guarded")
    recorded_run(home / "runs" / "one")
    recorded_run(home / "elsewhere")
    (home / "runs" / "led").symlink_to(home / "elsewhere")
    (home / "secret.txt").write_text("a secret")
    return home / "runs"


@pytest.fixture(scope="module")
def outside(folder: Path) -> Iterator[Served]:
    """A server that nobody has entered."""
    with serving(folder, write=True) as served:
        yield served


@pytest.fixture(scope="module")
def inside(folder: Path) -> Iterator[Served]:
    """A server with the cookie."""
    with serving(folder, write=True) as served:
        yield served.enter()


@pytest.mark.parametrize("path", ["/", "/app.js", "/api/runs", "/api/runs/one/live", "/nothing", "/../secret.txt"])
@pytest.mark.parametrize("given", ["", "?token=", "?token=wrong", f"?token={TOKEN}x", "?token=%ff%00", "?token=%c3%a9"])
def test_without_the_token_nothing_is_told(outside: Served, path: str, given: str) -> None:
    """Every address answers 401, whether there is something or not."""
    answer = outside.ask(path + given)
    assert 401 == answer.status
    assert b"secret" not in answer.body
    assert TOKEN.encode() not in answer.body


def test_the_page_without_a_token_says_where_it_is(outside: Served) -> None:
    """A browser gets words, and the page's own requests JSON."""
    page, told = outside.ask("/runs/one/graphs"), outside.ask("/api/runs")
    assert ("text/html; charset=utf-8", "application/json") == (
        page.headers["content-type"],
        told.headers["content-type"],
    )
    assert b"<code>rewardkit ui</code>" in page.body
    assert {"error": "no token"} == told.told


@pytest.mark.parametrize("path", ["/", "/runs/one/graphs?step=3&text=a%20b", "/api/runs"])
def test_the_token_moves_from_the_address_into_a_cookie(outside: Served, path: str) -> None:
    """The answer leads to the same address without the token, and the cookie is for this server alone."""
    answer = outside.ask(f"{path}{'&' if '?' in path else '?'}token={TOKEN}")
    cookie = answer.headers["set-cookie"]
    assert (303, path.replace("%20", "+")) == (answer.status, answer.headers["location"])
    assert ["HttpOnly", "SameSite=Strict", "Path=/"] == cookie.split("; ")[1:]
    assert outside.ask("/api/runs", headers={"Cookie": cookie.partition(";")[0]}).status == 200


@pytest.mark.parametrize("path", ["//evil.example/", "/\\evil.example", "///evil.example", "/%0d%0aSet-Cookie:a=b"])
def test_the_way_back_leads_nowhere_else(outside: Served, path: str) -> None:
    """A link with the token cannot send the browser to another host, or write a header."""
    answer = outside.ask(f"{path}?token={TOKEN}")
    assert 303 == answer.status
    assert answer.headers["location"].startswith("/")
    assert not answer.headers["location"].startswith(("//", "/\\"))
    assert "a=b" not in answer.headers["set-cookie"]


def test_the_cookie_is_found_among_others(inside: Served) -> None:
    """Other servers of this machine share the jar, whatever they put in it."""
    jar = f'broken=a"b{{}}; ={{; {inside.cookie}; rewardkit_0={TOKEN}'
    assert 200 == inside.ask("/api/runs", headers={"Cookie": jar}).status
    assert 401 == inside.ask("/api/runs", headers={"Cookie": jar.replace(inside.cookie, f"other={TOKEN}")}).status


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8642", "127.0.0.1.evil.example", "localhost.evil", "", "192.0.2.7", "[::1", "a@b@"],
)
def test_a_foreign_host_is_refused(inside: Served, host: str) -> None:
    """A name that was rebound to this machine gets 421, with the cookie as well."""
    assert 421 == inside.ask("/api/runs", headers={"Host": host}).status


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:9999", "LOCALHOST", "[::1]:8642"])
def test_the_names_of_this_machine_are_known(inside: Served, host: str) -> None:
    """At any port, for a tunnel may have another one."""
    assert 200 == inside.ask("/api/runs", headers={"Host": host}).status


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_what_another_page_sends_is_refused(inside: Served, headers: dict[str, str]) -> None:
    """Also with the cookie and the write token, and also where it only asks."""
    sent = {"Host": "127.0.0.1:8642", "X-Write-Token": WRITE_TOKEN, **headers}
    assert 403 == inside.ask("/api/write", "POST", sent, {}).status
    assert 403 == inside.ask("/api/runs", headers=sent).status


def test_what_the_page_itself_sends_passes(inside: Served) -> None:
    """Its own origin, as the browser names it."""
    headers = {"Host": "127.0.0.1:8642", "Origin": "http://127.0.0.1:8642", "Sec-Fetch-Site": "same-origin"}
    answer = inside.ask("/api/write", "POST", {**headers, "X-Write-Token": WRITE_TOKEN}, {})
    assert (200, {"can_write": True}) == (answer.status, answer.told)


def test_a_form_cannot_post(inside: Served) -> None:
    """Only JSON is taken, which no form of another page can send."""
    headers = {"Content-Type": "text/plain", "X-Write-Token": WRITE_TOKEN}
    assert 415 == inside.ask("/api/write", "POST", headers, b"{}").status


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND"])
def test_only_get_head_and_post_are_answered(inside: Served, method: str) -> None:
    """Everything else is refused by name."""
    answer = inside.ask("/api/runs", method)
    assert (405, "GET, HEAD, POST") == (answer.status, answer.headers["allow"])


TRICKS = [
    "/../secret.txt", "/..%2fsecret.txt", "/%2e%2e/secret.txt", "/%2E%2E%2Fsecret.txt", "/..%5csecret.txt",
    "/..\\secret.txt", "//secret.txt", "/lib/../../../readers.py", "/lib//../app.py", "/%00", "/app.js%00",
    "/.hidden", "/lib/", "/lib", "/views/runs.py", "/../app.py", "/__init__.py", "/%252e%252e/secret.txt",
    "/etc/passwd", "/C:/x", "/%ff%fe",
]  # fmt: skip


@pytest.mark.parametrize("path", TRICKS)
def test_no_path_leads_out_of_the_page(inside: Served, path: str) -> None:
    """Only the files of the page have addresses."""
    answer = inside.ask(path)
    assert 404 == answer.status
    assert b"a secret" not in answer.body


@pytest.mark.parametrize(
    "name",
    ["..", "%2e%2e", ".", "..%2f..%2felsewhere", "one%2f..%2fone", "led", "one%00", "%5c..", "%0aone", ".one", "%2Eone",
     "a" * 300, "..%252felsewhere", "%ed%a0%80"],
)  # fmt: skip
@pytest.mark.parametrize("view", ["overview", "state", "graphs"])
def test_no_name_leads_out_of_the_runs(inside: Served, name: str, view: str) -> None:
    """Paths, hidden names and links to elsewhere are no runs, for views and for streams."""
    answer = inside.ask(f"/api/runs/{name}/{view}")
    if answer.status == 200:
        assert ("state", "missing") == (view, answer.told["state"])
    else:
        assert 404 == answer.status
    assert b'"completions": 24' not in answer.body


@pytest.mark.parametrize(
    "path", ["/", "/nothing", "/api/runs", "/api/nothing", "/api/runs/one/overview", "/api/runs/x/logs"]
)
def test_every_answer_has_the_headers(inside: Served, outside: Served, path: str) -> None:
    """The policy and its companions stand on pages, data, refusals and errors, each once."""
    for answer in (inside.ask(path), outside.ask(path), inside.ask(path, headers={"Host": "evil.example"})):
        kept = {name: value for name, value in HEADERS.items() if name != "cache-control"}
        assert kept == {name: answer.headers.get(name) for name in kept}
        assert answer.headers["cache-control"] in ("no-store", "no-cache")
        assert "server" not in answer.headers


def test_no_style_or_script_of_a_page_is_allowed_by_being_there(outside: Served) -> None:
    """The one style that stands in a page is named by its hash; text that became markup could bring none along."""
    assert "unsafe" not in HEADERS["content-security-policy"]
    body = outside.ask("/").body.decode()
    (style,) = re.findall(r"<style>(.*?)</style>", body, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'self' 'sha256-{digest}';" in HEADERS["content-security-policy"]
    assert " style=" not in body


@pytest.mark.parametrize(
    ("host", "alone"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("box", False)],
)
def test_an_address_is_of_this_machine_alone(host: str, alone: bool) -> None:
    """What others can reach needs a token of the user's own."""
    assert alone == is_loopback(host)


@pytest.mark.parametrize("origin", ["http://[evil", "http://]", "//", "x" * 5000])
def test_an_origin_that_is_no_address_is_refused(inside: Served, origin: str) -> None:
    """It is another page's, and no fault of the server's."""
    assert 403 == inside.ask("/api/runs", headers={"Origin": origin}).status


@pytest.mark.parametrize("host", ["evil.com@127.0.0.1", "evil.com:80@localhost", "127.0.0.1/evil.com", "localhost?x"])
def test_a_host_is_a_name_and_nothing_besides(inside: Served, host: str) -> None:
    """A name of ours within a stranger's address does not open the page."""
    assert 421 == inside.ask("/api/runs", headers={"Host": host}).status


def test_further_names_are_answered_to_as_they_are_given() -> None:
    """A name with its domain is none of its parts, and no other of the domain."""
    guard = Guard(_no_app, TOKEN, "0.0.0.0", ["Box.Lab.example"])
    asked = ("box.lab.example", "box.lab.example:8642", "box.lab", "lab.example", "other.lab.example")
    assert [guard._is_own(name) for name in asked] == [True, True, False, False, False]


def test_the_list_of_starlettes_host_check_cannot_hold_the_addresses_of_an_open_server() -> None:
    """A server that others reach is asked by addresses that its machine does not know, which no stranger can rebind.

    ``TrustedHostMiddleware`` refuses them with the same names, and takes them only together with every other name.
    """
    guard = Guard(_no_app, TOKEN, "0.0.0.0", ["box.example"])
    hosts = ("192.0.2.7:8642", "[2001:db8::7]:8642", "127.9.9.9", "box.example", "rebound.example")
    assert [True, True, True, True, False] == [guard._is_own(host) for host in hosts]

    async def status(host: str, names: list[str]) -> int:
        scope = {"type": "http", "method": "GET", "path": "/", "headers": [(b"host", host.encode())]}
        statuses: list[int] = []

        async def send(message: Message) -> None:
            statuses.append(message.get("status", 0))

        await TrustedHostMiddleware(Response(), names, www_redirect=False)(scope, _no_body, send)
        return statuses[0]

    listed = [asyncio.run(status(host, ["localhost", "0.0.0.0", "box.example"])) for host in hosts]
    anything = [asyncio.run(status(host, ["*"])) for host in hosts]
    assert ([400, 400, 400, 200, 400], [200] * 5) == (listed, anything)


async def _no_body() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _no_app(scope: Scope, receive: Receive, send: Send) -> None:
    raise AssertionError("nothing is asked of it")
