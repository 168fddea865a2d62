"""Runs the notebooks of docs/examples/notebooks and keeps what their cells show: python docs/notebooks.py.

The tests run them in the same way, and compare. What differs from run to run (a duration, a path) is shown by none.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "examples" / "notebooks"


def run(path: Path, folder: str) -> Any:
    """Return a notebook with what its cells show when they are run in a folder.

    Raises:
        nbclient.exceptions.CellExecutionError: A cell raises.
    """
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    bin_folder = os.path.dirname(sys.executable)  # where the command of this environment is
    env = {**os.environ, "PATH": os.pathsep.join((bin_folder, os.environ.get("PATH", "")))}
    client = NotebookClient(notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": folder}})
    client.execute(env=env)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # the times at which it ran
        if cell.cell_type == "code":
            cell.outputs = _joined(cell.outputs)
    return notebook


def _joined(outputs: list[Any]) -> list[Any]:
    """Return outputs with what was written to one stream in several pieces as one."""
    found: list[Any] = []
    for one in outputs:
        if found and one.output_type == "stream" == found[-1].output_type and one.name == found[-1].name:
            found[-1].text += one.text
        else:
            found.append(one)
    return found


def main() -> None:
    """Run all notebooks, or those that are named, and write them back."""
    import nbformat

    for path in [Path(one) for one in sys.argv[1:]] or sorted(FOLDER.glob("*.ipynb")):
        with tempfile.TemporaryDirectory() as folder:
            nbformat.write(run(path, folder), path)
        print(path)


if __name__ == "__main__":
    main()
