"""WhatsApp behind the interface of neonize's client. Events go as serialised bytes through neonize's own dispatch, on
one thread, as its native side does it."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import queue
import subprocess
import threading
import warnings
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from channels.whatsapp.library import Library, load
from tests.fakes.waiting import until


def _loaded() -> Library:
    """At its import the library runs `uname` and drops the pipe unclosed, which is an error in tests."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        library = load()
        gc.collect()
        subprocess._cleanup()  # pyright: ignore[reportAttributeAccessIssue]
        gc.collect()
    return library


LIBRARY: Library = _loaded()
PROTO = LIBRARY.proto
E2E = LIBRARY.e2e

NOW = datetime(2026, 11, 2, 9, 0, tzinfo=UTC)
ME, MY_LID = "15550001111@s.whatsapp.net", "99887766554433@lid"
OWNER = "15550009999@s.whatsapp.net"
FRIEND = "15550002222@s.whatsapp.net"
FRIEND_LID = "77001122334455@lid"
GROUP = "120363000000000001@g.us"


def jid(text: str, device: int = 0) -> Any:
    user, _, server = text.partition("@")
    return PROTO.JID(User=user, Server=server, RawAgent=0, Device=device, Integrator=0, IsEmpty=not user)


def text_message(text: str) -> Any:
    return E2E.Message(conversation=text)


def event(
    message: Any,
    message_id: str,
    *,
    chat: str = OWNER,
    sender: str | None = None,
    from_me: bool = False,
    name: str = "Sara",
    at: datetime = NOW,
    sender_alt: str = "",
    recipient_alt: str = "",
    device: int = 0,
) -> Any:
    """An event Message as the native side makes it."""
    if isinstance(message, str):
        message = text_message(message)
    sender = sender or (ME if from_me else chat)
    source = PROTO.MessageSource(
        Chat=jid(chat),
        Sender=jid(sender, device),
        IsFromMe=from_me,
        IsGroup=chat.endswith("@g.us"),
        SenderAlt=jid(sender_alt),
        RecipientAlt=jid(recipient_alt),
        BroadcastListOwner=jid(""),
    )
    info = PROTO.MessageInfo(
        MessageSource=source,
        ID=message_id,
        ServerID=0,
        Type="text",
        Pushname=name,
        Timestamp=int(at.timestamp() * 1000),
        Category="",
        Multicast=False,
        MediaType="",
        Edit="",
    )
    return PROTO.Message(
        Info=info,
        Message=message,
        Raw=message,
        IsEphemeral=False,
        IsViewOnce=False,
        IsViewOnceV2=False,
        IsViewOnceV2Extension=False,
        IsDocumentWithCaption=False,
        IsLottieSticker=False,
        IsEdit=False,
        UnavailableRequestID="",
        RetryCount=0,
    )


async def reachable() -> None:
    """There is a network."""


