"""The recipes that ``rewardkit new --recipe`` starts from: folders beside this package, each a reward with its data.

``docs/recipes`` has a page for each, which ``python docs/recipes_page.py`` writes from the same files.
"""

from __future__ import annotations

import difflib
from pathlib import Path

from rewardkit.errors import ConfigError

RECIPES = Path(__file__).parents[1] / "recipes"
_OF_THE_PAGE = "recipe.yaml"


def recipe_names() -> list[str]:
    """Return the names of the recipes, in order."""
    folders = RECIPES.iterdir() if RECIPES.is_dir() else ()
    return sorted(folder.name.replace("_", "-") for folder in folders if (folder / _OF_THE_PAGE).is_file())


def recipe_files(name: str) -> list[Path]:
    """Return the files of a recipe, its reward first.

    Raises:
        ConfigError: There is no such recipe; names those that there are, the nearest first.
    """
    names = recipe_names()
    if name.replace("_", "-") not in names:
        near = difflib.get_close_matches(name, names, n=2)
        options = f"did you mean {' or '.join(map(repr, near))}? There are" if near else "there are"
        raise ConfigError(f"--recipe {name!r}: no such recipe; {options} {', '.join(names)}")
    folder = RECIPES / name.replace("-", "_")
    return [folder / f"{folder.name}.py", folder / "cases.yaml", folder / "rows.jsonl"]


def copied(name: str, folder: Path | None) -> list[Path]:
    """Copy a recipe's files, and return where they are now.

    Args:
        name: The recipe's.
        folder: Where to; a new folder of the recipe's name unless given.

    Raises:
        ConfigError: There is no such recipe, the folder cannot be written to, or one of the files is there already.
    """
    files = recipe_files(name)
    target = Path(name.replace("_", "-")) if folder is None else folder
    if folder is not None and not folder.is_dir():
        raise ConfigError(f"--dir {folder}: no such folder; make it first")
    paths = [target / file.name for file in files]
    taken = next((path for path in paths if path.exists() or path.is_symlink()), None)
    if taken is not None:
        raise ConfigError(f"{taken} is there already; choose another folder with --dir, or remove it")
    made: list[Path] = []
    try:
        target.mkdir(exist_ok=True)
        for source, path in zip(files, paths, strict=True):
            with path.open("x", encoding="utf-8") as file:
                made.append(path)
                file.write(source.read_text(encoding="utf-8"))
    except OSError as error:
        for path in made:
            path.unlink()
        raise ConfigError(f"{target}: {error.strerror or error}") from error
    return paths
