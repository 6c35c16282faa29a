"""The one queue: order in a session, sessions side by side, nothing lost and nothing answered twice."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from agent.types import ToolCall, ToolResult, Turn, TurnPort, TurnResult
from channels.message import Address
from gateway import queue
from tests.fakes.clock import FakeDesk
from tests.fakes.hub import GUEST, OWNER, crashed_copy, echo, hub, telegram_settings
from tests.fakes.waiting import until


class Script:
    """A turn that waits at a gate, and keeps what it was asked. `begun` counts up as turns begin."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self.gate = asyncio.Event()
        self.begun = asyncio.Semaphore(0)
        self.most = 0
        self.now = 0

    async def __call__(self, turn: Turn, port: TurnPort) -> TurnResult:
        self.turns.append(turn)
        self.now += 1
        self.most = max(self.most, self.now)
        self.begun.release()
        try:
            await self.gate.wait()
        finally:
            self.now -= 1
        return await echo(turn, port)

    @property
    def texts(self) -> list[str]:
        return [turn.text for turn in self.turns]


async def test_messages_that_wait_together_get_one_reply_each_kept_whole(tmp_path: Path) -> None:
    script = Script()
    async with hub(tmp_path / "h", script) as core:
        first = await core.say("one")
        await script.begun.acquire()
        await core.say("two")
        await core.say("three\n\nwith a second paragraph")
        script.gate.set()
        await core.quiet()
        assert script.texts == ["one", "two\n\nthree\n\nwith a second paragraph"]
        assert core.channel.texts == ["re: one", "re: two\n\nthree\n\nwith a second paragraph"]
        messages = await core.messages(first.conversation_id)
        turns = {message.text: message.turn_id for message in messages if message.role == "user"}
        assert turns["two"] == turns["three\n\nwith a second paragraph"] != turns["one"]
        assert {message.state for message in messages} == {"answered"}


async def test_one_turn_at_a_time_in_a_session_and_sessions_side_by_side(tmp_path: Path) -> None:
    script = Script()
    async with hub(tmp_path / "h", script) as core:
        await core.say("a")
        await core.say("b", chat=GUEST, sender=GUEST)
        await script.begun.acquire()
        await script.begun.acquire()
        await core.say("c")
        assert script.most == 2
        script.gate.set()
        await core.quiet()
        assert script.most == 2
        assert script.texts == ["a", "b", "c"]


async def test_no_more_turns_at_once_than_the_setting_allows(tmp_path: Path) -> None:
    script = Script()
    async with hub(tmp_path / "h", script, telegram_settings(workers=2)) as core:
        for n in range(5):
            await core.say(f"{n}", chat=f"g{n}")
        await script.begun.acquire()
        await script.begun.acquire()
        script.gate.set()
        await core.quiet()
        assert script.most == 2
        assert sorted(core.channel.texts) == [f"re: {n}" for n in range(5)]


async def test_people_go_before_the_clock(tmp_path: Path) -> None:
    script = Script()
    async with hub(tmp_path / "h", script, telegram_settings(workers=1)) as core:
        await core.say("busy")
        await script.begun.acquire()
        await core.say("tick", channel="heartbeat", chat="job", origin="scheduled", answers_nowhere=True)
        await core.say("person", chat=GUEST, sender=GUEST)
        script.gate.set()
        await core.quiet()
        assert script.texts == ["busy", "person", "tick"]


async def test_runs_of_the_clock_have_three_places_and_leave_one_for_people(tmp_path: Path) -> None:
    for workers, places in ((8, 3), (3, 2), (1, 1)):
        script = Script()
        async with hub(tmp_path / f"h{workers}", script, telegram_settings(workers=workers)) as core:
            for n in range(6):
                await core.say("tick", channel="heartbeat", chat=f"job {n}", origin="scheduled", answers_nowhere=True)
            for _ in range(places):
                await script.begun.acquire()
            assert script.most == places
            await core.say("person")
            if workers > 1:
                await script.begun.acquire()
            assert ("person" in script.texts) == (workers > 1)
            script.gate.set()
            await core.quiet()
            assert script.texts.index("person") == places
            assert len(script.texts) == 7


async def test_people_of_a_group_are_not_mixed_in_one_turn(tmp_path: Path) -> None:
    script = Script()
    async with hub(tmp_path / "h", script) as core:
        await core.say("busy", chat="-5")
        await script.begun.acquire()
        await core.say("owner", chat="-5")
        await core.say("guest", chat="-5", sender=GUEST)
        await core.say("owner again", chat="-5")
        script.gate.set()
        await core.quiet()
        assert script.texts == ["busy", "owner", "guest", "owner again"]
        assert [turn.person.rights for turn in script.turns] == ["owner", "owner", "allowed", "owner"]


