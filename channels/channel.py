"""What a channel is: three members, four errors, and what it is given."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from channels.message import Accepted, Attachment, AttachmentKind, InboundMessage, OutboundMessage, Receipt

Accept = Callable[[InboundMessage], Awaitable[Accepted]]

ChannelState = Literal[
    "starting",
    "connected",
    "degraded",
    "unreachable",
    "conflict",
    "replaced",
    "rejected",
    "logged_out",
    "banned",
    "outdated",
    "off",
]


@dataclass(frozen=True, slots=True)
class ChannelInfo:
    """What the gateway must know of a channel.

    `style` is one sentence for the model about what this channel can show.
    `conversations` says how a chat is cut: `idle` after a rest, `chat` never (the chat is the conversation),
    `message` (each message is a conversation of its own).
    `saved_is_sent`: the channel shows what is saved, so a saved reply is a delivered one and `send` is not called.
    `draft_interval_seconds`: how often a live draft may change in a private chat, in groups three times as seldom;
    None: the channel takes whole messages only, and cannot change what was sent.
    `silence_seconds_max`: a running channel reports `Health.received` at least this often; one that does not is dead
    and is started again. None: it may be silent for ever.
    """

    name: str
    style: str = ""
    conversations: Literal["idle", "chat", "message"] = "idle"
    saved_is_sent: bool = False
    draft_interval_seconds: float | None = None
    silence_seconds_max: float | None = None


class Channel(Protocol):
    """Mouth and ears on one platform.

    `run` connects and listens until it is cancelled: it awaits `accept(message)` for each message and tells the
    platform only after that returned. It raises `ChannelDown` when the connection is lost; the supervisor starts
    it again. `accept` raises `NotAccepted` when the message could not be saved: then nothing may be acknowledged.
    `send` works at any time, also while `run` is down, and raises `ChannelDown`, `SendRetry`, `SendRefused` or
    `SendUnknown`, nothing else.
    """

    @property
    def info(self) -> ChannelInfo: ...

    async def run(self, accept: Accept) -> None: ...

    async def send(self, message: OutboundMessage) -> Receipt: ...


class NotAccepted(Exception):
    """The message could not be saved (disk full, database locked); it must come again. `str()` is one sentence."""


class ChannelDown(Exception):
    """The connection is gone.

    `state` is what `channel_status` shows meanwhile. `terminal`: trying again is useless until a person acts.
    `retry_after_seconds` is the platform's own wait, where it named one.
    """

    def __init__(
        self,
        state: ChannelState,
        detail: str,
        *,
        remedy: str = "",
        terminal: bool = False,
        retry_after_seconds: float | None = None,
    ) -> None:
        super().__init__(detail)
        self.state: ChannelState = state
        self.detail = detail
        self.remedy = remedy
        self.terminal = terminal
        self.retry_after_seconds = retry_after_seconds


class SendError(Exception):
    """A send that did not succeed. `sent_ids`: the parts that did arrive before it failed, in order."""

    def __init__(self, reason: str, *, sent_ids: tuple[str, ...] = ()) -> None:
        super().__init__(reason)
        self.reason = reason
        self.sent_ids = sent_ids


class SendRetry(SendError):
    """Surely not sent; may be sent again. `after_seconds` is the platform's own wait, None when it named none."""

    def __init__(self, reason: str, *, after_seconds: float | None = None, sent_ids: tuple[str, ...] = ()) -> None:
        super().__init__(reason, sent_ids=sent_ids)
        self.after_seconds = after_seconds


class SendRefused(SendError):
    """Surely not sent, and the platform will not take it (chat gone, bot blocked, file too big)."""


class SendUnknown(SendError):
    """The line broke after the request left: nobody knows whether it arrived. Never sent again by itself."""


class Health(Protocol):
    """Where a channel says how it is. Each call is cheap and may come often."""

    def state(self, state: ChannelState, detail: str = "", remedy: str = "") -> None: ...

    def received(self) -> None:
        """The platform has just answered a request for news, with or without any."""
        ...


class ChannelMemory(Protocol):
    """Small durable facts of one channel (an offset, a migrated chat id); committed when `put` returns."""

    async def get(self, key: str) -> str | None: ...

    async def put(self, key: str, value: str) -> None: ...

    async def migrate_chat(self, old_chat_id: str, new_chat_id: str, *, renumbered: bool = False) -> None:
        """From now on `old_chat_id` of this channel means `new_chat_id`, in history, rights and targets.

        `renumbered`: the new chat counts its messages anew, so an id that both have stands for two messages.
        """
        ...


