"""Pictures in a real browser: shown as the record has them, hostile ones as a line, and served as pictures alone."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import pytest

from rewardkit.dashboard.saved.document import write_page
from rewardkit.dashboard.saved.scope import whole_run
from rewardkit.record.recorder import Recorder
from rewardkit.replay.recorded_run import Run
from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Outcome, Rollout, Status

Image = pytest.importorskip("PIL.Image")
browsing = pytest.importorskip("browsing")
expect = pytest.importorskip("playwright.sync_api").expect

expect.set_options(timeout=20_000)
pytestmark = pytest.mark.browser

SCRIPT = b"<script>window.hit = 1</script>"
SIZE = "1,024 \N{MULTIPLICATION SIGN} 512, scaled from 1,600 \N{MULTIPLICATION SIGN} 800"
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" onload="window.hit = 1"><script>window.hit = 2</script></svg>'


def file_of(colour: str) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (1600, 800), colour).save(file, "PNG")
    return file.getvalue()


def part(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the run ``pictures``, whose rows have one in each form, hostile ones among them."""
    folder = tmp_path_factory.mktemp("pictures")
    url = f"data:image/png;base64,{base64.b64encode(file_of('blue')).decode()}"
    message = {"role": "user", "content": [{"type": "text", "text": "What is it?"}, part(url)]}
    elsewhere = {"role": "user", "content": [part("https://example.com/cat.png")]}
    rollouts = [
        Rollout("A column", "red", {"image": file_of("red") + SCRIPT, "answer": "red"}),
        Rollout([message], [message | {"role": "assistant"}], {}),
        Rollout("SVG", "x", {"image": {"bytes": SVG, "path": None}}),
        Rollout("Half", "x", {"image": file_of("green")[:200]}),
        Rollout([elsewhere], "x", {}),
    ]
    outcomes = [Outcome(Status.SCORED, 1.0, version="0" * 12) for _ in rollouts]
    with Recorder(folder / "pictures") as recorder:
        recorder.record(ScoreBatch(rollouts, {"right": outcomes}, {"right": 1.0}), step=0)
    return folder


def prompt(number: int) -> str:
    path: str = browsing.path_of("pictures", "completions", f"prompt={number}")
    return path


def test_a_picture_of_a_column_and_of_a_message_is_drawn(window: Any) -> None:
    """It has the stored size, a name for those who cannot see it, and opens by itself as a picture."""
    page = window.visit(prompt(0))
    picture = page.locator(".prompt-columns img")
    expect(picture).to_have_attribute("alt", f"Picture of image, {SIZE}")
    page.wait_for_function("() => document.querySelector('.prompt-columns img').naturalWidth === 1024")
    assert "picture:" not in page.locator(".prompt-columns").inner_text()
    assert [] == browsing.faults(page)
    answer = page.request.get(window.served.base + picture.get_attribute("src"))
    assert "image/png" == answer.headers["content-type"]
    assert "nosniff" == answer.headers["x-content-type-options"]
    assert "sandbox" in answer.headers["content-security-policy"]
    assert b"script" not in answer.body()
    page = window.visit(prompt(1))
    expect(page.locator(".message-user img, .message-assistant img")).to_have_count(3)
    page.get_by_role("button", name="Text", exact=True).click()
    expect(page.locator(".pane-left .text")).to_contain_text(f"[picture, {SIZE}]")


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    ("number", "line"),
    [
        (2, "[picture: no picture that can be shown: expected PNG, JPEG, GIF, WEBP, BMP]"),
        (3, "[picture: damaged"),
        (4, "[picture https://example.com/cat.png: only its address is in the record; nothing is loaded from there]"),
    ],
    ids=["svg", "half", "elsewhere"],
)
def test_a_picture_that_is_not_there_is_a_line(number: int, line: str, window: Any) -> None:
    """Nothing of it is run or loaded, and the browser asks nobody else."""
    asked: list[str] = []
    window.page.on("request", lambda request: asked.append(request.url))
    page = window.visit(prompt(number))
    expect(page.locator(".prompt-box .picture-missing")).to_contain_text(line)
    assert 0 == page.locator("main img").count()
    assert page.evaluate("() => window.hit === undefined")
    assert [] == [url for url in asked if not url.startswith((window.served.base, "data:"))]


def test_an_address_of_no_picture_is_an_error_in_words(window: Any) -> None:
    for key in ("0" * 32, "..%2f..%2frecord.db", "x" * 5000):
        answer = window.page.request.get(f"{window.served.base}/api/runs/pictures/picture/{key}")
        assert 404 == answer.status
        assert "json" in answer.headers["content-type"]


@pytest.mark.full
def test_a_saved_page_has_the_pictures_inside(browser: Any, runs: Path, tmp_path: Path) -> None:
    """Opened from its file it asks nobody for them."""
    with Run.open(runs / "pictures") as run, (tmp_path / "saved.html").open("w", encoding="utf-8") as file:
        write_page(run, whole_run(), file)
    asked: list[str] = []
    page = browser.new_page()
    page.on("request", lambda request: asked.append(request.url))
    address = (tmp_path / "saved.html").as_uri()
    page.goto(f"{address}#{prompt(0)}")
    page.wait_for_function("() => document.querySelector('.prompt-columns img')?.naturalWidth === 1024")
    assert [] == [url for url in asked if not url.startswith((address, "data:", "blob:"))]
    page.close()