async def test_a_guest_s_turn_knows_the_sessions_in_which_that_guest_wrote(tmp_path: Path) -> None:
    script = Script()
    script.gate.set()
    async with hub(tmp_path / "h", script) as core:
        await core.say("from the owner", chat="-6")
        await core.say("in a group", chat="-5", sender=GUEST)
        await core.quiet()
        await core.say("alone", chat=GUEST, sender=GUEST)
        await core.quiet()
        assert [set(turn.session_keys) for turn in script.turns if turn.text == "from the owner"] == [set()]
        assert set(script.turns[-1].session_keys) == {"telegram:-5", f"telegram:{GUEST}"}


async def test_what_comes_during_a_turn_is_offered_between_rounds_and_answered_by_it(tmp_path: Path) -> None:
    began, go_on = asyncio.Event(), asyncio.Event()

    async def listens(turn: Turn, port: TurnPort) -> TurnResult:
        began.set()
        await go_on.wait()
        heard = await port.heard(1)
        reply = " / ".join([turn.text, *heard])
        return TurnResult(turn.id, "done", reply, (reply,))

    async with hub(tmp_path / "h", listens) as core:
        await core.say("one")
        await began.wait()
        await core.say("two")
        await core.say("three")
        go_on.set()
        await core.quiet()
        assert core.channel.texts == ["one / two / three"]


async def test_a_reply_goes_to_the_chat_and_thread_of_its_message(tmp_path: Path) -> None:
    async with hub(tmp_path / "h") as core:
        await core.say("in a topic", chat="-5", thread_id="12")
        await core.say("beside it", chat="-5")
        await core.quiet()
        where = {message.text: message.address for message in core.channel.delivered}
        assert where == {
            "re: in a topic": Address("telegram", "-5", "12"),
            "re: beside it": Address("telegram", "-5", None),
        }


async def test_stop_ends_the_turn_and_what_waits_behind_it_is_answered(tmp_path: Path) -> None:
    script = Script()
    async with hub(tmp_path / "h", script) as core:
        first = await core.say("endless")
        await script.begun.acquire()
        await core.say("/stop")
        await core.say("next")
        await until(lambda: core.channel.texts == ["Stopped."])
        script.gate.set()
        await core.quiet()
        assert core.channel.texts == ["Stopped.", "re: next"]
        states = {message.text: message.state for message in await core.messages(first.conversation_id)}
        assert states["endless"] == "cancelled"
        assert states["next"] == "answered"


async def test_a_turn_over_its_time_is_told_and_the_others_follow(tmp_path: Path) -> None:
    begun = asyncio.Event()

    async def hangs_once(turn: Turn, port: TurnPort) -> TurnResult:
        if turn.text == "A":
            begun.set()
            await asyncio.Event().wait()
        return await echo(turn, port)

    async with hub(tmp_path / "h", hangs_once, turn_seconds_max=0.2) as core:
        await core.say("A")
        await begun.wait()
        core.queue._turn_seconds_max = 60  # for the turns after this one
        await core.say("B", chat=GUEST, sender=GUEST)
        await core.say("C")
        await core.quiet()
        in_the_chat = [message.text for message in core.channel.delivered if message.address.chat_id == OWNER]
        assert "took longer" in in_the_chat[0]
        assert in_the_chat[1:] == ["re: C"]
        assert "re: B" in core.channel.texts


async def test_a_fault_in_a_turn_is_one_sentence_to_the_person_and_stops_no_other(tmp_path: Path, caplog: Any) -> None:
    async def breaks(turn: Turn, port: TurnPort) -> TurnResult:
        if turn.text == "bad":
            raise ZeroDivisionError("secret detail")
        return await echo(turn, port)

    async with hub(tmp_path / "h", breaks) as core:
        first = await core.say("bad")
        await core.quiet()
        await core.say("good")
        await core.quiet()
        assert "Something went wrong" in core.channel.texts[0]
        assert "secret" not in core.channel.texts[0]
        assert core.channel.texts[1] == "re: good"
        assert (await core.messages(first.conversation_id))[0].state == "failed"
    assert "ZeroDivisionError" in caplog.text


