"""A choice is read alike whichever letter it is: frames that people write, each around every letter."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builtin_rewards.matching import multiple_choice
from builtin_rewards.reading.choices import letters_chosen
from rewardkit import Score

LETTERS = "ABCD"
CITIES = ("Rome", "Paris", "London", "Madrid")
COUNTRIES = ("Italy", "France", "England", "Spain")

STATEMENTS = (
    # English
    "The answer is {L}.",
    "The answer is ({L}).",
    "The answer is **{L}**.",
    "The correct answer is {L}) {T}.",
    "The correct answer is: {L}",
    "The correct option is {L}.",
    "The best choice is option {L}, because it fits.",
    "The answer, I believe, is {L}.",
    "Final answer: {L}",
    "**Answer:** {L}",
    "**Answer: {L}**",
    "Answer: $\\text{{{L}}}$",
    "## Answer\n{L}",
    "**Final Answer**\n\n{L}",
    "Answer:\n{L}",
    "The answer is:\n\n**{L}) {T}**",
    "Correct answer: **{L}. {T}**",
    "My choice: {L}",
    "Hence, {L}.",
    "So, {L}.",
    "Thus, the answer is {L}.",
    "Therefore, ({L}).",
    "Therefore: {L}",
    "It must be {L}.",
    "So it's {L}.",
    "I choose {L}.",
    "I'd go with {L}.",
    "I would pick option {L}.",
    "I'll say {L}.",
    "#### {L}",
    "\u2705 {L}",
    "\u2705 **{L}) {T}**",
    "{L} \u2705",
    "{L} is correct.",
    "{L} is the right answer.",
    "({L}) is right.",
    "Option {L} is the best.",
    "Option {L} is the correct answer.",
    "{L} must be right.",
    "It is not {X} but {L}.",
    "The answer is not {X}, but {L}.",
    "not {X} but {L}",
    "{X} is wrong, so {L}.",
    "{X} and {Y} are wrong, so the answer is {L}.",
    "{X} is out, {Y} is out and {Z} is out. That leaves {L}.",
    "{X}, {Y} and {Z} are wrong, which leaves only ({L}).",
    "The answer is {L}, not {X}.",
    "The answer is {L} and not {X}.",
    "The answer is {L}, since {X} is wrong.",
    "The answer is {L}; {X} is a city in {XC}.",
    "Answer appears to be {L}.",
    "Among the options, only {L} satisfies both conditions.",
    "Only option {L} works.",
    "{L} is the only one that satisfies both.",
    "{L} seems to be correct.",
    "I'm going with {L}.",
    "I would take {L} \u2014 a good bet.",
    # The languages of MMMLU, and others
    "الإجابة: {L}",
    "الإجابة الصحيحة هي {L}",
    "الجواب: ({L})",
    "উত্তর: {L}",
    "উত্তরঃ {L}",
    "সঠিক উত্তর হল {L}",
    "Antwort: {L}",
    "Die richtige Antwort ist {L}.",
    "Respuesta: {L}",
    "La respuesta correcta es la {L}.",
    "Réponse : {L}",
    "La bonne réponse est {L}.",
    "उत्तर: {L}",
    "सही उत्तर {L} है।",
    "सही विकल्प ({L}) है।",
    "Jawaban: {L}",
    "Jawaban yang benar adalah {L}.",
    "Risposta: {L}",
    "La risposta corretta è la {L}.",
    "答え: {L}",
    "答えは{L}です。",
    "정답: {L}",
    "정답은 {L}입니다.",
    "Resposta: {L}",
    "A resposta correta é a letra {L}.",
    "Jibu: {L}",
    "Jibu sahihi ni {L}.",
    "Ìdáhùn: {L}",
    "Ìdáhùn tó tọ́ ni {L}",
    "答案: {L}",
    "答案是{L}。",
    "Cevap: {L}",
    "Đáp án: {L}",
    "Câu trả lời là {L}.",
    "Svar: {L}",
    "Rätt svar är {L}.",
    "Odpowiedź: {L}",
    "Ответ: {L}",
    "คำตอบ: {L}",
    # Marks
    "\\boxed{{{L}}}",
    "\\boxed{{\\text{{{L}}}}}",
    "\\boxed{{\\textbf{{({L})}}}}",
    "The answer is $\\boxed{{{L}}}$.",
    "<answer>{L}</answer>",
    "<answer>\n{L}\n</answer>",
    "<answer>{L}) {T}</answer>",
    "<choice>{L}</choice>",
    "<option>{L}</option>",
    "<final_answer>{L}</final_answer>",
    "<think>{X}, or {Y}? The answer is {X}.</think>{L}",
    # Corrections
    "The answer is {X}. Wait, no, {L}.",
    "The answer is {X}. Wait, that is wrong. The answer is {L}.",
    "The answer is {X}. No, {L}.",
    "The answer is {X}. Actually, it's {L}.",
    "The answer is {X}. Correction: {L}.",
    "The answer is {X}. Sorry, I made a mistake. The answer is {L}.",
    "\\boxed{{{X}}}. Wait, that is wrong. \\boxed{{{L}}}",
    "Is it {X}? No. It is {L}.",
    "If the answer were {X}, the river would be the Tiber. So the answer is {L}.",
    "The answer is {X}.\n\nHmm, wait. Actually the answer is {L}.",
    "The answer is {X}. On second thought, it is {L}.",
    "\u7b54\u6848\uff1a{X}\u3002\u4e0d\u5bf9\uff0c\u5e94\u8be5\u662f{L}\u3002",
    "There is no doubt that the answer is {L}.",
    "I'd choose {L} over {X}.",
    "The answer isn't {X}; it's {L}.",
    "The answer cannot be {X}, so it must be {L}.",
    "Result: {L}",
    "answer={L}",
    "Probably {L}.",
    "Wrong answer: {X}. Right answer: {L}.",
    "The answer is {L}.\n\nExplanation:\nA) Rome is in Italy.\nB) Paris is in France.\nC) London is in England.",
    # Letters on lines of their own
    "{L}",
    "({L})",
    "**{L}**",
    "{L}.",
    "Option {L}",
    "({L}) {T}",
    "{L}) {T}",
    "{L}. {T}",
    "**{L}) {T}**",
    "{L}, because it lies there.",
    # a last line behind one that lists nothing
    "Each country has a capital.\n{L}) {T}",
    "Every city is big.\n**{L}) {T}**",
    "Each river is long, and which is longest?\n{L}: {T}",
    "I compared all the options.\n{L}) {T}",
    "Consider the Thames.\n{L}",
    # contrasts and arrows
    "{L}, not {X}.",
    "{L} and not {X}",
    "{L} instead of {X}.",
    "Not {X}, not {Y}: {L}.",
    "\u2192 {L}",
    "=> {L}",
    "\u2234 {L}",
    "The answer is {L}, not {X} or {Y}.",
    "It is {L} rather than {X}.",
    "Answer => {L}",
    "The answer's {L}.",
    "It has to be {L}.",
    "Let's go with {L}.",
    "Going with {L}.",
    "My first choice is {L}.",
    "In May the answer is {L}.",
    "The statement that is not true is {L}.",
    "The incorrect statement is {L}.",
    "The only false statement is option {L}.",
    "Option {L} it is.",
    "{L} (not {X})",
    "Answer: \u2705 {L}",
    "I'd answer {L}.",
    "I would answer {L}, for it lies there.",
    "The option that is NOT correct is {L}.",
    "The one that does not belong is {L}.",
    "The exception is {L}.",
    "{L} is the only one that works.",
    "Without a doubt, {L}.",
    "\u041d\u0435 {X}, \u0430 {L}.",
    "Answer: {L} (not {X})",
    # Other languages
    "La respuesta correcta es {L}.",
    "La respuesta es la {L}.",
    "Respuesta: {L}",
    "La opci\u00f3n correcta es la {L}.",
    "Por lo tanto, {L}.",
    "{L} es correcta.",
    "No es {X} sino {L}.",
    "La bonne r\u00e9ponse est {L}.",
    "La r\u00e9ponse correcte est la {L}.",
    "R\u00e9ponse : {L}",
    "C'est la r\u00e9ponse {L}.",
    "Donc, {L}.",
    "Die richtige Antwort ist {L}.",
    "Die Antwort lautet {L}.",
    "Antwort: {L}",
    "L\u00f6sung: {L}",
    "Option {L} ist richtig.",
    "Nicht {X}, sondern {L}.",
    "Also {L}.",
    "A resposta correta \u00e9 {L}.",
    "A resposta \u00e9 a {L}.",
    "A alternativa correta \u00e9 a letra {L}.",
    "Resposta: {L}",
    "Portanto, {L}.",
    "La risposta corretta \u00e8 {L}.",
    "La risposta \u00e8 la {L}.",
    "Risposta: {L}",
    "Het antwoord is {L}.",
    "Jawaban: {L}",
    "\u041e\u0442\u0432\u0435\u0442: {L}",
    "\u041f\u0440\u0430\u0432\u0438\u043b\u044c\u043d\u044b\u0439 \u043e\u0442\u0432\u0435\u0442: {L}.",
    "\u041f\u0440\u0430\u0432\u0438\u043b\u044c\u043d\u044b\u0439 \u043e\u0442\u0432\u0435\u0442 \u2014 {L}.",
    "\u0417\u043d\u0430\u0447\u0438\u0442, {L}.",
    "\u7b54\u6848\u662f{L}\u3002",
    "\u7b54\u6848\uff1a{L}",
    "\u6b63\u786e\u7b54\u6848\u662f {L}\u3002",
    "\u6b63\u786e\u7b54\u6848\u4e3a{L}\u3002",
    "\u6545\u9009{L}\u3002",
    "\u56e0\u6b64\uff0c{L}\u3002",
    "\u9009\u9879{L}\u662f\u6b63\u786e\u7684\u3002",
    "\u4e0d\u662f{X}\uff0c\u800c\u662f{L}\u3002",
    "\u7b54\u3048\u306f{L}\u3067\u3059\u3002",
    "\u6b63\u89e3\u306f{L}\u3067\u3059\u3002",
    "\u7b54\u3048\uff1a{L}",
    "{L}\u304c\u6b63\u89e3\u3067\u3059\u3002",
    "\uc815\ub2f5\uc740 {L}\uc785\ub2c8\ub2e4.",
    "\uc815\ub2f5: {L}",
    "\ub530\ub77c\uc11c {L}.",
    "\u0627\u0644\u0625\u062c\u0627\u0628\u0629 \u0627\u0644\u0635\u062d\u064a\u062d\u0629 \u0647\u064a {L}.",
    "\u0627\u0644\u0625\u062c\u0627\u0628\u0629: {L}",
    "\u0627\u0644\u062c\u0648\u0627\u0628 \u0647\u0648 {L}",
)
HEADINGS = (
    "Let's evaluate each option:\n\n",
    "Let me go through the options one by one:\n",
    "Let us consider every answer:\n\n",
    "We check each possible answer:\n",
    "Options:\n",
    "Analysis of each choice:\n\n",
    "Which option is right?\n",
    "Choose the correct answer:\n",
    "",
)
EVALUATIONS = (
    ("{L}) {T} is right.", "{L}) {T} is wrong."),
    ("- {L}) {T}: it lies in {C}.", "- {L}) {T}: it lies in {C}."),
    ("**{L}.** {T} lies in {C}.", "**{L}.** {T} lies in {C}."),
    ("- **Option {L}**: {T} is the capital of {C}.", "- **Option {L}**: {T} is the capital of {C}."),
    ("{L}: {T}, correct.", "{L}: {T}, incorrect."),
    ("({L}) {T} \u2705", "({L}) {T} \u274c"),
    ("### Option {L}\nIt is the capital of {C}.", "### Option {L}\nIt is the capital of {C}."),
    ("* {L} - {T}", "* {L} - {T}"),
)
CONCLUSIONS = (
    "The answer is {L}.",
    "Hence, {L}.",
    "**Answer: {L}**",
    "\\boxed{{{L}}}",
    "So the correct option is ({L}).",
    "{L} is the right one, so I choose {L}.",
    "Therefore, the correct answer is **{L}) {T}**.",
    "<answer>{L}</answer>",
)


def filled(frame: str, letter: str) -> str:
    """Return a frame around a letter; X, Y and Z are the others."""
    others = [other for other in LETTERS if other != letter]
    place = LETTERS.index(letter)
    return frame.format(
        L=letter,
        T=CITIES[place],
        C=COUNTRIES[place],
        X=others[0],
        Y=others[1],
        Z=others[2],
        XC=COUNTRIES[LETTERS.index(others[0])],
    )


def listed(heading: str, lines: tuple[str, str], gold: str) -> str:
    """Return the options gone through, each in one line; the first way of writing it is the gold's."""
    return heading + "\n".join(filled(lines[letter != gold], letter) for letter in LETTERS) + "\n\n"


