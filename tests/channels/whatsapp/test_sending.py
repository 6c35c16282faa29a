"""What goes out: to whom, in which parts, with which timer, and files."""

from __future__ import annotations

from pathlib import Path

import pytest

from channels.channel import SendRefused, SendRetry, SendUnknown
from channels.message import Attachment, Choice
from channels.whatsapp.limits import TEXT_CHARS_MAX
from channels.whatsapp.outbound import kind_of
from tests.channels.whatsapp.conftest import Rig, outbound
from tests.fakes.whatsapp import E2E, FRIEND, FRIEND_LID, GROUP, OWNER, event


async def test_only_people_and_groups_can_get_anything(rig: Rig) -> None:
    async with rig.listening() as channel:
        for chat in (OWNER, FRIEND, GROUP):
            await channel.send(outbound(chat, "yes"))
        for chat in ("status@broadcast", "15550007777@newsletter", "15550007777", ""):
            with pytest.raises(SendRefused, match="no chat"):
                await channel.send(outbound(chat, "no"))
    assert [chat for chat, _ in rig.platform.sent] == [OWNER, FRIEND, GROUP]


async def test_an_answer_to_the_hidden_chat_of_an_allowed_person_goes_to_the_person(rig: Rig) -> None:
    channel = rig.channel(allow=[FRIEND])
    async with rig.listening(channel):
        await rig.hear(event("hi", "M1", chat=FRIEND_LID, sender=FRIEND_LID, sender_alt=FRIEND))
        await channel.send(outbound(FRIEND_LID, "hello"))
    assert rig.platform.sent[0][0] == FRIEND


async def test_the_timer_of_a_chat_is_on_what_is_sent_there(rig: Rig) -> None:
    """B60: a change that is seen is used for the next message, over a restart too; timer 0 is none."""
    change = E2E.Message(protocolMessage=E2E.ProtocolMessage(type=3, ephemeralExpiration=604800))
    async with rig.listening() as channel:
        await channel.send(outbound(OWNER, "before"))
        await rig.hear(event(change, "T1"))
        await channel.send(outbound(OWNER, "ok"))
    async with rig.listening() as channel:
        await channel.send(outbound(OWNER, "still"))
        await rig.hear(event(E2E.Message(protocolMessage=E2E.ProtocolMessage(type=3)), "T2"))
        await channel.send(outbound(OWNER, "off"))
    timers = [message.extendedTextMessage.contextInfo.expiration for _, message in rig.platform.sent]
    assert timers == [0, 604800, 604800, 0]
    assert rig.platform.sent[0][1].conversation == "before"
    assert not rig.platform.sent[3][1].HasField("extendedTextMessage")


async def test_a_reply_quotes_what_it_answers(rig: Rig) -> None:
    channel = rig.channel(groups=[GROUP])
    async with rig.listening(channel):
        await rig.hear(event("@15550001111 when?", "M1", chat=GROUP, sender=OWNER))
        await channel.send(outbound(GROUP, "at eight", reply_to="M1"))
        await channel.send(outbound(GROUP, "unknown", reply_to="M0"))
    info = rig.platform.sent[0][1].extendedTextMessage.contextInfo
    assert (info.stanzaID, info.participant, info.quotedMessage.conversation) == ("M1", OWNER, "when?")
    assert rig.platform.sent[1][1].conversation == "unknown"


async def test_a_part_that_fails_keeps_the_tail(rig: Rig) -> None:
    text = "\n\n".join(f"Paragraph {n}. " + "word " * 300 for n in range(6))
    async with rig.listening() as channel:
        whole = await channel.send(outbound(OWNER, text))
        parts = rig.platform.texts
        assert len(parts) > 2
        assert all(len(part) <= TEXT_CHARS_MAX for part in parts)
        rig.platform.sent.clear()
        rig.platform.faults = ["server returned error 503"]
        with pytest.raises(SendRetry):
            await channel.send(outbound(OWNER, text))
        again = await channel.send(outbound(OWNER, text, sent_ids=whole.message_ids[:1]))
    assert rig.platform.texts == parts[1:]
    assert again.message_ids[0] == whole.message_ids[0]


