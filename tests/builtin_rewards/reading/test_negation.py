"""Whether the words around an answer let it stand. ``@`` marks the answer."""

from __future__ import annotations

import pytest

from builtin_rewards.reading.negation import clause_denies, objection, supposed_before

DENIED = [
    "not @",
    "It is not the @.",
    "It isn't $@$",
    "It cannot be @",
    "It can't be @",
    "anything but @",
    "any number except @",
    "other than @",
    "x \\ne @",
    "x != @",
    "x \u2260 @",
    "\\neg @",
    "The wrong answer is @.",
    "incorrect result: @",
    "I doubt that it is @.",
    "I don't think that it is @",
    "If the answer is @",
    "If x = @",
    "Assume x = @.",
    "I'm not sure it is @.",
    "I am not certain that the answer is @.",
    "Here is a wrong list: @",
    "An incorrect set:\n@",
    "I doubt it's @",
    "It is unlikely to be @",
    "I refuse to say it is @",
    "anything besides @",
    "@ seems unlikely",
    "@ is doubtful.",
    "@? I doubt it.",
    "@, but I doubt it.",
    "@. I doubt that.",
    "@? I don't think so.",
    "@ can't be right",
    "@. That is a lie.",
    "@. Just kidding, it is 43",
    "It is false that the answer is @",
    "@ is wrong.",
    "@ is not correct",
    "@ (which is incorrect).",
    "@, which is a common mistake",
    "@ is a trap",
    "@? No",
    "@ and rejected it",
    "@ but we discard it",
    "@ was ruled out",
    "@. Wait, that is wrong.",
    "@. Wait, that's not right.",
    "@. Hmm, wait, this is incorrect",
    "@. No, that is wrong",
    "@. No, wait.",
    "@. No.",
    "@. Scratch that.",
    "@. Oops.",
    "@. Sorry, the answer is 43",
    "@. Actually, that is not right.",
    "@. I made a mistake.",
    "@. Wait, I made an error",
    "@. I miscalculated",
    "@. Correction: 43",
    "@. Let me correct that.",
    "@. My answer is wrong.",
    "@. Wait, the previous answer was incorrect.",
    "@. Wait, @ is wrong.",
    "@! That can't be right.",
    "@.\n\nWait, no, that is a mistake.",
    "@ \u2014 no, wait",
    "It would be a mistake to answer @",
    "It is wrong to say that the answer is @",
    "I reject @",
    "We can exclude the value @.",
    "I ruled out x = @",
    "@% is wrong.",
    "$@\\%$ is false",
    "I considered @% and rejected it.",
    "@ is excluded.",
    "@ is out of the question",
    "@ cannot be",
    "@ does not work.",
    "@. But it should be 41.",
    "@. It should be 41.",
    "@. In fact it is 41.",
    "@. In fact, it's $41$.",
    "@. I mean 41.",
    "@. Make that 41.",
    "@. Rather, 41.",
    "@. Hmm, actually 41.",
    "@. Edit: 41",
    "@. Nein, das ist falsch.",
    "@\u3002\u4e0d\u5bf9\u3002",
    "@. \u041d\u0435\u0442, \u044d\u0442\u043e \u043d\u0435\u0432\u0435\u0440\u043d\u043e.",
    "@. Wait \u2013 that is wrong.",
    "@. I think that's wrong.",
    "@. On second thought, that's not correct.",
    "@. My mistake.",
    "@. My bad.",
    "@. Not really.",
    "@. I was joking.",
    "@. Let me try again.",
    "@. Actually, let me recompute: 6*7",
    "@. Please ignore the previous answer.",
    "@. The above is wrong.",
    "Is the answer @?",
    "Could it be @?",
    "Hmm, is it **@**?",
    "Who says the answer is @?",
    "@. But wait, I forgot one.",
    "Without @",
    "Nobody would say it is @.",
    "@ (wrong).",
    "@, or is it?",
    "@. Actually no.",
    "No way it's @.",
    "Unless it is @.",
    "None of them is @.",
    "A common error is @.",
    "The result differs from @.",
    "The answer might be @, or not.",
    "It is a mistake to think the answer is @.",
    "La r\u00e9ponse n'est pas @.",
    "\u041e\u0442\u0432\u0435\u0442 \u043d\u0435 @.",
]
STANDING = [
    "@",
    "It is not 41 but @.",
    "not only @",
    "There is no doubt that it is @.",
    "Without a doubt, it is @",
    "none other than @",
    "@. I doubt that 41 works.",
    "I am not sure, but it is @.",
    "I am certain that it is @.",
    "@. Is that wrong?",
    "@, but I don't think it matters here that x is odd",
    "The answer is not obvious: @.",
    "The first try is wrong, and so @.",
    "41 is incorrect. The answer is @.",
    "@. No other value works.",
    "@. Not only that, it is the only one",
    "@ is not the only root",
    "@. Wait",
    "@. Wait, let me verify: it checks.",
    "@. Wait, 41 is wrong.",
    "@. Note that 41 is wrong",
    "@. This is correct.",
    "@. That is not a coincidence.",
    "@, since we reject the negative root.",
    "@ because x = -3 is rejected",
    "@. I hope it helps. Sorry for the delay",
    "@. Actually, it is also a square.",
    "@ apples, no more",
    "@. Ignore the units.",
    "I reject 41, so @",
    "It is a mistake to say 41. It is @",
    "@ does not work out to a whole number of weeks",
    "@. In fact it is even.",
    "@. In fact it is 2*21.",
    "@. I mean @.",
    "@. It should be @ since 6*7 is @.",
    "@. It should be noted that 41 is odd.",
    "@. It should be 5 minutes of work.",
    "@. Actually 41 is near.",
    "@. Let me recompute to be sure: 6*7",
    "@. Let me try the other way too.",
    "What is 6*7? @",
    "Is it @? Yes",
    "Can it be 41? No, it is @.",
    "None of them is 41, so it is @.",
    "The percent error is @.",
    "@. I forgot to mention that x is odd.",
    "@ students were there.",
]
OF_THE_SUBJECT = [
    "The number of wrong answers is @.",
    "Number of wrong answers: @",
    "Therefore, the number of bad workers needed is @.",
    "The number of students who did not pass is @.",
    "The number of students who didn't pass is therefore @.",
    "The number of students who gave the wrong answer is @.",
    "The number of answers that are not correct is @.",
    "The number of x such that x is not prime is @.",
    "The number of days when nobody comes equals @.",
    "The number of divisors other than 1 is @.",
    "The probability that it does not rain is @.",
    "The probability of not winning is @.",
    "The chance that neither wins is @.",
    "The number of integers not divisible by 3 is @.",
    "The smallest number that does not divide 12 is @.",
    "The statement that is not true is @.",
    "The number of orders such that the chocolate scoop is not on the bottom is @.",
    "The number of boxes that it can hold while not exceeding the bridge's weight limit is @.",
]
OF_THE_ANSWER = [
    "The number of students who did not pass is not @.",
    "The number of students who did not pass can't be @.",
    "The number of cases is not @.",
    "The number of cases never really equals @.",
    "The number that I want never really is @.",
    "The number of the wrong option is @.",
    "The only wrong answer is @.",
    "I doubt the number of students who did not pass is @.",
    "I don't think the number of students who pass is @.",
    "The number does not mean x is @.",
    "The answer that is not right is @.",
    "The fact is that it is not true that the answer is @.",
    "x is not equal to @",
]