def paid(completion: str, gold: str, choices: tuple[str, ...] | None) -> bool:
    score: Score = multiple_choice(completion=completion, answer=gold, choices=list(choices) if choices else None)
    return score.value == 1.0


def payees(completion: str) -> str:
    """Return the letters for which a completion is paid in a row with or without its choices."""
    return "".join(letter for letter in LETTERS if any(paid(completion, letter, given) for given in (None, CITIES)))


@pytest.mark.cases(150)
@pytest.mark.parametrize("frame", STATEMENTS)
@pytest.mark.parametrize("before", ["", "Paris lies on the Seine, and Rome on the Tiber.\n\n"], ids=["alone", "behind"])
def test_a_letter_is_paid_in_every_frame(frame: str, before: str) -> None:
    """What chooses one letter chooses every letter, and pays no other."""
    for letter in LETTERS:
        completion = before + filled(frame, letter)
        assert letter == payees(completion), completion
        assert paid(completion, letter, None), completion
        assert paid(completion, letter, CITIES), completion


NATIVE = {
    "Arabic": ("الإجابة: {L}", "أبجد"),
    "Arabic, alone": ("({L})", "أبجد"),
    "Bengali": ("সঠিক উত্তর: {L}", "কখগঘ"),
    "Bengali, another row": ("উত্তর: ({L})", "অবডঢ"),
    "Hindi": ("सही उत्तर ({L}) है।", "कखगघ"),
    "Japanese": ("答え:{L}", "アイウエ"),
    "Korean": ("정답: {L}", "가나다라"),
    "Thai": ("คำตอบ: {L}", "กขคง"),
    "Chinese": ("答案: {L}", "甲乙丙丁"),
}


