"""Sending: one request for one part, and one clear outcome."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from channels.channel import ChannelDown, SendRefused, SendRetry, SendUnknown
from channels.message import Attachment, Choice
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
    """B20."""
    await rig.channel().send(outbound(GROUP, "hi", thread_id=thread_id))
    assert rig.api.sent[0].thread_id == told
    assert ("message_thread_id" in rig.api.calls[-1][1]) is (told is not None)


async def test_only_the_first_part_is_a_reply(rig: Rig) -> None:
    await rig.channel().send(outbound(1, THREE_PARTS, reply_to="44"))
    assert [message.reply_to for message in rig.api.sent] == [44, None, None]


async def test_formatting_that_is_refused_goes_out_once_as_plain_text(rig: Rig) -> None:
    """B07."""
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
    """B30."""
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
    """B18."""
    old, new = -4001, -1001234500001
    rig.api.chats |= {old: "group", new: "supergroup"}
    rig.api.migrated[old] = new
    receipt = await rig.channel().send(outbound(old, THREE_PARTS))
    assert rig.memory.migrations == [(str(old), str(new))]
    assert [message.chat_id for message in rig.api.sent] == [new] * 3
    assert rig.api.count("sendMessage") == 4
    assert len(receipt.message_ids) == 3


async def test_the_reply_to_a_draft_in_a_group_that_moved_goes_to_its_new_id(rig: Rig) -> None:
    old, new = -4001, -1001234500001
    rig.api.chats |= {old: "group", new: "supergroup"}
    channel = rig.channel()
    (draft,) = (await channel.send(outbound(old, "so far", is_draft=True))).message_ids
    rig.api.migrated[old] = new
    receipt = await channel.send(outbound(old, "the whole answer", replaces=draft))
    assert [(message.chat_id, message.text) for message in rig.api.sent] == [(old, "so far"), (new, "the whole answer")]
    assert receipt.message_ids == (str(rig.api.sent[-1].message_id),)


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


async def test_a_draft_grows_in_one_message_and_becomes_the_reply(rig: Rig) -> None:
    channel = rig.channel()
    first = await channel.send(outbound(1, "The **beg", is_draft=True))
    (message_id,) = first.message_ids
    second = await channel.send(outbound(1, "The **beginning** of it", is_draft=True, replaces=message_id))
    assert second.message_ids == first.message_ids
    receipt = await channel.send(outbound(1, "The **beginning** of it, and the end", replaces=message_id))
    assert receipt.message_ids == (message_id,)
    assert rig.api.shown(1) == ["The beginning of it, and the end"]
    assert (rig.api.count("sendMessage"), rig.api.count("editMessageText")) == (1, 2)


async def test_a_draft_shows_what_fits_and_the_reply_all_of_it(rig: Rig) -> None:
    channel = rig.channel()
    (message_id,) = (await channel.send(outbound(1, THREE_PARTS, is_draft=True))).message_ids
    assert len(rig.api.sent) == 1
    receipt = await channel.send(outbound(1, THREE_PARTS, replaces=message_id))
    assert receipt.message_ids[0] == message_id
    assert len(rig.api.shown(1)) == 3
    assert "".join(rig.api.shown(1)).count("bold") == 100


async def test_a_draft_that_is_the_reply_already_is_a_success(rig: Rig) -> None:
    channel = rig.channel()
    (message_id,) = (await channel.send(outbound(1, "all of it", is_draft=True))).message_ids
    assert (await channel.send(outbound(1, "all of it", replaces=message_id))).message_ids == (message_id,)
    assert rig.api.shown(1) == ["all of it"]


async def test_a_draft_that_was_deleted_is_sent_anew(rig: Rig) -> None:
    receipt = await rig.channel().send(outbound(1, "all of it", replaces="77"))
    assert rig.api.shown(1) == ["all of it"]
    assert receipt.message_ids != ("77",)


async def test_a_flood_wait_at_the_last_change_keeps_formatting_and_text(rig: Rig) -> None:
    """B29."""
    channel = rig.channel()
    (message_id,) = (await channel.send(outbound(1, "so **far**", is_draft=True))).message_ids
    rig.api.script("editMessageText", flood(3))
    with pytest.raises(SendRetry) as caught:
        await channel.send(outbound(1, "**whole**", replaces=message_id))
    assert caught.value.after_seconds == 3
    await channel.send(outbound(1, "**whole**", replaces=message_id))
    asked = [parameters for method, parameters in rig.api.calls if method == "editMessageText"]
    assert asked[0] == asked[1]
    assert asked[0]["entities"]


async def test_a_change_without_a_clear_answer_is_made_again(rig: Rig) -> None:
    channel = rig.channel()
    (message_id,) = (await channel.send(outbound(1, "so far", is_draft=True))).message_ids
    rig.api.script("editMessageText", DROPPED_AFTER)
    with pytest.raises(SendRetry):
        await channel.send(outbound(1, "whole", replaces=message_id))
    await channel.send(outbound(1, "whole", replaces=message_id))
    assert rig.api.shown(1) == ["whole"]


async def test_choices_are_buttons_and_go_away_with_the_change(rig: Rig) -> None:
    channel = rig.channel()
    choices = (Choice("approval:ab:yes", "Yes"), Choice("approval:ab:no", "No"))
    (message_id,) = (await channel.send(outbound(1, "May I?", choices=choices))).message_ids
    assert rig.api.sent[0].buttons == [("Yes", "approval:ab:yes"), ("No", "approval:ab:no")]
    await channel.send(outbound(1, "May I?\n\n**Allowed.**", replaces=message_id))
    now = rig.api.now_shown(1, int(message_id))
    assert now is not None
    assert (now.text, now.buttons) == ("May I?\n\nAllowed.", [])


async def test_buttons_stand_under_the_last_part(rig: Rig) -> None:
    await rig.channel().send(outbound(1, THREE_PARTS, choices=(Choice("a", "A"),)))
    assert [bool(message.buttons) for message in rig.api.sent] == [False, False, True]


async def test_one_refused_part_never_drops_the_tail(rig: Rig) -> None:
    """B07: a refusal that does not speak of formatting."""
    channel = rig.channel()
    rig.api.script("sendMessage", Fault(), Fault(400, "Bad Request: MESSAGE_TOO_LONG"))
    with pytest.raises(SendRefused, match="part 2 of 3") as caught:
        await channel.send(outbound(1, THREE_PARTS))
    assert len(rig.api.shown(1)) == 2
    assert [bool(one) for one in caught.value.sent_ids] == [True, False, True]
    # Asked for again, only what is missing is sent.
    receipt = await channel.send(outbound(1, THREE_PARTS, sent_ids=caught.value.sent_ids))
    assert all(receipt.message_ids)
    assert rig.api.count("sendMessage") == 4


def a_file(rig: Rig, name: str, size_bytes: int = 7, mime: str | None = None) -> Attachment:
    folder = rig.home / "workspace" / "files"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / name).open("wb") as file:
        file.truncate(size_bytes)
    return Attachment("file", name, f"files/{name}", mime, size_bytes)


async def test_a_file_goes_out_with_its_caption(rig: Rig) -> None:
    receipt = await rig.channel().send(outbound(1, "The **plan**", attachments=(a_file(rig, "خطة.pdf"),)))
    (sent,) = rig.api.sent
    assert (sent.file, sent.text, sent.entities[0]["type"]) == ("خطة.pdf", "The plan", "bold")
    assert rig.api.uploaded[sent.message_id] == b"\0" * 7
    assert receipt.message_ids == (str(sent.message_id),)


async def test_a_text_that_is_too_long_for_a_caption_goes_before_the_file(rig: Rig) -> None:
    await rig.channel().send(outbound(1, "word " * 300, attachments=(a_file(rig, "a.pdf"),), reply_to="5"))
    assert [(sent.file, bool(sent.text), sent.reply_to) for sent in rig.api.sent] == [
        (None, True, 5),
        ("a.pdf", False, None),
    ]


async def test_a_picture_is_shown_as_one_and_what_is_no_picture_goes_as_a_file(rig: Rig) -> None:
    channel = rig.channel()
    await channel.send(outbound(1, "", attachments=(a_file(rig, "a.png", mime="image/png"),)))
    rig.api.script("sendPhoto", Fault(400, "Bad Request: PHOTO_INVALID_DIMENSIONS"))
    await channel.send(outbound(1, "", attachments=(a_file(rig, "b.png", mime="image/png"),)))
    await channel.send(outbound(1, "", attachments=(a_file(rig, "c.png", 10_000_001, mime="image/png"),)))
    assert [method for method, _ in rig.api.calls] == ["sendPhoto", "sendPhoto", "sendDocument", "sendDocument"]
    assert [sent.file for sent in rig.api.sent] == ["a.png", "b.png", "c.png"]


async def test_a_file_that_is_too_big_or_gone_is_refused_without_a_request(rig: Rig) -> None:
    big = a_file(rig, "big.zip", 50_000_001)
    with pytest.raises(SendRefused, match="50 MB"):
        await rig.channel().send(outbound(1, "", attachments=(big,)))
    for path in ("files/none.pdf", "../config.toml", None):
        (rig.home / "config.toml").write_text("secret")
        with pytest.raises(SendRefused, match="not there any more"):
            await rig.channel().send(outbound(1, "", attachments=(Attachment("file", "x", path),)))
    assert rig.api.calls == []


async def test_a_file_that_arrived_is_not_sent_again(rig: Rig) -> None:
    channel = rig.channel()
    message: dict[str, Any] = {"text": "word " * 300, "attachments": (a_file(rig, "a.pdf"), a_file(rig, "b.pdf"))}
    rig.api.script("sendDocument", Fault(), flood(5))
    with pytest.raises(SendRetry) as caught:
        await channel.send(outbound(1, **message))
    await channel.send(outbound(1, **message, sent_ids=caught.value.sent_ids))
    assert [sent.file for sent in rig.api.sent] == [None, "a.pdf", "b.pdf"]
