"""The paths of the page and its API (docs/formats.md): each handler turns one request into one call."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime
from mimetypes import guess_type
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

from aiohttp import web

from channels.channel import Accept, ChannelMemory, NotAccepted, Uploads
from channels.inapp.answers import ApiError, bad, json_answer
from channels.inapp.bodies import body_object, message_text
from channels.inapp.events import Event, EventHub
from channels.inapp.limits import KEY_CHARS_MAX, RETRY_SECONDS
from channels.inapp.links import LinkRoutes
from channels.inapp.openai_api import OpenAiApi
from channels.inapp.page import front
from channels.inapp.ports import Backend, BadQuery, Json, NotDone, UnknownConversation
from channels.inapp.render import to_html
from channels.inapp.security import HEADERS, Guard
from channels.inapp.settings import OWNER_ID
from channels.inapp.uploads import attached, taken
from channels.message import KIND_OF, InboundMessage

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_SHOWN_INLINE = {"image/png", "image/jpeg", "image/gif", "image/webp"}
_SHOWN_AS_TEXT = {"text/plain", "text/markdown", "text/csv", "application/json"}
_RENDERED = {"assistant", "system"}
_LINK_REMEDY = "Run `hudhud status --link` and open the address it prints."


class Api:
    """The handlers. `accept` gives what takes messages, None while the gateway is starting."""

    def __init__(
        self,
        backend: Backend,
        hub: EventHub,
        guard: Guard,
        accept: Callable[[], Accept | None],
        uploads: Uploads,
        memory: ChannelMemory,
        now: Callable[[], datetime],
    ) -> None:
        self._backend = backend
        self._hub = hub
        self._guard = guard
        self._accept = accept
        self._uploads = uploads
        self._now = now
        self._links = LinkRoutes(backend)
        self._completions = OpenAiApi(backend, hub, memory, accept, now)

    def routes(self) -> list[web.RouteDef]:
        """Every path but the page and its files needs the token or the cookie; all check where they come from."""
        get, post = web.get, web.post
        return [
            get("/", self._page, allow_head=False),
            get("/assets/{path:.+}", self._checked(front.asset)),
            post("/api/messages", self._checked(self._post_message)),
            post("/api/uploads", self._checked(self._upload)),
            post("/api/stop", self._checked(self._stop)),
            post("/api/approvals/{id}", self._checked(self._approve)),
            get("/api/events", self._checked(self._events), allow_head=False),
            get("/api/conversations", self._checked(self._conversations)),
            get("/api/conversations/{id}", self._checked(self._conversation)),
            web.delete("/api/conversations/{id}", self._checked(self._remove)),
            get("/api/search", self._checked(self._search)),
            get("/api/status", self._checked(self._status)),
            get("/api/index", self._checked(self._index)),
            post("/api/index/{what:update|rebuild|check}", self._checked(self._index_work)),
            get("/api/usage", self._checked(self._usage)),
            get("/api/runs", self._checked(self._runs)),
            get("/api/jobs", self._checked(self._jobs)),
            get("/api/link", self._checked(self._link)),
            post("/api/deliveries/{key}/retry", self._checked(self._retry)),
            post("/api/heartbeat/{name}/run", self._checked(self._run_job)),
            post("/api/heartbeat/{name}/switch", self._checked(self._switch_job)),
            get("/api/files/{path:.+}", self._checked(self._file)),
            *self._links.routes(self._checked),
            *self._completions.routes(self._checked),
        ]

    def _checked(self, handler: Handler) -> Handler:
        async def checked(request: web.Request) -> web.StreamResponse:
            try:
                self._check_origin(request)
                if not self._guard.knows(request):
                    raise ApiError(401, "unauthorized", "This address needs a token or a fresh link.", _LINK_REMEDY)
                return await handler(request)
            except ApiError as error:
                response = json_answer(error.body, error.status)
                if error.status == 503:
                    response.headers["Retry-After"] = str(RETRY_SECONDS)
                return response

        return checked

    def _check_origin(self, request: web.Request, *, navigation: bool = False) -> None:
        if not self._guard.trusts_host(request):
            remedy = "Open the page by its IP address, or by localhost on the machine itself."
            raise ApiError(403, "wrong_host", "This host name is not one of this server.", remedy)
        if not self._guard.same_origin(request, navigation=navigation):
            raise ApiError(403, "cross_site", "Requests from other sites are not taken.", "Use the page itself.")

    async def _page(self, request: web.Request) -> web.StreamResponse:
        """The page; with a good one-time code a cookie first; without credentials how to get a link."""
        try:
            self._check_origin(request, navigation=True)
        except ApiError as error:
            return json_answer(error.body, error.status)
        code = request.query.get("code")
        if code and not self._guard.knows(request):
            if not self._guard.redeem(code):
                return front.welcome(request, code_was_bad=True)
            response = front.enter(request)
            self._guard.set_cookie(request, response)
            return response
        if not self._guard.knows(request):
            return front.welcome(request)
        return front.enter(request) if code else front.page(request)

    async def _post_message(self, request: web.Request) -> web.StreamResponse:
        """Answers 202 after the message is on disk."""
        accept = self._accept()
        if accept is None:
            raise ApiError(503, "starting", "The gateway is starting.", "Send the message again in a moment.")
        body = await body_object(request)
        files = attached(body.get("attachments"), self._uploads)
        text, wanted, key = _posted(body, may_be_empty=bool(files))
        try:
            conversation = await self._backend.conversation_for_message(wanted, key)
            accepted = await accept(
                InboundMessage(
                    channel="inapp",
                    chat_id=conversation,
                    message_id=key,
                    sender_id=OWNER_ID,
                    sender_name="Owner",
                    text=text,
                    sent_at=self._now(),
                    key=key,
                    kind=KIND_OF.get(files[0].kind, "file") if files else "text",
                    attachments=files,
                )
            )
        except UnknownConversation as error:
            raise _unknown(wanted or "") from error
        except NotAccepted as error:
            remedy = "Send the message again in a moment; with the same key it is taken once."
            raise ApiError(503, "not_accepted", str(error), remedy) from error
        return json_answer({"message_id": accepted.message_id, "conversation": accepted.conversation_id}, 202)

    async def _upload(self, request: web.Request) -> web.StreamResponse:
        """Files of a multipart body; what it answers with are the ids that `attachments` takes."""
        return json_answer(await taken(request, self._uploads))

    async def _stop(self, request: web.Request) -> web.StreamResponse:
        conversation = (await body_object(request)).get("conversation")
        if not isinstance(conversation, str):
            bad("`conversation` must be the id of a conversation.")
        try:
            return json_answer({"stopped": await self._backend.stop(conversation)})
        except UnknownConversation as error:
            raise _unknown(conversation) from error

    async def _approve(self, request: web.Request) -> web.StreamResponse:
        """Consent or refusal; 404 when the question was answered already, or its time is over."""
        approve = (await body_object(request)).get("approve")
        if not isinstance(approve, bool):
            bad("`approve` must be true or false.")
        if not await self._backend.approve(request.match_info["id"], approve):
            raise ApiError(404, "not_open", "This question is no longer open.", "Nothing is left to do.")
        return json_answer({"answered": True})

    async def _events(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(
            headers={
                **HEADERS,
                "Content-Type": "text/event-stream; charset=utf-8",
                "Cache-Control": "no-store",
                "X-Accel-Buffering": "no",
            }
        )
        last = request.headers.get("Last-Event-ID") or request.query.get("last_event_id")
        await response.prepare(request)
        try:
            batches: AsyncGenerator[Sequence[Event]] = self._hub.subscribe(last)
            async with aclosing(batches):
                async for batch in batches:
                    await response.write(b"".join(event.frame() for event in batch) or b": still here\n\n")
        except ConnectionResetError:
            pass  # The client left.
        return response

    async def _conversations(self, request: web.Request) -> web.StreamResponse:
        return json_answer(await _queried(self._backend.conversations(dict(request.query))))

    async def _conversation(self, request: web.Request) -> web.StreamResponse:
        """With `html=1` the agent's messages and notices carry `html` besides `text`."""
        conversation_id = request.match_info["id"]
        first, last = _number(request, "from"), _number(request, "to")
        try:
            found = await self._backend.conversation(conversation_id, first, last)
        except UnknownConversation as error:
            raise _unknown(conversation_id) from error
        if request.query.get("html") == "1":
            found = await asyncio.to_thread(_with_html, found)
        return json_answer(found)

    async def _remove(self, request: web.Request) -> web.StreamResponse:
        """Takes a conversation out for good, after what runs in it was stopped."""
        conversation_id = request.match_info["id"]
        try:
            return json_answer(await self._backend.remove_conversation(conversation_id))
        except UnknownConversation as error:
            raise _unknown(conversation_id) from error
        except NotDone as error:
            raise ApiError(409, "in_use", str(error), "Try again in a moment.") from error

    async def _search(self, request: web.Request) -> web.StreamResponse:
        if not request.query.get("query", "").strip():
            bad("`query` is missing: the words to look for.")
        return json_answer(await _queried(self._backend.search(dict(request.query))))

    async def _status(self, request: web.Request) -> web.StreamResponse:
        return json_answer(await self._backend.status())

    async def _index(self, request: web.Request) -> web.StreamResponse:
        return json_answer(await _done(self._backend.index_status()))

    async def _index_work(self, request: web.Request) -> web.StreamResponse:
        what: Any = request.match_info["what"]
        found = await _done(self._backend.index_work(what))
        return json_answer(found, 200 if what == "check" else 202)

    async def _usage(self, request: web.Request) -> web.StreamResponse:
        return json_answer(await _queried(self._backend.usage(dict(request.query))))

    async def _runs(self, request: web.Request) -> web.StreamResponse:
        return json_answer(await self._backend.runs())

    async def _link(self, request: web.Request) -> web.StreamResponse:
        """A fresh path of the page with a one-time code, for whoever is let in already."""
        return json_answer({"link": f"/?code={self._guard.new_code()}"})

    async def _retry(self, request: web.Request) -> web.StreamResponse:
        key = request.match_info["key"]
        if not await self._backend.retry_delivery(key):
            remedy = "`hudhud queue list` shows the replies there are."
            raise ApiError(404, "not_found", f"No reply that could be sent again has the key {key}.", remedy)
        return json_answer({"key": key, "state": "retry"}, 202)

    async def _jobs(self, request: web.Request) -> web.StreamResponse:
        return json_answer(await self._backend.jobs())

    async def _run_job(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        asked: Mapping[str, Any] = await body_object(request) if request.content_length else {}
        arguments: Any = asked.get("arguments") or {}
        if not isinstance(arguments, dict):
            bad("`arguments` must be an object of texts.")
        values = {str(word): str(value) for word, value in cast("dict[Any, Any]", arguments).items()}
        await self._of_job(name, self._backend.run_job(name, asked.get("kind"), values))
        return json_answer({"name": name, "state": "waiting"}, 202)

    async def _switch_job(self, request: web.Request) -> web.StreamResponse:
        name, asked = request.match_info["name"], await body_object(request)
        if not isinstance(asked.get("on"), bool):
            bad("`on` must be true or false.")
        await self._of_job(name, self._backend.switch_job(name, asked["on"], asked.get("kind")))
        return json_answer({"name": name, "enabled": asked["on"]})

    @staticmethod
    async def _of_job(name: str, done: Awaitable[None]) -> None:
        try:
            await done
        except LookupError as error:
            remedy = "`hudhud heartbeat list` shows the jobs there are."
            raise ApiError(404, "not_found", f"No job is called {name}.", remedy) from error
        except NotDone as error:
            raise ApiError(409, "not_done", str(error)) from error
        except BadQuery as error:
            raise ApiError(400, "bad_query", str(error)) from error

    async def _file(self, request: web.Request) -> web.StreamResponse:
        """A workspace file: pictures and plain text are shown, everything else is a download."""
        asked = request.match_info["path"]
        try:
            path: Path = self._backend.workspace_file(asked)
        except FileNotFoundError as error:
            raise ApiError(404, "no_file", "There is no such file in the workspace.") from error
        kind = guess_type(path.name)[0] or ("text/plain" if path.suffix in {".log", ".jsonl"} else "")
        headers = {**HEADERS, "Cache-Control": "private, no-cache"}
        if kind in _SHOWN_INLINE:
            headers |= {"Content-Type": kind, "Content-Disposition": "inline"}
        elif kind in _SHOWN_AS_TEXT:
            headers |= {"Content-Type": "text/plain; charset=utf-8", "Content-Disposition": "inline"}
        else:
            name = quote(path.name.encode("utf-8", "replace"))
            headers |= {
                "Content-Type": "application/octet-stream",
                "Content-Disposition": f"attachment; filename*=UTF-8''{name}",
            }
        log = await asyncio.to_thread(self._backend.log_text, path)
        if log is not None:
            return web.Response(body=log.encode("utf-8", "replace"), headers=headers)
        return web.FileResponse(path, headers=headers)


def _posted(body: Mapping[str, Any], *, may_be_empty: bool) -> tuple[str, str | None, str]:
    """Text, wanted conversation and key of a posted message; raises ApiError for what cannot be taken."""
    text, wanted, key = body.get("text"), body.get("conversation"), body.get("key")
    if text is None and may_be_empty:
        text = ""
    if not isinstance(text, str):
        bad("`text` must be a string.")
    text = message_text(text, may_be_empty=may_be_empty)
    if wanted is not None and (not isinstance(wanted, str) or not wanted):
        bad("`conversation` must be the id of a conversation, or `new`.")
    if key is not None and (not isinstance(key, str) or not 0 < len(key) <= KEY_CHARS_MAX or not key.isprintable()):
        bad(f"`key` must be 1 to {KEY_CHARS_MAX} printable characters.")
    return text, wanted, key or secrets.token_hex(16)


async def _queried(answer: Awaitable[Json]) -> Json:
    try:
        return await answer
    except BadQuery as error:
        raise ApiError(400, "bad_query", str(error)) from error


async def _done(answer: Awaitable[Json]) -> Json:
    try:
        return await answer
    except NotDone as error:
        raise ApiError(409, "not_done", str(error)) from error


def _number(request: web.Request, name: str) -> int | None:
    text = request.query.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        bad(f"`{name}` must be the number of a message.")
    return int(text)


def _with_html(conversation: Json) -> Json:
    messages = [
        {**message, "html": to_html(message["text"])} if message["role"] in _RENDERED else message
        for message in conversation["messages"]
    ]
    return {**conversation, "messages": messages}


def _unknown(conversation_id: str) -> ApiError:
    return ApiError(404, "no_conversation", f"There is no conversation `{conversation_id[:80]}`.")
