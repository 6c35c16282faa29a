"""What the scheduled channel is handed: a due run, and who knows where answers go."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from channels.message import Address

ScheduledKind = Literal["heartbeat", "procedure"]
CHANNEL_IDS: tuple[ScheduledKind, ...] = ("heartbeat", "procedure")
NOWHERE = "none"
"""The target of a run whose answer is kept and sent to nobody."""


@dataclass(frozen=True, slots=True)
class ScheduledRun:
    """One due run. `key` is unique for its due time: `beat:<job>:<due>`.

    `target` is `owner`, `none` or `<channel>:<chat>`.
    """

    kind: ScheduledKind
    name: str
    key: str
    due_at: datetime
    instruction: str
    target: str = "owner"


class Targets(Protocol):
    """The part of the gateway that knows the chats; the `backend` of this channel's context."""

    async def resolve_target(self, target: str) -> Address | None:
        """The chat that `owner` or `<channel>:<chat>` means now; None when there is none (yet)."""
        ...
