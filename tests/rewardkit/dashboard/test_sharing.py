"""What "Share" asks for: how far the page is, and then the page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from saved_pages import SavedFile
from served import recorded_run, serving


@pytest.mark.parametrize(
    ("query", "what"),
    [
        ("", ""),
        ("?step=1", "step 1 of train"),
        ("?prompt=0", "prompt 0"),
        ("?where=step%3D1", "the completions with step=1"),
        ("?find=e", "the completions with a match of 'e'"),
        ("?where=step%3C2&grep=.", "the completions with step<2 and a match of '.'"),
    ],
)
def test_a_part_of_a_run_is_saved(tmp_path: Path, query: str, what: str) -> None:
    """Lines of JSON say how far it is; the last one has the size of the page that follows."""
    recorded_run(tmp_path / "one")
    with serving(tmp_path) as server:
        body = server.enter().ask(f"/api/runs/one/share{query}").body
    lines, _, page = body.partition(b"<!doctype html>")
    *progress, about = map(json.loads, lines.splitlines())
    assert all({"done", "of"} == set(line) for line in progress)
    (tmp_path / "page.html").write_bytes(b"<!doctype html>" + page)
    saved = SavedFile(tmp_path / "page.html")
    assert (about["bytes"], about["completions"]) == (
        (tmp_path / "page.html").stat().st_size,
        saved.about["completions"],
    )
    assert what == saved.about["what"]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("?step=99", "no step 99 of train"),
        ("?prompt=99", "no prompt 99"),
        ("?where=nothing%3D1", "nothing"),
        ("?grep=(", "not a regular expression"),
        ("?max_mb=much", "max_mb=much: expected a number"),
    ],
)
def test_a_wrong_request_is_answered_in_words(tmp_path: Path, query: str, message: str) -> None:
    """As the last line, and no page behind it."""
    recorded_run(tmp_path / "one")
    with serving(tmp_path) as server:
        served = server.enter()
        lines = served.ask(f"/api/runs/one/share{query}").body.splitlines()
        assert message in json.loads(lines[-1])["error"]
        assert "there is no record" in json.loads(served.ask("/api/runs/absent/share").body.splitlines()[-1])["error"]


@pytest.mark.browser
def test_share_saves_what_is_open(browser: Any, window: Any, tmp_path: Path) -> None:
    """The prompt that is open, or the whole run; the file opens with it, and keys alone do."""
    browsing = pytest.importorskip("browsing")
    page = window.visit(browsing.path_of("one", "completions", "prompt=2"))
    page.get_by_role("button", name="Share").focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Save as one file")
    assert dialog.get_by_label("Prompt 2, through the epochs").is_checked()
    assert [] == browsing.faults(page)
    for choice, name in (("Prompt 2, through the epochs", "one-prompt-2.html"), ("The run one", "one.html")):
        dialog.get_by_label(choice).check()
        with page.expect_download() as download:
            dialog.get_by_role("button", name="Save", exact=True).press("Enter")
        assert name == download.value.suggested_filename
        download.value.save_as(tmp_path / name)
        dialog.get_by_text("Saved ").wait_for()
    assert "prompt 2" == SavedFile(tmp_path / "one-prompt-2.html").about["what"]
    assert 48 == SavedFile(tmp_path / "one.html").about["completions"]
