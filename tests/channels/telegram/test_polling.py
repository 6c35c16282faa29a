"""Listening: what is confirmed when, and what a bad day of the server means."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import traceback
from datetime import timedelta
from typing import Any

import pytest
from pydantic import SecretStr

from channels.channel import MenuCommand
from channels.message import Address
from channels.telegram import request
from channels.typing_sign import TypingSigns
from tests.channels.telegram.conftest import Rig, outbound
from tests.fakes.bot_api import BAD_GATEWAY, CONFLICT, DROPPED_AFTER, DROPPED_BEFORE, GARBAGE, TOKEN, Fault, flood
from tests.fakes.waiting import until

NO_OFFSET = "No usable Telegram offset"


def offsets(rig: Rig) -> list[int | None]:
    return [parameters.get("offset") for method, parameters in rig.api.calls if method == "getUpdates"]


async def test_what_waited_before_the_start_is_kept_and_taken(rig: Rig) -> None:
    rig.api.push_text(1, "written while you were away")
    async with rig.listening():
        await rig.inbox.until_saved(1)
    (webhook,) = [parameters for method, parameters in rig.api.calls if method == "deleteWebhook"]
    assert not webhook.get("drop_pending_updates")


async def test_connected_is_said_at_once_and_every_answer_counts_as_a_receive(rig: Rig) -> None:
    async with rig.listening():
        await rig.api.until(lambda: rig.api.polling)
        assert [state for state, _, _ in rig.health.states] == ["connected"]
        assert rig.health.receives == 1
        rig.api.push_text(1, "hello")
        await rig.api.until(lambda: not rig.api.pending)
    assert rig.health.receives >= 2


async def test_chats_are_saved_side_by_side_and_each_in_its_order(rig: Rig) -> None:
    rig.inbox.open.clear()
    for number in range(100):
        rig.api.push_text(1 + number % 50, f"text {number}")
    async with rig.listening():
        await rig.inbox.until_asked(50)
        assert len(rig.inbox.asked) == len({message.chat_id for message in rig.inbox.asked}) == 50
        rig.inbox.open.set()
        await rig.inbox.until_saved(100)
    for chat in range(50):
        texts = [message.text for message in rig.inbox.saved if message.chat_id == str(chat + 1)]
        assert texts == [f"text {chat}", f"text {chat + 50}"]


async def test_a_backlog_of_a_thousand_is_taken_in_ten_batches(rig: Rig) -> None:
    for number in range(1000):
        rig.api.push_text(1 + number % 7, str(number))
    async with rig.listening():
        await rig.inbox.until_saved(1000)
        await rig.api.until(lambda: not rig.api.pending)
    assert len(offsets(rig)) <= 12


async def test_nothing_passes_a_message_that_could_not_be_saved(rig: Rig) -> None:
    for text in ("a1", "b1", "a2", "b2", "a3"):
        rig.api.push_text(1 if text[0] == "a" else 2, text)
    rig.inbox.refusals = 3
    rig.inbox.refuse = lambda message: message.text == "a2"
    async with rig.listening():
        for pauses, seconds in enumerate((1.0, 2.0, 5.0), start=1):
            await rig.clock.until_asked(pauses)
            assert sorted(rig.inbox.texts) == ["a1", "b1", "b2"]
            assert len(rig.api.pending) == 5
            assert offsets(rig) == [None]
            rig.clock.advance(seconds)
        await rig.inbox.until_saved(5)
        await rig.api.until(lambda: not rig.api.pending)
    assert [message.text for message in rig.inbox.saved if message.chat_id == "1"] == ["a1", "a2", "a3"]
    assert rig.clock.sleeps == [1.0, 2.0, 5.0]
    assert [state for state, _, _ in rig.health.states] == ["connected", "degraded", "connected"]
    assert "disk is full" in rig.health.states[1][1]
    assert rig.health.states[1][2]


async def test_one_broken_update_does_not_take_its_batch_with_it(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    rig.api.push_text(1, "before")
    broken = rig.api.push({"message": {"message_id": "x", "chat": {"id": 1, "type": "private"}, "text": "bad"}})
    rig.api.push_text(1, "after")
    async with rig.listening():
        await rig.inbox.until_saved(2)
        await rig.api.until(lambda: not rig.api.pending)
    assert rig.inbox.texts == ["before", "after"]
    assert [str(broken) in record.message for record in caplog.records if "cannot be read" in record.message] == [True]


async def test_a_restart_goes_on_behind_the_last_saved_update(rig: Rig) -> None:
    rig.api.push_text(1, "first")
    async with rig.listening():
        await rig.api.until(lambda: not rig.api.pending)
    async with rig.listening():
        rig.api.push_text(1, "second")
        await rig.inbox.until_saved(2)
    assert [message.text for message in rig.inbox.asked] == ["first", "second"]
    assert offsets(rig)[:3] == [None, 501, 501]


async def test_an_update_that_comes_again_after_a_crash_is_recognised(rig: Rig) -> None:
    """B24."""
    rig.api.push_text(1, "/restart")
    # The program dies between saving 500 and confirming it.
    rig.api.script("getUpdates", Fault(), DROPPED_BEFORE)
    assert (await rig.down()).state == "unreachable"
    assert list(rig.api.pending) == [500]
    rig.memory.values.clear()
    rig.api.push_text(1, "next")
    async with rig.listening():
        await rig.inbox.until_saved(2)
    assert [message.text for message in rig.inbox.asked] == ["/restart", "/restart", "next"]
    assert rig.inbox.texts == ["/restart", "next"]


@pytest.mark.parametrize(
    "stored",
    [
        None,
        "",
        "{",
        "99999",
        '{"offset": "x", "at": "2026-11-02T09:00:00+00:00", "server": ""}',
        "too old",
        "another server",
    ],
)
async def test_a_lost_or_damaged_offset_loses_nothing(
    rig: Rig, stored: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    value: dict[str, Any] = {"offset": 99999, "at": rig.clock.now().isoformat(), "server": rig.api.base_url}
    if stored == "too old":
        stored = json.dumps(value | {"at": (rig.clock.now() - timedelta(days=7)).isoformat()})
    elif stored == "another server":
        stored = json.dumps(value | {"server": "https://api.telegram.org"})
    rig.memory.values["known:4242"] = "2026-11-01T09:00:00+00:00"
    if stored is not None:
        rig.memory.values["offset:4242"] = stored
    for number in range(480, 501):
        rig.api.push({"message": rig.api.message(1, f"text {number}")}, number)
    channel = rig.channel()
    async with rig.listening(channel):
        await rig.inbox.until_saved(21)
        await rig.api.until(lambda: not rig.api.pending)
    async with rig.listening(channel):
        await rig.api.until(lambda: rig.api.polling)
    assert sum(NO_OFFSET in record.message for record in caplog.records) == 1
    assert json.loads(rig.memory.values["offset:4242"])["offset"] == 501


async def test_after_a_week_of_silence_an_update_with_a_lower_number_is_taken(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B27: Telegram numbers anew then, and throws away what is below the offset it is asked with."""
    monkeypatch.setattr("channels.telegram.channel.POLL_SECONDS", 0.05)
    rig.api.push({"message": rig.api.message(1, "before")}, 90_000)
    async with rig.listening():
        await rig.inbox.until_saved(1)
        await rig.api.until(lambda: not rig.api.pending)
        rig.clock.time += timedelta(days=7)
        asked = rig.api.count("getUpdates")
        await rig.api.until(lambda: rig.api.count("getUpdates") > asked + 1)
        rig.api.push({"message": rig.api.message(1, "after")}, 17)
        await rig.inbox.until_saved(2)
    assert rig.inbox.texts == ["before", "after"]


