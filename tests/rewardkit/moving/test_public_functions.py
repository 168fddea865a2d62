"""Twenty functions of public projects, told anew in few lines, move in as they are: the project is named at each.

What each shows is the form in which people write such functions, not the project's own text.
"""

# ruff: noqa: B905 - people write zip() without strict=

from __future__ import annotations

import asyncio
import math
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from rewardkit import Reward, Rollout, Runtime
from rewardkit.moving import from_trl, from_verifiers, from_verl


def said(text: str) -> list[dict[str, str]]:
    """Return a completion as messages."""
    return [{"role": "assistant", "content": text}]


# TRL's documentation of GRPO: the length as it is, of plain texts.
def reward_len(completions, **kwargs):
    return [-abs(20 - len(one)) for one in completions]


# TRL's documentation: a format, by a regular expression, of conversations.
def think_format(completions, **kwargs):
    texts = [one[0]["content"] for one in completions]
    return [
        1.0 if re.fullmatch(r"<think>.*?</think>\s*<answer>.*?</answer>", text, re.DOTALL) else 0.0 for text in texts
    ]


# TRL's documentation: a column beside the completions, and what a row is not meant for.
def math_task_only(prompts, completions, task, ground_truth, **kwargs):
    found = []
    for text, kind, truth in zip(completions, task, ground_truth):
        boxed = re.search(r"\\boxed\{(.*?)\}", text)
        found.append((1.0 if boxed and boxed.group(1) == truth else 0.0) if kind == "math" else None)
    return found


# TRL's documentation: an asynchronous reward.
async def asked_elsewhere(prompts, completions, answer, **kwargs):
    async def one(text, truth):
        await asyncio.sleep(0)
        return float(truth in text)

    return await asyncio.gather(*(one(text, truth) for text, truth in zip(completions, answer)))


# TRL's documentation: numbers of one's own in the logs.
def with_metrics(completions, answer, log_metric, log_extra, **kwargs):
    right = [float(text == truth) for text, truth in zip(completions, answer)]
    log_metric("accuracy", sum(right) / len(right))
    log_extra("said", list(completions))
    return right


# Open R1: how many of four tags are there once.
def tag_count(completions, **kwargs):
    tags = ("<think>\n", "\n</think>\n", "\n<answer>\n", "\n</answer>")
    return [sum(0.25 for tag in tags if one[0]["content"].count(tag) == 1) for one in completions]


# Open R1: steps of reasoning, counted.
def reasoning_steps(completions, **kwargs):
    found = (re.findall(r"(Step \d+:|^\d+\.|\n-|First,|Second,|Finally,)", one[0]["content"]) for one in completions)
    return [min(1.0, len(steps) / 3) for steps in found]


# Open R1: made by a function that sets it, a cosine of the length.
def cosine_scaled(longest):
    def cosine_scaled_reward(completions, solution, **kwargs):
        scores = []
        for one, truth in zip(completions, solution):
            text = one[0]["content"]
            way = math.cos(math.pi * min(1.0, len(text) / longest))
            scores.append(0.5 + 0.5 * way if truth in text else -0.5 - 0.5 * way)
        return scores

    return cosine_scaled_reward


# Kimi 1.5's penalty as Open R1 has it: lengths are compared within a group.
def shorter_is_better(completions, **kwargs):
    lengths = [len(one) for one in completions]
    low, high = min(lengths), max(lengths)
    return [0.0 if low == high else 0.5 - (length - low) / (high - low) for length in lengths]


# A widely copied notebook on GSM8K (W. Brown): the answer between XML tags, printed as it trains.
def xml_correct(prompts, completions, answer, **kwargs) -> list[float]:
    replies = [one[0]["content"] for one in completions]
    found = [text.split("<answer>")[-1].split("</answer>")[0].strip() for text in replies]
    print("-" * 20, f"Question:\n{prompts[0][-1]['content']}", f"\nAnswer:\n{answer[0]}", f"\nFound:\n{found[0]}")
    return [2.0 if one == truth else 0.0 for one, truth in zip(found, answer)]


# The same notebook: whether the answer is a whole number.
def whole_number(completions, **kwargs) -> list[float]:
    return [
        0.5 if one[0]["content"].split("<answer>")[-1].split("</answer>")[0].strip().isdigit() else 0.0
        for one in completions
    ]


# Unsloth's notebooks: partial credit by how near the number is.
def near_answer(prompts, completions, answer, **kwargs):
    scores = []
    for one, truth in zip(completions, answer):
        try:
            ratio = float(one[0]["content"].split("=")[-1]) / float(truth)
        except ValueError:
            scores.append(-1.5)
            continue
        scores.append(3.0 if ratio == 1 else 0.5 if 0.9 <= ratio <= 1.1 else -1.0)
    return scores


