"""The reward for the language asked for."""

from __future__ import annotations

import json
import pickle
import sys
from collections import Counter
from pathlib import Path

import pytest

from builtin_rewards import language
from builtin_rewards.extras import extra
from builtin_rewards.language import language_is
from builtin_rewards.reading import likely_languages

TEXTS = Path(__file__).parents[1] / "benchmarks" / "data" / "languages.jsonl"
ENGLISH = "The committee met on Thursday to discuss whether the old bridge should be repaired or replaced."
GERMAN = "Der Ausschuss traf sich am Donnerstag, um zu besprechen, ob die alte Brücke repariert werden soll."
FRENCH = "Le comité s'est réuni jeudi pour décider si le vieux pont devait être réparé ou remplacé."
CHINESE = "委员会周四开会讨论是否应该修理或更换那座旧桥。大家都同意了。"
TAIWANESE = "委員會週四開會討論是否應該修理或更換那座舊橋。大家都同意了。"
JAPANESE = "委員会は木曜日に集まり、古い橋を直すか取り替えるかを話し合いました。"
RUSSIAN = "Комитет собрался в четверг, чтобы обсудить ремонт старого моста."
SWAHILI = "Kamati ilikutana siku ya Alhamisi kujadili kama daraja la zamani linapaswa kukarabatiwa."


@pytest.mark.parametrize(
    ("completion", "language", "score"),
    [
        (ENGLISH, "en", 1.0),
        (ENGLISH, "EN_us", 1.0),
        (ENGLISH, "de", 0.0),
        (ENGLISH.upper(), "en", 1.0),
        (GERMAN, "de", 1.0),
        (GERMAN, "en", 0.0),
        (FRENCH, "fr", 1.0),
        (SWAHILI, "sw", 1.0),
        (RUSSIAN, "ru", 1.0),
        (RUSSIAN, "en", 0.0),
        # Chinese, with its own punctuation and ASCII's, in either writing, short and with terms in Latin letters.
        (CHINESE, "zh", 1.0),
        (CHINESE, "zh-Hans", 1.0),
        (CHINESE, "zh-tw", 0.0),
        (CHINESE, "ko", 0.0),
        (TAIWANESE, "zh", 1.0),
        (TAIWANESE, "zh-Hant", 1.0),
        (TAIWANESE, "zh-cn", 0.0),
        ("答案是巴黎\uff0c它是法国的首都。", "zh", 1.0),
        ("红色,蓝色,绿色,黄色,白色", "zh", 1.0),
        ("我们使用 TensorFlow 的 Keras API 来构建 convolutional neural network 模型", "zh", 1.0),
        ("我们使用 TensorFlow 的 Keras API 来构建 convolutional neural network 模型", "en", 0.0),
        (JAPANESE, "ja", 1.0),
        (JAPANESE, "zh", 0.0),
        ("このAPIはREST architectureに基づいてJSON形式のresponseを返します。", "ja", 1.0),
        # Quotations and names in other letters.
        ("The word 猫 means cat in Japanese and Chinese.", "en", 1.0),
        # Lists of names, formulas and gibberish have no language that can be told; terse texts may have one.
        ("1. Leonardo da Vinci\n2. Michelangelo Buonarroti\n3. Raffaello Sanzio", "en", None),
        ("- Wolfgang Amadeus Mozart\n- Ludwig van Beethoven\n- Johann Sebastian Bach", "en", None),
        ("Frodo, Sam, Merry, Pippin, Legolas, Gimli", "en", None),
        (
            "The museum shows three painters this summer:\nLeonardo da Vinci, Michelangelo Buonarroti, Raffaello",
            "en",
            1.0,
        ),
        ("So x = 5 and y = 3, and the sum of both is 8.", "en", 1.0),
        ("\\frac{\\sqrt{\\alpha}}{\\mathrm{d}} = \\operatorname{\\mathbb{}}", "en", None),
        ("asdf qwer zxcv lkjh poiu mnbv rtzu fghj", "en", None),
        ("https://example.com/the/quick/brown/fox/jumps/over", "en", None),
        ("42", "en", None),
        ("Yes.", "en", None),
        # Code and thoughts are not read.
        (GERMAN + "\n```python\nfor line in open('the file that was left'):\n    print(line)\n```", "de", 1.0),
        (GERMAN + "\n~~~\nThis is the text of the file that was left, and of another one.\n~~~", "de", 1.0),
        ("```python\nfor line in open('the file that was left'):\n    print(line)\n```", "de", None),
        # A text that stands wholly in a fence is read, and the fence's mark is no word of it.
        (f"```\n{GERMAN}\n```", "de", 1.0),
        (f"Here:\n```markdown\n{GERMAN}\n```", "en", 0.0),
        (f"~~~plaintext\n{GERMAN}\n~~~", "en", 0.0),
        (f'```json\n{{"titre": "{FRENCH}"}}\n```', "fr", 1.0),
        (f"```markdown text of the committee\n42\n```\n```py\n{ENGLISH}", "en", None),
        # Vowel signs do not part words, and letters that are syllables weigh more.
        ("ಹೌದು, ಹ್ಯಾಂಬರ್ಗರ್‌ಗಳು ಸ್ಯಾಂಡ್‌ವಿಚ್‌ಗಳಾಗಿವೆ.", "kn", 1.0),
        ("ಹೌದು, ಹ್ಯಾಂಬರ್ಗರ್‌ಗಳು ಸ್ಯಾಂಡ್‌ವಿಚ್‌ಗಳಾಗಿವೆ.", "en", 0.0),
        ("તમે ગુજરાતના કયા ભાગના છો?", "gu", 1.0),
        ("તમે ગુજરાતના કયા ભાગના છો?", "en", 0.0),
        ("आप कैसे हैं? मैं ठीक हूँ।", "hi", 1.0),
        (f"<think>{ENGLISH * 3}</think>\n{GERMAN}", "de", 1.0),
        (f"<think>{GERMAN}</think>\n{ENGLISH}<|im_end|>", "de", 0.0),
        (f"<think>{ENGLISH}</think>\n42", "en", None),
        (f"<think>{ENGLISH}", "en", 0.0),
        (ENGLISH, "klingon", None),
        ("", "en", 0.0),
        (" \u200b\n", "en", 0.0),
    ],
)
def test_language(completion: str, language: str, score: float | None) -> None:
    """Texts too short to tell and unknown codes are skipped, empty ones score 0.0; the same text, the same score."""
    assert language_is(completion=completion, language=language).value == score
    assert language_is(completion=completion, language=language).value == score


