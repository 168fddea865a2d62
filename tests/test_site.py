"""The documentation as a site: it builds without a warning, and has every page."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import pytest
import yaml
from browsing import NARROW, browser

QUESTIONS = [
    ("GRPO reward=0 and loss=0", "huggingface/trl#3452", "how-to/why-is-my-reward-flat/"),
    ("loss = 0.0 reward_std 0.0 frac_reward_zero_std 1.0", "huggingface/trl#3857", "how-to/why-is-my-reward-flat/"),
    ("accuracy reward needs the ground truth", "huggingface/trl#2644", "how-to/write-and-test-a-reward/"),
    ("Async Support for Reward Functions", "huggingface/trl#4130", "how-to/write-and-test-a-reward/"),
    ("reward functions cannot access training progress", "huggingface/trl#3668", "how-to/write-and-test-a-reward/"),
    ("tips and tricks about GRPO reward function design", "huggingface/trl#2832", "how-to/write-and-test-a-reward/"),
    ("does it support multi reward function?", "huggingface/trl#4363", "how-to/use-with-trl/"),
    (
        "TypeError: string indices must be integers completion[0]['content']",
        "unslothai/unsloth#2907",
        "how-to/write-and-test-a-reward/",
    ),
    ("GRPO reward hacking", "huggingface/open-r1#407", "how-to/audit-a-reward/"),
    ("signal only works in main thread of the main interpreter", "huggingface/Math-Verify#50", "how-to/reward-math/"),
    ("How to set customized reward function?", "verl-project/verl#446", "how-to/use-with-other-trainers/"),
    ("How to log rollout samples and multiple rewards?", "verl-project/verl#1106", "how-to/look-at-a-run/"),
    ("training hangs during reward calculation", "verl-project/verl#2507", "reference/errors/"),
    ("Token-level Rewards", "verl-project/verl#3683", "how-to/reward-steps/"),
    ("How to get the entire rollout in multiturn setting?", "verl-project/verl#4814", "how-to/train-a-tool-agent/"),
    ("Support reward model on a remote server", "verl-project/verl#269", "how-to/serve-rewards/"),
    ("GRPO Training with Execution-Based Rewards", "verl-project/verl#5531", "how-to/reward-code/"),
    (
        "rule-based or verifiable reward where we do not need a reward model",
        "OpenRLHF/OpenRLHF#690",
        "how-to/use-with-other-trainers/",
    ),
    ("recommended to use a custom reward model?", "OpenRLHF/OpenRLHF#935", "how-to/train-a-reward-model/"),
    (
        "How to use customized reward for PPO with golden answers",
        "OpenRLHF/OpenRLHF#929",
        "how-to/use-with-other-trainers/",
    ),
    (
        "reward calculations always returning 0, even when answers are correct",
        "PrimeIntellect-ai/verifiers#277",
        "how-to/why-is-my-reward-flat/",
    ),
]
"""What newcomers of TRL, verl, OpenRLHF and verifiers asked, in which issue on GitHub, and the page that answers it."""


@pytest.fixture(scope="module")
def site(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site as ``make site`` does."""
    place = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(place)]
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=root, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert (built.returncode, built.stdout + built.stderr) == (0, "")
    return place


def test_every_page_is_on_the_site(root: Path, site: Path) -> None:
    """Each page of docs/, and those above it; a link to none would end the build."""
    pages = {path.relative_to(root / "docs").with_suffix("") for path in (root / "docs").rglob("*.md")}
    pages = {page for page in pages if page.parts[0] != "examples" and page.name not in ("index", "README")}
    assert [] == [str(page) for page in sorted(pages) if not (site / page / "index.html").is_file()]
    assert all((site / "project" / name / "index.html").exists() for name in ("CONTRIBUTING", "SECURITY", "CHANGELOG"))


def test_every_page_of_the_navigation_is_in_it(root: Path, site: Path) -> None:
    sections = yaml.safe_load((root / "docs" / "navigation.yaml").read_text(encoding="utf-8"))
    home = (site / "index.html").read_text(encoding="utf-8")
    paths = [entry["page"].rpartition(".")[0] for entries in sections.values() for entry in entries]
    assert [] == [path for path in paths if path != "index" and not re.search(rf'href="{path}/"', home)]