async def test_what_ran_or_waited_at_a_crash_is_answered_once_after_it(tmp_path: Path) -> None:
    script = Script()
    async with hub(tmp_path / "h", script) as core:
        await core.say("A")
        await script.begun.acquire()
        await core.say("B")
        crashed = crashed_copy(tmp_path / "h", tmp_path / "crashed")
        script.gate.set()
        await core.quiet()
    async with hub(crashed) as core:
        await core.quiet()
        assert core.channel.texts == ["re: A\n\nB"]
        assert [line["text"] for line in core.log()] == ["A", "B", "re: A\n\nB"]
    async with hub(crashed) as core:
        await core.quiet()
        assert core.channel.texts == []


async def test_a_clean_stop_leaves_the_turn_to_the_next_start_and_counts_no_try(tmp_path: Path) -> None:
    script = Script()
    for _ in range(5):
        async with hub(tmp_path / "h", script, stop_seconds_max=0.01) as core:
            if not script.turns:
                await core.say("A")
            await script.begun.acquire()
    async with hub(tmp_path / "h") as core:
        await core.quiet()
        assert core.channel.texts == ["re: A"]


async def test_a_turn_that_takes_the_program_down_again_and_again_is_given_up(
    tmp_path: Path, monkeypatch: Any, caplog: Any
) -> None:
    monkeypatch.setattr(queue, "TURN_ATTEMPTS_MAX", 3)
    home = tmp_path / "h"
    script = Script()
    async with hub(home, script) as core:
        await core.say("poison")
        await script.begun.acquire()
        home = crashed_copy(home, tmp_path / "crash0")
        script.gate.set()
    for n in (1, 2):
        script = Script()
        async with hub(home, script) as core:
            await script.begun.acquire()
            home = crashed_copy(home, tmp_path / f"crash{n}")
            script.gate.set()
    script = Script()
    async with hub(home, script) as core:
        script.gate.set()
        await core.quiet()
        assert script.turns == []
        assert "broke off each time" in core.channel.texts[0]
        await core.say("harmless")
        await core.quiet()
        assert core.channel.texts[1] == "re: harmless"


async def test_a_call_that_ran_before_a_crash_is_told_and_not_lost(tmp_path: Path) -> None:
    half = asyncio.Event()
    calls = (ToolCall("a", "send", {"to": "x"}), ToolCall("b", "send", {"to": "y"}))

    async def two_calls(turn: Turn, port: TurnPort) -> TurnResult:
        await port.calls_begin(1, "working", calls)
        await port.call_ended(calls[0], ToolResult("a", True, "sent", "success"))
        half.set()
        await asyncio.Event().wait()
        raise AssertionError

    seen: list[Turn] = []

    async def goes_on(turn: Turn, port: TurnPort) -> TurnResult:
        seen.append(turn)
        return TurnResult(turn.id, "done", "finished", ("working", "finished"))

    async with hub(tmp_path / "h", two_calls, stop_seconds_max=0.01) as core:
        first = await core.say("do it")
        await half.wait()
        crashed = crashed_copy(tmp_path / "h", tmp_path / "crashed")
    async with hub(crashed, goes_on) as core:
        await core.quiet()
        earlier = seen[0].earlier_calls
        assert [(item.call.id, item.result.text if item.result else None) for item in earlier] == [
            ("a", "sent"),
            ("b", None),
        ]
        messages = await core.messages(first.conversation_id)
        assert [message.role for message in messages] == ["user", "assistant"]
        assert [call.outcome for call in messages[1].tool_calls] == ["success", "interrupted"]
        await core.say("and now?")
        await core.quiet()
        history = seen[1].history
        assert [message.role for message in history] == ["user", "assistant", "tool", "tool", "assistant"]
        assert history[3].text == "interrupted, not known whether it ran"
        assert [message.ref for message in history] == [
            f"conversation:{first.conversation_id}#{part}" if part else "" for part in ("1", "", "2.1", "2.2", "2")
        ]
        assert seen[0].previous_at is None
        assert seen[1].previous_at == messages[1].at


async def test_a_scheduled_answer_goes_to_its_target_and_is_known_there(tmp_path: Path) -> None:
    async with hub(tmp_path / "h") as core:
        core.queue.clock = desk = FakeDesk(job=())
        await core.say(
            "tick",
            channel="heartbeat",
            chat="job",
            message_id="beat:job:1",
            key="beat:job:1",
            origin="scheduled",
            answer_to=Address("telegram", OWNER),
        )
        await core.quiet()
        assert core.channel.delivered[0].address == Address("telegram", OWNER)
        assert [line["text"] for line in core.log()] == ["re: tick"]
        assert [line["text"] for line in core.log("job", "heartbeat")] == ["tick"]
        assert desk.ended == [("job", "beat:job:1", "ok")]
        answer = await core.say("what was that?")
        texts = [message.text for message in await core.messages(answer.conversation_id)]
        assert texts[:2] == ["re: tick", "what was that?"]


