"""The weights of reward models: only safetensors are read, no code runs, and adapters of one base share a copy."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from builtin_rewards.reward_model.description import (
    ModelKind,
    RewardModelDescription,
    read_description,
)
from builtin_rewards.reward_model.packing import PADDED_POSITIONS, can_pack
from rewardkit import ConfigError

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedTokenizerBase

DTYPES = ("auto", "float32", "bfloat16", "float16")  # of weights; `auto` is bfloat16 on a GPU and float32 on a CPU
_FILES = ["*.json", "*.safetensors", "*.txt", "*.model", "*.jinja"]  # pickled weights are never fetched
_VOCABULARIES = ("tokenizer.json", "vocab.txt", "vocab.json", "tekken.json", "*.model")  # one of them has the tokens
_FEWEST_WORDS = 3  # of a file without words transformers makes a tokenizer of its special tokens and a mark or two
_CHECKPOINT_FOLDERS = ("", "checkpoints")  # a trainer's own folder, and that of rewardkit rm train
_NEEDS = "scoring with a reward model needs {}: pip install torch transformers safetensors peft"


@dataclass(frozen=True, slots=True)
class CheckedFolder:
    """A reward model's folder whose files were looked at, its weights not yet loaded."""

    path: Path  # The folder
    base: Path  # The folder with the model's weights; another one than `path` where that holds an adapter
    is_adapter: bool  # Whether `path` holds an adapter of `base`
    kind: ModelKind  # What the model learned from
    tokenwise: bool  # Whether it has logits for each token, not for a sequence
    labels: int  # How many
    description: RewardModelDescription  # What `reward_model.json` says; the defaults without such a file


@dataclass(slots=True)
class LoadedMember:
    """One model of an ensemble: a checkpoint, or an adapter on a base that others may share."""

    folder: CheckedFolder  # Where it comes from
    model: Any  # In evaluation mode, on its device
    tokenizer: Any  # A fast one, with a padding token
    pad_id: int | None  # The padding token it was trained with, by its configuration
    max_length: int  # The most tokens of a text
    vocabulary: int  # How many tokens it has weights for
    packs: bool  # Whether texts are computed side by side; else they are padded
    adapter: str | None = None  # The adapter's name in `model`; `None` for a checkpoint

    def activate(self) -> None:
        """Switch the base to this member's adapter; nothing is copied."""
        if self.adapter is not None and self.model.active_adapter != self.adapter:
            self.model.set_adapter(self.adapter)
            self.model.requires_grad_(False)

    @property
    def classifier(self) -> Any:
        """The model with the head, without the adapter's wrapper."""
        return self.model.get_base_model() if self.adapter is not None else self.model


def folder_of(path_or_id: str) -> Path:
    """Return a model's folder: the path itself, or the local copy of a hub's. Raises ConfigError."""
    path = Path(path_or_id).expanduser()
    if path.is_dir():
        return path
    if path.is_absolute() or path_or_id.startswith((".", "~")) or path_or_id.count("/") != 1:
        raise ConfigError(f"reward model {path_or_id!r}: there is no such folder; name the folder that training wrote")
    with require_package("huggingface_hub"):
        from huggingface_hub import snapshot_download
    try:
        return Path(snapshot_download(path_or_id, allow_patterns=_FILES))
    except Exception as error:  # a hub has many ways not to be there
        message = " ".join(str(error).split())[:300]
        raise ConfigError(
            f"reward model {path_or_id!r}: there is no such folder, and no hub gave it ({message}); name the folder"
        ) from error


def check_folder(path_or_id: str, base: str | None = None) -> CheckedFolder:
    """Return what a reward model's folder holds, without loading weights or torch; ConfigError says what helps."""
    path = base_path = folder_of(path_or_id)
    task = None
    if is_adapter := (path / "adapter_config.json").is_file():
        adapter_config = _json(path / "adapter_config.json")
        task = str(adapter_config.get("task_type"))
        base_path = folder_of(base or str(adapter_config.get("base_model_name_or_path")))
        _need_safetensors(path, "adapter_model")
    _need_safetensors(base_path, "model")
    description = read_description(path)
    tokenwise, labels = _head(path, _json(base_path / "config.json"), description, task)
    head_kind: ModelKind = "bradley_terry" if not tokenwise else "orm" if labels == 1 else "prm"
    if description is not None and head_kind != "orm" and (description.kind == "prm") != (head_kind == "prm"):
        raise ConfigError(f"{path}: reward_model.json says kind {description.kind!r}, and the head is another's")
    _vocabulary_folder(path, base_path)
    kind = head_kind if description is None or tokenwise else description.kind
    return CheckedFolder(
        path, base_path, is_adapter, kind, tokenwise, labels, description or RewardModelDescription(kind=kind)
    )


