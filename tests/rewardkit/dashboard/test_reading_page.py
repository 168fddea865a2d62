"""How a text is read in a real browser: Markdown, code and formulas without trust, and scores that stay in view."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rewardkit.record.recorder import Recorder
from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Outcome, Rollout, Status, Text

browsing = pytest.importorskip("browsing")
expect = pytest.importorskip("playwright.sync_api").expect

expect.set_options(timeout=20_000)
pytestmark = pytest.mark.browser

SOLUTION = r"""# Solution

**Step** one uses `f(x)` and \(x^2\):

3. $a = \frac{1}{2}$

$$
\int_0^1 x\,dx
= \frac12
$$

| a | b |
|---|--:|
| 1 | 2 |

```python
def f(x: int) -> str:
    return f"$x" + '$5'  # <b>no markup</b>
```

The answer is \boxed{\frac{\sqrt{3}}{2}}.
"""
HOSTILE = (
    "<script>window.hit = 1</script>\n\n<img src=x onerror='window.hit = 2'>",
    "[x](javascript:window.hit=3) ![y](https://example.com/y.png 'z') <javascript:window.hit=4> [r]\n\n"
    "[r]: data:text/html,<script>window.hit=5</script>",
    "```html\n<script>window.hit = 6</script>\n<img src=x onerror='window.hit = 7'>\n```\n\n"
    "```<img/onerror=window.hit=8>\nx\n```",
    r"$\href{javascript:window.hit=9}{x}$ \boxed{\htmlData{a=b}{c}} \boxed{ unclosed",
    "| <svg onload='window.hit = 10'> |\n|---|\n| [a](https://example.com) |",
    "*" * 3000 + "[" * 3000 + ">" * 3000,
    "A" * 300_000,
)
LONG = "A paragraph with **bold** and `code` and $x^2$. " * 1100
MARKUP = "main script, main .markdown a, main .markdown img, main iframe, main svg[onload], main .markdown b"


def outcomes(count: int, score: float) -> list[Outcome]:
    return [Outcome(Status.SCORED, score, version="0" * 12) for _ in range(count)]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the run ``texts``: a solution, hostile ones, a long one and a conversation."""
    folder = tmp_path_factory.mktemp("reading")
    talk = [
        {"role": "assistant", "content": "<think>I **think**</think>So **it** is."},
        {"role": "tool", "content": "**4**"},
    ]
    texts: list[Text] = [SOLUTION, LONG, talk, *HOSTILE]
    rollouts = [
        Rollout(rf"Half of $\frac{{1}}{{{number + 2}}}$?", text, {"answer": r"\boxed{4}"})
        for number, text in enumerate(texts)
    ]
    names = [f"reward_{number}" for number in range(8)]
    with Recorder(folder / "texts") as recorder:
        scores = {name: outcomes(len(texts), 0.25) for name in names}
        recorder.record(ScoreBatch(rollouts, scores, dict.fromkeys(names, 1.0)), step=0)
    return folder


def prompt(number: int, query: str = "") -> str:
    path: str = browsing.path_of("texts", "completions", f"prompt={number}{query}")
    return path


def test_markdown_is_drawn_where_it_is_asked_for(window: Any) -> None:
    """At first a text is as it is; what was chosen holds for the next one, and in the next visit."""
    page = window.visit(prompt(0))
    expect(page.locator(".pane-left .text")).to_contain_text("**Step** one")
    page.get_by_role("button", name="Markdown").click()
    left = page.locator(".pane-left .markdown")
    expect(left.locator("strong")).to_have_text("Step")
    expect(left.locator(".markdown-title")).to_have_text("Solution")
    expect(left.locator("ol")).to_have_attribute("start", "3")
    expect(left.locator("td.right")).to_have_text("2")
    expect(left.locator("math")).to_have_count(4)
    expect(left.locator("menclose")).to_have_count(1)
    expect(left.locator("code .hljs-keyword").first).to_have_text("def")
    expect(left.locator("pre")).to_contain_text("""return f"$x" + '$5'  # <b>no markup</b>""")
    expect(page.locator(".prompt-text math")).to_have_count(1)
    expect(page.locator(".prompt-columns menclose")).to_have_count(1)
    assert [] == browsing.faults(page)
    page = window.visit(prompt(2))
    expect(page.locator(".pane-left .message-assistant .markdown strong")).to_have_count(1)
    expect(page.locator(".pane-left .thinking")).to_have_count(1)
    page.get_by_role("button", name="Text", exact=True).click()
    page = window.visit(prompt(0))
    expect(page.locator(".pane-left .text")).to_contain_text("**Step** one")
    expect(page.locator(".prompt-text")).to_contain_text("$")


@pytest.mark.cases(2)
@pytest.mark.parametrize("number", range(3, 3 + len(HOSTILE)))
def test_no_markup_of_a_text_reaches_the_page(number: int, window: Any) -> None:
    """Links lead nowhere and show their address, pictures are not loaded, and nothing runs."""
    asked: list[str] = []
    window.page.on("request", lambda request: asked.append(request.url))
    for mode in ("markdown", "math"):
        page = window.visit(prompt(number, f"&mode={mode}"))
        page.locator(".pane-left :is(.markdown, .text-math)").first.wait_for()
        assert 0 == page.locator(MARKUP).count()
    assert page.evaluate("() => window.hit === undefined")
    assert [] == [url for url in asked if not url.startswith((window.served.base, "data:"))]
    if number == 4:
        page = window.visit(prompt(number, "&mode=markdown"))
        expect(page.locator(".pane-left .markdown")).to_contain_text("x (javascript:window.hit=3)")
        expect(page.locator(".pane-left .markdown")).to_contain_text("https://example.com/y.png")


@pytest.mark.cases(1)
@pytest.mark.parametrize("size", [(1440, 900), (390, 844), (3840, 2160)], ids=["wide", "phone", "4K"])
def test_the_scores_stay_in_view_beside_a_long_text(size: tuple[int, int], browser: Any, served: Any) -> None:
    """The text scrolls below them."""
    with browsing.window(browser, served, size) as opened:
        for mode in ("text", "markdown"):
            page = opened.visit(prompt(1, f"&mode={mode}"))
            page.locator(".pane-left :is(.markdown, .text)").first.wait_for()
            page.locator(".pane-left").evaluate("(pane) => pane.scrollIntoView({block: 'start'})")
            text = page.locator(".pane-left .pane-text")
            text.evaluate("(text) => text.scrollTo(0, text.scrollHeight / 2)")
            assert text.evaluate("(text) => text.scrollTop > 300")
            scores = page.locator(".pane-left .pane-scores")
            expect(scores).to_be_in_viewport()
            expect(scores).to_contain_text("Reward 2")
            expect(scores.locator("li")).to_have_count(9)


@pytest.mark.full
def test_a_wide_screen_is_used(browser: Any, served: Any) -> None:
    """At 4K the page takes nine tenths of it, and the table of scores stands beside the texts."""
    with browsing.window(browser, served, (3840, 2160)) as opened:
        page = opened.visit(prompt(1))
        page.locator(".scores-box").wait_for()
        assert page.locator(".main").bounding_box()["width"] > 0.9 * 3840
        panes, table = (page.locator(name).bounding_box() for name in (".panes", ".scores-box"))
        assert table["x"] > panes["x"] + panes["width"]
