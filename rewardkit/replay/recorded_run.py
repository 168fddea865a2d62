"""A recorded run, as its users open it: the record, and what can be done with it."""

from __future__ import annotations

import importlib
import itertools
import os
from typing import TYPE_CHECKING, Any

from rewardkit.errors import RecordError
from rewardkit.record.changes import RewardChange, changes_of
from rewardkit.record.export import export_columns, export_rows, lists_by_column
from rewardkit.record.overview import overviews
from rewardkit.record.place import RecordPlace
from rewardkit.record.reader import RunReader
from rewardkit.shown.html import number_cell, table_html
from rewardkit.shown.sparkline import sparkline

if TYPE_CHECKING:
    from rewardkit.replay.update import RunConfig, Update

_GRAPHS = 9  # Graphs that a notebook shows: the total reward, and the first rewards


class Run(RunReader):
    """A recorded run, read lazily: ``Run.open("runs/one")``. Reading does not disturb a process that is writing.

    A run belongs to the thread that opened it.
    """

    @classmethod
    def open(cls, run: str | os.PathLike[str] | RecordPlace) -> Run:
        """Return the run of a folder, a file, or an address in a database.

        Raises:
            RecordError: It is missing, empty, not a record, or of a newer release.
        """
        return cls(run)

    @property
    def changes(self) -> list[RewardChange]:
        """The changes of rewards that the training was asked for, oldest first."""
        with self._errors(), self._decoding():
            return changes_of(self._connection)

    def get_config(self) -> RunConfig:
        """Return the running training's rewards and their weights, which can be changed.

        Raises:
            UpdateRefusedError: The training has ended, or takes no changes.
        """
        from rewardkit.replay.update import config_of

        return config_of(self)

    def update_config(
        self, config: RunConfig, *, shadow: bool = False, wait_s: float = 60.0, workers: int | None = None
    ) -> list[Update]:
        """Change the rewards of the running training to those of a configuration.

        Each new reward is imported, and tried on the last recorded completions; where a check fails, nothing is
        asked. The training takes each change at the beginning of a step, all processes at the same one.

        Args:
            config: What :meth:`get_config` returned, with other functions or weights.
            shadow: Whether changed rewards are first scored beside the old ones, with the weight 0.
            wait_s: Seconds to wait for the training's answer.
            workers: Worker processes of the trial; by default the cores at hand, of more than 4 the half, 4 to 16.

        Returns:
            The changes with the answers. One whose state is ``"asked"`` was not answered in that time, and stands.

        Raises:
            UpdateRefusedError: The training has ended, or refuses a change; it goes on as before.
            RewardError: A reward does not pass its check.
        """
        from rewardkit.replay.update import config_of, update, wishes

        return update(self, wishes(config, config_of(self), shadow=shadow), wait_s=wait_s, workers=workers)

    def to_pandas(self) -> Any:
        """Return a ``pandas.DataFrame`` of all completions, one a row, with the columns of ``rewardkit export``.

        Raises:
            RecordError: pandas is not installed.
        """
        pandas = _library("pandas")
        kinds, values = self._columns()
        return pandas.DataFrame(
            {name: pandas.Series(column, dtype=_pandas_type(kinds[name], column)) for name, column in values.items()}
        )

    def to_polars(self) -> Any:
        """Return a ``polars.DataFrame`` of all completions, one a row, with the columns of ``rewardkit export``.

        Raises:
            RecordError: polars is not installed.
        """
        polars = _library("polars")
        types = {"int": polars.Int64, "float": polars.Float64, "bool": polars.Boolean, "text": polars.String}
        kinds, values = self._columns()
        return polars.DataFrame(values, schema={name: types[kinds[name]] for name in values})

    def _columns(self) -> tuple[dict[str, str], dict[str, list[Any]]]:
        """Return the kinds and the values of all columns, by name."""
        last = self.last_id
        columns = export_columns(self)
        kinds = {column.name: column.kind for column in columns}
        return kinds, lists_by_column(columns, export_rows(self, columns, last))

    def _repr_html_(self) -> str:
        """Return the run's graphs and its rewards as a table, for notebooks."""
        steps = self.steps()
        span = f"{len(steps):,} steps ({steps[0]} to {steps[-1]})" if steps else "no steps"
        state = self.end.text
        title = f"{self.name}: {self.count():,} completions of {self.prompt_count:,} prompts, {span}, {state}"
        rows = [
            [
                reward.reward, sparkline(reward.means), *map(number_cell, (reward.first, reward.last, reward.std)),
                ", ".join(f"{cause} {number:,}" for cause, number in reward.failed.items()) or "-",
                f"{reward.skipped:,}", "-" if reward.flat_share is None else f"{reward.flat_share:.0%}",
            ]
            for reward in overviews(self.summaries())
        ]  # fmt: skip
        head = ["reward", "mean", "first", "last", "std", "failed", "skipped", "zero variance"]
        return f"<div>{self._graphs() if steps else ''}{table_html(title, head, rows)}</div>"

    def _graphs(self) -> str:
        """Return the charts of the total reward and of the first rewards, beside each other where there is room."""
        from rewardkit.replay.charts import curves_of, reward_charts, version_markers
        from rewardkit.shown.svg import STYLE, chart_svg

        charts = itertools.islice(reward_charts(curves_of(self), self.rewards, version_markers(self)), _GRAPHS)
        drawn = "".join(f"<div>{chart_svg(chart)}</div>" for chart in charts)
        grid = "display:grid;grid-template-columns:repeat(auto-fill,minmax(280px,1fr));gap:12px"
        return f'<style>{STYLE}</style><div style="{grid}">{drawn}</div>'


def _library(name: str) -> Any:
    """Import a library that is heavy and needed for nothing else; RecordError where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError as missing:
        raise RecordError(f"to_{name} needs the library {name}: pip install {name}") from missing


def _pandas_type(kind: str, values: list[Any]) -> str | None:
    """Return the dtype of a column; a nullable one for whole numbers and truth values of which some are missing."""
    if kind == "float":
        return "float64"
    if kind == "text":
        return "object"
    missing = any(value is None for value in values)
    return {"int": "Int64" if missing else "int64", "bool": "boolean" if missing else "bool"}[kind]
