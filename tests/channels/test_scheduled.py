"""The clock as a channel, and the answer that needs no telling."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from channels.channel import ChannelContext, ChannelState, NotAccepted
from channels.message import Accepted, Address, InboundMessage, OutboundMessage
from channels.scheduled import channel as scheduled
from channels.scheduled.channel import ScheduledChannel
from channels.scheduled.quiet import is_quiet
from channels.scheduled.types import ScheduledRun
from gateway.uploads import UploadFolder

DUE = datetime(2027, 1, 1, 5, tzinfo=UTC)
NOW = datetime(2027, 1, 1, 5, 0, 1, tzinfo=UTC)
RUN = ScheduledRun("heartbeat", "صباح", "beat:صباح:2027-01-01T05:00:00+00:00", DUE, "Say good morning", "owner")


@dataclass
class Gateway:
    """Everything a channel is given, remembered."""

    home: Address | None = field(default_factory=lambda: Address("chat", "7"))
    messages: list[InboundMessage] = field(default_factory=list[InboundMessage])
    states: list[tuple[ChannelState, str]] = field(default_factory=list[tuple[ChannelState, str]])
    received_count: int = 0
    fails: NotAccepted | None = None

    async def accept(self, message: InboundMessage) -> Accepted:
        if self.fails is not None:
            raise self.fails
        is_new = message.dedupe_key not in {other.dedupe_key for other in self.messages}
        self.messages.append(message)
        return Accepted("m1", "c1", is_new, will_answer=True)

    async def resolve_target(self, target: str) -> Address | None:
        if target == "owner":
            return self.home
        channel, _, chat = target.partition(":")
        return Address(channel, chat) if channel == "chat" else None

    def state(self, state: ChannelState, detail: str = "", remedy: str = "") -> None:
        self.states.append((state, detail))

    def received(self) -> None:
        self.received_count += 1

    async def get(self, key: str) -> str | None:
        return None

    async def put(self, key: str, value: str) -> None:
        return None

    async def migrate_chat(self, old_chat_id: str, new_chat_id: str, *, renumbered: bool = False) -> None:
        return None


@pytest.fixture
def gateway() -> Gateway:
    return Gateway()


@pytest.fixture
def stopped(gateway: Gateway, tmp_path: Path) -> ScheduledChannel:
    return ScheduledChannel(
        ChannelContext(None, tmp_path, gateway, gateway, gateway, lambda: NOW, UploadFolder(tmp_path, lambda: NOW))
    )


@pytest.fixture
async def channel(stopped: ScheduledChannel, gateway: Gateway) -> AsyncIterator[ScheduledChannel]:
    task = asyncio.create_task(stopped.run(gateway.accept))
    yield stopped
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_due_run_becomes_a_message_of_the_clock(channel: ScheduledChannel, gateway: Gateway) -> None:
    accepted = await channel.submit(RUN)
    assert accepted.is_new
    (message,) = gateway.messages
    assert message.address == Address("heartbeat", "صباح")
    assert message.dedupe_key == message.message_id == RUN.key
    assert message.text == "[scheduled run: صباح]\nSay good morning"
    assert (message.sender_id, message.origin, message.sent_at) == ("clock", "scheduled", NOW)
    assert (message.answer_to, message.answers_nowhere) == (Address("chat", "7"), False)
    assert gateway.received_count == 1


async def test_a_procedure_has_its_own_channel_id(channel: ScheduledChannel, gateway: Gateway) -> None:
    await channel.submit(replace(RUN, kind="procedure"))
    assert gateway.messages[0].channel == "procedure"


async def test_the_same_key_twice_is_told_as_known(channel: ScheduledChannel) -> None:
    await channel.submit(RUN)
    assert not (await channel.submit(RUN)).is_new


async def test_the_target_is_fixed_when_the_run_comes_due(channel: ScheduledChannel, gateway: Gateway) -> None:
    await channel.submit(replace(RUN, target="chat:9"))
    await channel.submit(RUN)
    gateway.home = Address("chat", "8")
    assert [message.answer_to for message in gateway.messages] == [Address("chat", "9"), Address("chat", "7")]


async def test_a_run_without_target_answers_nowhere(channel: ScheduledChannel, gateway: Gateway) -> None:
    await channel.submit(replace(RUN, target="none"))
    assert (gateway.messages[0].answer_to, gateway.messages[0].answers_nowhere) == (None, True)
    assert gateway.states[-1][0] == "connected"


async def test_an_unknown_target_runs_and_shows_in_the_state(channel: ScheduledChannel, gateway: Gateway) -> None:
    await channel.submit(replace(RUN, target="elsewhere:1"))
    assert gateway.messages[0].answers_nowhere
    state, detail = gateway.states[-1]
    assert state == "degraded"
    assert "elsewhere:1" in detail
    await channel.submit(RUN)
    assert gateway.states[-1][0] == "connected"


async def test_a_run_that_could_not_be_saved_is_told_so(channel: ScheduledChannel, gateway: Gateway) -> None:
    gateway.fails = NotAccepted("The disk is full.")
    with pytest.raises(NotAccepted, match="disk is full"):
        await channel.submit(RUN)
    assert gateway.received_count == 0


async def test_a_run_due_at_the_start_waits_for_the_channel(stopped: ScheduledChannel, gateway: Gateway) -> None:
    submitted = asyncio.create_task(stopped.submit(RUN))
    await asyncio.sleep(0)
    assert not gateway.messages
    task = asyncio.create_task(stopped.run(gateway.accept))
    async with asyncio.timeout(5):
        assert (await submitted).is_new
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_channel_that_does_not_run_takes_nothing(
    stopped: ScheduledChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduled, "ACCEPT_WAIT_SECONDS", 0.01)
    with pytest.raises(NotAccepted, match="not running"):
        await stopped.submit(RUN)


async def test_what_is_sent_to_the_clock_is_kept_and_goes_nowhere(channel: ScheduledChannel) -> None:
    receipt = await channel.send(OutboundMessage("k", Address("heartbeat", "صباح"), "hello"))
    assert (receipt.message_ids, receipt.at) == ((), NOW)


@pytest.mark.parametrize(
    "reply",
    [
        "HEARTBEAT_OK",
        "  HEARTBEAT_OK\n",
        "**HEARTBEAT_OK**",
        "`HEARTBEAT_OK`.",
        "\u200fHEARTBEAT_OK\u200f",
        "HEARTBEAT_OK\n\nAll three channels answer.",
        "Nothing new since noon.\n\nHEARTBEAT_OK",
        "لا جديد اليوم. HEARTBEAT_OK.",
        "HEARTBEAT_OK " + "x" * 300,
        "x" * 300 + "\nHEARTBEAT_OK",
        "HEARTBEAT_OK fine HEARTBEAT_OK",
    ],
)
def test_an_answer_that_all_is_well_is_quiet(reply: str) -> None:
    assert is_quiet(reply)


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "All is well",
        "heartbeat_ok",
        "HEARTBEAT_OKAY",
        "NOT_HEARTBEAT_OK",
        "The word HEARTBEAT_OK means that all is well.",
        "HEARTBEAT_OK " + "x" * 301,
        "x" * 301 + " HEARTBEAT_OK",
        "HEARTBEAT OK",
    ],
)
def test_any_other_answer_is_told(reply: str) -> None:
    assert not is_quiet(reply)
