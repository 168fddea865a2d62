"""The page's frame and its list of runs, in a real browser."""

from __future__ import annotations

import json
import re
import shutil
import statistics
from pathlib import Path
from typing import Any

import pytest

from rewardkit.dashboard.panels import PANELS
from rewardkit.replay.recorded_run import Run

browsing = pytest.importorskip("browsing")
expect = pytest.importorskip("playwright.sync_api").expect

expect.set_options(timeout=20_000)
pytestmark = pytest.mark.browser

TABS = tuple(panel.name for panel in PANELS)


def names(page: Any) -> list[str]:
    """Return the names of the runs that the list shows."""
    return page.locator(".runs-link").all_inner_texts()


def test_the_list_shows_each_run_and_the_token_leaves_the_address(window: Any) -> None:
    """A run that cannot be read says why; the others show their rewards and their state."""
    page = window.page
    assert not browsing.token_in(page.url)
    assert {"one", "two", "broken"} == set(names(page))
    row = page.locator("tr[data-row=one]")
    expect(row).to_contain_text("finished · step 3")
    expect(row).to_contain_text("steady")
    expect(row.get_by_role("img", name="steady from")).to_be_visible()
    expect(page.locator("tr[data-row=broken]")).to_contain_text("unreadable")
    expect(page).to_have_title("Runs · rewardkit")


@pytest.mark.full
def test_curves_of_chosen_runs_stand_in_one_graph(window: Any) -> None:
    """The choice is in the address."""
    page = window.page
    total, other = (page.locator(".runs-compared").nth(place) for place in range(2))
    lines = total.locator(".chart-legend button")
    expect(lines).to_have_count(2)
    page.get_by_label("Compare two").uncheck()
    expect(lines).to_have_count(1)
    expect(lines).to_contain_text("one")
    assert "?pick=one" == window.query()
    page.get_by_role("combobox", name="Metric").select_option(label="coin")
    page.reload()
    expect(lines).to_have_count(1)
    expect(page.get_by_role("combobox", name="Metric")).to_have_value("reward/coin")
    expect(other.locator(".uplot")).to_be_visible()
    total.locator(".chart-box").focus()
    page.keyboard.press("Home")
    expect(total.locator(".chart-step")).to_have_text("step 0")
    expect(other.locator(".chart-step")).to_have_text("step 0")


@pytest.mark.full
def test_runs_are_compared_in_figures(window: Any, runs: Path) -> None:
    """The last value, the mean of ten steps, the best, and how far a run is from the first one."""
    page = window.visit("/?pick=one,two&metric=reward%2Fsteady")
    one, two = (page.locator(".runs-compared").nth(1).locator("tbody tr").nth(place) for place in range(2))
    with Run.open(runs / "one") as run:
        means = [mean for _, mean in run.series("steady")]
    expect(one.locator("td").nth(0)).to_have_text(f"{means[-1]:.4g}")
    expect(one.locator("td").nth(1)).to_have_text(f"{statistics.mean(means):.4g}")
    expect(one.locator("td").nth(2)).to_have_text(f"{max(means):.4g} at {means.index(max(means))}")
    expect(one.locator("td").nth(3)).to_have_text("reference")
    expect(two.locator("td").nth(3)).to_have_text("0 at 3")
    two.get_by_role("button", name="Take two out of the graphs").click()
    expect(two).to_have_count(0)


@pytest.mark.full
def test_runs_in_subfolders_are_listed_and_opened(browser: Any, runs: Path, tmp_path: Path) -> None:
    """They have their subfolder's name before theirs, in the address too; the token's address leads there."""
    shutil.copytree(runs / "one", tmp_path / "sweep" / "deep" / "one")
    shutil.copytree(runs / "two", tmp_path / "two")
    with browsing.Server(tmp_path) as served, browsing.window(browser, served) as opened:
        page = opened.page
        assert {"two", "sweep/deep/one"} == set(names(page))
        page.get_by_role("link", name="sweep/deep/one").last.click()
        page.wait_for_url("**/runs/sweep/deep/one/graphs")
        expect(page.locator(".chart-box:has(.uplot)").first).to_be_visible()
        page.goto(served.url.replace("/?", "/runs/sweep/deep/one/logs?"))
        page.wait_for_url("**/runs/sweep/deep/one/logs")
        expect(page.get_by_role("link", name="Logs")).to_have_attribute("aria-current", "page")
        expect(page.locator(".run-state")).to_contain_text("finished")