@pytest.mark.parametrize("script", NATIVE)
@pytest.mark.parametrize("gold", LETTERS)
def test_letters_of_other_scripts_count_choices_too(script: str, gold: str) -> None:
    """The letter at the gold's place in its script's order is paid, and no other; a row may have it for its answer."""
    frame, letters = NATIVE[script]
    paid_letters = [letter for letter in letters if paid(frame.replace("{L}", letter), gold, None)]
    assert [letters[LETTERS.index(gold)]] == paid_letters
    assert paid(f"Answer: {gold}", letters[LETTERS.index(gold)], None)


@pytest.mark.parametrize(
    "completion",
    [
        "나 는 간다",
        "الإجابة ليست ج",
        "उत्तर C नहीं है",
        "Not only C works.",
        "I would take care.",
        "If only C fits, fine.",
    ],
)
def test_words_of_one_letter_and_denied_ones_choose_nothing(completion: str) -> None:
    assert not letters_chosen(completion, LETTERS, None).letters


def test_a_small_letter_counts_that_leads_the_only_line() -> None:
    assert paid("b. 4", "B", None)
    assert not paid("b. 4 is one of them\nc. 5 is another", "B", None)
    for completion in ("b. 4 or D. 5", "b. 4 or d. 5", "B. 4 or D. 5"):
        assert not paid(completion, "B", None), completion


