"""Sending: one request for one part, and one clear outcome."""

from __future__ import annotations

import asyncio
import socket

import pytest

from channels.channel import ChannelDown, SendRefused, SendRetry, SendUnknown
from channels.telegram import request
from tests.channels.telegram.conftest import Rig, outbound
from tests.fakes.bot_api import (
    BAD_GATEWAY,
    CANNOT_PARSE,
    DROPPED_AFTER,
    DROPPED_BEFORE,
    GARBAGE,
    Fault,
    flood,
)

GROUP = -1001
LINE = "A **bold** line of an answer with so many words that a hundred of them fill more than two messages.\n"
THREE_PARTS = LINE * 100


@pytest.fixture(autouse=True)
def chats(rig: Rig) -> None:
    rig.api.chats |= {1: "private", 2: "private", GROUP: "supergroup"}
    rig.api.threads.add((GROUP, 12))


async def test_a_reply_is_shown_with_its_formatting(rig: Rig) -> None:
    receipt = await rig.channel().send(outbound(1, "**Hello** `you`"))
    (message,) = rig.api.sent
    assert message.text == "Hello you"
    assert [(e["type"], e["offset"], e["length"]) for e in message.entities] == [("bold", 0, 5), ("code", 6, 3)]
    assert receipt.message_ids == (str(message.message_id),)
    assert receipt.at == rig.clock.now()


@pytest.mark.parametrize(("thread_id", "told"), [(None, None), ("1", None), ("12", 12)])
async def test_the_general_topic_is_never_named(rig: Rig, thread_id: str | None, told: int | None) -> None:
    await rig.channel().send(outbound(GROUP, "hi", thread_id=thread_id))
    assert rig.api.sent[0].thread_id == told
    assert ("message_thread_id" in rig.api.calls[-1][1]) is (told is not None)


async def test_only_the_first_part_is_a_reply(rig: Rig) -> None:
    await rig.channel().send(outbound(1, THREE_PARTS, reply_to="44"))
    assert [message.reply_to for message in rig.api.sent] == [44, None, None]


async def test_formatting_that_is_refused_goes_out_once_as_plain_text(rig: Rig) -> None:
    rig.api.script("sendMessage", Fault(), CANNOT_PARSE)
    receipt = await rig.channel().send(outbound(1, THREE_PARTS))
    assert rig.api.count("sendMessage") == 4
    assert [bool(message.entities) for message in rig.api.sent] == [True, False, True]
    assert "".join(message.text for message in rig.api.sent).count("bold") == 100
    assert len(receipt.message_ids) == 3


async def test_formatting_refused_twice_is_refused(rig: Rig) -> None:
    rig.api.script("sendMessage", CANNOT_PARSE, CANNOT_PARSE)
    with pytest.raises(SendRefused):
        await rig.channel().send(outbound(1, "**a**"))
    assert rig.api.count("sendMessage") == 2


@pytest.mark.parametrize(
    "fault",
    [
        Fault(400, "Bad Request: message is too long"),
        Fault(400, "Bad Request: not enough rights to send text messages to the chat"),
        Fault(403, "Forbidden: bot was blocked by the user"),
        Fault(403, "Forbidden: user is deactivated"),
        Fault(413, "Request Entity Too Large"),
    ],
)
async def test_a_definite_no_is_not_tried_again(rig: Rig, fault: Fault) -> None:
    rig.api.script("sendMessage", fault)
    with pytest.raises(SendRefused) as caught:
        await rig.channel().send(outbound(1, "**a**"))
    assert rig.api.count("sendMessage") == 1
    assert caught.value.reason


async def test_an_unknown_chat_is_refused(rig: Rig) -> None:
    with pytest.raises(SendRefused, match="hat not found"):
        await rig.channel().send(outbound(99, "hi"))


@pytest.mark.parametrize("seconds", [3, 149])
async def test_a_flood_wait_keeps_text_and_formatting_for_later(rig: Rig, seconds: int) -> None:
    channel = rig.channel()
    rig.api.script("sendMessage", flood(seconds, chat_id=1))
    with pytest.raises(SendRetry) as caught:
        await channel.send(outbound(1, "**done**"))
    assert caught.value.after_seconds == seconds
    assert rig.api.count("sendMessage") == 1
    await channel.send(outbound(1, "**done**"))
    refused, sent = (given for method, given in rig.api.calls if method == "sendMessage")
    assert refused == sent
    assert sent["entities"][0]["type"] == "bold"


async def test_a_flood_wait_of_one_chat_holds_up_no_other(rig: Rig) -> None:
    rig.api.rule = lambda method, given: flood(149) if given.get("chat_id") == 1 else None
    channel = rig.channel()
    outcomes = await asyncio.gather(
        channel.send(outbound(1, "a")), channel.send(outbound(2, "b")), return_exceptions=True
    )
    assert isinstance(outcomes[0], SendRetry)
    assert [message.text for message in rig.api.sent] == ["b"]


