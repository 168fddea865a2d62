"""Verdicts on code in other languages in a real browser: the language, its tools, and what the compiler said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from builtin_rewards.code import code_tests
from rewardkit import Recorder, Rollout, Runtime
from sandbox import toolchain_of, why_not_run

browsing = pytest.importorskip("browsing")
expect = pytest.importorskip("playwright.sync_api").expect

expect.set_options(timeout=20_000)
pytestmark = pytest.mark.browser

COMPLETIONS = {
    "right": "#include <iostream>\nint main() { int a, b; std::cin >> a >> b; std::cout << a + b; }",
    "broken": "#include <iostream>\nint main() { int <b>bold</b>; std::cout << undeclared_sum; }",
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run of two completions in C++: a right one, and one that does not compile."""
    if reason := why_not_run("cpp"):
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("code")
    row = {"language": "GNU C++17", "inputs": ["3 4"], "outputs": ["7"]}
    rollouts = [Rollout("Add two numbers.", f"```cpp\n{code}\n```", row) for code in COMPLETIONS.values()]
    with Recorder(folder / "cpp") as recorder, Runtime([code_tests], workers=1) as runtime:
        recorder.record(runtime.score(rollouts), step=0, epoch=0.0)
    return folder


def test_a_verdict_shows_its_language_its_tools_and_the_compilers_messages(window: Any) -> None:
    """The reason has the language and the version; the messages unfold under what was printed, as text."""
    tools = toolchain_of("cpp")
    assert tools is not None
    page = window.visit(browsing.path_of("cpp", "completions", "prompt=0"))
    expect(page.get_by_text("GNU C++17").first).to_be_visible()
    said = page.locator(".scores tr", has_text="code_tests")
    expect(said).to_contain_text(f"1 of 1 checks passed; in cpp, by {tools.version}")
    expect(said).to_contain_text("it does not compile: main.cpp:2:")
    said.locator("summary", has_text="printed").first.click()
    expect(said.locator(".said-text", has_text="on standard error").first).to_contain_text("undeclared_sum")
    expect(page.locator(".scores b")).to_have_count(0)


def test_the_messages_are_found_among_the_logs(window: Any) -> None:
    page = window.visit(browsing.path_of("cpp", "logs", "text=undeclared_sum"))
    expect(page.get_by_text("cpp, on standard error").first).to_be_visible()