@pytest.mark.slow
@pytest.mark.parametrize("heading", HEADINGS, ids=lambda heading: heading.strip() or "none")
def test_a_statement_behind_all_options_is_paid_for_each_letter(heading: str, full: bool) -> None:
    """Every right answer is paid alike, in rows with and without choices; in the short form in a third of the ways."""
    frames = list(itertools.product(EVALUATIONS, CONCLUSIONS, (None, CITIES)))
    frames = frames if full else frames[HEADINGS.index(heading) % 3 :: 3]
    counts = Counter(
        letter
        for letter in LETTERS
        for lines, conclusion, choices in frames
        if paid(listed(heading, lines, letter) + filled(conclusion, letter), letter, choices)
    )
    assert dict.fromkeys(LETTERS, len(frames)) == counts


@pytest.mark.cases(24)
@pytest.mark.slow
@pytest.mark.parametrize("lines", EVALUATIONS, ids=lambda lines: lines[0])
@pytest.mark.parametrize("heading", HEADINGS[:-1], ids=lambda heading: heading.strip())
def test_a_list_of_the_options_that_is_cut_off_pays_nobody_by_position(
    heading: str, lines: tuple[str, str], full: bool
) -> None:
    """Wherever it is cut, a list pays none but the letter that it has called right.

    The short form cuts it at every 19th character, and for each heading elsewhere.
    """
    start, step = (0, 3) if full else (HEADINGS.index(heading), 19)
    for letter in LETTERS:
        whole = listed(heading, lines, letter)
        for end in range(len(heading) + start, len(whole), step):
            allowed = letter if lines[0] != lines[1] else ""
            assert payees(whole[:end]) in ("", allowed), whole[:end]


