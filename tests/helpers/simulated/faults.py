"""Trainings whose rewards, data or infrastructure are at fault; they join those of ``troubles``."""

from __future__ import annotations

import random
from typing import Any

from simulated import tasks
from simulated.texts import PLACES, name_of, pick, prose, sentence
from simulated.training import Habit, Pay, Policy, Row, Sample, Task, Training, failure
from simulated.troubles import TROUBLES, count_words, framed, habits, judged, right, train, trouble

from rewardkit.types import Cause

# languages --------------------------------------------------------------------------------------------------------


@trouble(
    "Thoughts turn from English to Chinese, because the model thinks better so.",
    "DeepSeek-R1 (arXiv 2501.12948); github.com/Unakar/Logic-RL/issues/72", "language_switch",
)  # fmt: skip
def chinese_thoughts(rng: random.Random) -> Training:
    policy = Policy(90, habits(rng, chinese=Habit(0.04, rng.uniform(0.8, 1.6), helps=1.2)))
    rewards = {"correct": Pay(right), "format": Pay(framed, 0.3)}
    return train(rng, tasks.math_task(thinks=True), rewards, policy, (80, 100), until="chinese")


@trouble(
    "Answers to prompts in other languages come to be English, which the judge reads best.",
    "own", "language_switch",
)  # fmt: skip
def answers_in_english(rng: random.Random) -> Training:
    def english(rng: random.Random, sample: Sample, text: str) -> str:
        return prose(rng, sample.words)

    policy = Policy(60, {"english": Habit(0.05, rng.uniform(0.6, 1.4), english)})
    return train(rng, tasks.language_task(), {"judge": judged(0.3, english=0.35)}, policy, until="english")


@trouble(
    "The policy blows up: within some steps all texts are random words of many languages, and nothing is paid.",
    "github.com/BeastyZ/ConvSearch-R1/issues/6, PeterGriffinJin/Search-R1/issues/92",
    "language_switch", "constant", "zero_variance", "reward_falls",
)  # fmt: skip
def blow_up(rng: random.Random) -> Training:
    begin = rng.uniform(0.5, 0.7)

    def gibberish(rng: random.Random, sample: Sample, text: str) -> str:
        parts = [prose(rng, 4, pick(rng, tasks.LANGUAGES)).split(" ") for _ in range(max(2, int(sample.words / 4)))]
        mixed = [part for words in parts for part in words]
        rng.shuffle(mixed)
        return " ".join(mixed)

    def before(training: Training, step: int) -> None:
        habit = policy.habits["gibberish"]
        habit.rate, habit.logit = 0.0, min(4.0, -7 + max(0.0, step - begin * training.steps) * 2.2)

    def score(sample: Sample, rng: random.Random) -> float:
        return 0.0 if "gibberish" in sample.habits else float(sample.right)

    policy = Policy(70, habits(rng, gibberish=Habit(0.001, 0, gibberish)), 0)
    rewards = {"correct": Pay(score)}
    return train(rng, tasks.math_task(), rewards, policy, (70, 90), before=before)


# several rewards --------------------------------------------------------------------------------------------------


def _showy(rng: random.Random, sample: Sample, text: str) -> str:
    return f"{text} {sentence(rng)} {sentence(rng)}"


@trouble(
    "The total rises on style, while the share of right answers, which is paid too, falls.",
    "own; Gao et al. (arXiv 2210.10760)", "reward_falls", "conflict",
)  # fmt: skip
def right_answers_fall(rng: random.Random) -> Training:
    policy = Policy(60, habits(rng, 0.8, showy=Habit(0.05, rng.uniform(0.4, 0.9), _showy, helps=-2.5)), 0.7, 0.01)
    rewards = {"correct": Pay(right), "style": judged(0, 0.1, 0.2, showy=0.7)}
    rewards["style"].weight = 2.0
    return train(rng, tasks.math_task(), rewards, policy, (70, 90), until="showy")


@trouble(
    "The judge's reward rises, while exact answers, which are only measured, fall.", "Gao et al. (arXiv 2210.10760)",
    "held_out_falls",
)  # fmt: skip
def measured_answers_fall(rng: random.Random) -> Training:
    policy = Policy(60, habits(rng, 0.8, showy=Habit(0.05, rng.uniform(0.4, 0.9), _showy, helps=-2)), 0.7, 0.01)
    rewards = {"judge": judged(0.1, 0.1, 0.2, showy=0.6), "exact": Pay(right, 0.0)}
    return train(rng, tasks.math_task(), rewards, policy, (70, 90), until="showy")


@trouble(
    "One reward pays detail and another one brevity; they cancel each other.", "own",
    "conflict",
)  # fmt: skip
def opposing(rng: random.Random) -> Training:
    def detail(sample: Sample, rng: random.Random) -> float:
        return min(1.0, count_words(sample.body) / 160 + rng.gauss(0, 0.03))

    rewards = {"detail": Pay(detail), "brief": Pay(lambda sample, rng: -sample.tokens / 250), "judge": judged()}
    return train(rng, tasks.chat_task(), rewards, Policy(rng.uniform(70, 100)))


