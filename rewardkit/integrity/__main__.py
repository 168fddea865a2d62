"""``python -m rewardkit.integrity``; also runs from a copy of the folder, whatever it is called."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path

_NAME = "completion_integrity"


def _package() -> str:
    """Return the name of the package that this file lies in, loaded from its folder where it has none."""
    if __package__:
        return __package__
    folder = Path(__file__).resolve().parent
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != folder]
    spec = importlib.util.spec_from_file_location(
        _NAME, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None
    assert spec.loader is not None
    sys.modules[_NAME] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return _NAME


def main() -> int:
    """Serve as the process that has a harness, or run a command line."""
    package = _package()
    if sys.argv[1:2] == ["--serve"]:
        importlib.import_module(f"{package}.grading_process").serve(sys.argv[2])
        return 0
    code: int = importlib.import_module(f"{package}.program_line").run()
    return code


if __name__ == "__main__":
    sys.exit(main())
