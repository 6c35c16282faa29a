"""The state tools: what runs, what was spent, how well it works, what is remembered, which files there are."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Protocol
from zoneinfo import ZoneInfo

from agent.capabilities.introspect import texts
from agent.capabilities.introspect.arguments import choice, owners_only, text
from agent.redaction import REDACT, Redactor
from agent.retrieval import Coverage
from agent.types import CallContext, JsonObject, StateSource, ToolFunction, Viewer

PERIODS = ("today", "yesterday", "week", "month", "all")
_DAYS: Mapping[str, tuple[int, int]] = {"today": (0, 0), "yesterday": (1, 1), "week": (6, 0), "month": (29, 0)}
"""How many days before today a period begins and ends, both days included."""
PERFORMANCE_DAYS = 7
SKIPPED_SHOWN = 10


class Remembered(Protocol):
    """What the state tools ask of the memory index."""

    async def coverage(self, viewer: Viewer | None = None) -> Coverage: ...

    def bounds(self, after: str | None, before: str | None) -> tuple[datetime | None, datetime | None]: ...


class State:
    """The tools' code; all of it is the owner's. `list_files` is the tool that lists the workspace."""

    def __init__(
        self,
        source: StateSource,
        index: Remembered,
        zone: ZoneInfo,
        list_files: ToolFunction,
        redact: Redactor = REDACT,
    ) -> None:
        self._redact = redact
        self._source = source
        self._index = index
        self._zone = zone
        self._list_files = list_files

    async def usage_report(self, ctx: CallContext, args: JsonObject) -> str:
        return usage_text(await self.usage_report_json(ctx, args))

    async def usage_report_json(self, ctx: CallContext, args: JsonObject) -> dict[str, Any]:
        """The shape of `usage`; `period` is a word, or the days `after/before` where they were given."""
        owners_only(ctx, "see what models cost")
        period = choice(args, "period", PERIODS)
        after, before = text(args, "after"), text(args, "before")
        if after or before:
            period = f"{after or ''}/{before or ''}"
        elif period != "all":
            today = ctx.now.astimezone(self._zone).date()
            first, last = (today - timedelta(days=days) for days in _DAYS[period])
            after, before = first.isoformat(), last.isoformat()
        start, end = self._index.bounds(after, before)
        return {"period": period, **await self._source.usage(start, end)}

    async def channel_status(self, ctx: CallContext, args: JsonObject) -> str:
        return texts.channel_states(await self.channel_status_json(ctx, args), self._zone)

    async def channel_status_json(self, ctx: CallContext, args: JsonObject) -> JsonObject:
        """The shape of `channels status`."""
        owners_only(ctx, "see the state of the channels")
        return self._redact.deep(await self._source.channels())

    async def wolffish_status(self, ctx: CallContext, args: JsonObject) -> str:
        owners_only(ctx, "see what runs")
        return self._redact(status_text(await self._source.status(), self._zone))

    async def wolffish_performance(self, ctx: CallContext, args: JsonObject) -> str:
        owners_only(ctx, "see how it performs")
        since = ctx.now - timedelta(days=PERFORMANCE_DAYS)
        return performance_text(await self._source.performance(since))

    async def wolffish_memory(self, ctx: CallContext, args: JsonObject) -> str:
        owners_only(ctx, "see what is remembered")
        return memory_text(await self._index.coverage(), self._zone)

    async def wolffish_list_files(self, ctx: CallContext, args: JsonObject) -> str:
        owners_only(ctx, "list files")
        return self._redact(await self._list_files(ctx, args))


def usage_text(usage: JsonObject) -> str:
    """The sum, then a line for each model."""
    lines = [f"{usage['period']}: {_spent(usage)}"]
    lines += [f"- {model['provider']} {model['model']}".rstrip() + f": {_spent(model)}" for model in usage["models"]]
    return "\n".join(lines)


def _spent(part: JsonObject) -> str:
    unpriced = part["unpriced_requests"]
    without = f" (without {unpriced:,} requests of unknown price)" if unpriced else ""
    return (
        f"{part['requests']:,} requests, {part['input_tokens']:,} tokens in, {part['output_tokens']:,} out, "
        f"cache {part['cache_read_tokens']:,} read and {part['cache_write_tokens']:,} written, "
        f"${part['cost_usd']:.4f}{without}"
    )


def status_text(status: JsonObject, zone: ZoneInfo) -> str:
    """Version, how long it runs, model, queue, next jobs, index, and a line for each channel."""
    uptime, queue = status.get("uptime_seconds"), status["queue"]
    skipped = status["index"].get("skipped", [])
    more = status["index"].get("skipped_count", 0) - len(skipped[:SKIPPED_SHOWN])
    lines = [
        f"Version {status['version']}, " + ("no gateway runs" if uptime is None else f"running for {uptime:,.0f} s"),
        *([f"Model: {status['model']}"] if status.get("model") else []),
        "Queue: " + ", ".join(f"{count} {name}" for name, count in queue.items()),
        "Index: " + ("still being built" if status["index"].get("indexing") else "up to date"),
        *(f"Not searched: {item['path']}: {item['reason']}" for item in skipped[:SKIPPED_SHOWN]),
        *([f"Not searched: {more:,} more"] if more > 0 else []),
        *(
            f"Next: {job['name']} at {texts.time(datetime.fromisoformat(job['at']), zone)}"
            for job in status["next_jobs"]
        ),
        texts.channel_states(status, zone),
    ]
    return "\n".join(lines)


def performance_text(performance: JsonObject) -> str:
    """Turns and calls of the last days, with their times."""
    turns = performance["turns"]
    lines = [f"Last {PERFORMANCE_DAYS} days."]
    lines += [
        f"Turns {turn['state']}: {turn['count']:,}, {turn['average_seconds']:.1f} s on average, "
        f"{turn['longest_seconds']:.1f} s at most"
        for turn in turns
    ]
    lines += [
        f"{tool['name']}: {tool['calls']:,} calls, {tool['not_successful']:,} without success, "
        f"{tool['average_seconds']:.1f} s on average"
        for tool in performance["tools"]
    ]
    return "\n".join(lines if len(lines) > 1 else [*lines, "No turns."])


def memory_text(covered: Coverage, zone: ZoneInfo) -> str:
    """What the index holds, a source a line, and the headings of the knowledge files."""
    if not covered.sources:
        return "Nothing is indexed yet."
    lines = [f"{covered.conversations:,} conversations"]
    for item in covered.sources:
        first, last = texts.time(item.first_at, zone), texts.time(item.last_at, zone)
        lines.append(f"{item.source}: {item.records:,} records, {first} to {last}")
    lines += [f"knowledge: {path} · {heading}" for path, heading in covered.headings]
    return "\n".join(lines)