def has_vocabulary(folder: Path) -> bool:
    """Return whether a folder has a tokenizer's tokens; without them transformers makes a tokenizer of no words."""
    return any(next(folder.glob(pattern), None) is not None for pattern in _VOCABULARIES)


def _vocabulary_folder(path: Path, base: Path) -> Path:
    """Return which of an adapter's folder and its base's has the tokenizer; raise ConfigError if neither has it."""
    for folder in (path, base):
        if has_vocabulary(folder):
            return folder
    raise ConfigError(
        f"{base}: it has weights and no tokenizer ({', '.join(_VOCABULARIES[:3])}); save the one that the model was "
        "trained with beside them, with save_pretrained"
    )


def _head(
    path: Path, config: dict[str, Any], description: RewardModelDescription | None, task: str | None
) -> tuple[bool, int]:
    """Return whether the head is one of tokens, and its labels; raise ConfigError if it is no reward model's."""
    names = [str(name) for name in config.get("architectures") or []]
    if task in ("SEQ_CLS", "TOKEN_CLS"):  # the adapter has a head of its own
        return task == "TOKEN_CLS", 3 if description is not None and description.kind == "prm" else 1
    sequence = any(name.endswith("ForSequenceClassification") for name in names)
    tokenwise = any(name.endswith("ForTokenClassification") for name in names)
    if not sequence and not tokenwise:
        raise ConfigError(
            f"{path}: its head is {', '.join(names) or 'not named'}, not a reward model's; train one with "
            "rewardkit rm train, or give a checkpoint ...ForSequenceClassification with one label"
        )
    labels = len(config["id2label"]) if config.get("id2label") else int(config.get("num_labels", 2))
    if sequence and labels != 1:
        raise ConfigError(
            f"{path}: its head has {labels} labels; a reward model's has one score: train it with num_labels=1"
        )
    if tokenwise and labels not in (1, 2, 3):
        raise ConfigError(f"{path}: its head has {labels} labels a token; a model of outcomes has 1, of steps 3 or 2")
    return tokenwise, labels


def load_members(
    folders: Sequence[CheckedFolder], device: str, dtype: str, max_length: int | None, pad_token: str | None
) -> list[LoadedMember]:
    """Return the models, each base loaded once, without gradients; ConfigError for weights or padding amiss."""
    with require_package("torch"):
        import torch
    target = _device(device)
    weights = getattr(torch, dtype if dtype != "auto" else "bfloat16" if target.type == "cuda" else "float32")
    bases: dict[tuple[Path, bool, int], Any] = {}
    packs: dict[Any, bool] = {}  # by the model without an adapter, which those of one base share
    members = []
    tokenizers: dict[str, Any] = {}  # members with the same one share it, and what it has read
    for index, folder in enumerate(folders):
        source = _vocabulary_folder(folder.path, folder.base)
        digest = _tokenizer_digest(source)
        if digest not in tokenizers:
            tokenizers[digest] = _padded_tokenizer(source, pad_token)
        tokenizer = tokenizers[digest]
        key = (folder.base.resolve(), folder.tokenwise, folder.labels)
        adapter = f"adapter_{index}" if folder.is_adapter else None
        if adapter is None:
            model = _load_checkpoint(folder, weights, target)
        else:
            model = bases[key] = _load_adapter(bases.get(key), folder, adapter, weights, target)
        _check_finite(model, folder.path)
        model.train(False)
        model.requires_grad_(False)
        classifier = model.get_base_model() if folder.is_adapter else model
        config = classifier.config.get_text_config()
        length = _token_limit(folder, config, tokenizer, max_length)
        vocabulary = int(model.get_input_embeddings().num_embeddings)
        if classifier not in packs:
            packs[classifier] = can_pack(classifier)
        members.append(
            LoadedMember(folder, model, tokenizer, config.pad_token_id, length, vocabulary, packs[classifier], adapter)
        )
    return members