def objected(marked: str) -> str:
    """What is said against 42 where a text has a mark for it, right at it or in its clause."""
    start = marked.index("@")
    text = marked.replace("@", "42")
    return objection(text, start, start + 2, "42")


@pytest.mark.parametrize("marked", DENIED)
def test_an_answer_that_is_denied_or_taken_back_does_not_stand(marked: str) -> None:
    """Right before it, in its sentence behind it, or in the next one."""
    assert objected(marked)


@pytest.mark.parametrize("marked", STANDING)
def test_an_answer_that_is_not_denied_stands(marked: str) -> None:
    """What denies another answer, checks it or goes on about it says nothing against it."""
    assert not objected(marked)


@pytest.mark.parametrize(
    "marked",
    [
        "I doubt very much whether we get @",
        "It never was quite equal to @",
        "I cannot solve it. @",
        "It is hardly @",
        "It is no longer @",
        "It is far from @",
        "Nobody gets @",
    ],
)
def test_a_clause_may_deny_from_further_off(marked: str) -> None:
    """Where no word announces the answer, the whole clause before it counts."""
    assert clause_denies(marked, marked.index("@"))


@pytest.mark.parametrize("marked", OF_THE_SUBJECT)
def test_what_the_subject_denies_of_itself_says_nothing_against_the_answer(marked: str) -> None:
    """Those who did not pass are 42: the verb behind affirms the number."""
    assert not objected(marked)
    assert not clause_denies(marked, marked.index("@"))
    assert not supposed_before(marked, marked.index("@"))


@pytest.mark.parametrize("marked", OF_THE_ANSWER)
def test_a_denial_of_the_verb_counts_whatever_the_subject_says(marked: str) -> None:
    """The verb before the number is denied, or the statement, or the subject is called wrong itself."""
    assert clause_denies(marked, marked.index("@"))


@pytest.mark.parametrize(
    "word",
    [
        "the number who not ",
        "value by by not not ",
        "number of ",
        "it should be ",
        "not ",
        "wait ",
        "no, ",
        "is ",
        "it ",
        "that is ",
        "$",
        "that ",
        "the answer is ",
    ],
)
def test_repeated_words_take_a_bounded_time(word: str) -> None:
    """What stands further off than some characters is not looked at."""
    text = word * 20_000
    for place in range(0, len(text), 20_001):
        objection(text, place, place + 2, "42")
        clause_denies(text, place)
