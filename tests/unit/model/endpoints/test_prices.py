from __future__ import annotations

import pytest

from communitree_shared.contract.results import Usage
from communitree_shared.settings import ModelSettings
from communitree_workers.model.endpoints.prices import price_known, usd

USAGE = Usage(calls=1, prompt_tokens=1_000_000, provider_cached_tokens=400_000, output_tokens=100_000)


def test_cached_tokens_have_a_price_of_their_own() -> None:
    settings = ModelSettings(model="m", price_input=2.0, price_output=8.0, price_cached=0.5)
    assert usd(USAGE, settings) == pytest.approx(0.6 * 2 + 0.4 * 0.5 + 0.1 * 8)


def test_without_one_they_cost_the_full_price() -> None:
    assert usd(USAGE, ModelSettings(model="m", price_input=2.0, price_output=8.0)) == pytest.approx(2.8)


def test_an_unknown_price_is_none_and_not_zero() -> None:
    assert usd(USAGE, ModelSettings(model="m", price_input=2.0)) is None
    assert usd(USAGE, ModelSettings(model="m")) is None
    assert not price_known(ModelSettings(model="m"))


def test_a_free_model_costs_nothing() -> None:
    assert usd(USAGE, ModelSettings(model="m", price_input=0.0, price_output=0.0)) == 0.0
    assert usd(USAGE, ModelSettings()) == 0.0
    assert price_known(ModelSettings())
