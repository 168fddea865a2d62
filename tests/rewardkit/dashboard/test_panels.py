"""The table of panels, the server's addresses and the page agree."""

from __future__ import annotations

import html
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from served import recorded_run, serving

from rewardkit.dashboard import app, panels
from rewardkit.dashboard.panels import PANELS, ROOT, Panel, index_html

TABS = ROOT / "tabs"
LIST_OF_RUNS = "runs"


def test_each_panel_has_a_module_and_each_module_a_panel() -> None:
    """The list of runs alone is a tab of no run."""
    names = [panel.name for panel in PANELS]
    assert {path.stem for path in TABS.glob("*.js")} == {*names, LIST_OF_RUNS}
    assert {path.name for path in TABS.iterdir() if path.is_dir()} <= {*names, LIST_OF_RUNS}
    for name in names:
        assert "export default function" in (TABS / f"{name}.js").read_text(encoding="utf-8"), name


def test_each_panel_has_an_address(tmp_path: Path) -> None:
    """Its view answers for a recorded run, and so do the further views that it names."""
    recorded_run(tmp_path / "one")
    with serving(tmp_path) as server:
        served = server.enter()
        for panel in PANELS:
            assert panel.view is app.VIEWS[panel.name]
            assert 200 == served.ask(f"/api/runs/one/{panel.name}").status, panel.name
            assert panel.views.items() <= app.VIEWS.items()
            assert panel.actions.items() <= app.ACTIONS.items()
            assert served.ask("/").body == served.ask(f"/runs/one/{panel.name}").body


def test_names_and_keys_of_panels_are_their_own() -> None:
    """No two views share an address, no two tabs a key, and ``g r`` leads to the list of runs."""
    views = ["overview", *(name for panel in PANELS for name in (panel.name, *panel.views))]
    keys = ["r", *(panel.key for panel in PANELS)]
    assert (len(views), len(keys)) == (len(set(views)), len(set(keys)))
    assert all(re.fullmatch(r"[a-z_]+", name) for name in views)
    assert not {"live", "state"} & set(views)


def test_the_page_has_the_table() -> None:
    """With a link to each module and style, none of which is missing, in the order of the tabs."""
    text = index_html()
    (table,) = re.findall(r'data-panels="([^"]*)"', text)
    rows = json.loads(html.unescape(table))
    assert [(panel.name, panel.title, panel.key) for panel in PANELS] == [
        (row["name"], row["title"], row["key"]) for row in rows
    ]
    links = re.findall(r'(?:href|src)="/([^"]+)"', text)
    assert [] == [link for link in links if not (ROOT / link).is_file()]
    assert {f"tabs/{path.relative_to(TABS).as_posix()}" for path in TABS.rglob("*.*")} <= set(links)
    styles = [link for link in links if link.startswith("tabs/") and link.endswith(".css")]
    own = [[f"tabs/{panel.name}.css", *_styles_of(panel.name)] for panel in PANELS]
    assert ["tabs/runs.css", *(style for styles_of in own for style in styles_of)] == styles


def test_contributing_says_how_a_panel_is_added() -> None:
    """The row names the table, a view and a module."""
    text = (Path(__file__).parents[3] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (row,) = [line for line in text.splitlines() if line.startswith("| Where does a new panel")]
    assert all(part in row for part in ("`panels.py`", "`PANELS`", "`rewardkit/dashboard/page/tabs/`"))


@pytest.mark.browser
def test_a_view_a_module_and_a_row_are_a_panel(tmp_path: Path, monkeypatch: Any, browser: Any) -> None:
    """Nothing else is touched: the tab is there, is opened by its key, and draws what its view returns."""
    browsing = pytest.importorskip("browsing")
    root = tmp_path / "page"
    shutil.copytree(ROOT, root)
    (root / "tabs" / "sizes.js").write_text(
        'import { of } from "../lib/address.js";\nimport { useApi } from "../lib/api.js";\n'
        'import { html } from "../lib/view.js";\n'
        'export default function Sizes({ run }) {\n  const { data } = useApi(of(run, "sizes"));\n'
        "  return html`<p id='size'>${data?.size}</p>`;\n}\n"
    )
    panel = Panel("sizes", "Sizes", "z", lambda opened, query: {"size": opened.run.count()})
    monkeypatch.setattr(panels, "ROOT", root)
    monkeypatch.setattr(panels, "PANELS", (*PANELS, panel))
    monkeypatch.setitem(app.VIEWS, panel.name, panel.view)
    recorded_run(tmp_path / "runs" / "one")
    with serving(tmp_path / "runs") as served, browsing.window(browser, served) as window:
        page = window.visit("/runs/one/graphs")
        assert [*(panel.title for panel in PANELS), "Sizes"] == [
            text.split("\n")[0].strip() for text in page.locator("nav.tabs a").all_inner_texts()
        ]
        page.keyboard.press("g")
        page.keyboard.press("z")
        page.wait_for_url("**/runs/one/sizes")
        page.locator("#size", has_text="24").wait_for()


def _styles_of(name: str) -> list[str]:
    """Return the styles in the folder of a panel's modules."""
    return [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "tabs" / name).glob("*.css"))]
