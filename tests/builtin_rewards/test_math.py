"""The mathematics rewards: what equals what, what is refused, and what is never evaluated."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
from typing import Any

import pytest

from builtin_rewards.math import math_answer, numeric_close
from builtin_rewards.reading.shapes import reading_fault
from rewardkit import Rollout, Runtime

HONEST = [
    ("False", "The answer is False."),
    ("\\text{ellipse}", "The graph is an ellipse."),
    ("\\text{ellipse}", "\\boxed{\\text{an ellipse}}"),
    ("pi", "\\boxed{\\pi}"),
    ("red, blue", "\\boxed{blue and red}"),
    ("x = 814\\ \\text{L}", "\\boxed{814 L}"),
    ("x = 378\\ \\text{J}", "<answer>0.378 kJ</answer>"),
    ("x = 16392000", "\\boxed{16\\,392\\,000}"),
    ("\\text{no solution}", "\\boxed{\\emptyset}"),
    ("19:33", "\\boxed{7:33\\text{ p.m.}}"),
    ("y = x-7", "#### x-y-7 = 0"),
    ("(-12, 2)", "The answer is x = -12, y = 2."),
    ("(-\\infty,-1)\\cup(1,\\infty)", "The solution is x < -1 or x > 1."),
    ("(-\\infty,-1)\\cup(1,\\infty)", "Therefore \\boxed{x < -1} or \\boxed{x > 1}."),
    ("(-\\infty,5)\\cup(9,\\infty)", "\\boxed{\\{x : x < 5 \\text{ or } x > 9\\}}"),
    # golds as data sets write them
    ('["3", "-3"]', "\\boxed{3, -3}"),
    ("Answer: 5", "\\boxed{5}"),
    ("<answer>5</answer>", "\\boxed{5}"),
    ('"5"', "\\boxed{5}"),
    ("\\textbf{(A) }5", "\\boxed{A}"),
    ("(A) 5", "\\boxed{(A) 5}"),
    ("(A) 5", "\\boxed{5}"),
    ("42", "42"),
    ("42", "\\boxed{42}"),
    ("42", "\\boxed 42"),
    ("42", "\\fbox{42}"),
    ("42", "$\\boxed{\\boxed{42}}$"),
    ("42", "\\boxed{42.0}"),
    ("42", "\\boxed{x = 42}"),
    ("42", "\\boxed{6 \\cdot 7 = 42}"),
    ("42", "\\boxed{42 \\text{ apples}}"),
    ("42", "<answer>42</answer>"),
    ("42", "<think>\\boxed{41}? no</think>\n<answer> 42 </answer>"),
    ("42", "<answer>\\boxed{42}</answer>"),
    ("42", "<answer>She has 42 apples left.</answer>"),
    ("42", "<answer>The answer is 42.</answer>"),
    ("42", "The answer is 42."),
    ("42", "The answer is: **42**"),
    ("42", "**Final Answer:** 42"),
    ("42", "**Final Answer**\n\n42"),
    ("42", "The final answer is $42$ apples, because 40 + 2 = 42."),
    ("42", "Answer: 42"),
    ("42", "A: 42"),
    ("42", "40 + 2 = <<40+2=42>>42\n#### 42"),
    ("42", "The answer to the question is therefore 42!"),
    ("42", "The answer is\n\\[\n42\n\\]"),
    ("42", "She had 40 and bought 2, so she has 42 apples in total."),
    ("42", "So $x = 42$."),
    ("42", "It is not 41, but 42."),
    ("42", "The answer is \uff14\uff12"),
    ("42", "\\boxed{\u200b42}"),
    ("-5", "\\boxed{\u22125}"),
    ("1234567", "\\boxed{1,234,567}"),
    ("1,234", "The answer is $1234."),
    ("10{,}000", "\\boxed{10000}"),
    ("10,\\!080", "\\boxed{10\\,080}"),
    ("18", "The answer is $18.00 per day."),
    ("\\$18.90", "\\boxed{18.90}"),
    ("$18", "<answer>18 dollars</answer>"),
    ("$18", "<answer>1800 cents</answer>"),
    ("60", "\\boxed{60\\%}"),
    ("60%", "\\boxed{0.6}"),
    ("60\\%", "60 percent"),
    ("1", "\\boxed{100\\%}"),
    ("5", "\\boxed{500\\%}"),
    ("0.5", "\\boxed{\\frac{1}{2}}"),
    ("\\frac{1}{2}", "1/2"),
    ("\\frac12", "\\boxed{0.5}"),
    ("\\frac{1}{3}", "0.333333333"),
    ("\\frac{7}{4}", "\\boxed{1\\frac{3}{4}}"),
    ("1 3/4", "\\boxed{1.75}"),
    ("6.72e-5", "\\boxed{6.72 \\times 10^{-5}}"),
    ("5 meters", "\\boxed{5}"),
    ("5 meters", "\\boxed{5\\text{ m}}"),
    ("5 m", "\\boxed{500 \\text{ cm}}"),
    ("5 miles per hour", "The answer is 5 mph."),
    ("864 \\mbox{ inches}^2", "\\boxed{864 \\text{ square inches}}"),
    ("30^\\circ", "\\boxed{30}"),
    ("30^\\circ", "30 degrees"),
    ("1 hour", "<answer>60 minutes</answer>"),
    ("5 apples", "<answer>5 green apples</answer>"),
    ("52_8", "\\boxed{52_{8}}"),
    ("\\text{east}", "\\boxed{\\text{East}}"),
    ("Evelyn", "The answer is Evelyn."),
    ("\\text{(C)}", "\\boxed{C}"),
    ("C", "\\boxed{(C) 1.2}"),
    ("C", "The answer is (C)."),
    ("2k+2", "\\boxed{2(k+1)}"),
    ("x=5", "\\boxed{5}"),
    ("\\sqrt{12}", "\\boxed{2\\sqrt{3}}"),
    ("7\\pi", "\\boxed{7π}"),
    ("3\\sqrt{13}", "The answer is $3\\sqrt{13}$."),
    ("3\\sqrt{2} \\text{ cm}", "\\boxed{3\\sqrt{2}}"),
    ("6+9i", "\\boxed{9i + 6}"),
    ("3, 5, 7", "\\boxed{3, 7, 5}"),
    ("3, 5, 7", "\\boxed{3}, \\boxed{5} and \\boxed{7}"),
    ("1,-2", "The answer is x = 1 or x = -2."),
    ("1,-2", "\\boxed{1 \\text{ or } -2}"),
    ("\\{1, 2\\}", "\\boxed{2, 1}"),
    ("(3, \\frac{\\pi}{2})", "\\boxed{\\left( 3, \\frac{\\pi}{2} \\right)}"),
    ("(3,4]", "\\boxed{(3, 4]}"),
    ("(-\\infty, 2) \\cup (3, \\infty)", "\\boxed{(-\\infty,2)\\cup(3,\\infty)}"),
    ("x \\in [-2,7]", "\\boxed{[-2, 7]}"),
    ("[-2,7]", "\\boxed{-2 \\le x \\le 7}"),
    (
        "\\begin{pmatrix} -1/3 \\\\ 2/3 \\end{pmatrix}",
        "\\boxed{\\begin{pmatrix} -\\frac{1}{3} \\\\ \\frac{2}{3} \\end{pmatrix}}",
    ),
    ("y = 2x + 3", "\\boxed{y = 3 + 2x}"),
    ("40 + 2 = 42\n#### 42", "\\boxed{42}"),
    ("So it is $\\boxed{\\frac{1}{2}}$.", "\\boxed{0.5}"),
    ("18", "The answer is **18** dollars."),
    ("18", "The answer is **$18** per day."),
    ("18", "The answer is *18* dollars"),
    ("18", "The answer is __18__ dollars."),
    ("18", "Answer: **18 dollars** per day"),
    ("18", "**Answer:** **18** dollars"),
    ("18", "The answer is 9 \u00d7 2 = **18**"),
    ("18", "<think>10 or 12?</think>\nThe answer is **18** dollars per day."),
    ("18", "The answer is 18 dollars (i.e., 1800 cents)."),
    ("18", "The answer is: 18 eggs \u00d7 $1 = $18."),
    ("18", "She makes $18/day."),
    ("18", "The answer is 18 \U0001f60a"),
    ("18", "\u2705 18"),
    ("18", "the answer is 18 [1]"),
    ("18", "The answer is 18 dollars.[^1]"),
    ("18", "\\boxed{\\underline{18}}"),
    ("18", "\\boxed{\\color{blue}{18}}"),
    ("18", "\\boxed{\\textcolor{red}{18}}"),
    ("18", "\\boxed{\\text{Janet makes } 18 \\text{ dollars}}"),
    ("18", "It's 18, I'm 100% sure."),
    ("18", "# 18"),
    ("18", "1. 18"),
    ("18", "18</s>"),
    ("18", "18.<|endoftext|>"),
    ("18", "The answer is 18.<|im_end|>"),
    ("18", "\\boxed{18}<|eot_id|>\n"),
    ("18", "Janet makes **18** dollars."),
    ("18", "So **Janet makes $18 per day**."),
    ("18", "The answer is not 17. The answer is 18."),
    ("18", "It is 18, not 17."),
    ("18", "The answer is _18_ eggs."),
    ("18", "It's not hard to see that the answer is 18."),
    ("18", "The answer is ***18***."),
    ("18", "**2 * 9 = 18**"),
    ("18", "The answer is 20 minus 2 = 18."),
    ("18", "20 minus 2 is 18"),
    ("18", "Some <think>x</think> The answer is 18 <think>"),
    ("18", "\\boxed{\\mathbf{18}}"),
    ("18", "More than that, the answer is 18."),
    ("18", "It is twice as many: 18"),
    ("1.5", "It takes 1 1/2 hours."),
    ("1.5", "It takes 1\u00bd hours."),
    ("1.5", "1\u00bd"),
    ("0.5", "The answer is \u00bd."),
    ("42", "The answer is 42, not 41."),
    ("42", "Answer: 42 (since 6*7 = 42)"),
    ("42", "\u7b54\u6848\u662f42\u3002"),
    ("yes", "Yes, because 2>1."),
    ("yes", "Yes."),
    ("-18", "The answer is minus 18."),
    ("-18", "negative 18"),
    ("1800", "18 hundred"),
    ("-18", "It is negative $18."),
    ("-18", "- 18"),
    # a full stop behind a fraction
    ("3/4", "So the probability is 3/4."),
    ("3/4", "So the probability is **3/4**."),
    ("3/4", "The probability = 3/4."),
    ("3/4", "It is $3/4$."),
    ("3/4", "So p = 3/4!"),
    ("1 3/4", "It takes 1 3/4."),
    ("3/4", "So it is 6/8."),
    # a short mark before a name, and LaTeX's thousands in a sentence
    ("64", "#### x = 64"),
    ("64", "9 * 7 + 1 = 64\n#### x=64"),
    ("11111", "We get 11,\\! 111 in total."),
    ("11111", "We get 11{,}111 in total."),
    ("11111", "We get 11\\,111 in total."),
    # roots and ratios in a sentence
    ("3\\sqrt{2}", "It is 3√2."),
    ("\\sqrt{2}", "It is √2."),
    ("3:4", "The ratio is 3:4."),
    ("3:4", "3 to 4"),
    ("3:4", "3/4"),
    ("\\frac{3}{4}", "3:4"),
    # labels
    ("0x1F", "The answer is 0x1f."),
    ("0x1F", "\\boxed{1F}"),
    ("0x1F", "\\boxed{1F_{16}}"),
    ("52_8", "52"),
    ("52", "\\boxed{52_{10}}"),
    ("17:00", "The train leaves at 5 pm."),
    ("5:30 PM", "<answer>It leaves at 5:30 p.m.</answer>"),
    ("5", "The answer is 5 PM."),
    ("2024-05-03", "It was on May 3rd, 2024."),
    ("192.168.0.1", "Its address is 192.168.0.1."),
    ("4-12", "\\boxed{\\text{4-12}}"),
    ("Route 66", "The answer is Route 66."),
    ("5 pm EST", "5 pm EST"),
    ("A5_{16}", "\\boxed{A5}"),
    # arithmetic that is worked out, and what is no operation
    ("13", "4+9=13"),
    ("13", "4 + 9 = 13."),
    ("13", "The answer is 4 + 9 = 13."),
    ("13", "The answer is 4+9, which is 13."),
    ("13", "The answer is 4 plus 9 equals 13."),
    ("13", "\\boxed{4+9} = \\boxed{13}"),
    ("5", "The answer is 5, which is 3 more than 2."),
    ("0.75", "\\boxed{\\frac{1.5}{2}}"),
    ("1.75", "7/4"),
    ("1.75", "1 3/4"),
    ("0.6", "60%"),
    ("2000", "2 \\times 10^3"),
    ("100000", "10^5"),
    ("10^{-20}", "1e-20"),
    ("42", "(42)"),
    ("42", "\\boxed{{42}}"),
    ("1+\\sqrt{3}", "1+\\sqrt3"),
    ("yes", "Yes, it is."),
    # numbers in words
    ("5", "five"),
    ("25", "The answer is twenty-five."),
    ("-5", "\\boxed{\\text{minus five}}"),
    ("2000", "two thousand"),
    ("-25", "minus twenty-five"),
    ("-25", "The answer is negative twenty five apples."),
    # one fraction of two integers is no operation
    ("18", "36/2"),
    ("18", "\\boxed{\\frac{36}{2}}"),
    # percentages, and lists in a sentence
    ("60", "a 60% increase"),
    ("25%", "25 percent of the students"),
    ("\\{1,3,9\\}", "The divisors are \\{1,3,9\\}."),
    ("\\{1,3,9\\}", "There are 3 divisors, not 2: 1, 3, and 9."),
    ("five", "5"),
    ("1/2", "\\boxed{half}"),
    ("100", "a hundred"),
    ("1,000,000", "The answer is a million"),
    # the last number with all of the expression that it is part of
    ("3:4", "The ratio is 3 to 4."),
    ("x>7", "So x > 7"),
    ("-4", "It is \u2013 4."),
    ("A", "We go through all 3.\n#### A"),
    ("(3,4)", "The answer is (x, y) = (3, 4)"),
    ("2 hours 45 minutes", "It takes 2 hours 45 minutes."),
    ("20", "In 5 minutes 20 parts are made"),
    ("42", "It rises from zero to 42"),
    ("42", "<b>42</b> apples are left"),
    # below a heading or a colon stands prose, or an answer
    ("42", "## Answer\n\nTo find the total, add 40 and 2.\n\nThe total is 42."),
    ("42", "**Answer**\n\nAdd 40 and 2 to get 42."),
    ("42", "Answer\n\nFirst we add 40 and 2.\n\nThe total is 42."),
    ("42", "Answer:\nFirst, we add 40 and 2. The answer is 42."),
    ("42", "Answer:\n1. Add 40 and 2.\n2. The total is 42."),
    ("42", "Answer:\n42 apples. It took 3 steps."),
    ("42", "## Answer\n\n$x = 42$\n\nIt took 3 steps."),
    ("42", "## Answer\n\n\\[\n42\n\\]\nIt took 3 steps."),
    ("Evelyn", "**Final Answer**\n\nEvelyn"),
    ("yes", "Answer:\nYes, because 2>1."),
    # a quantity in two units is one
    ("2 hours 30 minutes", "2 hours and 30 minutes"),
    ("2.5 hours", "It takes 2 hours and 30 minutes."),
    ("150 minutes", "The answer is 2 hours 30 minutes."),
    ("74 inches", "He is 6 ft. 2 in."),
    ("-2.5 hours", "It is -2 hours 30 minutes"),
    ("15", "After 2 hours, 15 minutes remain."),
    ("3", "In 2 weeks 3 days are off."),
    # what a change leads to
    ("40", "The speed increases from 30 to 40."),
    ("40", "The price went from $30 to $40."),
    ("40", "So the temperature fell steadily from 60 to 40 degrees."),
    ("42", "<strong>42</strong> apples are left"),
    ("42", "As the book says:\n> 42 apples are left"),
    # what is said of an answer is no other one
    ("5", "The answer is 5. I verified that the answer is correct."),
    ("5", "The answer is 5. The answer is reasonable."),
    ("5", "The answer is 5. I double-checked the answer: it is correct."),
    ("5", "So we get 5. The answer is reasonable."),
    ("9", "The answer is 9. Note that the answer is not 8."),
    ("12", "The answer is 12, since the answer is not 13."),
    ("right", "The answer is right."),
    ("east", "The answer is east. I verified that the answer is correct."),
    ("right", "Turn 3 times. The answer is right."),
]


@pytest.mark.parametrize(("gold", "completion"), HONEST, ids=[f"{gold}|{text[:40]!a}" for gold, text in HONEST])
def test_honest_ways_of_writing_are_accepted(gold: str, completion: str) -> None:
    score = math_answer(completion=completion, answer=gold)
    assert 1.0 == score.value, score.reason


HOSTILE = [
    ("red, blue", "\\boxed{der, blue}"),
    ("red, blue", "\\boxed{red, blue, green}"),
    ("x = 306^\\circ", "\\boxed{306\\text{ meters}}"),
    ("x=1, y=2", "\\boxed{2, 1}"),
    ("(A) 5", "\\boxed{(B) 5}"),
    ("42", ""),
    ("42", " \n\t"),
    ("42", "\0" * 100),
    ("42", "\ud800"),
    ("42", "\\boxed{}"),
    ("42", "\\boxed{41} \\boxed{42}"),
    ("42", "\\boxed{42} \\boxed{41}"),
    ("42", "\\boxed{41 \\text{ or } 42}"),
    ("42", "\\boxed{41, 42}"),
    ("42", "\\boxed{41; 42}"),
    ("42", "\\boxed{41 42}"),
    ("42", "\\boxed{\\{41, 42\\}}"),
    ("42", "\\boxed{42 (41)}"),
    ("42", "\\boxed{42"),
    ("42", "\\boxed{41}\n<answer>42</answer>"),
    ("42", "<answer>41</answer>\\boxed{42}"),
    ("42", "The answer is 41. \\boxed{42}"),
    ("42", "<answer>41 42 43</answer>"),
    ("42", "<answer>41\n42\n43</answer>"),
    ("42", "<answer>41, 42 or 43</answer>"),
    ("42", "<answer>[41, 42]</answer>"),
    ("42", "<answer>either 41 or 42</answer>"),
    ("42", "<answer>41</answer><answer>42</answer>"),
    ("42", "<answer>42 or maybe 41</answer>"),
    ("42", "The answer is 41 or 42."),
    ("42", "The answer is 42, or 41."),
    ("42", "The answer is 42, alternatively it could be 43."),
    ("42", "The answer is 41. The answer is 42."),
    ("42", "#### 41\n#### 42"),
    ("42", "A: 41\nA: 42"),
    ("42", "It is 40, 41 or 42"),
    ("42", "41\n42"),
    ("42", "- 40\n- 41\n- 42"),
    ("42", "42 43"),
    ("42", "\\boxed{\\text{not } 42}"),
    ("42", "\\boxed{\\neq 42}"),
    ("42", "\\boxed{x \\neq 42}"),
    ("42", "The answer is not \\boxed{42}."),
    ("42", "\\boxed{42} is wrong."),
    ("42", "\\boxed{42} is not the answer"),
    ("42", "<answer>not 42</answer>"),
    ("42", "<answer>It isn't 42</answer>"),
    ("42", "The answer is not 42"),
    ("42", "The answer isn't 42"),
    ("42", "It is definitely not 42"),
    ("42", "It can never be 42."),
    ("42", "not 42"),
    ("42", "\u2260 42"),
    ("42", "\\boxed{> 42}"),
    ("42", "\\boxed{x > 42}"),
    ("42", "\\boxed{-42}"),
    ("42", "\\boxed{420}"),
    ("42", "\\boxed{4.2}"),
    ("42", "\\boxed{42.0000001}"),
    ("42", "\\boxed{42!}"),
    ("42", "\\boxed{42x}"),
    ("42", "\\boxed{42 + x}"),
    ("42", "\\boxed{42_5}"),
    ("42", "\\boxed{41 = 42}"),
    ("42", "\\boxed{2x = 42}"),
    ("42", "42. The answer is 41."),
    ("42", "42 is tempting; \\boxed{41}"),
    ("42", "<think>42</think> \\boxed{41}"),
    ("5", "y = 2x + 5"),
    ("5", "x^5"),
    ("8", "So the probability is $\\frac{3}{8}$."),
    ("8", "So the probability is 3/8."),
    ("2", "\\boxed{\\frac{1}{2}"),
    ("42", "\\boxed{4\u200b2}"),
    ("42", "The answer is 4\u200d2"),
    ("42", "\\boxed{\u202e42\u202c1}"),
    ("42", "\\boxed{\u0664\u0662}"),
    ("east", "\\boxed{e\u0430st}"),
    ("5 meters", "\\boxed{5 \\text{ feet}}"),
    ("5 meters", "5 cm"),
    ("5 meters", "The answer is 5 square meters."),
    ("5 meters", "The answer is 5 meters per second."),
    ("5 meters", "\\boxed{5 \\text{ apples}}"),
    ("5 apples", "\\boxed{5 \\text{ oranges}}"),
    ("5 feet", "5 feet 3 inches"),
    ("$18", "The answer is 18 cents."),
    ("$18", "\u00a318"),
    ("$18", "The answer is 18 cents per day."),
    ("30^\\circ", "30 radians"),
    ("30^\\circ", "\\boxed{30 \\text{ cm}}"),
    ("3\\sqrt{2} \\text{ cm}", "\\boxed{3\\sqrt{2} \\text{ feet}}"),
    ("0.5", "\\boxed{0.5\\%}"),
    ("0.5%", "\\boxed{0.5}"),
    ("1", "1%"),
    ("1%", "1"),
    ("\\frac{1}{3}", "0.33"),
    (".0000672", "\\boxed{0.0000674}"),
    ("10^{-20}", "\\boxed{10^{-30}}"),
    ("52_8", "\\boxed{52_7}"),
    ("\\text{east}", "\\boxed{\\text{seat}}"),
    ("\\text{east}", "\\boxed{\\text{not east}}"),
    ("\\text{east}", "\\boxed{\\text{east or west}}"),
    ("C", "\\boxed{A, B, C, D}"),
    ("C", "The answer is A or C."),
    ("C", "\\boxed{A} \\boxed{B} \\boxed{C}"),
    ("(2, 4)", "\\boxed{[2, 4]}"),
    ("(2, 4)", "\\boxed{\\{2, 4\\}}"),
    ("(2, 4)", "\\boxed{(4, 2)}"),
    ("(3,4]", "\\boxed{(3,4)}"),
    ("3, 5, 7", "\\boxed{3, 5, 7, 9}"),
    ("3, 5, 7", "\\boxed{3, 5}"),
    ("3, 5, 7", "\\boxed{7}"),
    ("y = 2x + 3", "\\boxed{y = 2x - 3}"),
    ("0", "\\boxed{x^2 - 5x + 6 = 0}"),
    ("42", ":"),
    ("42", "Thought process:"),
    ("42", "Let's solve this problem step by step."),
    ("18", "The answer is minus 18"),
    ("18", "minus 18"),
    ("18", "negative 18"),
    ("18", "It is not true that the answer is 18."),
    ("18", "The answer is 18? No, 19."),
    ("18", "The answer is 18 squared"),
    ("18", "The answer is 18 hundred"),
    ("18", "The answer is twice 18"),
    ("18", "The answer is half of 18"),
    ("18", "twice 18"),
    ("18", "half of 18"),
    ("18", "18 squared"),
    ("18", "18 hundred"),
    ("18", "The answer is more than 18"),
    ("18", "more than 18"),
    ("18", "fewer than 18"),
    ("18", "The answer is at least 18"),
    ("18", "at most 18"),
    ("18", "I considered 18 and rejected it."),
    ("18", "Wrong answer: 18"),
    ("18", "An incorrect answer is 18"),
    ("18", "The wrong answer is 18"),
    ("18", "Wrong final answer: 18"),
    ("18", "I cannot solve this. (18)"),
    ("18", "<think>the answer is \\boxed{18}"),
    ("18", "<think>18"),
    ("18", "I don't think the answer is 18."),
    ("18", "I doubt that the answer is 18."),
    ("18", "It is false that the answer is 18."),
    ("18", "The answer is 18. No, wait, it is 19."),
    ("18", "The answer is 18? No, that cannot be."),
    ("18", "It is 18? No."),
    ("18", "\\boxed{\\text{half of } 18}"),
    ("18", "\\boxed{\\text{more than } 18}"),
    ("18", "\\boxed{\\text{twice }18}"),
    ("18", "<answer>at least 18</answer>"),
    ("18", "<answer>minus 18</answer>"),
    ("18", "<answer>twice 18</answer>"),
    ("18", "\\boxed{\\text{minus }18}"),
    ("18", "\u7b54\u6848\u4e0d\u662f18\u3002"),
    ("18", "\u274c 18"),
    ("18", "The answer is **not 18**."),
    ("18", "The answer is **not** 18."),
    ("18", "not **18**"),
    ("18", "La respuesta no es 18"),
    ("18", "5 times 18"),
    ("18", "The answer is 5 times 18"),
    ("18", "The answer is the square root of 18"),
    ("18", "A false answer would be 18."),
    ("18", "\\boxed{-\\text{ }18}"),
    ("18", "\\boxed{\\cancel{18}}"),
    ("18", "~~18~~"),
    ("18", "The answer is ~~18~~."),
    ("18", "18 factorial"),
    ("18", "The answer is 17, not 18."),
    ("18", "It is 17, not 18."),
    ("18", "If the answer is 18, the farmer is sad."),
    ("18", "The answer is under 18"),
    ("18", "over 18"),
    ("18", "- 18"),
    ("8", "3**8**"),
    ("no", "Yes, because 2>1."),
    ("yes", "No."),
    ("yes", "Yes. No."),
    ("42", "4\ufe0f\u20e32\ufe0f\u20e3"),
    ("42", "The answer is at least 42"),
    ("42", "\u278d2"),
    ("42", "41 [42]"),
    ("2", "1 1/2"),
    ("0.5", "1 1/2"),
    ("0.5", "1\u00bd"),
    # labels read as numbers or arithmetic
    ("4", "The ratio is 3:4."),
    ("2", "It is 3√2."),
    ("0x1F", "0xAB"),
    ("0x1F", "31"),
    ("31", "0x1F"),
    ("0x1F", "\\boxed{0x1F} or \\boxed{0xAB}"),
    ("0b101", "0b110"),
    ("00:30", "00:45"),
    ("3:15", "4:20"),
    ("2:1:3", "2:3:1"),
    ("3:4", "6:8"),
    ("3:4", "It is 4:3 or 3:4."),
    ("3:4", "<answer>It is not 3:4</answer>"),
    ("3:4", "<answer>maybe 3:4</answer>"),
    ("3:4", "<answer>3:4 is wrong</answer>"),
    ("5 pm", "5am"),
    ("5 pm", "5"),
    ("5 pm", "5:00"),
    ("192.168.0.1", "192.168.0.2"),
    ("2024-05-03", "2024-05-04"),
    ("2024-05-03", "2016"),
    ("5/3/2024", "10/6/2024"),
    ("4-12", "-8"),
    ("4-12", "5-13"),
    ("978-3-16-148410-0", "978-3-16-148410-1"),
    ("1.2.3", "1.2.4"),
    ("7B", "B7"),
    ("Route 66", "66 Route"),
    ("Route 66", "\\boxed{Route 67}"),
    ("May 3", "May 4"),
    # arithmetic that is not worked out
    ("13", "4+9"),
    ("13", "4+9="),
    ("13", "4+9= Answer:"),
    ("13", "4+9= 4+9="),
    ("13", "The answer is 4 + 9."),
    ("13", "\\boxed{x = 4+9}"),
    ("13", "13 - 0"),
    ("13", "13*1"),
    ("391", "\\boxed{17*23}"),
    ("391", "17 \u00d7 23"),
    ("391", "\\boxed{17 \\cdot 23}"),
    ("6", "(2)(3)"),
    ("6", "2(3)"),
    ("1024", "\\boxed{2^{10}}"),
    ("8", "2\u00b3"),
    ("5/6", "\\frac12+\\frac13"),
    ("1.5", "1+1/2"),
    ("18", "36 \u00f7 2"),
    ("18", "36/2/1"),
    ("42", "\\frac{\\frac{84}{2}}{1}"),
    ("42", "\\boxed{\\sqrt{1764}}"),
    ("9", "\u221a81"),
    ("9", "81 divided by 9"),
    ("9", "0 plus 9"),
    ("5", "100% of 5"),
    ("324", "18 squared"),
    ("120", "5!"),
    ("3", "\\log_2 8"),
    ("3", "|-3|"),
    ("3", "-(-3)"),
    ("1", "one half"),
    ("5", "twenty-five"),
    ("5", "five or six"),
    ("5", "not five"),
    ("100", "one hundred five"),
    ("5 pm EST", "5 pm PST"),
    ("42", "\\boxed{42}, \\boxed{40+1}"),
    ("13", "\\boxed{13} = \\boxed{4+9}"),
    ("5 meters", "I considered 5 meters and rejected it."),
    ("25", "minus twenty-five"),
    # a percentage is no number of anything
    ("25%", "25 feet"),
    ("25%", "The answer is 25 apples."),
    ("25%", "\\boxed{\\$25}"),
    ("25 feet", "25%"),
    ("25 apples", "\\boxed{25\\%}"),
    # a list that is a part of a word
    ("\\{1,3,9\\}", "un\\{1,3,9\\}ish"),
    ("\\{1,3,9\\}", "\\{1,3,9\\}ish"),
    ("\\{1,3,9\\}", "un{1, 3, 9}"),
    ("\\{1,3,9\\}", "max\\{1,3,9\\}"),
    ("\\{1,3,9\\}", "not \\{1,3,9\\}"),
    ("\\{1,3,9\\}", "It is not 1, 3 and 9."),
    ("\\{1,3,9\\}", "I doubt that the set is \\{1,3,9\\}."),
    ("42 meters", "\u00ac42 meters"),
    # a number that is part of an expression
    ("4", "The ratio is 3 to 4."),
    ("7", "So it is from 3 to 7."),
    ("7", "So it is one in 7."),
    ("7", "So it is 1 out of 7."),
    ("7", "So it is 3 of 7."),
    ("7", "2 remainder 7"),
    ("7", "So it is 2 to the 7."),
    ("4", "It is \u2013 4."),
    ("4", "So we get \u2212 4."),
    ("7", "So it is 6 < x < 7."),
    ("7", "So x \u2265 7."),
    ("7", "So x \\geq 7"),
    ("4", "The numbers are 3\u20134"),
    ("7", "So we get 2\u03c0 + 7."),
    ("7", "We get 7 + dy/dx."),
    ("7", "So it is arctan 7."),
    ("4", "The answer is log 4."),
    ("7", "non-7"),
    ("7", "7 thirds"),
    ("7", "7 and a half"),
    ("7", "7 and three quarters"),
    ("7", "7 to one"),
    ("1", "So it is 1\u2030"),
    ("7", "So it is a multiple of 7."),
    ("42", "The answer is almost 42."),
    ("4", "Let us go on.\n\nStep 4"),
    # a part of a label
    ("00", "The next one should be \u2014 20:00 \u2013 22:00"),
    ("3", "The score is 2 to 1:3"),
    ("30", "See you 3 to 5:30"),
    # a quantity in two units
    ("3", "7 min 3 s"),
    ("30", "It takes 3 hours and 30 minutes."),
    ("2", "He is 5 feet 2 inches tall."),
    ("50", "It costs 5 dollars and 50 cents."),
    ("3", "It lasts 2 years, 3 months"),
    # a closing mark that holds no number
    ("3", "We go through all 3.\n#### A"),
    # a number in prose below a heading is not announced
    ("1", "Answer\n\n1. Add 40 and 2.\n2. The total is 42."),
    ("40", "Answer\n\nAdd 40 and 2 to get 42."),
    ("42", "Answer\n\n42\n\nAnswer\n\n41"),
    ("2", "6 ft. 2 in."),
    ("30", "2 hours and 30 minutes"),
    ("2", "The answer is 2 hours and 30 minutes."),
    ("30", "It takes 3 hours and 30 minutes to cook."),
    ("30", "It takes 2.5 hours 30 minutes."),
    ("4.5 hours", "3 hours 90 minutes"),
    ("30", "The speed increases from 30 to 40."),
    ("7", "The values range from 3 to 7."),
    ("7", "It rises by 3 to 7."),
    ("7", "It grows. So it is from 3 to 7."),
    # every function's name, with an index or without
    ("4", "So it is exp 4."),
    ("4", "So it is sec 4."),
    ("4", "So it is csc 4."),
    ("4", "So it is cot 4"),
    ("4", "So it is sinh 4."),
    ("4", "So it is cosh 4"),
    ("4", "So it is tanh 4"),
    ("4", "So it is lg 4"),
    ("4", "So it is log_2 4"),
    ("4", "So we get log_2(4)"),
    ("4", "The answer is sec 4."),
    ("4", "The answer is arcsin 4"),
    ("4", "\\boxed{\\text{sec } 4}"),
    ("4", "So it is \\sinh 4"),
    ("4", "4 tanh"),
    ("4", "So it is log_{10} 4"),
    ("4", "So we get 2(4)."),
    # a bound, and a part behind a number
    ("7", "So area > 7"),
    ("7", "So the price > 7"),
    ("7", "x is less than or equal to 7"),
    ("7", "So it is greater or equal to 7."),
    ("7", "<answer>area > 7</answer>"),
    ("7", "7 and a third"),
    ("7", "7 and a quarter"),
    ("7", "The answer is 7 and a third."),
    ("7", "It takes 7 hours and a third."),
    # what is denied of an answer, or of another one
    ("5", "The answer is 5. The answer is not 5."),
    ("5", "The answer is 5. The answer is wrong."),
    ("5", "The answer is 5. The answer is incorrect."),
    ("5", "The answer is 5. The answer is not correct."),
    ("5", "The answer is 5. The answer is not five."),
    ("5", "The answer is 5. The answer is not 5. The answer is not 8."),
    ("5", "The answer is 5. The answer is not clear."),
    ("5", "The answer is 4. The answer is 5. The answer is not 6."),
    ("5", "The answer is 5. The answer is not 8 or 5."),
    ("5", "The answer is not 8."),
    ("5", "The answer is 5. No, the answer is not correct."),
    ("8", "The answer is 9. Note that the answer is not 8."),
    ("50%", "The answer is 50%. The answer is not 50 percent."),
    ("5", "The answer is 5. I doubt that the answer is correct."),
    ("5", "The answer is 5. It is not true that the answer is right."),
    ("5", "The answer is 5. I don't think the answer is correct."),
]


@pytest.mark.parametrize(("gold", "completion"), HOSTILE, ids=[f"{gold}|{text[:40]!a}" for gold, text in HOSTILE])
def test_hostile_and_wrong_completions_are_refused(gold: str, completion: str) -> None:
    score = math_answer(completion=completion, answer=gold)
    assert 0.0 == score.value, score.reason
    assert score.reason


# What stands in the prompt, the gold, a completion that repeats it, and one that does not.
RESTATED = [
    ("Simplify 72/96.", "3/4", "72/96", "3/4"),
    ("What is 36/2?", "18", "\\frac{36}{2}", "72/4"),
    ("What is 36 \u00f7 2?", "18", "36/2", "72/4"),
    ("What is 36 divided by 2?", "18", "36 / 2", "18"),
    ("Simplify $\\frac{72}{96}$.", "\\frac{3}{4}", "The answer is 72/96.", "The answer is 3/4."),
    ("What is 72 divided by 96?", "3/4", "<answer>It is 72/96.</answer>", "<answer>It is 6/8.</answer>"),
    ("Write 50% as a decimal.", "0.5", "50%", "0.5"),
    ("Write 0.5 as a percentage.", "50%", "0.5", "50 percent"),
    ("How many meters are 500 cm?", "5 meters", "500 cm", "5 m"),
    ("Write 6.7e-5 as a decimal.", "0.000067", "6.7e-5", "0.000067"),
    ("Write 5 pm as the 24-hour clock has it.", "17:00", "5 pm", "17:00"),
    ("Expand $(x+1)^2$.", "x^2+2x+1", "\\boxed{(x+1)^2}", "\\boxed{1+2x+x^2}"),
    ("Simplify $\\sqrt{12}$.", "2\\sqrt{3}", "\\sqrt{12}", "2\\sqrt{3}"),
    ("Sort 3, 1, 2.", "1, 2, 3", "3, 1, 2", "1, 2, 3"),
    ("Work out this long sum: 4 + 9 + 12 + 17 + 23 + 42 =", "107", "4 + 9 + 12 + 17 + 23 + 42", "107"),
    ("Which is larger, 1/2 or 1/3?", "1/2", "1/3", "\\frac{1}{2}"),
    ("It costs $18.00. What does it cost?", "18", "$19", "$18.00"),
    ("Solve x + 5 = 10.", "x = 5", "10", "5"),
    ("There are 25 boys among 100. Which share is that?", "0.25", "0.26", "25%"),
]


@pytest.mark.parametrize(("prompt", "gold", "wrong", "right"), RESTATED)
def test_what_repeats_the_prompt_is_no_answer(prompt: str, gold: str, wrong: str, right: str) -> None:
    """An answer in the prompt's writing counts only where the gold is written so too."""
    assert 0.0 == math_answer(completion=wrong, answer=gold, prompt=prompt).value
    assert 1.0 == math_answer(completion=right, answer=gold, prompt=prompt).value
    if numeric_close(completion=right, answer=gold, prompt=prompt).value is not None:
        assert 0.0 == numeric_close(completion=wrong, answer=gold, prompt=prompt).value
        assert 1.0 == numeric_close(completion=right, answer=gold, prompt=prompt).value