@pytest.mark.parametrize(
    "frame",
    [
        # every letter
        "A B C D",
        "A, B, C, D",
        "A\nB\nC\nD",
        "B\nC\nA\nD\nE",
        "B. A.",
        "I like A but B",
        "The fact is that it is not true that the answer is B.",
        "Analysons chaque option :\n\nB) Paris",
        "The answer that is not right is B.",
        "The answer is A, B, C or D.",
        "The answer is A. The answer is B. The answer is C. The answer is D.",
        "A is correct. B is correct. C is correct. D is correct.",
        "A) Rome is right.\nB) Paris is right.\nC) London is wrong.",
        "\\boxed{A} \\boxed{B} \\boxed{C} \\boxed{D}",
        "<choice>A</choice><choice>B</choice>",
        "\u2705 A\n\u2705 B\n\u2705 C",
        "Hence, A. Hence, B.",
        "So A. Or B.",
        "The answer is A. Maybe B.",
        "The answer is A. The answer is B. Wait, that is wrong. The answer is C.",
        "The answer is A. The answer is B. No, C.",
        "Answer: A Answer: B",
        "Hence A, hence B.",
        "The answer is\nA\nB\nC\nD",
        "A) Rome. B) Paris. C) London.",
        "\u7b54\u6848\u662fA\u3001B",
        # either
        "B, or C",
        "A or B",
        "Either A or B.",
        "The answer is either A or B.",
        "The answer is A) Rome or B) Paris.",
        "The answer is A (or B).",
        "A and B are correct, so both.",
        "A or B is correct.",
        "Neither A nor B is correct.",
        "La respuesta es A o B.",
        "Die Antwort ist A oder B.",
        "\u7b54\u6848\u662fA\u6216B",
        "The answer is A. Alternatively, B.",
        # thoughts
        "<think>The answer is B.</think>",
        "<think>The answer is B.",
        "<thinking>B</thinking>",
        # words
        "A cat sat on the mat.",
        "A is the first letter.",
        "So a river it is.",
        "The answer is a river.",
        "The answer is blue.",
        "There is no B.",
        "A resposta",
        "Vitamin B is good.",
        # denials
        "The answer is not B.",
        "The answer isn't A.",
        "I don't think the answer is B.",
        "I'm not sure it is B.",
        "The false statement is A, so the answer is B.",
        "A) Rome is wrong.\nB",
        "I doubt that the answer is B.",
        "It is not true that the answer is B.",
        "The wrong answer is B.",
        "B is not correct.",
        "B isn't right.",
        "Not B is correct.",
        "Not B.",
        "B is wrong.",
        "B is partly right, but not the answer.",
        "Is B correct?",
        "B is correct?",
        "The answer is B?",
        "B? No.",
        "So, not B.",
        "If B is correct, then the river is the Seine.",
        "Some people say that B is correct.",
        "One might think the answer is B.",
        "Let us suppose the answer is B.",
        "B is a common mistake.",
        "The answer is B is a common mistake.",
        "La respuesta no es B.",
        "Die Antwort ist nicht B.",
        "La r\u00e9ponse n'est pas B.",
        "\u7b54\u6848\u4e0d\u662fB",
        "\u7b54\u3048\u306fB\u3067\u306f\u306a\u3044",
        "\u041e\u0442\u0432\u0435\u0442 \u043d\u0435 B.",
        # withdrawn
        "The answer is B. Wait, that is wrong.",
        "The answer is B. No, that is not right.",
        "B is correct. Scratch that.",
        "\\boxed{B} is wrong.",
        "\\boxed{(B) is false}",
        "<answer>(B) is incorrect</answer>",
        "<answer>B</answer> Wait, I made a mistake.",
        "B\nWait, that is wrong.",
        "The answer is B. The answer is B. Wait, that is wrong.",
        # the question, given back
        "Which is right: A) Rome or B) Paris?",
        "Choose the correct answer: A) Rome B) Paris C) London",
        "What is the answer?\nA) Rome\nB) Paris\nC) London\nD) Madrid\nAnswer:",
        "Options:\n- Rome\n- Paris\n- London",
        "Options:\n- Rome",
        "Rome\nParis",
        "A. Wrong. B. Right.",
        "Option A: incorrect. Option B: correct. Option C: incorrect.",
        "A) Rome is wrong.",
        # an evaluation that is cut off
        "Let me think step by step.\nA:",
        "Let me think step by step.\nB: Paris ",
        "| Option | Verdict |\n|---|---|\n| B |",
        "- **A**: Rome\n- **B**",
        "### Option B",
        "### Option B\nPa",
        "### B\nParis is in France.\n###",
        "B. Paris\nParis is the capital of France, so it's n",
        "\u0412\u0430\u0440\u0438\u0430\u043d\u0442\u044b:\nB",
        "It is the c",
        "First, B",
        "First, option B",
        # another one besides
        "The answer is A, possibly B.",
        "The answer is B. Or maybe A.",
        "The answer is B. But A is possible too.",
        "The answer is B, but A is also acceptable.",
        "The answer is B; A too.",
        "The answer is B as well as A.",
        "The answer is A for some, B for others.",
        "The answer is B with 25%, A with 25%.",
        "B: 50%, A: 50%",
        # no choice
        "The first letter is A and the second is B.",
        "Nobody would say the answer is B.",
        "The answer is B, or is it?",
        "The answer is B (wrong).",
        "The answer is B. My mistake.",
        "The answer is B. Actually no.",
        "\uc815\ub2f5\uc740 B\uac00 \uc544\ub2d9\ub2c8\ub2e4.",
        # struck out
        "~~B~~",
        # look-alikes
        "\u0412",
        "\u041e\u0442\u0432\u0435\u0442: \u0412",
        "The answer is \u0391.",
        # a frame without its answer
        "The answer is",
        "Answer:",
        "<choice></choice>",
        "\\boxed{}",
    ],
)
def test_what_names_no_letter_or_several_pays_nobody(frame: str) -> None:
    assert payees(frame) == ""