class FileTooBig(Exception):
    """A file is larger than may be taken; nothing of it was kept. The channel says so to who sent it."""

    def __init__(self, name: str, size_bytes_max: int) -> None:
        super().__init__(f"{name} is larger than {size_bytes_max // 1_000_000} MB")
        self.name = name
        self.size_bytes_max = size_bytes_max


class FileGone(Exception):
    """The platform does not give this file out (any more); asking again is useless. `str()` is one sentence."""


class Uploads(Protocol):
    """Where files that people send are kept: `uploads/` in the workspace."""

    async def save(
        self, kind: AttachmentKind, name: str, mime: str | None, chunks: AsyncIterator[bytes], size_bytes_max: int
    ) -> Attachment:
        """Writes the bytes to a file of its own and gives it back as an Attachment with `path` and `size_bytes`.

        `name` is the sender's and may be anything; the file gets a safe one that no other file has. A file that is
        there is whole: one that breaks off (an error of `chunks`, a crash) is not there. Raises FileTooBig, and
        NotAccepted when it cannot be written.
        """
        ...

    def find(self, upload_id: str) -> Attachment | None:
        """The saved file with this id (`Attachment.upload_id`); None when there is none."""
        ...


@runtime_checkable
class HasFiles(Protocol):
    """A channel whose messages name files that are fetched after the message was accepted, before its turn.

    The attachments of its inbound messages have `remote` and no `path`. `fetch` may be called at any time and again
    after a crash; it gives back the same attachment, saved by `Uploads`. Raises FileTooBig, FileGone, ChannelDown
    (worth another try), NotAccepted.
    """

    async def fetch(self, attachment: Attachment) -> Attachment: ...


@dataclass(frozen=True, slots=True)
class MenuCommand:
    """A command as a menu shows it: its name without the slash, one line of help by language."""

    name: str
    help: Mapping[str, str]
    owner_only: bool = False


@dataclass(frozen=True, slots=True)
class ChannelContext:
    """What every channel is given. `settings` is an instance of the folder's own settings class.

    `home` is the home folder: a channel keeps its files in `home/<its name>` only. `uploads` keeps what people send.
    `commands` is what a channel may show as a menu.
    `backend` is what the in-app channel shows and steers (`channels.inapp.ports.Backend`); others do not use it.
    """

    settings: Any
    home: Path
    health: Health
    memory: ChannelMemory
    backend: Any
    now: Callable[[], datetime]
    uploads: Uploads
    commands: tuple[MenuCommand, ...] = ()


@dataclass(frozen=True, slots=True)
class LinkState:
    """How far the linking of a channel with an account has come.

    `state`: `off` nobody asked for it, `starting`, `shown` there is a `qr` (its text) to scan or a `code` to type,
    `linked`, `expired` nobody used the codes in time, `failed`. `version` grows with every change.
    """

    state: Literal["off", "starting", "shown", "linked", "expired", "failed"] = "off"
    qr: str | None = None
    code: str | None = None
    detail: str = ""
    version: int = 0


@runtime_checkable
class HasLink(Protocol):
    """A channel that is linked with an account by a code. After a terminal `ChannelDown` it is started again when it is
    to be linked."""

    @property
    def link_state(self) -> LinkState: ...

    def link(self, phone: str | None) -> None:
        """From now on a run shows a QR, or a code for that phone. Raises ValueError for what is no phone number."""
        ...

    async def logout(self) -> bool:
        """Gives the account up and forgets the session. False when the platform could not be told."""
        ...


@runtime_checkable
class HasProbe(Protocol):
    """A channel that can ask its platform for a sign of life; when there is none, it tells its health or raises
    ChannelDown."""

    async def probe(self) -> None: ...


@runtime_checkable
class HasRoutes(Protocol):
    """A channel that serves paths of the one HTTP server: a list of `aiohttp.web.RouteDef`."""

    def routes(self) -> list[Any]: ...


@runtime_checkable
class Page(HasRoutes, Protocol):
    """The channel that shows everything that is saved, from the events of `hub`. `token` lets programs in."""

    @property
    def hub(self) -> Any: ...

    @property
    def token(self) -> str: ...

    def new_link(self) -> str:
        """A path of the page that lets its visitor in once."""
        ...