async def test_a_quiet_heartbeat_is_kept_and_not_sent(tmp_path: Path) -> None:
    async def all_well(turn: Turn, port: TurnPort) -> TurnResult:
        return TurnResult(turn.id, "done", "HEARTBEAT_OK", ("HEARTBEAT_OK",))

    async with hub(tmp_path / "h", all_well) as core:
        accepted = await core.say(
            "tick", channel="heartbeat", chat="job", origin="scheduled", answer_to=Address("telegram", OWNER)
        )
        await core.quiet()
        assert core.channel.calls == 0
        assert [message.role for message in await core.messages(accepted.conversation_id)] == ["user", "assistant"]


async def test_a_saved_answer_of_the_page_is_a_delivered_one(tmp_path: Path) -> None:
    async with hub(tmp_path / "h") as core:
        await core.say("hi", channel="inapp", chat="home", sender="owner", key="k1")
        await core.quiet()
        assert core.page.calls == 0
        assert [line["dir"] for line in core.log("home", "inapp")] == ["in", "out"]
        assert [kind for kind, _ in core.events if kind in {"message", "done"}] == ["message", "done"]
        assert await core.store.open_deliveries() == []


async def test_a_disk_that_fills_up_in_the_middle_of_a_turn_loses_no_message(tmp_path: Path, caplog: Any) -> None:
    async def calls(turn: Turn, port: TurnPort) -> TurnResult:
        await port.calls_begin(1, "x" * 300_000, (ToolCall("a", "look", {}),))
        return await echo(turn, port)

    async with hub(tmp_path / "h", calls, retry_seconds=0.01) as core:
        pages = await core.store.write(lambda c: c.execute("PRAGMA page_count").fetchone()[0])
        await core.store.write(lambda c: c.execute(f"PRAGMA max_page_count = {pages + 20}").fetchall())
        await core.say("hello")
        await until(lambda: "no space left" in caplog.text)
        await core.store.write(lambda c: c.execute("PRAGMA max_page_count = 1000000").fetchall())
        await core.quiet()
        assert core.channel.texts == ["re: hello"]


async def test_without_a_network_messages_wait_and_are_answered_when_the_line_is_back(tmp_path: Path) -> None:
    tries: list[str] = []

    async def no_line(turn: Turn, port: TurnPort) -> TurnResult:
        tries.append(turn.text)
        if len(tries) < 4:
            return TurnResult(turn.id, "failed", "", error="no network", waits=True)
        return await echo(turn, port)

    async with hub(tmp_path / "h", no_line, retry_seconds=0.02) as core:
        await core.say("hello")
        await until(lambda: len(core.channel.texts) == 2)
        await core.quiet()
        assert "kept" in core.channel.texts[0]
        assert core.channel.texts[1] == "re: hello"
        assert len(tries) == 4


async def test_a_run_of_the_clock_may_use_what_its_job_allows_and_cannot_ask(tmp_path: Path) -> None:
    script = Script()
    script.gate.set()
    async with hub(tmp_path / "h", script) as core:
        core.queue.clock = FakeDesk(tidy=("run_command",))
        await core.say("tick", channel="heartbeat", chat="tidy", origin="scheduled", answers_nowhere=True)
        await core.say("tick", channel="heartbeat", chat="other", origin="scheduled", answers_nowhere=True)
        await core.say("hello")
        await core.quiet()
        seen = {(turn.origin, turn.session_key.split(":")[1]): (turn.allows, turn.may_ask) for turn in script.turns}
        assert seen == {
            ("scheduled", "tidy"): (("run_command",), False),
            ("scheduled", "other"): ((), False),
            ("person", OWNER): ((), True),
        }


async def test_in_a_group_a_guest_stops_only_what_the_guest_asked_for(tmp_path: Path) -> None:
    script = Script()
    async with hub(tmp_path / "h", script) as core:
        await core.say("of the owner", chat="-5", is_group=True, is_mention=True)
        await script.begun.acquire()
        await core.say("/stop", chat="-5", sender=GUEST, is_group=True, is_mention=True)
        await until(lambda: core.channel.texts == ["Nothing is running here."])
        script.gate.set()
        await core.quiet()
        assert core.channel.texts[1:] == ["re: of the owner"]
        script.gate.clear()
        await core.say("of the guest", chat="-5", sender=GUEST, is_group=True, is_mention=True)
        await script.begun.acquire()
        await core.say("/stop", chat="-5", sender=GUEST, is_group=True, is_mention=True)
        await core.quiet()
        assert core.channel.texts[2:] == ["Stopped."]
