"""What the built-in rewards say of completions that chat models wrote, and which verdicts are worth reading.

    python tests/benchmarks/bench_verdicts_read.py [--seed 11] [--count 100] [--show [REWARD ...]] [--full]

``--count`` completions are drawn from each of three data sets (``REWARDKIT_DATA``): IFEval responses, GSM8K solutions
and programs, MATH responses. Every reward that applies to one scores it, with the columns that its data give. Where
the data, or a rule that uses nothing of the reward, tell the obvious verdict, it is compared; ``--show`` prints the
verdicts that differ from it, those beyond the bounds in which an ordinary completion stays, and what was skipped or
failed, for a person to read. Whether the reward is wrong there or the label is, that person judges.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from bench_readings import _lines, _same_number
from rich.console import Console
from rich.table import Table

from builtin_rewards.formats import markdown_structure, regex_match
from builtin_rewards.instructions import instructions
from builtin_rewards.length import cosine_length, length_between
from builtin_rewards.structured import json_schema, json_valid
from rewardkit import Reward, Score
from rewardkit.loading.registry import entry_points, resolve
from sandbox import Sandbox

NEAR = 1e-9
SHOWN_CHARS = 700
_FENCE = re.compile(r"^ {0,3}```", re.MULTILINE)
_PYTHON = re.compile(r"```python\n(.*?)\n```", re.DOTALL)
_PRINTED = re.compile(r"```output\n(.*?)\n```", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Text:
    """A completion that a model wrote, with what its data set tells of it.

    Attributes:
        source: The data set's name.
        place: Where it stands there.
        prompt: What the model was asked.
        completion: What it wrote.
        gold: The gold answer; empty where there is none.
        given: The answer that the data set read from it; empty where it read none.
        right: Whether it is labelled as right; ``None`` without a label.
        solution: A worked solution; empty where there is none.
        asked: The settings of each instruction that the prompt gives, by its id.
        followed: Which of them were followed, by the data set's own checker.
    """

    source: str
    place: str
    prompt: str
    completion: str
    gold: str = ""
    given: str = ""
    right: bool | None = None
    solution: str = ""
    asked: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    followed: Mapping[str, bool] = field(default_factory=dict)


class Trial(NamedTuple):
    """One call of a reward: what is scored, with which columns, and the bounds of the obvious verdict.

    ``labelled`` tells a verdict that the data or an independent rule give from bounds in which most texts stay.
    """

    name: str
    reward: Reward[..., Any]
    columns: dict[str, Any]
    lowest: float | None = None
    highest: float | None = None
    labelled: bool = False


class Result(NamedTuple):
    """What became of a trial: a score, or the reason of none."""

    text: Text
    trial: Trial
    score: float | None
    reason: str
    seconds: float
    error: bool = False

    @property
    def is_odd(self) -> bool:
        """Whether a person should read it."""
        low, high = self.trial.lowest, self.trial.highest
        if self.score is None:
            return low is not None or self.error
        return (low is not None and self.score < low - NEAR) or (high is not None and self.score > high + NEAR)


def _data() -> Path:
    return Path(os.environ.get("REWARDKIT_DATA", Path(__file__).parents[3] / "shared" / "data"))


def _ifeval(data: Path) -> Iterator[Text]:
    settings = {row["prompt"]: row["kwargs"] for row in _lines(data / "ifeval" / "en_input_data.jsonl")}
    for number, row in enumerate(_lines(data / "ifeval" / "gpt-4o-2024-08-06_strict.jsonl")):
        ids = row["instruction_id_list"]
        asked = dict(zip(ids, settings.get(row["prompt"], []), strict=False))
        followed = dict(zip(ids, row["follow_instruction_list"], strict=True))
        yield Text("ifeval", str(number), row["prompt"], row["response"], asked=asked, followed=followed)


def _gsm8k(data: Path) -> Iterator[Text]:
    for number, row in enumerate(_lines(data / "gsm8k" / "example_model_solutions.jsonl")):
        gold = row["ground_truth"].rpartition("A:")[2].strip()
        for model in ("6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification"):
            said, given = row[model]["solution"], row[model]["solution"].rpartition("A:")[2].strip()
            about = {"gold": gold, "given": given, "right": row[model]["is_correct"], "solution": row["ground_truth"]}
            yield Text("gsm8k", f"{number} {model}", row["question"], said, **about)


def _tora(data: Path) -> Iterator[Text]:
    for number, row in enumerate(_lines(data / "gsm8k_predictions" / "tora-70b-v1.0.jsonl")):
        given = row["pred"][0]
        about = {"gold": row["gt"], "given": given, "right": _same_number(given, row["gt"]), "solution": row["gt_cot"]}
        yield Text("tora", str(number), row["question"], row["code"][0], **about)


def _math(data: Path) -> Iterator[Text]:
    for number, row in enumerate(_lines(data / "math" / "qwen_math_cot_100.jsonl")):
        for one, said in enumerate(row["code"]):
            about = {"gold": row["gt"], "given": row["pred"][one], "right": row["score"][one]}
            yield Text("math", f"{number} {one}", row["question"], said, solution=row["gt_cot"], **about)


def drawn(data: Path, seed: int, count: int) -> list[Text]:
    """Return ``count`` completions of each of the three data sets, half of GSM8K's with a program."""
    chance = random.Random(seed)
    halves = ((_ifeval, count), (_gsm8k, count - count // 2), (_tora, count // 2), (_math, count))
    return [text for make, number in halves for text in chance.sample(list(make(data)), number)]


def _known(name: str, **settings: Any) -> Reward[..., Any]:
    reward = resolve(name)
    return reward(**settings) if settings else reward  # type: ignore[no-any-return]


def _label(name: str, right: bool, reward: Reward[..., Any] | None = None, **columns: Any) -> Trial:
    return Trial(name, reward or resolve(name), columns, float(right), float(right), labelled=True)


def _bounds(
    name: str, low: float | None, high: float | None = None, reward: Reward[..., Any] | None = None, **columns: Any
) -> Trial:
    return Trial(name, reward or resolve(name), columns, low, high)


def of_any(text: Text, sandbox: Sandbox) -> Iterator[Trial]:
    """Give the trials that every completion allows."""
    said = text.completion
    words = len(said.split())
    echoes = any("repeat_prompt" in each for each in text.asked) or text.source == "tora"
    yield _bounds("no_refusal", 1)
    yield _bounds("language_is", 0.99, language=_language(text))
    yield _bounds("length_between", float(10 <= words <= 400), 1 if 10 <= words <= 400 else 1 - NEAR * 2)
    yield _bounds("repetition_penalty", -0.5)
    yield _bounds("distinct_n", 0.5)
    yield _bounds("compression_ratio", 0.2)
    yield _bounds("no_prompt_echo", 0 if echoes else 0.6, prompt=text.prompt)
    yield _label("soft_overlong_punishment", False, completion_ids=list(range(words)))
    yield _label("format_tags", False)
    yield _label("tool_call", True, answer=[])
    yield _label("json_valid", _is_json(said))
    yield _bounds("xml_valid", None, 0)
    yield _label("citation", False, sources=3)
    if "http" in said or "www." in said:
        yield _label("url_valid", True)
    fences = len(_FENCE.findall(said))
    yield _label("code_fence", fences >= 2 and fences % 2 == 0)
    lines = re.findall(r"^#{1,6} +\S|^\s*(?:[-*+]|\d+[.)]) +\S", said, re.MULTILINE)
    parts = {"heading" if line.startswith("#") else "item" for line in lines}
    yield (
        _label("markdown_structure", True, markdown_structure(headings=1, list_items=0))
        if "heading" in parts
        else (_bounds("markdown_structure", None, 0.5))
    )
    if programs := _PYTHON.findall(said):
        yield _label("code_compiles", _compiles(programs[-1]), sandbox=sandbox)
        yield from _program_trials(text, programs, sandbox)


def _language(text: Text) -> str:
    return next((s["language"] for i, s in text.asked.items() if i.endswith("response_language") and s), "en")


def _is_json(text: str) -> bool:
    fenced = re.findall(r"```(?:json)?\n(.*?)\n```", text, re.DOTALL)
    try:
        json.loads(fenced[-1] if fenced else text)
    except ValueError:
        return False
    return True


def _compiles(program: str) -> bool:
    try:
        ast.parse(program)
    except SyntaxError:
        return False
    return True


def _program_trials(text: Text, programs: Sequence[str], sandbox: Sandbox) -> Iterator[Trial]:
    printed = _PRINTED.findall(text.completion)
    if len(programs) == len(printed) == 1:
        fails = "Error" in printed[0] or "Timeout" in printed[0]
        yield _label("code_runs", not fails, sandbox=sandbox)
        if not fails:
            pair = {"inputs": [""], "outputs": [printed[0] + "\n"]}
            yield _label("code_tests", True, sandbox=sandbox, **pair)


def of_instructions(text: Text) -> Iterator[Trial]:
    """Give the trials that the instructions of a prompt allow."""
    if not text.asked:
        return
    ids, settings = list(text.asked), list(text.asked.values())
    share = sum(text.followed[each] for each in ids) / len(ids)
    columns = {"instruction_id_list": ids, "kwargs": settings}
    yield Trial("instructions", resolve("instructions"), columns, share, share, labelled=True)
    yield Trial("instructions", instructions(loose=True), columns, share, 1, labelled=True)
    for name, given in text.asked.items():
        kind, followed = name.partition(":")[2], text.followed[name]
        if kind == "keywords:existence":
            every = _label("contains_all", followed, _known("contains_all", negated=True), answer=given["keywords"])
            yield every if followed else every._replace(highest=1 - 1e-3)
            yield _bounds("contains_any", float(followed), answer=given["keywords"])
        elif kind == "keywords:forbidden_words":
            yield _label("contains_none", followed, forbidden=given["forbidden_words"])
        elif kind == "detectable_format:json_format":
            yield _label("json_valid", followed, json_valid)
            yield from _of_json(text.completion)
        elif kind == "detectable_format:constrained_response":
            pattern = r"(?s).*My answer is (yes|no|maybe)\..*"
            yield _label("regex_match", followed, regex_match(pattern))
        elif kind == "detectable_format:number_bullet_lists":
            wanted = markdown_structure(headings=0, list_items=given["num_bullets"])
            yield _bounds("markdown_structure", float(followed), 1, wanted)
        elif kind == "length_constraints:number_words":
            many = given["relation"] == "at least"
            between = length_between(given["num_words"], 10**6) if many else length_between(0, given["num_words"] - 1)
            yield _bounds("length_between", float(followed), 1 if followed else 1 - 1e-6, between)
        elif kind == "language:response_language":
            yield _bounds("language_is", float(followed) * 0.99, language=given["language"])


def _of_json(said: str) -> Iterator[Trial]:
    if not _is_json(said):
        return
    fenced = re.findall(r"```(?:json)?\n(.*?)\n```", said, re.DOTALL)
    value = json.loads(fenced[-1] if fenced else said)
    yield _label("json_fields", True, answer=value)
    kind = "object" if isinstance(value, dict) else "array"
    schema = {"type": kind, **({"required": sorted(value)} if isinstance(value, dict) else {})}
    yield _label("json_schema", True, json_schema, schema=schema)


def _box(text: str) -> str:
    """Return what stands in the last box of a text; empty where there is none."""
    start = text.rfind("\\boxed{") + len("\\boxed{")
    depth = 1
    for place in range(start, len(text) if start >= len("\\boxed{") else 0):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return text[start:place]
    return ""


def of_answers(text: Text, others: Sequence[str]) -> Iterator[Trial]:
    """Give the trials that a gold answer allows; ``others`` are golds of other rows, for wrong choices.

    Rewards of text read the box, or the whole completion; "in tags" are completions with the data set's reading of
    their answer behind them, where no box says another.
    """
    if not text.gold or text.right is None:
        return
    right, said, box = text.right, text.completion, _box(text.completion)
    marks = [("", {"answer": text.gold}, box)]
    if box in ("", text.given):
        tagged = f"{said}\n<answer>{text.given}</answer>"
        marks.append((", in tags", {"completion": tagged, "answer": text.gold}, text.given))
    plain = re.fullmatch(r"-?[\d,.]+", text.gold)
    for how, columns, marked in marks:
        same = marked == text.gold
        yield _label(f"math_answer{how}", right, resolve("math_answer"), prompt=text.prompt, **columns)
        if plain:
            yield _label(f"numeric_close{how}", right, resolve("numeric_close"), prompt=text.prompt, **columns)
        if plain and marked:
            yield _label(f"numeric_list{how}", right, resolve("numeric_list"), **columns)
        yield _label(f"exact_match{how}", same, resolve("exact_match"), **columns)
        high = 1.0 if right else 0.95
        for name in ("normalized_match", "set_f1", "fuzzy_match", "edit_similarity", "token_f1"):
            yield _bounds(f"{name}{how}", float(same), high, resolve(name), **columns)
        listed = {**columns, "answer": [text.gold]}
        yield _bounds(f"set_f1, of a list{how}", float(same), high, resolve("set_f1"), **listed)
    found = re.search(rf"(?<![\w.,]){re.escape(text.gold)}(?![\w,]|\.\d)", said)
    yield _bounds("contains_all", float(found is not None), answer=text.gold)
    yield _bounds("contains_any", float(found is not None), answer=[text.gold])
    for name in ("bleu", "chrf", "rouge"):
        yield _bounds(name, 0, 0.9, answer=text.solution)
    cosine = cosine_length(resolve("math_answer"), max_length=1000, unit="words")
    yield Trial("cosine_length", cosine, {"answer": text.gold}, float(right) or -10, 2 * right, labelled=True)
    yield from _choices(text, others, box)


def _choices(text: Text, others: Sequence[str], box: str) -> Iterator[Trial]:
    """Give the trials of options: the gold's own letter, and the gold among golds of other rows.

    The option is chosen by its text in the box, by a sentence, and by a last line in the place of ``A: 18``.
    """
    if re.fullmatch(r"[A-E]", text.gold):
        yield _label("multiple_choice", bool(text.right), answer=text.gold)
        return
    given = text.gold if text.right else text.given or "none"
    options = sorted({*others[:2], "0.125", text.gold, given} - set("ABCDE"))
    letter, chosen = ("ABCDE"[options.index(each)] for each in (text.gold, given))
    columns = {"answer": letter, "choices": options}
    if box in options:
        yield _label("multiple_choice, in a box", box == text.gold, resolve("multiple_choice"), **columns)
        return
    before, _, last = text.completion.rpartition("\nA:")
    if not before or "\n" in last.strip():
        return
    for how, line in (("in a sentence", f"The answer is {chosen}."), ("in a line", f"{chosen}) {given}")):
        completion = f"{before}\n{line}"
        name = f"multiple_choice, {how}"
        yield _label(name, chosen == letter, resolve("multiple_choice"), completion=completion, **columns)


def tried(text: Text, trial: Trial) -> Result:
    """Return what a reward says of a completion; what it raises is a failure."""
    taken_by = {parameter.name for parameter in trial.reward.spec.parameters}
    columns = {"completion": text.completion, **trial.columns} if "completion" in taken_by else trial.columns
    began = time.perf_counter()
    try:
        given = trial.reward(**columns)
    except Exception as fault:
        return Result(text, trial, None, f"{type(fault).__name__}: {fault}", time.perf_counter() - began, error=True)
    taken = time.perf_counter() - began
    if isinstance(given, Score):
        return Result(text, trial, given.value, given.reason or "", taken)
    return Result(text, trial, given, "", taken)


def groups(data: Path, texts: Sequence[Text]) -> Iterator[Result]:
    """Give what the rewards of groups say: of the responses to one problem, all of them."""
    by_problem: dict[str, list[Text]] = defaultdict(list)
    for text in _math(data):
        by_problem[text.prompt].append(text)
    for prompt in dict.fromkeys(text.prompt for text in texts if text.source == "math"):
        group = by_problem[prompt]
        for name, low, high in (("rank_by_length", 0.0, 1.0), ("diversity", 0.02, 0.98)):
            trial = Trial(name, resolve(name), {"completions": [each.completion for each in group]}, low, high)
            began = time.perf_counter()
            scores = trial.reward(**trial.columns)
            taken = (time.perf_counter() - began) / len(group)
            for text, score in zip(group, scores, strict=True):
                yield Result(text, trial, score.value, score.reason or "", taken)


def results(data: Path, seed: int, count: int) -> list[Result]:
    """Return what every reward says of the completions that are drawn."""
    texts = drawn(data, seed, count)
    golds = sorted({text.gold for text in texts if text.gold})
    chance = random.Random(seed)
    found: list[Result] = []
    with Sandbox(workers=1) as sandbox:
        for text in texts:
            others = chance.sample(golds, min(3, len(golds)))
            makers: tuple[Callable[[], Iterator[Trial]], ...] = (
                lambda text=text: of_any(text, sandbox),  # type: ignore[misc]
                lambda text=text: of_instructions(text),  # type: ignore[misc]
                lambda text=text, others=others: of_answers(text, others),  # type: ignore[misc]
            )
            found += [tried(text, trial) for make in makers for trial in make()]
    return [*found, *groups(data, texts)]


def print_table(console: Console, found: Sequence[Result]) -> None:
    """Prints a row for each reward, and names those that no completion allows."""
    by_name: dict[str, list[Result]] = defaultdict(list)
    for result in found:
        by_name[result.trial.name].append(result)
    table = Table(title="what the rewards say; agreement is with the verdicts that the data tell")
    for column in ("reward", "scored", "skipped", "failed", "mean", "ms", "agree", "to read"):
        table.add_column(column, justify="left" if column == "reward" else "right")
    for name, rows in sorted(by_name.items()):
        scores = [row.score for row in rows if row.score is not None]
        failed = sum(row.error for row in rows)
        labelled = [row for row in rows if row.trial.labelled]
        agree = f"{sum(not row.is_odd for row in labelled)}/{len(labelled)}" if labelled else ""
        mean = f"{sum(scores) / len(scores):.3f}" if scores else ""
        spent = f"{1000 * sum(row.seconds for row in rows) / len(rows):.2f}"
        odd = sum(row.is_odd for row in rows)
        table.add_row(name, *map(str, (len(scores), len(rows) - len(scores) - failed, failed, mean, spent, agree, odd)))
    console.print(table)
    tried_names = {name.partition(",")[0] for name in by_name}
    console.print(
        "not tried, for the data have nothing for them:", ", ".join(sorted(set(entry_points()) - tried_names))
    )


def print_odd(console: Console, found: Sequence[Result], names: Sequence[str], full: bool) -> None:
    """Prints what a person should read: of the rewards that are named, or of all."""
    for number, row in enumerate(found):
        if not row.is_odd or (names and row.trial.name.partition(",")[0] not in names):
            continue
        text, trial = row.text, row.trial
        about = {
            name: value for name, value in trial.columns.items() if name not in ("completion", "completions", "sandbox")
        }
        console.rule(f"{number}: {trial.name}: {text.source} {text.place}")
        console.print(f"score {row.score}, expected {trial.lowest} to {trial.highest}: {row.reason}", markup=False)
        console.print(
            f"columns {str(about)[:400]}; label {text.right}, gold {text.gold!r}, given {text.given!r}", markup=False
        )
        said = trial.columns.get("completion", text.completion)
        if not full and len(said) > SHOWN_CHARS:
            said = f"{said[: SHOWN_CHARS // 2]}\n [...] \n{said[-SHOWN_CHARS // 2 :]}"
        console.print(said, markup=False)


def main() -> None:
    """Print the table, and what is to be read where that is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--count", type=int, default=100, help="completions of each data set (default: 100)")
    parser.add_argument("--show", nargs="*", metavar="REWARD", help="print what to read, of these rewards or of all")
    parser.add_argument("--full", action="store_true", help="print the completions in full")
    options = parser.parse_args()
    console = Console(width=150, highlight=False, soft_wrap=True)
    found = results(_data(), options.seed, options.count)
    print_table(console, found)
    odd = Counter(row.trial.labelled for row in found if row.is_odd)
    console.print(f"{len(found)} verdicts; to read: {odd[True]} against a label, {odd[False]} beyond the usual bounds")
    if options.show is not None:
        print_odd(console, found, options.show, options.full)


if __name__ == "__main__":
    main()