BOMBS = [
    "9**9**9**9",
    "9^{9^{9^9}}",
    "10^(10^10)",
    "10^{10^{10}}",
    "2^{9999999999}",
    "(((2^{3000})^{3000})^{3000})",
    "99999999!",
    "((3!)!)!",
    "5!!!!!",
    "\\binom{1000000}{500000}",
    "1e999999999",
    "1.5e-999999999",
    "9" * 1_000_000,
    "{" * 10_000 + "43" + "}" * 10_000,
    "(" * 10_000 + "43" + ")" * 10_000,
    "\\sqrt{" * 10_000,
    "\\frac{1}{" * 5_000 + "2" + "}" * 5_000,
    "\\sum_{n=1}^{1000000000} n",
    "\\int_0^1 x^x dx",
    "(a+b+c+d+e)^{2000}",
    "x+" * 500_000 + "1",
    "\\sin" * 50 + "x",
    "\\text{" * 100_000,
    "1," * 400_000,
]


@pytest.mark.slow
@pytest.mark.parametrize("bomb", BOMBS, ids=[bomb[:24] for bomb in BOMBS])
@pytest.mark.parametrize("gold", ["42", "x^2+1"])
def test_formula_bombs_are_never_evaluated(bomb: str, gold: str) -> None:
    """They score 0 for their form, wherever they stand."""
    for completion in (bomb, f"\\boxed{{{bomb}}}", f"<answer>{bomb}</answer>", f"The answer is ${bomb}$."):
        score = math_answer(completion=completion, answer=gold)
        assert 0.0 == score.value
        assert score.reason


