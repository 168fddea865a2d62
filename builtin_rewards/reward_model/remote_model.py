"""A reward model that vLLM or SGLang serves, as a reward: :class:`RemoteRewardModel`."""

from __future__ import annotations

import asyncio
import functools
import hashlib
import json
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, get_args

from builtin_rewards.endpoint.errors import is_number
from builtin_rewards.judge import RetryPolicy
from builtin_rewards.reading.thoughts import Shows
from builtin_rewards.reward_model.encoding import TextForm, encode_messages, half_character, messages_of
from builtin_rewards.reward_model.loading import load_tokenizer
from builtin_rewards.reward_model.model_reward import ModelFunction, ModelReward, check_choice
from builtin_rewards.reward_model.served_forms import ROUTES, ServedRoute, ServedText, ServerKind
from builtin_rewards.reward_model.served_scores import ModelServer, ServedScores, ServedSettings
from rewardkit import ConfigError, DataError, RewardOptions, Rollout, Score
from rewardkit.extending import message_text

KEY_ENV = "REWARD_MODEL_API_KEY"  # the variable of the key: never the key of a provider of judges
CONCURRENCY = 512  # Calls in flight at once: what requests are made of
_OVER_S = 10.0  # Seconds that a call may take beyond its deadline, so that the error names the server
_tokenizers: dict[Path, Any] = {}
_loading = threading.Lock()


@dataclass(frozen=True, eq=False)
class RemoteScoring(ModelFunction):
    """The function of a served reward model: its settings, and how a text is made ready for the server."""

    settings: ServedSettings
    tokenizer: Path | None = None
    max_length: int | None = None
    form: TextForm = "chat"
    shows: Shows = "answer"

    @functools.cached_property
    def version(self) -> str:
        """The settings; which weights the server has is not known here."""
        values = {name: repr(value) for name, value in asdict(self).items() if name != "name"}
        return hashlib.sha256(repr(sorted(values.items())).encode()).hexdigest()

    def load(self) -> None:
        """Load the tokenizer, so that a fault of it is reported before the first call."""
        if self.tokenizer is not None:
            self._loaded_tokenizer()

    def _loaded_tokenizer(self) -> Any:
        assert self.tokenizer is not None
        with _loading:
            if self.tokenizer not in _tokenizers:
                _tokenizers[self.tokenizer] = load_tokenizer(self.tokenizer)
            return _tokenizers[self.tokenizer]

    def text_of(self, prompt: Any, completion: Any) -> ServedText:
        """Return a text as the server is sent it.

        Raises:
            DataError: It has no completion, does not fit, or holds half of a surrogate pair.
        """
        try:
            messages = messages_of(prompt, completion, self.shows)
            if not any(message_text(message).strip() for message in messages.answers):
                raise DataError("the completion has no text; give default= a score for such completions")
            if self.tokenizer is not None:
                limit, tokenizer = self.max_length, self._loaded_tokenizer()
                row = encode_messages(tokenizer, messages, max_length=limit, form=self.form)
                if row.excess:
                    raise DataError(f"the completion alone is {row.excess} tokens longer than the {limit} that fit")
                return ServedText(row.ids)
            turns = (*messages.questions, *messages.answers)
            sides = ["\n\n".join(map(message_text, side)) for side in (messages.questions, messages.answers)]
            has_sides_alone = self.form == "plain" or self.settings.route == "score"
            json.dumps(sides if has_sides_alone else turns, ensure_ascii=False, allow_nan=False).encode()
        except DataError:
            raise
        except UnicodeEncodeError as error:
            raise DataError(f"it has {half_character(error)}, which no server reads") from error
        except Exception as error:  # messages of other forms
            raise DataError(f"it cannot be sent: {type(error).__name__}: {error}") from error
        return ServedText(None, turns, *sides)

    async def __call__(self, **columns: Any) -> Score:
        text = await asyncio.to_thread(self.text_of, columns.get("prompt", ""), columns["completion"])
        return Score(await ServedScores.of_this_loop(self.settings).score(text))


