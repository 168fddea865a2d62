"""Writes ``docs/reference/rewards.md`` from the docstrings of the rewards that come with rewardkit.

    python docs/rewards_page.py [--check]

With ``--check`` it writes nothing, and exits with 1 where the page is not what it would write.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from builtin_rewards.adjustable import AdjustableReward
from builtin_rewards.instructions.kind import InstructionKind
from rewardkit.loading.registry import entry_points, resolve

PAGE = Path(__file__).parent / "reference" / "rewards.md"
HEAD = """# Built-in rewards

The rewards that come with rewardkit, as their docstrings describe them; `python docs/rewards_page.py` writes this page.

Each is used by its name on the command line and in a configuration, and imported from its module in Python.
A reward with settings is used as it is, or called with settings to make another:

```python
from builtin_rewards.length import length_between

usual = length_between
mine = length_between(10, 200).with_options(name="short")
```

Columns are those of your data set, coerced from strings; one in brackets may be missing.
A score of `None` leaves the completion out of the total: the reward does not apply to the row.
What a reward needs besides the core is in the extra `rewards`: `pip install '.[rewards]'`.
"""
_ITEM = re.compile(r"^ {4}(\w+): ?(.*)$")


def main() -> int:
    """Write the page, or check it; gives the exit code."""
    text = page()
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    if PAGE.read_text(encoding="utf-8") == text:
        return 0
    print(f"{PAGE} is not what the docstrings say; run: python docs/rewards_page.py", file=sys.stderr)
    return 1


def page() -> str:
    """Return the page's text."""
    modules: dict[str, list[str]] = {}
    for name, point in sorted(entry_points().items()):
        module = point.value.partition(":")[0]
        if module.startswith("builtin_rewards."):
            modules.setdefault(module, []).append(name)
    parts = [HEAD, "| reward | what it gives |\n|---|---|"]
    parts[-1] += "".join(f"\n| [`{n}`](#{n}) | {_first_line(n)} |" for names in modules.values() for n in names)
    for module, names in modules.items():
        about = _markdown((importlib.import_module(module).__doc__ or "").strip())
        parts.append(f"## {module.partition('.')[2]}\n\n{about}")
        parts += [_section(name, module) for name in names]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _first_line(name: str) -> str:
    return _markdown((inspect.getdoc(resolve(name).spec.function) or "").partition("\n")[0]).replace("|", "\\|")


def _section(name: str, module: str) -> str:
    made: Any = resolve(name)
    spec = made.spec
    columns = [p.name if p.name in spec.required_columns else f"[{p.name}]" for p in spec.parameters if p.column]
    facts = [
        f"`from {module} import {name}`",
        f"columns: {', '.join(f'`{column}`' for column in columns) or 'none'}",
        f"range: {_range(made.options.score_range)}",
        f"timeout: {made.options.timeout_s:g} s",
    ]
    parts = [f"### {name}", "; ".join(facts) + ".", _markdown(inspect.getdoc(spec.function) or "")]
    if isinstance(made, AdjustableReward):
        parts.append(_settings(made))
    if kinds := getattr(importlib.import_module(module), "KINDS", None):
        parts.append(_kinds(kinds))
    return "\n\n".join(parts)


def _range(bounds: tuple[float, float] | None) -> str:
    return "any number" if bounds is None else f"{bounds[0]:g} to {bounds[1]:g}"


def _settings(made: AdjustableReward) -> str:
    rows = ["| setting | default | meaning |", "|---|---|---|"]
    described = _described(inspect.getdoc(made.make) or "")
    for parameter in inspect.signature(made.make).parameters.values():
        words = _markdown(described.get(parameter.name, "")).replace("|", "\\|")
        rows.append(f"| `{parameter.name}` | {_default(parameter.default)} | {words} |")
    return "\n".join(rows)


def _kinds(kinds: Mapping[str, InstructionKind]) -> str:
    rows = ["| kind | arguments | followed where |", "|---|---|---|"]
    for name, kind in sorted(kinds.items()):
        arguments = ", ".join(f"`{parameter}`" for parameter in kind.parameters)
        rows.append(f"| `{name}` | {arguments} | {kind.rule.replace('|', chr(92) + '|')} |")
    return "\n".join(rows)


def _default(value: Any) -> str:
    """Return a default as one writes it; of an object whose ``repr`` says nothing, its kind."""
    shown = getattr(value, "__name__", None) or repr(value)
    return f"`{type(value).__name__}`" if " at 0x" in shown else "`" + shown.replace("|", "\\|") + "`"


def _described(doc: str) -> dict[str, str]:
    """Return what the ``Args:`` section of a docstring says of each argument."""
    found: dict[str, str] = {}
    name = ""
    for line in doc.partition("Args:\n")[2].splitlines():
        item = _ITEM.match(line)
        if item:
            name = item[1]
            found[name] = item[2]
        elif line and not line.startswith(" "):
            break
        elif name and line.strip():
            found[name] += " " + line.strip()
    return found


def _markdown(text: str) -> str:
    """Turns what docstrings mark up into Markdown: double backticks, and references to names."""
    text = re.sub(r":\w+:`~?([^`]+)`", lambda match: f"`{match[1].rpartition('.')[2]}`", text)
    return text.replace("``", "`")


if __name__ == "__main__":
    sys.exit(main())
