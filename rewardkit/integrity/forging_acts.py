"""The acts as data: a section of a text file for each, with its name, what it does, and its text in each shape.

A section begins with ``### FAMILY.NAME | what it does | needs MODULE ...``; ``=== call``, ``=== program`` and
``=== file NAME`` begin the texts. In the texts ``__ENTRY__`` stands for the name of the function under test.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).parent / "acts"
SHAPES = ("call", "program", "folder", "text")
"""What a harness is handed: a text that defines a function, a program, a folder of files, or an answer in words."""
_MAIN_FILES = {"python": "solution.py", "javascript": "solution.js"}


@dataclass(frozen=True)
class ForgingAct:
    """A completion that solves nothing and would rather pass.

    Attributes:
        name: ``FAMILY.NAME``.
        language: What it is written in; ``"text"`` for answers in words.
        about: What it does, in a few words; empty where the name says it.
        needs: Modules or programs without which it cannot be tried.
        texts: Its text for each of the shapes ``call``, ``program`` and ``text`` that it has.
        files: Its files by name where a folder is graded.
    """

    name: str
    language: str
    about: str = ""
    needs: tuple[str, ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def family(self) -> str:
        return self.name.partition(".")[0]

    def text_for(self, shape: str, entry_point: str) -> str | None:
        """Return its text in a shape other than ``folder``, or ``None`` where it has none."""
        text = self.texts.get(shape)
        return None if text is None else text.replace("__ENTRY__", entry_point)

    def files_for(self, entry_point: str) -> dict[str, str] | None:
        """Return the files of its folder, or ``None``; what is called alone is a folder's one file."""
        files = dict(self.files)
        main = _MAIN_FILES.get(self.language)
        if not files and main and "call" in self.texts:
            files = {main: self.texts["call"]}
        return {name: text.replace("__ENTRY__", entry_point) for name, text in files.items()} or None

    def is_for(self, shape: str) -> bool:
        """Whether it has a text in a shape."""
        return bool(self.files_for("")) if shape == "folder" else shape in self.texts


def languages() -> list[str]:
    """Return the languages that have acts."""
    return sorted(folder.name for folder in FOLDER.iterdir() if folder.is_dir())


def read_acts(language: str) -> list[ForgingAct]:
    """Return the acts of a language in the order of their names.

    Raises:
        ValueError: Nobody has acts of it, or two have one name.
    """
    files = sorted((FOLDER / language).glob("*.txt"))
    acts = [act for file in files for act in _sections(file.read_text(encoding="utf-8"), language)]
    if not acts:
        raise ValueError(f"language {language!r}: there are no acts; expected one of {', '.join(languages())}")
    names = [act.name for act in acts]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"acts of {language}: {', '.join(sorted(twice))} twice")
    return sorted(acts, key=lambda act: act.name)


def _sections(text: str, language: str) -> Iterator[ForgingAct]:
    for section in ("\n" + text).split("\n### ")[1:]:
        heading, _, body = section.partition("\n")
        name, about, *rest = (part.strip() for part in heading.split(" | "))
        needs = tuple(word for part in rest for word in part.removeprefix("needs ").split())
        texts: dict[str, str] = {}
        files: dict[str, str] = {}
        for part in ("\n" + body).split("\n=== ")[1:]:
            label, _, content = part.partition("\n")
            if label.startswith("file "):
                files[label.removeprefix("file ")] = content.rstrip("\n") + "\n"
            else:
                texts[label.strip()] = content.rstrip("\n") + "\n"
        yield ForgingAct(name, language, "" if about == "-" else about, needs, texts, files)
