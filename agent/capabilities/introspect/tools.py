"""The retrieval tools: search, open, list, read and save what is remembered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol
from zoneinfo import ZoneInfo

from agent.capabilities.introspect import texts
from agent.capabilities.introspect.arguments import choice, number, owners_only, place, required, text
from agent.capabilities.introspect.forgetting import Forgetter, Forgetting
from agent.capabilities.introspect.masking import masked_answer, masked_conversation, masked_message
from agent.capabilities.introspect.sessions import SessionIndex, Sessions
from agent.capabilities.introspect.shapes import conversation_json, conversation_list_json
from agent.capabilities.introspect.state import Remembered, State
from agent.limits import (
    CONVERSATIONS_DEFAULT,
    CONVERSATIONS_MAX,
    GET_RECORDS_DEFAULT,
    READ_MESSAGES_DEFAULT,
    RECALL_HITS_DEFAULT,
    RECALL_HITS_MAX,
    SEARCH_HITS_DEFAULT,
    SEARCH_HITS_MAX,
)
from agent.redaction import MARK, REDACT, Redactor
from agent.retrieval import SearchAnswer
from agent.types import (
    CallContext,
    ConversationRecord,
    JsonObject,
    MessageRecord,
    StateSource,
    ToolFailure,
    ToolFunction,
    Transcripts,
    Viewer,
)

JsonFunction = Callable[[CallContext, JsonObject], Awaitable[Mapping[str, Any]]]

GET_RECORDS_MAX = 500
READ_MESSAGES_MAX = 200
"""So many messages one call reads; the answer says how to go on."""
MATCHING_CONVERSATIONS = 400
NAMED_CONVERSATIONS = 8
RECALLED: Mapping[str, str | None] = {
    "all": None,
    "episodes": "episode",
    "tasks": "task",
    "feedback": "feedback",
    "knowledge": "knowledge",
    "conversations": "conversation",
}
"""The sources of `wolffish_recall`, and those of the index that they are."""


class MemoryIndex(SessionIndex, Remembered, Protocol):
    """What the tools ask of the memory index."""

    async def search(
        self,
        viewer: Viewer,
        query: str,
        *,
        sources: str | None,
        after: str | None,
        before: str | None,
        channel: str | None,
        chat: str | None,
        sender: str | None,
        role: str | None,
        limit: int,
    ) -> SearchAnswer: ...

    async def conversations(self, viewer: Viewer, query: str, *, channel: str | None, limit: int) -> list[str]: ...

    async def of_day(self, viewer: Viewer, day: str, *, sources: str | None, limit: int) -> SearchAnswer: ...

    async def get(self, viewer: Viewer, ref: str, limit: int) -> str: ...


class SavedFact(Protocol):
    """What came of a fact."""

    @property
    def status(self) -> str: ...

    @property
    def ref(self) -> str: ...

    def as_json(self) -> JsonObject: ...


class FactKeeper(Protocol):
    """What the tools ask of the knowledge files."""

    async def save(self, fact: str, type: str, topic: str | None, replaces: str | None) -> SavedFact: ...


class Introspect:
    """The tools' code. Arguments are JSON; each tool raises ToolFailure with one sentence.

    The methods that end in `_json` give the shapes of docs/formats.md, for the same arguments.
    `forgetter` takes out what the owner wants forgotten. `list_files` is the tool that lists the workspace. `aliases`:
    other names of channels. `redact` masks secrets in all that is answered.
    """

    def __init__(
        self,
        cortex: MemoryIndex,
        knowledge: FactKeeper,
        transcripts: Transcripts,
        state: StateSource,
        zone: ZoneInfo,
        *,
        list_files: ToolFunction,
        aliases: Mapping[str, str] | None = None,
        forgetter: Forgetter[Any],
        redact: Redactor = REDACT,
    ) -> None:
        self._cortex = cortex
        self._knowledge = knowledge
        self._transcripts = transcripts
        self._zone = zone
        self._aliases = dict(aliases or {})
        self._redact = redact
        self.sessions = Sessions(cortex, transcripts, zone, self._aliases, redact)
        self.state = State(state, cortex, zone, list_files, redact)
        self.forgetting = Forgetting(forgetter, redact)

    def functions(self) -> dict[str, ToolFunction]:
        """Each tool by its name in SKILL.md."""
        return {
            "memory_search": self.memory_search,
            "memory_get": self.memory_get,
            "memory_save": self.memory_save,
            "memory_forget": self.forgetting.memory_forget,
            "conversation_list": self.conversation_list,
            "conversation_read": self.conversation_read,
            "wolffish_recall": self.wolffish_recall,
            "sessions_search": self.sessions.sessions_search,
            "sessions_history": self.sessions.sessions_history,
            "usage_report": self.state.usage_report,
            "channel_status": self.state.channel_status,
            "wolffish_status": self.state.wolffish_status,
            "wolffish_performance": self.state.wolffish_performance,
            "wolffish_memory": self.state.wolffish_memory,
            "wolffish_list_files": self.state.wolffish_list_files,
        }

    def json_functions(self) -> dict[str, JsonFunction]:
        """Those tools that have a shape in docs/formats.md, by name: they give it for the same arguments."""
        return {
            "memory_search": self.memory_search_json,
            "memory_save": self.memory_save_json,
            "conversation_list": self.conversation_list_json,
            "conversation_read": self.conversation_read_json,
            "sessions_search": self.sessions.sessions_search_json,
            "sessions_history": self.sessions.sessions_history_json,
            "usage_report": self.state.usage_report_json,
            "channel_status": self.state.channel_status_json,
        }

    async def memory_search(self, ctx: CallContext, args: JsonObject) -> str:
        return texts.search_answer(await self.search(ctx.viewer, args), self._zone)

    async def memory_search_json(self, ctx: CallContext, args: JsonObject) -> dict[str, Any]:
        return (await self.search(ctx.viewer, args)).as_json()

    async def memory_get(self, ctx: CallContext, args: JsonObject) -> str:
        limit = number(args, "limit", GET_RECORDS_DEFAULT, GET_RECORDS_MAX)
        return self._redact(await self._cortex.get(ctx.viewer, required(args, "ref"), limit))

    async def memory_save(self, ctx: CallContext, args: JsonObject) -> str:
        saved = await self._save(ctx, args)
        return {
            "saved": f"Saved: {saved.ref}",
            "known": f"Known already: {saved.ref}",
            "replaced": f"Replaced: {saved.ref}",
        }[saved.status]

    async def memory_save_json(self, ctx: CallContext, args: JsonObject) -> JsonObject:
        return (await self._save(ctx, args)).as_json()

    async def conversation_list(self, ctx: CallContext, args: JsonObject) -> str:
        return texts.conversation_list(await self.conversations(ctx.viewer, args), self._zone)

    async def conversation_list_json(self, ctx: CallContext, args: JsonObject) -> dict[str, Any]:
        return conversation_list_json(await self.conversations(ctx.viewer, args))

    async def conversation_read(self, ctx: CallContext, args: JsonObject) -> str:
        record, messages = await self.conversation(ctx, args)
        what, detail = choice(args, "what", texts.WHAT), choice(args, "detail", texts.DETAIL)
        return texts.conversation(record, messages, self._zone, what=what, detail=detail)

    async def conversation_read_json(self, ctx: CallContext, args: JsonObject) -> dict[str, Any]:
        return conversation_json(*await self.conversation(ctx, args))

    async def wolffish_recall(self, ctx: CallContext, args: JsonObject) -> str:
        owners_only(ctx, "recall what was done")
        limit = number(args, "limit", RECALL_HITS_DEFAULT, RECALL_HITS_MAX)
        sources = RECALLED[choice(args, "source", tuple(RECALLED))]
        query, day = text(args, "query"), text(args, "date")
        if query is None and day is None:
            raise ToolFailure("Give a query, a date, or both.")
        if query is None:
            found = await self._cortex.of_day(ctx.viewer, str(day), sources=sources, limit=limit)
            answer = masked_answer(found, self._redact)
        else:
            wanted = {"query": query, "sources": sources, "after": day, "before": day, "limit": limit}
            answer = await self.search(ctx.viewer, wanted)
        return texts.search_answer(answer, self._zone)

    async def search(self, viewer: Viewer, args: JsonObject) -> SearchAnswer:
        """The answer to `memory_search`."""
        found = await self._cortex.search(
            viewer,
            required(args, "query", blank=True),
            sources=text(args, "sources"),
            after=text(args, "after"),
            before=text(args, "before"),
            channel=self._channel(args),
            chat=text(args, "chat"),
            sender=text(args, "sender"),
            role=text(args, "role"),
            limit=number(args, "limit", SEARCH_HITS_DEFAULT, SEARCH_HITS_MAX),
        )
        return masked_answer(found, self._redact)

    async def conversations(self, viewer: Viewer, args: JsonObject) -> list[ConversationRecord]:
        """The answer to `conversation_list`: newest update first, with a `query` the best match first."""
        limit = number(args, "limit", CONVERSATIONS_DEFAULT, CONVERSATIONS_MAX)
        after, before = self._cortex.bounds(text(args, "after"), text(args, "before"))
        channel, query = self._channel(args), text(args, "query")
        if query is None:
            found = await self._transcripts.conversations(
                viewer, channel=channel, after=after, before=before, limit=limit
            )
            return [masked_conversation(record, self._redact) for record in found]
        ids = await self._cortex.conversations(viewer, query, channel=channel, limit=MATCHING_CONVERSATIONS)
        if not ids:
            return []
        found = await self._transcripts.conversations(
            viewer, channel=channel, ids=ids, after=after, before=before, limit=len(ids)
        )
        order = {id_: at for at, id_ in enumerate(ids)}
        best = sorted(found, key=lambda record: order.get(record.id, len(order)))[:limit]
        return [masked_conversation(record, self._redact) for record in best]

    async def conversation(self, ctx: CallContext, args: JsonObject) -> tuple[ConversationRecord, list[MessageRecord]]:
        """The answer to `conversation_read`: the conversation and the messages asked for."""
        record = await self._named(ctx, required(args, "id").strip())
        last = place(args, "to", record.message_count)
        first = place(args, "from", max(1, last - READ_MESSAGES_DEFAULT + 1))
        if first > last:
            raise ToolFailure(f"from is {first}, to is {last}: the range is empty.")
        last = min(last, first + READ_MESSAGES_MAX - 1)
        messages = await self._transcripts.messages(record.id, first, last)
        if ctx.viewer.session_keys is not None:
            # In a group the calls of the owner hold what is the owner's.
            messages = [replace(message, tool_calls=()) for message in messages]
        messages = [masked_message(message, self._redact) for message in messages]
        return masked_conversation(record, self._redact), messages

    async def _named(self, ctx: CallContext, part: str) -> ConversationRecord:
        part = part.removeprefix("conversation:").partition("#")[0]
        wanted = ctx.conversation_id if part == "current" else part
        found = await self._transcripts.conversation(ctx.viewer, wanted) if wanted else []
        if not found:
            raise ToolFailure(f"There is no conversation {part[:80]!r}. conversation_list shows which there are.")
        if len(found) > 1:
            names = ", ".join(record.id for record in found[:NAMED_CONVERSATIONS])
            more = f" and {len(found) - NAMED_CONVERSATIONS} more" if len(found) > NAMED_CONVERSATIONS else ""
            raise ToolFailure(f"Several conversations match {part[:80]!r}: {names}{more}. Give more of the id.")
        return found[0]

    async def _save(self, ctx: CallContext, args: JsonObject) -> SavedFact:
        owners_only(ctx, "save facts")
        fact = required(args, "fact")
        if MARK in fact:
            raise ToolFailure("The fact holds a masked secret, not the value itself; say it without.")
        return await self._knowledge.save(
            fact, text(args, "type") or "technical", text(args, "topic"), text(args, "replaces")
        )

    def _channel(self, args: JsonObject) -> str | None:
        name = text(args, "channel")
        return self._aliases.get(name, name) if name else None
