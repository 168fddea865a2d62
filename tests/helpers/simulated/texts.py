"""What models write: prose of several languages, solutions, programs and answers, drawn from a seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache
from typing import TypeVar

T = TypeVar("T")


def _split(text: str) -> list[str]:
    return text.split()


NOUNS = _split(
    "river harbor teacher engine garden library market bridge signal window village orchestra battery forest "
    "recipe satellite kitchen museum glacier contract lantern planet compass neighbor factory museum harvest mirror "
    "valley treaty island molecule archive sculptor railway canyon senate pharmacy tunnel falcon desert merchant "
    "stadium violin painter reactor wetland journal hospital pension antenna warehouse ferry parliament meadow"
)
VERBS = _split(
    "shapes supports explains limits reveals follows repairs protects measures crosses delays improves describes "
    "replaces challenges connects absorbs governs precedes reflects surrounds supplies tests warms weakens carries"
)
ADJECTIVES = _split(
    "quiet narrow ancient reliable fragile northern common costly gentle modern distant broad hidden public steady "
    "uneven rapid local formal bitter curious dense early famous humid loyal minor noble plain rural sharp urban"
)
ADVERBS = _split("often rarely slowly usually partly clearly seldom gradually mostly perhaps largely always indeed")
LINKS = (
    "However", "In practice", "Because of this", "By contrast", "As a result", "At first", "Later", "For instance",
    "Even so", "Meanwhile", "In short", "Over time", "On the whole", "Besides", "Likewise",
)  # fmt: skip
FOREIGN = {
    "de": (
        "der Fluss|die Lehrerin|das Haus|der Wald|die Brücke|das Dorf|der Markt|die Zeitung|das Fenster|der Vertrag",
        "erklärt|verändert|schützt|begrenzt|zeigt|verbindet|ersetzt|stört|trägt|misst",
        "weil|obwohl|während|sodass|bevor|und dann|denn|wenn", " ",
    ),
    "es": (
        "el río|la maestra|la casa|el bosque|el puente|el pueblo|el mercado|la ventana|el contrato|la isla",
        "explica|cambia|protege|limita|muestra|conecta|sustituye|sigue|lleva|mide",
        "porque|aunque|mientras|cuando|pero|y luego|así que|si bien", " ",
    ),
    "ru": (
        "река|учитель|дом|лес|мост|деревня|рынок|окно|договор|остров|музей|завод",
        "объясняет|меняет|защищает|ограничивает|показывает|соединяет|заменяет|несёт|измеряет",
        "потому что|хотя|пока|когда|но|далее|поэтому|если", " ",
    ),
    "zh": (
        "河流|老师|房子|森林|桥梁|村庄|市场|窗户|合同|岛屿|博物馆|工厂|方程|数字|结果",
        "解释|改变|保护|限制|显示|连接|代替|跟随|得到|测量|等于|需要",
        "因为|虽然|所以|当时|但是|然后|如果|因此", "",
    ),
}  # fmt: skip
"""By language its nouns, verbs and conjunctions, and what stands between words."""
NAMES = _split("Amira Ben Chloe Dmitri Elena Farid Grace Hugo Ines Jonas Keiko Liam Mara Noor Otto Priya Quinn Rosa")
THINGS = _split("apples stamps marbles tickets pencils books shells coins stickers cards eggs bottles candles plants")
PLACES = _split("Velmora Castrin Oudal Brenholt Maruvia Tessaly Norvik Ashkara Pellin Dovrest Quarn Illiria")
SYLLABLES = _split("ba ke lo mi nu ra so ti va ze dor fen gal hin jor mer nos pel rin sul tor vek wyn")


def pick(rng: random.Random, choices: Sequence[T]) -> T:
    """Return one of the choices; several times as fast as ``rng.choice``."""
    return choices[int(rng.random() * len(choices))]


FORMS = (
    ("the {} {} {} {} the {}", (ADJECTIVES, NOUNS, ADVERBS, VERBS, NOUNS)),
    ("a {} {} the {} {} of the {}", (NOUNS, VERBS, ADJECTIVES, NOUNS, NOUNS)),
    ("what the {} {}, the {} {} {}", (NOUNS, VERBS, NOUNS, ADVERBS, VERBS)),
    ("no {} {} a {} that the {} {} {}", (NOUNS, VERBS, NOUNS, ADJECTIVES, NOUNS, VERBS)),
    ("when the {} {} a {}, its {} {} the {} {}", (NOUNS, VERBS, NOUNS, NOUNS, VERBS, ADJECTIVES, NOUNS)),
    ("each {} {} {} some {}", (ADJECTIVES, NOUNS, VERBS, NOUNS)),
)
"""The forms of a sentence, and what fills each place."""


def sentence(rng: random.Random) -> str:
    """Return an English sentence."""
    form, slots = pick(rng, FORMS)
    text = form.format(*[pick(rng, slot) for slot in slots])
    if rng.random() < 0.3:
        return f"{pick(rng, LINKS)}, {text}."
    return f"{text[0].upper()}{text[1:]}."


def prose(rng: random.Random, words: float, language: str = "en") -> str:
    """Return sentences of about so many words."""
    parts: list[str] = []
    count = 0
    while count < words:
        parts.append(sentence(rng) if language == "en" else foreign_sentence(rng, language))
        count += len(parts[-1].split()) if language != "zh" else len(parts[-1]) // 2
    return " ".join(parts)


@cache
def _foreign(language: str) -> tuple[list[str], list[str], list[str], str]:
    nouns, verbs, links, space = FOREIGN[language]
    return nouns.split("|"), verbs.split("|"), links.split("|"), space


def foreign_sentence(rng: random.Random, language: str) -> str:
    """Return a sentence of another language."""
    noun, verb, link, space = _foreign(language)
    first = [pick(rng, noun), pick(rng, verb), pick(rng, noun)]
    second = [pick(rng, link), pick(rng, noun), pick(rng, verb), pick(rng, noun)]
    text = space.join(first + (second if rng.random() < 0.7 else []))
    return f"{text[0].upper()}{text[1:]}{'。' if language == 'zh' else '.'}"


def name_of(rng: random.Random) -> str:
    """Return an invented name of a person or place, of which there are thousands."""
    return "".join(pick(rng, SYLLABLES) for _ in range(pick(rng, (2, 2, 3)))).title()


OPENINGS = (
    "We start with {first}.", "First, note the {first} that are there.", "Let x = {first}.", "Step by step:",
    "The question gives {first}, {boxes}, {each} and {away}.", "I begin from {first}.",
)  # fmt: skip
STEPS = (
    ("{boxes} * {each} = {product}", "{boxes} by {each} gives {product}", "that makes {boxes} times {each}: {product}"),
    ("{first} + {product} = {both}", "together {both}", "adding, {first} and {product} are {both}"),
    ("minus {away} leaves {result}", "{both} - {away} = {result}", "taking away {away} we get {result}"),
)
CHECKS = (
    "Wait, let me check this: {some} is not {away}.", "Another way: {first} less {away} and {product} more.",
    "Hmm, does every box have {each}? It does.", "I should read the question again.", "Is that right? {some} says no.",
    "Estimating, about {some}0 would be too much.", "Estimating, {some} would be too little.", "Hold on: {both} first.",
    "To be sure, {product} is {boxes} times {each}.", "Could it be {some}? No, for {away} are gone.",
)  # fmt: skip
GLUE = ("Then ", "Next, ", "So ", "Now ", "After that, ", "")


def arithmetic(rng: random.Random, numbers: Sequence[int], result: int, words: float, language: str = "en") -> str:
    """Return a solution's reasoning with equations, which ends before its answer; longer ones check themselves."""
    first, boxes, each, away = numbers
    names = {
        "first": first, "boxes": boxes, "each": each, "away": away, "result": result, "product": boxes * each,
        "both": first + boxes * each,
    }  # fmt: skip
    lines = [pick(rng, OPENINGS), *(f"{pick(rng, GLUE)}{pick(rng, step)}." for step in STEPS)]
    count = 28
    while count < words:
        if language != "en":
            line = foreign_sentence(rng, language)
        else:
            line = sentence(rng) if rng.random() < 0.3 else pick(rng, CHECKS)
        lines.insert(1 + int(rng.random() * len(lines)), line)
        count += 8
    return pick(rng, (" ", "\n")).join(lines).format(some=int(rng.random() * 97) + 2, **names)