def test_language_models_have_a_list_and_the_text_of_each_page(root: Path, site: Path) -> None:
    """llms.txt names every page with what it is about, and leads to its Markdown; llms-full.txt has all of it."""
    text = (site / "llms.txt").read_text(encoding="utf-8")
    links = re.findall(r"^- \[[^\]]+\]\(([^)]+)\): \S", text, re.MULTILINE)
    assert len(links) > 40
    assert [link for link in links if not (site / link).read_text(encoding="utf-8").startswith("# ")] == []
    tutorial = (root / "docs/tutorial/first-reward.md").read_text(encoding="utf-8")
    assert tutorial.strip() in (site / "llms-full.txt").read_text(encoding="utf-8")


def test_a_notebook_is_a_page_and_a_file(root: Path, site: Path) -> None:
    """It can be read with what its cells show, be searched and be taken along."""
    notebooks = sorted((root / "docs/examples/notebooks").glob("*.ipynb"))
    assert notebooks
    for notebook in notebooks:
        place = site / "examples/notebooks" / notebook.stem
        assert f'href="../{notebook.name}" download' in (place / "index.html").read_text(encoding="utf-8")
        assert notebook.read_bytes() == place.with_suffix(".ipynb").read_bytes()
    shown = (site / "examples/notebooks/quickstart/index.html").read_text(encoding="utf-8")
    assert "3 cases: 3 as expected" in shown
    assert "<td" in shown


def test_every_link_of_the_site_leads_somewhere(site: Path) -> None:
    """Also one to what is no page, of which mkdocs says nothing."""
    dead = set()
    for page in site.rglob("index.html"):
        here = f"http://site/{page.parent.relative_to(site).as_posix()}/".replace("/./", "/")
        for target in re.findall(r'(?:href|src)="([^"]+)"', page.read_text(encoding="utf-8")):
            place = urlsplit(urljoin(here, target))
            if place.netloc == "site" and not (site / unquote(place.path).lstrip("/")).exists():
                dead.add((here, target))
    assert dead == set()


def test_the_site_asks_no_other_server(site: Path) -> None:
    """A page loads nothing from elsewhere: no fonts, no scripts, no counters."""
    home = (site / "index.html").read_text(encoding="utf-8")
    assert re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="(https?:)?//', home) == []


def test_code_keeps_its_brackets_on_the_site(site: Path) -> None:
    """What looks like a link inside a block of code is not taken for one."""
    page = (site / "reference" / "api" / "index.html").read_text(encoding="utf-8")
    assert "no-run" not in page
    assert "<pre>" in page


COVERED = """() => [...document.querySelectorAll("pre")].flatMap((block) => {
  const button = block.querySelector(".md-code__nav").getBoundingClientRect(), code = block.querySelector("code");
  code.scrollLeft = code.scrollWidth;
  const letters = document.createRange();
  letters.selectNodeContents(code);
  const lies = [...letters.getClientRects()].some((box) => box.right > button.left && box.top < button.bottom);
  return code.scrollWidth > code.clientWidth ? [lies] : [];
})"""
"""Of each block that is wider than the window, whether its button lies over the text when it is scrolled to the end."""


@pytest.mark.browser
def test_on_a_phone_the_button_that_copies_does_not_hide_what_it_copies(site: Path) -> None:
    """The end of a long command can be read beside it."""
    with browser() as chromium:
        page = chromium.new_page(viewport={"width": NARROW[0], "height": NARROW[1]})
        page.goto((site / "explanation/the-record/index.html").as_uri())
        page.locator(".md-code__nav").first.wait_for(state="attached")
        covered = page.evaluate(COVERED)
        assert covered
        assert not any(covered)
        page.add_style_tag(content=".md-typeset pre > code { padding-right: 0 !important }")
        assert any(page.evaluate(COVERED))


def test_the_search_finds_the_page_that_newcomers_need(root: Path, site: Path) -> None:
    """For each question the site's own search has the page among its first three."""
    node = shutil.which("node")
    if node is None:
        assert os.environ.get("REWARDKIT_REQUIRE_REAL") != "1", "node is not installed"
        pytest.skip("node is not installed; the site's search is JavaScript")
    command = [node, str(root / "tests/helpers/site_search.mjs"), str(site)]
    questions = json.dumps([question for question, _, _ in QUESTIONS])
    completed = subprocess.run(command, input=questions, capture_output=True, text=True, timeout=300, check=True)
    answers = dict(zip(QUESTIONS, json.loads(completed.stdout), strict=True))
    assert {} == {question: pages[:3] for question, pages in answers.items() if question[2] not in pages[:3]}