async def test_a_new_home_is_not_warned_about_an_offset_it_never_had(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    async with rig.listening():
        await rig.api.until(lambda: rig.api.polling)
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_the_stored_offset_is_used_without_a_warning(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    value = {"offset": 500, "at": rig.clock.now().isoformat(), "server": rig.api.base_url}
    rig.memory.values["offset:4242"] = json.dumps(value)
    async with rig.listening():
        await rig.api.until(lambda: rig.api.polling)
    assert offsets(rig)[0] == 500
    assert NO_OFFSET not in caplog.text


async def test_another_poller_is_never_fatal_and_sending_goes_on(rig: Rig) -> None:
    """B23."""
    rig.api.chats[1] = "private"
    rig.api.script("getUpdates", *[CONFLICT] * 12)
    channel = rig.channel()
    for _ in range(12):
        down = await rig.down(channel)
        assert (down.state, down.terminal) == ("conflict", False)
        assert "another poller" in down.detail
        assert down.remedy
        await channel.send(outbound(1, "still here"))
    rig.api.push_text(1, "and now?")
    async with rig.listening(channel):
        await rig.inbox.until_saved(1)
    assert len(rig.api.sent) == 12


async def test_two_gateways_on_one_token_take_turns_by_conflict(rig: Rig) -> None:
    first = asyncio.create_task(rig.down())
    await rig.api.until(lambda: rig.api.polling)
    async with rig.listening():
        assert (await first).state == "conflict"


@pytest.mark.parametrize("token", [f"{TOKEN}x", "not a token", "", f"  {TOKEN}y\n"])
async def test_a_wrong_token_stops_the_channel_and_says_what_to_do(rig: Rig, token: str) -> None:
    """B23."""
    down = await rig.down(rig.channel(token=SecretStr(token)))
    assert (down.state, down.terminal) == ("rejected", True)
    assert "@BotFather" in down.remedy
    assert rig.api.count("getUpdates") == 0


async def test_a_token_revoked_while_listening_stops_the_channel(rig: Rig) -> None:
    rig.api.script("getUpdates", Fault(), Fault(401, "Unauthorized"))
    rig.api.push_text(1, "one")
    assert (await rig.down()).terminal


async def test_too_many_requests_is_degraded_with_the_servers_wait(rig: Rig) -> None:
    rig.api.script("getUpdates", flood(60))
    down = await rig.down()
    assert (down.state, down.terminal, down.retry_after_seconds) == ("degraded", False, 60)


@pytest.mark.parametrize(
    "fault",
    [
        BAD_GATEWAY,
        GARBAGE,
        DROPPED_AFTER,
        Fault(200, body='{"ok": true, "result": 5}'),
        Fault(403, body="captive portal"),
    ],
    ids=["gateway", "garbage", "dropped", "no-list", "portal"],
)
@pytest.mark.parametrize("method", ["getMe", "getUpdates"])
async def test_a_server_that_talks_nonsense_is_unreachable(rig: Rig, method: str, fault: Fault) -> None:
    rig.api.script(method, fault)
    down = await rig.down()
    assert (down.state, down.terminal) == ("unreachable", False)


async def test_no_server_at_all_is_unreachable(rig: Rig) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for address in (f"http://127.0.0.1:{port}", "http://[bad", "nowhere"):
        down = await rig.down(rig.channel(base_url=address))
        assert (down.state, down.terminal) == ("unreachable", False)
        assert rig.api.token not in str(down)


async def test_a_dead_line_is_noticed(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request, "POLL_MARGIN_SECONDS", 0.05)
    rig.api.script("getUpdates", Fault(hold=asyncio.Event()))
    assert (await rig.down()).state == "unreachable"


async def test_cancelling_ends_the_long_poll_at_once(rig: Rig) -> None:
    channel = rig.channel()
    task = asyncio.create_task(channel.run(rig.inbox))
    await rig.api.until(lambda: rig.api.polling)
    task.cancel()
    done, _ = await asyncio.wait([task], timeout=1)
    assert done


async def test_a_group_that_moved_is_one_chat_and_starts_no_turn(rig: Rig) -> None:
    """B18."""
    old, new = -4001, -1001234500001
    leave = {"message_id": 1, "chat": {"id": old, "type": "group"}, "migrate_to_chat_id": new}
    arrive = {"message_id": 1, "chat": {"id": new, "type": "supergroup"}, "migrate_from_chat_id": old}
    for message in (arrive, leave, arrive):
        rig.api.push({"message": message})
    rig.api.push_text(new, "@demo_bot hello", user_id=7)
    async with rig.listening(rig.channel(groups=(str(old),))):
        await rig.inbox.until_saved(1)
    assert set(rig.memory.migrations) == {(str(old), str(new))}
    assert rig.inbox.texts == ["hello"]
    assert rig.inbox.saved[0].wants_answer
    rig.api.push_text(new, "@demo_bot after a restart", user_id=7)
    async with rig.listening(rig.channel(groups=(str(old),))):
        await rig.inbox.until_saved(2)
    assert rig.inbox.saved[1].wants_answer


async def test_whoever_mentions_the_bot_in_one_part_of_an_album_means_all_of_it(rig: Rig) -> None:
    for number in range(3):
        caption = {"caption": "look, @demo_bot", "caption_entities": [{"type": "mention", "offset": 6, "length": 9}]}
        message = rig.api.message(-1001, "", photo=[{"file_id": f"F{number}"}], media_group_id="album-1")
        del message["text"]
        rig.api.push({"message": message | (caption if number == 1 else {})})
    async with rig.listening(rig.channel(groups=(-1001,))):
        await rig.inbox.until_saved(3)
    assert [message.wants_answer for message in rig.inbox.saved] == [True] * 3
    assert all(message.more_may_come for message in rig.inbox.saved)


async def test_a_pressed_button_comes_as_an_answer_and_stops_waiting(rig: Rig) -> None:
    question = rig.api.message(7, "May I?") | {
        "reply_markup": {"inline_keyboard": [[{"text": "Yes", "callback_data": "approval:ab:yes"}]]}
    }
    query = {"id": "q1", "from": {"id": 7, "first_name": "Sara"}, "message": question, "data": "approval:ab:yes"}
    rig.api.push({"callback_query": query})
    async with rig.listening():
        await rig.inbox.until_saved(1)
        await rig.api.until(lambda: rig.api.count("answerCallbackQuery") == 1)
    (message,) = rig.inbox.saved
    assert (message.chat_id, message.sender_id, message.action) == ("7", "7", "approval:ab:yes")
    assert (message.text, message.kind) == ("Yes", "system")


async def test_a_pause_that_telegram_asked_for_is_kept_over_a_restart(rig: Rig) -> None:
    rig.api.script("getUpdates", flood(60))
    assert (await rig.down()).retry_after_seconds == 60
    rig.clock.advance(20)
    calls = rig.api.count("getUpdates")
    async with rig.listening():
        await rig.clock.until_asked(1)
        assert rig.clock.sleeps == [40]
        assert rig.api.count("getUpdates") == calls
        rig.clock.advance(40)
        await rig.api.until(lambda: rig.api.polling)


async def test_the_menu_is_registered_once_for_everybody_and_for_the_owner(rig: Rig) -> None:
    commands = (
        MenuCommand("new", {"en": "begin anew", "ar": "محادثة جديدة"}),
        MenuCommand("status", {"en": "how it is", "ar": "الحالة"}, owner_only=True),
    )
    for _ in range(2):
        async with rig.listening(rig.channel(owner="7", commands=commands)):
            await rig.api.until(lambda: rig.api.count("setMyCommands") == 4 and rig.api.polling)
    asked = [parameters for method, parameters in rig.api.calls if method == "setMyCommands"]
    shown = [[command["command"] for command in one["commands"]] for one in asked]
    assert shown == [["new"], ["new", "status"], ["new"], ["new", "status"]]
    assert [one.get("language_code") for one in asked] == [None, None, "ar", "ar"]
    assert asked[1]["scope"] == {"type": "chat", "chat_id": 7}


async def test_a_menu_that_is_refused_is_no_harm(rig: Rig) -> None:
    rig.api.script("setMyCommands", Fault(404, "Not Found"))
    async with rig.listening(rig.channel(commands=(MenuCommand("new", {"en": "x", "ar": "x"}),))):
        await rig.api.until(lambda: rig.api.count("setMyCommands") == 1)
        rig.api.push_text(1, "hello")
        await rig.inbox.until_saved(1)


async def test_typing_is_shown_until_the_answer_goes_out(rig: Rig) -> None:
    rig.inbox.will_answer = True
    rig.api.script("sendChatAction", flood(3))
    rig.api.push_text(-1001, "hello", thread_id=9)
    async with rig.listening() as channel:
        await rig.clock.until_asked(1)
        assert rig.api.count("sendChatAction") == 0
        rig.clock.advance(1)
        for repeat in (1, 2):
            await rig.api.until(lambda repeat=repeat: rig.api.count("sendChatAction") == repeat)
            await rig.clock.until_asked(1 + repeat)
            rig.clock.advance(4.5)
        await rig.api.until(lambda: rig.api.count("sendChatAction") == 3)
        await rig.clock.until_asked(4)
        await channel.send(outbound(-1001, "answer", thread_id="9"))
        rig.clock.advance(4.5)
        await channel.send(outbound(-1001, "another", thread_id="9"))
        assert rig.api.count("sendChatAction") == 3
    actions = [parameters for method, parameters in rig.api.calls if method == "sendChatAction"]
    assert actions[0] == {"chat_id": -1001, "action": "typing", "message_thread_id": 9}


async def test_typing_stops_by_itself_after_ten_minutes() -> None:
    slept: list[float] = []
    shown: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        await asyncio.sleep(0)

    async def show(address: Address) -> None:
        shown.append(sum(slept))

    signs = TypingSigns(show, sleep, 4.5)
    signs.start(Address("telegram", "1"))
    for _ in range(2000):
        await asyncio.sleep(0)
    assert 590 < shown[-1] < 600
    assert sum(slept) < 605
    await signs.end_all()


async def test_no_log_line_and_no_error_holds_the_token(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    channel = rig.channel()
    rig.api.push_text(1, "hello")
    for fault in (CONFLICT, flood(1), BAD_GATEWAY, GARBAGE, DROPPED_AFTER, Fault(401, f"Unauthorized {TOKEN}")):
        rig.api.script("getUpdates", fault)
        down = await rig.down(channel)
        assert TOKEN not in "".join(traceback.format_exception(down))
        assert TOKEN not in f"{down.detail} {down.remedy}"
        rig.clock.advance(1)
    async with rig.listening(channel):
        await rig.inbox.until_saved(1)
    assert caplog.records
    assert TOKEN not in caplog.text


async def test_a_probe_says_how_the_line_is(rig: Rig) -> None:
    channel = rig.channel()
    await channel.probe()
    assert (rig.health.receives, rig.health.states) == (1, [])
    rig.api.script("getMe", Fault(401, "Unauthorized"))
    await channel.probe()
    assert [state for state, _, _ in rig.health.states] == ["rejected"]
    await rig.channel(base_url="http://127.0.0.1:1").probe()
    assert [state for state, _, _ in rig.health.states] == ["rejected", "unreachable"]


async def test_a_probe_that_failed_is_forgotten_when_telegram_answers_again(rig: Rig) -> None:
    channel = rig.channel()
    async with rig.listening(channel):
        await until(lambda: [state for state, _, _ in rig.health.states] == ["connected"])
        rig.api.script("getMe", Fault(401, "Unauthorized"))
        await channel.probe()
        await channel.probe()
        assert [state for state, _, _ in rig.health.states][1:3] == ["rejected", "connected"]