async def test_a_broken_line_is_unknown_with_what_arrived_before(rig: Rig) -> None:
    rig.platform.lose_after = ["timed out waiting for message send response"]
    async with rig.listening() as channel:
        with pytest.raises(SendUnknown) as caught:
            await channel.send(outbound(OWNER, "hello", sent_ids=()))
    assert caught.value.sent_ids == ()


async def test_nothing_to_see_is_refused(rig: Rig) -> None:
    with pytest.raises(SendRefused):
        await rig.channel().send(outbound(OWNER, " \n "))


async def test_choices_are_left_to_the_text_which_numbers_them(rig: Rig) -> None:
    """WhatsApp shows no buttons of ours; a question says itself how it is answered."""
    async with rig.listening() as channel:
        await channel.send(outbound(OWNER, "Reply 1 or 2.", choices=(Choice("a", "1 · Yes"), Choice("b", "2 · No"))))
    assert rig.platform.texts == ["Reply 1 or 2."]


async def test_files_are_sent_as_what_whatsapp_can_show(rig: Rig) -> None:
    folder = rig.home / "workspace" / "files"
    folder.mkdir(parents=True)
    files: list[Attachment] = []
    for name, kind, mime in (
        ("a.jpg", "photo", "image/jpeg"),
        ("b.mp4", "video", "video/mp4"),
        ("c.ogg", "voice", "audio/ogg; codecs=opus"),
        ("d.pdf", "file", "application/pdf"),
        ("e.webp", "photo", "image/webp"),
    ):
        (folder / name).write_bytes(name.encode())
        files.append(Attachment(kind, name, f"files/{name}", mime))  # pyright: ignore[reportArgumentType]
    async with rig.listening() as channel:
        receipt = await channel.send(outbound(OWNER, "here", attachments=tuple(files)))
    kinds = [message.ListFields()[0][0].name for _, message in rig.platform.sent]
    assert kinds == [
        "conversation",
        "imageMessage",
        "videoMessage",
        "audioMessage",
        "documentMessage",
        "documentMessage",
    ]
    assert len(receipt.message_ids) == 6
    assert rig.platform.sent[3][1].audioMessage.PTT
    assert rig.platform.sent[4][1].documentMessage.fileName == "d.pdf"
    assert rig.platform.uploads == [b"a.jpg", b"b.mp4", b"c.ogg", b"d.pdf", b"e.webp"]


@pytest.mark.parametrize("path", ["../config.toml", "/etc/passwd", "files/none.txt", None])
async def test_only_files_of_the_workspace_are_sent(rig: Rig, path: str | None) -> None:
    (rig.home / "config.toml").write_text("secret")
    (rig.home / "workspace").mkdir()
    async with rig.listening() as channel:
        with pytest.raises(SendRefused):
            await channel.send(outbound(OWNER, "", attachments=(Attachment("file", "x", path),)))
    assert rig.platform.uploads == []


async def test_a_link_out_of_the_workspace_is_not_followed(rig: Rig, tmp_path: Path) -> None:
    (rig.home / "config.toml").write_text("secret")
    (rig.home / "workspace").mkdir()
    (rig.home / "workspace" / "x").symlink_to(rig.home / "config.toml")
    async with rig.listening() as channel:
        with pytest.raises(SendRefused):
            await channel.send(outbound(OWNER, "", attachments=(Attachment("file", "x", "x"),)))


def test_a_large_picture_is_a_document() -> None:
    assert kind_of("image/jpeg", 1) == "image"
    assert kind_of("image/jpeg", 17 * 1024 * 1024) == "document"
    assert kind_of(None, 1) == "document"