def _load_checkpoint(folder: CheckedFolder, dtype: torch.dtype, device: torch.device, *, own_head: bool = True) -> Any:
    """Return a model; raise ConfigError if it cannot be loaded, or lacks weights of a head that should be its own."""
    with require_package("transformers"):
        from safetensors import SafetensorError
        from transformers import AutoModelForSequenceClassification, AutoModelForTokenClassification
    maker = AutoModelForTokenClassification if folder.tokenwise else AutoModelForSequenceClassification
    try:
        model, report = maker.from_pretrained(
            str(folder.base), num_labels=folder.labels, dtype=dtype, use_safetensors=True, trust_remote_code=False,
            local_files_only=True, output_loading_info=True,
        )  # fmt: skip
    except (OSError, ValueError, RuntimeError, KeyError, SafetensorError) as error:
        raise ConfigError(f"{folder.base}: cannot be loaded: {' '.join(str(error).split())[:400]}") from error
    missing_keys = sorted(report["missing_keys"]) if own_head else []
    if missing_keys:
        raise ConfigError(
            f"{folder.base}: the weights lack {', '.join(missing_keys[:3])}, so the head was never trained; "
            "train it with rewardkit rm train"
        )
    if dtype.itemsize < 4:
        keep_head_exact(model, folder.base)
    return model.to(device)


def keep_head_exact(model: Any, folder: Path) -> None:
    """Have a model's head compute in float32, with the weights as they stand in its file.

    In bfloat16 a head rounds a score of 10 to a sixteenth, so that completions of near scores tie.
    """
    from safetensors import safe_open

    heads = [(name, module) for name, module in model.named_children() if name != model.base_model_prefix]
    for _, module in heads:
        module.float()
        module.register_forward_pre_hook(_in_float32)
    tensors = {f"{name}.{key}": tensor for name, module in heads for key, tensor in module.state_dict().items()}
    for path in sorted(folder.glob("model*.safetensors")):
        with safe_open(path, "pt") as file:
            for key in tensors.keys() & set(file.keys()):
                tensors[key].copy_(file.get_tensor(key))


