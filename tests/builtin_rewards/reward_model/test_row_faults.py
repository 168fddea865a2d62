"""The fault of one row of a batch is that row's: all others are scored, and no score is made up."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from builtin_rewards.reward_model import RewardModelReward
from rewardkit import DataError, InfrastructureError, Rollout, Runtime, Status

torch = pytest.importorskip("torch")
tiny = pytest.importorskip("tiny_reward_model")

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")
GOOD = [Rollout("is the cat well ?", f"the cat sat {'and sat ' * (place % 5)}on mat .") for place in range(63)]
_CHAT = "{% for m in messages %}{{ m['role'] }} : {{ m['content'] }} . {% endfor %}"
_REFUSES = "{% if 'badly' in messages[-1]['content'] %}{{ raise_exception('no') }}{% endif %}" + _CHAT
_BROKEN = "{% if 'badly' in messages[-1]['content'] %}{{ messages[0]['content'] + 1 }}{% endif %}" + _CHAT


def with_template(template: str) -> Callable[[Any, pytest.MonkeyPatch], None]:
    def change(scorer: Any, _: pytest.MonkeyPatch) -> None:
        scorer.members[0].tokenizer.chat_template = template

    return change


def refusing_tokenizer(scorer: Any, patch: pytest.MonkeyPatch) -> None:
    """Have the tokenizer raise what it likes of a text with a certain word."""
    kind = type(scorer.members[0].tokenizer)
    call = kind.__call__

    def refuse(self: Any, text: Any, *arguments: Any, **options: Any) -> Any:
        if "badly" in str(text):
            raise OverflowError("out of range integral type conversion attempted")
        return call(self, text, *arguments, **options)

    patch.setattr(kind, "__call__", refuse)


def failing_forward(error: Exception, word: str = "badly") -> Callable[[Any, pytest.MonkeyPatch], None]:
    """Have the model raise where a certain token is in the batch."""

    def change(scorer: Any, patch: pytest.MonkeyPatch) -> None:
        member = scorer.members[0]
        embed, token = member.model.get_input_embeddings(), member.tokenizer.convert_tokens_to_ids(word)

        def hook(_: Any, arguments: tuple[Any, ...]) -> None:
            if bool((arguments[0] == token).any()):
                raise error

        embed.register_forward_pre_hook(hook)

    return change


def infinite_word(scorer: Any, _: pytest.MonkeyPatch) -> None:
    """Give one word's embedding numbers that overflow."""
    member = scorer.members[0]
    with torch.no_grad():
        member.model.get_input_embeddings().weight[member.tokenizer.convert_tokens_to_ids("badly")] = float("inf")


def nothing(scorer: Any, patch: pytest.MonkeyPatch) -> None:
    """Leave the model as it is."""


FAULTS: dict[str, tuple[Rollout, Callable[[Any, pytest.MonkeyPatch], None], type[Exception], str]] = {
    "half a pair in the completion": (Rollout("?", "cut \ud83d"), nothing, DataError, r"half .* \\ud83d, which no"),
    "half a pair in the prompt": (Rollout("cut \udc00", "fine"), nothing, DataError, r"half .* \\udc00, which no"),
    "half a pair in a message": (
        Rollout([{"role": "user", "content": "cut \ud83d"}], [{"role": "assistant", "content": "fine"}]),
        nothing, DataError, r"half .* \\ud83d, which no",
    ),
    "no completion": (Rollout("?", ""), nothing, DataError, "the completion has no text"),
    "too long a completion": (Rollout("?", "a " * 90), nothing, DataError, "longer than the 64 that fit"),
    "a template that refuses": (Rollout("?", "badly"), with_template(_REFUSES), DataError, "refuses it: no"),
    "a template that breaks": (Rollout("?", "badly"), with_template(_BROKEN), DataError, "template refuses it: can"),
    "a tokenizer that raises": (Rollout("?", "badly"), refusing_tokenizer, DataError, "refuses it: OverflowError: out"),
    "a token without weights": (Rollout("?", "unheard"), nothing, DataError, "token 64 is beyond the 64"),
    "a number that is not finite": (Rollout("?", "badly"), infinite_word, DataError, "the score nan; dtype='float32'"),
    "a model that fails": (
        Rollout("?", "badly"), failing_forward(RuntimeError("no kernel")), InfrastructureError,
        "the model failed: RuntimeError: no kernel",
    ),
    "a model that indexes wrongly": (
        Rollout("?", "badly"), failing_forward(IndexError("index out of range in self")), InfrastructureError,
        "the model failed: IndexError: index out of range",
    ),
    "too little memory": (
        Rollout("?", "badly"), failing_forward(torch.OutOfMemoryError("8 GiB")), InfrastructureError,
        "no memory for a text of",
    ),
}  # fmt: skip


def model_of(folder: Path) -> RewardModelReward:
    """Return a reward of a tiny model, one of whose tokens has no weights."""
    saved: Path = tiny.saved_model(folder)
    tokenizer = tiny.transformers.AutoTokenizer.from_pretrained(saved)
    tokenizer.add_tokens([*(f"filler{number}" for number in range(64 - len(tokenizer))), "unheard"])
    tokenizer.save_pretrained(saved)
    return RewardModelReward(saved, device="cpu", text_form="chat", name="model")


