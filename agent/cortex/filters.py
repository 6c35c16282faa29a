"""What a hit must be, as values for SQL and as a test of one record."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from agent.cortex.rank import Record


@dataclass(frozen=True, slots=True)
class Filters:
    """What a hit must be. None and the empty set of sessions differ: the latter sees nothing.

    `after` and `before` are ms since 1970, UTC; `before` is exclusive.
    """

    sources: tuple[str, ...] | None = None
    sessions: frozenset[str] | None = None
    channel: str | None = None
    chat: str | None = None
    sender: str | None = None
    roles: tuple[str, ...] | None = None
    after: int | None = None
    before: int | None = None

    @property
    def in_sql(self) -> bool:
        """True when rows must be looked at, beyond what the full-text expression says."""
        return any(
            value is not None
            for value in (self.sources, self.sessions, self.channel, self.chat, self.roles, self.after, self.before)
        )

    def parameters(self) -> dict[str, object]:
        """Values for the sentences of reads.sql."""
        return {
            "sources": None if self.sources is None else json.dumps(self.sources),
            "sessions": sessions_parameter(self.sessions),
            "channel": self.channel,
            "chat": self.chat,
            "roles": None if self.roles is None else json.dumps(self.roles),
            "after": self.after,
            "before": self.before,
        }

    def within(self, start: int, end: int) -> Filters:
        """The same, narrowed to a time from `start` until `end`."""
        after = start if self.after is None else max(start, self.after)
        before = end if self.before is None else min(end, self.before)
        return replace(self, after=after, before=before)

    def lets_through(self, record: Record) -> bool:
        """The same test for one record, but for the sender."""
        return (
            (self.sources is None or record.source in self.sources)
            and is_seen(record, self.sessions)
            and (self.channel is None or record.channel == self.channel)
            and (self.chat is None or record.chat == self.chat)
            and (self.roles is None or record.role in self.roles)
            and (self.after is None or record.at >= self.after)
            and (self.before is None or record.at < self.before)
        )


def sessions_parameter(sessions: frozenset[str] | None) -> str | None:
    """A set of session keys as the sentences want it; None: all."""
    return None if sessions is None else json.dumps(sorted(sessions))


def is_seen(record: Record, sessions: frozenset[str] | None) -> bool:
    """Others than the owner see what was said in their sessions, not the calls of tools."""
    return sessions is None or (record.part == 0 and record.session_key in sessions)
