"""The ``trl`` mapping of a configuration, checked against the configuration class of the TRL that is installed.

So a setting of a newer TRL is usable as soon as that TRL is installed, and one that it lacks is refused by name before
the model loads.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError

from rewardkit import ConfigError
from trainer_adapter.models import needing_extra

if TYPE_CHECKING:
    from transformers import TrainingArguments

_ConfigT = TypeVar("_ConfigT", bound="TrainingArguments")


def check_settings(class_name: str, settings: Mapping[str, object]) -> dict[str, Any]:
    """Return the settings with numbers read from text, as YAML writes ``1e-4``. Without settings TRL is not loaded.

    Raise ``ConfigError`` for a setting that the installed class lacks, or a value of another type.
    """
    if not settings:
        return {}
    with needing_extra():
        import trl

        config_class = getattr(trl, class_name)
    owner = f"{class_name} of trl {trl.__version__}"
    fields = [field.name for field in dataclasses.fields(config_class) if field.init]
    unknown = next((name for name in settings if name not in fields), None)
    if unknown is not None:
        near = difflib.get_close_matches(unknown, fields, n=3)
        hint = f"did you mean {' or '.join(map(repr, near))}?" if near else "no name is near it"
        raise ConfigError(f"trl.{unknown}: {owner} has no such setting; {hint}")
    types = get_type_hints(config_class)
    checked = {}
    for name, value in settings.items():
        adapter: TypeAdapter[object] = TypeAdapter(types[name], config=ConfigDict(arbitrary_types_allowed=True))
        try:
            checked[name] = adapter.validate_python(value, strict=not isinstance(value, str))
        except ValidationError:
            expected = getattr(types[name], "__name__", None) if isinstance(types[name], type) else str(types[name])
            raise ConfigError(f"trl.{name}={value!r}: {owner} expects {expected}") from None
    return checked


def make_config(config_class: type[_ConfigT], arguments: Mapping[str, Any]) -> _ConfigT:
    """Return TRL's configuration; arguments that TRL refuses are a ``ConfigError``."""
    try:
        return config_class(**arguments)
    except (ValueError, TypeError, NotImplementedError) as error:
        reason = " ".join(str(error).split())
        raise ConfigError(f"TRL's {config_class.__name__} refuses its settings: {reason}") from error