@pytest.mark.full
def test_the_list_says_what_is_known_of_a_runs_health(window: Any) -> None:
    """Failed calls at once; flags once Health was opened, and until then that it was not."""
    page = window.page
    row = page.locator("tr[data-row=one]")
    expect(row.get_by_role("link", name="not checked yet")).to_have_attribute("href", "/runs/one/health")
    row.get_by_role("link", name=re.compile(r"^[\d.]+% failed$")).click()
    page.wait_for_url("**/runs/one/logs?status=failed")


@pytest.mark.full
def test_an_address_opens_the_same_view_and_back_leads_back(window: Any) -> None:
    """Search and order are in the address as well as the run and its tab."""
    page = window.page
    page.get_by_role("button", name="Steps").click()
    page.get_by_role("searchbox", name="Search runs").fill("o")
    expect(page.locator("tr[data-row=broken]")).to_be_visible()
    page.wait_for_function("() => location.search === '?sort=-steps&q=o'")
    page.reload()
    expect(page.get_by_role("searchbox", name="Search runs")).to_have_value("o")
    expect(page.locator("th[aria-sort=descending]")).to_contain_text("Steps")
    page.get_by_role("link", name="two", exact=True).first.click()
    page.wait_for_url("**/runs/two/graphs")
    page.get_by_role("link", name="Logs").click()
    page.wait_for_url("**/runs/two/logs")
    page.go_back()
    page.wait_for_url("**/runs/two/graphs")
    page.go_back()
    expect(page.get_by_role("searchbox", name="Search runs")).to_have_value("o")
    page.go_forward()
    expect(page.get_by_role("link", name="Graphs")).to_have_attribute("aria-current", "page")


@pytest.mark.full
def test_everything_is_reached_by_keys(window: Any) -> None:
    """Rows, search, tabs, the graph's choice, and the list of the keys themselves."""
    page = window.page
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.keyboard.type("one")
    page.keyboard.press("Escape")
    expect(page.locator("tr[data-row]")).to_have_count(1)
    page.keyboard.press("j")
    expect(page.locator("tr[data-row=one]")).to_be_focused()
    page.keyboard.press("x")
    expect(page.get_by_label("Compare one")).not_to_be_checked()
    page.keyboard.press("Enter")
    page.wait_for_url("**/runs/one/graphs")
    for key, tab in (("g l", "logs"), ("3", "completions"), ("g h", "health"), ("g u", "change"), ("1", "graphs")):
        for one in key.split():
            page.keyboard.press(one)
        page.wait_for_url(f"**/runs/one/{tab}")
    page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keys")
    expect(keys).to_contain_text("All runs")
    page.keyboard.press("Escape")
    expect(keys).not_to_be_visible()
    page.keyboard.press("s")
    page.keyboard.type("two")
    page.keyboard.press("Enter")
    page.wait_for_url("**/runs/two/graphs")
    page.keyboard.press("g")
    page.keyboard.press("r")
    expect(page.get_by_role("heading", name="Runs")).to_be_visible()


@pytest.mark.full
def test_who_types_at_once_keeps_the_field(window: Any) -> None:
    """The focus that a new tab takes is there when it is drawn, and takes none from a field opened since."""
    page = window.visit(browsing.path_of("one"))
    focused = page.evaluate(
        """async () => {
          document.querySelector("a.tab[href*=logs]").click();
          await new Promise((later) => queueMicrotask(() => queueMicrotask(later)));
          document.dispatchEvent(new KeyboardEvent("keydown", { key: "s", bubbles: true }));
          await new Promise((later) => setTimeout(later, 300));
          return document.activeElement.getAttribute("aria-label");
        }"""
    )
    assert focused == "Find a run"


