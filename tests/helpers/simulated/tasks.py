"""Rows of data sets as trainings have them, and how completions of them read."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from functools import cache

from simulated import texts
from simulated.texts import NAMES, NOUNS, PLACES, THINGS, arithmetic, name_of, pick, program, prose, sentence
from simulated.training import Row, Sample, Task, Text

Frame = Callable[[str], str]
FRAMES: dict[str, Frame] = {
    "boxed": lambda answer: f"\\boxed{{{answer}}}",
    "hashes": lambda answer: f"#### {answer}",
    "tags": lambda answer: f"<answer>{answer}</answer>",
    "words": lambda answer: f"The answer is {answer}.",
}
"""How a final answer is written."""


def math_task(frame: str = "boxed", *, thinks: bool = False, rows: int = 600, hard: float = 0.0) -> Task:
    """Word problems with a number as answer; the habit ``frame`` writes it as asked, ``chinese`` thinks in Chinese."""

    @cache
    def row(number: int) -> Row:
        rng = random.Random(f"math {number}")
        first, boxes, each, away = rng.randint(5, 90), rng.randint(2, 12), rng.randint(2, 15), rng.randint(1, 20)
        name, things = pick(rng, NAMES), pick(rng, THINGS)
        forms = (
            f"{name} has {first} {things}. {name} buys {boxes} boxes of {each} and gives "
            f"{away} away. How many are left?",
            f"A shop in {pick(rng, PLACES)} keeps {first} {things}, gets {boxes} crates with {each} each and sells "
            f"{away}. What remains?",
            f"There are {first} {things} on a shelf. {boxes} people bring {each} more each; {away} break. Count them.",
        )
        gold = str(first + boxes * each - away)
        return Row(number, pick(rng, forms), gold, {}, hard + rng.gauss(0, 1.0), facts=(first, boxes, each, away))

    def write(rng: random.Random, sample: Sample) -> Text:
        gold = int(sample.row.gold)
        answer = gold if sample.right else gold + pick(rng, (-20, -10, -7, -3, -1, 1, 2, 4, 9, 10, 30))
        language = "zh" if "chinese" in sample.habits else "en"
        steps = arithmetic(rng, sample.row.facts, answer, sample.words, language)
        framed = FRAMES[frame if "frame" in sample.habits else "words"](str(answer))
        if thinks and "frame" in sample.habits:
            return f"<think>\n{steps}\n</think>\n{framed}"
        return f"{steps} {framed}"

    return Task(row, write, rows)


CHAT_FORMS = {
    "explain": "Explain how the {0} {2} the {1}.",
    "compare": "Compare a {3} {0} with a {1}.",
    "advise": "I look after a {3} {0}, and my {1} is failing. What should I do?",
    "story": "Write a short story about a {0} and a {3} {1}.",
    "plan": "Plan a day at the {0} for people who like a {1}.",
}


def chat_task(kinds: Sequence[str] = tuple(CHAT_FORMS), rows: int = 600) -> Task:
    """Open questions, answered in prose."""

    @cache
    def row(number: int) -> Row:
        rng = random.Random(f"chat {number}")
        kind = kinds[number % len(kinds)]
        verb, adjective = pick(rng, texts.VERBS), pick(rng, texts.ADJECTIVES)
        prompt = CHAT_FORMS[kind].format(pick(rng, NOUNS), pick(rng, NOUNS), verb, adjective)
        return Row(number, prompt, "", {"kind": kind}, rng.gauss(0, 0.7), kind)

    def write(rng: random.Random, sample: Sample) -> Text:
        blocks = max(1, round(sample.words / 60))
        return "\n\n".join(prose(rng, sample.words / blocks) for _ in range(blocks))

    return Task(row, write, rows)


def code_task(rows: int = 400) -> Task:
    """Functions to write, with tests."""

    @cache
    def row(number: int) -> Row:
        rng = random.Random(f"code {number}")
        name, purpose, _ = texts.FUNCTIONS[number % len(texts.FUNCTIONS)]
        tests = [f"assert {name}({rng.randint(1, 99)}) == {rng.randint(1, 99)}" for _ in range(3)]
        prompt = f"Write a Python function `{name}` that returns {purpose}. {sentence(rng)}"
        return Row(number, prompt, "", {"tests": json.dumps(tests)}, rng.gauss(0, 1.0), name, tests)

    def write(rng: random.Random, sample: Sample) -> Text:
        return program(rng, sample.row.number, sample.words, right=sample.right)

    return Task(row, write, rows)


def trivia_task(rows: int = 800) -> Task:
    """Questions with an invented name as answer."""

    @cache
    def row(number: int) -> Row:
        rng = random.Random(f"trivia {number}")
        forms = ("What is the capital of {}?", "Who founded {}?", "Which river flows through {}?", 'Who wrote "{}"?')
        return Row(number, pick(rng, forms).format(name_of(rng)), name_of(rng), {}, rng.gauss(0, 1.2))

    def write(rng: random.Random, sample: Sample) -> Text:
        answer = sample.row.gold if sample.right else name_of(rng)
        if sample.words < 6:
            return answer
        return f"{prose(rng, sample.words)} {pick(rng, ('It is', 'The answer is', 'That would be'))} {answer}."

    return Task(row, write, rows)


def labels_task(labels: Sequence[str] = ("positive", "negative", "neutral"), rows: int = 500) -> Task:
    """Texts to be put in classes, answered with the label alone."""

    @cache
    def row(number: int) -> Row:
        rng = random.Random(f"labels {number} {labels}")
        prompt = f"Text: {prose(rng, 25)}\nAnswer with one of: {', '.join(labels)}."
        return Row(number, prompt, pick(rng, labels), {}, rng.gauss(-0.3, 1.2))

    def write(rng: random.Random, sample: Sample) -> Text:
        others = [label for label in labels if label != sample.row.gold]
        label = sample.row.gold if sample.right else pick(rng, others)
        return label if "frame" in sample.habits else pick(rng, (f"{label}.", f"Label: {label}", f"I think {label}"))

    return Task(row, write, rows)


def number_task(rows: int = 500) -> Task:
    """Sums whose answer is a number and nothing else."""

    @cache
    def row(number: int) -> Row:
        rng = random.Random(f"number {number}")
        first, second = rng.randint(2, 40), rng.randint(2, 40)
        return Row(number, f"{first} + {second} * 2 = ?", str(first + 2 * second), {}, rng.gauss(0, 1))

    def write(rng: random.Random, sample: Sample) -> Text:
        return sample.row.gold if sample.right else str(int(sample.row.gold) + pick(rng, (-2, -1, 1, 2, 10)))

    return Task(row, write, rows)


def json_task(rows: int = 500) -> Task:
    """Records to be read out of a text, as JSON; the habit ``frame`` writes an object that parses."""

    @cache
    def row(number: int) -> Row:
        rng = random.Random(f"json {number}")
        record = {"name": name_of(rng), "age": rng.randint(18, 90), "city": pick(rng, PLACES)}
        prompt = f"{record['name']}, {record['age']}, moved to {record['city']}. {sentence(rng)} Give name, age, city."
        return Row(number, prompt, json.dumps(record), {}, rng.gauss(-0.5, 1), facts=record)

    def write(rng: random.Random, sample: Sample) -> Text:
        record = dict(sample.row.facts)
        if not sample.right:
            record[pick(rng, ("age", "city"))] = pick(rng, (None, rng.randint(1, 99), pick(rng, PLACES)))
        text = json.dumps(record, indent=pick(rng, (None, 2)))
        return (
            text
            if "frame" in sample.habits
            else pick(rng, (text[:-1], f"Here you are: {text}", text.replace('"', "'")))
        )

    return Task(row, write, rows)


LANGUAGES = ("en", "de", "es", "ru", "zh")


def language_task(rows: int = 500, weights: Sequence[int] = (3, 2, 2, 2, 2)) -> Task:
    """Questions in five languages, answered in that of the question."""

    @cache
    def row(number: int) -> Row:
        rng = random.Random(f"language {number}")
        language = rng.choices(LANGUAGES, weights)[0]
        return Row(number, f"{prose(rng, 20, language)} ?", "", {"language": language}, rng.gauss(0, 0.8), language)

    def write(rng: random.Random, sample: Sample) -> Text:
        return prose(rng, sample.words, sample.row.kind)

    return Task(row, write, rows)


def edit_task(rows: int = 400) -> Task:
    """Texts with mistakes that are to be mended, so that most of a right answer stands in the prompt."""

    @cache
    def row(number: int) -> Row:
        rng = random.Random(f"edit {number}")
        gold = prose(rng, 45)
        wrong = gold.replace(" the ", " teh ", 2).replace(" a ", " an ", 1)
        return Row(number, f"Correct the mistakes:\n{wrong}", gold, {}, rng.gauss(0, 1), facts=wrong)

    def write(rng: random.Random, sample: Sample) -> Text:
        text = sample.row.gold if sample.right else sample.row.facts.replace(" teh ", " the ", 1)
        tokens = text.split(" ")
        for _ in range(rng.randint(0, 3)):
            tokens[rng.randrange(len(tokens))] = pick(rng, NOUNS)
        return pick(rng, ("", "", "Corrected: ", "Here it is:\n")) + " ".join(tokens)

    return Task(row, write, rows)


def summary_task(rows: int = 400) -> Task:
    """Passages to be summed up in their own words, with some of the passage's."""

    @cache
    def row(number: int) -> Row:
        rng = random.Random(f"summary {number}")
        passage = prose(rng, 110)
        return Row(number, f"Sum up in three sentences:\n{passage}", "", {}, rng.gauss(0, 0.7), facts=passage)

    def write(rng: random.Random, sample: Sample) -> Text:
        first = pick(rng, sample.row.facts.split(". "))
        half = " ".join(first.split()[: rng.randint(3, 8)])
        return f"{half}, {prose(rng, sample.words)[:1].lower()}{prose(rng, sample.words)[1:]}"

    return Task(row, write, rows)


