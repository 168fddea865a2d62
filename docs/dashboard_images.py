"""Writes the pictures of the dashboard in ``docs/images``, from runs of the demo.

    python docs/examples/demo/demo.py                     # once, or more often with --output runs/second
    python docs/dashboard_images.py [RUNS_DIR] [RUN]      # runs and demo unless given

It needs the extra ``ui``, Debian's chromium, and playwright, which ``make setup`` installs. A picture shows what the
page shows of these runs; where a reward was changed during the run, its mark is there.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

from rewardkit import Run

IMAGES = Path(__file__).parent / "images"
WIDE, PHONE = (1440, 900), (390, 844)
MOST_BYTES = 150_000
DIFFERENCES = "change?mode=differences&reward={changed}&version={changed}@2&other={changed}@1"


def timeout_opened(page: Page) -> None:
    """Open an entry of a call that timed out."""
    page.locator(".log-entry button").filter(has_text="timeout").first.click()
    page.locator(".log-detail .block").first.wait_for()


def worst_on_the_left(page: Page) -> None:
    """Go to the last completion of the left side's epoch."""
    page.locator(".pane-left .text").first.wait_for()
    while page.locator(".pane-left").get_by_role("button", name="Left: next completion").is_enabled():
        page.keyboard.press("ArrowRight")
        page.wait_for_timeout(300)


def nothing(page: Page) -> None:
    """Leave the page as it opens."""


PICTURES: dict[str, tuple[str, str, tuple[int, int], Callable[[Page], None]]] = {
    "dashboard-runs": ("", "light", WIDE, nothing),
    "dashboard-graphs": ("graphs", "light", WIDE, nothing),
    "dashboard-graphs-dark": ("graphs", "dark", WIDE, nothing),
    "dashboard-graphs-phone": ("graphs", "light", PHONE, nothing),
    "dashboard-logs": ("logs?status=failed", "light", WIDE, timeout_opened),
    "dashboard-completions": ("completions?prompt={prompt}", "light", WIDE, worst_on_the_left),
    "dashboard-health": ("health", "light", WIDE, nothing),
    "dashboard-change": (
        DIFFERENCES,
        "light",
        WIDE,
        nothing,
    ),
}
"""Of each picture: the tab, or nothing for the list of runs; the theme; the window's size; and what is done first."""


def main() -> None:
    """Serve a copy of the runs, and take each picture."""
    folder, run = Path(*sys.argv[1:2] or ["runs"]), (sys.argv[2:3] or ["demo"])[0]
    with Run.open(folder / run) as opened:
        changed = next((one.reward for one in reversed(opened.versions) if one.number > 1), opened.rewards[0])
        places: dict[str, str | int] = {"changed": changed, "prompt": learned(opened)}
    with tempfile.TemporaryDirectory() as scratch:
        shutil.copytree(folder, Path(scratch) / "runs")
        # The page names the folder as its user does: relative to where the command was started.
        command = [sys.executable, "-m", "rewardkit", "ui", "runs", "--write", "--json"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=scratch)  # noqa: S603 - our own
        try:
            take_all(_url(server), run, places)
        finally:
            server.terminate()
            server.wait()


def take_all(url: str, run: str, places: Mapping[str, str | int]) -> None:
    """Take each picture in a window of its own."""
    base, token = url.split("/?")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, (place, theme, (width, height), prepared) in PICTURES.items():
            window: dict[str, Any] = {"viewport": {"width": width, "height": height}, "color_scheme": theme}
            page = browser.new_context(**window).new_page()
            page.goto(f"{base}/?{token}")
            if place:
                page.goto(f"{base}/runs/{run}/{place.format_map(places)}")
            settle(page)
            prepared(page)
            settle(page)
            write(name, page.screenshot())
            page.context.close()
        browser.close()


def learned(run: Run) -> int:
    """Return the prompt whose completions of the first epoch differ most, among those that came again."""
    texts: dict[int, list[set[str]]] = defaultdict(lambda: [set(), set()])
    for one in run.completions():
        texts[one.prompt_index][(one.epoch or 0) >= 1].add(str(one.completion))
    return max(texts, key=lambda prompt: (bool(texts[prompt][1]), len(texts[prompt][0]), -prompt))


def settle(page: Page) -> None:
    """Wait until a page has drawn what it loads."""
    page.locator("main").wait_for()
    page.wait_for_timeout(1000)
    page.wait_for_function("() => !document.querySelector('.loading, [aria-busy=true]')")
    page.mouse.move(0, 0)


def write(name: str, picture: bytes) -> None:
    """Write a picture."""
    (IMAGES / f"{name}.png").write_bytes(picture)
    print(f"{name}.png  {len(picture) / 1000:.0f} kB")
    if len(picture) > MOST_BYTES:
        sys.exit(f"{name}.png: {len(picture)} bytes; expected {MOST_BYTES} at most")


def _url(server: subprocess.Popen[str]) -> str:
    assert server.stdout is not None
    lines: list[str] = []
    while not lines or lines[-1].rstrip() != "}":
        lines.append(server.stdout.readline())
        if not lines[-1]:
            sys.exit("rewardkit ui ended")
    url: str = json.loads("".join(lines))["url"]
    return url


if __name__ == "__main__":
    main()
