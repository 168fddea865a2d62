"""Reward functions as a configuration: in Python or YAML, with the packages and environment of their workers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from rewardkit.declare.options import RewardOptions
from rewardkit.declare.text_reward import reward_from_source
from rewardkit.errors import ConfigError
from rewardkit.loading.registry import RewardLike, RewardSet, resolve_set
from rewardkit.run_code import Package
from rewardkit.shown.text import meant

_SEALED = ("REWARDKIT_", "LD_", "PYTHONPATH", "PYTHONHOME")
"""What names of variables begin with that choose a worker's jail, or the code that it is made of."""


@dataclass(frozen=True, slots=True)
class RewardFunctionsRuntimeConfig:
    """What the workers get that the caller does not have.

    Attributes:
        packages: Requirements as pip takes them, such as ``"sqlglot>=25"`` or ``"./mine-1.0-py3-none-any.whl"``;
            installed once into a cached folder that only the workers see.
        env: Environment variables added for the workers; not those that choose their jail or the code it is made of,
            whose names begin with ``REWARDKIT_``, ``LD_``, ``PYTHONPATH`` or ``PYTHONHOME``.
    """

    packages: tuple[str, ...] | list[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check both fields and raise :class:`ConfigError` naming the one that is wrong."""
        if isinstance(self.packages, str) or not all(
            isinstance(package, str) and package.strip() for package in self.packages
        ):
            raise ConfigError(f"runtime.packages: expected a list of requirements, got {self.packages!r}")
        for package in self.packages:
            if package.strip().startswith("-") or " --" in package:
                raise ConfigError(
                    f"runtime.packages: {package!r} has an option of pip; give requirements, paths and URLs alone. The "
                    "digest of a local file counts by itself"
                )
        if not isinstance(self.env, Mapping):
            raise ConfigError(f"runtime.env: expected a mapping, got {self.env!r}")
        for name, value in self.env.items():
            are_texts = isinstance(name, str) and isinstance(value, str)
            if not are_texts or not name or "=" in name or "\0" in name + value:
                raise ConfigError(f"runtime.env: expected names and values that are strings, got {name!r}: {value!r}")
            if name.startswith(_SEALED):
                raise ConfigError(
                    f"runtime.env: {name!r} is not for a configuration, because it could open the jail of rewards; "
                    "set it in the environment that starts the run"
                )


@dataclass(frozen=True, slots=True)
class RewardFunctionsConfig:
    """Rewards by name, and what their workers need. Give it to a :class:`~rewardkit.Runtime`.

    Attributes:
        functions: Reward-likes by name: functions, rewards, compositions, references, or a reward given as
            text: ``{"source": "def ...", "name": ..., "options": {...}}``, the last two if they are needed.
        runtime: Packages and environment of the workers.
    """

    functions: Mapping[str, RewardLike | Mapping[str, Any]]
    runtime: RewardFunctionsRuntimeConfig = field(default_factory=RewardFunctionsRuntimeConfig)

    def __post_init__(self) -> None:
        """Raise :class:`ConfigError` unless ``functions`` is a mapping with names."""
        if not isinstance(self.functions, Mapping) or not self.functions:
            raise ConfigError(f"functions: expected a mapping of names to rewards, got {self.functions!r}")
        for name, like in self.functions.items():
            if isinstance(like, Mapping):
                _check_text(f"functions.{name}", like)

    def resolve(self) -> RewardSet:
        """Return the rewards, installing the packages if they are not yet.

        Raises:
            RewardDefinitionError: A reward given as text is refused.
            RewardLoadError: A reference leads nowhere.
            PackageInstallError: pip could not install the packages.
        """
        rewards = resolve_set({name: _reward_like(name, like) for name, like in self.functions.items()})
        overlay: list[str] = []
        packages: list[Package] = []
        if self.runtime.packages:
            from rewardkit.loading.packages import located, overlay_for  # it brings subprocess and tempfile along

            packages = located(self.runtime.packages)
            overlay = [str(overlay_for(packages))]
        return RewardSet(rewards.rewards, overlay, dict(self.runtime.env), packages)

    @classmethod
    def from_dict(
        cls, data: object, *, where: str = "reward functions", base: Path | None = None
    ) -> RewardFunctionsConfig:
        """Return a configuration from plain data.

        Args:
            data: ``{"functions": {...}, "runtime": {"packages": [...], "env": {...}}}``.
            where: What to call the data in errors.
            base: Folder that relative ``file.py`` references, and relative paths of packages, start from.

        Raises:
            ConfigError: A field is unknown or of the wrong type.
        """
        if isinstance(data, Mapping) and "weights" in data:
            raise ConfigError(
                f"{where}: unknown field 'weights'; what adds the scores up has them: rewardkit score and rewardkit "
                "serve take --weights, a training's file has reward_weights, and Runtime and RewardAdapter weights="
            )
        data = _only(data, {"functions", "runtime"}, where)
        runtime = _only(data.get("runtime") or {}, _names(RewardFunctionsRuntimeConfig), f"{where}: runtime")
        if "functions" not in data:
            raise ConfigError(f"{where}: field 'functions' is missing")
        functions = data["functions"]
        if isinstance(functions, Mapping) and base is not None:
            functions = {name: _from(base, like) for name, like in functions.items()}
        packages = runtime.get("packages")
        if isinstance(packages, list) and base is not None:
            from rewardkit.loading.packages import absolute

            runtime["packages"] = [absolute(text, base) if isinstance(text, str) else text for text in packages]
        try:
            return cls(functions, RewardFunctionsRuntimeConfig(**runtime))
        except ConfigError as wrong:
            raise ConfigError(f"{where}: {wrong}") from None

    @classmethod
    def from_yaml(cls, path: str | Path) -> RewardFunctionsConfig:
        """Return the configuration in a YAML file; relative files and packages in it start from the file's folder.

        Raises:
            ConfigError: There is no such file, it is not YAML, or a field is wrong.
        """
        path = Path(path)
        return cls.from_dict(read_yaml(path), where=str(path), base=path.resolve().parent)


def read_yaml(path: Path) -> Any:
    """Return the data in a YAML file.

    Raises:
        ConfigError: There is no such file, it is not YAML, or a mapping has a key twice; names the line.
    """
    import yaml

    try:
        text = path.read_text(encoding="utf-8")
        twice = key_twice(yaml.compose(text, Loader=yaml.SafeLoader))
        if twice is not None:
            line = twice.start_mark.line + 1
            raise ConfigError(f"{path}:{line}: {twice.value!r} is there twice in one mapping; take one away")
        return yaml.safe_load(text)
    except OSError as reason:
        raise ConfigError(f"{path}: {reason.strerror or reason}") from reason
    except (yaml.YAMLError, UnicodeDecodeError) as reason:
        message = " ".join(str(reason).split()).replace('in "<unicode string>", ', "in ")
        raise ConfigError(f"{path}: not YAML: {message}") from reason


def key_twice(root: Any) -> Any:
    """Return the node of the first key that a mapping has twice: YAML's reader would drop the former.

    ``root`` is composed and not yet constructed, which would put merged keys beside a mapping's own.
    """
    nodes, seen_ids = [root], set()
    while nodes:
        node = nodes.pop()
        if node is None or node.id == "scalar" or id(node) in seen_ids:
            continue
        seen_ids.add(id(node))
        if node.id == "sequence":
            nodes.extend(reversed(node.value))
            continue
        keys: set[str] = set()
        for key, _ in node.value:
            if key.id == "scalar" and key.value in keys:
                return key
            keys.add(str(key.value))
        nodes.extend(value for _, value in reversed(node.value))
    return None


def _reward_like(name: str, like: RewardLike | Mapping[str, Any]) -> RewardLike:
    """Return the reward that is given as text; anything else as it is."""
    if not isinstance(like, Mapping):
        return like
    return reward_from_source(like["source"], like.get("name") or name, **(like.get("options") or {}))


def _check_text(where: str, entry: Mapping[str, Any]) -> None:
    """Refuse a reward given as text whose fields are wrong."""
    entries = _only(entry, {"source", "name", "options"}, where)
    if not isinstance(entries.get("source"), str):
        raise ConfigError(f"{where}.source: expected the text of a function, got {entries.get('source')!r}")
    if not isinstance(entries.get("name"), str | None):
        raise ConfigError(f"{where}.name: expected the name of a function, got {entries['name']!r}")
    _only(entries.get("options") or {}, _names(RewardOptions) - {"name"}, f"{where}.options")


def _from(base: Path, like: object) -> Any:
    """Return a reference to a relative file as seen from a folder; anything else as it is."""
    if isinstance(like, str):
        file, colon, name = like.partition(":")
        if file.endswith(".py") and not Path(file).is_absolute():
            return f"{base / file}{colon}{name}"
    return like


def _names(kind: type) -> set[str]:
    return {field.name for field in fields(kind)}


def _only(data: object, keys: set[str], where: str) -> dict[str, Any]:
    """Return data as a dict; ConfigError where it is no mapping, or has another field than these."""
    if not isinstance(data, Mapping):
        raise ConfigError(f"{where}: expected a mapping, got {data!r}")
    for name in data:
        if name not in keys:
            fields_there = f"the fields are {', '.join(sorted(keys))}"
            raise ConfigError(f"{where}: unknown field {name!r}; {fields_there}{meant(str(name), keys)}")
    return dict(data)
