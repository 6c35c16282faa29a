"""The session tools: exact words in what people and the agent said, and the messages around them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, Protocol
from zoneinfo import ZoneInfo

from agent.capabilities.introspect import texts
from agent.capabilities.introspect.arguments import number, required, session_key, text
from agent.capabilities.introspect.masking import masked_hit, masked_message
from agent.capabilities.introspect.shapes import message_json
from agent.limits import (
    HISTORY_ANSWER_BYTES,
    HISTORY_MESSAGES_DEFAULT,
    HISTORY_MESSAGES_MOST,
    HISTORY_TEXT_CHARS,
    QUERY_CHARS_MAX,
    SESSION_HITS_DEFAULT,
    SESSION_HITS_MAX,
    SESSION_SEARCH_BYTES,
    SESSION_SNIPPET_CHARS,
)
from agent.redaction import REDACT, Redactor
from agent.retrieval import Hit, SearchAnswer
from agent.types import CallContext, ConversationRecord, JsonObject, MessageRecord, ToolFailure, Transcripts, Viewer

ROLES = ("user", "assistant")
OFFSET_MAX = 10**9
FRAME_BYTES = 512
"""Kept free for what stands around the hits or messages of an answer."""
_AROUND = re.compile(r"(?:conversation:)?(?P<id>.+)#(?P<n>[0-9]{1,9})(?:\.[0-9]+)?")


class SessionIndex(Protocol):
    """What the session tools ask of the memory index."""

    async def said(
        self,
        viewer: Viewer,
        query: str,
        *,
        session_key: str | None,
        roles: tuple[str, ...],
        after: str | None,
        before: str | None,
        limit: int,
        snippet_chars: int,
    ) -> SearchAnswer: ...


@dataclass(frozen=True, slots=True)
class Found:
    """The answer to `sessions_search`. `truncated`: there were more hits than limit and space allow."""

    hits: tuple[Hit, ...]
    indexing: bool
    truncated: bool


@dataclass(frozen=True, slots=True)
class Said:
    """One message of a session, cut to what an answer may hold; `place` counts from 0 over the whole session."""

    place: int
    conversation_id: str
    message: MessageRecord
    cut: bool

    @property
    def ref(self) -> str:
        return f"conversation:{self.conversation_id}#{self.message.n}"

    @property
    def bytes(self) -> int:
        """The larger of its two forms."""
        return max(_bytes(said_json(self)), len(said_text(self, ZoneInfo("UTC")).encode("utf-8", "replace")) + 2)


@dataclass(frozen=True, slots=True)
class History:
    """The answer to `sessions_history`. `next_offset` leads to the messages before these; None: there are none."""

    session_key: str
    messages: tuple[Said, ...]
    truncated: bool
    next_offset: int | None


class Sessions:
    """The tools' code; what cannot be done raises ToolFailure. `aliases`: other names of channels."""

    def __init__(
        self,
        index: SessionIndex,
        transcripts: Transcripts,
        zone: ZoneInfo,
        aliases: Mapping[str, str],
        redact: Redactor = REDACT,
    ) -> None:
        self._index = index
        self._transcripts = transcripts
        self._zone = zone
        self._aliases = aliases
        self._redact = redact

    async def sessions_search(self, ctx: CallContext, args: JsonObject) -> str:
        return search_text(await self.search(ctx.viewer, args), self._zone)

    async def sessions_search_json(self, ctx: CallContext, args: JsonObject) -> dict[str, Any]:
        found = await self.search(ctx.viewer, args)
        hits = [hit_json(hit) for hit in found.hits]
        return {"hits": hits, "indexing": found.indexing, "truncated": found.truncated}

    async def sessions_history(self, ctx: CallContext, args: JsonObject) -> str:
        return history_text(await self.history(ctx.viewer, args), self._zone)

    async def sessions_history_json(self, ctx: CallContext, args: JsonObject) -> dict[str, Any]:
        history = await self.history(ctx.viewer, args)
        return {
            "sessionKey": history.session_key,
            "messages": [said_json(said) for said in history.messages],
            "truncated": history.truncated,
            "next_offset": history.next_offset,
        }

    async def search(self, viewer: Viewer, args: JsonObject) -> Found:
        """Hits, best first, as many as the limit and 32 KiB allow."""
        query = required(args, "query")
        if len(query) > QUERY_CHARS_MAX:
            raise ToolFailure(f"query has {len(query):,} characters; at most {QUERY_CHARS_MAX:,} are searched for.")
        role = text(args, "role")
        if role is not None and role not in ROLES:
            raise ToolFailure(f"role is {role[:40]!r}; it can be {' or '.join(ROLES)}.")
        limit = number(args, "limit", SESSION_HITS_DEFAULT, SESSION_HITS_MAX)
        answer = await self._index.said(
            viewer,
            query,
            session_key=self._key(args),
            roles=ROLES if role is None else (role,),
            after=text(args, "after"),
            before=text(args, "before"),
            limit=limit + 1,
            snippet_chars=SESSION_SNIPPET_CHARS,
        )
        hits = tuple(self._masked(hit) for hit in answer.hits[:limit])
        ends = accumulate(_bytes(hit_json(hit)) for hit in hits)
        fitting = sum(end <= SESSION_SEARCH_BYTES - FRAME_BYTES for end in ends)
        return Found(hits[:fitting], answer.indexing, fitting < len(answer.hits))

    async def history(self, viewer: Viewer, args: JsonObject) -> History:
        """The latest messages of a session, or those around one, in their order and at most 80 KiB."""
        key = self._key(args)
        if key is None:
            raise ToolFailure("session_key is missing.")
        records = await self._transcripts.session(viewer, key)
        if not records:
            raise ToolFailure(
                f"There is no session {key[:80]!r}; sessions_search names the sessionKey of what it finds."
            )
        begins = [0, *accumulate(record.message_count for record in records)]
        limit = number(args, "limit", HISTORY_MESSAGES_DEFAULT, HISTORY_MESSAGES_MOST)
        around = text(args, "around")
        if around is None:
            end = begins[-1] - _offset(args)
            anchor = end - 1
        else:
            anchor = _place_of(around, records, begins)
            end = min(begins[-1], max(0, anchor - limit // 2) + limit)
        read = await self._read(records, begins, max(0, end - limit), end)
        tools = args.get("include_tools") is True and viewer.session_keys is None
        read = [replace(said, message=masked_message(said.message, self._redact)) for said in read]
        kept = _kept([_cut(said, tools) for said in read], anchor)
        first = kept[0].place if kept else 0
        truncated = len(kept) < len(read) or any(said.cut for said in kept)
        return History(key, tuple(kept), truncated, begins[-1] - first if first > 0 else None)

    async def _read(
        self, records: Sequence[ConversationRecord], begins: Sequence[int], first: int, end: int
    ) -> list[Said]:
        """The messages at the places first..end (exclusive) of a session."""
        read: list[Said] = []
        for record, begin in zip(records, begins, strict=False):
            low, high = max(first, begin), min(end, begin + record.message_count)
            if low < high:
                messages = await self._transcripts.messages(record.id, low - begin + 1, high - begin)
                read += [Said(begin + message.n - 1, record.id, message, cut=False) for message in messages]
        return read

    def _masked(self, hit: Hit) -> Hit:
        # A mask may be longer than the secret was.
        masked = masked_hit(hit, self._redact)
        return replace(masked, snippet=texts.shortened(masked.snippet, SESSION_SNIPPET_CHARS))

    def _key(self, args: JsonObject) -> str | None:
        key = session_key(args)
        if key is None:
            return None
        channel, colon, rest = key.partition(":")
        return f"{self._aliases.get(channel, channel)}{colon}{rest}"


def _offset(args: JsonObject) -> int:
    try:
        offset = int(args.get("offset") or 0)
    except (TypeError, ValueError, OverflowError):
        offset = -1
    if not 0 <= offset <= OFFSET_MAX:
        raise ToolFailure("offset must be a whole number, 0 or more.")
    return offset


def _place_of(around: str, records: Sequence[ConversationRecord], begins: Sequence[int]) -> int:
    """Where in the session the message of a reference stands."""
    found = _AROUND.fullmatch(around)
    if found is None:
        raise ToolFailure("around must be the reference of a message, such as conversation:<id>#3.")
    for record, begin in zip(records, begins, strict=False):
        if record.id == found["id"] and 1 <= int(found["n"]) <= record.message_count:
            return begin + int(found["n"]) - 1
    raise ToolFailure(f"{around[:80]!r} is no message of this session.")


def _kept(read: Sequence[Said], anchor: int) -> list[Said]:
    """As many messages in a row as 80 KiB hold: the one at `anchor`, then its neighbours, older and newer in turn."""
    if not read:
        return []
    middle = min(range(len(read)), key=lambda at: abs(read[at].place - anchor))
    room = HISTORY_ANSWER_BYTES - FRAME_BYTES
    kept = [_fitted(read[middle], room)]
    room -= kept[0].bytes
    sides = [list(reversed(read[:middle])), list(read[middle + 1 :])]
    while any(sides):
        for older, side in enumerate(sides):
            if not side:
                continue
            size = side[0].bytes
            if size > room:
                side.clear()
                continue
            room -= size
            kept.insert(len(kept) if older else 0, side.pop(0))
    return kept


def _fitted(said: Said, room: int) -> Said:
    """A message without its last calls, as many as do not fit."""
    while said.bytes > room and said.message.tool_calls:
        said = replace(said, message=replace(said.message, tool_calls=said.message.tool_calls[:-1]), cut=True)
    return said


def _cut(said: Said, tools: bool) -> Said:
    """Every text at most 4,000 characters; arguments that are longer become `{"cut": <their beginning>}`."""
    calls = said.message.tool_calls if tools else ()
    short_calls = tuple(
        replace(call, args=_short_args(call.args), output=texts.shortened(call.output, HISTORY_TEXT_CHARS))
        for call in calls
    )
    short = texts.shortened(said.message.text, HISTORY_TEXT_CHARS)
    message = replace(said.message, text=short, tool_calls=short_calls)
    return replace(said, message=message, cut=short != said.message.text or short_calls != calls)


def _short_args(args: JsonObject) -> JsonObject:
    written = json.dumps(dict(args), ensure_ascii=False, default=str)
    return args if len(written) <= HISTORY_TEXT_CHARS else {"cut": texts.shortened(written, HISTORY_TEXT_CHARS)}


def hit_json(hit: Hit) -> dict[str, Any]:
    """The shape of a hit of `sessions search`."""
    return {
        "sessionKey": hit.session_key,
        "conversation": hit.ref.removeprefix("conversation:").rpartition("#")[0],
        "at": hit.at.isoformat() if hit.at else None,
        "role": hit.role,
        "snippet": hit.snippet,
        "ref": hit.ref,
    }


def said_json(said: Said) -> dict[str, Any]:
    """The shape of a message, with its conversation and its reference."""
    return {**message_json(said.message), "conversation": said.conversation_id, "ref": said.ref}


def search_text(found: Found, zone: ZoneInfo) -> str:
    """Hits in blocks apart by an empty line, each with its sessionKey; or that there are none."""
    blocks = [texts.session_hit(hit, zone) for hit in found.hits]
    if not blocks:
        blocks.append("No hits. Words are matched: try other words, or memory_search.")
    if found.truncated:
        blocks.append("There are more hits than are shown: narrow the search.")
    if found.indexing:
        blocks.append(texts.INDEXING)
    return "\n\n".join(blocks)


def history_text(history: History, zone: ZoneInfo) -> str:
    """The messages of a session in their order; the end says how to go on to older ones."""
    blocks = [f"sessionKey {history.session_key}", *(said_text(said, zone) for said in history.messages)]
    if not history.messages:
        blocks.append("No messages there.")
    if history.next_offset is not None:
        blocks.append(f"[Older messages: offset {history.next_offset}.]")
    return "\n\n".join(blocks)


def said_text(said: Said, zone: ZoneInfo) -> str:
    return texts.session_message(said.message, said.ref, said.cut, zone)


def _bytes(shape: Mapping[str, Any]) -> int:
    """As JSON in UTF-8, with the comma after it."""
    return len(json.dumps(shape, ensure_ascii=False, default=str).encode("utf-8", "replace")) + 2
