"""Runs a task's own ``solve.sh`` in a jail, on a copy of what the agent would find."""

from __future__ import annotations

import base64
import io
import os
import re
import secrets
import tarfile
from collections.abc import Mapping

from rewardkit.errors import SuiteError
from rewardkit.jailed.jail import shared_sandbox
from sandbox import ExecutionStatus, Limits

_TIMEOUT_S = 120.0
_OUTPUT_BYTES, _ROOM_BYTES = 64 << 20, 256 << 20
_ROOT = "REWARDKIT_ROOT"
_SCRIPT = f"""
find . -type f ! -name main.sh \\( -name '*.sh' -o -name '*.py' \\) -exec sed -i "s#{_ROOT}#$PWD#g" {{}} +
root=$PWD
cd "$root/work" || exit 97
bash "$root/solution/solve.sh" >&2 || exit $?
cd "$root/work" && printf '%s' "$1" && tar -cf - . | base64 -w0
"""


def solved_files(start: Mapping[str, bytes], solution: Mapping[str, bytes], workdir: str) -> dict[str, bytes]:
    """Return what a solution makes of the files of a start.

    Raises:
        SuiteError: There is no ``solve.sh``, the jail runs no shell here, or the script fails.
    """
    if "solve.sh" not in solution:
        raise SuiteError("solution: there is no solution/solve.sh")
    places = {workdir: f"{_ROOT}/work", "/solution": f"{_ROOT}/solution", "/oracle": f"{_ROOT}/solution"}
    files = {f"work/{name}": content for name, content in start.items()}
    files |= {f"solution/{name}": _rewritten(name, content, places) for name, content in solution.items()}
    mark = secrets.token_hex(8)
    limits = Limits(timeout_s=_TIMEOUT_S, output_bytes=_OUTPUT_BYTES, file_bytes=_ROOM_BYTES)
    files.setdefault("work/.keep", b"")
    result = shared_sandbox().run(_SCRIPT, language="bash", files=files, args=[mark], limits=limits)
    if result.status is not ExecutionStatus.OK:
        why = " ".join(part for part in (result.error, result.stderr.strip()[-300:]) if part)
        raise SuiteError(f"solution: solve.sh cannot be run here: {result.status}: {why}")
    _, _, encoded = result.stdout.rpartition(mark)
    return _unpacked(base64.b64decode(encoded))


def _rewritten(name: str, content: bytes, places: Mapping[str, str]) -> bytes:
    """Return a script with the folders of the container, where they are whole parts of paths, as they lie here."""
    if not name.endswith((".sh", ".py")):
        return content
    names = "|".join(map(re.escape, sorted(places, key=len, reverse=True)))
    text = re.sub(rf"(?<![\w./-])({names})(?![\w.-])", lambda match: places[match[1]], os.fsdecode(content))
    return os.fsencode(text)


def _unpacked(archive: bytes) -> dict[str, bytes]:
    files = {}
    with tarfile.open(fileobj=io.BytesIO(archive)) as members:
        for member in members:
            content = members.extractfile(member) if member.isfile() else None
            name = member.name.removeprefix("./")
            if content is not None and name != ".keep":
                files[name] = content.read()
    return files
