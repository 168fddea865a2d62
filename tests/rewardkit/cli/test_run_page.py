"""``rewardkit show --html``: a run in one file, in which nothing of a completion is markup and nothing is fetched."""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from small_run import command, told

from rewardkit import Rollout, Runtime, Score, reward
from rewardkit.record.recorder import Recorder

HOSTILE = (
    '</pre></details><script>alert("x")</script><img src=x onerror=alert(1)><svg onload=alert(2)>'
    "<a href='javascript:alert(3)'>a</a><iframe srcdoc='<script>4</script>'></iframe><style>*{display:none}</style>"
    "\x1b[31mred\x00\u202e\u2066\ud800 &lt; aria_label= "
)
TAGS = {
    "html", "head", "meta", "title", "style", "body", "nav", "a", "main", "header", "section", "h1", "h2", "h3", "h4",
    "p", "span", "dl", "dt", "dd", "div", "table", "thead", "tbody", "tr", "th", "td", "details", "summary", "pre", "i",
    "svg", "g", "path", "text", "circle",
}  # fmt: skip
ATTRIBUTES = {
    "lang", "charset", "http-equiv", "content", "name", "id", "class", "href", "scope", "tabindex", "aria-label",
    "role", "xmlns", "viewbox", "d", "x", "y", "cx", "cy", "r", "text-anchor",
}  # fmt: skip


class _Page(HTMLParser):
    """A page's elements and text; elements that are not closed in order are an error."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: dict[str, set[str]] = {}
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        assert [] == self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            self.attributes.setdefault(name, set()).add(value or "")
        if tag != "meta":
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert tag == self._open.pop()

    def handle_data(self, data: str) -> None:
        self.text += data


@reward(name="<b>odd", default=None)
def odd(completion: str) -> Score | None:
    """Fail, skip or score by the completion."""
    if "fail" in completion:
        raise ValueError(HOSTILE)
    return None if "skip" in completion else Score(float(len(completion) % 7), HOSTILE)


@reward(name="<b>odd")
def later(completion: str) -> float:
    """Take its place."""
    return float(len(completion) % 3)


def _record(run: Path, steps: int = 4, texts: tuple[str, ...] = ("fail", "skip", "good", "better")) -> Path:
    with Recorder(run) as recorder:
        for step in range(steps):
            used = odd if step < 2 else later
            rollouts = [
                Rollout(f"{HOSTILE}{prompt}", f"{text}{HOSTILE}{step * prompt}", {"answer": HOSTILE})
                for prompt in range(3)
                for text in texts
            ]
            with Runtime([used], lane="inline") as runtime:
                batch = runtime.score(rollouts, step=step)
            recorder.record(batch, step=step, epoch=float(step), rewards={"<b>odd": used}, num_generations=len(texts))
            recorder.metrics(step + 1, {"loss": float("nan") if step == 1 else 0.5, "kl": 0.1})
    return run


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run of hostile texts, in whose folder the command runs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return _record(Path("runs/one"))


def _page(*arguments: Any) -> tuple[_Page, str]:
    code, out, err = command("show", *arguments)
    assert 0 == code, err + out
    text = Path(arguments[arguments.index("--html") + 1]).read_text(encoding="utf-8")
    return _Page(text), text


def test_a_report_is_one_file_that_fetches_and_runs_nothing(run: Path) -> None:
    """It has no elements and attributes but its own, links lead into the page, and the CSP forbids the rest."""
    page, text = _page(run, "--html", "report.html")
    assert set(page.tags) <= TAGS
    assert set(page.attributes) <= ATTRIBUTES
    assert all(one.startswith("#") for one in page.attributes["href"])
    assert any(one.startswith("default-src 'none'; style-src 'unsafe-inline'") for one in page.attributes["content"])
    assert "url(" not in text.split("</style>")[0]
    assert "@import" not in text.split("</style>")[0]


def test_what_scrolls_is_reached_by_the_keyboard(run: Path) -> None:
    """Tables, texts and differences of sources."""
    _, text = _page(run, "--html", "report.html")
    for start in ('<div class="box"', '<pre class="text"', '<pre class="code"'):
        assert text.count(start) == text.count(f'{start} tabindex="0"') > 0, start


def test_hostile_text_is_shown_as_text(run: Path) -> None:
    """Of completions, prompts, columns, reasons, errors and names; control characters are written out."""
    page, text = _page(run, "--html", "report.html")
    for one in ("\x1b", "\x00", "\u202e", "\u2066", "<script", "<img", "<iframe"):
        assert one not in text
    for one in ("</pre></details><script>", "\\x1b[31mred\\x00\\u202e\\u2066\\ud800", "aria_label=", "<b>odd@1"):
        assert one in page.text


def test_the_graphs_are_well_formed(run: Path) -> None:
    """Each is XML by itself, and a metric that was no number at a step has a gap there."""
    _, text = _page(run, "--html", "report.html")
    charts = [ET.fromstring(f"<svg{part.split('</svg>')[0]}</svg>") for part in text.split("<svg")[1:]]
    labels = [one.get("aria-label") or "" for one in charts]
    assert [one for one in labels if one.startswith("loss: ") and "1 not known" in one]
    for title in ("total_reward:", "<b>odd:", "failed calls", "skipped calls", "zero-variance groups", "kl:"):
        assert [one for one in labels if one.startswith(title)], title
    assert [one for one in labels if "<b>odd@2 at 2" in one]


@pytest.mark.parametrize(
    ("texts", "kind", "other"), [(("fail", "good"), "failures", "gap"), (("fail",), "gap", "failures")]
)
def test_a_step_without_a_value_is_marked_otherwise_than_one_with_failed_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, texts: tuple[str, ...], kind: str, other: str
) -> None:
    """As on the page: a hollow circle where all calls failed, a small full one where some did."""
    monkeypatch.chdir(tmp_path)
    _record(Path("runs/one"), steps=2, texts=texts)
    marks = (f'class="{mark}"' in _page("one", "--html", "report.html", "--force")[1] for mark in (kind, other))
    assert [True, False] == list(marks)


def test_scored_skipped_and_failed_are_told_apart_in_words(run: Path) -> None:
    """A skip and a failure never show as a number."""
    page, text = _page(run, "--html", "report.html")
    assert "exception 6" in page.text
    assert 'class="failed">exception</span>' in text
    assert "Traceback" in page.text
    only = _page(_record(Path("runs/skips"), 1, ("skip", "skip")), "--html", "skips.html")[0]
    assert "No completion has a reward." in only.text


def test_a_change_of_a_reward_is_shown_with_the_difference_of_its_source(run: Path) -> None:
    """From which step it scored, and what its code lost and got."""
    page, text = _page(run, "--html", "report.html")
    assert "<b>odd@1 → <b>odd@2, from step 2" in page.text
    assert 'class="minus">-def odd(' in text
    assert 'class="plus">+def later(' in text


def test_a_prompt_that_changed_has_its_completions_side_by_side(run: Path) -> None:
    """One of its first epoch and one of its last."""
    page, _ = _page(run, "--html", "report.html")
    assert "of epoch 0: step 0, epoch 0.00" in page.text
    assert "of epoch 3: step 3, epoch 3.00" in page.text


def test_a_report_says_what_it_leaves_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its size has an end: of many prompts and of long texts it has the first."""
    monkeypatch.chdir(tmp_path)
    rollouts = [Rollout(f"prompt {place} {'long ' * 5_000}", f"{place} {'x' * 200_000}") for place in range(120)]
    with Runtime([later], lane="inline", record=Path("runs/wide")) as runtime:
        runtime.score(rollouts, step=0)
    found = told("show", "runs/wide", "--html", "report.html")
    assert ["prompts: 50 of 120"] == found["left_out"]
    assert 200_000 > found["bytes"] == Path("report.html").stat().st_size
    text = Path("report.html").read_text()
    assert "The page has 50 of 120 prompts." in text
    assert "more characters" in text


