"""The page's modules as one script: nothing of them is lost, and no form that is not known passes."""

from __future__ import annotations

import re
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from rewardkit.dashboard.panels import ROOT
from rewardkit.dashboard.saved.bundle import script, style

FORMS = {
    "all.js": 'import { a, b as c } from "./lib/some.js";\nimport own from "./lib/own.js";\nimport "./lib/effect.js";\n'
    "export { a as first };\n",
    "lib/some.js": 'export const a = 1;\nexport function b() {}\nexport class C {}\nexport async function d() {}\n',
    "lib/own.js": 'export { a } from "./some.js";\n'
    'export default function own() {\n  return import("../lib/effect.js");\n}\n',
    "lib/effect.js": "globalThis.effect = true;\n",
}  # fmt: skip


def _modules(folder: Path, **changes: str) -> Path:
    for name, text in {**FORMS, **changes}.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_imports_and_exports_become_values(tmp_path: Path) -> None:
    """In each form that the page's modules have."""
    text = script(_modules(tmp_path), "all.js")
    for part in (
        'const { a, b: c } = await $import("lib/some.js");',
        'const { default: own } = await $import("lib/own.js");',
        '\nawait $import("lib/effect.js");',
        "return { first: a };",
        "return { a: a, b: b, C: C, d: d };",
        "return { a: a, default: own };",
        'return $from("lib/own.js")("../lib/effect.js");',
        'await $import("all.js");',
    ):
        assert part in text
    assert [] == re.findall(r"^(?:import|export)\b", text, re.MULTILINE)


@pytest.mark.parametrize(
    "text",
    ['import * as all from "./some.js";', "export let counter = 0;", 'export * from "./some.js";', "export default 3;"],
)
def test_a_form_that_is_not_known_is_an_error(tmp_path: Path, text: str) -> None:
    """It names the module and the line, so that no page is saved that does not start."""
    with pytest.raises(ValueError, match=r"lib/odd\.js: .*this form of import or export is not known"):
        script(_modules(tmp_path, **{"lib/odd.js": f"{text}\n"}), "all.js")


@pytest.mark.parametrize("text", ["</script>", "<!--", "</SCRIPT", "<script>"])
def test_a_module_cannot_end_its_script(tmp_path: Path, text: str) -> None:
    """Such a text, as a highlighter of HTML has, is written with an escape that means the same."""
    bundle = script(_modules(tmp_path, **{"lib/odd.js": f'export const text = "{text}";\n'}), "all.js")
    assert text not in bundle
    assert rf'const text = "\x3C{text[1:]}";' in bundle


def test_the_page_itself_is_one_script() -> None:
    """It has each of its modules, and they import each other in no circle, in which one would wait for itself."""
    text = script(ROOT, "app.js")
    names = {path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.js")}
    assert names == set(re.findall(r'^"([^"]+)": async \(\) => \{$', text, re.MULTILINE))
    graph: dict[str, list[str]] = {}
    for part in re.split(r'^(?="[^"]+": async \(\) => \{$)', text, flags=re.MULTILINE)[1:]:
        graph[part.split('"')[1]] = re.findall(r'await \$import\("([^"]+)"\);', part.partition("const $started")[0])
    assert names == set(TopologicalSorter(graph).static_order())


def test_styles_stand_behind_what_they_import(tmp_path: Path) -> None:
    """Each once."""
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "low.css").write_text(".low {}\n")
    for name in ("one", "two"):
        (tmp_path / f"{name}.css").write_text(f'@import url("parts/low.css");\n.{name} {{}}\n')
    lines = style(tmp_path, ["one.css", "two.css"]).splitlines()
    assert [".low {}", ".one {}", ".two {}"] == list(filter(None, lines))