def _in_float32(_: torch.nn.Module, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a head's arguments with numbers of fewer bits made float32."""
    return tuple(value.float() if hasattr(value, "is_floating_point") and value.is_floating_point() else value
                 for value in arguments)  # fmt: skip


def _load_adapter(base_model: Any, folder: CheckedFolder, name: str, dtype: torch.dtype, device: torch.device) -> Any:
    """Load an adapter onto the base, or onto a new one for ``None``, and return it; raise ConfigError if it fails."""
    with require_package("peft"):
        from peft import PeftModel
        from safetensors import SafetensorError
    try:
        if base_model is not None:
            base_model.load_adapter(str(folder.path), adapter_name=name, is_trainable=False)
            return base_model.to(device)
        base = _load_checkpoint(folder, dtype, device, own_head=False)
        return PeftModel.from_pretrained(base, str(folder.path), adapter_name=name, is_trainable=False).to(device)
    except (OSError, ValueError, RuntimeError, KeyError, SafetensorError) as error:
        message = " ".join(str(error).split())[:400]
        raise ConfigError(f"{folder.path}: the adapter does not load on {folder.base}: {message}") from error


def _tokenizer_digest(folder: Path) -> str:
    """Return what two folders with the same tokenizer have in common."""
    digest = hashlib.sha256((folder / "config.json").read_bytes() if (folder / "config.json").is_file() else b"")
    patterns = (*_VOCABULARIES, "*token*.json", "*.jinja")
    for path in sorted({path for pattern in patterns for path in folder.glob(pattern)}):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def load_tokenizer(source: Path) -> Any:
    """Return a folder's tokenizer; raise ConfigError if it cannot be read, has no words or is slow."""
    with require_package("transformers"):
        from transformers import AutoTokenizer
    _vocabulary_folder(source, source)
    try:
        tokenizer = AutoTokenizer.from_pretrained(str(source), trust_remote_code=False, local_files_only=True)
    except (OSError, ValueError, KeyError, ImportError) as error:
        message = " ".join(str(error).split())[:300]
        raise ConfigError(f"{source}: its tokenizer cannot be read: {message}; save it beside the weights") from error
    if len(tokenizer) - len(tokenizer.all_special_tokens) < _FEWEST_WORDS:
        raise ConfigError(f"{source}: its tokenizer has no words; save the one that the model was trained with")
    if not tokenizer.is_fast:
        raise ConfigError(f"{source}: its tokenizer is a slow one; save a fast one (tokenizer.json) beside the weights")
    return tokenizer


def _padded_tokenizer(source: Path, pad_token: str | None) -> Any:
    """Return a folder's tokenizer; raise ConfigError if it has no padding token."""
    tokenizer = load_tokenizer(source)
    if pad_token is not None:
        if pad_token not in tokenizer.get_vocab():
            raise ConfigError(f"pad_token={pad_token!r}: the tokenizer of {source} does not know it")
        tokenizer.pad_token = pad_token
    if tokenizer.pad_token_id is None:
        raise ConfigError(f"{source}: its tokenizer has no padding token; name one, such as pad_token='</s>'")
    return tokenizer


def _token_limit(folder: CheckedFolder, config: Any, tokenizer: PreTrainedTokenizerBase, limit: int | None) -> int:
    """Return the most tokens of a text, as asked for or trained; raise ConfigError beyond the model's positions."""
    positions = int(getattr(config, "max_position_embeddings", None) or 1 << 20)
    if config.model_type in PADDED_POSITIONS:
        positions -= 2
    if limit is not None and limit > positions:
        raise ConfigError(f"max_length={limit}: {folder.path} has places for {positions} tokens at most")
    return min(positions, limit or folder.description.max_length or int(tokenizer.model_max_length))


def _check_finite(model: torch.nn.Module, path: Path) -> None:
    for name, weight in model.named_parameters():
        if not bool(weight.isfinite().all()):
            raise ConfigError(f"{path}: the weight {name} has values that are not finite (nan or inf); train it again")


def _device(name: str) -> Any:
    """Return the device of a name; raise ``ConfigError`` for no name of one, or one that is not there."""
    import torch

    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ConfigError(f"device={name!r}: expected 'auto', 'cpu', 'cuda' or 'cuda:1'") from error
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ConfigError(f"device={name!r}: torch sees no such device here; use device='auto'")
    return device


def _need_safetensors(folder: Path, stem: str) -> None:
    """Raise ConfigError where a folder has no such weights, with the newest checkpoint of a training's folder."""
    if any(folder.glob(f"{stem}*.safetensors")):
        return
    checkpoints = checkpoints_of(folder)
    if checkpoints:
        raise ConfigError(
            f"{folder}: it holds checkpoints of a training and no model; name one of them: {checkpoints[-1]}"
        )
    raise ConfigError(
        f"{folder}: it has no {stem}.safetensors; pickled weights (.bin, .pt) are not read: save it again with "
        "save_pretrained, which writes safetensors"
    )


def checkpoints_of(folder: Path) -> list[Path]:
    """Return the checkpoints with weights that a trainer left in its folder, the newest last."""
    paths = [path for subfolder in _CHECKPOINT_FOLDERS for path in (folder / subfolder).glob("checkpoint-*")]
    steps = {path: path.name.rpartition("-")[2] for path in paths if any(path.glob("*.safetensors"))}
    return sorted((path for path in steps if steps[path].isdecimal()), key=lambda path: int(steps[path]))


def _json(path: Path) -> dict[str, Any]:
    """Return a file's JSON object, empty for other JSON; raise ``ConfigError`` where there is no JSON."""
    try:
        data = json.loads(path.read_bytes())
    except OSError as error:
        raise ConfigError(
            f"{path}: cannot be read ({os.strerror(error.errno or 0)}); is it a model's folder?"
        ) from None
    except ValueError as error:
        raise ConfigError(f"{path}: not JSON: {error}") from error
    return data if isinstance(data, dict) else {}


@contextlib.contextmanager
def require_package(module: str) -> Iterator[None]:
    """Raise ``ModuleNotFoundError`` with the packages to install where one of scoring's is absent."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(_NEEDS.format(error.name or module), name=error.name) from error
