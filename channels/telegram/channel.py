"""Telegram: listening that confirms only what is saved, by polling or webhook, and sending with one clear outcome."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from telegram.error import BadRequest, ChatMigrated, Conflict, Forbidden, InvalidToken, TelegramError

from channels.channel import (
    Accept,
    ChannelContext,
    ChannelDown,
    ChannelInfo,
    NotAccepted,
    SendError,
    SendRefused,
    SendRetry,
    SendUnknown,
)
from channels.message import Accepted, Address, Attachment, OutboundMessage, Receipt
from channels.telegram import menu, wire
from channels.telegram.files import Files
from channels.telegram.limits import (
    DRAFT_SECONDS,
    POLL_SECONDS,
    SILENCE_SECONDS_MAX,
    TYPING_EVERY_SECONDS,
    TYPING_IN_FLIGHT_MAX,
    WEBHOOK_LOOK_SECONDS,
)
from channels.telegram.polling import NOT_BOT_API, Place, Taker
from channels.telegram.request import UPDATE_KINDS, AiohttpRequest, Flooded, LineBroke, NotSent, RawBot
from channels.telegram.sending import NothingToSend, PartlyRefused, Sender, number_or_name, pieces_of, topic
from channels.telegram.settings import TelegramSettings
from channels.telegram.webhook import Webhook
from channels.typing_sign import Sleep, TypingSigns

log = logging.getLogger(__name__)

_STYLE = (
    "Telegram shows bold, italic, strikethrough, code, links, quotes and lists; a table appears as monospaced text. "
    "People read it on a phone: short paragraphs."
)
_REMEDY = {
    "rejected": "Get a token from @BotFather, put it under [channels.telegram] as token, and start again.",
    "conflict": "Stop the other program that uses this token, or revoke the token at @BotFather and use the new one.",
    "unreachable": "Check the network and [channels.telegram] base_url; it is tried again by itself.",
    "degraded": "Nothing to do: it is tried again by itself.",
}
_QUIET_LOGGERS = ("telegram", "httpx", "httpcore")
"""At DEBUG and INFO these log addresses, and the token is part of them."""


class TelegramChannel:
    """One bot. `run` listens; `send` and `fetch` work without it. The line is open as long as anyone needs it."""

    def __init__(self, context: ChannelContext, *, sleep: Sleep = asyncio.sleep) -> None:
        settings: TelegramSettings = context.settings
        self.info = ChannelInfo(
            "telegram",
            style=_STYLE,
            draft_interval_seconds=DRAFT_SECONDS,
            silence_seconds_max=SILENCE_SECONDS_MAX,
        )
        self._context = context
        self._settings = settings
        self._sleep = sleep
        self._token = settings.token.get_secret_value().strip()
        self._server = settings.base_url.rstrip("/")
        self._request = AiohttpRequest(self._server, self._token)
        self._bot: RawBot | None = None
        self._me: wire.Bot | None = None
        self._place = Place(context, self._server)
        self._remembered = False
        self._typing_in_flight = asyncio.Semaphore(TYPING_IN_FLIGHT_MAX)
        self._typing = TypingSigns(self._show_typing, sleep, TYPING_EVERY_SECONDS)
        self._taker = Taker(
            context, set(settings.groups), settings.require_mention, sleep, self._typing.start, self._noticed
        )
        self._sender = Sender(self._open, self._moved)
        self._files = Files(self._request, self._server, self._token, context.uploads)
        self._webhook = Webhook(settings.webhook_url, self._token) if settings.mode == "webhook" else None
        self._tasks: set[asyncio.Task[None]] = set()
        self._listens = False
        self._doubted = False
        for name in _QUIET_LOGGERS:
            logger = logging.getLogger(name)
            logger.setLevel(max(logger.level, logging.WARNING))

    def routes(self) -> list[Any]:
        return [] if self._webhook is None else self._webhook.routes()

    # -- listening

    async def run(self, accept: Accept) -> None:
        """Listens until cancelled. Raises ChannelDown; what was not accepted then comes again with the next run."""
        async with self._request:
            try:
                # Also what the last program was told still holds.
                if (pause := await self._place.pause_seconds()) > 0:
                    self._context.health.state("degraded", f"Telegram asked for {pause:.0f} s of peace")
                    await self._sleep(pause)
                await self._listen(accept)
            except Flooded as error:
                await self._place.flooded(error.after_seconds)
                raise self._down(error) from error
            except TelegramError as error:
                raise self._down(error) from error
            finally:
                self._listens = self._doubted = False
                if self._webhook is not None:
                    self._webhook.close()
                for task in self._tasks:
                    task.cancel()
                await asyncio.gather(self._typing.end_all(), *self._tasks, return_exceptions=True)

    async def _listen(self, accept: Accept) -> None:
        bot, me = await self._sign_in()
        self._listens = True
        await self._remember(me)
        self._run(menu.register(bot, me.id, self._context.commands, self._settings.owner, self._context.memory))
        if self._webhook is None:
            await bot.delete_webhook(drop_pending_updates=False)
            await self._poll(bot, me, accept)
        else:
            await self._be_posted_to(bot, me, accept, self._webhook)

    async def _poll(self, bot: RawBot, me: wire.Bot, accept: Accept) -> None:
        # The first request returns at once, so that "connected" is known at once.
        patience_seconds = 0
        while True:
            updates = await bot.updates(self._place.offset, patience_seconds)
            if not isinstance(updates, list):
                raise LineBroke(NOT_BOT_API)
            if patience_seconds == 0:
                self._context.health.state("connected")
                patience_seconds = POLL_SECONDS
                await self._place.known(me)
            self._works()
            if updates:
                offset = await self._taker.take_all(updates, me, accept)  # pyright: ignore[reportUnknownArgumentType]
                await self._place.store(me, offset)

    async def _be_posted_to(self, bot: RawBot, me: wire.Bot, accept: Accept, webhook: Webhook) -> None:
        """Telegram posts what comes, also what waited while it was polled; now and then it is asked how that goes."""

        async def take(update: Any) -> None:
            await self._taker.take_one(update, me, accept)
            self._context.health.received()

        webhook.open(take)
        await bot.set_webhook(
            webhook.url, allowed_updates=UPDATE_KINDS, secret_token=webhook.secret, drop_pending_updates=False
        )
        await self._place.known(me)
        while True:
            state = await bot.webhook_state()
            self._context.health.received()
            if state.get("url") != webhook.url:
                raise Conflict("another program has set another webhook")
            waiting, fault = state.get("pending_update_count") or 0, state.get("last_error_message")
            if waiting and fault:
                detail = f"Telegram cannot post here ({self._safe_text(str(fault))}); {waiting} updates wait"
                self._context.health.state(
                    "degraded", detail, "Check [channels.telegram] webhook_url and its way here."
                )
            else:
                self._context.health.state("connected")
            await self._sleep(WEBHOOK_LOOK_SECONDS)

    async def _sign_in(self) -> tuple[RawBot, wire.Bot]:
        bot = self._open()
        if self._me is None:
            try:
                user = await bot.get_me()
            except (TypeError, KeyError, AttributeError, ValueError) as error:
                raise LineBroke(NOT_BOT_API) from error
            self._me = wire.Bot(str(user.id), user.username or "")
        return bot, self._me

    def _open(self) -> RawBot:
        if self._bot is None:
            address = f"{self._server}/bot"
            self._bot = RawBot(self._token, base_url=address, request=self._request, get_updates_request=self._request)
        return self._bot

    async def _remember(self, me: wire.Bot) -> None:
        """Once per start: the new ids of groups that moved, and the offset."""
        if self._remembered:
            return
        for group in tuple(self._taker.groups):
            moved = await self._context.memory.get(f"migrated:{group}")
            if moved:
                self._taker.groups.add(moved)
        await self._place.load(me)
        self._remembered = True

    async def _moved(self, old_chat_id: str, new_chat_id: str) -> None:
        await self._taker.migrate(wire.Migration(old_chat_id, new_chat_id))

    def _run(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _noticed(self, pressed: wire.Pressed, accepted: Accepted) -> None:
        """Lets the button stop waiting; what became of it is said in the chat."""
        self._run(self._answer_button(pressed.query_id))

    async def _answer_button(self, query_id: str) -> None:
        try:
            await self._open().answer_callback_query(query_id)
        except TelegramError as error:
            log.debug("A pressed button could not be answered: %s", error)

    async def probe(self) -> None:
        """Asks Telegram who we are; what is wrong, if anything, is told to the health, until something comes again."""
        async with self._request:
            try:
                await self._open().get_me()
            except TelegramError as error:
                self._doubted = self._listens
                down = self._down(error)
                self._context.health.state(down.state, down.detail, down.remedy)
            except (TypeError, KeyError, AttributeError, ValueError):
                self._doubted = self._listens
                self._context.health.state("unreachable", NOT_BOT_API, _REMEDY["unreachable"])
            else:
                self._works()

    def _works(self) -> None:
        """Telegram has answered. A probe that failed while the channel listens on says nothing any more."""
        self._context.health.received()
        if self._doubted:
            self._doubted = False
            self._context.health.state("connected")

    # -- files

    async def fetch(self, attachment: Attachment) -> Attachment:
        """The file of a message, saved. Raises FileTooBig, FileGone, ChannelDown, NotAccepted."""
        async with self._request:
            try:
                return await self._files.fetch(self._open(), attachment)
            except TelegramError as error:
                raise self._down(error) from error

    # -- sending

    async def send(self, message: OutboundMessage) -> Receipt:
        """Sends the parts that are not in `sent_ids` yet. The receipt and each error name all parts that arrived.

        Raises ChannelDown, SendRetry, SendRefused, SendUnknown.
        """
        if message.is_draft:
            return await self._draft(message)
        self._typing.end(message.address)
        sent = list(message.sent_ids)
        try:
            pieces = await asyncio.to_thread(pieces_of, message, self._context.home / "workspace")
        except (NothingToSend, FileNotFoundError) as error:
            raise SendRefused(str(error), sent_ids=tuple(sent)) from error
        async with self._request:
            try:
                await self._sender.send(message, pieces, sent)
            except NotAccepted as error:
                raise SendRetry(str(error), sent_ids=tuple(sent)) from error
            except PartlyRefused as error:
                raise SendRefused(self._safe_text(str(error)), sent_ids=tuple(sent)) from error
            except LineBroke as error:
                if message.replaces is not None and not sent:
                    # A change made twice is the same change.
                    raise SendRetry(self._safe(error), sent_ids=()) from error
                raise self._send_error(error, tuple(sent)) from error
            except TelegramError as error:
                raise self._send_error(error, tuple(sent)) from error
        return Receipt(tuple(sent), self._context.now())

    async def _draft(self, message: OutboundMessage) -> Receipt:
        async with self._request:
            try:
                return Receipt((await self._sender.draft(message),), self._context.now())
            except NothingToSend as error:
                raise SendRefused(str(error)) from error
            except NotAccepted as error:
                raise SendRetry(str(error)) from error
            except TelegramError as error:
                raise self._send_error(error, ()) from error

    async def _show_typing(self, address: Address) -> None:
        try:
            async with self._typing_in_flight:
                await self._open().send_chat_action(
                    number_or_name(address.chat_id), "typing", message_thread_id=topic(address.thread_id)
                )
        except TelegramError as error:
            log.debug("The typing sign did not get through: %s", error)

    # -- errors: theirs become ours

    def _down(self, error: TelegramError) -> ChannelDown:
        match error:
            case InvalidToken():
                detail = "Telegram rejected the token"
                return ChannelDown("rejected", detail, remedy=_REMEDY["rejected"], terminal=True)
            case Conflict():
                return ChannelDown("conflict", "another poller uses this token", remedy=_REMEDY["conflict"])
            case Flooded():
                seconds = error.after_seconds
                return ChannelDown("degraded", str(error), remedy=_REMEDY["degraded"], retry_after_seconds=seconds)
            case NotSent() | LineBroke():
                return ChannelDown("unreachable", self._safe(error), remedy=_REMEDY["unreachable"])
            case _:
                return ChannelDown("degraded", self._safe(error), remedy=_REMEDY["degraded"])

    def _send_error(self, error: TelegramError, sent_ids: tuple[str, ...]) -> SendError | ChannelDown:
        reason = self._safe(error)
        match error:
            case Flooded():
                return SendRetry(reason, after_seconds=error.after_seconds, sent_ids=sent_ids)
            case NotSent():
                return SendRetry(reason, sent_ids=sent_ids)
            case InvalidToken():
                # ChannelDown cannot say what arrived, so with parts out it is a retry.
                return SendRetry(reason, sent_ids=sent_ids) if sent_ids else self._down(error)
            case Forbidden() | BadRequest() | ChatMigrated():
                return SendRefused(reason, sent_ids=sent_ids)
            case _:
                return SendUnknown(reason, sent_ids=sent_ids)

    def _safe(self, error: TelegramError) -> str:
        return self._safe_text(str(error))

    def _safe_text(self, text: str) -> str:
        return text.replace(self._token, "<token>") if self._token else text
