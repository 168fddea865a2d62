"""Secrets of the environment never reach a record: where one stands in a text, its name stands in for it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping

_KEY_NAME = re.compile(r"(?:^|_)(?:API_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)(?:_|$)", re.IGNORECASE)
SHORTEST = 6  # Characters from which on a value counts: a shorter one, such as `1`, would stand everywhere


class Secrets:
    """The values that are hidden: all of ``env``, and those of ``environ`` whose names say that they are keys."""

    def __init__(self, env: Mapping[str, str], environ: Mapping[str, str] | None = None) -> None:
        own = os.environ if environ is None else environ
        keys = {name: value for name, value in own.items() if _KEY_NAME.search(name)}
        names = {value: name for name, value in {**keys, **env}.items() if len(value) >= SHORTEST}
        as_json = {
            json.dumps(value, ensure_ascii=is_ascii)[1:-1]: name
            for value, name in names.items()
            for is_ascii in (True, False)
        }
        self._names = as_json | names  # a text may hold the value as JSON writes it
        longest_first = sorted(self._names, key=len, reverse=True)
        self._any = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def hide(self, text: str) -> str:
        """Return a text with ``<NAME>`` for each secret in it."""
        return text if self._any is None else self._any.sub(lambda match: f"<{self._names[match[0]]}>", text)