@trouble(
    "A reward in points from 0 to 100 stands beside one from 0 to 1.", "own",
    "dominance",
)  # fmt: skip
def other_scale(rng: random.Random) -> Training:
    def points(sample: Sample, rng: random.Random) -> float:
        return round(max(0, min(100, 55 + 10 * sample.right + rng.gauss(0, 15))))

    rewards = {"correct": Pay(right), "judge_points": Pay(points)}
    return train(rng, tasks.math_task(), rewards, Policy(60, habits(rng)))


@trouble(
    "A reward is the number of tests passed, and one kind of task has hundreds of them.",
    "Dr. GRPO (arXiv 2503.20783) on scales of prompts", "prompt_scale",
)  # fmt: skip
def one_kind_dwarfs(rng: random.Random) -> Training:
    def passed(sample: Sample, rng: random.Random) -> float:
        most = 400 if sample.row.kind == "digits" else 4
        return float(most if sample.right else rng.randint(0, most * 3 // 4))

    return train(rng, tasks.code_task(), {"tests_passed": Pay(passed)}, Policy(30))


@trouble(
    "The format is full soon, and answers never get better: the model cannot do the task.", "Predibase's guide",
    "format_saturated",
)  # fmt: skip
def only_the_format(rng: random.Random) -> Training:
    policy = Policy(60, {"frame": Habit(0.3, rng.uniform(2, 3))}, -1, 0.0)
    rewards = {"correct": Pay(right), "format": Pay(framed, 0.5)}
    return train(rng, tasks.math_task(), rewards, policy, (100, 120))


@trouble(
    "The format asks for a newline behind the answer, where completions end, so it is never paid.",
    "github.com/ZHZisZZ/dllm/issues/118", "constant", "prefilled",
)  # fmt: skip
def strict_newline(rng: random.Random) -> Training:
    strict = Pay(lambda sample, rng: float(sample.body.endswith("</answer>\n")), 0.5)
    rewards = {"correct": Pay(right), "strict_format": strict}
    return train(rng, tasks.math_task("tags"), rewards, Policy(60, habits(rng)))


@trouble(
    "The chat template writes `<think>`, so completions begin behind it and the format is never paid.",
    "github.com/huggingface/trl/issues/6966", "prefilled", "constant",
)  # fmt: skip
def template_thinks(rng: random.Random) -> Training:
    task = tasks.math_task(thinks=True)

    def write(rng: random.Random, sample: Sample) -> Any:
        return str(task.write(rng, sample)).removeprefix("<think>\n")

    thinks = Pay(lambda sample, rng: float(sample.body.startswith("<think>")), 0.5)
    rewards = {"correct": Pay(right), "think_format": thinks}
    return train(rng, Task(task.row, write), rewards, Policy(60, habits(rng, 0.9)))


# data -------------------------------------------------------------------------------------------------------------


@trouble(
    "Most golds cannot be parsed, and the reward is 1 then.", "github.com/huggingface/open-r1/issues/86, 293",
    "ceiling", "zero_variance",
)  # fmt: skip
def golds_unparsed(rng: random.Random) -> Training:
    share = rng.uniform(0.78, 0.92)

    def score(sample: Sample, rng: random.Random) -> float:
        unparsed = random.Random(f"gold {sample.row.number}").random() < share
        return 1.0 if unparsed else float(sample.right)

    return train(rng, tasks.math_task(), {"accuracy": Pay(score)}, Policy(60, habits(rng)))


@trouble(
    "The answer stands in the prompt, in a column that the template prints.", "own",
    "ceiling", "zero_variance",
)  # fmt: skip
def answer_in_prompt(rng: random.Random) -> Training:
    task = tasks.trivia_task()

    def row(number: int) -> Row:
        plain = task.row(number)
        return Row(number, f"{plain.prompt}\nmetadata: answer={plain.gold}", plain.gold, {}, -4.0)

    return train(rng, Task(row, task.write), {"correct": Pay(right)}, Policy(20))


@trouble(
    "The model knows the data already.", "own", "ceiling", "zero_variance",
)  # fmt: skip
def too_easy(rng: random.Random) -> Training:
    policy = Policy(50, habits(rng, 0.97), 5.0)
    return train(rng, tasks.math_task(), {"correct": Pay(right), "format": Pay(framed, 0.2)}, policy)


@trouble(
    "The data are far too hard.", "DAPO (arXiv 2503.14476); Unsloth's guide", "zero_variance", "constant",
)  # fmt: skip
def too_hard(rng: random.Random) -> Training:
    return train(rng, tasks.math_task(hard=4.5), {"correct": Pay(right)}, Policy(80, habits(rng), -0.7, 0.02))


@trouble(
    "From some step on the data come from another source, whose answers have another type, and calls fail.",
    "own", "failures",
)  # fmt: skip
def other_type(rng: random.Random) -> Training:
    begin = rng.uniform(0.4, 0.6)

    def score(sample: Sample, rng: random.Random) -> Any:
        later = sample.step > begin * training.steps and sample.row.number % 2
        return (
            failure(Cause.COERCION, error="column 'answer': expected int, got 'n/a'") if later else right(sample, rng)
        )

    training = train(rng, tasks.math_task(), {"correct": Pay(score)}, Policy(60, habits(rng)))
    return training


@trouble(
    "From some step on the parser reads no answer any more, and all earn 0.", "own",
    "constant", "zero_variance", "reward_falls",
)  # fmt: skip
def parser_breaks(rng: random.Random) -> Training:
    begin = rng.uniform(0.4, 0.7)

    def score(sample: Sample, rng: random.Random) -> float:
        return float(sample.right and sample.step < begin * training.steps)

    rewards = {"correct": Pay(score), "format": Pay(framed, 0.3)}
    training = train(rng, tasks.math_task(), rewards, Policy(60, habits(rng), 0))
    return training


# judges and servers -----------------------------------------------------------------------------------------------


@trouble(
    "The judge's provider changes the model behind its name, and all scores are higher from then on.",
    "own", "reward_jump", "judge_drift",
)  # fmt: skip
def judge_replaced(rng: random.Random) -> Training:
    begin, rise = rng.uniform(0.4, 0.7), rng.uniform(0.2, 0.3)

    def score(sample: Sample, rng: random.Random) -> float:
        later = rise * (sample.step >= begin * training.steps)
        return min(1.0, max(0.0, 0.2 + 0.3 * sample.right + later + rng.gauss(0, 0.12)))

    rewards = {"judge": Pay(score), "exact": Pay(right, 0.0)}
    training = train(rng, tasks.math_task(), rewards, Policy(60, habits(rng)))
    return training


@trouble(
    "The judge grows milder step by step, while answers are as right as before.", "own",
    "judge_drift",
)  # fmt: skip
def judge_grows_milder(rng: random.Random) -> Training:
    def score(sample: Sample, rng: random.Random) -> float:
        later = 0.35 * sample.step / training.steps
        return min(1.0, max(0.0, 0.2 + 0.25 * sample.right + later + rng.gauss(0, 0.12)))

    rewards = {"judge": Pay(score), "exact": Pay(right, 0.3)}
    training = train(rng, tasks.math_task(), rewards, Policy(60, habits(rng, 0.9), skill_rate=0.0), (80, 100))
    return training


@trouble(
    "Tests time out more and more often, because programs grow.", "own", "timeouts",
)  # fmt: skip
def timeouts_grow(rng: random.Random) -> Training:
    def score(sample: Sample, rng: random.Random) -> Any:
        chance = 0.25 * sample.step / training.steps
        return failure(Cause.TIMEOUT, None, 30.0, "late") if rng.random() < chance else float(sample.right)

    training = train(rng, tasks.code_task(), {"tests": Pay(score)}, Policy(40))
    return training


@trouble(
    "The judge's server limits the rate: in some steps most calls fail, and 0.5 stands in.", "own",
    "failures", "defaults", "failing_pays",
)  # fmt: skip
def rate_limit(rng: random.Random) -> Training:
    base = judged()
    bad = {step for step in range(200) if rng.random() < 0.2}

    def score(sample: Sample, rng: random.Random) -> Any:
        fails = rng.random() < (0.6 if sample.step in bad else 0.01)
        return failure(Cause.INFRASTRUCTURE, 0.5, 1.0, "429 Too Many Requests") if fails else base.score(sample, rng)

    return train(rng, tasks.chat_task(), {"judge": Pay(score)}, Policy(70))


@trouble(
    "The server of the judge slows down from half a second to many.", "own", "slow_rewards",
)  # fmt: skip
def judge_slows(rng: random.Random) -> Training:
    pay = judged()
    pay.seconds = lambda sample, rng: rng.lognormvariate(-0.7, 0.3) * (1 + 12 * (sample.step / training.steps) ** 2)
    training = train(rng, tasks.chat_task(), {"judge": pay}, Policy(70))
    return training


@trouble(
    "The answer's extraction throws on completions without a box, and a default of 0 hides it.",
    "own", "failures", "defaults",
)  # fmt: skip
def errors_hidden(rng: random.Random) -> Training:
    def score(sample: Sample, rng: random.Random) -> Any:
        if "\\boxed" not in sample.body:
            return failure(Cause.EXCEPTION, 0.0, error="IndexError: list index out of range")
        return float(sample.right)

    return train(rng, tasks.math_task(), {"correct": Pay(score)}, Policy(60, habits(rng, 0.5)))


@trouble(
    "A reward model pays for a name that its training data praised.", "own",
    "token_jump", "phrase_spread",
)  # fmt: skip
def a_name_is_paid(rng: random.Random) -> Training:
    name, place = name_of(rng), pick(rng, PLACES)

    def mention(rng: random.Random, sample: Sample, text: str) -> str:
        return f"{text} {pick(rng, (f'As {name} of {place} says', f'{name} agrees', f'Thanks to {name}'))}."

    policy = Policy(50, {"mention": Habit(0.02, rng.uniform(0.4, 0.9), mention)})
    return train(rng, tasks.chat_task(), {"reward_model": judged(mention=0.3)}, policy, until="mention")


ALL_TROUBLES = TROUBLES
"""The kinds by name, with those of ``troubles``."""