@pytest.mark.slow
@pytest.mark.slow
@pytest.mark.parametrize(
    "completion",
    [
        "a " * 500_000,
        "\0" * 1_000_000,
        "the answer is " * 70_000,
        "<answer>" * 100_000,
        "<" + " " * 1_000_000,
        "\\boxed{" * 100_000,
        "\\boxed{1}" * 100_000,
        "\\boxed" + " " * 1_000_000,
        "$" * 1_000_000,
        "#### " * 200_000,
        "A:\n" * 300_000,
        "not " * 250_000 + "42x",
        "1 or " * 200_000 + "43",
        "[" * 1_000_000,
        "\ud800" * 1_000_000,
        "\uff11" * 1_000_000,
        "*a" * 500_000,
        "**a " * 250_000,
        "½" * 1_000_000,
        "1 not " * 160_000,
        "</think><think>" * 60_000,
        "</s>" * 250_000,
        "3:4 " * 250_000,
        "1-" * 500_000 + "1",
        "A1" * 500_000,
        "4+9=" * 250_000,
        "The answer is " + "4 + " * 250_000 + "9, which is 13.",
    ],
    ids=lambda text: text[:12].encode("ascii", "backslashreplace").decode(),
)
def test_long_completions_are_read_in_linear_time(completion: str, full: bool) -> None:
    """A million characters, or the first and last 100,000, are no answer; what is quadratic would not end."""
    completion = completion if full else completion[:100_000] + completion[-100_000:]
    for made in (math_answer, numeric_close):
        assert 0.0 == made(completion=completion, answer="42").value


