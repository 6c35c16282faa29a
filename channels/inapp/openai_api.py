"""The API that other programs speak: `POST /v1/chat/completions` and `GET /v1/models`, as OpenAI's.

Each call is one message to the agent. `user`, or the header `X-Session-Key`, keeps a conversation; without one each
call is a conversation of its own, and what the program sent before the last message goes along as text.
Format: https://platform.openai.com/docs/api-reference/chat
"""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from aiohttp import web

from channels.channel import Accept, ChannelMemory, NotAccepted
from channels.inapp.answers import ApiError, bad, json_answer
from channels.inapp.bodies import body_object, message_text
from channels.inapp.events import Event, EventHub
from channels.inapp.limits import SESSION_CHARS_MAX
from channels.inapp.ports import Backend, Json, UnknownConversation
from channels.inapp.security import HEADERS
from channels.inapp.settings import OWNER_ID
from channels.message import InboundMessage

MODEL = "hudhud"
_BEFORE = "What was said before, as the program that asks has it:"


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of an answer: more `text`, or at the end (`is_last`) the whole of it."""

    text: str
    is_last: bool = False


class OpenAiApi:
    """The handlers. `accept` gives what takes messages, None while the gateway is starting."""

    def __init__(
        self,
        backend: Backend,
        hub: EventHub,
        memory: ChannelMemory,
        accept: Callable[[], Accept | None],
        now: Callable[[], datetime],
    ) -> None:
        self._backend = backend
        self._hub = hub
        self._memory = memory
        self._accept = accept
        self._now = now

    def routes(self, checked: Callable[[Handler], Handler]) -> list[web.RouteDef]:
        """`checked` guards a handler as it does those of the page's own API."""
        return [
            web.get("/v1/models", checked(self._models)),
            web.post("/v1/chat/completions", checked(self._complete)),
        ]

    async def _models(self, request: web.Request) -> web.StreamResponse:
        return json_answer(
            {"object": "list", "data": [{"id": MODEL, "object": "model", "created": 0, "owned_by": MODEL}]}
        )

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        accept = self._accept()
        if accept is None:
            raise ApiError(503, "starting", "The gateway is starting.", "Send the message again in a moment.")
        body = await body_object(request)
        session = request.headers.get("X-Session-Key") or body.get("user")
        if session is not None and (not isinstance(session, str) or not 0 < len(session) <= SESSION_CHARS_MAX):
            bad(f"`user` must be 1 to {SESSION_CHARS_MAX} characters.")
        text = _asked(body.get("messages"), keeps_history=session is not None)
        pieces = self._answer(accept, text, await self._conversation(session))
        head = {
            "id": f"chatcmpl-{secrets.token_hex(12)}",
            "created": int(self._now().timestamp()),
            "model": body.get("model") if isinstance(body.get("model"), str) else MODEL,
        }
        async with aclosing(pieces):
            if body.get("stream") is True:
                return await _streamed(request, head, pieces)
            async for piece in pieces:
                if piece.is_last:
                    choice = {
                        "index": 0,
                        "message": {"role": "assistant", "content": piece.text},
                        "finish_reason": "stop",
                    }
                    return json_answer({**head, "object": "chat.completion", "choices": [choice]})
        raise ApiError(503, "stopping", "The gateway is stopping.", "The message is kept and answered after the start.")

    async def _conversation(self, session: str | None) -> str:
        """The conversation of a session of a program, made with its first call."""
        if session is None:
            return await self._backend.conversation_for_message("new", secrets.token_hex(16))
        name = f"v1:{session}"
        known = await self._memory.get(name)
        if known is not None:
            try:
                return await self._backend.conversation_for_message(known, secrets.token_hex(16))
            except UnknownConversation:
                pass  # It was removed.
        made = await self._backend.conversation_for_message("new", secrets.token_hex(16))
        await self._memory.put(name, made)
        return made

    async def _answer(self, accept: Accept, text: str, conversation: str) -> AsyncGenerator[Piece]:
        """Puts the message into the queue, then follows what its turn shows. Raises ApiError."""
        key = secrets.token_hex(16)
        message = InboundMessage(
            channel="inapp",
            chat_id=conversation,
            message_id=key,
            sender_id=OWNER_ID,
            sender_name="Owner",
            text=text,
            sent_at=self._now(),
            key=key,
        )
        batches: AsyncGenerator[Sequence[Event]] = self._hub.subscribe(None)
        async with aclosing(batches):
            running = [event.data.get("running") for event in await anext(batches) if event.kind == "status"]
            # The turn that runs there already is another's: what it shows is not this answer.
            is_ours = conversation not in (running[0] if running and running[0] else ())
            try:
                accepted = await accept(message)
            except NotAccepted as error:
                raise ApiError(503, "not_accepted", str(error), "Send the message again in a moment.") from error
            number = 0
            async for batch in batches:
                if not batch:
                    yield Piece("")
                for event in batch:
                    if event.data.get("conversation") != conversation:
                        continue
                    if event.kind == "message" and event.data["message"]["id"] == accepted.message_id:
                        number = event.data["message"]["n"]
                    elif event.kind == "delta" and is_ours:
                        yield Piece(event.data["text"])
                    elif event.kind in {"done", "error"}:
                        if await self._is_open(conversation, number):
                            is_ours = True
                            continue
                        if event.kind == "error":
                            raise ApiError(500, "failed", str(event.data.get("message") or "The turn failed."))
                        reply: Any = event.data.get("message")  # None: stopped before anything was said
                        yield Piece(reply["text"] if reply else "", is_last=True)
                        return

    async def _is_open(self, conversation: str, number: int) -> bool:
        """Whether the message still waits for its answer."""
        if not number:
            return True
        found = await self._backend.conversation(conversation, number, number)
        return any(one["state"] in {"waiting", "running"} for one in found["messages"])


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


