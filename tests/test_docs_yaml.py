"""Every YAML text of the documentation is read by what reads such files, without a key that nothing reads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import nbformat
import pytest
import yaml

from rewardkit.loading.config import RewardFunctionsConfig
from rewardkit.loading.registry import resolve
from rewardkit.testing.table import read_table, table_of
from trainer_adapter.config import GRPOConfig
from trainer_adapter.reward_training.reward_model_config import RewardModelConfig

ROOT = Path(__file__).parents[1]
_BLOCK = re.compile(r"^```(?P<info>python|yaml)[^\n`]*\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# ([\w-]+\.(?:py|ya?ml))\b.*\n")
_OF_OTHERS = {"jobs": "GitHub", "apiVersion": "Kubernetes", "rl": "Axolotl", "title": "docs/recipes_page.py"}
"""Keys that tell the file of another program."""


class Text(NamedTuple):
    """A YAML text, and the Python files beside it."""

    where: str
    text: str
    modules: dict[str, str]


def _of_page(where: str, blocks: list[tuple[str, str]]) -> Iterator[Text]:
    """Yield the YAML among a page's blocks, each a language and a text; a file is named in a block's first line."""
    named = [(match[1], text[match.end() :]) for _, text in blocks if (match := _FILE.match(text))]
    modules = {name: text for name, text in named if name.endswith(".py")}
    for number, (language, text) in enumerate(blocks):
        if language == "yaml":
            yield Text(f"{where}, block {number}", text, modules)


def _texts() -> Iterator[Text]:
    for page in sorted((ROOT / "docs").rglob("*.md")):
        blocks = [(match["info"], match["text"]) for match in _BLOCK.finditer(page.read_text(encoding="utf-8"))]
        yield from _of_page(str(page.relative_to(ROOT)), blocks)
    for path in sorted((ROOT / "docs").rglob("*.ipynb")):
        cells = [cell.source.replace("%%writefile ", "# ", 1) for cell in nbformat.read(path, as_version=4).cells]
        files = [(match[1], cell) for cell in cells if (match := _FILE.match(cell))]
        yield from _of_page(path.name, [("python" if name.endswith(".py") else "yaml", cell) for name, cell in files])
    for path in sorted((ROOT / "rewardkit/recipes").rglob("*.yaml")):
        modules = {file.name: file.read_text(encoding="utf-8") for file in path.parent.glob("*.py")}
        yield Text(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8"), modules)


TEXTS = list(_texts())


def _check(data: Any, path: Path) -> None:
    """Read a text as what it is; raise where it is refused, or where nothing reads a key of it."""
    if not _OF_OTHERS.keys().isdisjoint(data):
        return
    if "cases" in data:
        table = read_table(path)
        reward = resolve(table.reward or "")
        table.check(reward)
        assert [] == table.unread(reward)
    elif {"functions", "runtime"} >= data.keys():
        RewardFunctionsConfig.from_dict({"functions": {"mine": "mine.py"}, **data})
    else:
        of_commands = {"dataset", "eval_dataset", "output_dir"}
        kinds = [GRPOConfig, RewardModelConfig]
        unknown = [data.keys() - kind.model_fields.keys() - of_commands for kind in kinds]
        assert set() in unknown


@pytest.mark.parametrize("text", TEXTS, ids=[text.where for text in TEXTS])
def test_a_yaml_text_is_read_without_a_stray_key(text: Text, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, source in text.modules.items():
        (tmp_path / name).write_text(source, encoding="utf-8")
    (tmp_path / "text.yaml").write_text(text.text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    _check(yaml.safe_load(text.text), tmp_path / "text.yaml")


def test_texts_of_every_place_are_looked_at() -> None:
    """The search has pages, notebooks and recipes: none of them is passed over by mistake."""
    places = {re.split(r"[/,]", text.where)[0] for text in TEXTS}
    assert {"docs", "rewardkit", "quickstart.ipynb"} <= places
    assert 30 < len(TEXTS)


def test_a_stray_key_is_found(tmp_path: Path) -> None:
    """What each YAML text is asked finds a key that nothing reads, with the one that was meant."""
    (tmp_path / "mine.py").write_text(
        "from rewardkit import reward\n\n@reward\ndef near(completion: str, tolerance: float = 0.1) -> float:\n"
        "    return tolerance\n"
    )
    cases = [
        {"name": "a", "completion": "4", "expect": 0.1},
        {"title": "b", "completion": "4", "tolerence": 1, "expect": 0.1},
        {"id": "c", "completion": "4", "cases": 1, "expect": 0.1},
        {"id": "d", "completion": "4", "zebra": 1, "expect": 0.1},
    ]
    assert [
        "cases[0]: 'name' is read by no reward; here that is 'id'",
        "cases[1]: 'title' is read by no reward; here that is 'id'",
        "cases[1]: 'tolerence' is read by no reward; a reward reads the near name 'tolerance': "
        "use one name in case and reward",
        "cases[2]: 'cases' is read by no reward; 'cases' is a setting of the table, beside 'cases'",
        "cases[3]: 'zebra' is read by no reward",
    ] == table_of(cases).unread(resolve(f"{tmp_path}/mine.py:near"))