# A class with a call of its own, as several projects on top of TRL have it.
class Lowercase:
    def __init__(self, weight):
        self.weight = weight

    def __call__(self, completions, **kwargs):
        return [self.weight * sum(map(str.islower, one)) / max(1, len(one)) for one in completions]


# verl, GSM8K: the number behind four hashes.
def hashes(data_source, solution_str, ground_truth, extra_info=None):
    found = re.findall(r"#### (\-?[0-9\.\,]+)", solution_str)
    return 0 if not found else 1.0 if found[-1].replace(",", "") == ground_truth else 0.0


# TinyZero, countdown: the truth is an object, and what is not asked for has a default.
def countdown(solution_str, ground_truth, method="strict", format_score=0.1, score=1.0):
    found = re.search(r"<answer>([-+*/() \d]+)</answer>", solution_str)
    if not found:
        return 0
    numbers = sorted(int(one) for one in re.findall(r"\d+", found.group(1)))
    if numbers != sorted(ground_truth["numbers"]):
        return format_score
    left, right = (int(one) for one in found.group(1).split("+"))
    return score if left + right == ground_truth["target"] else format_score


# Search-R1: several right answers.
def any_target(data_source, solution_str, ground_truth, extra_info=None, format_score=0.0):
    found = re.findall(r"<answer>(.*?)</answer>", solution_str, re.DOTALL)
    return (
        1.0 if found and found[-1].strip().lower() in [one.lower() for one in ground_truth["target"]] else format_score
    )


# DAPO's mathematics in verl: a dictionary with more than the score.
def minerva(data_source, solution_str, ground_truth, extra_info=None):
    found = re.findall(r"(?i)Answer\s*:\s*([^\n]+)", solution_str)
    pred = found[-1].strip() if found else "[INVALID]"
    return {"score": 1.0 if pred == ground_truth else -1.0, "acc": pred == ground_truth, "pred": pred}


# A fork of verl for conversations: each further turn of the assistant costs.
def fewer_turns(data_source, solution_str, ground_truth, extra_info=None):
    info = extra_info or {}
    turns = max(1, sum(one["role"] == "assistant" for one in info.get("messages", [])))
    return {"score": sum(info.get("turn_rewards", [])) - 0.3 * (turns - 1), "assistant_turns": turns}


# EasyR1 and verl's batch manager: lists, by plural names.
def in_batches(data_sources, solution_strs, ground_truths, extra_infos):
    return [{"score": float(text.strip() == truth)} for text, truth in zip(solution_strs, ground_truths)]


# verifiers: a rubric's function with the rubric's parser.
class LastLine:
    def parse_answer(self, completion):
        return completion[-1]["content"].strip().splitlines()[-1]


def parsed_answer(completion, answer, parser, **kwargs) -> float:
    return 1.0 if parser.parse_answer(completion) == answer else 0.0


# verifiers, a word game: what the environment has noted is in the state.
async def few_guesses(completion, state, info, **kwargs) -> float:
    guesses = sum(one["role"] == "assistant" for one in completion)
    return max(0.0, 1 - (guesses - 1) / info["most"]) if state["answer"] in completion[-1]["content"] else 0.0


# verifiers: a group's function.
def own_answer_is_rare(completions, answers) -> list[float]:
    counts = Counter(one[-1]["content"] for one in completions)
    return [1 / counts[one[-1]["content"]] for one in completions]


