"""The recipes that ``rewardkit new --recipe`` starts from: folders beside this package, each a reward with its data.

``docs/recipes`` has a page for each, which ``python docs/recipes_page.py`` writes from the same files.
"""

from __future__ import annotations

import difflib
from pathlib import Path

from rewardkit.cli.output import write_new
from rewardkit.errors import ConfigError

RECIPES = Path(__file__).parents[1] / "recipes"
_OF_THE_PAGE = "recipe.yaml"


def recipe_names() -> list[str]:
    folders = RECIPES.iterdir() if RECIPES.is_dir() else ()
    return sorted(folder.name.replace("_", "-") for folder in folders if (folder / _OF_THE_PAGE).is_file())


def recipe_files(name: str) -> list[Path]:
    """Return the files of a recipe, its reward first; for an unknown name raises ConfigError, with the nearest."""
    names = recipe_names()
    if name.replace("_", "-") not in names:
        near = difflib.get_close_matches(name, names, n=2)
        options = f"did you mean {' or '.join(map(repr, near))}? There are" if near else "there are"
        raise ConfigError(f"--recipe {name!r}: no such recipe; {options} {', '.join(names)}")
    folder = RECIPES / name.replace("-", "_")
    return [folder / f"{folder.name}.py", folder / "cases.yaml", folder / "rows.jsonl"]


def copied(name: str, folder: Path | None) -> list[Path]:
    """Copy a recipe's files to a folder, a new one of its name where ``folder`` is ``None``, and return where they are.

    Raises ConfigError for an unknown recipe, a folder that cannot be written to, and a file that is there already.
    """
    files = recipe_files(name)
    target = Path(name.replace("_", "-")) if folder is None else folder
    if folder is not None and not folder.is_dir():
        raise ConfigError(f"--dir {folder}: no such folder; make it first")
    paths = [target / file.name for file in files]
    taken = next((path for path in paths if path.exists() or path.is_symlink()), None)
    if taken is not None:
        raise ConfigError(f"{taken} is there already; choose another folder with --dir, or remove it")
    write_new(target, {path: source.read_text(encoding="utf-8") for source, path in zip(files, paths, strict=True)})
    return paths
