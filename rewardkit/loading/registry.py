"""How rewards are found: by reference, by entry point, by name in a file."""

from __future__ import annotations

import ast
import difflib
import importlib.util
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

from rewardkit.declare.compose import Composable, Composite
from rewardkit.declare.decorator import Reward, reward
from rewardkit.declare.text_reward import TextReward
from rewardkit.errors import RewardDefinitionError, RewardLoadError
from rewardkit.run_code import Package, RunReward, Sources
from rewardkit.shown.text import shorten
from rewardkit.transport import import_failure, load_file, locate

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

RewardLike: TypeAlias = Composable | Callable[..., Any] | str
"""A reward, a composition, a plain function, or a reference to one."""

ENTRY_POINTS = "rewardkit.rewards"  # The entry-point group under which packages offer rewards by name

_CALL = re.compile(r"(?:(?P<place>[^()]+):)?(?P<name>[^\W\d]\w*)(?P<call>\(.*\))", re.DOTALL)


@dataclass(frozen=True, slots=True)
class RewardSet:
    """Rewards by name, and what their workers need.

    Attributes:
        rewards: Rewards and compositions by name.
        overlay: Folders that come first in the workers' ``sys.path``.
        env: Environment variables added for the workers.
        packages: Of what the overlay is made, for other machines to make their own.
        running: Rewards that a run has already, as its workers load them, by their leaves; these stay as they are.
        weights: Each reward's weight in the totals unless a caller sets it; ``None`` for 1, and 0 for parts of others.
        servers: Addresses of the servers that score; none for rewards that are scored from here.
    """

    rewards: dict[str, Composable]
    overlay: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    packages: Sequence[Package] = ()
    running: Mapping[Composable, RunReward] = field(default_factory=dict)
    weights: Mapping[str, float] | None = None
    servers: Sequence[str] = ()

    def resolve(self) -> RewardSet:
        """Return the set itself, so that a set can be given where rewards are."""
        return self

    def at_start(self, sources: Sources, *, every: bool = False) -> RewardSet:
        """Return the set at the start of a run, whose files are what ``sources`` has: itself where nothing changed.

        Rewards that a run has already stay, unless ``every`` is to be looked at, as in another process.
        """
        stay = {} if every else self.running
        leaves = {leaf: leaf for reward in self.rewards.values() for leaf in reward.leaves}
        leaves = {leaf: leaf if leaf in stay else leaf.at_start(sources, self.packages) for leaf in leaves}
        if all(leaf is before for before, leaf in leaves.items()):
            return self
        rewards = {name: reward.map_leaves(leaves.__getitem__) for name, reward in self.rewards.items()}
        running: dict[Composable, RunReward] = {
            leaves[leaf]: run for leaf, run in self.running.items() if leaf in leaves
        }
        return replace(self, rewards=rewards, running=running)


@runtime_checkable
class HasRewards(Protocol):
    """What names its rewards itself, as :class:`~rewardkit.loading.config.RewardFunctionsConfig` does."""

    def resolve(self) -> RewardSet:
        """Return the rewards and what their workers need."""


def resolve(reference: RewardLike) -> Composable:
    """Return one reward.

    Args:
        reference: A reward, a composition or a function; ``"file.py:name"``, ``"module:name"``, or the name of an
            entry point. Without ``:name`` a file must hold exactly one reward.

    Raises:
        RewardDefinitionError: ``reference`` is something else.
        RewardLoadError: The reference leads nowhere, or to several rewards.
    """
    return _resolved(reference, "")


def _resolved(reference: object, where: str) -> Composable:
    """Return one reward; errors call the place of a wrong one ``where``, such as ``"rewards[0]"``."""
    if isinstance(reference, Composable):
        return reference
    if isinstance(reference, str):
        rewards = resolve_all(reference)
        if len(rewards) != 1:
            raise RewardLoadError(
                f"{reference!r} holds {len(rewards)} rewards; name one: {reference}:{rewards[0].name}"
            )
        return rewards[0]
    if not callable(reference):
        raise RewardDefinitionError(
            f"{where}{': ' if where else ''}{shorten(reference)} is not a reward; expected a reward, a function, a "
            "composition, or a reference such as 'my_rewards.py:correct'"
        )
    marked: Composable = reward(reference)
    return marked


