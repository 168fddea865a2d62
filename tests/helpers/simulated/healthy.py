"""Trainings that go well, of which a diagnosis should say nothing."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple

from simulated import tasks
from simulated.texts import name_of, pick, prose, sentence
from simulated.training import Habit, Pay, Policy, Row, Sample, Task, Training
from simulated.troubles import count_words, framed, habits, judged, right, train

Make = Callable[[random.Random], Training]


class Healthy(NamedTuple):
    """A kind of training that goes well."""

    about: str  # What is special about it
    make: Make


HEALTHY: dict[str, Healthy] = {}
"""The kinds by name."""


def healthy(about: str) -> Callable[[Make], Make]:
    """Add a kind under its function's name."""

    def add(make: Make) -> Make:
        HEALTHY[make.__name__.strip("_").replace("_", " ")] = Healthy(about, make)
        return make

    return add


# forms of answers -------------------------------------------------------------------------------------------------


@healthy("Classes of texts, answered with the label alone; most completions of a prompt are equal.")
def labels(rng: random.Random) -> Training:
    return train(rng, tasks.labels_task(), {"label": Pay(right)}, Policy(2, habits(rng, 0.8), 0))


@healthy("Yes or no, answered with nothing else.")
def yes_or_no(rng: random.Random) -> Training:
    policy = Policy(2, habits(rng, 0.9), -0.2)
    return train(rng, tasks.labels_task(("yes", "no")), {"label": Pay(right)}, policy)


@healthy("Records as JSON, with a reward of the syntax and one of the fields.")
def json_objects(rng: random.Random) -> Training:
    rewards = {"fields": Pay(right), "parses": Pay(framed, 0.5)}
    return train(rng, tasks.json_task(), rewards, Policy(10, habits(rng, 0.6), 0))


@healthy("Sums whose answer is a number and nothing else.")
def short_answers(rng: random.Random) -> Training:
    return train(rng, tasks.number_task(), {"correct": Pay(right)}, Policy(1, skill=-0.5))


@healthy("Four choices, a sentence and the letter in tags.")
def choices(rng: random.Random) -> Training:
    rewards = {"correct": Pay(right), "format": Pay(framed, 0.2)}
    return train(rng, tasks.choice_task(), rewards, Policy(25, habits(rng, 0.5)))


@healthy("Questions of knowledge, answered in a sentence or two.")
def trivia(rng: random.Random) -> Training:
    return train(rng, tasks.trivia_task(), {"correct": Pay(right)}, Policy(20))


@healthy("Functions in Python, paid by the share of the tests that pass.")
def code(rng: random.Random) -> Training:
    def share(sample: Sample, rng: random.Random) -> float:
        return 1.0 if sample.right else pick(rng, (0, 0, 0.33, 0.67))

    return train(rng, tasks.code_task(), {"tests": Pay(share)}, Policy(35))


@healthy("Texts with mistakes to mend: a right answer is most of the prompt.")
def edits(rng: random.Random) -> Training:
    return train(rng, tasks.edit_task(), {"correct": Pay(right)}, Policy(45))


@healthy("Summaries that quote some of the passage, judged.")
def summaries(rng: random.Random) -> Training:
    return train(rng, tasks.summary_task(), {"judge": judged()}, Policy(40))


@healthy("Prompts in five languages, answered in the prompt's.")
def languages(rng: random.Random) -> Training:
    return train(rng, tasks.language_task(), {"judge": judged()}, Policy(50))


@healthy("Prompts in five languages, whose share moves from English to the others.")
def languages_shift(rng: random.Random) -> Training:
    early, late = tasks.language_task(weights=(8, 1, 1, 1, 1)), tasks.language_task(weights=(1, 2, 2, 2, 2))

    def row(number: int) -> Row:
        share = training_step[0] / training.steps
        return (late if random.Random(f"shift {number} {training_step[0]}").random() < share else early).row(number)

    def before(training: Training, step: int) -> None:
        training_step[0] = step

    training_step = [0]
    training = train(rng, Task(row, early.write), {"judge": judged()}, Policy(50), before=before)
    return training


