"""The tools of the readable memory: recall, retain, reflect. All of it is the owner's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from typing import Any, Protocol

from agent.types import CallContext, JsonObject, ToolFailure, ToolFunction, Viewer

FAULTS_SHOWN = 10


class Hit(Protocol):
    """A remembered fact."""

    def as_json(self) -> dict[str, Any]:
        """The shape of a hit of `memory recall`."""
        ...


class Kept(Protocol):
    """What came of a fact."""

    @property
    def status(self) -> str: ...
    @property
    def ref(self) -> str: ...
    def as_json(self) -> dict[str, Any]: ...


class Done(Protocol):
    """What a reflection did."""

    def as_json(self) -> dict[str, Any]:
        """The shape of `memory reflect`."""
        ...

    def sentence(self) -> str: ...


class ReadableMemory(Protocol):
    """What the tools ask of the memory. Every method raises ToolFailure with one sentence."""

    async def recall(self, viewer: Viewer, text: str, args: dict[str, Any]) -> Sequence[Hit]: ...

    async def retain(self, bullet: str) -> Kept: ...

    async def reflect(self, since: date | None = None) -> Done: ...

    def day_word(self, text: str) -> date:
        """A day as `since` takes it."""
        ...


class MemoryTools:
    """The tools' code. `memory` gives the memory; it is asked for with the first call."""

    def __init__(self, memory: Callable[[], ReadableMemory]) -> None:
        self._memory = memory

    def functions(self) -> dict[str, ToolFunction]:
        """Each tool by its name in SKILL.md."""
        return {"recall": self.recall, "retain": self.retain, "reflect": self.reflect}

    async def recall(self, ctx: CallContext, args: JsonObject) -> str:
        return recall_text(await self.recall_json(ctx, args))

    async def recall_json(self, ctx: CallContext, args: JsonObject) -> dict[str, Any]:
        """`{"hits": [...]}`, best first."""
        _owners_only(ctx, "recall what is remembered")
        hits = await self._memory().recall(ctx.viewer, str(args.get("query") or ""), dict(args))
        return {"hits": [hit.as_json() for hit in hits]}

    async def retain(self, ctx: CallContext, args: JsonObject) -> str:
        _owners_only(ctx, "keep facts")
        kept = await self._memory().retain(str(args.get("bullet") or ""))
        return f"{'Kept' if kept.status == 'saved' else 'Known already'}: file:{kept.ref}"

    async def retain_json(self, ctx: CallContext, args: JsonObject) -> dict[str, Any]:
        """The shape of `memory save`."""
        _owners_only(ctx, "keep facts")
        return (await self._memory().retain(str(args.get("bullet") or ""))).as_json()

    async def reflect(self, ctx: CallContext, args: JsonObject) -> str:
        return reflected_text(await self.reflect_json(ctx, args))

    async def reflect_json(self, ctx: CallContext, args: JsonObject) -> dict[str, Any]:
        """`{"taken", "changed", "refused", "faults"}`."""
        _owners_only(ctx, "have the memory reflect")
        since = str(args.get("since") or "").strip()
        return (await self._memory().reflect(self._memory().day_word(since) if since else None)).as_json()


def recall_text(answer: dict[str, Any]) -> str:
    """One hit is two lines: `[source] day · kind · names · confidence`, and what is known."""
    blocks: list[str] = []
    for hit in answer["hits"]:
        facts = [hit["timestamp"], hit["kind"], ", ".join(hit["entities"])]
        if hit["confidence"] is not None:
            facts.append(f"confidence {hit['confidence']:.2f}")
        if hit["evidence"]["against"]:
            facts.append(f"against it: {', '.join(hit['evidence']['against'])}")
        blocks.append(f"[file:{hit['source']}] {' · '.join(fact for fact in facts if fact)}\n{hit['content']}")
    return "\n\n".join(blocks) or (
        "Nothing is remembered of that. It is no proof of absence: ask in other words, without a time, or try "
        "memory_search."
    )


def reflected_text(answer: dict[str, Any]) -> str:
    """What a reflection did, a line each."""
    lines = [f"Facts taken from the days: {answer['taken']}"] if answer["taken"] else []
    lines += [f"Changed: {page}" for page in answer["changed"]]
    lines += [f"Refused: {reason}" for reason in answer["refused"]]
    faults = answer["faults"]
    lines += [f"Not well-formed: {fault['file']}:{fault['line']}: {fault['reason']}" for fault in faults[:FAULTS_SHOWN]]
    if len(faults) > FAULTS_SHOWN:
        lines.append(f"... and {len(faults) - FAULTS_SHOWN} more that are not well-formed")
    return "\n".join(lines) or "Nothing new."


def _owners_only(ctx: CallContext, what: str) -> None:
    if ctx.viewer.session_keys is not None:
        raise ToolFailure(f"Only the owner may {what}.")
