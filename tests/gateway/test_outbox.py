"""Replies on their way: each delivered once, or honestly unknown; one slow chat holds up no other."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from channels.channel import ChannelDown, SendRefused, SendRetry, SendUnknown
from tests.fakes.hub import GUEST, OWNER, crashed_copy, hub
from tests.fakes.waiting import until


async def test_an_ambiguous_failure_is_unknown_and_not_sent_again(tmp_path: Path, caplog: Any) -> None:
    async with hub(tmp_path / "h") as core:
        core.channel.outcomes.append(SendUnknown("the line broke after the request left"))
        await core.say("hello")
        await core.quiet()
        assert core.channel.calls == 1
        [delivery] = await core.store.shown_deliveries()
        assert delivery.state == "unknown"
        assert delivery.reason == "the line broke after the request left"
    async with hub(tmp_path / "h") as core:
        await core.quiet()
        assert core.channel.calls == 0
    assert "unknown" in caplog.text


async def test_a_person_can_have_an_unknown_reply_sent_again(tmp_path: Path, caplog: Any) -> None:
    async with hub(tmp_path / "h") as core:
        core.channel.outcomes.append(SendUnknown("broke"))
        await core.say("hello")
        await core.quiet()
        [delivery] = await core.store.shown_deliveries()
        assert await core.outbox.retry(delivery.key)
        await core.quiet()
        assert core.channel.texts == ["re: hello"]
        assert not await core.outbox.retry(delivery.key)
        assert not await core.outbox.retry("no such key")


async def test_what_surely_did_not_arrive_is_sent_again_until_it_does(tmp_path: Path) -> None:
    async with hub(tmp_path / "h") as core:
        core.channel.outcomes.extend(
            [SendRetry("refused", after_seconds=0.001), ChannelDown("unreachable", "down", retry_after_seconds=0.001)]
        )
        await core.say("hello")
        await core.quiet()
        assert core.channel.calls == 3
        assert core.channel.texts == ["re: hello"]
        assert await core.store.shown_deliveries() == []


async def test_a_refused_reply_is_failed_with_its_reason(tmp_path: Path, caplog: Any) -> None:
    async with hub(tmp_path / "h") as core:
        core.channel.outcomes.append(SendRefused("the bot was blocked"))
        await core.say("hello")
        await core.quiet()
        [delivery] = await core.store.shown_deliveries()
        assert (delivery.state, delivery.reason) == ("failed", "the bot was blocked")
        assert core.channel.calls == 1


async def test_a_long_wait_of_one_chat_delays_no_other_and_survives_a_restart(tmp_path: Path) -> None:
    async with hub(tmp_path / "h") as core:
        core.channel.by_chat[OWNER] = core.channel.by_chat.get(OWNER) or type(core.channel.outcomes)()
        core.channel.by_chat[OWNER].append(SendRetry("flood", after_seconds=149))
        await core.say("slow")
        await until(lambda: core.channel.calls == 1)
        core.channel.changed.clear()
        await core.say("quick", chat=GUEST, sender=GUEST)
        async with asyncio.timeout(5):
            await core.channel.changed.wait()
        assert core.channel.texts == ["re: quick"]

        async def put_off() -> bool:
            return [delivery.state for delivery in await core.store.open_deliveries()] == ["retry"]

        await until(put_off)
        waiting = await core.store.open_deliveries()
        assert waiting[0].next_at is not None
        await core.store.move_delivery(waiting[0], "retry", waiting[0].next_at, attempts=1, next_at=None)
    async with hub(tmp_path / "h") as core:
        await core.quiet()
        assert core.channel.texts == ["re: slow"]


async def test_replies_of_a_chat_arrive_in_order_when_the_first_must_wait(tmp_path: Path) -> None:
    async with hub(tmp_path / "h") as core:
        core.channel.outcomes.append(SendRetry("flood", after_seconds=0.05))
        for n in range(4):
            await core.say(f"{n}")
            await until(core.nothing_waits)
        await core.quiet()
        assert core.channel.texts == [f"re: {n}" for n in range(4)]


async def test_parts_that_arrived_are_not_sent_again(tmp_path: Path) -> None:
    async with hub(tmp_path / "h") as core:
        core.channel.outcomes.append(SendRetry("flood", after_seconds=0.001, sent_ids=("x1", "x2")))
        await core.say("long")
        await core.quiet()
        assert core.channel.delivered[0].sent_ids == ("x1", "x2")


async def test_a_reply_that_was_being_sent_at_a_crash_is_unknown(tmp_path: Path, caplog: Any) -> None:
    async with hub(tmp_path / "h") as core:
        core.channel.gate = asyncio.Event()
        await core.say("hello")
        await until(lambda: core.channel.calls == 1)
        crashed = crashed_copy(tmp_path / "h", tmp_path / "crashed")
        core.channel.gate.set()
        await core.quiet()
    async with hub(crashed) as core:
        await core.quiet()
        assert core.channel.calls == 0
        [delivery] = await core.store.shown_deliveries()
        assert delivery.state == "unknown"


async def test_a_reply_planned_before_a_crash_is_sent_once_after_it(tmp_path: Path) -> None:
    async with hub(tmp_path / "h") as core:
        core.outbox.put = lambda delivery: None  # the program dies before it begins to send
        await core.say("hello")
        await until(core.nothing_waits)
    async with hub(tmp_path / "h") as core:
        await core.quiet()
        assert core.channel.texts == ["re: hello"]
        assert [line["dir"] for line in core.log()] == ["in", "out"]


async def test_a_channel_that_is_switched_off_keeps_its_replies(tmp_path: Path) -> None:
    async with hub(tmp_path / "h") as core:
        core.outbox.put = lambda delivery: None
        await core.say("hello")
        await until(core.nothing_waits)
    async with hub(tmp_path / "h") as core:
        await core.quiet()
        assert len(core.channel.texts) == 1