@pytest.mark.full
def test_focus_title_and_words_follow_the_visitor(window: Any) -> None:
    """Who hears the page is told where it went, and stands at the content."""
    page = window.visit(browsing.path_of("one"))
    expect(page).to_have_title("Graphs · one · rewardkit")
    page.get_by_role("link", name="Health").click()
    expect(page.locator("main")).to_be_focused()
    expect(page).to_have_title("Health · one · rewardkit")
    expect(page.locator("[aria-live=polite]").filter(has_text="Health of the run one")).to_have_count(1)


@pytest.mark.full
def test_a_tab_is_found_again_as_it_was_left(window: Any) -> None:
    """What was chosen in a tab holds until another run is opened; the shown tab's own link leads to its beginning."""
    page = window.visit(browsing.path_of("one", "logs", "status=failed"))
    page.get_by_role("link", name="Graphs").click()
    page.wait_for_url("**/runs/one/graphs")
    page.keyboard.press("2")
    page.wait_for_url("**/runs/one/logs?status=failed")
    page.get_by_role("link", name="Logs").click()
    page.wait_for_url("**/runs/one/logs")


@pytest.mark.full
def test_the_list_and_the_tab_tell_one_number_of_flags(window: Any) -> None:
    """Once the detectors have looked, their flags are those of the tab's head and of the list of runs."""
    page = window.visit(browsing.path_of("two", "health"))
    words = page.locator(".verdict-words")
    expect(words).to_contain_text(" flag")
    flagged = re.match(r"(\d+) flag", words.inner_text())
    number = flagged[1] if flagged else None
    expect(page.locator(".tab-count")).to_have_count(0 if number is None else 1)
    page.keyboard.press("g")
    page.keyboard.press("r")
    expect(page.locator("tr[data-row=two] .runs-flags")).to_contain_text(f"{number or 'no'} flag")


@pytest.mark.full
def test_a_server_that_was_away_is_said_and_found_again(window: Any) -> None:
    """What was shown stays, a bar says that the server is away, and all goes on by itself."""
    window.may_fail = True
    page = window.visit(browsing.path_of("one", "logs"))
    bar = page.locator(".away")
    window.served.stop()
    expect(bar).to_contain_text("does not answer")
    expect(page.get_by_role("link", name="Logs")).to_be_visible()
    window.served.start()
    expect(bar).to_have_count(0)
    expect(page.locator(".run-state")).to_contain_text("finished")


@pytest.mark.full
def test_a_run_that_is_deleted_is_said_and_comes_back(window: Any, passing_run: Path) -> None:
    """The page says that it is gone and leads to the others; when it is there again, so is its page."""
    window.may_fail = True
    page = window.visit(browsing.path_of("passing"))
    expect(page.locator(".run-state")).to_contain_text("step 3")
    away = passing_run.with_name("away")
    passing_run.rename(away)
    expect(page.get_by_role("alert")).to_contain_text("This run is not there")
    expect(page.locator(".run-state")).to_contain_text("removed")
    away.rename(passing_run)
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(page.locator(".run-state")).to_contain_text("step 3")
    shutil.rmtree(passing_run)
    page.get_by_role("alert").get_by_role("link", name="All runs").click()
    expect(page.locator("tr[data-row=passing]")).to_have_count(0)


@pytest.mark.full
def test_a_run_that_cannot_be_read_says_why(window: Any) -> None:
    """The reason is on the page, with the way to the others."""
    window.may_fail = True
    page = window.visit(browsing.path_of("broken"))
    expect(page.get_by_role("alert")).to_contain_text("record.db")
    expect(page.get_by_role("link", name="All runs").last).to_be_visible()


