"""Runs the notebooks of docs/examples/notebooks and keeps what their cells show: python docs/notebooks.py.

The tests run them in the same way, and compare. What differs from run to run (a duration, a path) is shown by none.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
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
    not_run = {
        place: cell.source for place, cell in enumerate(notebook.cells) if "no-run" in cell.metadata.get("tags", ())
    }
    for place, source in not_run.items():
        compile(source, f"{path.name}, cell {place}", "exec")  # it needs what is not here, and is Python all the same
        notebook.cells[place].source = ""
    bin_folder = os.path.dirname(sys.executable)  # where the command of this environment is
    env = {**os.environ, "PATH": os.pathsep.join((bin_folder, os.environ.get("PATH", "")))}
    client = NotebookClient(notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": folder}})
    with _served() as addresses:
        client.execute(env={**env, **addresses, "MODEL": _small_model(path.stem, folder)})
    for place, source in not_run.items():
        notebook.cells[place].source = source
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # the times at which it ran
        if cell.cell_type == "code":
            said = [one for one in cell.outputs if one.get("name") != "stderr"]  # warnings of the packages at hand
            cell.outputs = _joined(said)
    return notebook


def _small_model(name: str, folder: str) -> str:
    """Return the folder of a model for the notebook that trains one: random weights, made in a moment."""
    if name != "grpo":
        return ""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))
    from tiny_grpo import tiny_model

    return str(tiny_model(Path(folder, "model"), chat=False))


_VERDICT = {"correct": {"reason": "It is 4.", "score": 5}, "short": {"reason": "Wordy.", "score": 2}}


class _Judge(BaseHTTPRequestHandler):
    """A server that has every model and gives one verdict."""

    def _answer(self, body: dict[str, Any]) -> None:
        raw = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def do_GET(self) -> None:
        self._answer({"object": "list", "data": [{"id": one, "object": "model"} for one in ("gpt-5-mini", "qwen3:4b")]})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        message = {"role": "assistant", "content": json.dumps(_VERDICT)}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}
        self._answer({"id": "1", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage})

    def log_message(self, format: str, *arguments: Any) -> None:
        """Say nothing."""


@contextlib.contextmanager
def _served() -> Iterator[dict[str, str]]:
    """Give the variables under which the notebooks' judges find a server."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Judge) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_address[1]}/v1"
        yield {"JUDGE_URL": address, "LOCAL_JUDGE_URL": address}
        server.shutdown()


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
