"""Which names of modules a completion's code puts something else in the place of, for the reason of its score.

They are read by patterns, for hostile source can crash the parser of the process that reads it.
"""

from __future__ import annotations

import re

_STREAMS = frozenset({"sys.stdin", "sys.stdout", "sys.stderr"})  # quick programs replace these to read and write faster
_MOST = 3  # names in a reason
_IMPORT = re.compile(r"(?:^|;)[ \t]*import[ \t]+([^;#\n]+)", re.MULTILINE)
_SET = r"[ \t]*(?:=(?!=)|[-+*/|&^%]=)"
_KEY = r"\[[ \t]*(?P<{quote}>['\"])(?P<{key}>\w+)(?P={quote})[ \t]*\]"
_REPLACEMENT = re.compile(
    rf"(?:^|;)[ \t]*(?P<path>\w+(?:\.\w+)+){_SET}"
    rf"|(?:^|;)[ \t]*del[ \t]+(?P<deleted>\w+(?:\.\w+)+)"
    rf"|(?:^|;)[ \t]*(?:vars\([ \t]*(?P<owner>\w+)[ \t]*\)|(?P<holder>\w+)\.__dict__|(?P<builtins>__builtins__)"
    rf"|(?P<modules>sys\.modules)){_KEY.format(quote='quote', key='key')}{_SET}"
    r"|\b(?:setattr|delattr)\([ \t]*(?P<target>[\w.]+)[ \t]*,[ \t]*(?P<mark>['\"])(?P<name>\w+)(?P=mark)",
    re.MULTILINE,
)


def replacement_note(code: str) -> str:
    """Return what a reason adds of code that replaces builtins or parts of modules; ``""`` where it does not.

    Args:
        code: The Python source of a completion. What it hides, such as in a text that it evaluates, is not seen.
    """
    modules = {"__builtins__": "builtins"}
    for names in _IMPORT.findall(code):
        for part in names.split(","):
            path, _, alias = (word.strip() for word in part.partition(" as "))
            modules[alias or path.partition(".")[0]] = path if alias else path.partition(".")[0]
    replaced = [_dotted(match, modules) for match in _REPLACEMENT.finditer(code)]
    names = [name for name in dict.fromkeys(replaced) if name and name not in _STREAMS]
    if not names:
        return ""
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return f"the code tries to replace {', '.join(names[:_MOST])}{more}, which does not reach the checks"


def _dotted(match: re.Match[str], modules: dict[str, str]) -> str | None:
    """Return the full name of what a match replaces; ``None`` where its owner is no module."""
    if match["modules"]:
        return f"sys.modules[{match['key']!r}]" if "sys" in modules else None
    if match["key"]:
        path = f"{match['owner'] or match['holder'] or match['builtins']}.{match['key']}"
    else:
        path = f"{match['target']}.{match['name']}" if match["target"] else match["path"] or match["deleted"]
    root, _, rest = path.partition(".")
    return f"{modules[root]}.{rest}" if root in modules else None