@pytest.mark.parametrize(
    ("gold", "words"),
    [
        (None, "no gold"),
        ("", "no gold"),
        (" \n", "no gold"),
        ("$$", "empty"),
        ("...", "empty"),
        ("\\frac{1}{", "braces"),
        ("9^{9^{9^9}}", "power"),
        ("\\sqrt{" * 30 + "2" + "}" * 30, "nested"),
        ("x+" * 500, "longer"),
        ("\\foo{&}{&}^", "as text only"),
        ("So #### ", "empty"),
    ],
)
def test_golds_that_cannot_be_read_are_skipped(gold: str | None, words: str) -> None:
    """It is not the completion's fault, so it is no 0."""
    score = math_answer(completion="\\boxed{42}", answer=gold)
    assert score.value is None
    assert words in (score.reason or "")
    assert numeric_close(completion="\\boxed{42}", answer=gold).value is None


def test_a_row_without_the_column_is_skipped() -> None:
    assert math_answer(completion="42").value is None
    assert numeric_close(completion="42").value is None


def test_the_reason_says_what_was_compared() -> None:
    right = math_answer(completion="\\boxed{42}", answer="42")
    wrong = math_answer(completion="The answer is 41.", answer="42")
    stuffed = math_answer(completion="\\boxed{41}\\boxed{42}", answer="42")
    assert "'42' (boxed) equals '42'" == right.reason
    assert "'41' (phrase): not the gold '42'" == wrong.reason
    assert "answer stuffing: 2 distinct final answers (boxed), the last are '41', '42'" == stuffed.reason
    assert "unit" in (math_answer(completion="5 feet", answer="5 meters").reason or "")
    assert "power" in (math_answer(completion="\\boxed{9**9**9**9}", answer="x+1").reason or "")


