"""What model calls cost: prices, and the line of the daily usage file."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from importlib import import_module
from typing import Protocol
from zoneinfo import ZoneInfo

from agent.types import Turn, Usage

UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One request to a model that was answered. `cost_usd` None: nobody knows the price of this model."""

    at: datetime
    provider: str
    model: str
    usage: Usage
    cost_usd: Decimal | None


class Ledger(Protocol):
    """Keeps what models cost, and says when no more may be spent."""

    async def check(self, turn: Turn) -> None:
        """Raises ProviderError with one plain sentence when the day's budget is used up."""
        ...

    async def note(self, turn: Turn, call: ModelCall) -> None:
        """Writes the call down. Never fails a turn: what cannot be written is logged."""
        ...


async def price(provider: str, model: str, usage: Usage, *, local: bool = False) -> Decimal | None:
    """US dollars of one call by the price list of the genai-prices package; None when the model is not in it.

    A `local` server's model costs nothing, unless it bears the name of one that this provider sells: then it may well
    stand behind a proxy on this machine. The list is loaded in a thread on first use.
    """
    return await asyncio.to_thread(_listed_price, provider, model, usage, local)


async def warm_prices() -> None:
    """Loads the price list, which takes half a second, off the event loop."""
    await asyncio.to_thread(import_module, "genai_prices")


def _listed_price(provider: str, model: str, usage: Usage, local: bool) -> Decimal | None:
    from genai_prices import Usage as Tokens
    from genai_prices import calc_price

    # The list's input tokens are all of them, those read from and written to the provider's cache included.
    tokens = Tokens(
        input_tokens=usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        output_tokens=usage.output_tokens,
    )
    for provider_id in (provider,) if local else (provider, None):
        try:
            return calc_price(tokens, model_ref=model, provider_id=provider_id).total_price
        except LookupError:
            continue
    return Decimal(0) if local else None


def usage_line(call: ModelCall, zone: ZoneInfo) -> str:
    """`- HH:MM:SS | provider | model | in:N out:N cw:N cr:N | $0.000000`, the time in the owner's zone."""
    usage = call.usage
    cost = UNKNOWN if call.cost_usd is None else f"${call.cost_usd:.6f}"
    return (
        f"- {call.at.astimezone(zone):%H:%M:%S} | {call.provider} | {call.model or '-'} | "
        f"in:{usage.input_tokens} out:{usage.output_tokens} "
        f"cw:{usage.cache_write_tokens} cr:{usage.cache_read_tokens} | {cost}"
    )
