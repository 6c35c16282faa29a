"""A Telegram Bot API server for tests: strict like the real one, scriptable where the real one is merely unkind.

In a test: `async with BotApi() as api:` then `api.base_url`, `api.token`, `api.push_text(...)`, `api.sent`.
As a program: `python -m tests.fakes.bot_api --port 0 --journal FILE` prints its address, keeps its state while a
gateway is killed and started again, and is steered over `/control/` (see `_control`).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import signal
import sys
import time
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TextIO, cast

from aiohttp import BodyPartReader, web

BOT_ID = 4242
TOKEN = f"{BOT_ID}:AAF-fake-token-of-the-tests"
USERNAME = "demo_bot"
TEXT_UNITS_MAX = 4096
ENTITIES_MAX = 100
CAPTION_UNITS_MAX = 1024
DOWNLOAD_BYTES_MAX = 20 * 1024 * 1024

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong with one call.

    `status` and the rest of the first line: that answer instead of processing (`body` None: the Bot API's own error
    object). `drop`: the connection is closed, `before` or `after` the call was done. `body` with status 200: the
    call is done, the answer is this text. `delay_seconds`: the call is late; `hold`: late until the event is set.
    `chat_id`: only a call for that chat.
    """

    status: int = 0
    description: str = ""
    parameters: Mapping[str, int] | None = None
    body: str | None = None
    drop: str = ""
    delay_seconds: float = 0.0
    hold: asyncio.Event | None = None
    chat_id: int | None = None


def flood(seconds: int, chat_id: int | None = None) -> Fault:
    """429 with `retry_after`."""
    description = f"Too Many Requests: retry after {seconds}"
    return Fault(429, description, {"retry_after": seconds}, chat_id=chat_id)


CONFLICT = Fault(
    409, "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
)
CANNOT_PARSE = Fault(400, "Bad Request: can't parse entities: Can't find end of the entity starting at byte offset 7")
BAD_GATEWAY = Fault(502, body="<html><h1>502 Bad Gateway</h1></html>")
GARBAGE = Fault(200, body='{"ok": tru')
DROPPED_BEFORE = Fault(drop="before")
DROPPED_AFTER = Fault(drop="after")


@dataclass(frozen=True, slots=True)
class Sent:
    """A message that reached its chat. `at` in seconds of the monotonic clock; `edits`: the id it replaced; `file`: the
    name of the file it is, with `text` as its caption; `buttons`: their labels and data."""

    chat_id: int
    message_id: int
    text: str
    entities: list[Json]
    thread_id: int | None
    reply_to: int | None
    at: float
    edits: int | None = None
    file: str | None = None
    buttons: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])


class Refused(Exception):
    """The Bot API says no."""

    def __init__(self, status: int, description: str, parameters: Mapping[str, int] | None = None) -> None:
        super().__init__(description)
        self.status = status
        self.parameters = parameters