def resolve_all(reference: str) -> list[Composable]:
    """Return the rewards that a reference names: one, or without ``:name`` all of a file's or module's.

    Raises RewardLoadError, with near names, where the reference leads nowhere.
    """
    _refuse_settings(reference)
    if reference.startswith(("http://", "https://")):
        raise RewardLoadError(
            f"{reference}: the address of a server; this needs the rewards themselves, as file.py:name"
        )
    source, _, name = reference.rpartition(":") if ":" in reference else (reference, "", "")
    if not source:
        raise RewardLoadError(f"{reference!r}: expected file.py, file.py:name, module:name or a built-in's name")
    if not name and "/" not in source and not source.endswith(".py"):
        offered = entry_points().get(source)
        if offered is not None:
            return [_checked(offered.load(), reference)]
    if (source.startswith(".") or "/" in source) and Path(source).is_dir():
        raise RewardLoadError(f"{reference!r} is a folder; name a file in it, such as {Path(source, 'my_rewards.py')}")
    module = load_file(Path(source)) if source.endswith(".py") or "/" in source else _import(source, reference)
    if name:
        return [_member(module, name, reference)]
    rewards = rewards_in(module) or [point.load() for point in entry_points().values() if _is_within(point, module)]
    if not rewards:
        raise RewardLoadError(f"{reference}: no reward in it; {_way_to_reward(module, reference)}")
    return rewards


def _is_within(offered: EntryPoint, module: ModuleType) -> bool:
    """Return whether a package itself is named, whose modules hold what it offers, such as ``builtin_rewards``."""
    return offered.module.startswith(f"{module.__name__}.")


def _way_to_reward(module: ModuleType, reference: str) -> str:
    """Return how a module's functions become rewards: as they are, marked, or moved in from another trainer's form."""
    problem = None
    for name, function in _functions(module).items():
        if function.__module__ != module.__name__:
            continue
        try:
            reward(function)
        except RewardDefinitionError as error:
            problem = problem or str(error)
        else:
            return f"mark a function with @reward, or name one, which then needs no mark: {reference}:{name}"
    names = _names(module)
    imported = next((name for name in sorted(_imported_names(module)) if isinstance(names.get(name), Composable)), None)
    if imported is not None:
        return f"those that it imports are scored by their names: {reference}:{imported}"
    return "mark a function with @reward" + (f"; {problem}" if problem else "")


def _refuse_settings(reference: str) -> None:
    """Raise where a reference calls a reward, as ``length_between(2, 5)``: only Python can."""
    call = _CALL.fullmatch(reference)
    if call is None:
        return
    name = call["name"]
    offered = entry_points().get(name) if call["place"] is None else None
    module = call["place"] or (offered.module if offered is not None else "my_module")
    module = Path(module).stem if module.endswith(".py") else module
    raise RewardLoadError(
        f"{reference!r}: a reference takes no settings; give them in a Python file, such as my_rewards.py:\n"
        f"    from {module} import {name}\n"
        f"    mine = {name}{call['call']}\n"
        "and refer to my_rewards.py:mine"
    )


def entry_points() -> dict[str, EntryPoint]:
    """Return the rewards that installed packages offer, by name."""
    import importlib.metadata  # slow to import, and few references need it

    return {point.name: point for point in importlib.metadata.entry_points(group=ENTRY_POINTS)}


def rewards_in(module: ModuleType) -> list[Composable]:
    """Return the rewards and compositions that a module defines, in the order of their definition.

    What the module only imports is left out, and so is a reward whose every name begins with an underscore, as a help
    to the others of a file has it. A reward that another one calls itself, its
    :attr:`~rewardkit.declare.decorator.Reward.inner`, is left out too, unless a composition has it as a part.
    """
    imported = _imported_names(module)
    public = (value for name, value in _names(module).items() if not name.startswith("_") and name not in imported)
    own = list(dict.fromkeys(value for value in public if _is_own(value, module)))
    parts = {leaf for reward in own if isinstance(reward, Composite) for leaf in reward.leaves}
    inner_rewards = {inner for reward in own for leaf in reward.leaves for inner in leaf.inner}
    return [reward for reward in own if reward not in inner_rewards or reward in parts]


def _imported_names(module: ModuleType) -> set[str]:
    """Return the names that a module's text imports and does not bind otherwise; none where there is no text.

    A composition, a reward with settings and one given as text do not say where they were made.
    """
    try:
        tree = ast.parse(Path(module.__file__ or "").read_bytes())
    except (AttributeError, OSError, SyntaxError, ValueError):
        return set()
    imported: set[str] = set()
    bound: set[str] = set()
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.ImportFrom | ast.Import):
            imported |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
            if any(alias.name == "*" for alias in node.names):
                imported |= _names_of_star(module, node)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            bound.add(node.name)
            continue  # what is bound inside is no name of the module
        waiting += ast.iter_child_nodes(node)
    return imported - bound


def _names_of_star(module: ModuleType, node: ast.AST) -> set[str]:
    """Return the names that ``from x import *`` took from a module, where they still have its values."""
    relative = "." * getattr(node, "level", 0) + (getattr(node, "module", "") or "")
    try:
        source = sys.modules[importlib.util.resolve_name(relative, module.__package__)]
    except (ImportError, KeyError):
        return set()
    values = _names(source)
    return {name for name, value in _names(module).items() if name in values and values[name] is value}


