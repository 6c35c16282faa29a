"""A memory that offers what it is told to offer."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from agent.retrieval import Coverage, Hit, SourceCoverage
from agent.types import Viewer

COVERAGE = Coverage(
    (
        SourceCoverage("conversation", 1_234, datetime(2026, 1, 5, tzinfo=UTC), datetime(2026, 11, 30, tzinfo=UTC)),
        SourceCoverage("episode", 12, datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 11, 29, 22, tzinfo=UTC)),
    ),
    7,
)


def a_hit(ref: str, snippet: str, score: float = 1.0, sender: str = "Sara") -> Hit:
    return Hit(
        ref=ref,
        context="",
        source="conversation",
        title="",
        snippet=snippet,
        sender=sender,
        role="user",
        channel="telegram",
        chat="42",
        message_id="9",
        at=datetime(2026, 11, 2, 7, 14, tzinfo=UTC),
        score=score,
    )


class FakeCortex:
    """Keeps who asked for what."""

    def __init__(self, hits: Sequence[Hit] = (), coverage: Coverage = COVERAGE) -> None:
        self.hits = tuple(hits)
        self.covered = coverage
        self.asked: list[tuple[Viewer, str]] = []
        self.maps = 0
        self.fails: Exception | None = None

    async def candidates(self, viewer: Viewer, text: str, limit: int) -> tuple[Hit, ...]:
        self.asked.append((viewer, text))
        self._check()
        return self.hits[:limit]

    async def coverage(self) -> Coverage:
        self.maps += 1
        self._check()
        return self.covered

    def _check(self) -> None:
        if self.fails is not None:
            raise self.fails
