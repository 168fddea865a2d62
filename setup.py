"""What ``pyproject.toml`` cannot say: urls, and README as an index shows it, of one address.

The address is ``repository`` under ``[tool.rewardkit]``. In the checkout README's links are relative, so that they lead
to the files beside it; in the metadata they lead to the same files of this version in the repository.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent
_LINK = re.compile(r"(?P<picture>!?)\[(?P<text>(?:[^\[\]]|\[[^\[\]]*\])*)\]\((?P<path>(?![a-z]+:|#)[^)\s]+)\)")


def absolute(readme: str, repository: str, version: str) -> str:
    """Return README with each relative link, and each picture, as an address of the repository at that version."""

    def address(match: re.Match[str]) -> str:
        text = _LINK.sub(address, match["text"])  # a picture may be what is linked
        kind = "raw" if match["picture"] else "blob"
        return f"{match['picture']}[{text}]({repository}/{kind}/v{version}/{match['path']})"

    return _LINK.sub(address, readme)


def urls(repository: str, version: str) -> dict[str, str]:
    """Return the addresses that an index shows beside the project, by their labels."""
    at_version = f"{repository}/blob/v{version}"
    return {
        "Repository": repository,
        "Documentation": f"{at_version}/docs/index.md",
        "Changelog": f"{at_version}/CHANGELOG.md",
        "Issues": f"{repository}/issues",
    }


if __name__ == "__main__":
    from setuptools import setup  # here, so that the functions above can be tested without it

    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    address_and_version = settings["tool"]["rewardkit"]["repository"], settings["project"]["version"]
    setup(
        long_description=absolute((ROOT / "README.md").read_text(encoding="utf-8"), *address_and_version),
        long_description_content_type="text/markdown",
        project_urls=urls(*address_and_version),
    )