def test_a_run_without_steps_or_completions_has_a_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says what is not there, and draws no graph."""
    monkeypatch.chdir(tmp_path)
    with Recorder("runs/none"):
        pass
    with Runtime([later], lane="inline", record=Path("runs/rows")) as runtime:
        runtime.score([Rollout("a", "b"), Rollout("a", "cc")])
    none = _page("runs/none", "--html", "none.html")[0]
    rows = _page("runs/rows", "--html", "rows.html")[0]
    for words in ("Nothing is recorded of train.", "There are no graphs", "There are no prompts."):
        assert words in none.text
    assert "There are no graphs" in rows.text
    assert "svg" not in rows.tags


def test_messages_are_shown_by_role_with_their_calls_of_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As text, each message in a box of its own."""
    monkeypatch.chdir(tmp_path)
    said = [{"role": "assistant", "content": HOSTILE, "tool_calls": [{"function": {"name": "<i>search"}}]}]

    @reward
    def talks(completion: Any) -> float:
        return 1.0

    with Runtime([talks], lane="inline", record=Path("runs/talk")) as runtime:
        runtime.score([Rollout([{"role": "user", "content": "ask"}], said)], step=0)
    page, _ = _page("runs/talk", "--html", "talk.html")
    assert set(page.tags) <= TAGS
    for words in ("assistant", "<i>search", "</pre></details><script>"):
        assert words in page.text


def test_a_file_that_is_there_is_replaced_only_when_asked(run: Path) -> None:
    """As ``rewardkit export`` does; the record itself never."""
    Path("report.html").write_text("mine")
    code, _, err = command("show", run, "--html", "report.html")
    assert 2 == code
    assert "--html report.html: is there already; --force replaces it" in err
    assert "mine" == Path("report.html").read_text()
    _page(run, "--html", "report.html", "--force")
    code, _, err = command("show", run, "--html", run / "record.db", "--force")
    assert 2 == code
    assert "is read; name another" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--html", "a.html", "--step", "1"], "--html and --step: a report is of the whole run; give one of them"),
        (["--html", "a.html", "--prompt", "1"], "--html and --prompt: a report is of the whole run; give one of them"),
        (["--force"], "--force: replaces the file of --html; name it"),
        (["--html", "absent/a.html"], "--html absent/a.html: cannot write to absent"),
    ],
)
def test_options_that_do_not_go_together_are_refused_by_name(run: Path, arguments: list[str], words: str) -> None:
    """Nothing is written."""
    code, _, err = command("show", run, *arguments)
    assert 2 == code
    assert words in err
    assert not Path("a.html").exists()


def test_a_report_is_of_the_split_that_is_asked_for(run: Path) -> None:
    """And says so."""
    page, _ = _page(run, "--html", "report.html", "--split", "eval")
    assert "Of the split eval." in page.text
    assert "Nothing is recorded of eval." in page.text


def test_json_tells_where_the_report_is(run: Path) -> None:
    """With its size and what it leaves out."""
    code, out, _ = command("show", run, "--html", "report.html", "--json")
    assert 0 == code
    found = json.loads(out)
    assert ("one", "report.html", []) == (found["run"], found["file"], found["left_out"])
