"""The forward passes of one loaded model: tokens in, the head's numbers out, for each text or an error in their place.

A model that can be packed computes texts side by side, in the order in which they come, while later ones are still
made tokens. Any other computes batches of like lengths, padded on the right.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from builtin_rewards.reward_model.encoding import EncodedText
from builtin_rewards.reward_model.loading import LoadedMember
from builtin_rewards.reward_model.packing import Pack, hidden_states
from rewardkit import InfrastructureError

if TYPE_CHECKING:
    import torch

Logits: TypeAlias = "np.ndarray[Any, Any] | Exception"
"""What a model gives a text: the numbers of its head, (1,) of a sequence head, (length, labels) of a head of tokens, or
the error in their place."""
TOKEN_BUDGETS = {"cuda": 16_384, "cpu": 2_048}
"""Tokens of one forward, by kind of device. Of 512 to 16,384 on a CPU 2,048 took the least time for texts of 5 to 250
words, half of what 16,384 took, whose activations no cache holds."""
_Error = TypeVar("_Error", bound=Exception)


class ForwardPasses:
    """The forward passes over the texts of one call; use it in one thread.

    Args:
        member: The model, its adapter active.
        token_budget: Tokens of one pass at most, unless one text has more.
        read_at: As of the reward: which token a head of sequences reads.
    """

    def __init__(self, member: LoadedMember, token_budget: int | None, read_at: str) -> None:
        self._member, self._read_at = member, read_at
        kind = member.model.device.type
        self._budget = token_budget or TOKEN_BUDGETS.get(kind, TOKEN_BUDGETS["cuda"])
        self._waiting: list[EncodedText] = []
        self._waiting_tokens = 0
        self._results: list[tuple[list[EncodedText], Any]] = []  # rows with their logits, on the device
        member.activate()

    def add(self, row: EncodedText) -> None:
        """Add a text; where the model can be packed, a pass begins when there are tokens enough."""
        length = len(row.ids)
        if self._member.packs and self._waiting and self._waiting_tokens + length > self._budget:
            self._run_waiting()
        self._waiting.append(row)
        self._waiting_tokens += length

    def _run_waiting(self) -> None:
        rows, self._waiting, self._waiting_tokens = self._waiting, [], 0
        self._results.append((rows, self._run(rows)))

    def finish(self) -> list[Logits]:
        """Return the logits of all texts that were added, in their order."""
        if self._waiting and not self._member.packs:
            return self._in_batches(self._waiting)
        if self._waiting:
            self._run_waiting()
        return [logits for rows, result in self._results for logits in self._fetch(rows, result)]

    def _in_batches(self, rows: Sequence[EncodedText]) -> list[Logits]:
        """Return the logits of rows that are computed in batches of like lengths."""
        results: dict[int, Logits] = {}
        for batch in length_batches([len(row.ids) for row in rows], self._budget):
            batch_rows = [rows[index] for index in batch]
            results |= zip(batch, self._fetch(batch_rows, self._run(batch_rows)), strict=True)
        return [results[index] for index in range(len(rows))]

    def _run(self, rows: Sequence[EncodedText]) -> torch.Tensor | Exception:
        """Return the logits of rows in one tensor on the device, (N, 1) or (T, labels), or the error of the pass."""
        import torch

        try:
            with torch.inference_mode():
                arrays = [np.array(row.ids, dtype=np.int64) for row in rows]
                return self._packed(arrays) if self._member.packs else self._padded(arrays)
        except Exception as error:
            return error.with_traceback(None)  # which holds the tensors of the pass

    def _fetch(self, rows: Sequence[EncodedText], result: torch.Tensor | Exception) -> list[Logits]:
        """Return each row's logits on the CPU; where the pass failed, it is made again in halves.

        A row alone has the logits that it has beside others, so that halves change no score, and a row on which the
        model fails alone has the error.
        """
        import torch

        if not isinstance(result, Exception):
            try:
                numbers = result.float().cpu().numpy()  # an error of the device shows here
            except Exception as error:
                result = error
            else:
                if not self._member.folder.tokenwise:
                    return list(numbers)
                ends = np.cumsum([len(row.ids) for row in rows])
                return list(np.split(numbers, ends[:-1]))
        if len(rows) == 1:
            return [_failure_of(rows[0], result)]
        if isinstance(result, torch.OutOfMemoryError):
            torch.cuda.empty_cache()
        half = len(rows) // 2
        return [logits for part in (rows[:half], rows[half:]) for logits in self._fetch(part, self._run(part))]

    def _packed(self, rows: Sequence[np.ndarray[Any, Any]]) -> torch.Tensor:
        """Return the logits of rows that are computed side by side."""
        model = self._member.classifier
        base = getattr(model, model.base_model_prefix)
        pack = Pack.of(rows, model.device)
        hidden = hidden_states(base, pack)
        if self._member.folder.tokenwise:
            with _computed_states(base, hidden):
                return _logits_of(model(input_ids=pack.ids))[0]
        head = getattr(model, "score", None)
        if head is not None:  # a decoder's own forward would read the token that transformers chooses
            return _tensor(head(hidden[0, pack.starts + self._read_positions(rows, pack.starts.device)]))
        return self._pooled(model, base, pack, hidden)

    def _pooled(self, model: Any, base: Any, pack: Pack, hidden: torch.Tensor) -> torch.Tensor:
        """Return an encoder's logits: its own head reads the first token, or all of them, of each text's states."""
        import torch

        states = torch.nn.utils.rnn.pad_sequence([*hidden[0].tensor_split(pack.ends)], batch_first=True)
        lengths = torch.tensor(pack.lengths, device=states.device)
        mask = (torch.arange(states.shape[1], device=states.device)[None, :] < lengths[:, None]).long()
        with _computed_states(base, states):
            return _logits_of(model(input_ids=torch.zeros_like(mask), attention_mask=mask))

    def _padded(self, rows: Sequence[np.ndarray[Any, Any]]) -> torch.Tensor:
        """Return the logits of rows that are padded on the right to the longest."""
        import torch

        model, width = self._member.classifier, max(map(len, rows))
        ids = np.full((len(rows), width), self._member.tokenizer.pad_token_id, dtype=np.int64)
        for index, row in enumerate(rows):
            ids[index, : len(row)] = row
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        inside = torch.from_numpy(np.arange(width)[None, :] < lengths[:, None]).to(model.device)
        inputs = {"input_ids": torch.from_numpy(ids).to(model.device), "attention_mask": inside.long()}
        if self._member.folder.tokenwise:
            return _logits_of(model(**inputs))[inside]
        head = getattr(model, "score", None)
        if head is None:  # an encoder reads its first token, or all of them by the mask
            return _logits_of(model(**inputs))
        hidden = getattr(model, model.base_model_prefix)(**inputs, use_cache=False)[0]
        last = self._read_positions(rows, model.device)
        return _tensor(head(hidden[torch.arange(len(rows), device=model.device), last]))

    def _read_positions(self, rows: Sequence[np.ndarray[Any, Any]], device: torch.device) -> torch.Tensor:
        """Return which token of each row the head reads: the last, or as in training the last before padding."""
        import torch

        pad = None if self._read_at == "last" else self._member.pad_id
        positions = np.fromiter((_read_position(row, pad) for row in rows), np.int64, len(rows))
        return torch.from_numpy(positions).to(device, non_blocking=True)


def _read_position(row: np.ndarray[Any, Any], pad: int | None) -> int:
    """Return the index of a row's last token that is not the padding; that of the last where all are."""
    end = len(row) - 1
    if pad is None or row[end] != pad:
        return end
    places = np.flatnonzero(row != pad)
    return int(places[-1]) if len(places) else end


