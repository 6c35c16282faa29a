"""Reads the events of one reply in the Messages format.

Format: https://platform.claude.com/docs/en/build-with-claude/streaming (compatible servers differ in small ways, all
met here). A whole message instead of a stream is read too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from agent.providers import errors
from agent.providers.anthropic_wire import PROVIDER
from agent.providers.events import members
from agent.types import StreamChunk, Usage

Json = dict[str, Any]
_STOPS = {"tool_use": "calls", "max_tokens": "length", "model_context_window_exceeded": "length"}
_FIGURES = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


@dataclass(slots=True)
class _Block:
    """A content block that is arriving. `given` is the input a call began with, `pieces` what came after."""

    kind: str
    index: int | None
    id: str | None = None
    name: str | None = None
    given: Json = field(default_factory=dict[str, Any])
    signature: str = ""
    data: str = ""
    pieces: list[str] = field(default_factory=list[str])
    ended: bool = False


class StreamReader:
    """`end()` gives the last chunks, nothing when no stop reason came. `secret` is kept out of the service's messages.
    `model` and `after` (the digest of the request) go with what was thought before calls."""

    def __init__(self, secret: str = "", model: str = "", after: str = "") -> None:
        self.complete = False
        self._secret = secret
        self._model = model
        self._after = after
        self._reason = ""
        self._counts: dict[str, int] = {}
        self._blocks: list[_Block] = []
        self._by_index: dict[int | None, _Block] = {}

    @property
    def finished(self) -> bool:
        """The reply is whole."""
        return bool(self._reason)

    def read(self, event: object) -> list[StreamChunk]:
        """The chunks of one event. Raises ProviderError for an error event and for a reply the service withheld."""
        fields = members(event)
        kind = fields.get("type")
        if kind == "error" or fields.get("error"):
            raise errors.refusal(None, fields, self._secret)
        chunks: list[StreamChunk] = []
        if self.complete:
            return chunks
        if kind == "content_block_delta":
            return self._delta(_index(fields), members(fields.get("delta")))
        if kind == "content_block_start":
            return self._begin(_index(fields), members(fields.get("content_block")))
        if kind == "content_block_stop":
            block = self._by_index.get(_index(fields))
            return [] if block is None else self._end_block(block)
        if kind == "message_start":
            self._count(members(fields.get("message")).get("usage"))
        elif kind == "message_delta":
            self._count(fields.get("usage"))
            self._stop(members(fields.get("delta")).get("stop_reason"))
        elif kind == "message_stop":
            self.complete = True
        elif kind == "message":
            content = fields.get("content")
            for n, block in enumerate(cast("list[object]", content) if isinstance(content, list) else ()):
                chunks += self._begin(n, members(block))
                chunks += self._end_block(self._blocks[-1])
            self._count(fields.get("usage"))
            self._stop(fields.get("stop_reason"))
        return chunks

    def end(self) -> list[StreamChunk]:
        """The last chunks of a whole reply."""
        if not self._reason:
            return []
        chunks = [chunk for block in self._blocks for chunk in self._end_block(block)]
        reasoning = self._reasoning()
        if reasoning is not None:
            chunks.append(StreamChunk("reasoning", reasoning=reasoning))
        called = any(block.kind == "tool_use" for block in self._blocks)
        stop = _STOPS.get(self._reason, "calls" if called else "end")
        return [*chunks, StreamChunk("usage", usage=self._usage()), StreamChunk("stop", text=stop)]

    def _begin(self, index: int | None, content: Mapping[str, Any]) -> list[StreamChunk]:
        block = _Block(_text(content.get("type")), index)
        self._blocks.append(block)
        self._by_index[index] = block
        if block.kind == "tool_use":
            block.id, block.name = _text(content.get("id")) or None, _text(content.get("name")) or None
            block.given = dict(members(content.get("input")))
            return [StreamChunk("call", index=index, call_id=block.id, name=block.name)]
        block.signature, block.data = _text(content.get("signature")), _text(content.get("data"))
        return list(self._say(block, _text(content.get(block.kind)))) if block.kind in ("text", "thinking") else []

    def _delta(self, index: int | None, delta: Mapping[str, Any]) -> list[StreamChunk]:
        block = self._by_index.get(index)
        if block is None:
            # A server that does not announce its blocks.
            block = _Block(_text(delta.get("type")).removesuffix("_delta"), index)
            self._blocks.append(block)
            self._by_index[index] = block
        kind = delta.get("type")
        if kind == "input_json_delta":
            piece = _text(delta.get("partial_json"))
            if block.kind != "tool_use" or not piece:  # a tool of the service's own is its own business
                return []
            block.pieces.append(piece)
            return [StreamChunk("call", index=index, arguments=piece)]
        if kind in ("text_delta", "thinking_delta"):
            return list(self._say(block, _text(delta.get(kind.removesuffix("_delta")))))
        if kind == "signature_delta":
            block.signature += _text(delta.get("signature"))
        return []

    def _say(self, block: _Block, text: str) -> Iterator[StreamChunk]:
        if text:
            block.pieces.append(text)
            yield StreamChunk("thinking" if block.kind == "thinking" else "text", text=text)

    def _end_block(self, block: _Block) -> list[StreamChunk]:
        ended, block.ended = block.ended, True
        if ended or block.kind != "tool_use" or block.pieces or not block.given:
            return []
        return [StreamChunk("call", index=block.index, call_id=block.id, arguments_object=block.given)]

    def _stop(self, reason: object) -> None:
        if isinstance(reason, str) and reason:
            if reason == "refusal":
                raise errors.failure(errors.WITHHELD)
            self._reason = reason

    def _count(self, usage: object) -> None:
        """The figures of a later event replace those before, each by itself: they are no sums."""
        stated = members(usage)
        self._counts.update({name: n for name in _FIGURES if isinstance(n := stated.get(name), int) and n >= 0})

    def _usage(self) -> Usage:
        figures = (self._counts.get(name, 0) for name in _FIGURES)
        return Usage(*figures, requests=1)

    def _reasoning(self) -> Json | None:
        """The reply block by block, when thinking led to calls; None too when it could not be sent back as it was."""
        kinds = {block.kind for block in self._blocks}
        if "tool_use" not in kinds or not kinds & {"thinking", "redacted_thinking"}:
            return None
        sent = [_as_sent(block) for block in self._blocks if block.kind != "text" or "".join(block.pieces).strip()]
        blocks = [block for block in sent if block is not None]
        if len(blocks) < len(sent):
            return None
        return {"provider": PROVIDER, "model": self._model, "after": self._after, "blocks": blocks}


def _as_sent(block: _Block) -> Json | None:
    text = "".join(block.pieces)
    if block.kind == "text":
        return {"type": "text", "text": text}
    if block.kind == "thinking" and block.signature:
        return {"type": "thinking", "thinking": text, "signature": block.signature}
    if block.kind == "redacted_thinking" and block.data:
        return {"type": "redacted_thinking", "data": block.data}
    if block.kind == "tool_use":
        try:
            value = json.loads(text) if text.strip() else block.given
        except (ValueError, RecursionError):
            return None
        return {"type": "tool_use", "id": block.id, "name": block.name, "input": value}
    return None


def _index(fields: Mapping[str, Any]) -> int | None:
    index = fields.get("index")
    return index if isinstance(index, int) else None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
