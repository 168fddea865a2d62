"""Rows of the data sets that people train with, for the rewards of notebooks and repositories."""

from __future__ import annotations

from typing import Any

NUMBERS = (42, 17, 1250, 365)
CITIES = ("Rome", "Oslo", "Lima", "Cairo")


def _rows(prompt: str, **columns: Any) -> list[dict[str, Any]]:
    """Return rows with the columns' values one after the other; the prompt may name columns in braces."""
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    return [{"prompt": f"{prompt.format(**row)} ({number})", **row} for number, row in enumerate(rows, 1)]


_DOCUMENTS = (
    "The committee met on Tuesday. After six hours it agreed to lower the fee for small farms, and to look at it again "
    "in spring. Two members voted against it.",
    "Rain fell on the valley for nine days. The bridge at the mill was closed, school began an hour later, and the "
    "bakery gave bread to those who could not leave.",
    "The orchestra lost its hall in the fire. For one winter it played in a tram depot, where more people came to "
    "listen than ever before.",
    "A new line will join the two harbours. It carries goods at night and people by day, and should be ready in four "
    "years if the tunnel is dug in time.",
)
_SUMMARIES = (
    "The committee lowered the fee for small farms and will review it in spring.",
    "Nine days of rain closed the bridge and delayed school.",
    "After the fire the orchestra drew record crowds in a tram depot.",
    "A line for goods and people will join both harbours in four years.",
)
_CALLS = [{"name": "get_weather", "arguments": {"city": city, "days": days}} for days, city in enumerate(CITIES, 2)]
_SHOP = (
    "create table item (name text, price int, kind text);"
    "insert into item values ('pen', 2, 'paper'), ('ink', 7, 'paper'), ('cup', 5, 'kitchen'), ('pan', 30, 'kitchen'),"
    "('lamp', 45, 'light');"
)
_QUERIES = (
    "select name from item where price > 6",
    "select name, price from item where kind = 'kitchen'",
    "select count(*) from item",
    "select kind, max(price) from item group by kind",
)

