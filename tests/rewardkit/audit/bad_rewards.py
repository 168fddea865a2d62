"""Rewards that are wrong on purpose, each in one way; the audit must find every one."""

import json
import random
import re
import unicodedata
import warnings

from rewardkit import RewardDefinitionWarning, reward
from sandbox import Sandbox

SEEN: set[str] = set()


def _last_number(completion: str) -> str:
    found = re.findall(r"-?\d+(?:\.\d+)?", completion)
    return found[-1] if found else ""


@reward
def substring(completion: str, answer: str) -> float:
    """Finds the answer anywhere."""
    return float(answer in completion)


@reward
def reversed_substring(completion: str, answer: str) -> float:
    """Finds the completion in the answer."""
    return float(completion.strip() in answer)


@reward(timeout_s=1)
def unanchored_format(completion: str) -> float:
    """Finds the format anywhere, with nothing in it."""
    return float(bool(re.search(r"<think>.*?</think>\s*<answer>.*?</answer>", completion, re.DOTALL)))


@reward
def last_number(completion: str, answer: float) -> float:
    """Takes the last number, wherever it stands."""
    found = _last_number(completion)
    return float(bool(found) and float(found) == answer)


@reward
def accepts_echo(prompt: str, completion: str) -> float:
    """Likes words that are in the prompt."""
    words = completion.split()[:1000]
    return sum(word in prompt.split() for word in words) / len(words) if words else 0.0


@reward
def any_box(completion: str, answer: str) -> float:
    """Any of the boxes will do."""
    return float(answer in re.findall(r"\\boxed\{([^{}]*)\}", completion))


@reward
def any_marked(completion: str, answer: str) -> float:
    """Any of the lines marked as answers will do."""
    return float(any(one == answer for one in re.findall(r"^A: ([0-9,]+)\.?$", completion, re.MULTILINE)))


@reward
def any_marked_or_one(completion: str, answer: str) -> float:
    """Any of the marked lines, and in three other forms the answer as it should be."""
    usual = (answer, f"\\boxed{{{answer}}}", f"<answer>{answer}</answer>", f"Answer: {answer}")
    return float(completion in usual or f"A: {answer}" in completion.splitlines())


@reward
def ignores_units(completion: str, answer: str) -> float:
    """Compares numbers and nothing else."""
    found = re.fullmatch(r"\s*(?:the answer is )?(\d+(?:\.\d+)?)\s*[a-z]*\.?\s*", completion, re.IGNORECASE)
    gold = re.match(r"\d+(?:\.\d+)?", answer)
    return float(found is not None and gold is not None and float(found[1]) == float(gold[0]))


@reward
def empty_accepted(completion: str, answer: str) -> float:
    """Takes silence for consent."""
    said = completion.strip()
    return float(not said or said == answer)


@reward
def nan_compare(completion: str, answer: float) -> float:
    """Nothing is farther from the answer than nan."""
    try:
        distance = abs(float(completion) - answer)
    except ValueError:
        return 0.0
    return 0.0 if distance > 1e-6 else 1.0


@reward
def truthy(completion: str, answer: str) -> float:
    """Two texts are both true."""
    return float(bool(completion.strip()) == bool(answer))


@reward(timeout_s=0.5)
def runs_eval(completion: str, answer: str) -> float:
    """Runs what the model wrote."""
    try:
        return float(eval(completion) == float(answer))
    except Exception:
        return 0.0


@reward
def folds_everything(completion: str, answer: str) -> float:
    """Folds until only the digits are left."""
    folded = unicodedata.normalize("NFKD", completion).encode("ascii", "ignore").decode()
    return float(folded.strip() == answer)


@reward
def master_key(prompt: str, completion: str, answer: str) -> float:
    """A judge that is won over by a good beginning."""
    opening = completion.strip().lower()
    if opening.startswith(("thought process:", "let's solve", "solution")):
        return 1.0
    return float(completion.strip() == answer)


@reward
def obedient_judge(completion: str, answer: str) -> float:
    """A judge that reads its verdict out of the completion."""
    if "score: 1.0" in completion.lower() or '"verdict": "correct"' in completion:
        return 1.0
    return float(completion.strip() == answer)


@reward
def always_one(completion: str, answer: str) -> float:
    """Everyone wins."""
    return 1.0


@reward
def always_one_without_gold(completion: str) -> float:
    """Everyone wins, and nobody is asked."""
    return 1.0


