"""What every channel keeps to, whatever the platform."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal, Protocol

import aiohttp
import pytest
from pydantic import SecretStr

from channels.channel import Channel, NotAccepted, SendRefused, SendRetry, SendUnknown
from channels.message import Address, OutboundMessage
from channels.scheduled.channel import ScheduledChannel
from channels.scheduled.types import ScheduledRun
from channels.telegram.channel import TelegramChannel
from channels.telegram.settings import TelegramSettings
from channels.whatsapp.channel import WhatsAppChannel
from channels.whatsapp.settings import WhatsAppSettings
from tests.fakes import bot_api, whatsapp
from tests.fakes.backend import FakeBackend, PageServer
from tests.fakes.bot_api import BotApi
from tests.fakes.channel_ports import DictMemory, Inbox, at_once, context
from tests.fakes.waiting import until

Outcome = Literal["busy", "refused", "broken"]


class ChannelWorld(Protocol):
    """A channel and the platform around it. `chat` is a chat that may be answered in."""

    channel: Channel
    chat: str

    def heard(self, text: str) -> str:
        """What the gateway hears when a person writes `text`."""
        ...

    async def write(self, text: str) -> None:
        """A person writes into the chat; returns without waiting for the channel."""
        ...

    def acknowledged(self) -> bool:
        """The platform was told that everything written so far is taken."""
        ...

    async def until_acknowledged(self) -> None: ...


class SendingWorld(ChannelWorld, Protocol):
    """A platform that takes what is sent. `wait_seconds` is the pause it names when it is busy, if it names one."""

    wait_seconds: float | None

    def shown(self) -> list[str]:
        """The texts people see from us in the chat, in order."""
        ...

    def next_send(self, outcome: Outcome) -> None:
        """The next send meets a busy platform, a definite no, or a line that breaks after the request left."""
        ...


@asynccontextmanager
async def listening(world: ChannelWorld, inbox: Inbox) -> AsyncGenerator[None]:
    """`run` in the background; ends it and checks that it ended only because of that."""
    task = asyncio.create_task(world.channel.run(inbox))
    try:
        yield
    finally:
        task.cancel()
        done, _ = await asyncio.wait([task], timeout=2)
        assert done, "run did not end within 2 s of its cancellation"
        assert task.cancelled() or task.exception() is None


class ChannelContract:
    """Subclass it per channel and give it the fixture `world`."""

    async def test_messages_come_in_order_with_everything_the_gateway_needs(self, world: ChannelWorld) -> None:
        inbox = Inbox()
        async with listening(world, inbox):
            for text in ("one", "two", "three"):
                await world.write(text)
            await inbox.until_saved(3)
        assert inbox.texts == [world.heard(text) for text in ("one", "two", "three")]
        first = inbox.saved[0]
        assert first.address == Address(world.channel.info.name, world.chat)
        assert first.sent_at.utcoffset() == timedelta(0)
        assert first.sender_id
        assert first.sender_name
        assert first.wants_answer
        assert len({message.dedupe_key for message in inbox.saved}) == 3

    async def test_nothing_is_acknowledged_before_it_is_saved(self, world: ChannelWorld) -> None:
        inbox = Inbox()
        inbox.open.clear()
        async with listening(world, inbox):
            await world.write("keep me")
            await inbox.until_asked(1)
            assert not world.acknowledged()
            inbox.open.set()
            await world.until_acknowledged()
        assert inbox.texts == [world.heard("keep me")]

    async def test_what_could_not_be_saved_comes_again_in_order(self, world: ChannelWorld) -> None:
        inbox = Inbox()
        inbox.refusals = 2
        async with listening(world, inbox):
            await world.write("first")
            await world.write("second")
            await inbox.until_saved(2)
            await world.until_acknowledged()
        assert inbox.texts == [world.heard("first"), world.heard("second")]

    async def test_a_run_that_ended_before_saving_loses_nothing(self, world: ChannelWorld) -> None:
        inbox = Inbox()
        inbox.open.clear()
        async with listening(world, inbox):
            await world.write("half way")
            await inbox.until_asked(1)
        inbox.open.set()
        async with listening(world, inbox):
            await inbox.until_saved(1)
        assert inbox.texts == [world.heard("half way")]

    async def test_a_send_needs_no_listening_and_says_when_it_was(self, world: ChannelWorld) -> None:
        receipt = await world.channel.send(message(world, "Hello *there*"))
        assert receipt.at.tzinfo is UTC


def message(world: ChannelWorld, text: str, sent_ids: tuple[str, ...] = ()) -> OutboundMessage:
    address = Address(world.channel.info.name, world.chat)
    return OutboundMessage("key-1", address, text, sent_ids=sent_ids)


class SendingContract:
    """What is asked besides of a channel whose `send` hands something to a platform."""

    LONG_TEXT = "A line that says something.\n" * 600

    async def test_a_message_that_was_sent_is_shown_and_has_its_id(self, world: SendingWorld) -> None:
        receipt = await world.channel.send(message(world, "Hello *there*"))
        assert len(world.shown()) == 1
        assert len(receipt.message_ids) == 1

    async def test_parts_that_arrived_before_are_not_sent_again(self, world: SendingWorld) -> None:
        whole = await world.channel.send(message(world, self.LONG_TEXT))
        parts = world.shown()
        assert len(parts) == len(whole.message_ids) > 1
        receipt = await world.channel.send(message(world, self.LONG_TEXT, whole.message_ids[:1]))
        assert world.shown()[len(parts) :] == parts[1:]
        assert receipt.message_ids[0] == whole.message_ids[0]
        assert len(receipt.message_ids) == len(parts)

    async def test_a_busy_platform_means_again_after_its_own_wait(self, world: SendingWorld) -> None:
        world.next_send("busy")
        with pytest.raises(SendRetry) as caught:
            await world.channel.send(message(world, "later"))
        assert caught.value.after_seconds == world.wait_seconds
        assert world.shown() == []
        await world.channel.send(message(world, "later"))
        assert len(world.shown()) == 1

    async def test_a_definite_no_is_final(self, world: SendingWorld) -> None:
        world.next_send("refused")
        with pytest.raises(SendRefused):
            await world.channel.send(message(world, "no"))
        assert world.shown() == []

    async def test_a_line_that_breaks_after_the_request_is_unknown_and_not_sent_again(
        self, world: SendingWorld
    ) -> None:
        world.next_send("broken")
        with pytest.raises(SendUnknown):
            await world.channel.send(message(world, "perhaps"))
        assert len(world.shown()) == 1


class TelegramWorld:
    wait_seconds: float | None = 7.0
    chat = "77"

    def __init__(self, api: BotApi, home: Path) -> None:
        self.api = api
        api.chats[77] = "private"
        settings = TelegramSettings(enabled=True, token=SecretStr(api.token), base_url=api.base_url)
        self.channel: Channel = TelegramChannel(context(settings, home), sleep=at_once)

    def heard(self, text: str) -> str:
        return text

    async def write(self, text: str) -> None:
        self.api.push_text(77, text)

    def acknowledged(self) -> bool:
        return not self.api.pending

    async def until_acknowledged(self) -> None:
        await self.api.until(self.acknowledged)

    def shown(self) -> list[str]:
        return [message.text for message in self.api.sent]

    def next_send(self, outcome: Outcome) -> None:
        faults = {
            "busy": bot_api.flood(7),
            "refused": bot_api.Fault(403, "Forbidden: bot was blocked by the user"),
            "broken": bot_api.DROPPED_AFTER,
        }
        self.api.script("sendMessage", faults[outcome])


class TestTelegram(ChannelContract, SendingContract):
    @pytest.fixture
    async def world(self, tmp_path: Path) -> AsyncIterator[SendingWorld]:
        async with BotApi() as api:
            yield TelegramWorld(api, tmp_path)


class WhatsAppWorld:
    wait_seconds: float | None = None
    chat = whatsapp.OWNER

    def __init__(self, platform: whatsapp.Platform, home: Path) -> None:
        self.platform = platform
        memory = DictMemory({"account": json.dumps({"ids": [whatsapp.ME, whatsapp.MY_LID]})})
        (home / "whatsapp" / "auth").mkdir(parents=True)
        settings = WhatsAppSettings(enabled=True, owner=whatsapp.OWNER)
        parts = context(settings, home, memory=memory)
        self.channel: Channel = WhatsAppChannel(
            parts,
            library=whatsapp.LIBRARY,
            new_client=platform.new_client,
            reach=whatsapp.reachable,
            sleep=asyncio.sleep,
        )
        self._written = 0

    def heard(self, text: str) -> str:
        return text

    async def write(self, text: str) -> None:
        self._written += 1
        self.platform.push(whatsapp.event(text, f"M{self._written}"))

    def acknowledged(self) -> bool:
        return self.platform.taken == self.platform.handed_over

    async def until_acknowledged(self) -> None:
        await until(self.acknowledged)

    def shown(self) -> list[str]:
        return self.platform.texts

    def next_send(self, outcome: Outcome) -> None:
        match outcome:
            case "busy":
                self.platform.faults.append("server returned error 429")
            case "refused":
                self.platform.faults.append("server returned error 403")
            case "broken":
                self.platform.lose_after.append("timed out waiting for message send response")


class TestWhatsApp(ChannelContract, SendingContract):
    @pytest.fixture
    async def world(self, tmp_path: Path) -> AsyncIterator[SendingWorld]:
        platform = whatsapp.Platform()
        yield WhatsAppWorld(platform, tmp_path)
        platform.close()


class _Posted:
    """Texts that a patient client hands in one after the other, each again until it is taken."""

    def __init__(self) -> None:
        self._left: list[str] = []
        self._task: asyncio.Task[None] | None = None

    async def hand_in(self, text: str, key: str) -> bool:
        """One try; True when the text was taken."""
        raise NotImplementedError

    def heard(self, text: str) -> str:
        return text

    async def write(self, text: str) -> None:
        self._left.append(text)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._all())

    async def _all(self) -> None:
        while self._left:
            text = self._left[0]
            if await self.hand_in(text, f"key of {text}"):
                self._left.pop(0)
            else:
                await asyncio.sleep(0.005)

    def acknowledged(self) -> bool:
        return not self._left

    async def until_acknowledged(self) -> None:
        await until(self.acknowledged)

    async def close(self) -> None:
        if self._task is not None:
            await self._task


class InAppWorld(_Posted):
    chat = "c1"

    def __init__(self, server: PageServer, client: aiohttp.ClientSession) -> None:
        super().__init__()
        self.channel: Channel = server.channel
        self._client = client
        server.backend.add_conversation(self.chat)

    async def hand_in(self, text: str, key: str) -> bool:
        body = {"text": text, "key": key, "conversation": self.chat}
        async with self._client.post("/api/messages", json=body) as response:
            assert response.status in {202, 503}
            return response.status == 202


class TestInApp(ChannelContract):
    @pytest.fixture
    async def world(self, tmp_path: Path) -> AsyncIterator[ChannelWorld]:
        server = PageServer(FakeBackend(tmp_path), tmp_path, token="the-token")
        server.accepting = False
        await server.start()
        async with aiohttp.ClientSession(server.url, headers={"Authorization": "Bearer the-token"}) as client:
            made = InAppWorld(server, client)
            yield made
            await made.close()
        await server.stop()


class ScheduledWorld(_Posted):
    chat = "water the plants"

    def __init__(self, channel: ScheduledChannel) -> None:
        super().__init__()
        self.channel: Channel = channel
        self._submit = channel.submit

    def heard(self, text: str) -> str:
        return f"[scheduled run: {self.chat}]\n{text}"

    async def hand_in(self, text: str, key: str) -> bool:
        due_at = datetime(2027, 1, 1, tzinfo=UTC)
        try:
            await self._submit(ScheduledRun("heartbeat", self.chat, key, due_at, text, "none"))
        except NotAccepted:
            return False
        return True


class TestScheduled(ChannelContract):
    @pytest.fixture
    async def world(self, tmp_path: Path) -> AsyncIterator[ChannelWorld]:
        made = ScheduledWorld(ScheduledChannel(context(None, tmp_path)))
        yield made
        await made.close()