@pytest.mark.full
def test_names_of_runs_are_text(window: Any, runs: Path) -> None:
    """A run's name that is markup is shown as it is, in the list and in the frame."""
    name = "<img src=x onerror=document.title='hit'>"
    shutil.copytree(runs / "one", runs / name)
    try:
        page = window.visit("/")
        expect(page.locator(".runs-link", has_text=name)).to_be_visible()
        window.visit(browsing.path_of(name, "logs"))
        expect(page.get_by_role("button", name=name)).to_be_visible()
        expect(page).to_have_title(f"Logs · {name} · rewardkit")
        assert 0 == page.locator("main img, header img").count()
    finally:
        shutil.rmtree(runs / name)


@pytest.mark.full
def test_an_empty_folder_says_how_a_run_begins(browser: Any, tmp_path: Path, runs: Path) -> None:
    """The first run appears without a reload."""
    with browsing.Server(tmp_path / "none") as server, browsing.window(browser, server) as opened:
        expect(opened.page.locator(".empty")).to_contain_text("--record runs/one")
        shutil.copytree(runs / "one", tmp_path / "none" / "first")
        expect(opened.page.locator("tr[data-row=first]")).to_be_visible()


@pytest.mark.full
def test_the_theme_lasts_and_motion_can_be_refused(browser: Any, served: Any) -> None:
    """A chosen theme is there before the first paint; without one, the system's is taken."""
    with browsing.window(browser, served, theme="dark") as opened:
        page = opened.page
        assert "dark" == page.evaluate("() => document.documentElement.dataset.theme")
        page.get_by_role("button", name="Theme: system").click()
        page.reload(wait_until="domcontentloaded")
        assert "light" == page.evaluate("() => document.documentElement.dataset.theme")
        page.emulate_media(reduced_motion="reduce")
        opened.visit(browsing.path_of("one"))
        assert "none" == page.evaluate(
            "() => getComputedStyle(document.querySelector('.run-state .dot')).animationName"
        )


@pytest.mark.parametrize(
    ("size", "theme"),
    [
        (browsing.WIDE, "light"),
        pytest.param(browsing.WIDE, "dark", marks=pytest.mark.full),
        pytest.param(browsing.NARROW, "light", marks=pytest.mark.full),
    ],
)
def test_no_serious_fault_of_accessibility(browser: Any, served: Any, size: tuple[int, int], theme: str) -> None:
    """axe-core finds none in the list and in the tabs, with their dialogs, wide and narrow."""
    with browsing.window(browser, served, size, theme) as opened:
        page = opened.page
        assert [] == browsing.faults(page)
        for tab in TABS:
            opened.visit(browsing.path_of("one", tab))
            assert [] == browsing.faults(page), tab
        page.keyboard.press("?")
        assert [] == browsing.faults(page), "keys"
        page.keyboard.press("Escape")
        page.keyboard.press("s")
        page.get_by_role("listbox").wait_for()
        assert [] == browsing.faults(page), "runs"


@pytest.mark.full
def test_a_phone_needs_no_sideways_scrolling(browser: Any, served: Any) -> None:
    """Neither the list nor a tab is wider than 390 px."""
    with browsing.window(browser, served, browsing.NARROW) as opened:
        for path in ("/", *(browsing.path_of("one", tab) for tab in TABS)):
            page = opened.visit(path)
            assert 390 >= page.evaluate("() => document.documentElement.scrollWidth"), path


