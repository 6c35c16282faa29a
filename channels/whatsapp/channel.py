"""WhatsApp, as a linked device by the library neonize: one connection, opened while somebody needs it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, Literal

from channels.channel import (
    Accept,
    ChannelContext,
    ChannelDown,
    ChannelInfo,
    LinkState,
    NotAccepted,
    SendRefused,
    SendRetry,
)
from channels.message import Address, Attachment, OutboundMessage, Receipt
from channels.typing_sign import Sleep, TypingSigns
from channels.whatsapp.files import fetched
from channels.whatsapp.ids import Identities, is_group, is_hidden, is_phone, user_of
from channels.whatsapp.inbound import Receiver
from channels.whatsapp.journal import Journal
from channels.whatsapp.library import Library, Printed, load, look_for_network
from channels.whatsapp.limits import (
    CODE_SECONDS_MAX,
    CONNECT_SECONDS_MAX,
    DEAD_SECONDS,
    PROBE_SECONDS_MAX,
    RECONNECT_SECONDS_MAX,
    SILENCE_SECONDS,
    STOP_SECONDS_MAX,
    TYPING_EVERY_SECONDS,
)
from channels.whatsapp.link import Link, SessionFiles
from channels.whatsapp.outbound import Sender
from channels.whatsapp.session import NotConnected, Session, Signal
from channels.whatsapp.settings import WhatsAppSettings
from channels.whatsapp.states import EXPIRED, REMEDY, Churn, down_of_error, logged_out, replaced, unreachable

LOG = logging.getLogger(__name__)

_STYLE = (
    "WhatsApp shows bold, italic, strikethrough, code, quotes and lists; no tables, no headings, no link texts. "
    "People read it on a phone: short paragraphs."
)
_Phase = Literal["dialing", "linking", "connected", "lost"]
_PATIENCE_SECONDS: dict[_Phase, float] = {
    "dialing": CONNECT_SECONDS_MAX,
    "linking": CODE_SECONDS_MAX,
    "connected": SILENCE_SECONDS,
    "lost": RECONNECT_SECONDS_MAX,
}
_NOT_LINKED = "no phone is linked yet"


class WhatsAppChannel:
    """One linked device. `run` listens; `send` opens a connection of its own where there is none.

    `library` and `new_client` are neonize and its client, `reach` looks for a network; tests give others.
    Raises ImportError: see `library.load`.
    """

    def __init__(
        self,
        context: ChannelContext,
        *,
        library: Library | None = None,
        new_client: Callable[..., Any] | None = None,
        reach: Callable[[], Awaitable[None]] | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        settings: WhatsAppSettings = context.settings
        self.info = ChannelInfo("whatsapp", style=_STYLE, silence_seconds_max=DEAD_SECONDS)
        self._library = library or load()
        self._new_client = new_client or self._library.new_client
        self._context = context
        self._reach = reach or look_for_network
        self._sleep = sleep
        self._phone = settings.phone
        self._ids = Identities(settings.owner_ids | settings.allowed_ids)
        self._files = SessionFiles(context.home)
        self._link = Link()
        self._printed = Printed()
        self._typing = TypingSigns(self._show_typing, sleep, TYPING_EVERY_SECONDS)
        self._receiver = Receiver(
            context,
            self._library,
            self._ids,
            Journal(context.home / "whatsapp" / "journal"),
            lambda: self._session,
            sleep,
            self._typing.start,
        )
        self._sender = Sender(context, self._library, self._receiver, context.now)
        self._session: Session | None = None
        self._users = 0
        self._opening = asyncio.Lock()
        self._is_loaded = False
        self._churn = Churn()
        self._terminal: ChannelDown | None = None
        self._is_running = False

    # -- the line

    @asynccontextmanager
    async def _line(self) -> AsyncGenerator[Session]:
        """The connection: the first who needs it opens it, the last closes it. Raises ChannelDown."""
        async with self._opening:
            await self._load()
            if self._session is None:
                self._session = await self._dial()
            session = self._session
            self._users += 1
        try:
            yield session
        finally:
            async with self._opening:
                self._users -= 1
                if self._users == 0:
                    self._session = None
                    await session.stop()
                    self._printed.close()

    async def _dial(self) -> Session:
        try:
            await asyncio.to_thread(self._files.prepare)
        except OSError as error:
            raise ChannelDown(
                "degraded", f"{self._files.folder}: {error.strerror}", remedy="Check its rights."
            ) from error
        try:
            await self._reach()
        except (OSError, TimeoutError) as error:
            raise down_of_error(f"dial: {error}") from error
        self._printed.open(asyncio.get_running_loop())
        client = self._new_client(self._files.database)
        session = Session(self._library, client, self._receiver.keep, self._receiver.take, self._context.now)
        try:
            await session.start()
        except self._library.errors.NeonizeError as error:
            await session.stop()
            raise down_of_error(str(error)) from error
        except BaseException:
            await session.stop()
            raise
        return session

    async def _load(self) -> None:
        if not self._is_loaded:
            await self._receiver.load()
            self._is_loaded = True

    @property
    def _is_linked(self) -> bool:
        return bool(self._receiver.mine) and self._files.folder.is_dir()

    # -- listening

    async def run(self, accept: Accept) -> None:
        """Listens until cancelled. Raises ChannelDown; what was not accepted then is brought by the next run."""
        self._terminal = None
        self._is_running = True
        try:
            await self._load()
            self._receiver.accept = accept
            await self._receiver.replay()
            if not self._is_linked and not self._link.is_wanted:
                raise logged_out(_NOT_LINKED)
            async with self._line() as session:
                await self._watch(session)
        except NotAccepted as error:
            raise ChannelDown("degraded", str(error), remedy=REMEDY["degraded"]) from error
        except ChannelDown as error:
            if error.terminal:
                self._terminal = error
            if error.state == "logged_out":
                await self._receiver.forget_account()
            if self._link.is_wanted:
                self._link.end("expired" if error.detail == EXPIRED else "failed", error.detail)
            raise
        finally:
            self._receiver.accept = None
            self._is_running = False
            await self._typing.end_all()

    async def _watch(self, session: Session) -> None:
        """Follows the connection. The library itself gets a broken line back; when it cannot, or when nothing is to be
        heard any more, this ends with ChannelDown."""
        phase: _Phase = "dialing"
        if session.connected.is_set():
            phase = await self._connected(session)
        while True:
            signal = await self._next(session, _PATIENCE_SECONDS[phase])
            if signal is None:
                await self._patience_ended(phase, session)
                continue
            match signal.kind:
                case "qr":
                    phase = await self._show_code(session, signal.text)
                case "paired":
                    phase = "dialing"
                case "connected":
                    phase = await self._connected(session)
                case "disconnected":
                    phase = self._disconnected(phase)
                case "silent":
                    self._context.health.state("degraded", "the line does not answer", REMEDY["degraded"])
                case "alive":
                    self._context.health.received()
                    self._receiver.synced()
                    if phase == "connected":
                        self._context.health.state("connected", self._account())
                case "down":
                    raise signal.down or unreachable("WhatsApp ended the connection")

    async def _next(self, session: Session, seconds_max: float) -> Signal | None:
        """The next signal; None when there was none in time."""
        signal = asyncio.ensure_future(session.signals.get())
        patience = asyncio.ensure_future(self._sleep(seconds_max))
        try:
            await asyncio.wait({signal, patience}, return_when=asyncio.FIRST_COMPLETED)
            return signal.result() if signal.done() else None
        finally:
            signal.cancel()
            patience.cancel()

    async def _patience_ended(self, phase: _Phase, session: Session) -> None:
        """Silence is not death: a connected line is asked for a sign of life first."""
        match phase:
            case "dialing":
                raise unreachable(f"WhatsApp does not answer within {CONNECT_SECONDS_MAX:.0f} s")
            case "linking":
                raise logged_out(EXPIRED)
            case "lost":
                raise unreachable(f"the line has been gone for {RECONNECT_SECONDS_MAX:.0f} s")
            case "connected":
                if self._context.now() - session.heard_at >= timedelta(seconds=SILENCE_SECONDS):
                    await self._ask_for_life(session)

    async def _ask_for_life(self, session: Session) -> None:
        """A small request that needs an answer of the other side."""
        try:
            await session.call("get_blocklist", seconds_max=PROBE_SECONDS_MAX)
        except (NotConnected, TimeoutError, self._library.errors.NeonizeError) as error:
            raise unreachable(f"the line is silent and does not answer ({error})") from error
        self._context.health.received()

    async def _connected(self, session: Session) -> _Phase:
        self._context.health.received()
        self._churn.opened(self._context.now())
        self._receiver.syncing()
        try:
            await self._receiver.set_account(await session.call("get_me"))
        except (NotConnected, TimeoutError, self._library.errors.NeonizeError) as error:
            LOG.warning("WhatsApp: who we are is not known (%s)", error)
        if self._link.is_wanted:
            self._link.end("linked", self._account())
        self._context.health.state("connected", self._account())
        return "connected"

    def _account(self) -> str:
        """The linked number, as `channel_status` shows it."""
        phones = sorted(user_of(self._ids.one(mine)) for mine in self._receiver.mine)
        return f"linked with +{phones[0]}" if phones else ""

    def _disconnected(self, phase: _Phase) -> _Phase:
        if self._churn.closed(self._context.now()):
            raise replaced("the connection was taken away several times within a minute")
        if phase != "connected":
            return phase
        self._context.health.state("degraded", "the line broke; it is dialled again", REMEDY["degraded"])
        return "lost"

    # -- linking

    @property
    def link_state(self) -> LinkState:
        return self._link.state

    def link(self, phone: str | None) -> None:
        """The next run shows a code; one that is connected is linked already. Raises ValueError."""
        self._churn.forget()
        self._link.want(phone or self._phone or None)
        if self._session is not None and self._session.connected.is_set():
            self._link.end("linked", self._account())

    async def _show_code(self, session: Session, qr: str) -> _Phase:
        if not self._link.is_wanted:
            raise logged_out("the phone has forgotten this device")
        if not self._link.phone:
            self._link.show_qr(qr)
        elif self._link.state.code is None:
            try:
                self._link.show_code(await session.call("PairPhone", self._link.phone, True, early=True))
            except (NotConnected, TimeoutError, self._library.errors.NeonizeError) as error:
                raise logged_out(f"WhatsApp gave no code for +{self._link.phone} ({error})") from error
        self._context.health.state("starting", "waits to be linked", REMEDY["logged_out"])
        return "linking"

    async def logout(self) -> bool:
        """Gives the account up: the phone is told where it can be reached, and the session is forgotten here."""
        is_told = False
        await self._load()
        if self._is_linked:
            try:
                async with self._line() as session:
                    await session.until_connected(CONNECT_SECONDS_MAX)
                    await session.call("logout")
                    is_told = True
                    session.tell(Signal("down", down=logged_out("logged out by the owner")))
            except (ChannelDown, NotConnected, TimeoutError, self._library.errors.NeonizeError) as error:
                LOG.warning("WhatsApp was not told of the logout: %s", error)
                if self._session is not None:
                    self._session.tell(Signal("down", down=logged_out("logged out by the owner")))
        for _ in range(int(STOP_SECONDS_MAX * 50)):
            if self._session is None:
                break
            await asyncio.sleep(0.02)
        async with self._opening:  # until it is closed for good
            await asyncio.to_thread(self._files.forget)
        await self._receiver.forget_account()
        self._link.end("off")
        return is_told

    async def probe(self) -> None:
        """Asks for a sign of life now. Raises ChannelDown."""
        if self._session is None:
            raise self._terminal or unreachable("there is no connection")
        await self._ask_for_life(self._session)

    # -- sending

    async def send(self, message: OutboundMessage) -> Receipt:
        """Sends the parts that are not in `sent_ids` yet. Who may get anything is decided before (gateway/people.py).

        Raises ChannelDown, SendRetry, SendRefused, SendUnknown. No request is made twice.
        """
        try:
            await self._load()
        except NotAccepted as error:
            raise SendRetry(str(error), sent_ids=message.sent_ids) from error
        chat = self._ids.one(message.address.chat_id)
        if not (is_phone(chat) or is_hidden(chat) or is_group(chat)):
            raise SendRefused(f"{chat} is no chat of a person or a group")
        self._typing.end(message.address)
        if not self._is_running:
            if self._terminal is not None:
                raise self._terminal
            if not self._is_linked:
                raise logged_out(_NOT_LINKED)
        elif self._session is None:
            raise unreachable("there is no connection yet")
        async with self._line() as session:
            try:
                await session.until_connected(CONNECT_SECONDS_MAX)
            except NotConnected as error:
                raise down_of_error(str(error)) from error
            return await self._sender.send(message, chat, session)

    async def fetch(self, attachment: Attachment) -> Attachment:
        """The file of a message, saved. Raises FileTooBig, FileGone, ChannelDown, NotAccepted."""
        if self._session is None:
            raise self._terminal or unreachable("there is no connection")
        return await fetched(attachment, self._session, self._library, self._context.uploads)

    async def _show_typing(self, address: Address) -> None:
        session, enums = self._session, self._library.enums
        if session is None or not session.connected.is_set():
            return
        try:
            composing, text = (
                enums.ChatPresence.CHAT_PRESENCE_COMPOSING,
                enums.ChatPresenceMedia.CHAT_PRESENCE_MEDIA_TEXT,
            )
            await session.call("send_chat_presence", self._receiver.jid(address.chat_id), composing, text)
        except (NotConnected, TimeoutError, self._library.errors.NeonizeError) as error:
            LOG.debug("The typing sign did not get through: %s", error)
