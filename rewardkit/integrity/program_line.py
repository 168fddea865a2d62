"""The command line: ``rewardkit integrity``, ``python -m rewardkit.integrity``, or a copy of this folder."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from .examiner import ExaminationPlan, examine
from .figures import HarnessFigures, badge_of, compare, differs, table_of
from .forging_acts import SHAPES, languages, read_acts
from .validation_report import validation_report

FORGED, MISTAKE, NO_FIGURE, INTERRUPTED = 1, 2, 3, 130


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code: 0 nothing was forged, 1 something was, 2 a mistake, 3 no figure."""
    options = _parser().parse_args(arguments)
    try:
        if options.list:
            sys.stdout.write(listing())
            return 0
        if options.compare:
            text, is_worse = compare_files(*options.compare)
            sys.stdout.write(text)
            return FORGED if is_worse else 0
        plan = plan_of(options)
    except (OSError, ValueError) as mistake:
        print(f"error: {mistake}", file=sys.stderr)
        return MISTAKE
    try:
        figures = examine(plan, show_progress if sys.stderr.isatty() else lambda line: None)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    return _finish(figures, options)


def _finish(figures: HarnessFigures, options: argparse.Namespace) -> int:
    write_reports(figures, options.report, options.badge, options.rfc008)
    sys.stdout.write(json.dumps(figures.to_json(), indent=1) + "\n" if options.json else table_of(figures))
    if figures.no_figure:
        return NO_FIGURE
    return FORGED if figures.names("forged") or figures.names("unstable") else 0


def write_reports(figures: HarnessFigures, report: object, badge: object, rfc008: object) -> None:
    """Write figures as JSON, as a badge, and in the form of OpenEnv's RFC 008, each where there is a path for it."""
    texts = (
        (report, json.dumps(figures.to_json(), indent=1) + "\n"),
        (badge, badge_of(figures)),
        (rfc008, json.dumps(validation_report(figures), indent=2) + "\n"),
    )
    for path, text in texts:
        if path:
            Path(str(path)).write_text(text, encoding="utf-8")


def plan_of(options: argparse.Namespace) -> ExaminationPlan:
    """Return the plan that options ask for.

    Raises:
        ValueError: No target, or more than one, or one that cannot be read.
    """
    named = {"name": options.target, "function": options.function, "command": options.command, "http": options.http}
    chosen = {key: value for key, value in named.items() if value}
    if len(chosen) != 1:
        raise ValueError("name one target: a ready harness, or --function, --command or --http")
    (kind,) = chosen
    target = {**chosen, "kind": "ready" if kind == "name" else kind, "cwd": str(Path.cwd())}
    if kind == "function":
        path, colon, _ = options.function.rpartition(":")
        if not colon:
            raise ValueError(f"--function {options.function}: expected FILE.py:NAME or MODULE:NAME")
        if path.endswith(".py"):
            if not Path(path).is_file():
                raise ValueError(f"--function {options.function}: there is no file {path}")
            target["function"] = f"{Path(path).resolve()}:{options.function.rpartition(':')[2]}"
    if kind == "command" and "{" not in options.command:
        raise ValueError(f"--command {options.command!r}: it reads nothing; write {{completion}} and {{tests}} in it")
    if kind != "name":
        target |= {"shape": options.shape or "call", "language": options.language or "python"}
        target |= {"passes": options.passes} if options.passes else {}
        if target["shape"] == "text":
            target["language"] = "text"
        if target["language"] not in languages():
            raise ValueError(f"--language {target['language']}: expected one of {', '.join(languages())}")
    elif has_own_walls(options.target):
        target["own_isolation"] = "yes"
    if options.frame:
        target["frame"] = options.frame
    python = options.python or sys.executable
    if "/" in python:  # it is started in a folder of its own
        python = os.path.abspath(python)
    return ExaminationPlan(
        target, python, options.seed, options.tries, options.workers, options.deadline,
        options.load_time, options.most_time, tuple(options.act or ()),
    )  # fmt: skip


def has_own_walls(name: str) -> bool:
    """Whether a ready harness isolates completions itself, so that it runs outside of the suite's namespaces."""
    from .ready import ready_harnesses

    harness = ready_harnesses().get(name)
    return harness is not None and (harness.is_inline or harness.has_own_walls)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("integrity", description="Can a completion forge this harness?")
    parser.add_argument("target", nargs="?", help="a ready harness by its name; --list shows them")
    parser.add_argument("--function", metavar="FILE.py:NAME", help="a function of a task and a completion")
    parser.add_argument(
        "--command", metavar="COMMAND", help="a command line with {completion}, {tests}, {program}, ..."
    )
    parser.add_argument("--http", metavar="URL", help="an address that is sent JSON and answers it")
    parser.add_argument("--passes", metavar="LINE", help="a line of the command's output that says pass; else exit 0")
    parser.add_argument("--shape", choices=SHAPES, help="what the target is handed (call)")
    parser.add_argument("--language", help="what the completions are written in (python)")
    parser.add_argument("--frame", metavar="TEXT", help="how texts write an answer, with ANSWER for it")
    parser.add_argument("--python", default=sys.executable, metavar="PATH", help="the interpreter with the harness")
    parser.add_argument("--act", action="append", metavar="NAME", help="acts whose names begin so; all by default")
    parser.add_argument("--seed", type=int, default=0, help="what the task is drawn from")
    parser.add_argument("--tries", type=int, default=2, help="how often each act is tried (2); what differs, 5 times")
    parser.add_argument("--workers", type=int, default=2, help="acts at once (2)")
    parser.add_argument("--deadline", type=float, default=25.0, metavar="S", help="seconds for an act (25)")
    parser.add_argument("--load-time", type=float, default=120.0, metavar="S", help="seconds to load (120)")
    parser.add_argument("--most-time", type=float, default=600.0, metavar="S", help="seconds for all (600)")
    parser.add_argument("--json", action="store_true", help="print the report in place of the table")
    parser.add_argument("--report", metavar="FILE", help="write the report there, as JSON")
    parser.add_argument("--badge", metavar="FILE", help="write an SVG badge there")
    parser.add_argument("--rfc008", metavar="FILE", help="write a report of OpenEnv's RFC 008 there, as JSON")
    parser.add_argument("--compare", nargs=2, metavar="FILE", help="say how two reports differ; 1 if more is forged")
    parser.add_argument("--list", action="store_true", help="list the ready harnesses and the acts")
    return parser


def compare_files(first: str, second: str) -> tuple[str, bool]:
    """Return how two reports differ, and whether more is forged in the second.

    Raises:
        ValueError: A file is no report.
    """
    figures = []
    for file in (first, second):
        try:
            figures.append(HarnessFigures.from_json(json.loads(Path(file).read_text(encoding="utf-8"))))
        except (OSError, ValueError) as wrong:
            raise ValueError(f"{file}: {wrong}") from None
    return compare(*figures), differs(*figures)


def listing() -> str:
    """Return the ready harnesses and the numbers of acts, a line each."""
    from .ready import ready_harnesses

    lines = [
        f"{harness.name:<27} {harness.language}, {harness.shape}: {harness.note}"[:80].rstrip()
        for harness in ready_harnesses().values()
    ]
    for language in languages():
        acts = read_acts(language)
        lines.append(f"{len(acts)} acts in {language}, {len({act.family for act in acts})} families")
    return "\n".join(lines) + "\n"


def show_progress(line: str) -> None:
    """Write a line of progress over the last one."""
    sys.stderr.write(f"\r\033[K{line[:78]}")
