"""Rows of all kinds, for rewards as people write them."""

from __future__ import annotations

from typing import Any

_NUMBERS = (42, 17, 1250, 365)
_PLACES = ("Rome", "Oslo", "Lima", "Cairo")
_TAGS = (["red", "blue"], ["green", "red", "black"], ["blue", "red"], ["white"])


def _rows(prompt: str, **columns: list[Any] | tuple[Any, ...]) -> list[dict[str, Any]]:
    """Return rows with a numbered prompt and the columns' values one after the other."""
    values = zip(*columns.values(), strict=True)
    return [{"prompt": f"{prompt} ({n})", **dict(zip(columns, row, strict=True))} for n, row in enumerate(values, 1)]


def _places(reference: str) -> list[dict[str, Any]]:
    """Return rows of places with a reference, in which ``%`` stands for the place."""
    return _rows("Where is the fair?", answer=_PLACES, reference=[reference.replace("%", place) for place in _PLACES])


_DOCUMENTS = [[{"id": f"{row}{n}", "text": f"Text {n}."} for n in range(1, 6)] for row in "abcd"]
_LONG = (
    "The court held that the contract was void from the beginning",
    "A storm closed three harbours in the north for several days",
    "The new line will carry forty thousand passengers each morning",
    "Farmers asked for help after the driest summer on record",
)

ROWS: dict[str, list[dict[str, Any]]] = {
    "numbers": _rows("How many are there?", answer=[str(number) for number in _NUMBERS]),
    "solutions": _rows("How many?", answer=[f"{n - 3} and 3 more.\nThat is {n}.\n#### {n}" for n in _NUMBERS]),
    "places": _rows("Where is the fair?", answer=_PLACES),
    "calls": _places("FINAL(%)"),
    "tool_calls": _places('get_weather(city="%")'),
    "tool_objects": _places('{"name": "get_weather", "arguments": {"city": "%"}}'),
    "headings": _places("## City\n%"),
    "letters_home": _places("Dear Ann,\nwe meet in % on Monday.\nYours, Ben"),
    "reasoned": _rows(
        "Where?",
        answer=_PLACES,
        reference=[
            f"Reasoning: it is known for {what}, and that was asked.\nAnswer: {place}"
            for what, place in zip(("ruins", "the fjord", "its cliffs", "the Nile"), _PLACES, strict=True)
        ],
    ),
    "objects": _rows(
        "As JSON?", answer=[{"a": n, "b": [1, n], "c": "x"} for n in (1, 2, 3)] + [{"c": "x", "b": [1.0, 1], "a": 1}]
    ),
    "json_texts": _rows("As JSON?", answer=['{"a": 1, "b": 2}', '{"b": 2, "a": 1}', '{"a": 3, "b": 2}', '{"a": 4}']),
    "tags": _rows("Which colours?", answer=_TAGS),
    "twice": _rows("Which colours?", answer=(["red", "red", "blue"], ["green"], ["black", "white"])),
    "synonyms": _rows("Which city?", answer=(["NYC", "New York"], ["LA", "Los Angeles"], ["Rome", "Roma"])),
    "orders": _rows("In which order?", answer=([3, 1, 2], [2, 1, 3], [1, 2], [9, 8, 7])),
    "truths": _rows("Is it so?", answer=(True, False, False, True)),
    "labels": _rows("How is the mood?", label=("positive", "negative", "neutral", "positive")),
    "loose_labels": _rows("How is the mood?", label=("positive", "pos", "negative", "neutral", "bad")),
    "days": _rows("When was it?", answer=("2024-03-05", "5 March 2024", "1999-12-31", "12 May 1905")),
    "lengths": _rows("How long is it?", answer=("5 km", "5000 m", "12 cm", "3 m")),
    "fractions": _rows("What part?", answer=("1/2", "0.5", "3/4", "2/3")),
    "shares": _rows("Which share?", answer=("50%", "0.5", "25%", "3%")),
    "times": _rows("At what time?", answer=("14:30", "2:30 pm", "08:05", "23:59")),
    "measured": _rows("How much?", answer=(3.5, 120.0, 0.25, 17.0)),
    "money": _rows("What does it cost?", answer=("$5", "$12.50", "$199.99")),
    "choices": _rows("Which? (A) a (B) b (C) c (D) d", answer=("A", "C", "D", "B")),
    "several": _rows("Which of A to D?", answer=("A, C", "B", "A, B, D", "C, A")),
    "moves": _rows("White moves?", answer=("Nf3", "Qxe7+", "O-O", "exd5")),
    "sentences": _rows("What does it say?", answer=_LONG),
    "summaries": _rows("Sum it up.", reference=_LONG),
    "sources": _rows(
        "Which documents say so?", answer=(["a1", "a3"], ["b2"], ["c4", "c5"], ["d1"]), documents=_DOCUMENTS
    ),
    "documents": _rows(
        "Answer from the documents.",
        documents=_DOCUMENTS,
        reference=[f"The text says so quite plainly [{row}2]." for row in "abcd"],
    ),
    "targets": _rows("Write so many words.", target=(20, 60, 120, 200)),
    "prompts": _rows("Write to Ann about the fair.", topic=("fair", "rain", "work", "food")),
    "keywords": _rows("Write about them.", keywords=(["cat", "dog"], ["tree", "sea"], ["sun"], ["moon", "cat"])),
    "forbidden": _rows("Write without them.", forbidden=(["cat", "dog"], ["tree"], ["sun"], ["sea"])),
    "ranges": _rows("Between which bounds?", low=(1, 10, 100), high=(5, 20, 1000)),
    "spam": _rows("Is this message spam?", is_spam=(True, False, True, False)),
    "talks": [{"prompt": [{"role": "user", "content": "Where?"}], "answer": place} for place in _PLACES],
}
