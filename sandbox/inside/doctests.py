"""Examples of interactive sessions in test text: each example with an output is a check."""

from __future__ import annotations

import _ast
import io
import sys
from collections.abc import Callable
from typing import Any

from sandbox.inside.runner import TESTS_NAME
from sandbox.inside.test_text import syntax_tree, walk

Report = Callable[[str, bool, str], None]


def sessions(text: str) -> bool:
    """Return whether a text holds an example of a session."""
    return any(line.lstrip().startswith(">>> ") for line in text.split("\n"))


def with_sessions(tree: Any, text: str) -> Any:
    """Return a module's tree with the statements of its sessions behind its own; raise where they are not Python.

    Sessions stand in its strings; a text that is one has a tree without statements.
    """
    import doctest

    strings = [node.value for node in walk(tree) if isinstance(node, _ast.Constant) and isinstance(node.value, str)]
    texts = [string for string in strings if sessions(string)] if tree.body else [text]
    parser = doctest.DocTestParser()
    sources = [example.source for session in texts for example in parser.get_examples(session)]
    return _ast.Module([*tree.body, *syntax_tree("".join(sources)).body], [])


def run(text: str, names: dict[str, Any], begin: Callable[[], None], report: Report) -> None:
    """Run the examples of a text in order, with the names; report each that says what it writes."""
    import doctest

    checker = doctest.OutputChecker()
    for example in doctest.DocTestParser().get_examples(text):
        begin()
        output, failure = _run_example(doctest, example, names)
        label = f">>> {example.source.strip()}"
        flags = sum(flag for flag, is_set in example.options.items() if is_set)
        if failure is not None:
            is_wanted = example.exc_msg is not None and checker.check_output(example.exc_msg, failure, flags)
            report(label, is_wanted, failure.strip())
        elif example.exc_msg is not None:
            report(label, False, f"raised nothing, not {example.exc_msg.strip()}")
        elif example.want:
            is_right = checker.check_output(example.want, output, flags)
            report(label, is_right, f"wrote {output.strip()!r}, not {example.want.strip()!r}")


def _run_example(doctest: Any, example: Any, names: dict[str, Any]) -> tuple[str, str | None]:
    """Return what an example wrote, and the last line of what it raised."""
    stream, hook = sys.stdout, sys.displayhook
    sys.stdout = io.StringIO()
    sys.displayhook = sys.__displayhook__
    try:
        exec(compile(example.source, TESTS_NAME, "single", dont_inherit=True), names)  # noqa: S102 - text of the tests
        return sys.stdout.getvalue(), None
    except Exception as error:
        return "", f"{type(error).__name__}: {error}\n" if str(error) else f"{type(error).__name__}\n"
    finally:
        sys.stdout, sys.displayhook = stream, hook
