"""Words of others that come with a turn, as a prompt shows them: each in a fence of its own, within its share."""

from __future__ import annotations

from collections.abc import Sequence

from agent.fence import fence
from agent.tokens import clip
from agent.types import Foreign


def blocks(foreign: Sequence[Foreign], tokens_max: int, rest: str) -> list[str]:
    """A block each, cut to `tokens_max`; `rest` says where the whole is."""
    return [fence(clip(one.text, tokens_max, rest), one.source, sender=one.sender) for one in foreign]
