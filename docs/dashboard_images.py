"""Writes the pictures of the dashboard in ``docs/images``, from runs of the demo.

    python docs/examples/demo/demo.py                     # once, or more often with --output runs/second
    python docs/dashboard_images.py [RUNS_DIR] [RUN]      # runs and demo unless given

It needs the extra ``ui``, Debian's chromium, and playwright and pillow, which ``make setup`` installs. A picture shows
what the page shows of these runs; where a reward was changed during the run, its mark is there.
"""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Page, sync_playwright

IMAGES = Path(__file__).parent / "images"
WIDE, PHONE = (1440, 900), (390, 844)
MOST_BYTES = 150_000
PICTURES = {
    "dashboard-runs": ("", "light", WIDE),
    "dashboard-graphs": ("graphs", "light", WIDE),
    "dashboard-graphs-dark": ("graphs", "dark", WIDE),
    "dashboard-graphs-phone": ("graphs", "light", PHONE),
    "dashboard-logs": ("logs?status=failed", "light", WIDE),
    "dashboard-completions": ("completions?prompt=0", "light", WIDE),
    "dashboard-completions-dark": ("completions?prompt=0", "dark", WIDE),
    "dashboard-health": ("health", "light", WIDE),
    "dashboard-change": ("change", "light", WIDE),
}
"""Of each picture: the tab, or nothing for the list of runs; the theme; the size of the window."""


def main() -> None:
    """Serve a copy of the runs, and take each picture."""
    folder, run = Path(*sys.argv[1:2] or ["runs"]), (sys.argv[2:3] or ["demo"])[0]
    with tempfile.TemporaryDirectory() as scratch:
        shutil.copytree(folder, Path(scratch) / "runs")
        # The page names the folder as its user does: relative to where the command was started.
        command = [sys.executable, "-m", "rewardkit", "ui", "runs", "--json"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=scratch)  # noqa: S603 - our own
        try:
            take_all(_url(server), run)
        finally:
            server.terminate()
            server.wait()


def take_all(url: str, run: str) -> None:
    """Take each picture in a window of its own."""
    base, token = url.split("/?")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, (place, theme, (width, height)) in PICTURES.items():
            window: dict[str, Any] = {"viewport": {"width": width, "height": height}, "color_scheme": theme}
            page = browser.new_context(**window).new_page()
            page.goto(f"{base}/?{token}")
            if place:
                page.goto(f"{base}/runs/{run}/{place}")
            write(name, settled(page).screenshot())
            page.context.close()
        browser.close()


def settled(page: Page) -> Page:
    """Return a page that has drawn what it loads; in the logs with an entry that is open."""
    page.locator("main").wait_for()
    page.wait_for_load_state("load")
    page.wait_for_timeout(1500)
    page.wait_for_function("() => !document.querySelector('.loading, [aria-busy=true]')")
    entry = page.locator(".log-entry button")
    if entry.count():
        entry.first.click()
        page.locator(".log-detail").first.wait_for()
        page.mouse.move(0, 0)
        page.wait_for_timeout(500)
    return page


def write(name: str, picture: bytes) -> None:
    """Write a picture with a palette of its own, which makes it a third as large and looks the same."""
    with Image.open(io.BytesIO(picture)) as image:
        small = image.convert("RGB").quantize(256, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    path = IMAGES / f"{name}.png"
    small.save(path, optimize=True)
    size = path.stat().st_size
    print(f"{path.name}  {size / 1000:.0f} kB")
    if size > MOST_BYTES:
        sys.exit(f"{path.name}: {size} bytes; expected {MOST_BYTES} at most")


def _url(server: subprocess.Popen[str]) -> str:
    assert server.stdout is not None
    lines = []
    while not lines or lines[-1].rstrip() != "}":
        lines.append(server.stdout.readline())
        if not lines[-1]:
            sys.exit("rewardkit ui ended")
    url: str = json.loads("".join(lines))["url"]
    return url


if __name__ == "__main__":
    main()