class RemoteRewardModel(ModelReward[RemoteScoring]):
    """A reward model that vLLM or SGLang serves, whose score is a reward as any other; ranks share the one copy.

    Concurrent calls share requests. A request is tried again where that may help; then its calls fail as
    ``infrastructure``, as they do for an answer with another count or order of scores, HTML, or a score that is no
    finite number. A text that the server refuses fails alone. No score is made up. docs/reference/reward_model.md has
    the routes.

    Args:
        base_url: The server's address, such as ``"http://127.0.0.1:8000"``; an ending ``/v1`` is left out.
        model: The model's name as the server knows it; by default the first of its list.
        server: ``"vllm"`` or ``"sglang"``; by default what its list of models says, else vLLM.
        route: ``"classify"``, ``"pooling"`` or ``"score"`` (a cross-encoder's, of prompt and completion); by default
            the first of these that the server has.
        tokenizer: A folder with the model's tokenizer. With it tokens are sent, those of :func:`encode_text`, and
            special tokens that a completion spells are text; without it vLLM applies its chat template to messages.
        max_length: The most tokens, with ``tokenizer``; the prompt is cut at its beginning.
        text_form: ``"chat"``, or ``"plain"``, which pastes prompt and completion.
        shows: ``"answer"`` scores a completion without its thoughts, ``"all"`` with them.
        label_token_ids: For SGLang's ``score``: the tokens whose probabilities are compared; the first one's counts.
        key_env: The environment variable of the server's key; without a value no key is sent.
        deadline_s: Seconds until a call must have its score, all tries and waits included.
        wait_ms: Milliseconds in which further calls join a request.
        retry: How often and when a request is tried again.
        name: The reward's name.
        default: The score of a call that failed; ``None`` leaves its completion out.
        concurrency: Calls in flight at once.

    Raises:
        ConfigError: A setting is wrong.
        JudgeSetupError: The address is no address, or openai, which carries the requests, is not installed.
    """

    def __init__(
        self,
        base_url: str,
        *,
        model: str | None = None,
        server: ServerKind | None = None,
        route: ServedRoute | None = None,
        tokenizer: str | Path | None = None,
        max_length: int | None = None,
        text_form: TextForm = "chat",
        shows: Shows = "answer",
        label_token_ids: Sequence[int] = (),
        key_env: str = KEY_ENV,
        deadline_s: float = 120.0,
        wait_ms: float = 5.0,
        retry: RetryPolicy | None = None,
        name: str = "reward_model",
        default: float | None = None,
        concurrency: int = CONCURRENCY,
    ) -> None:
        check_choice("server", server, (None, *get_args(ServerKind)))
        check_choice("route", route, (None, *(ROUTES[server] if server else get_args(ServedRoute))))
        check_choice("text_form", text_form, get_args(TextForm))
        check_choice("shows", shows, get_args(Shows))
        if not is_number(deadline_s) or deadline_s <= 0:
            raise ConfigError(f"deadline_s={deadline_s!r}: expected a number of seconds above 0")
        if not is_number(wait_ms) or wait_ms < 0:
            raise ConfigError(f"wait_ms={wait_ms!r}: expected a number, 0 or more")
        if max_length is not None and (tokenizer is None or not is_number(max_length, whole=True) or max_length < 1):
            raise ConfigError(f"max_length={max_length!r}: expected a number of tokens, with tokenizer=")
        if not isinstance(label_token_ids, Sequence) or not all(is_number(id, whole=True) for id in label_token_ids):
            raise ConfigError(f"label_token_ids={label_token_ids!r}: expected a list of a tokenizer's numbers")
        folder = None if tokenizer is None else Path(tokenizer).expanduser()
        if folder is not None and not folder.is_dir():
            raise ConfigError(f"tokenizer={str(tokenizer)!r}: there is no such folder")
        address = base_url.rstrip("/") if isinstance(base_url, str) else base_url
        settings = ServedSettings(
            server=ModelServer(address.removesuffix("/v1") if isinstance(address, str) else address, key_env),
            kind=server, route=route, model=model, plain=text_form == "plain",
            label_token_ids=tuple(label_token_ids), deadline_s=deadline_s, wait_ms=wait_ms,
            retry=retry or RetryPolicy(),
        )  # fmt: skip
        function = RemoteScoring(name, settings, folder, max_length, text_form, shows)
        options = RewardOptions(name=name, timeout_s=deadline_s + _OVER_S, default=default, concurrency=concurrency)
        super().__init__(function, options)

    def score_batch(self, rollouts: Sequence[Rollout]) -> list[float | Exception]:
        """Return the scores of rollouts in their order; where one cannot be scored, the error that tells why."""

        async def score_all() -> list[Score | BaseException]:
            calls = (self._scoring(prompt=rollout.prompt, completion=rollout.completion) for rollout in rollouts)
            return await asyncio.gather(*calls, return_exceptions=True)

        with ThreadPoolExecutor(1) as thread:  # for an event loop may run in this one
            results = thread.submit(asyncio.run, score_all()).result()
        values: list[float | Exception] = []
        for index, result in enumerate(results):
            if isinstance(result, Score):
                values.append(float(result.value or 0.0))
            elif isinstance(result, Exception):
                values.append(DataError(f"rollout {index}: {result}") if isinstance(result, DataError) else result)
            else:
                raise result
        return values