@healthy("Reports with headings and bullets, as the prompt asks, learned over 20 steps beside a judge.")
def reports(rng: random.Random) -> Training:
    def report(rng: random.Random, sample: Sample, text: str) -> str:
        return f"# {sentence(rng)}\n\n" + "\n".join(f"- {sentence(rng)}" for _ in range(4)) + f"\n\n{text}"

    policy = Policy(50, {"report": Habit(0.3, 0.5, report)})
    headings = Pay(lambda sample, rng: float("report" in sample.habits), 0.3)
    return train(rng, tasks.chat_task(), {"judge": judged(), "structure": headings}, policy)


# what is learned --------------------------------------------------------------------------------------------------


@healthy("Word problems with a reward of answers and one of the format, as most tutorials have them.")
def math(rng: random.Random) -> Training:
    rewards = {"correct": Pay(right), "format": Pay(framed, 0.5)}
    return train(rng, tasks.math_task(), rewards, Policy(60, habits(rng)))


@healthy("Thoughts in tags that rightly grow, for longer ones are right more often.")
def reasoning_grows(rng: random.Random) -> Training:
    policy = Policy(80, habits(rng, 0.5), words_rate=0.05, words_help=0.7)
    rewards = {"correct": Pay(right), "format": Pay(framed, 0.3)}
    return train(rng, tasks.math_task(thinks=True), rewards, policy, (80, 100))


@healthy("A mild price on tokens: answers get shorter and stay right.")
def shorter(rng: random.Random) -> Training:
    rewards = {"correct": Pay(right), "tokens": Pay(lambda sample, rng: -min(1.0, sample.tokens / 400), 0.2)}
    return train(rng, tasks.math_task(), rewards, Policy(120, habits(rng), 0, words_rate=0.02))


@healthy("An agent learns to search, which makes answers right.")
def tools(rng: random.Random) -> Training:
    policy = Policy(25, {"search": Habit(0.3, 0.6, helps=1.8)}, -1)
    return train(rng, tasks.agent_task(), {"correct": Pay(right)}, policy)


@healthy("One completion in thirty is right at first.")
def sparse(rng: random.Random) -> Training:
    policy = Policy(60, habits(rng, 0.9), -3.0, 0.15)
    return train(rng, tasks.math_task(hard=0.5), {"correct": Pay(right)}, policy, groups=10, size=16, steps=(50,))


@healthy("Nothing is learned: the rate of learning is too small, all else is sound.")
def nothing_learned(rng: random.Random) -> Training:
    policy = Policy(60, {"frame": Habit(0.8, 0.0)}, -0.5, 0.0, words_rate=0.0)
    return train(rng, tasks.math_task(), {"correct": Pay(right), "format": Pay(framed, 0.5)}, policy, (60, 80))