async def _streamed(request: web.Request, head: Mapping[str, Any], pieces: AsyncIterator[Piece]) -> web.StreamResponse:
    """The answer as it comes. What a turn took back (a second try, text before a tool call) cannot be taken back here:
    the whole answer then follows it as a paragraph of its own."""
    response = web.StreamResponse(
        headers={**HEADERS, "Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-store"}
    )
    chunk = {**head, "object": "chat.completion.chunk"}
    shown = ""

    async def say(delta: Json, finish: str | None = None) -> None:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        text = json.dumps({**chunk, "choices": [choice]}, ensure_ascii=False, separators=(",", ":"))
        await response.write(f"data: {text}\n\n".encode("utf-8", "replace"))

    await response.prepare(request)
    try:
        await say({"role": "assistant", "content": ""})
        async for piece in pieces:
            if piece.is_last:
                rest = piece.text.removeprefix(shown) if piece.text.startswith(shown) else f"\n\n{piece.text}"
                if rest:
                    await say({"content": rest})
                await say({}, "stop")
                await response.write(b"data: [DONE]\n\n")
            elif piece.text:
                shown += piece.text
                await say({"content": piece.text})
            else:
                await response.write(b": still here\n\n")
    except ApiError as error:
        await response.write(f"data: {json.dumps(error.body)}\n\n".encode())
    except ConnectionResetError:
        pass  # The client left; its message is answered all the same.
    return response


def _asked(messages: Any, *, keeps_history: bool) -> str:
    """The text for the agent: the last message, and where nothing keeps the history what came before it."""
    if not isinstance(messages, list) or not messages:
        bad("`messages` must be a list of messages.")
    said = [_said(message) for message in cast("list[Any]", messages)]
    role, text = said[-1]
    if role != "user":
        bad("The last message must be the user's.")
    if keeps_history or len(said) == 1:
        return message_text(text)
    before = "\n".join(f"[{role}] {words}" for role, words in said[:-1])
    return message_text(f"{_BEFORE}\n\n{before}\n\n{text}")


def _said(message: Any) -> tuple[str, str]:
    """Role and text of one message; its content is a text or a list of parts."""
    if not isinstance(message, dict):
        bad("Each message must be an object with `role` and `content`.")
    fields = cast("dict[str, Any]", message)
    role, content = fields.get("role"), fields.get("content")
    if isinstance(content, list):
        content = "".join(_text_of(part) for part in cast("list[Any]", content))
    if not isinstance(role, str) or not isinstance(content, str | None):
        bad("Each message must be an object with `role` and `content`.")
    return role, content or ""


def _text_of(part: Any) -> str:
    fields = cast("dict[str, Any]", part) if isinstance(part, dict) else {}
    text = fields.get("text")
    if fields.get("type") != "text" or not isinstance(text, str):
        bad("Only parts of type `text` are taken here.")
    return text