@pytest.mark.parametrize(
    ("formula", "allowed"),
    [
        ("x^{2023}", True),
        ("10^{100}", True),
        ("e^{x^2}", True),
        ("2^{2^3}", True),
        ("(x+1)^{20}", True),
        ("(1.05)^{100}", True),
        ("20!", True),
        ("\\binom{10}{3}", True),
        ("2^{2^{20}}", False),
        ("9^9^9", False),
        ("(x+1)^{2000}", True),
        ("(x+1)^{99999}", False),
        ("\\{1", False),
        ("}{", False),
    ],
)
def test_the_bounds_on_formulas(formula: str, allowed: bool) -> None:
    if formula == "\\{1":
        formula = "{1"
    assert allowed == (reading_fault(formula) is None)


def test_plain_numbers_load_no_library() -> None:
    program = (
        "import sys\n"
        "from builtin_rewards.math import math_answer, numeric_close\n"
        "texts = ['18', '$18.00', '18 dollars', '36/2', '#### 18', '\\\\boxed{\\\\frac{36}{2}}', '1,8', '7%', '8 km']\n"
        "for text in texts:\n"
        "    math_answer(completion=text, answer='18'); numeric_close(completion=text, answer='18')\n"
        "print([name for name in ('mpmath', 'pint', 'sympy') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=600, check=True)
    assert "[]" == done.stdout.strip()


def test_formulas_are_compared_off_the_main_thread() -> None:
    """A reward's worker may call it from any thread."""
    found: list[Any] = []
    thread = threading.Thread(
        target=lambda: found.append(math_answer(completion="\\boxed{2\\sqrt{3}}", answer="\\sqrt{12}").value)
    )
    thread.start()
    thread.join()
    assert [1.0] == found


def test_in_the_runtime() -> None:
    """Bombs cost themselves alone, and the column may be a number."""
    completions = {"\\boxed{42}": 1.0, "\\boxed{9**9**9**9}": 0.0, "\\boxed{(42)}": 1.0, "\\boxed{6*7}": 0.0, "": 0.0}
    rollouts = [Rollout("?", completion, {"answer": 42}) for completion in completions]
    with Runtime([math_answer, numeric_close], workers=1) as runtime:
        batch = runtime.score(rollouts)
    assert list(completions.values()) == batch.scores["math_answer"]
    assert list(completions.values()) == batch.scores["numeric_close"]


@pytest.mark.parametrize(
    ("settings", "gold", "completion", "expected"),
    [
        ({}, "3.14159", "The answer is 3.1416.", 1.0),
        ({}, "3.14159", "The answer is 3.2.", 0.0),
        ({"rel": 0.1}, "3.14159", "The answer is 3.2.", 1.0),
        ({"rel": 0.0}, "42", "\\boxed{42.0}", 1.0),
        ({"rel": 0.0}, "42", "\\boxed{42.0001}", 0.0),
        ({"rel": 0.0, "abs": 0.5}, "0", "\\boxed{-0.5}", 1.0),
        ({}, "0", "\\boxed{0.0001}", 0.0),
        ({}, "\\sqrt{2}", "\\boxed{1.4142}", 1.0),
        ({}, "1.4142", "\\boxed{\\sqrt{2}}", 1.0),
        ({}, "\\pi", "\\boxed{\\frac{22}{7}}", 1.0),
        ({}, "5 m", "\\boxed{500.1\\text{ cm}}", 1.0),
        ({}, "5 m", "\\boxed{5 \\text{ feet}}", 0.0),
        ({}, "60", "\\boxed{60.01\\%}", 1.0),
        ({}, "60%", "\\boxed{0.6}", 1.0),
        ({}, "60%", "\\boxed{60}", 1.0),
        ({}, "42", "\\boxed{41.99} \\boxed{42}", 0.0),
        ({"rel": 10.0}, "42", "41 or 42", 0.0),
        ({}, "42", "not 42", 0.0),
        ({}, "42", "\\boxed{nan}", 0.0),
        ({}, "42", "\\boxed{\\infty}", 0.0),
        ({}, "42", "\\boxed{42x}", 0.0),
        ({}, "42", "\\boxed{10^{400}}", 0.0),
        ({}, "42", "\\boxed{1e400}", 0.0),
        ({}, "42", "\\boxed{9**9**9**9}", 0.0),
        ({}, "42", "\\boxed{\\frac{1}{0}}", 0.0),
        ({}, "42", "", 0.0),
        ({}, "3/4", "So the probability is 3/4.", 1.0),
        ({}, "64", "#### x = 64", 1.0),
        ({}, "11111", "We get 11,\\! 111 in total.", 1.0),
        ({}, "1", "100%", 1.0),
        ({}, "1", "1%", 0.0),
        ({}, "13", "4+9= Answer:", 0.0),
        ({}, "13", "4+9=13", 1.0),
        ({}, "18", "36/2", 1.0),
        ({}, "25%", "25 feet", 0.0),
        ({}, "-25", "minus twenty-five", 1.0),
        ({}, "42", "\\sqrt{1764}", 0.0),
        ({}, "0.6667", "\\frac13+\\frac13", 0.0),
        ({}, "2.732", "1+\\sqrt{3}", 1.0),
        ({}, "4", "The ratio is 3:4.", 0.0),
        ({}, "5", "at 5:30", 0.0),
        ({}, "31", "0x1F", 0.0),
        ({}, "00:30", "00:30", None),
        ({}, "52_8", "52_8", None),
        ({}, "7\\pi", "\\boxed{7\\pi}", 1.0),
        ({}, "3\\sqrt{13}", "\\boxed{10.817}", 1.0),
        ({}, "x = \\sqrt{2}", "1.4142", 1.0),
        ({}, "5x - 7y + 4 = 0", "0", None),
        ({}, "x = 1, y = 2", "2", None),
        ({}, "x+1", "\\boxed{42}", None),
        ({}, "east", "\\boxed{42}", None),
        ({}, "1, 2", "\\boxed{42}", None),
    ],
)
def test_numeric_close(settings: dict[str, float], gold: str, completion: str, expected: float | None) -> None:
    made = numeric_close(**settings) if settings else numeric_close
    score = made(completion=completion, answer=gold)
    assert expected == score.value, score.reason
    assert score.reason


@pytest.mark.parametrize(
    "settings", [{"rel": -1.0}, {"abs": -0.1}, {"rel": float("nan")}, {"abs": float("inf")}], ids=str
)
def test_settings_that_make_no_sense(settings: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=rf"numeric_close: {next(iter(settings))}"):
        numeric_close(**settings)


def test_rewards_travel() -> None:
    for made in (math_answer, numeric_close, numeric_close(rel=0.5)):
        again = pickle.loads(pickle.dumps(made))
        assert made.name == again.name
        scores = [each(completion="\\boxed{30}", answer="42").value for each in (made, again)]
        assert scores[0] == scores[1]
    assert 1.0 == pickle.loads(pickle.dumps(numeric_close(rel=0.5)))(completion="\\boxed{30}", answer="42").value
