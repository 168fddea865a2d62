"""Texts side by side in one row, each of which sees itself alone, so that no padding is computed.

The attention of transformers is a function by name. The one here reads the lengths of the texts in the row that is
being computed: on a GPU with half precision torch's ``varlen_attn`` computes all texts at once, elsewhere
``scaled_dot_product_attention`` computes one after the other. Outside a packed row both names stand for transformers'
own ``sdpa``. Whether a model can be packed is tried, not known: see :func:`can_pack`.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import inspect
import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import torch

ATTENTION = "rewardkit_packed"
_PROBE_LENGTHS = (7, 3, 12)
_MOST_DEVIATION = {4: 1e-4, 2: 0.05}
"""How far hidden states of a packed text may be from those of the text alone, as a share of their size, by the bytes
of a number. A text that saw its neighbour differs by a third and more."""
PADDED_POSITIONS = ("roberta", "xlm-roberta", "camembert")  # whose positions begin after the padding's


class _State(threading.local):
    pack: Pack | None = None  # what is computed in this thread


_state = _State()


@dataclass(frozen=True, slots=True)
class Pack:
    """The texts of one row: where each begins and ends.

    Attributes:
        ids: All their tokens, shape (1, T).
        positions: The place of each token in its text, shape (1, T).
        starts: Where each text begins, shape (N,), on the device.
        lengths: How many tokens each has.
        bounds: Where each text ends, from 0 on, shape (N + 1,), of 32 bits, on the device.
    """

    ids: torch.Tensor
    positions: torch.Tensor
    starts: torch.Tensor
    lengths: tuple[int, ...]
    bounds: torch.Tensor

    @classmethod
    def of(cls, rows: Sequence[np.ndarray[Any, Any]], device: torch.device) -> Pack:
        """Return the pack of texts, of whose tokens each array holds one's; no list is made of them."""
        import torch

        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        ends = lengths.cumsum()
        starts = ends - lengths
        positions = np.arange(ends[-1]) - starts.repeat(lengths)
        # One copy to the device carries all of it.
        parts = np.concatenate([*rows, positions, starts, [0], ends], dtype=np.int64)
        tensor = torch.from_numpy(parts)
        if device.type == "cuda":
            tensor = tensor.pin_memory()
        tensor = tensor.to(device, non_blocking=True)
        total, count = int(ends[-1]), len(rows)
        ids, positions_, starts_, bounds = tensor.tensor_split((total, 2 * total, 2 * total + count))
        return cls(ids[None], positions_[None], starts_, tuple(lengths.tolist()), bounds.int())

    @property
    def ends(self) -> tuple[int, ...]:
        """Where the texts end but the last, at which a tensor over all tokens is split."""
        return tuple(itertools.accumulate(self.lengths[:-1]))

    @contextlib.contextmanager
    def computed(self) -> Iterator[None]:
        """Have attention keep the texts apart within the block."""
        before, _state.pack = _state.pack, self
        try:
            yield
        finally:
            _state.pack = before


def hidden_states(base: Any, pack: Pack) -> torch.Tensor:
    """Return the last hidden states of a packed row, shape (1, T, H)."""
    import torch

    parameters, config = inspect.signature(base.forward).parameters, base.config.get_text_config()
    offset = config.pad_token_id + 1 if config.model_type in PADDED_POSITIONS else 0
    # Without a mask transformers looks for texts in the positions, and waits for the device to find them.
    options: dict[str, Any] = {"attention_mask": torch.ones_like(pack.ids)}
    if "use_cache" in parameters:
        options["use_cache"] = False
    if "token_type_ids" in parameters and bool(getattr(config, "type_vocab_size", 0)):
        options["token_type_ids"] = torch.zeros_like(pack.ids)
    with pack.computed():
        output = base(input_ids=pack.ids, position_ids=pack.positions + offset, **options)
    states: torch.Tensor = output[0]
    return states