ROWS: dict[str, list[dict[str, Any]]] = {
    "sums": _rows("How many are {given} and 5?", given=[n - 5 for n in NUMBERS], answer=[str(n) for n in NUMBERS]),
    "chat": _rows("Tell me about {topic}.", topic=("fairs", "rain", "work", "food")),
    "summaries": [
        {"prompt": f"Sum it up in one sentence: {text}", "reference": summary}
        for text, summary in zip(_DOCUMENTS, _SUMMARIES, strict=True)
    ],
    "keywords": _rows("Write about it.", keywords=(["cat", "dog"], ["tree", "sea"], ["sun", "sand"], ["moon", "cat"])),
    "people": _rows(
        "Read the card of {who} as JSON.",
        who=("Ann", "Ben", "Eve", "Tom"),
        answer=[
            {"name": name, "age": age, "city": city}
            for name, age, city in zip(("Ann", "Ben", "Eve", "Tom"), (31, 58, 24, 46), CITIES, strict=True)
        ],
    ),
    "calls": [{"prompt": f"How is the weather in {call['arguments']['city']}?", "answer": call} for call in _CALLS],
    "retrieval": _rows(
        "Which documents answer it?",
        documents=[[{"id": f"{row}{n}"} for n in range(1, 7)] for row in "abcd"],
        answer=(["a2"], ["b1", "b4"], ["c3"], ["d5", "d6"]),
    ),
    "sql": [{"prompt": f"Question {n} on the shop.", "setup": _SHOP, "answer": q} for n, q in enumerate(_QUERIES, 1)],
    "choices": _rows("Which? (A) red (B) blue (C) green (D) grey", answer=("B", "D", "A", "C")),
    "cities": _rows("Where is the fair?", answer=CITIES),
    "names": _rows("Who wrote it?", answer=("Virginia Woolf", "James Baldwin", "Toni Morrison", "Leo Tolstoy")),
    "measured": _rows("How long is it, in metres?", answer=(3.14, 12.5, 0.75, 271.8)),
    "days": _rows("When was it?", answer=("12 May 1905", "3 July 1847", "30 October 1961", "9 March 1999")),
    "prints": _rows(
        "Write a program that prints the squares below {bound}.",
        bound=(10, 20, 30, 50),
        outputs=(["1", "4", "9"], ["1", "4", "9", "16"], ["1", "4", "9", "16", "25"], ["1", "4", "9", "36", "49"]),
    ),
    "percents": _rows("Which share?", answer=("12.5%", "40%", "7%", "99.9%")),
    "romans": _rows("Which number, in Roman numerals?", answer=("XIV", "XLII", "IX", "LXVI")),
    "durations": _rows("How long does it take?", answer=("90 min", "2 h", "45 s", "5400 s")),
    "points": _rows("Where do the lines meet?", answer=("(3, -4)", "(0, 7)", "(12, 5)", "(-1, -1)")),
    "matrices": _rows("Multiply them.", answer=([[1, 2], [3, 4]], [[0, 1], [1, 0]], [[5, 5]], [[2], [9]])),
    "options": _rows(
        "Which? (A) red (B) blue (C) green (D) grey",
        answer=("B", "D", "A", "C"),
        options=[dict(zip("ABCD", ("red", "blue", "green", "grey"), strict=True))] * 4,
    ),
    "letters": _rows("Which of A to D are true?", answer=(["A", "C"], ["B"], ["A", "B", "D"], ["D"])),
    "stars": _rows("How many stars?", label=(5, 1, 4, 2)),
    "odds": _rows("How likely is it?", label=(True, False, True, False)),
    "entailments": _rows("Does it follow?", label=("entailment", "neutral", "contradiction", "neutral")),
    "several_calls": _rows("How is the weather there?", answer=[_CALLS[:2], _CALLS[1:2], _CALLS[2:], _CALLS[:1]]),
    "talks": [
        {"prompt": [{"role": "user", "content": f"Weather in {call['arguments']['city']}?"}], "answer": call}
        for call in _CALLS
    ],
    "asserts": _rows(
        "Write a function {name}.",
        name=("double", "last", "sign"),
        tests=(
            ["assert double(3) == 6", "assert double(-1) == -2"],
            ["assert last([1, 5]) == 5", "assert last('ab') == 'b'"],
            ["assert sign(-3) == -1", "assert sign(0) == 0", "assert sign(9) == 1"],
        ),
        reference=(
            "```python\ndef double(x):\n    return 2 * x\n```",
            "```python\ndef last(x):\n    return x[-1]\n```",
            "```python\ndef sign(x):\n    return (x > 0) - (x < 0)\n```",
        ),
    ),
    "boxes": _rows("Where is the dog?", answer=([10, 20, 110, 220], [0, 0, 50, 40], [300, 5, 420, 95])),
    "spans": _rows("Which characters?", start=(3, 40, 0), end=(9, 52, 21), reference=("3-9", "40-52", "0-21")),
    "tables": _rows(
        "As lines of CSV.", answer=(["name,age", "Ann,31"], ["name,age", "Ben,58", "Eve,24"], ["city", "Rome", "Oslo"])
    ),
    "patterns": _rows(
        "Write a pattern.",
        positive=(["ab1", "cd2"], ["x", "xy"], ["77", "12"]),
        negative=(["1ab", "a1"], ["y", ""], ["7", "a7"]),
        reference=("[a-z][a-z][0-9]", "xy?", "[0-9][0-9]"),
    ),
    "points_to_make": _rows("Explain it.", points=(["cost", "speed"], ["noise"], ["safety", "price", "weight"])),
    "worked_sums": [
        {"prompt": f"How many are {n - 5} and 5?", "answer": str(n), "reference": f"{n - 5} + 5 = {n}"} for n in NUMBERS
    ],
    "calls_in_python": [
        {"prompt": f"Weather in {city}?", "answer": call, "reference": f"get_weather(city={city!r}, days={days})"}
        for call, (days, city) in zip(_CALLS, enumerate(CITIES, 2), strict=True)
    ],
    "greek": _rows(
        "Say it in Greek.",
        reference=("\u03ba\u03b1\u03bb\u03b7\u03bc\u03ad\u03c1\u03b1", "\u03bd\u03b1\u03b9", "\u03cc\u03c7\u03b9"),
    ),
    "thoughts": _rows(
        "Think first.",
        reference=[f"<think>{text}</think>\n{end}" for text, end in zip(_DOCUMENTS, _SUMMARIES, strict=True)],
    ),
}
"""Rows by the kind of task."""