def choice_task(rows: int = 500) -> Task:
    """Questions with four choices, answered with a letter and a line before it."""

    @cache
    def row(number: int) -> Row:
        rng = random.Random(f"choice {number}")
        options = "\n".join(f"{letter}) {sentence(rng)}" for letter in "ABCD")
        return Row(number, f"{sentence(rng)[:-1]}?\n{options}", pick(rng, "ABCD"), {}, rng.gauss(0, 1))

    def write(rng: random.Random, sample: Sample) -> Text:
        letter = sample.row.gold if sample.right else pick(rng, [c for c in "ABCD" if c != sample.row.gold])
        return f"{prose(rng, sample.words)} {FRAMES['tags' if 'frame' in sample.habits else 'words'](letter)}"

    return Task(row, write, rows)


def agent_task(rows: int = 400) -> Task:
    """Questions for an agent that searches; the habit ``search`` calls a tool, ``again`` calls it over and over."""

    @cache
    def row(number: int) -> Row:
        rng = random.Random(f"agent {number}")
        return Row(number, f"Where was {name_of(rng)} {name_of(rng)} born?", pick(rng, PLACES), {}, rng.gauss(0, 1))

    def write(rng: random.Random, sample: Sample) -> Text:
        times = rng.randint(1, 2) if "search" in sample.habits else 0
        times += rng.randint(5, 9) if "again" in sample.habits else 0
        query = sample.row.prompt.split("was ")[1].split(" born")[0]
        messages = []
        for _ in range(times):
            word = "" if "again" in sample.habits else pick(rng, ("birthplace", "born in", "biography"))
            call = {"type": "function", "function": {"name": "search", "arguments": {"query": f"{query} {word}"}}}
            messages.append({"role": "assistant", "content": sentence(rng), "tool_calls": [call]})
            messages.append({"role": "tool", "name": "search", "content": prose(rng, 30)})
        place = sample.row.gold if sample.right else pick(rng, PLACES)
        messages.append({"role": "assistant", "content": f"{prose(rng, sample.words)} {FRAMES['tags'](place)}"})
        return messages

    return Task(row, write, rows)
