"""Files of code beside this one whose sections have titles, each behind ``###``."""

from __future__ import annotations

import re
from pathlib import Path


def sections(name: str) -> dict[str, str]:
    """Return the sections of a file by their titles."""
    text = (Path(__file__).parent / name).read_text(encoding="utf-8")
    parts = re.split(r"^### (.*)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))