class Platform:
    """What is on the other side. Clients come and go; events wait for one that is connected."""

    def __init__(self, me: str = ME, lid: str = MY_LID) -> None:
        self.me, self.lid = me, lid
        self.clients: list[FakeClient] = []
        self.sent: list[tuple[str, Any]] = []
        self.typing: list[str] = []
        self.uploads: list[bytes] = []
        self.files: dict[str, bytes] = {}
        self.phones: dict[str, str] = {}
        self.titles: dict[str, str] = {}
        self.faults: list[str] = []
        self.lose_after: list[str] = []
        self.dial_error: str | None = None
        self.answers = True
        self.is_paired = True
        self.logouts = 0
        self.handed_over = 0
        self.taken = 0
        self._numbers = 0
        self._events: queue.Queue[tuple[Any, FakeClient | None] | None] = queue.Queue()
        self._up = threading.Event()
        self._client: FakeClient | None = None
        self._thread: threading.Thread | None = None

    def new_client(self, _database: Path) -> FakeClient:
        client = FakeClient(self)
        self.clients.append(client)
        return client

    def push(self, *events: Any) -> None:
        """What happens next, for the client that is connected or the next one."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="fake whatsapp", daemon=True)
            self._thread.start()
        for one in events:
            self.handed_over += 1
            self._events.put((one, None))

    def push_to(self, client: FakeClient, *events: Any) -> None:
        """What still comes to one client, also when it is gone."""
        self.push()
        for one in events:
            self.handed_over += 1
            self._events.put((one, client))

    def came_up(self, client: FakeClient) -> None:
        self._client = client
        self._up.set()

    def went_down(self, client: FakeClient) -> None:
        if self._client is client:
            self._up.clear()
            self._client = None

    async def until_taken(self) -> None:
        await until(lambda: self.taken == self.handed_over)

    async def until_up(self) -> FakeClient:
        await until(lambda: self._client is not None)
        assert self._client is not None
        return self._client

    def next_id(self) -> str:
        self._numbers += 1
        return f"3EB0{self._numbers:016X}"

    def close(self) -> None:
        self._events.put(None)
        self._up.set()
        if self._thread is not None:
            self._thread.join(timeout=5)
            assert not self._thread.is_alive(), "a callback of the channel did not return"

    def _work(self) -> None:
        while (item := self._events.get()) is not None:
            event_of, client = item
            while client is None:
                self._up.wait()
                client = self._client
                if client is None and not self._events.empty() and self._events.queue[-1] is None:
                    return
            client.dispatch(event_of)
            self.taken += 1

    @property
    def texts(self) -> list[str]:
        return [shown_text(message) for _, message in self.sent]


def shown_text(message: Any) -> str:
    return message.conversation or message.extendedTextMessage.text


class FakeClient:
    """The methods of neonize.aioze.client.NewAClient that the channel uses."""

    def __init__(self, platform: Platform) -> None:
        self.platform = platform
        self.event: Any = LIBRARY.loop_events.Event(self)
        self.connected = False
        self.me = None
        self.ended: asyncio.Future[None] | None = None
        self.stopped = False

    def dispatch(self, message: Any) -> None:
        """What the native side does with an event: bytes into the callback that neonize registered."""
        data = message.SerializeToString()
        buffer = ctypes.create_string_buffer(data, len(data))
        code = LIBRARY.events.EVENT_TO_INT[type(message)]
        if code in self.event.list_func:
            self.event.execute(0, ctypes.addressof(buffer), len(data), code)

    async def connect(self) -> Any:
        loop = asyncio.get_running_loop()
        LIBRARY.loop_events.set_event_loop(loop)
        self.ended = loop.create_future()
        return asyncio.ensure_future(self._dial())

    async def _dial(self) -> None:
        if self.platform.dial_error is not None:
            raise LIBRARY.errors.NeonizeError(self.platform.dial_error)
        if self.platform.answers:
            self.platform.came_up(self)
            if self.platform.is_paired:
                self.platform.push_to(self, PROTO.Connected(status=True))
        assert self.ended is not None
        await self.ended

    async def show_qr(self, code: str) -> None:
        await self.event._qr(self, code.encode())

    async def pair(self) -> None:
        """The phone scanned the code."""
        self.platform.is_paired = True
        self.platform.push_to(
            self,
            PROTO.PairStatus(ID=jid(self.platform.me), BusinessName="", Platform="android", Status=2),
            PROTO.Connected(status=True),
        )

    async def disconnect(self) -> None:
        self.platform.went_down(self)

    async def stop(self) -> None:
        self.stopped = True
        self.platform.went_down(self)
        if self.ended is not None and not self.ended.done():
            self.ended.set_result(None)

    async def get_me(self) -> Any:
        me, lid = jid(self.platform.me, 7), jid(self.platform.lid, 7)
        return PROTO.Device(JID=me, LID=lid, Platform="", BussinessName="", PushName="", Initialized=True)

    async def get_blocklist(self) -> Any:
        if not self.platform.answers:
            raise LIBRARY.errors.GetBlocklistError("info query timed out")
        return PROTO.Blocklist()

    async def get_pn_from_lid(self, lid: Any) -> Any:
        return jid(self.platform.phones.get(f"{lid.User}@{lid.Server}", ""))

    async def get_group_info(self, group: Any) -> Any:
        title = self.platform.titles.get(f"{group.User}@{group.Server}")
        if title is None:
            raise LIBRARY.errors.GetGroupInfoError("not in group")
        return PROTO.GroupInfo(GroupName=PROTO.GroupName(Name=title))

    async def send_chat_presence(self, chat: Any, _state: Any, _media: Any) -> None:
        self.platform.typing.append(f"{chat.User}@{chat.Server}")

    async def upload(self, data: bytes, _kind: Any) -> Any:
        self.platform.uploads.append(data)
        return PROTO.UploadResponse(
            url="https://mmg.whatsapp.net/x", DirectPath="/x", MediaKey=b"k", FileSHA256=b"s", FileLength=len(data)
        )

    async def download_any(self, message: Any) -> bytes:
        _, part = message.ListFields()[0]
        try:
            return self.platform.files[part.directPath]
        except KeyError:
            raise LIBRARY.errors.DownloadError("media no longer available") from None

    async def PairPhone(self, phone: str, _notify: bool) -> str:
        return f"CODE-{phone[-4:]}"

    async def logout(self) -> None:
        self.platform.logouts += 1
        self.platform.is_paired = False

    async def send_message(self, to: Any, message: Any) -> Any:
        if self.platform.faults:
            raise LIBRARY.errors.SendMessageError(self.platform.faults.pop(0))
        chat = f"{to.User}@{to.Server}"
        self.platform.sent.append((chat, E2E.Message.FromString(message.SerializeToString())))
        if self.platform.lose_after:
            raise LIBRARY.errors.SendMessageError(self.platform.lose_after.pop(0))
        return PROTO.SendResponse(ID=self.platform.next_id(), Timestamp=int(NOW.timestamp()))


def history(*chats: tuple[str, list[tuple[str, str, bool, datetime]]], lids: dict[str, str] | None = None) -> Any:
    """A HistorySync: per chat (id, text, from me, time) of each message."""
    data = PROTO.HistorySync().Data
    data.syncType = 0
    for chat, messages in chats:
        conversation = data.conversations.add(ID=chat)
        for message_id, text, from_me, at in messages:
            web = conversation.messages.add().message
            web.key.remoteJID, web.key.ID, web.key.fromMe = chat, message_id, from_me
            web.message.conversation = text
            web.messageTimestamp = int(at.timestamp())
    for lid, phone in (lids or {}).items():
        data.phoneNumberToLidMappings.add(lidJID=lid, pnJID=phone)
    return PROTO.HistorySync(Data=data)


LAST_MONTH = NOW - timedelta(days=31)


def installed(monkeypatch: pytest.MonkeyPatch, platform: Platform) -> None:
    """From now on the program meets this platform where it would dial."""
    monkeypatch.setattr(Library, "new_client", lambda _library, database: platform.new_client(database))
    monkeypatch.setattr("channels.whatsapp.channel.look_for_network", reachable)