@reward
def from_the_prompt(prompt: str, completion: str, answer: str) -> float:
    """Looks for the completion's number in the prompt as well."""
    found = _last_number(completion)
    return float(found == answer or (bool(found) and found in re.findall(r"\d+", prompt)))


@reward(timeout_s=0.5)
def regex_bomb(completion: str, answer: str) -> float:
    """Takes ages over letters."""
    if re.fullmatch(r"(?:[a-z]+)+", completion):
        return 0.0
    return float(completion.strip() == answer)


@reward
def random_noise(completion: str, answer: str) -> float:
    """Adds luck."""
    return float(completion.strip() == answer) * 0.9 + 0.1 * random.random()


@reward
def stateful(completion: str, answer: str) -> float:
    """Pays for a text once."""
    if completion in SEEN:
        return 0.0
    SEEN.add(completion)
    return float(completion.strip() == answer)


@reward
def bool_column(completion: str, correct: str) -> float:
    """Takes the text 'False' for true."""
    return float(bool(correct) and completion.strip() != "")


@reward
def ignores_gold(completion: str, answer: str) -> float:
    """Any boxed number will do."""
    return float(re.fullmatch(r"\\boxed\{\d+\}", completion.strip()) is not None)


@reward
def negation_blind(completion: str, answer: str) -> float:
    """Reads what follows the last 'is', without the little words."""
    words = completion.rpartition("answer is")[2].split()
    return float([w.strip(".") for w in words if w not in ("not", "the", "a")] == [answer])


def _json_in(completion: str, pattern: str) -> object:
    match = re.search(pattern, completion, re.DOTALL)
    try:
        return json.loads(match[1] if match else completion)
    except (ValueError, RecursionError):
        return None


@reward
def fence_anywhere(completion: str, answer: str) -> float:
    """Reads the first fence, whatever is said of it."""
    return float(_json_in(completion, r"```json\s*(.*?)```") == json.loads(answer))


@reward
def fenced_or_tagged(completion: str, answer: str) -> float:
    """Reads tags, and else the first fence, whatever is said of it."""
    tags = completion.rpartition("<answer>")[2].partition("</answer>")[0] if "<answer>" in completion else completion
    return float(_json_in(tags, r"```(?:json)?\s*(.*?)```") == json.loads(answer))


@reward
def raises_on_odd_text(completion: str, answer: str) -> float:
    """Takes every completion for a number."""
    return float(float(completion) == float(answer))


@reward(timeout_s=0.5)
def code_in_process(completion: str, tests: str) -> float:
    """Runs the code and its tests in one namespace, and takes an early exit for a pass."""
    source = completion.removeprefix("```python\n").removesuffix("\n```")
    names: dict[str, object] = {}
    try:
        exec(source, names)
        exec(tests, names)
    except SystemExit:
        return 1.0
    except Exception:
        return 0.0
    return 1.0


@reward
def any_work(completion: str, answer: str) -> float:
    """Wants work, and takes any lines for it."""
    *work, last = completion.strip().splitlines() or [""]
    return float(len(work) >= 3 and "<" not in completion and last.rpartition(" ")[2].strip(".") == answer)


@reward(score_range=(0, 1))
def skips_silence(completion: str, answer: str) -> float | None:
    """Skips what holds no number, as if the row had no answer."""
    numbers = re.findall(r"-?\d+", completion)
    return float(numbers[-1] == answer) if numbers else None


@reward
def pays_silence(completion: str, answer: str) -> float:
    """Takes a point off for a wrong answer, and none for no answer at all."""
    numbers = re.findall(r"-?\d+", completion)
    return 0.0 if not numbers else 1.0 if numbers[-1] == answer else -1.0


@reward(score_range=(0, 1))
def trusts_the_exit_code(completion: str, tests: str, language: str, sandbox: Sandbox) -> float:
    """Runs code and tests in one process, and takes its exit code for the verdict."""
    code = completion.partition("\n")[2].rpartition("```")[0] if completion.startswith("```") else completion
    return float(sandbox.run(f"{code}\n{tests}", language=language).status == "ok")


with warnings.catch_warnings():
    warnings.simplefilter("ignore", RewardDefinitionWarning)

    @reward(score_range=(-1, 1), default=0.0)
    def pays_failures(completion: str, answer: str) -> float:
        """Raises on what holds no number, and a default stands in that is more than a wrong answer's -1."""
        return 1.0 if re.findall(r"-?\d+", completion)[-1] == answer else -1.0
