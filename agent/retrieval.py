"""What the memory index answers, in the shapes of docs/formats.md."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

SOURCES = (
    "episode",
    "knowledge",
    "consolidated",
    "conversation",
    "task",
    "feedback",
    "usage",
    "corpus",
    "log",
    "artifact",
    "doc",
)


@dataclass(frozen=True, slots=True)
class Hit:
    """One message, tool call or section that was found. `at` is UTC; `snippet` shows the original text.

    `session_key` is for the program: the shape of a hit names channel and chat.
    """

    ref: str
    context: str
    source: str
    title: str
    snippet: str
    sender: str
    role: str
    channel: str
    chat: str
    message_id: str
    at: datetime | None
    score: float
    session_key: str = ""

    def as_json(self) -> dict[str, Any]:
        """The JSON shape of a hit."""
        return {
            "ref": self.ref,
            "context": self.context or None,
            "source": self.source,
            "title": self.title,
            "snippet": self.snippet,
            "sender": self.sender,
            "role": self.role,
            "channel": self.channel,
            "chat": self.chat,
            "message_id": self.message_id or None,
            "at": self.at.isoformat() if self.at else None,
            "score": self.score,
        }


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """Hits, best first. `indexing`: the index is not complete yet. `hint` says what to do about an empty answer."""

    hits: tuple[Hit, ...]
    indexing: bool = False
    hint: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The JSON shape of `memory search`."""
        return {"hits": [hit.as_json() for hit in self.hits], "indexing": self.indexing, "hint": self.hint}


@dataclass(frozen=True, slots=True)
class SourceCoverage:
    """How much of one source is indexed, and from when to when it reaches (UTC)."""

    source: str
    records: int
    first_at: datetime
    last_at: datetime


@dataclass(frozen=True, slots=True)
class Coverage:
    """What the index holds. `headings` are (path, heading) of the knowledge files, in their order."""

    sources: tuple[SourceCoverage, ...] = ()
    conversations: int = 0
    headings: tuple[tuple[str, str], ...] = ()