FORMATS = [
    ("number(null)", "\u2013"),
    ("number(0)", "0"),
    ("number(-0.123456)", "\u22120.1235"),
    ("number(12345.6)", "12,346"),
    ("count(undefined)", "\u2013"),
    ("percent(0.5)", "50%"),
    ("percent(0.0004)", "<0.1%"),
    ("seconds(0.0123)", "12.3 ms"),
    ("seconds(3725)", "1 h 2 min"),
    ("bytes(1234567)", "1.23 MB"),
    ("ago(Date.now() / 1000 + 3600)", "now"),
    ("visible('a\\u0000\\u001b[31m')", "a⟦U+0000 NUL⟧⟦U+001B ESC⟧[31m"),
    ("visible('\\u202eabc')", "⟦U+202E RLO⟧abc"),
    ("visible('a\\u200bb\\u3164c\\u{e0041}')", "a⟦U+200B zero-width space⟧b⟦U+3164 filler⟧c⟦U+E0041⟧"),
    ("visible('a\\u200db\\u200cc')", "a⟦U+200D ZWJ⟧b⟦U+200C ZWNJ⟧c"),
    (
        "visible('\\u{1f468}\\u200d\\u{1f469}\\u06cc\\u200c\\u062e\\u2764\\ufe0f')",
        "\U0001f468\u200d\U0001f469\u06cc\u200c\u062e\u2764\ufe0f",
    ),
    ("visible('a\\r\\nb\\tc')", "a\nb\tc"),
    ("visible('x\\ud800y')", "x⟦U+D800⟧y"),
    ("visible('👩‍👧 é')", "👩‍👧 é"),
]


@pytest.mark.full
def test_values_are_written_in_one_way(window: Any) -> None:
    """An unknown number is a dash, and nothing that hides or reorders text stays hidden."""
    for call, text in FORMATS:
        told = window.page.evaluate(f"async () => {{ const f = await import('/lib/format.js'); return f.{call}; }}")
        assert text == told, call


@pytest.mark.full
def test_the_address_is_made_and_read_in_one_place(window: Any) -> None:
    """What href writes, parse reads: also for names with slashes, spaces and signs."""
    query = {"q": "a b&c=d", "pick": "x,y"}
    code = f"""async () => {{
      const {{ href, parse }} = await import('/lib/address.js');
      const url = new URL(href({{ run: 'a/b ?#%', tab: 'logs', query: {json.dumps(query)} }}), location.origin);
      return parse(url.pathname, url.search);
    }}"""
    assert {"run": "a/b ?#%", "tab": "logs", "query": query} == window.page.evaluate(code)


@pytest.mark.full
def test_many_tabs_of_one_browser_all_load(window: Any) -> None:
    """A browser has six connections to a server; streams leave room, and tabs without one ask by themselves."""
    pages = [window.page.context.new_page() for _ in range(8)]
    for page in pages:
        page.goto(f"{window.served.base}/runs/one/graphs")
        expect(page.get_by_role("heading", name="total_reward").first).to_be_visible()
    for page in pages:
        page.close()


@pytest.mark.full
def test_pages_out_of_sight_hold_no_connection(window: Any) -> None:
    """A browser has six to a host: a tab that is hidden gives its own back, and is live again once it is seen."""
    first = window.visit(browsing.path_of("one"))
    context, live = first.context, "() => document.querySelector('.run-state')?.textContent.includes('step')"
    context.add_init_script(_COUNTED)
    pages = [context.new_page() for _ in range(7)]
    for page in pages:
        page.goto(first.url)
        page.wait_for_function(live)
        page.evaluate(_SEEN, True)
        assert page.evaluate("() => window.streams.map((one) => one.readyState)") == [2]
    pages[0].evaluate(_SEEN, False)
    pages[0].wait_for_function("() => window.streams.at(-1).readyState === 1")
    assert len(pages[0].evaluate("() => window.streams.map((one) => one.readyState)")) == 2
    for page in pages:
        page.close()


@pytest.mark.full
def test_the_title_of_a_hidden_page_follows_the_run(browser: Any, served: Any) -> None:
    """Seldom, and without a stream: its title is all that is seen of it."""
    with browsing.window(browser, served) as opened:
        opened.page.clock.install()
        page = opened.visit(browsing.path_of("one"))
        page.evaluate(_SEEN, True)
        asked = []
        page.on("request", lambda request: asked.append(request.url.rpartition("/")[2]))
        page.clock.run_for(29_000)
        assert [] == asked
        with page.expect_request("**/api/runs/one/state"):
            page.clock.run_for(2_000)


_COUNTED = """
window.streams = [];
window.EventSource = class extends EventSource {
  constructor(...given) {
    super(...given);
    window.streams.push(this);
  }
};
"""
_SEEN = """
(hidden) => {
  Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}
"""
