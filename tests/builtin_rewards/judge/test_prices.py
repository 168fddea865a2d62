"""Prices: how a model's is found, what usage costs, and what is no price."""

from __future__ import annotations

import logging
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builtin_rewards.endpoint.budget import Price, check_prices, price_of
from builtin_rewards.endpoint.errors import JudgeSetupError
from builtin_rewards.endpoint.messages import Usage

_PRICE = Price(1.25, 10.0, cached=0.125)
_COUNTS = st.integers(0, 10**9)


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        pytest.param(Usage(1_000_000, 0), 1.25, id="read"),
        pytest.param(Usage(0, 1_000_000), 10.0, id="written"),
        pytest.param(Usage(1_000_000, 0, cached_tokens=1_000_000), 0.125, id="all cached"),
        pytest.param(Usage(2_000_000, 100_000, cached_tokens=1_000_000), 2.375, id="each"),
        pytest.param(Usage(1_000_000, 0, cached_tokens=9_000_000), 0.125, id="more cached than read"),
        pytest.param(Usage(0, 0), 0.0, id="nothing"),
    ],
)
def test_cost_is_tokens_times_price_per_million(usage: Usage, expected: float) -> None:
    """Read, cached and written tokens cost what the price says, per million."""
    assert expected == pytest.approx(_PRICE.cost(usage))


def test_cached_tokens_cost_as_others_where_no_price_is_given_for_them() -> None:
    """Without a price for cached tokens there is no discount."""
    assert Price(2, 0).cost(Usage(500_000, 0)) == Price(2, 0).cost(Usage(500_000, 0, cached_tokens=400_000))


@given(_COUNTS, _COUNTS, _COUNTS)
def test_caching_never_makes_usage_dearer(read: int, written: int, cached: int) -> None:
    """So the cost with nothing cached is a bound."""
    assert _PRICE.cost(Usage(read, written, cached)) <= _PRICE.cost(Usage(read, written))


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        pytest.param("gpt-x", Price(1, 2), id="exact"),
        pytest.param("gpt-x-2026-03-01", Price(1, 2), id="dated"),
        pytest.param("gpt-x-20260301", Price(1, 2), id="dated without dashes"),
        pytest.param("gpt-x-mini", Price(3, 4), id="a longer name of its own"),
        pytest.param("gpt-x-mini-2026-03-01", Price(3, 4), id="the longest name, dated"),
        pytest.param("gpt-x-mini-2026-01-01", Price(5, 6), id="exact before dated"),
        pytest.param("gpt-x-nano", None, id="another model of the family"),
        pytest.param("gpt-x-2026", None, id="no date"),
        pytest.param("GPT-X", None, id="another case"),
        pytest.param("", None, id="empty"),
    ],
)
def test_a_model_is_found_by_name_and_then_without_its_date(model: str, expected: Price | None) -> None:
    """A dated release costs what its model does; other models of a family do not."""
    prices = {"gpt-x": Price(1, 2), "gpt-x-mini": Price(3, 4), "gpt-x-mini-2026-01-01": Price(5, 6)}
    assert expected == price_of(prices, model)


def test_a_model_without_a_price_is_told_when_prices_are_given(caplog: pytest.LogCaptureFixture) -> None:
    """One warning names the model and the setting; where there are no prices none is missed."""
    with caplog.at_level(logging.WARNING):
        check_prices({}, "small")
        check_prices({"small": Price(0, 0)}, "small")
        assert [] == caplog.records
        check_prices({"large": Price(1, 1)}, "small")
    (record,) = caplog.records
    assert 'prices={"small": Price(' in record.getMessage()


_NO_PRICES = [
    ({name: value}, f"{name}={value!r}")
    for name in ("prompt", "completion")
    for value in (-1, math.nan, "1", None, True)
]


@pytest.mark.parametrize(("fields", "words"), [*_NO_PRICES, ({"cached": 3}, "cached=3")], ids=repr)
def test_what_is_no_price_is_refused(fields: dict[str, Any], words: str) -> None:
    """The message names the field and the value; cached tokens that cost more would make the full price no bound."""
    with pytest.raises(JudgeSetupError, match=words):
        Price(**{"prompt": 2.0, "completion": 1.0, **fields})


@pytest.mark.parametrize("prices", [{"m": 1.0}, {1: Price(1, 1)}, [("m", Price(1, 1))]], ids=repr)
def test_what_is_no_table_is_refused(prices: Any) -> None:
    """The message shows what a table looks like."""
    with pytest.raises(JudgeSetupError, match=r"Price\(prompt, completion\)"):
        check_prices(prices, "m")


def test_a_table_is_not_changed_by_its_source() -> None:
    """It keeps a copy of what it was given."""
    source = {"m": _PRICE}
    table = check_prices(source, "m")
    source.clear()
    assert {"m": _PRICE} == table