ONE = "<think>two and two</think>\n<answer>4</answer>"
TAGS = "<think>\na\n</think>\n\n<answer>\n4\n</answer>"
CASES: list[tuple[Callable[[], Reward[..., Any]], Any, Any, dict[str, Any], list[float | None]]] = [
    (lambda: from_trl(reward_len), "q", ["x" * 15, "x" * 20], {}, [-5.0, 0.0]),
    (lambda: from_trl(think_format), said("q"), [said(ONE), said("4")], {}, [1.0, 0.0]),
    (lambda: from_trl(math_task_only), "q", [r"\boxed{4}", "4"], {"task": "math", "ground_truth": "4"}, [1.0, 0.0]),
    (lambda: from_trl(math_task_only), "q", ["x"], {"task": "code", "ground_truth": "4"}, [None]),
    (lambda: from_trl(asked_elsewhere), "q", ["it is 4", "5"], {"answer": "4"}, [1.0, 0.0]),
    (lambda: from_trl(with_metrics), "q", ["4", "5"], {"answer": "4"}, [1.0, 0.0]),
    (lambda: from_trl(tag_count), said("q"), [said(TAGS), said("\n</answer>")], {}, [1.0, 0.25]),
    (
        lambda: from_trl(reasoning_steps),
        said("q"),
        [said("Step 1: a\nStep 2: b\nFinally, c"), said("c")],
        {},
        [1.0, 0.0],
    ),
    (
        lambda: from_trl(cosine_scaled(10)),
        said("q"),
        [said("4"), said("5")],
        {"solution": "4"},
        [0.9755282581475768, -0.9755282581475768],
    ),
    (lambda: from_trl(shorter_is_better, in_groups=True), "q", ["a", "abc"], {}, [0.5, -0.5]),
    (lambda: from_trl(xml_correct), said("q"), [said(ONE), said("5")], {"answer": "4"}, [2.0, 0.0]),
    (lambda: from_trl(whole_number), said("q"), [said(ONE), said("five")], {}, [0.5, 0.0]),
    (
        lambda: from_trl(near_answer),
        said("q"),
        [said("x = 4"), said("= 4.2"), said("no")],
        {"answer": "4"},
        [3.0, 0.5, -1.5],
    ),
    (lambda: from_trl(Lowercase(2.0)), "q", ["ab", "aB"], {}, [2.0, 1.0]),
    (
        lambda: from_verl(hashes),
        "q",
        ["so\n#### 1,200", "1200"],
        {"reward_model": {"style": "rule", "ground_truth": "1200"}},
        [1.0, 0.0],
    ),
    (
        lambda: from_verl(countdown),
        "q",
        ["<answer>3 + 4</answer>", "<answer>3 + 3</answer>", "7"],
        {"ground_truth": {"target": 7, "numbers": [3, 4]}},
        [1.0, 0.1, 0.0],
    ),
    (
        lambda: from_verl(any_target),
        "q",
        ["<answer> paris</answer>", "Paris"],
        {"reward_model": '{"ground_truth": {"target": ["Paris", "Lutetia"]}}'},
        [1.0, 0.0],
    ),
    (lambda: from_verl(minerva, ground_truth="solution"), "q", ["Answer: 4", "4"], {"solution": "4"}, [1.0, -1.0]),
    (
        lambda: from_verl(fewer_turns),
        "q",
        ["done"],
        {"answer": "", "extra_info": {"messages": [*said("a"), *said("b")], "turn_rewards": [1, -1]}},
        [-0.3],
    ),
    (lambda: from_verl(in_batches), "q", [" 4", "5"], {"answer": "4"}, [1.0, 0.0]),
    (
        lambda: from_verifiers(parsed_answer, objects={"parser": LastLine()}),
        said("q"),
        [said("so\n4"), said("5")],
        {"answer": "4"},
        [1.0, 0.0],
    ),
    (
        lambda: from_verifiers(few_guesses),
        said("q"),
        [[*said("crane"), *said("crate")], said("crane")],
        {"answer": "crate", "info": '{"most": 6}'},
        [1 - 1 / 6, 0.0],
    ),
    (
        lambda: from_verifiers(own_answer_is_rare),
        said("q"),
        [said("a"), said("a"), said("b")],
        {"answer": ""},
        [0.5, 0.5, 1.0],
    ),
]


@pytest.mark.parametrize("at", range(len(CASES)))
def test_a_public_function_moves_in_as_it_is(at: int) -> None:
    """Each gives the scores that it gives in its own tool, and a row that it is not meant for is skipped."""
    make, prompt, completions, row, expected = CASES[at]
    reward = make()
    with Runtime([reward], lane="inline") as runtime:
        outcomes = runtime.score([Rollout(prompt, one, row) for one in completions])[reward.name]
    assert [one.error for one in outcomes] == [None] * len(expected)
    assert [one.score for one in outcomes] == pytest.approx(expected)


def test_all_of_them_reach_a_worker() -> None:
    """They run in processes of their own as any reward does, also those made by a function or of an object."""
    rewards = [make().with_options(name=f"case {at}") for at, (make, *_) in enumerate(CASES)]
    row = dict.fromkeys(("answer", "solution", "task", "ground_truth"), "4")
    with Runtime(rewards, workers=1) as runtime:
        runtime.wait_loaded()
        batch = runtime.score([Rollout("q", "x" * 15, row)])
    assert batch["case 0"][0].score == -5.0


def test_what_a_function_tells_the_trainer_is_kept() -> None:
    """Numbers become metrics, and columns for the trainer's table of completions are in the logs."""
    with Runtime([from_trl(with_metrics)], lane="inline") as runtime:
        (outcome,) = runtime.score([Rollout("q", "4", {"answer": "4"})])["with_metrics"]
    assert dict(outcome.metrics) == {"accuracy": 1.0}
    assert "said: 4" in outcome.logs


def test_what_verl_logs_beside_the_score_is_kept() -> None:
    """The other numbers of a dictionary become metrics, and its texts the reason."""
    with Runtime([from_verl(minerva)], lane="inline") as runtime:
        (outcome,) = runtime.score([Rollout("q", "Answer: 4", {"answer": "4"})])["minerva"]
    assert (dict(outcome.metrics), outcome.reason) == ({"acc": 1.0}, "pred: 4")
