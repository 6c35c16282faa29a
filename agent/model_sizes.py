"""How much a model is known to take, by the list of the genai-prices package."""

from __future__ import annotations

import asyncio

from agent.limits import CONTEXT_TOKENS_LISTED_MAX


async def listed_context_tokens(provider: str, model: str) -> int:
    """The context of a model in tokens, at most `CONTEXT_TOKENS_LISTED_MAX`; 0 when the list does not say.

    The list is loaded in a thread on first use.
    """
    return await asyncio.to_thread(_listed, provider, model)


def _listed(provider: str, model: str) -> int:
    from genai_prices.data_snapshot import get_snapshot

    for provider_id in (provider, None):
        try:
            _, found = get_snapshot().find_provider_model(model, None, provider_id, None)
        except LookupError:
            continue
        return min(found.context_window or 0, CONTEXT_TOKENS_LISTED_MAX)
    return 0
