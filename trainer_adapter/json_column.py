"""Columns that Arrow would change, of objects or of values of several types: ``datasets`` holds them as JSON text.

Importing this module loads ``datasets``.
"""

from __future__ import annotations

import functools
import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow
from datasets import Dataset, DatasetInfo, Features  # type: ignore[import-untyped]
from datasets.features.features import register_feature  # type: ignore[import-untyped]

from rewardkit.rows import JSON_FEATURE, decode_row, encode


@dataclass
class JsonColumn:
    """A feature of ``datasets``: reading a row gives the value that its JSON text stands for."""

    _type: str = field(default=JSON_FEATURE, init=False, repr=False)

    def __call__(self) -> pyarrow.DataType:
        """Return the column's type in Arrow."""
        return pyarrow.string()

    def encode_example(self, value: object) -> str:
        """Return a value's text."""
        return to_json(value)

    def decode_example(self, text: str, token_per_repo_id: object = None) -> object:
        """Return the value of a text."""
        return decode_row(text)

    def cast_storage(self, storage: Any) -> Any:
        """Return an array of JSON texts as it is, and any other array with each value as JSON text."""
        if storage.type == self():
            return storage
        return pyarrow.array([None if value is None else to_json(value) for value in storage.to_pylist()], self())


class RowsDataset(Dataset):  # type: ignore[misc]
    """A data set whose lists have the values of its columns of JSON, where ``datasets`` hands on Arrow's text."""

    @classmethod
    def of(cls, columns: Mapping[str, list[Any]], texts: Mapping[str, list[str | None]]) -> RowsDataset:
        """Return a data set; ``texts`` are the columns that are held as JSON. Arrow raises for what it cannot hold."""
        native = Dataset.from_dict({name: values for name, values in columns.items() if name not in texts})
        types = {**native.features, **{name: JsonColumn() for name in texts}}
        features = Features({name: types[name] for name in columns})
        arrays = {name: pyarrow.array(texts[name], pyarrow.string()) for name in texts}
        arrays |= {name: native.data.table.column(name) for name in native.column_names}
        table = pyarrow.table({name: arrays[name] for name in columns})
        table = table.replace_schema_metadata(features.arrow_schema.metadata)  # else the columns' types are guessed
        return cls(table, info=DatasetInfo(features=features))

    def to_list(self) -> list[dict[str, Any]]:
        """Return the rows."""
        rows: list[dict[str, Any]] = super().to_list()
        for name in self._json_columns():
            for row in rows:
                row[name] = _value_of(row[name])
        return rows

    def to_dict(self, batch_size: int | None = None, batched: bool = False) -> Any:
        """Return the columns, or batches of them."""
        batches = super().to_dict(batch_size, batched=True)
        decoded = (batch | {name: [*map(_value_of, batch[name])] for name in self._json_columns()} for batch in batches)
        return decoded if batched else {name: list(self[name]) for name in self.column_names}

    def _json_columns(self) -> list[str]:
        return [name for name, feature in self.features.items() if isinstance(feature, JsonColumn)]


def to_json(value: object) -> str:
    """Return a value's JSON text; raise ``TypeError`` for a value not of JSON's kinds, and ``ValueError`` for NaN."""
    return encode(value, functools.partial(json.dumps, ensure_ascii=False, allow_nan=False))  # nan would be refused


def _value_of(text: str | None) -> object:
    return None if text is None else decode_row(text)


with warnings.catch_warnings():
    warnings.simplefilter("ignore", UserWarning)  # that it is experimental
    register_feature(JsonColumn, JSON_FEATURE)  # so that a data set with the column can be saved and loaded