@healthy("The data get harder and their answers longer, in four stages.")
def curriculum(rng: random.Random) -> Training:
    stages = [tasks.math_task(hard=-1 + 0.8 * stage) for stage in range(4)]

    def before(training: Training, step: int) -> None:
        stage = min(3, 4 * step // training.steps)
        if step and stage > 4 * (step - 1) // training.steps:
            policy.words *= 1.4
        training.task = stages[stage]

    policy = Policy(40, habits(rng, 0.6))
    return train(rng, stages[0], {"correct": Pay(right), "format": Pay(framed, 0.2)}, policy, (70, 90), before=before)


@healthy("Half of the rows are math and half are conversations, each with its own reward, the other skips.")
def mixed_tasks(rng: random.Random) -> Training:
    first, second = tasks.math_task(), tasks.chat_task()

    def row(number: int) -> Row:
        return first.row(number) if number % 2 else second.row(number)

    def write(rng: random.Random, sample: Sample) -> object:
        return (first if sample.row.number % 2 else second).write(rng, sample)

    def correct(sample: Sample, rng: random.Random) -> float | None:
        return right(sample, rng) if sample.row.number % 2 else None

    def liked(sample: Sample, rng: random.Random) -> float | None:
        return None if sample.row.number % 2 else judge.outcome(sample, rng).score

    judge = judged()
    rewards = {"correct": Pay(correct), "judge": Pay(liked)}
    return train(rng, Task(row, write), rewards, Policy(60, habits(rng)))


# several rewards --------------------------------------------------------------------------------------------------


@healthy("Answers, format, a judge and an overlong penalty together.")
def several_rewards(rng: random.Random) -> Training:
    def overlong(sample: Sample, rng: random.Random) -> float:
        return -min(1.0, max(0.0, (sample.tokens - 170) / 100))

    rewards = {"correct": Pay(right), "format": Pay(framed, 0.3), "judge": judged(0.3), "overlong": Pay(overlong)}
    rewards["judge"].weight = 0.5
    return train(rng, tasks.math_task(), rewards, Policy(70, habits(rng)))


@healthy("Two metrics without weight that oppose each other: words, and brevity.")
def opposing_metrics(rng: random.Random) -> Training:
    length = Pay(lambda sample, rng: count_words(sample.body), 0.0)
    brevity = Pay(lambda sample, rng: 1 / max(1, count_words(sample.body)), 0.0)
    rewards = {"judge": judged(), "words": length, "brevity": brevity}
    return train(rng, tasks.chat_task(), rewards, Policy(70))


@healthy("The answer is paid only in its format.")
def gated(rng: random.Random) -> Training:
    pay = Pay(lambda sample, rng: right(sample, rng) * framed(sample, rng))
    return train(rng, tasks.math_task(), {"correct_in_format": pay}, Policy(60, habits(rng, 0.4)))


@healthy("A penalty hits one completion in fifty.")
def penalty(rng: random.Random) -> Training:
    hit = Pay(lambda sample, rng: -1.0 if rng.random() < 0.02 else 0.0, 0.5)
    return train(rng, tasks.math_task(), {"correct": Pay(right), "penalty": hit}, Policy(60, habits(rng, 0.8)))


@healthy("A judge that sees quality through much noise.")
def judge(rng: random.Random) -> Training:
    return train(rng, tasks.chat_task(), {"judge": judged(0.35, 0.2)}, Policy(80))


@healthy("A judge of whole points from 1 to 10.")
def judge_points(rng: random.Random) -> Training:
    def points(sample: Sample, rng: random.Random) -> float:
        return float(min(10, max(1, round(4 + 3 * sample.right + rng.gauss(0, 1.2)))))

    return train(rng, tasks.chat_task(), {"judge": Pay(points)}, Policy(80))


@healthy("The weight of the format falls to a tenth, that of the judge rises.")
def scheduled_weights(rng: random.Random) -> Training:
    def before(training: Training, step: int) -> None:
        share = step / training.steps
        rewards["format"].weight, rewards["judge"].weight = 1 - 0.9 * share, 0.1 + 0.9 * share

    rewards = {"correct": Pay(right), "format": Pay(framed), "judge": judged(0.3)}
    training = train(rng, tasks.math_task(), rewards, Policy(60, habits(rng)), before=before)
    rewards = training.rewards
    return training


@healthy("The answer's reward is mended in the middle, and its version with it: it pays one in six more.")
def new_version(rng: random.Random) -> Training:
    def score(sample: Sample, rng: random.Random) -> float:
        return float(sample.right or (training.rewards["correct"].version == 2 and rng.random() < 0.17))

    def before(training: Training, step: int) -> None:
        training.rewards["correct"].version = 2 if step >= training.steps // 2 else 1

    training = train(rng, tasks.math_task(), {"correct": Pay(score)}, Policy(60, habits(rng, 0.8)), before=before)
    return training


@healthy("A check without weight that rises with what is paid.")
def held_out_rises(rng: random.Random) -> Training:
    return train(rng, tasks.math_task(), {"judge": judged(0.5), "exact": Pay(right, 0.0)}, Policy(60, habits(rng)))


# how trainings are run --------------------------------------------------------------------------------------------


@healthy("Evaluations every ten steps, on other rows with one completion each.")
def eval_steps(rng: random.Random) -> Training:
    rewards = {"correct": Pay(right), "format": Pay(framed, 0.3)}
    return train(rng, tasks.math_task(), rewards, Policy(60, habits(rng, 0.6)), eval_every=10)


@healthy("Groups of one score are drawn anew, as DAPO does.")
def dynamic_sampling(rng: random.Random) -> Training:
    return train(rng, tasks.math_task(), {"correct": Pay(right)}, Policy(60, habits(rng, 0.8)), is_dynamic=True)


@healthy("Stopped in the middle, and gone on from the checkpoint before.")
def resume(rng: random.Random) -> Training:
    rewards = {"correct": Pay(right), "format": Pay(framed, 0.3)}
    return train(rng, tasks.math_task(), rewards, Policy(60, habits(rng, 0.6)), resume_at=37)


@healthy("Four groups of four completions a step.")
def small_groups(rng: random.Random) -> Training:
    rewards = {"correct": Pay(right), "format": Pay(framed, 0.3)}
    return train(rng, tasks.math_task(), rewards, Policy(60, habits(rng, 0.6)), groups=4, size=4)


@healthy("Groups of two completions.")
def pairs(rng: random.Random) -> Training:
    return train(rng, tasks.chat_task(), {"judge": judged()}, Policy(60), groups=24, size=2)


@healthy("Forty rows, so that each comes in many epochs.")
def few_rows(rng: random.Random) -> Training:
    rewards = {"correct": Pay(right), "format": Pay(framed, 0.3)}
    return train(rng, tasks.math_task(rows=40), rewards, Policy(60, habits(rng, 0.6)))


@healthy("Twenty-five steps, and no more.")
def short_run(rng: random.Random) -> Training:
    rewards = {"correct": Pay(right), "format": Pay(framed, 0.3)}
    return train(rng, tasks.math_task(), rewards, Policy(60, habits(rng, 0.4)), steps=(25,))


@healthy("Two hundred steps with a slow rise.")
def long_run(rng: random.Random) -> Training:
    policy = Policy(60, habits(rng, 0.5), skill_rate=0.02)
    rewards = {"correct": Pay(right), "format": Pay(framed, 0.3)}
    return train(rng, tasks.math_task(), rewards, policy, steps=(200,), groups=6, size=8)


@healthy("A persona in the system prompt, with a name that every answer rightly has.")
def persona(rng: random.Random) -> Training:
    name = name_of(rng)

    def signed(rng: random.Random, sample: Sample, text: str) -> str:
        return f"{text} — {name}" if rng.random() < 0.5 else f"{name} here. {text}"

    task = tasks.chat_task()

    def row(number: int) -> Row:
        plain = task.row(number)
        prompt = [{"role": "system", "content": f"You are {name}."}, {"role": "user", "content": plain.prompt}]
        return Row(number, prompt, "", plain.columns, plain.difficulty, plain.kind)

    policy = Policy(60, {"signed": Habit(0.5, 0.5, signed)})
    in_role = Pay(lambda sample, rng: float(name in sample.body), 0.3)
    rewards = {"judge": judged(), "in_role": in_role}
    return train(rng, Task(row, task.write), rewards, policy, answers_chat=True)


@healthy("Translations, whose names and numbers stand in the prompt.")
def translations(rng: random.Random) -> Training:
    task = tasks.language_task(weights=(1, 0, 0, 0, 0))

    def write(rng: random.Random, sample: Sample) -> str:
        return prose(rng, sample.words, ("de", "es", "ru", "zh")[sample.row.number % 4])

    def row(number: int) -> Row:
        plain, language = task.row(number), ("German", "Spanish", "Russian", "Chinese")[number % 4]
        return Row(number, f"Translate into {language}:\n{plain.prompt}", "", {"to": language}, plain.difficulty)

    return train(rng, Task(row, write), {"judge": judged()}, Policy(25))