@pytest.mark.parametrize(
    ("completion", "letters", "rule"),
    [
        ("A is correct. The answer is B.", "B", "a statement"),
        ("The answer is A.\n\\boxed{B}", "B", "a box or tags"),
        ("A\n\nB is correct.", "B", "a judgement"),
        ("The answer is C. \\boxed{D}", "D", "a box or tags"),
        ("Let us see.\nC", "C", "a line of its own"),
        ("C) London", "C", "a marked line"),
        ("London", "C", "the text of a choice"),
        ("A or B", "AB", "a line of its own"),
        ("nothing", "", ""),
    ],
)
def test_the_first_rule_by_which_a_letter_stands_decides(completion: str, letters: str, rule: str) -> None:
    """The reason of a score names it."""
    assert rule in str(multiple_choice(completion=completion, answer="B", choices=list(CITIES)).reason)
    assert letters_chosen(completion, LETTERS, CITIES) == (frozenset(letters), rule)


PIECES = (
    *(
        "The answer is {0}",
        "Answer: {0}",
        "{0} is correct",
        "{0} is wrong",
        "({0})",
        "{0}",
        "so {0}",
        "not {0} but {1}",
    ),
    *("{0} or {1}", "Hence, {0}.", "Option {0}", "{0}) Paris", "**{0}**", "- {0}: ", "\\boxed{{{0}}}", "\u2705 {0}"),
    *("<choice>{0}</choice>", "{0}, {1} and {2} are out", "leaves {0}", "{0} lies there", "\u7b54\u6848\u662f{0}"),
    *("La respuesta es {0} ", "No, ", "Wait, no, ", "because ", "if ", "it is ", "the option ", "only ", "I think "),
    *("Let us see: ", "\n", "\n\n", ". ", ", ", "? ", "! "),
)


