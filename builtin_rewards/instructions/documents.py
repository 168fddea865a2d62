"""IFBench's instructions that go with one prompt each: a list, a table or a story whose content is known."""

from __future__ import annotations

import csv
import datetime
import re
import string
import unicodedata
from collections.abc import Mapping

from builtin_rewards.instructions.kind import InstructionKind
from builtin_rewards.instructions.tokens import first_letters, split_sentences, split_words
from builtin_rewards.reading.normalisation import fold

_MULTIPLES = [str(number) for number in range(14, 51, 7)]
_CAPITALS = (  # of Europe, north of 45 degrees, from north to south
    "Reykjavik Helsinki Oslo Tallinn Stockholm Riga Moscow Copenhagen Vilnius Minsk Dublin Berlin Amsterdam Warsaw "
    "London Brussels Prague Luxembourg Paris Vienna Bratislava Budapest Vaduz Chisinau Bern Ljubljana Zagreb"
)
_FEWEST_COUNTRIES = 52  # of Africa, from Zimbabwe on
_NAPOLEON = range(1769, 1822)
_QUESTION = re.compile(r"^[^\w\n]*Question\b[ \t]*\d*[.):;]*[*_]*", re.MULTILINE)
_OPTION = re.compile(r"\W*[A-Ea-e][.)|]\W*\w")
_SPECIAL = re.compile(r'".*[^\d\w\s].*"')


def _plain(text: str) -> str:
    """Return a text without accents."""
    return unicodedata.normalize("NFKD", fold(text)).encode("ascii", "ignore").decode()


def _lists_countries(text: str) -> bool:
    lines = [_plain(line).strip(string.punctuation + " ") for line in text.split("\n")]
    lines = list(filter(None, lines))
    start = next((index for index, line in enumerate(lines) if "Zimbabwe" in line), len(lines))
    countries = lines[start:]
    return len(set(countries)) >= _FEWEST_COUNTRIES and countries == sorted(countries, reverse=True)


def _lists_dates(text: str) -> bool:
    try:
        dates = [datetime.date.fromisoformat(part.strip()) for part in text.split(",")]
    except ValueError:
        return False
    return all(date.year in _NAPOLEON for date in dates) and re.fullmatch(r"[\d\s,-]+", text) is not None


def _asks_questions(text: str) -> bool:
    """Return whether a text is four questions, each longer than the one before and with five options."""
    before, *questions = _QUESTION.split(text)
    lengths = []
    for question in questions:
        lines = question.strip().split("\n")
        options = [index for index, line in enumerate(lines) if _OPTION.match(line)]
        if len(options) != 5:
            return False
        lengths.append(len(" ".join(" ".join(lines[: options[0]]).split())))
    return not before.strip() and len(lengths) == 4 and lengths == sorted(set(lengths))


def _table(text: str, delimiter: str = ",") -> list[list[str]]:
    """Return the cells of a table with their quotation marks; none where it cannot be read."""
    try:
        rows = list(csv.reader(text.strip("\n").replace('"', '"""').split("\n"), delimiter=delimiter))
    except csv.Error:
        return []
    return [[cell.strip() for cell in row] for row in rows]


def _has_form(table: list[list[str]], columns: str, rows: int) -> bool:
    """Return whether a table has a head with these columns, and so many rows as wide."""
    names = columns.split()
    head = [cell.strip('"') for cell in table[0]] if table else []
    return head == names and len(table) == rows + 1 and all(len(row) == len(names) for row in table)


def _lists_students(text: str) -> bool:
    table = _table(text, "\t")
    cells = [cell for row in table for cell in row]
    return _has_form(table, "StudentID Subject Grade Semester Score", 3) and all(
        len(cell) > 1 and cell[0] == cell[-1] == '"' for cell in cells
    )


def _lists_products(text: str) -> bool:
    table = _table(text)
    return _has_form(table, "ProductID Category Brand Price Stock", 14) and any(
        _SPECIAL.match(cell) for row in table[1:] for cell in row
    )


IFBENCH: Mapping[str, InstructionKind] = {
    "custom:character_reverse": InstructionKind(
        "The words bald eagle are there letter by letter in reverse.", lambda text: "elgae dlab" in text.lower()
    ),
    "custom:csv_city": InstructionKind(
        "A CSV table with the columns ID, Country, City, Year, Count and 7 rows.",
        lambda text: _has_form(_table(text), "ID Country City Year Count", 7),
    ),
    "custom:csv_quotes": InstructionKind(
        "A tab-separated table with the columns StudentID, Subject, Grade, Semester, Score and 3 rows, each cell in "
        "double quotation marks.",
        _lists_students,
    ),
    "custom:csv_special_character": InstructionKind(
        "A CSV table with the columns ProductID, Category, Brand, Price, Stock and 14 rows, and a cell in double "
        "quotation marks that has a special character.",
        _lists_products,
    ),
    "custom:date_format_list": InstructionKind(
        "Dates as 1805-12-02, divided by commas, of the years 1769 to 1821.", _lists_dates
    ),
    "custom:european_capitals_sort": InstructionKind(
        "The 27 capitals of Europe north of 45 degrees, from north to south, divided by commas.",
        lambda text: [part.strip() for part in _plain(text).split(",") if part.strip()] == _CAPITALS.split(),
    ),
    "custom:mcq_count_length": InstructionKind(
        "Nothing but four questions that begin with Question, each longer than the one before, with five options.",
        _asks_questions,
    ),
    "custom:multiples": InstructionKind(
        "The numbers are 14, 21, 28, 35, 42 and 49.", lambda text: re.findall(r"\d+", text) == _MULTIPLES
    ),
    "custom:reverse_newline": InstructionKind(
        "From the line with Zimbabwe on, 52 or more different lines, in reverse alphabetical order.", _lists_countries
    ),
    "custom:sentence_alphabet": InstructionKind(
        "26 sentences begin with the letters of the alphabet in their order.",
        lambda text: (
            first_letters(tokens[0] for sentence in split_sentences(text) if (tokens := split_words(sentence)))
            == string.ascii_lowercase
        ),
    ),
    "custom:word_reverse": InstructionKind(
        "The words bald eagle are there in reverse order.",
        lambda text: "eagle bald" in " ".join(split_words(text)),
    ),
}