@contextlib.contextmanager
def _computed_states(base: Any, states: torch.Tensor) -> Iterator[None]:
    """Have a base model return these states within the block, so that the model's own head reads them."""
    from transformers.modeling_outputs import BaseModelOutputWithPooling

    pooler = getattr(base, "pooler", None)
    pooled = None if pooler is None else pooler(states)
    base.forward = lambda *_, **__: BaseModelOutputWithPooling(last_hidden_state=states, pooler_output=pooled)
    try:
        yield
    finally:
        del base.forward


def _logits_of(output: Any) -> torch.Tensor:
    return _tensor(output.logits)


def _tensor(value: Any) -> torch.Tensor:
    tensor: torch.Tensor = value
    return tensor


def length_batches(lengths: Sequence[int], token_budget: int) -> Iterator[list[int]]:
    """Yield the places of texts in batches of like lengths, longest first, each padded to ``token_budget`` at most."""
    order = sorted(range(len(lengths)), key=lambda index: -lengths[index])
    while order:
        size = max(1, token_budget // max(1, lengths[order[0]]))
        yield order[:size]
        order = order[size:]


def _failure_of(row: EncodedText, error: Exception) -> InfrastructureError:
    """Return why a model has no logits for a text, of the error that it raised."""
    import torch

    message = f"the model failed: {message_of(error)}"
    if isinstance(error, torch.OutOfMemoryError):
        message = f"the device has no memory for a text of {len(row.ids)} tokens: lower max_length"
    return caused_by(error, InfrastructureError(message))


def caused_by(cause: Exception, error: _Error) -> _Error:
    """Return an error that has another as its cause."""
    error.__cause__ = cause
    return error


def message_of(error: Exception) -> str:
    """Return an error's type and message in a line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:400]}"
