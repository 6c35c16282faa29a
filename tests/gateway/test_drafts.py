"""The answer while it is written: one message that grows, and is the reply at the end."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agent.types import Segment, Turn, TurnPort, TurnResult
from channels.channel import SendRetry, SendUnknown
from tests.fakes.channel import FakeChannel
from tests.fakes.hub import Hub, crashed_copy, hub, telegram_settings
from tests.fakes.waiting import until

FIRST = "This is the beginning of a long answer"


class Writing:
    """A turn that shows its text piece by piece; `go` lets it end."""

    def __init__(self, reply: str | None = None) -> None:
        self.go = asyncio.Event()
        self.more: asyncio.Queue[str] = asyncio.Queue()
        self.reply = reply
        self.said = ""

    async def __call__(self, turn: Turn, port: TurnPort) -> TurnResult:
        self.write(port, FIRST)
        while not self.go.is_set():
            piece = asyncio.create_task(self.more.get())
            going = asyncio.create_task(self.go.wait())
            await asyncio.wait({piece, going}, return_when=asyncio.FIRST_COMPLETED)
            for task in (piece, going):
                task.cancel()
            if piece.done() and not piece.cancelled():
                self.write(port, piece.result())
        reply = self.said if self.reply is None else self.reply
        return TurnResult(turn.id, "done", reply, (reply,))

    def write(self, port: TurnPort, text: str) -> None:
        self.said += text
        port.emit(Segment("text", text))


def growing(core: Hub, seconds: float = 0.01) -> FakeChannel:
    """Makes the hub's channel one whose messages can be changed."""
    channel = FakeChannel("telegram", draft_interval_seconds=seconds)
    core.channel = core.channels["telegram"] = channel
    return channel


async def test_the_answer_grows_in_one_message_and_is_the_reply_at_the_end(tmp_path: Path) -> None:
    turn = Writing()
    async with hub(tmp_path / "h", turn) as core:
        channel = growing(core)
        await core.say("go on")
        await until(lambda: len(channel.delivered) == 1)
        turn.more.put_nowait(" that goes on")
        await until(lambda: len(channel.delivered) == 2)
        turn.go.set()
        await core.quiet()
        drafts, (last,) = channel.delivered[:-1], channel.delivered[-1:]
        assert [one.text for one in drafts] == [FIRST, f"{FIRST} that goes on"]
        assert [(one.is_draft, one.replaces) for one in drafts] == [(True, None), (True, "p1")]
        assert (last.text, last.is_draft, last.replaces) == (turn.said, False, "p1")
        assert [line["text"] for line in core.log() if line["dir"] == "out"] == [turn.said]


async def test_a_turn_that_is_quick_shows_nothing_before_its_reply(tmp_path: Path) -> None:
    turn = Writing()
    turn.go.set()
    async with hub(tmp_path / "h", turn) as core:
        channel = growing(core, 5)
        await core.say("quick")
        await core.quiet()
    assert [(one.is_draft, one.replaces) for one in channel.delivered] == [(False, None)]


async def test_channels_that_take_whole_messages_get_whole_messages(tmp_path: Path) -> None:
    turn = Writing()
    async with hub(tmp_path / "h", turn) as core:
        await core.say("go on")
        await until(lambda: bool(turn.said))
        await asyncio.sleep(0.05)
        turn.go.set()
        await core.quiet()
    assert [one.is_draft for one in core.channel.delivered] == [False]


async def test_a_scheduled_run_shows_nothing_before_it_is_known_to_be_worth_it(tmp_path: Path) -> None:
    turn = Writing("HEARTBEAT_OK")
    async with hub(tmp_path / "h", turn) as core:
        channel = growing(core)
        await core.say("look", channel="heartbeat", chat="job", sender="clock", origin="scheduled")
        await until(lambda: bool(turn.said))
        await asyncio.sleep(0.05)
        turn.go.set()
        await core.quiet()
    assert channel.delivered == []


async def test_a_crash_in_the_middle_leaves_one_message(tmp_path: Path) -> None:
    async with hub(tmp_path / "h", Writing()) as core:
        channel = growing(core)
        await core.say("go on")
        await until(lambda: len(channel.delivered) == 1)
        # The id is on disk before anything else is shown.
        await until(lambda: _draft_of(core))
        copy = crashed_copy(tmp_path / "h", tmp_path / "copy")
    again = Writing("the whole answer")
    again.go.set()
    core = Hub(copy, again, telegram_settings(), {})
    second = growing(core, 5)
    await core.start()
    await core.quiet()
    await core.stop()
    assert [(one.text, one.replaces) for one in second.delivered] == [("the whole answer", "p1")]


async def _draft_of(core: Hub) -> bool:
    rows = await core.store._database.read(  # pyright: ignore[reportPrivateUsage]
        lambda c: c.execute("SELECT draft FROM turn WHERE draft IS NOT NULL").fetchall()
    )
    return bool(rows) and '"p1"' in rows[0][0]


@pytest.mark.parametrize("fault", [SendRetry("busy", after_seconds=0.02), SendUnknown("the line broke")])
async def test_a_draft_that_fails_never_costs_the_reply(tmp_path: Path, fault: Exception) -> None:
    turn = Writing()
    async with hub(tmp_path / "h", turn) as core:
        channel = growing(core)
        channel.outcomes.append(fault)
        await core.say("go on")
        await until(lambda: channel.calls >= 1)
        await asyncio.sleep(0.1)
        turn.go.set()
        await core.quiet()
    final = [one for one in channel.delivered if not one.is_draft]
    assert [one.text for one in final] == [turn.said]
    # After a busy moment it is shown again; when nobody knows whether it arrived, it is not.
    assert final[0].replaces == ("p1" if isinstance(fault, SendRetry) else None)


async def test_a_change_that_broke_off_with_the_program_is_made_again(tmp_path: Path) -> None:
    turn = Writing()
    async with hub(tmp_path / "h", turn) as core:
        channel = growing(core)
        await core.say("go on")
        await until(lambda: len(channel.delivered) == 1)
        channel.gate = asyncio.Event()
        turn.go.set()
        await until(lambda: _sending(core))
        copy = crashed_copy(tmp_path / "h", tmp_path / "copy")
        channel.gate.set()
    core = Hub(copy, Writing(), telegram_settings(), {})
    second = growing(core)
    await core.start()
    await core.quiet()
    await core.stop()
    assert [(one.text, one.replaces) for one in second.delivered] == [(FIRST, "p1")]


async def _sending(core: Hub) -> bool:
    found: list[Any] = await core.store.open_deliveries()
    return [one.state for one in found] == ["sending"]


async def test_a_stopped_turn_leaves_what_was_shown_as_it_is(tmp_path: Path) -> None:
    async with hub(tmp_path / "h", Writing()) as core:
        channel = growing(core)
        await core.say("go on")
        await until(lambda: len(channel.delivered) == 1)
        await core.say("/stop")
        await core.quiet()
    assert [one.text for one in channel.delivered if not one.is_draft] == ["Stopped."]