def can_pack(model: Any) -> bool:
    """Return whether a model computes packed texts as it computes each alone, and set its attention so if it does.

    It is tried with three short texts of drawn tokens: attention with biases of its own, positions that are not
    taken from outside, or tokens that are mixed along the row are found out by what they compute.
    """
    import torch

    base = getattr(model, model.base_model_prefix, None)
    if base is None or "position_ids" not in inspect.signature(base.forward).parameters:
        return False
    before = model.config._attn_implementation
    if before not in ("sdpa", ATTENTION):
        return False  # its attention computes what the packed one does not
    vocabulary = int(model.get_input_embeddings().num_embeddings)
    draw = np.random.default_rng(0)
    rows = [draw.integers(vocabulary // 2, vocabulary, length) for length in _PROBE_LENGTHS]
    try:
        packs = [Pack.of([row], model.device) for row in rows]
        with torch.inference_mode():
            # Alone the mask is all ones, as it is where a text is scored by transformers itself.
            alone = [base(pack.ids, attention_mask=torch.ones_like(pack.ids))[0] for pack in packs]
            _register()
            model.set_attn_implementation(ATTENTION)
            packed = hidden_states(base, Pack.of(rows, model.device))
            expected = torch.cat(alone, dim=1).float()
            deviation = float((packed.float() - expected).norm() / expected.norm())
        packs_well = deviation <= _MOST_DEVIATION[min(4, packed.dtype.itemsize)]
    except Exception:  # whatever it is, such a model is padded
        packs_well = False
    if not packs_well:
        model.set_attn_implementation(before)
    return packs_well


@functools.cache
def _register() -> None:
    """Make the attention known to transformers, by its name."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.integrations.sdpa_attention import sdpa_attention_forward
    from transformers.masking_utils import sdpa_mask

    def attention(module: Any, query: Any, key: Any, value: Any, attention_mask: Any, **options: Any) -> Any:
        if _state.pack is None:
            return sdpa_attention_forward(module, query, key, value, attention_mask, **options)
        return _packed_attention(_state.pack, module, query, key, value, **options), None

    def mask(*arguments: Any, **options: Any) -> Any:
        return sdpa_mask(*arguments, **options) if _state.pack is None else None

    AttentionInterface.register(ATTENTION, attention)
    AttentionMaskInterface.register(ATTENTION, mask)


def _packed_attention(
    pack: Pack,
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    *,
    scaling: float | None = None,
    is_causal: bool | None = None,
    sliding_window: int | None = None,
    **options: Any,
) -> torch.Tensor:
    """Return the attention of each text of a row to itself, shape (1, T, heads, D), of queries (1, heads, T, D)."""
    for name in ("softcap", "s_aux", "position_bias", "head_mask"):
        if options.get(name) is not None:
            raise NotImplementedError(f"packed texts have no {name}")
    causal = bool(is_causal if is_causal is not None else getattr(module, "is_causal", True))
    window = sliding_window if sliding_window and sliding_window < max(pack.lengths) else None
    heads = _Heads(query, key, value, scaling, causal, window)
    varlen = _varlen() if query.is_cuda and query.dtype.itemsize == 2 else None
    return _attention_by_text(pack, heads) if varlen is None else _attention_at_once(varlen, pack, heads)


class _Heads(NamedTuple):
    """What attention is computed of: the heads of a row's tokens, and which tokens of a text see which."""

    query: torch.Tensor  # (1, heads, T, D)
    key: torch.Tensor  # as the values, (1, heads, T, D), of as many heads or fewer
    value: torch.Tensor
    scale: float | None
    causal: bool  # whether none sees those that come later
    window: int | None  # sees those nearer than that

    @property
    def are_shared(self) -> bool:
        """Whether several heads of queries have one of keys."""
        return self.key.shape[1] != self.query.shape[1]


def _attention_at_once(varlen: Callable[..., Any], pack: Pack, heads: _Heads) -> torch.Tensor:
    """Return the attention of all texts at once, by torch's flash attention."""
    most = max(pack.lengths)
    left = -1 if heads.window is None else heads.window - 1
    by_token = [tensor[0].transpose(0, 1) for tensor in (heads.query, heads.key, heads.value)]
    output: torch.Tensor = varlen(
        *by_token, pack.bounds, pack.bounds, most, most,
        scale=heads.scale, window_size=(left, 0 if heads.causal else left), enable_gqa=heads.are_shared,
    )  # fmt: skip
    return output[None]


def _attention_by_text(pack: Pack, heads: _Heads) -> torch.Tensor:
    """Return the attention of one text after the other."""
    import torch

    outputs, causal, window = [], heads.causal, heads.window
    parts = (tensor.tensor_split(pack.ends, dim=2) for tensor in (heads.query, heads.key, heads.value))
    for query, key, value in zip(*parts, strict=True):
        length = query.shape[2]
        mask = _window_mask(length, window, causal, query.device) if window is not None and length > window else None
        outputs.append(
            torch.nn.functional.scaled_dot_product_attention(
                query, key, value, attn_mask=mask, scale=heads.scale,
                is_causal=causal and mask is None and length > 1, enable_gqa=heads.are_shared,
            ).transpose(1, 2)
        )  # fmt: skip
    return torch.cat(outputs, dim=1)


def _window_mask(length: int, window: int, causal: bool, device: torch.device) -> torch.Tensor:
    """Return which token sees which, (L, L): those nearer than the window, with ``causal`` none that come later."""
    import torch

    places = torch.arange(length, device=device)
    distance = places[:, None] - places[None, :]
    return (distance >= 0) & (distance < window) if causal else distance.abs() < window


@functools.cache
def _varlen() -> Callable[..., Any] | None:
    """Return torch's attention for texts of several lengths, ``None`` of a torch that has none."""
    if importlib.util.find_spec("torch.nn.attention.varlen") is None:
        return None
    from torch.nn.attention.varlen import varlen_attn

    takes = inspect.signature(varlen_attn).parameters
    return varlen_attn if {"window_size", "enable_gqa", "scale"} <= takes.keys() else None
