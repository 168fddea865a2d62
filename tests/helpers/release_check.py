"""Says why these files must not be published: ``python tests/helpers/release_check.py dist v0.2.0``.

The workflow that publishes runs it, so that a placeholder for an address, a version that is not the tag's, and a
changelog without the version stop a release.
"""

from __future__ import annotations

import email
import re
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
_PLACEHOLDER = re.compile(r"https?://[^/]*\.(?:invalid|example|test|localhost)\b|\bOWNER\b")


def faults_of_checkout(root: Path, tag: str) -> Iterator[str]:
    """Yield what in the checkout forbids a release with this tag."""
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    version, repository = settings["project"]["version"], settings["tool"]["rewardkit"]["repository"]
    if _PLACEHOLDER.search(repository):
        yield f"pyproject.toml: repository under [tool.rewardkit] is {repository!r}, a placeholder: set the address"
    if tag != f"v{version}":
        yield f"the tag is {tag!r}, and pyproject.toml has version {version!r}: expected the tag 'v{version}'"
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    if not re.search(rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$", changelog, re.MULTILINE):
        yield f"CHANGELOG.md: no heading '## [{version}] - DATE'"


def faults_of_files(folder: Path, tag: str) -> Iterator[str]:
    """Yield what is wrong with the built files of a folder: a wheel and a source distribution are expected."""
    wheels, sources = sorted(folder.glob("*.whl")), sorted(folder.glob("*.tar.gz"))
    if (len(wheels), len(sources), len([*folder.iterdir()])) != (1, 1, 2):
        yield f"{folder}: expected one wheel and one source distribution, got {sorted(map(str, folder.iterdir()))}"
        return
    for path, text in ((wheels[0], metadata_of_wheel(wheels[0])), (sources[0], metadata_of_source(sources[0]))):
        version = email.message_from_string(text)["Version"]
        if tag != f"v{version}":
            yield f"{path.name}: its version is {version!r}, and the tag {tag!r}"
        if match := _PLACEHOLDER.search(text):
            yield f"{path.name}: its metadata has {match[0]!r}, a placeholder"


def metadata_of_wheel(path: Path) -> str:
    """Return the metadata of a wheel."""
    with zipfile.ZipFile(path) as files:
        (name,) = (name for name in files.namelist() if name.endswith(".dist-info/METADATA"))
        return files.read(name).decode("utf-8")


def metadata_of_source(path: Path) -> str:
    """Return the metadata of a source distribution."""
    with tarfile.open(path) as files:
        (name,) = (name for name in files.getnames() if re.fullmatch(r"[^/]+/PKG-INFO", name))
        member = files.extractfile(name)
        assert member is not None
        return member.read().decode("utf-8")


if __name__ == "__main__":
    faults = [*faults_of_checkout(ROOT, sys.argv[2]), *faults_of_files(Path(sys.argv[1]), sys.argv[2])]
    print(*(faults or ["nothing forbids the release"]), sep="\n")
    sys.exit(bool(faults))