def _is_own(value: object, module: ModuleType) -> bool:
    """Whether a value is a reward that counts as the module's: not one imported from elsewhere."""
    if not isinstance(value, Reward):
        return isinstance(value, Composite)
    function = value.spec.function
    return isinstance(value, TextReward) or function.__module__ == module.__name__ or locate(value, function) is None


def _names(module: ModuleType) -> dict[str, Any]:
    """Return a module's names with their values, as they are now: another thread may add some, as imports do."""
    return vars(module).copy()


def _functions(module: ModuleType) -> dict[str, FunctionType]:
    """Return the functions that a module offers, by name."""
    names = _names(module).items()
    return {name: value for name, value in names if isinstance(value, FunctionType) and not name.startswith("_")}


def _import(name: str, reference: str) -> ModuleType:
    """Import a module by its name; RewardLoadError, with near names, where it is missing or does not import."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name is not None and (name == missing.name or name.startswith(missing.name + ".")):
            beside = (file.stem for file in Path().glob("*.py"))
            suggestions = difflib.get_close_matches(name, [*entry_points(), *beside], n=2)
            hint = f"; did you mean {' or '.join(map(repr, suggestions))}?" if suggestions else ""
            raise RewardLoadError(f"{reference!r}: no module or built-in reward named {name!r}{hint}") from None
        raise RewardLoadError(f"{reference!r} does not import: {missing}") from missing
    except Exception as fault:
        raise import_failure(repr(reference), fault) from fault


def _member(module: ModuleType, name: str, reference: str) -> Composable:
    """Return a module's reward by its name, which may have dots; RewardLoadError, with near names, without one."""
    value: Any = module
    for part in name.split("."):
        if not hasattr(value, part):
            names = [name for name, member in _names(module).items() if _is_own(member, module)]
            suggestions = " or ".join(map(repr, difflib.get_close_matches(part, [*names, *_functions(module)], n=2)))
            hint = f"did you mean {suggestions}?" if suggestions else f"it has {', '.join(names) or 'no reward'}"
            raise RewardLoadError(f"{reference!r}: no {part!r} in it; {hint}")
        value = getattr(value, part)
    return _checked(value, reference)


def _checked(value: object, reference: str) -> Composable:
    """Return a value as a reward; RewardLoadError for what is neither a reward nor a function."""
    if isinstance(value, Composable) or callable(value):
        return _resolved(value, "")
    raise RewardLoadError(f"{reference!r} is a {type(value).__name__}, not a reward or a function")


def resolve_set(rewards: object) -> RewardSet:
    """Return the rewards that a caller named, under names of their own.

    Args:
        rewards: A sequence of reward-likes, a mapping of names to them, one composition, or what :class:`HasRewards`.

    Raises:
        RewardDefinitionError: The list is empty, one is not a reward, or two have one name.
        RewardLoadError: A reference leads nowhere.
    """
    if isinstance(rewards, HasRewards):
        return rewards.resolve()
    if isinstance(rewards, Mapping):
        return RewardSet(
            {name: as_named(_resolved(like, f"reward {name!r}"), name) for name, like in _not_empty(rewards).items()}
        )
    if isinstance(rewards, Composable | str) or callable(rewards):
        rewards = [rewards]
    named: dict[str, Composable] = {}
    for index, like in enumerate(_not_empty(rewards)):
        for resolved in resolve_all(like) if isinstance(like, str) else [_resolved(like, f"rewards[{index}]")]:
            if resolved.name in named:
                renamed = ".named(...)" if isinstance(resolved, Composite) else ".with_options(name=...)"
                raise RewardDefinitionError(
                    f"two rewards are named {resolved.name!r}; give one another name: @reward(name=...) where it is "
                    f"defined, {renamed} where it is not yours"
                )
            named[resolved.name] = resolved
    return RewardSet(named)


def as_named(reward: Composable, name: str) -> Composable:
    """Return a reward under a name."""
    if reward.name == name:
        return reward
    if isinstance(reward, Composite):
        return reward.named(name)
    assert isinstance(reward, Reward)
    return reward.with_options(name=name)


def _not_empty(rewards: object) -> Any:
    """Return rewards that are a sequence or a mapping with something in it; RewardDefinitionError for anything else."""
    if not isinstance(rewards, Sequence | Mapping):
        raise RewardDefinitionError(f"expected a list of rewards, got {shorten(rewards)}")
    if not rewards:
        raise RewardDefinitionError("no rewards given; a runtime needs at least one")
    return rewards