@pytest.mark.parametrize("fault", FAULTS)
def test_the_fault_of_a_row_is_that_rows(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 64 rows 63 have the scores that they have without it, in a runtime as in a batch of one's own."""
    row, change, kind, message = FAULTS[fault]
    reward = model_of(tmp_path / "m")
    scorer = reward.function.scorer()  # type: ignore[attr-defined]
    change(scorer, monkeypatch)
    expected = [score for score in reward.score_batch(GOOD) if isinstance(score, float)]
    assert len(GOOD) == len(expected)
    results = reward.score_batch([*GOOD[:31], row, *GOOD[31:]])
    error = results.pop(31)
    assert kind is type(error)
    assert re.search(message, str(error))
    assert pytest.approx(expected, abs=1e-5) == results
    with Runtime([reward], lane="inline", max_infrastructure_rate=1.0) as runtime:
        outcomes = runtime.score([*GOOD, row])["model"]
    assert [*[Status.SCORED] * 63, Status.FAILED] == [outcome.status for outcome in outcomes]
    assert outcomes[-1].score is None
    assert pytest.approx(expected, abs=1e-5) == [outcome.score for outcome in outcomes[:-1]]


def test_a_broken_device_leaves_no_score(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row has the error as infrastructure's, and the process goes on."""
    reward = model_of(tmp_path / "m")
    scorer = reward.function.scorer()  # type: ignore[attr-defined]
    with monkeypatch.context() as patch:
        patch.setattr(scorer.members[0].model.model, "forward", lambda *_, **__: (_ for _ in ()).throw(RuntimeError()))
        results = reward.score_batch(GOOD)
        assert [InfrastructureError] * 63 == [type(result) for result in results]
    assert [float] * 63 == [type(result) for result in reward.score_batch(GOOD)]


@pytest.mark.parametrize("reduce", ["mean", "min", "lower"])
def test_a_row_that_one_model_of_several_refuses_has_no_score(tmp_path: Path, reduce: str) -> None:
    """The others' mean would be a score that nobody gave."""
    folders = [tiny.saved_model(tmp_path / name) for name in ("a", "bb")]
    reward = RewardModelReward(folders, device="cpu", text_form="chat", reduce=reduce)
    infinite_word(type("Second", (), {"members": reward.function.scorer().members[1:]}), None)  # type: ignore[attr-defined, arg-type]
    results = reward.score_batch([*GOOD, Rollout("?", "badly")])
    assert [*[float] * 63, DataError] == [type(result) for result in results]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (Rollout(["?"], [7]), "it cannot be made tokens: "),  # type: ignore[list-item]
        (Rollout([{"content": "?"}], "fine"), "it cannot be made tokens: KeyError: 'role'"),
        (Rollout("?", 7), "it cannot be made tokens: "),  # type: ignore[arg-type]
        (Rollout("?", [{"role": "assistant", "content": 7}]), "it cannot be made tokens: "),
    ],
    ids=["no mapping", "no role", "a number", "content that is a number"],
)
def test_a_row_of_another_form_costs_no_other(row: Rollout, message: str, tmp_path: Path) -> None:
    """A runtime refuses such a batch before it scores; a batch of one's own has the error in the row's place."""
    results = model_of(tmp_path / "m").score_batch([GOOD[0], row, GOOD[1]])
    assert [float, DataError, float] == [type(result) for result in results]
    assert message in str(results[1])


def _in_parts(*parts: object) -> Rollout:
    return Rollout("is the cat well ?", [{"role": "assistant", "content": [*parts]}])  # type: ignore[list-item]


_CAT = {"type": "text", "text": "the cat sat ."}
_HALF = {"type": "text", "text": "\ud83d"}
_JOINED = "{% for m in messages %}{{ m['role'] + ' : ' + m['content'] + ' . ' }}{% endfor %}"
_READ = "{% for m in messages %}{{ m['role'] }} : {% if m['content'] is string %}{{ m['content'] }}{% else %}{% for p in m['content'] %}{{ p['text'] }}{% endfor %}{% endif %} . {% endfor %}"  # noqa: E501


@pytest.mark.parametrize(
    ("template", "parts"),
    [
        (_CHAT, (_CAT,)),
        (_JOINED, (_CAT,)),
        (_READ, (_CAT,)),
        (_CHAT, (_CAT, {"type": "text", "text": None})),
        (_JOINED, (_CAT, {"type": "text", "text": None})),
    ],
    ids=["printed", "joined", "read", "null printed", "null joined"],
)
def test_text_in_parts_scores_as_text(template: str, parts: tuple[object, ...], tmp_path: Path) -> None:
    """Whether the chat template reads parts or pastes contents; the list itself is never scored."""
    model = model_of(tmp_path / "m")
    with_template(template)(model._scoring.scorer(), pytest.MonkeyPatch())
    text, whole = model.score_batch([Rollout("is the cat well ?", "the cat sat ."), _in_parts(*parts)])
    assert isinstance(text, float)
    assert text == pytest.approx(whole, abs=1e-6)


@pytest.mark.parametrize("template", [_CHAT, _JOINED], ids=["prints", "joins"])
@pytest.mark.parametrize(
    ("part", "message"),
    [(_HALF, "half of a surrogate pair"), ({"type": "image_url", "image_url": {"url": "x"}}, "type 'image_url'")],
    ids=["half a pair", "an image"],
)
def test_a_part_that_is_no_text_fails_where_the_template_reads_none(
    template: str, part: object, message: str, tmp_path: Path
) -> None:
    model = model_of(tmp_path / "m")
    with_template(template)(model._scoring.scorer(), pytest.MonkeyPatch())
    score, error = model.score_batch([GOOD[0], _in_parts(_CAT, part)])
    assert isinstance(score, float)
    assert isinstance(error, DataError)
    assert message in str(error)