@pytest.mark.parametrize(
    ("fault", "error"), [(flood(5), SendRetry), (DROPPED_BEFORE, SendUnknown), (Fault(403, "Forbidden"), SendRefused)]
)
async def test_a_reply_that_broke_off_goes_on_with_the_rest(
    rig: Rig, fault: Fault, error: type[SendRetry | SendUnknown | SendRefused]
) -> None:
    channel = rig.channel()
    rig.api.script("sendMessage", Fault(), fault)
    with pytest.raises(error) as caught:
        await channel.send(outbound(1, THREE_PARTS))
    assert caught.value.sent_ids == (str(rig.api.sent[0].message_id),)
    receipt = await channel.send(outbound(1, THREE_PARTS, sent_ids=caught.value.sent_ids))
    assert receipt.message_ids == tuple(str(message.message_id) for message in rig.api.sent)
    assert "".join(message.text for message in rig.api.sent).count("bold") == 100


@pytest.mark.parametrize(
    "fault",
    [
        DROPPED_AFTER,
        DROPPED_BEFORE,
        BAD_GATEWAY,
        Fault(502, "Bad Gateway"),
        Fault(504, body="<html>Gateway Time-out</html>"),
        Fault(500, body="oops"),
        GARBAGE,
        Fault(200, body='{"ok": true}'),
        Fault(200, body='{"ok": true, "result": true}'),
    ],
    ids=["after", "before", "502", "502-json", "504", "500", "garbage", "no-result", "no-message"],
)
async def test_no_clear_answer_is_unknown_and_never_sent_again(rig: Rig, fault: Fault) -> None:
    rig.api.script("sendMessage", fault)
    with pytest.raises(SendUnknown):
        await rig.channel().send(outbound(1, "hi"))
    assert rig.api.count("sendMessage") == 1


async def test_no_answer_in_time_is_unknown(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request, "ANSWER_SECONDS", 0.05)
    rig.api.script("sendMessage", Fault(hold=asyncio.Event()))
    with pytest.raises(SendUnknown):
        await rig.channel().send(outbound(1, "hi"))
    assert rig.api.count("sendMessage") == 1


@pytest.mark.parametrize(
    "fault",
    [
        Fault(500, "Internal Server Error: restart"),
        Fault(503, "Service Unavailable"),
        Fault(403, body="<html>captive portal</html>"),
        Fault(302, body="moved"),
    ],
)
async def test_a_server_that_did_not_do_it_is_asked_again_later(rig: Rig, fault: Fault) -> None:
    rig.api.script("sendMessage", fault)
    with pytest.raises(SendRetry) as caught:
        await rig.channel().send(outbound(1, "hi"))
    assert caught.value.after_seconds is None
    assert rig.api.count("sendMessage") == 1


async def test_a_server_that_is_not_there_is_asked_again_later(rig: Rig) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(SendRetry):
        await rig.channel(base_url=address).send(outbound(1, "hi"))


async def test_a_revoked_token_brings_the_channel_down_for_good(rig: Rig) -> None:
    rig.api.script("sendMessage", Fault(401, "Unauthorized"))
    with pytest.raises(ChannelDown) as caught:
        await rig.channel().send(outbound(1, "hi"))
    assert (caught.value.state, caught.value.terminal) == ("rejected", True)


async def test_a_revoked_token_half_way_keeps_what_was_sent(rig: Rig) -> None:
    rig.api.script("sendMessage", Fault(), Fault(401, "Unauthorized"))
    with pytest.raises(SendRetry) as caught:
        await rig.channel().send(outbound(1, THREE_PARTS))
    assert len(caught.value.sent_ids) == 1


async def test_a_group_that_moved_gets_the_text_once_at_its_new_id(rig: Rig) -> None:
    old, new = -4001, -1001234500001
    rig.api.chats |= {old: "group", new: "supergroup"}
    rig.api.migrated[old] = new
    receipt = await rig.channel().send(outbound(old, THREE_PARTS))
    assert rig.memory.migrations == [(str(old), str(new))]
    assert [message.chat_id for message in rig.api.sent] == [new] * 3
    assert rig.api.count("sendMessage") == 4
    assert len(receipt.message_ids) == 3


async def test_a_text_with_nothing_to_see_is_refused_without_a_request(rig: Rig) -> None:
    with pytest.raises(SendRefused):
        await rig.channel().send(outbound(1, " \n "))
    assert rig.api.calls == []


async def test_sends_in_flight_are_bounded(rig: Rig) -> None:
    gate = asyncio.Event()
    rig.api.rule = lambda method, given: Fault(hold=gate)
    channel = rig.channel()
    sends = [asyncio.create_task(channel.send(outbound(1, str(number)))) for number in range(50)]
    await rig.api.until(lambda: rig.api.count("sendMessage") == 32)
    for _ in range(50):
        await asyncio.sleep(0)
    assert rig.api.count("sendMessage") == 32
    gate.set()
    await asyncio.gather(*sends)
    assert len(rig.api.sent) == 50


async def test_sending_goes_on_while_the_long_poll_waits_and_after_it_ended(rig: Rig) -> None:
    async with rig.listening() as channel:
        await rig.api.until(lambda: rig.api.polling)
        await channel.send(outbound(1, "during"))
        gate = asyncio.Event()
        rig.api.script("sendMessage", Fault(hold=gate))
        late = asyncio.create_task(channel.send(outbound(1, "at the end")))
        await rig.api.until(lambda: rig.api.count("sendMessage") == 2)
    gate.set()
    await late
    await channel.send(outbound(1, "after"))
    assert [message.text for message in rig.api.sent] == ["during", "at the end", "after"]