def test_texts_of_thirty_languages() -> None:
    """None is refused its own language, long ones are all told, and nobody else's language is paid."""
    seen: Counter[tuple[str, str]] = Counter()
    for line in TEXTS.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        own = language_is(completion=row["text"], language=row["language"]).value
        seen[row["kind"], "own" if own == 1.0 else "untold" if own is None else "refused"] += 1
        other = "de" if row["language"] == "en" else "en"
        seen[row["kind"], "other"] += bool(language_is(completion=row["text"], language=other).value)
    assert 60 == seen["long", "own"]
    assert 150 <= seen["short", "own"] == 180 - seen["short", "untold"]
    assert 0 == seen["short", "other"] == seen["long", "other"]


def test_mixed_texts_get_the_share_of_letters() -> None:
    """By the line, and within a line by the letters' script."""
    mixed = language_is(completion=f"{ENGLISH}\n{GERMAN}\n{ENGLISH}").value
    assert 0.5 < mixed < 0.8
    long = language_is(completion="\n".join([ENGLISH] * 50 + [CHINESE] * 200)).value
    assert 0.1 < long < 0.7
    switched = "首先 let me think about this, 这个问题 is quite hard, 因为 we have many unknowns"
    assert 0.5 < language_is(completion=switched).value < 0.8
    assert 0.2 < language_is("zh")(completion=switched).value < 0.5


def test_language_by_setting() -> None:
    """The row's language comes before the setting's."""
    made = language_is("de")
    assert made(completion=GERMAN).value == 1.0
    assert made(completion=GERMAN, language="en").value == 0.0
    assert made(completion=GERMAN, language=None).value == 1.0
    assert language_is(min_letters=3)(completion="this is what I think").value == 1.0


def test_the_languages_are_the_detectors() -> None:
    """Each code that is taken is one that it can give."""
    known = set(likely_languages.detector().labels)
    assert known - {language._NO_LANGUAGE} == language._LANGUAGES
    assert known.issuperset(part for parts in language._VARIETIES.values() for part in parts)
    assert {code.partition("-")[0] for code in language._ALIASES.values()} <= known


def test_without_the_detector_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is loaded at its first use."""
    monkeypatch.setitem(sys.modules, "py3langid.langid", None)
    likely_languages.detector.cache_clear()
    extra.cache_clear()
    with pytest.raises(ImportError, match=r"needs py3langid\.langid: pip install py3langid$"):
        language_is.function(ENGLISH)


@pytest.mark.parametrize(
    ("module", "package"), [("referencing.jsonschema", "jsonschema"), ("rouge_score.tokenizers", "rouge-score")]
)
def test_a_missing_module_names_the_package_that_brings_it(
    module: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And that only: no index knows the module's name."""
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=f"pip install {package}$"):
        extra.__wrapped__(module)


@pytest.mark.parametrize(("settings", "words"), [({"language": "xx"}, "language"), ({"min_letters": 0}, "min_letters")])
def test_senseless_settings_are_named(settings: dict[str, object], words: str) -> None:
    """Unknown languages and no letters."""
    with pytest.raises(ValueError, match=words):
        language_is(**settings)


@pytest.mark.parametrize(
    "completion",
    [
        "\ud800" * 50,
        "\0" * 100,
        "a" * 1_000_000,
        "\u00e9 " * 100_000,
        "https://a.b/" * 1000,
        "```" * 99,
        "`" * 100_000,
        "\n" * 100_000 + "a" * 30,
        "\u4e2d" * 100_000,
        "\\" * 100_000,
    ],
    ids=lambda text: ascii(text[:4]),
)
def test_hostile_texts_have_a_language_or_none(completion: str) -> None:
    """No text breaks it."""
    scored = language_is(completion=completion)
    assert scored.value is None or 0 <= scored.value <= 1


def test_it_travels() -> None:
    """With its settings."""
    assert pickle.loads(pickle.dumps(language_is))(completion=GERMAN).value == 0.0
    assert pickle.loads(pickle.dumps(language_is("de")))(completion=GERMAN).value == 1.0
