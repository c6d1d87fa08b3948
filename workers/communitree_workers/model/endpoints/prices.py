"""What a call costs."""

from __future__ import annotations

from communitree_shared.contract.results import Usage
from communitree_shared.settings import ModelSettings


def price_known(settings: ModelSettings) -> bool:
    """Whether the money of a call can be told: both prices are set, or the model is built in."""
    return settings.built_in or (settings.price_input is not None and settings.price_output is not None)


def usd(usage: Usage, settings: ModelSettings) -> float | None:
    """Return the price of a usage in USD, None where a price is unknown.

    Provider-cached prompt tokens are part of `prompt_tokens`; without a price of their own they cost the full price, so
    that a guess is never too low.
    """
    if settings.built_in:
        return 0.0
    if settings.price_input is None or settings.price_output is None:
        return None
    cached_price = settings.price_input if settings.price_cached is None else settings.price_cached
    cached = min(usage.provider_cached_tokens, usage.prompt_tokens)
    fresh = usage.prompt_tokens - cached
    return (fresh * settings.price_input + cached * cached_price + usage.output_tokens * settings.price_output) / 1e6