@given(st.lists(st.tuples(st.sampled_from(PIECES), st.integers(0, 3)), max_size=6), st.permutations("FKPV"))
def test_letters_that_change_places_are_read_alike(pieces: list[tuple[str, int]], order: list[str]) -> None:
    """What a text says it says of every letter; those of a list follow one another, and these do not."""

    def written(letters: list[str]) -> frozenset[str]:
        text = " ".join(piece.format(*(letters[place:] + letters[:place])) for piece, place in pieces)
        return letters_chosen(text, "FKPV", None).letters

    changed = dict(zip("FKPV", order, strict=True))
    assert {changed[letter] for letter in written(list("FKPV"))} == written(order)


@pytest.mark.parametrize("wrap", ["\\boxed{%s}", "<answer>%s</answer>", "The answer is $%s$.", "$%s$", "%s", "%s."])
@pytest.mark.parametrize("text", ["\\frac{4}{11}", "\\dfrac{4}{11}", "\\sqrt{2}", "1\\frac{1}{4}", "x^{2}"])
def test_choices_in_latex_are_read_as_the_completion_is(wrap: str, text: str) -> None:
    """A choice's braces and commands are those of the text that names it."""
    choices = ["9", text, "\\frac{41}{1}", "10"]
    assert letters_chosen(wrap % text, LETTERS, choices).letters == {"B"}


def test_a_choice_may_hold_a_denial() -> None:
    """What a choice says is no word on the choice."""
    assert letters_chosen("B) It does not move.", LETTERS, None).letters == {"B"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit",
    [
        *(
            "answer is ",
            "A is correct. ",
            "\\boxed{",
            "\\boxed{A}",
            "<answer>",
            "so A ",
            "A) x\n",
            "A or ",
            "not A but ",
        ),
        *("Wait, no, ", "*", " ", "\n", "A\n", "(", "\u2705A ", "\u0130 the answer is A\n", "No, A. ", "the best "),
        *("the answer is A. Wait, that is wrong. ", "Paris. ", "\u9009", "so\n", "so\nA\n"),
    ],
)
def test_a_long_text_takes_linear_time(unit: str, full: bool) -> None:
    """Many thousand characters of one mark are read through; what is quadratic would not end."""
    letters_chosen(unit * ((100_000 if full else 10_000) // len(unit)), LETTERS, CITIES)