@dataclass
class BotApi:
    """The server and all its state. Times are seconds."""

    token: str = TOKEN
    port: int = 0
    journal: Path | None = None
    pending: dict[int, Json] = field(default_factory=dict[int, Json])
    sent: list[Sent] = field(default_factory=list[Sent])
    calls: list[tuple[str, Json]] = field(default_factory=list[tuple[str, Json]])
    chats: dict[int, str] = field(default_factory=dict[int, str])
    blocked: set[int] = field(default_factory=set[int])
    migrated: dict[int, int] = field(default_factory=dict[int, int])
    threads: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    files: dict[str, bytes | Path] = field(default_factory=dict[str, "bytes | Path"])
    """What getFile gives out, by file id; a Path is a file on the disk that we share with the server."""
    uploaded: dict[int, bytes] = field(default_factory=dict[int, bytes])
    webhook: Json = field(default_factory=dict[str, Any])
    slow_files: asyncio.Event | None = None
    """While it is not set, downloads hang."""
    rule: Callable[[str, Json], Fault | None] | None = None
    next_update_id: int = 500
    confirmed: int = 0

    def __post_init__(self) -> None:
        self._faults: dict[str, deque[Fault]] = defaultdict(deque)
        self._changed = asyncio.Condition()
        self._poller: asyncio.Future[None] | None = None
        self._next_message_id: dict[int, int] = defaultdict(lambda: 1)
        self._runner: web.ServerRunner | None = None
        self._file: TextIO | None = None
        self.stopping = asyncio.Event()

    # -- life

    async def __aenter__(self) -> BotApi:
        if self.journal is not None:
            self._file = self.journal.open("a", encoding="utf-8")
        server = web.Server(self._handle, access_log=None)
        self._runner = web.ServerRunner(server, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port)
        await site.start()
        self.port = int(self._runner.addresses[0][1])
        return self

    async def __aexit__(self, *_: object) -> None:
        self.stopping.set()
        if self._poller is not None and not self._poller.done():
            self._poller.cancel()
        if self._runner is not None:
            await self._runner.cleanup()
        if self._file is not None:
            self._file.close()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    # -- what a test does

    def push(self, update: Json, update_id: int | None = None) -> int:
        """Queues an update (`{"message": {...}}`) under the next number; it stays until it is confirmed."""
        number = self.next_update_id if update_id is None else update_id
        self.next_update_id = max(self.next_update_id, number + 1)
        for part in update.values():
            chat = cast("Json", part).get("chat") if isinstance(part, dict) else None
            if isinstance(chat, dict):
                chat = cast("Json", chat)
                self.chats.setdefault(chat["id"], chat.get("type", "private"))
        self.pending[number] = {"update_id": number, **update}
        self._note("pushed", self.pending[number])
        if self._poller is not None and self.polling:
            self._poller.set_result(None)
        return number

    def push_text(self, chat_id: int, text: str, **more: Any) -> int:
        """Queues a text as `text_update` makes it; returns the update's number."""
        return self.push({"message": self.message(chat_id, text, **more)})

    def message(
        self,
        chat_id: int,
        text: str,
        *,
        user_id: int | None = None,
        name: str = "Sara",
        language: str = "en",
        chat_type: str | None = None,
        title: str = "Group",
        thread_id: int | None = None,
        message_id: int | None = None,
        **fields: Any,
    ) -> Json:
        """A message as Telegram builds it, with its entities for commands and mentions."""
        kind = chat_type or ("private" if chat_id > 0 else "supergroup")
        number = self._number(chat_id) if message_id is None else message_id
        message: Json = {
            "message_id": number,
            "from": {
                "id": user_id or abs(chat_id),
                "is_bot": False,
                "first_name": name,
                "language_code": language,
            },
            "chat": {"id": chat_id, "type": kind} | ({} if kind == "private" else {"title": title}),
            "date": 1_790_000_000 + number,
            "text": text,
        }
        entities = [
            {
                "type": "mention" if match[0][0] == "@" else "bot_command",
                "offset": units(text[: match.start()]),
                "length": units(match[0]),
            }
            for match in re.finditer(r"(?<!\S)(?:/[A-Za-z0-9_]+(?:@\w+)?|@\w{4,})", text)
        ]
        if entities:
            message["entities"] = entities
        if thread_id is not None:
            message |= {"message_thread_id": thread_id, "is_topic_message": True}
            self.threads.add((chat_id, thread_id))
        return message | fields

    def script(self, method: str, *faults: Fault) -> None:
        """The next calls of the method meet these faults, one each."""
        self._faults[method].extend(faults)

    @property
    def polling(self) -> bool:
        """A long poll is waiting for news."""
        return self._poller is not None and not self._poller.done()

    def count(self, method: str) -> int:
        """How often the method was called, refused and broken calls included."""
        return sum(name == method for name, _ in self.calls)

    async def until(self, condition: Callable[[], bool], timeout_seconds: float = 5.0) -> None:
        """Waits until the condition holds; it is looked at before and after each call. Raises TimeoutError."""
        async with asyncio.timeout(timeout_seconds), self._changed:
            await self._changed.wait_for(condition)

    def shown(self, chat_id: int) -> list[str]:
        """What stands in the chat now, edits made, in order."""
        texts: dict[int, str] = {}
        for message in self.sent:
            if message.chat_id == chat_id:
                texts[message.edits or message.message_id] = message.text
        return list(texts.values())

    def now_shown(self, chat_id: int, message_id: int) -> Sent | None:
        """A message as it stands now."""
        found = [one for one in self.sent if one.chat_id == chat_id and one.message_id == message_id]
        return found[-1] if found else None

    async def post_webhook(self, session: Any, update_id: int, url: str | None = None, secret: str = "") -> int:
        """Posts a pending update as Telegram does; it is gone when it was answered with 200. The status."""
        headers = {"X-Telegram-Bot-Api-Secret-Token": secret or str(self.webhook.get("secret_token", ""))}
        async with session.post(url or self.webhook["url"], json=self.pending[update_id], headers=headers) as response:
            if response.status == 200:
                del self.pending[update_id]
            return int(response.status)

    # -- the server

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path.startswith("/file/bot"):
            return await self._download(request)
        found = re.fullmatch(r"/bot([^/]+)/(\w+)", request.path)
        if found is None:
            return await self._control(request)
        parameters = await _parameters(request)
        method = found[2]
        self.calls.append((method, parameters))
        await self._tell()
        try:
            if found[1] != self.token:
                raise Refused(401 if re.fullmatch(r"\d+:.+", found[1]) else 404, "Unauthorized")
            return await self._answer(request, method, parameters)
        except Refused as refusal:
            return self._error(refusal.status, str(refusal), refusal.parameters)
        finally:
            await self._tell()

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def _answer(self, request: web.BaseRequest, method: str, parameters: Json) -> web.StreamResponse:
        fault = self._fault(method, parameters)
        if fault is not None:
            await asyncio.sleep(fault.delay_seconds)
            if fault.hold is not None:
                await fault.hold.wait()
            if fault.status >= 300 and fault.body is None:
                raise Refused(fault.status, fault.description, fault.parameters)
            if fault.status >= 300:
                return web.Response(status=fault.status, text=fault.body)
            if fault.drop == "before":
                return self._drop(request)
        result = await self._run(method, parameters)
        if fault is not None and fault.drop == "after":
            return self._drop(request)
        if fault is not None and fault.body is not None:
            return web.Response(text=fault.body)
        return web.Response(body=json.dumps({"ok": True, "result": result}).encode(), content_type="application/json")

    def _fault(self, method: str, parameters: Json) -> Fault | None:
        queue = self._faults[method]
        for fault in queue:
            if fault.chat_id is None or str(fault.chat_id) == str(parameters.get("chat_id")):
                queue.remove(fault)
                return fault
        return self.rule(method, parameters) if self.rule is not None else None

    async def _run(self, method: str, parameters: Json) -> Any:
        match method:
            case "getUpdates":
                return await self._get_updates(parameters)
            case "sendMessage" | "editMessageText" | "sendDocument" | "sendPhoto":
                return self._sending(method, parameters)
            case "getFile":
                return self._file_of(parameters)
            case "getMe":
                return {"id": BOT_ID, "is_bot": True, "first_name": "Demo", "username": USERNAME}
            case "sendChatAction":
                self._address(parameters)
                return True
            case "getWebhookInfo":
                return {"url": self.webhook.get("url", ""), "pending_update_count": len(self.pending)}
            case "deleteWebhook" | "setWebhook":
                self.webhook = parameters if method == "setWebhook" else {}
                if parameters.get("drop_pending_updates"):
                    self.pending.clear()
                return True
            case "setMyCommands" | "answerCallbackQuery":
                return True
            case _:
                raise Refused(404, "Not Found: method not found")

    async def _get_updates(self, parameters: Json) -> list[Json]:
        """Offset semantics of the Bot API: everything below the offset is confirmed and gone."""
        if self.webhook.get("url"):
            raise Refused(409, "Conflict: can't use getUpdates method while webhook is active")
        if self._poller is not None and not self._poller.done():
            # The newer request wins; the one that waits is told.
            self._poller.set_exception(Refused(409, CONFLICT.description))
        offset = int(parameters.get("offset") or 0)
        gone = [number for number in self.pending if number < offset]
        for number in gone:
            del self.pending[number]
        if gone:
            self.confirmed = max(gone)
            self._note("confirmed", {"below": offset})
        if not self.pending and parameters.get("timeout"):
            poller = self._poller = asyncio.get_running_loop().create_future()
            await self._tell()
            await asyncio.wait([poller], timeout=float(parameters["timeout"]))
            if poller.done():
                poller.result()
            else:
                poller.cancel()
        return [self.pending[number] for number in sorted(self.pending)][: int(parameters.get("limit") or 100)]

    def _address(self, parameters: Json) -> int:
        chat_id = int(parameters["chat_id"])
        if chat_id in self.migrated:
            description = "Bad Request: group chat was upgraded to a supergroup chat"
            raise Refused(400, description, {"migrate_to_chat_id": self.migrated[chat_id]})
        if chat_id in self.blocked:
            raise Refused(403, "Forbidden: bot was blocked by the user")
        if chat_id not in self.chats:
            raise Refused(400, "Bad Request: chat not found")
        thread_id = parameters.get("message_thread_id")
        if thread_id is not None and (chat_id, int(thread_id)) not in self.threads:
            raise Refused(400, "Bad Request: message thread not found")
        return chat_id

    def _sending(self, method: str, parameters: Json) -> Json:
        match method:
            case "sendMessage":
                return self._send(parameters)
            case "editMessageText":
                return self._send(parameters, edits=self._editable(parameters))
            case _:
                return self._send_file(parameters, method.removeprefix("send").lower())

    def _editable(self, parameters: Json) -> int:
        chat_id, message_id = self._address(parameters), int(parameters["message_id"])
        now = self.now_shown(chat_id, message_id)
        if now is None:
            raise Refused(400, "Bad Request: message to edit not found")
        same = (now.text, now.entities, now.buttons)
        if same == (parameters.get("text"), parameters.get("entities") or [], _buttons(parameters)):
            raise Refused(400, "Bad Request: message is not modified: specified new message content is the same")
        return message_id

    def _file_of(self, parameters: Json) -> Json:
        content = self.files.get(parameters["file_id"])
        if content is None:
            raise Refused(400, "Bad Request: wrong file_id or the file is temporarily unavailable")
        if isinstance(content, Path):
            return {"file_id": parameters["file_id"], "file_path": str(content)}
        if len(content) > DOWNLOAD_BYTES_MAX:
            raise Refused(400, "Bad Request: file is too big")
        return {"file_id": parameters["file_id"], "file_path": f"documents/{parameters['file_id']}"}

    async def _download(self, request: web.BaseRequest) -> web.StreamResponse:
        prefix = f"/file/bot{self.token}/documents/"
        content = self.files.get(request.path.removeprefix(prefix)) if request.path.startswith(prefix) else None
        self.calls.append(("download", {"path": request.path.rpartition("/")[2]}))
        await self._tell()
        if self.slow_files is not None:
            await self.slow_files.wait()
        if not isinstance(content, bytes):
            return self._error(404, "Not Found", None)
        return web.Response(body=content)

    def _send_file(self, parameters: Json, how: str) -> Json:
        name, content = parameters[how]
        sent = self._send({**parameters, "text": parameters.get("caption") or "", "file": name})
        self.uploaded[sent["message_id"]] = content
        return {**sent, how: [] if how == "photo" else {"file_id": "x", "file_unique_id": "x"}}

    def _send(self, parameters: Json, edits: int | None = None) -> Json:
        chat_id = self._address(parameters)
        text = parameters.get("text")
        file = parameters.get("file")
        entities: list[Json] = parameters.get("entities" if file is None else "caption_entities") or []
        if file is None and (not isinstance(text, str) or not text.strip()):
            raise Refused(400, "Bad Request: message text is empty")
        text = str(text)
        if file is not None and units(text) > CAPTION_UNITS_MAX:
            raise Refused(400, "Bad Request: message caption is too long")
        check_text(text, entities)
        reply: Json = parameters.get("reply_parameters") or {}
        thread_id = parameters.get("message_thread_id")
        message = Sent(
            chat_id=chat_id,
            message_id=self._number(chat_id) if edits is None else edits,
            text=text,
            entities=entities,
            thread_id=None if thread_id is None else int(thread_id),
            reply_to=reply.get("message_id"),
            at=time.monotonic(),
            edits=edits,
            file=file,
            buttons=_buttons(parameters),
        )
        self.sent.append(message)
        self._note("sent", asdict(message))
        return {
            "message_id": message.message_id,
            "date": 1_790_000_000,
            "chat": {"id": chat_id, "type": self.chats[chat_id]},
            "text": text,
        }

    def _number(self, chat_id: int) -> int:
        self._next_message_id[chat_id] += 1
        return self._next_message_id[chat_id] - 1

    def _drop(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.transport is not None:
            request.transport.abort()
        return web.Response()

    def _error(self, status: int, description: str, parameters: Mapping[str, int] | None) -> web.Response:
        body: Json = {"ok": False, "error_code": status, "description": description}
        return web.json_response(body | ({"parameters": dict(parameters)} if parameters else {}), status=status)

    def _note(self, event: str, data: Json) -> None:
        if self._file is not None:
            self._file.write(json.dumps({"event": event, "at": time.time(), **data}) + "\n")
            self._file.flush()

    # -- the program's remote control

    async def _control(self, request: web.BaseRequest) -> web.StreamResponse:
        """`POST /control/push_text` {chat_id, text, ...} or a list of them: {"update_ids"} · `POST /control/push`
        {update}: {"update_id"} · `GET /control/sent?from=N`: what was sent, from the Nth on · `GET /control/state`:
        {pending, confirmed, sent, calls} · `POST /control/script` {method, faults: [{status, ...}]} ·
        `POST /control/stop`.
        """
        command = request.path.removeprefix("/control/")
        data: Any = await request.json() if request.method == "POST" and request.can_read_body else {}
        match command:
            case "push_text":
                rows = cast("list[Json]", data if isinstance(data, list) else [data])
                return web.json_response({"update_ids": [self.push_text(**row) for row in rows]})
            case "push":
                return web.json_response({"update_id": self.push(data)})
            case "sent":
                start = int(request.query.get("from", "0"))
                return web.json_response({"sent": [asdict(message) for message in self.sent[start:]]})
            case "state":
                counts = {name: self.count(name) for name in {name for name, _ in self.calls}}
                state = {"pending": len(self.pending), "confirmed": self.confirmed, "sent": len(self.sent)}
                return web.json_response({**state, "calls": counts})
            case "script":
                self.script(data["method"], *(Fault(**fault) for fault in data["faults"]))
                return web.json_response({})
            case "stop":
                self.stopping.set()
                return web.json_response({})
            case _:
                return web.Response(status=404)


def units(text: str) -> int:
    """UTF-16 code units."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


async def _parameters(request: web.BaseRequest) -> Json:
    """The parameters of a call; a file is (name, bytes)."""
    if not request.content_type.startswith("multipart/"):
        raw = await request.read()
        return json.loads(raw) if raw else {}
    parameters: Json = {}
    async for part in await request.multipart():
        assert isinstance(part, BodyPartReader)
        content = bytearray()
        while chunk := await part.read_chunk():
            content += chunk
        if part.filename:
            parameters[str(part.name)] = (part.filename, bytes(content))
            continue
        text = bytes(content).decode()
        try:
            parameters[str(part.name)] = json.loads(text) if part.name not in {"caption", "text"} else text
        except ValueError:
            parameters[str(part.name)] = text
    return parameters


def _buttons(parameters: Json) -> list[tuple[str, str]]:
    markup: Json = parameters.get("reply_markup") or {}
    rows: list[list[Json]] = markup.get("inline_keyboard") or []
    return [(button["text"], button["callback_data"]) for row in rows for button in row]


def check_text(text: str, entities: list[Json]) -> None:
    """Refuses what the real server refuses, and what it silently repairs. Raises Refused."""
    try:
        data = text.encode("utf-8").decode("utf-8").encode("utf-16-le")
    except UnicodeEncodeError:
        raise Refused(400, "Bad Request: strings must be encoded in UTF-8") from None
    total = len(data) // 2
    if total > TEXT_UNITS_MAX:
        raise Refused(400, "Bad Request: message is too long")
    if len(entities) > ENTITIES_MAX:
        raise Refused(400, "Bad Request: too many entities")
    for entity in entities:
        start, size = int(entity["offset"]), int(entity["length"])
        if start < 0 or size <= 0 or start + size > total:
            raise Refused(400, "Bad Request: ENTITY_BOUNDS_INVALID")
        for border in (start, start + size):
            # A border between the two halves of a surrogate pair.
            if border < total and 0xDC <= data[2 * border + 1] <= 0xDF:
                raise Refused(400, "Bad Request: ENTITY_BOUNDS_INVALID")


async def _serve(port: int, journal: Path | None) -> None:
    async with BotApi(port=port, journal=journal) as api:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, api.stopping.set)
        sys.stdout.write(f"{api.base_url}\n")
        sys.stdout.flush()
        await api.stopping.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description="A Telegram Bot API server for tests.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--journal", type=Path)
    arguments = parser.parse_args()
    asyncio.run(_serve(arguments.port, arguments.journal))


if __name__ == "__main__":
    main()