FUNCTIONS = (
    ("sum_even", "the sum of the even numbers of a list", "sum(x for x in {v} if x % 2 == 0)"),
    ("longest", "the longest word of a sentence", "max({v}.split(), key=len)"),
    ("count_vowels", "how many vowels a text has", "sum(c in 'aeiou' for c in {v}.lower())"),
    ("reverse_words", "the words of a text in reverse order", "' '.join(reversed({v}.split()))"),
    ("running_max", "the largest number so far at each place", "[max({v}[: i + 1]) for i in range(len({v}))]"),
    ("is_palindrome", "whether a text reads the same backwards", "{v} == {v}[::-1]"),
    ("squares_below", "all squares below a number", "[i * i for i in range({v}) if i * i < {v}]"),
    ("dedupe", "a list without what stands twice", "list(dict.fromkeys({v}))"),
    ("digits", "the sum of a number's digits", "sum(map(int, str({v})))"),
    ("merge", "a list of lists as one list", "[x for part in {v} for x in part]"),
)


def program(rng: random.Random, number: int, words: float, *, right: bool = True) -> str:
    """Return a program for one of the functions, with comments that make it longer; a wrong one errs somewhere."""
    name, purpose, body = FUNCTIONS[number % len(FUNCTIONS)]
    variable = pick(rng, ("items", "data", "values", "text", "arg", "seq", "given"))
    body = body.format(v=variable)
    if not right:
        body = pick(rng, (body.replace("== 0", "== 1"), f"{variable}", f"({body}, None)", body.replace("max", "min")))
    lines = [f"def {name}({variable}):"]
    if rng.random() < 0.5:
        lines.append(f'    """Return {purpose}."""')
    result = pick(rng, ("result", "out", "answer", "res"))
    for _ in range(int(words / 12)):
        lines.append(f"    # {sentence(rng).rstrip('.').lower()}")
    lines += [f"    {result} = {body}", f"    return {result}"] if rng.random() < 0.6 else [f"    return {body}"]
    code = "\n".join(lines)
    return f"{prose(rng, rng.randint(4, 20))}\n\n```python\n{code}\n```" if rng.random() < 0.7 else code
