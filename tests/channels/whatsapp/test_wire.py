"""Real protobuf messages to ours: every kind, every wrapper, who is meant, who wrote."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from channels.message import InboundMessage
from channels.whatsapp import wire
from channels.whatsapp.content import opened, remote_message
from channels.whatsapp.ids import Identities
from channels.whatsapp.limits import WRAPPERS_MAX
from tests.fakes.whatsapp import E2E, FRIEND, FRIEND_LID, GROUP, ME, MY_LID, NOW, OWNER, PROTO, event

RULES = wire.Rules(frozenset({GROUP}), require_mention=True)


def heard(message: Any, message_id: str = "M1", *, ids: Identities | None = None, **about: Any) -> wire.Heard:
    """What an event holds, after it went through bytes."""
    known = ids or Identities({OWNER})
    known.learn(MY_LID, ME)
    sent = event(message, message_id, **about)
    envelope = wire.read_event(PROTO.Message.FromString(sent.SerializeToString()), NOW)
    assert envelope is not None
    for hidden, phone in envelope.pairs:
        known.learn(hidden, phone)
    return wire.read(envelope, wire.Me(frozenset({ME, MY_LID})), RULES, known.one, NOW)


def message_of(message: Any, message_id: str = "M1", **about: Any) -> InboundMessage:
    found = heard(message, message_id, **about).message
    assert found is not None
    return found


def wrapped(message: Any, *names: str) -> Any:
    """`message` inside of wrappers, the first name outermost."""
    for name in reversed(names):
        outer = E2E.Message()
        getattr(outer, name).message.CopyFrom(message)
        message = outer
    return message


TEXT = E2E.Message(extendedTextMessage=E2E.ExtendedTextMessage(text="hi"))


def picture(**more: Any) -> Any:
    return E2E.Message(
        imageMessage=E2E.ImageMessage(caption="see", mimetype="image/jpeg", fileLength=7, directPath="/p", **more)
    )


# B39, B40: wrappers


def test_a_text_in_a_chat_with_disappearing_messages_is_read() -> None:
    message = message_of(wrapped(TEXT, "ephemeralMessage"))
    assert (message.text, message.flags, message.wants_answer) == ("hi", ("ephemeral",), True)


def test_view_once_is_seen_at_any_depth_and_as_a_flag_of_the_picture() -> None:
    deep = message_of(
        wrapped(picture(), "deviceSentMessage", "ephemeralMessage", "viewOnceMessageV2"), chat=FRIEND, sender=ME
    )
    assert deep.text == "see"
    assert "view_once" in deep.flags
    assert deep.is_own
    inline = message_of(picture(viewOnce=True))
    assert (inline.text, inline.flags) == ("see", ("view_once",))


@pytest.mark.parametrize(
    "name",
    [
        "ephemeralMessage",
        "viewOnceMessage",
        "viewOnceMessageV2",
        "viewOnceMessageV2Extension",
        "documentWithCaptionMessage",
        "groupMentionedMessage",
        "botInvokeMessage",
        "associatedChildMessage",
        "spoilerMessage",
    ],
)
def test_every_wrapper_is_opened_up_to_the_limit(name: str) -> None:
    for depth in range(1, WRAPPERS_MAX + 1):
        assert message_of(wrapped(TEXT, *[name] * depth)).text == "hi"
    deeper = message_of(wrapped(TEXT, *[name] * (WRAPPERS_MAX + 1)))
    assert (deeper.text, deeper.wants_answer) == ("", False)
    assert deeper.notice is not None


def test_a_wrapper_with_nothing_in_it_does_not_hide_the_text_outside() -> None:
    outer = E2E.Message(conversation="here")
    outer.ephemeralMessage.message.CopyFrom(E2E.Message())
    assert message_of(outer).text == "here"


def test_what_was_sent_from_another_device_names_its_chat() -> None:
    sent = wrapped(TEXT, "deviceSentMessage")
    sent.deviceSentMessage.destinationJID = FRIEND
    message = message_of(sent, chat=ME, from_me=True)
    assert (message.chat_id, message.is_own, message.wants_answer) == (FRIEND, True, False)


@pytest.mark.parametrize("goes_to", [FRIEND, ME, MY_LID, OWNER, ""])
@pytest.mark.parametrize("around", [(), ("ephemeralMessage",)])
def test_nobody_can_pass_a_message_off_as_one_of_our_own(goes_to: str, around: tuple[str, ...]) -> None:
    """The wrapper of what our other devices sent is only words when somebody else writes it."""
    forged = E2E.Message()
    forged.deviceSentMessage.destinationJID = goes_to
    forged.deviceSentMessage.message.CopyFrom(TEXT)
    message = message_of(wrapped(forged, *around), chat=FRIEND, sender=FRIEND)
    assert (message.chat_id, message.sender_id, message.is_own, message.text) == (FRIEND, FRIEND, False, "hi")


# B42, B43: edits


def edit_of(new: Any) -> Any:
    protocol = E2E.ProtocolMessage(type=14, editedMessage=new)
    protocol.key.ID = "M1"
    return E2E.Message(protocolMessage=protocol)


def test_an_edit_is_one_at_any_depth() -> None:
    plain = message_of(edit_of(E2E.Message(conversation="new")), "E1")
    nested = message_of(wrapped(edit_of(E2E.Message(conversation="new")), "editedMessage"), "E1")
    deep = message_of(wrapped(edit_of(wrapped(TEXT, "ephemeralMessage")), "ephemeralMessage", "editedMessage"), "E1")
    assert plain == nested
    assert (plain.kind, plain.edits, plain.text, plain.wants_answer) == ("edit", "M1", "new", False)
    assert (deep.kind, deep.edits, deep.text) == ("edit", "M1", "hi")


def test_an_edit_that_cannot_be_opened_says_so() -> None:
    secret = E2E.SecretEncryptedMessage(secretEncType=2)
    secret.targetMessageKey.ID = "M1"
    message = message_of(E2E.Message(secretEncryptedMessage=secret), "E1")
    assert (message.kind, message.edits, message.wants_answer) == ("system", "M1", False)
    assert message.text == "M1 was edited, new text unavailable"


def test_the_caption_of_a_picture_can_be_edited() -> None:
    assert message_of(edit_of(picture()), "E1").text == "see"


# B45, B46: removals, reactions


def test_a_removal_is_one_though_its_type_is_zero() -> None:
    for protocol in (E2E.ProtocolMessage(), E2E.ProtocolMessage(type=0)):
        protocol.key.ID = "M2"
        message = message_of(E2E.Message(protocolMessage=protocol), "R1")
        assert (message.kind, message.edits, message.text, message.wants_answer) == ("revoke", "M2", "", False)


@pytest.mark.parametrize("kind", [4, 5, 6, 7, 8, 9, 10, 16, 17, 18, 22, 30])
def test_other_protocol_messages_are_nothing_to_see(kind: int) -> None:
    assert heard(E2E.Message(protocolMessage=E2E.ProtocolMessage(type=kind))).message is None


def test_reactions_come_and_go() -> None:
    for text in ("👍", ""):
        reaction = E2E.ReactionMessage(text=text)
        reaction.key.ID = "M3"
        message = message_of(E2E.Message(reactionMessage=reaction), "R2")
        assert (message.kind, message.edits, message.text, message.wants_answer) == ("reaction", "M3", text, False)


# B34: who is meant


@pytest.mark.parametrize(("written", "mentioned"), [("99887766554433", MY_LID), ("15550001111", ME)])
def test_a_mention_by_either_id_is_one(written: str, mentioned: str) -> None:
    text = E2E.ExtendedTextMessage(text=f"@{written} hi")
    text.contextInfo.mentionedJID.append(mentioned)
    message = message_of(E2E.Message(extendedTextMessage=text), chat=GROUP, sender=OWNER)
    assert (message.text, message.is_mention, message.wants_answer, message.is_group) == ("hi", True, True, True)


@pytest.mark.parametrize("author", ["99887766554433:2@lid", "15550001111:2@s.whatsapp.net"])
def test_a_reply_to_us_is_a_mention(author: str) -> None:
    text = E2E.ExtendedTextMessage(text="and tomorrow?")
    text.contextInfo.stanzaID, text.contextInfo.participant = "OURS", author
    text.contextInfo.quotedMessage.conversation = "Rain today"
    message = message_of(E2E.Message(extendedTextMessage=text), chat=GROUP, sender=OWNER)
    assert (message.is_mention, message.wants_answer, message.reply_to) == (True, True, "OURS")
    assert message.quote is not None
    assert (message.quote.text, message.quote.is_own) == ("Rain today", True)


def test_a_number_that_only_begins_like_ours_is_no_mention() -> None:
    message = message_of("@155500011112 hi", chat=GROUP, sender=OWNER)
    assert (message.is_mention, message.wants_answer, message.text) == (False, False, "@155500011112 hi")


def test_only_listed_groups_are_answered() -> None:
    other = message_of("@15550001111 hi", chat="120363000000000009@g.us", sender=OWNER)
    assert (other.is_mention, other.wants_answer) == (True, False)


# B36, B37, B48: who wrote


def test_a_person_with_two_ids_is_one() -> None:
    by_hidden = message_of("hi", chat=FRIEND_LID, sender=FRIEND_LID, sender_alt=FRIEND, device=7)
    assert (by_hidden.chat_id, by_hidden.sender_id) == (FRIEND, FRIEND)
    own = message_of("hello", chat=FRIEND_LID, from_me=True, recipient_alt=FRIEND)
    assert (own.chat_id, own.sender_id, own.is_own) == (FRIEND, ME, True)


def test_an_unknown_hidden_id_stays_as_it_is() -> None:
    message = message_of("hi", chat=FRIEND_LID, sender=FRIEND_LID)
    assert (message.chat_id, message.sender_id) == (FRIEND_LID, FRIEND_LID)


def test_a_person_listed_by_the_hidden_id_has_that_one() -> None:
    ids = Identities({FRIEND_LID})
    assert message_of("hi", ids=ids, chat=FRIEND, sender=FRIEND, sender_alt=FRIEND_LID).sender_id == FRIEND_LID


def test_a_number_that_was_given_to_somebody_else_is_no_longer_the_person_it_was() -> None:
    ids = Identities({FRIEND_LID})
    ids.learn(FRIEND_LID, FRIEND)
    assert ids.learn(FRIEND_LID, "15550009999@s.whatsapp.net")
    assert ids.one("15550009999@s.whatsapp.net") == FRIEND_LID
    assert ids.one(FRIEND) == FRIEND


def test_a_number_with_another_hidden_id_is_no_longer_behind_the_first() -> None:
    ids = Identities({FRIEND})
    ids.learn("1@lid", FRIEND)
    ids.learn("2@lid", FRIEND)
    assert (ids.one("2@lid"), ids.one("1@lid")) == (FRIEND, "1@lid")


def test_what_is_written_in_the_chat_with_oneself_is_meant_for_us() -> None:
    for chat in (ME, MY_LID):
        message = message_of("remind me", chat=chat, from_me=True)
        assert (message.is_own, message.wants_answer) == (False, True)
        assert (message.chat_id, message.sender_id) == (ME, ME)


def test_what_is_written_to_others_is_the_owners_and_wants_nothing() -> None:
    message = message_of("see you at 8", chat="15550004444@s.whatsapp.net", from_me=True)
    assert (message.is_own, message.wants_answer, message.sender_id) == (True, False, ME)


@pytest.mark.parametrize("chat", ["status@broadcast", "1555@newsletter", "12345@broadcast", "13135550002@bot"])
def test_status_lists_and_channels_are_nothing_to_us(chat: str) -> None:
    assert wire.read_event(event("hi", "M1", chat=chat, sender=FRIEND), NOW) is None


def test_what_was_posted_as_a_status_of_a_group_is_nothing_to_us() -> None:
    assert heard(wrapped(TEXT, "groupStatusMessageV2"), chat=GROUP, sender=OWNER).message is None


# what there is to see


def test_files_say_what_they_are_and_how_they_are_fetched() -> None:
    document = E2E.DocumentMessage(
        fileName="تقرير.pdf", mimetype="application/pdf; x=1", fileLength=9, caption="the report", directPath="/d"
    )
    document.mediaKey, document.JPEGThumbnail = b"key", b"x" * 100_000
    message = message_of(wrapped(E2E.Message(documentMessage=document), "documentWithCaptionMessage"))
    file = message.attachments[0]
    assert (message.kind, message.text, message.wants_answer) == ("file", "the report", True)
    assert (file.kind, file.name, file.mime, file.size_bytes) == ("file", "تقرير.pdf", "application/pdf", 9)
    assert file.remote is not None
    assert len(file.remote) < 1_000
    named = remote_message(file.remote, E2E.Message())
    assert (named.documentMessage.directPath, named.documentMessage.mediaKey) == ("/d", b"key")


@pytest.mark.parametrize(
    ("message", "kind", "text", "files"),
    [
        (E2E.Message(audioMessage=E2E.AudioMessage(PTT=True, seconds=4, directPath="/a")), "voice", "", ["voice"]),
        (E2E.Message(audioMessage=E2E.AudioMessage(seconds=4, directPath="/a")), "file", "", ["audio"]),
        (E2E.Message(videoMessage=E2E.VideoMessage(caption="v", directPath="/a")), "video", "v", ["video"]),
        (E2E.Message(ptvMessage=E2E.VideoMessage(directPath="/a")), "video", "", ["video"]),
        (E2E.Message(stickerMessage=E2E.StickerMessage(directPath="/a")), "sticker", "", ["sticker"]),
        (
            E2E.Message(locationMessage=E2E.LocationMessage(name="Café", degreesLatitude=21.5, degreesLongitude=39.2)),
            "location",
            "Café, 21.5, 39.2",
            [],
        ),
        (
            E2E.Message(
                contactMessage=E2E.ContactMessage(
                    displayName="Ali", vcard="BEGIN:VCARD\nVERSION:3.0\nTEL;waid=1:+1 555\nEND:VCARD"
                )
            ),
            "contact",
            "Ali, +1 555",
            [],
        ),
        (
            E2E.Message(
                pollCreationMessageV3=E2E.PollCreationMessage(
                    name="When?",
                    options=[
                        E2E.PollCreationMessage.Option(optionName="Mon"),
                        E2E.PollCreationMessage.Option(optionName="Tue"),
                    ],
                )
            ),
            "poll",
            "When?\n- Mon\n- Tue",
            [],
        ),
        (
            E2E.Message(buttonsResponseMessage=E2E.ButtonsResponseMessage(selectedDisplayText="Yes")),
            "text",
            "Yes",
            [],
        ),
    ],
)
def test_every_kind_is_shown_as_what_it_is(message: Any, kind: str, text: str, files: list[str]) -> None:
    found = message_of(message)
    assert (found.kind, found.text, [file.kind for file in found.attachments]) == (kind, text, files)
    assert found.wants_answer


def test_a_kind_that_nobody_knows_yet_is_said_to_be_one() -> None:
    found = message_of(E2E.Message(eventInviteMessage=E2E.EventInviteMessage()))
    assert (found.wants_answer, found.text) == (False, "")
    assert found.notice is not None


@pytest.mark.parametrize(
    "name", ["senderKeyDistributionMessage", "albumMessage", "pollUpdateMessage", "pinInChatMessage"]
)
def test_what_people_do_not_see_is_nothing_to_us(name: str) -> None:
    message = E2E.Message()
    getattr(message, name).SetInParent()
    assert heard(message).message is None


def test_parts_of_an_album_wait_for_each_other() -> None:
    part = picture()
    part.messageContextInfo.messageAssociation.associationType = 1
    part.messageContextInfo.messageAssociation.parentMessageKey.ID = "ALBUM"
    assert message_of(part).more_may_come
    assert not message_of(picture()).more_may_come


def test_a_forward_is_said_to_be_one() -> None:
    text = E2E.ExtendedTextMessage(text="Free money")
    text.contextInfo.isForwarded = True
    assert message_of(E2E.Message(extendedTextMessage=text)).forwarded_from == "somebody else"
    text.contextInfo.forwardedNewsletterMessageInfo.newsletterName = "Daily"
    assert message_of(E2E.Message(extendedTextMessage=text)).forwarded_from == "Daily"


def test_timers_are_seen_in_messages_and_in_changes() -> None:
    text = E2E.ExtendedTextMessage(text="hi")
    text.contextInfo.expiration = 604800
    assert heard(E2E.Message(extendedTextMessage=text)).timer_seconds == 604800
    change = E2E.Message(protocolMessage=E2E.ProtocolMessage(type=3, ephemeralExpiration=0))
    assert heard(change).timer_seconds == 0


# B49: when


def test_what_is_late_is_answered_within_a_limit() -> None:
    assert message_of("hi", at=NOW - timedelta(hours=23)).wants_answer
    old = message_of("hi", at=NOW - timedelta(hours=25))
    assert (old.wants_answer, old.sent_at) == (False, NOW - timedelta(hours=25))


def test_a_time_that_cannot_be_is_the_time_of_arrival() -> None:
    assert message_of("hi", at=NOW + timedelta(days=400)).sent_at == NOW


def test_an_event_without_a_sender_is_refused() -> None:
    bad = event("hi", "", chat=OWNER)
    with pytest.raises(wire.BadEvent):
        wire.read_event(bad, NOW)


def test_lone_surrogates_and_nul_do_not_reach_anybody() -> None:
    message = message_of("a\0b")
    assert message.text == "a\ufffdb"


def test_opening_never_changes_the_message() -> None:
    message = wrapped(TEXT, "ephemeralMessage", "viewOnceMessage")
    before = message.SerializeToString()
    opened(message)
    assert message.SerializeToString() == before
