"""Updates of the Bot API, read."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.message import InboundMessage, Quote
from channels.telegram.wire import BadUpdate, Bot, GroupRules, Migration, Pressed, album_of, read_update, update_id

BOT = Bot("4242", "demo_bot")
GROUP = -1001
RULES = GroupRules(frozenset({str(GROUP)}), require_mention=True)
NOW = datetime(2026, 11, 2, 9, tzinfo=UTC)
SARA = {"id": 7, "is_bot": False, "first_name": "Sara", "last_name": "Ali", "language_code": "en"}


def read(update: dict[str, Any], rules: GroupRules = RULES) -> InboundMessage | Migration | Pressed | None:
    return read_update(update, BOT, rules, NOW)


def private(**fields: Any) -> dict[str, Any]:
    message = {"message_id": 5, "from": SARA, "chat": {"id": 7, "type": "private"}, "date": 1_790_000_000}
    return {"update_id": 101, "message": message | fields}


def group(text: str = "", chat_id: Any = GROUP, **fields: Any) -> dict[str, Any]:
    chat = {"id": chat_id, "type": "supergroup", "title": "Family"}
    message = {"message_id": 6, "from": SARA, "chat": chat, "date": 1_790_000_000}
    return {"update_id": 102, "message": message | ({"text": text} if text else {}) | fields}


def heard(update: dict[str, Any], rules: GroupRules = RULES) -> InboundMessage:
    message = read(update, rules)
    assert isinstance(message, InboundMessage)
    return message


def mention(offset: int, length: int = 9) -> list[dict[str, Any]]:
    return [{"type": "mention", "offset": offset, "length": length}]


def test_a_private_text() -> None:
    message = heard(private(text="مرحبا"))
    assert (message.channel, message.chat_id, message.message_id) == ("telegram", "7", "5")
    assert (message.sender_id, message.sender_name, message.text) == ("7", "Sara Ali", "مرحبا")
    assert message.sent_at == datetime.fromtimestamp(1_790_000_000, UTC)
    assert message.wants_answer
    assert not message.is_group
    assert message.thread_id is None


def test_a_mention_after_emoji_is_found_and_taken_out() -> None:
    """B04."""
    message = heard(group("\U0001f680\U0001f680 @demo_bot hi", entities=mention(5)))
    assert message.is_mention
    assert message.wants_answer
    assert message.text == "\U0001f680\U0001f680 hi"


def test_a_mention_in_a_caption_is_found() -> None:
    """B33."""
    photo = [{"file_id": "a", "width": 1, "height": 1, "file_size": 9}, {"file_id": "b", "file_size": 900}]
    message = heard(group(photo=photo, caption="@demo_bot what is this", caption_entities=mention(0)))
    assert message.is_mention
    assert message.wants_answer
    assert (message.kind, message.text) == ("photo", "what is this")
    assert message.attachments[0].size_bytes == 900


def test_a_mention_alone_keeps_its_text() -> None:
    assert heard(group("@demo_bot", entities=mention(0))).text == "@demo_bot"


@pytest.mark.parametrize(
    "fields",
    [
        {"entities": [{"type": "text_mention", "offset": 0, "length": 3, "user": {"id": 4242}}]},
        {"entities": [{"type": "mention", "offset": 4, "length": 9}]},
        {"reply_to_message": {"message_id": 3, "from": {"id": 4242}}},
    ],
    ids=["by-name", "any-case", "reply"],
)
def test_speaking_to_the_bot_in_a_listed_group_wants_an_answer(fields: dict[str, Any]) -> None:
    message = heard(group("hey @Demo_Bot", **fields))
    assert message.is_mention
    assert message.wants_answer


@pytest.mark.parametrize(
    ("update", "rules"),
    [
        (group("just talking"), RULES),
        (group("@other_bot hi", entities=mention(0, 10)), RULES),
        (group("@demo_bot hi", chat_id=-5, entities=mention(0)), RULES),
        (group("@demo_bot hi", entities=mention(0), **{"from": SARA | {"is_bot": True}}), RULES),
        (group("/stop@other_bot", entities=[{"type": "bot_command", "offset": 0, "length": 15}]), RULES),
        (
            group("/stop@other_bot", entities=[{"type": "bot_command", "offset": 0, "length": 15}]),
            GroupRules(frozenset({str(GROUP)}), require_mention=False),
        ),
    ],
    ids=["not-addressed", "another-bot", "group-not-listed", "from-a-bot", "anothers-command", "anothers-command-open"],
)
def test_what_is_not_for_the_bot_is_heard_without_an_answer(update: dict[str, Any], rules: GroupRules) -> None:
    message = heard(update, rules)
    assert not message.wants_answer
    assert message.notice is None
    assert message.is_group


def test_without_required_mention_a_listed_group_is_answered() -> None:
    assert heard(group("just talking"), GroupRules(frozenset({str(GROUP)}), require_mention=False)).wants_answer


def test_a_command_with_the_bots_name_is_the_bare_command() -> None:
    message = heard(group("/stop@Demo_Bot now", entities=[{"type": "bot_command", "offset": 0, "length": 14}]))
    assert message.text == "/stop now"
    assert message.is_mention


def test_an_edit_is_about_its_message_and_never_wants_an_answer() -> None:
    """B15."""
    chat = {"id": 7, "type": "private"}
    edited = {"message_id": 7, "date": 1000, "edit_date": 900_000, "text": "/stop", "chat": chat, "from": SARA}
    message = heard({"update_id": 101, "edited_message": edited})
    assert (message.kind, message.edits, message.text) == ("edit", "7", "/stop")
    assert not message.wants_answer
    assert message.message_id != "7"
    again = heard({"update_id": 105, "edited_message": edited | {"text": "stop!"}})
    assert again.dedupe_key != message.dedupe_key


@pytest.mark.parametrize("field", ["channel_post", "edited_channel_post"])
def test_a_channel_post_has_the_channel_as_its_author(field: str) -> None:
    """B17."""
    chat = {"id": -1001, "type": "channel", "title": "News"}
    post = {"message_id": 1, "chat": chat, "sender_chat": {"id": -1001}, "text": "hi"}
    message = heard({"update_id": 102, field: post})
    assert (message.sender_name, message.sender_id, message.text) == ("News", "-1001", "hi")
    assert not message.wants_answer
    assert message.kind == ("edit" if field.startswith("edited") else "text")
    assert message.sent_at == NOW


def test_an_anonymous_admin_is_the_group_and_not_the_bot_that_stands_in() -> None:
    stand_in = {"id": 1087968824, "is_bot": True, "first_name": "Group"}
    message = heard(group("hello", **{"from": stand_in, "sender_chat": {"id": GROUP, "title": "Family"}}))
    assert (message.sender_id, message.sender_name) == (str(GROUP), "Family")


@pytest.mark.parametrize(
    ("fields", "thread"),
    [
        ({"message_thread_id": 12, "is_topic_message": True}, "12"),
        ({"message_thread_id": 1, "is_topic_message": True}, None),
        ({}, None),
        ({"message_thread_id": 555, "reply_to_message": {"message_id": 555}}, None),
    ],
    ids=["topic", "general-by-number", "general-without", "reply-root"],
)
def test_only_a_real_topic_is_part_of_the_address(fields: dict[str, Any], thread: str | None) -> None:
    """B20, B21."""
    message = heard(group("hello", **fields))
    assert message.thread_id == thread
    assert message.address.session_key == f"telegram:{GROUP}" + (f":{thread}" if thread else "")


def test_a_message_in_a_topic_the_bot_opened_is_no_reply_to_it() -> None:
    opening = {"message_id": 12, "from": {"id": 4242}, "forum_topic_created": {"name": "Trips"}}
    message = heard(group("hi", message_thread_id=12, is_topic_message=True, reply_to_message=opening))
    assert not message.is_mention
    assert message.reply_to is None


def test_both_service_messages_of_a_migration_say_the_same() -> None:
    """B18."""
    old = {"message_id": 1, "chat": {"id": -4001, "type": "group", "title": "G"}, "migrate_to_chat_id": -1001234500001}
    new = {"message_id": 1, "chat": {"id": -1001234500001, "type": "supergroup"}, "migrate_from_chat_id": -4001}
    expected = Migration("-4001", "-1001234500001")
    assert read({"update_id": 1, "message": old}) == expected
    assert read({"update_id": 2, "message": new}) == expected


@pytest.mark.parametrize(
    ("fields", "kind", "file", "name"),
    [
        ({"voice": {"file_id": "F1", "duration": 11, "mime_type": "audio/ogg"}}, "voice", "voice", "voice.ogg"),
        ({"audio": {"file_id": "F1", "duration": 180, "file_name": "song.mp3"}}, "file", "audio", "song.mp3"),
        ({"video": {"file_id": "F1", "duration": 3}}, "video", "video", "video.mp4"),
        ({"video_note": {"file_id": "F1", "duration": 3}}, "video", "video", "video_note.mp4"),
        ({"animation": {"file_id": "F1"}, "document": {"file_id": "F2"}}, "video", "video", "animation.mp4"),
        ({"photo": [{"file_id": "F0"}, {"file_id": "F1"}]}, "photo", "photo", "photo.jpg"),
        ({"sticker": {"file_id": "F1", "emoji": "\U0001f600"}}, "sticker", "sticker", "sticker.webp"),
        ({"sticker": {"file_id": "F1", "is_animated": True}}, "sticker", "sticker", "sticker.tgs"),
        ({"sticker": {"file_id": "F1", "is_video": True}}, "sticker", "sticker", "sticker.webm"),
        ({"document": {"file_id": "F1", "file_name": "تقرير.pdf", "file_size": 12}}, "file", "file", "تقرير.pdf"),
    ],
)
def test_a_file_is_named_and_can_be_fetched(fields: dict[str, Any], kind: str, file: str, name: str) -> None:
    message = heard(private(**fields))
    assert message.kind == kind
    (attachment,) = message.attachments
    assert (attachment.kind, attachment.name, attachment.remote) == (file, name, "F1")
    assert attachment.path is None
    assert message.wants_answer
    assert message.notice is None


def test_a_sticker_says_its_emoji() -> None:
    assert heard(private(sticker={"file_id": "F", "emoji": "\U0001f600"})).text == "\U0001f600"


def test_a_voice_message_says_how_long_it_is() -> None:
    """B32."""
    assert heard(private(voice={"file_id": "F1", "duration": 11})).attachments[0].duration_seconds == 11


def test_what_there_are_no_words_for_gets_one_notice_in_the_senders_language() -> None:
    english = heard(private(story={"id": 1}))
    assert not english.wants_answer
    assert "cannot read" in (english.notice or "")
    arabic = private(story={"id": 1}, **{"from": SARA | {"language_code": "ar-SA"}})
    assert "نصًّا" in (heard(arabic).notice or "")


def test_a_file_with_a_caption_is_answered_with_both() -> None:
    message = heard(private(document={"file_id": "F", "file_name": "a.pdf"}, caption="What do you know of this?"))
    assert message.wants_answer
    assert (message.text, message.attachments[0].name) == ("What do you know of this?", "a.pdf")


@pytest.mark.parametrize(
    ("units", "flags"),
    [(3_599, None), (3_600, ("cut",)), (4_095, ("cut",)), (4_096, ("cut", "cut_inside"))],
)
def test_only_a_text_near_the_limit_may_go_on(units: int, flags: tuple[str, ...] | None) -> None:
    # A rocket is two units.
    message = heard(private(text="\U0001f680" * (units // 2) + "a" * (units % 2)))
    assert message.more_may_come == (flags is not None)
    assert message.flags == (flags or ())


def test_a_part_of_an_album_may_have_others() -> None:
    assert heard(private(photo=[{"file_id": "F"}], media_group_id="a1")).more_may_come
    assert not heard(private(photo=[{"file_id": "F"}])).more_may_come


def test_in_a_group_that_is_not_answered_nothing_waits_for_more() -> None:
    assert not heard(group(photo=[{"file_id": "F"}], media_group_id="a1")).more_may_come


OMAR = {"id": 9, "is_bot": False, "first_name": "Omar"}


@pytest.mark.parametrize(
    ("fields", "quote"),
    [
        ({"reply_to_message": {"message_id": 3, "from": OMAR, "text": "at nine"}}, Quote("at nine", "Omar")),
        ({"reply_to_message": {"message_id": 3, "from": {"id": 4242}, "text": "mine"}}, Quote("mine", "", True)),
        ({"reply_to_message": {"message_id": 3, "from": SARA, "text": "own"}}, Quote("own", "Sara Ali", True)),
        (
            {"reply_to_message": {"message_id": 3, "from": OMAR, "text": "long"}, "quote": {"text": "lo"}},
            Quote("lo", "Omar"),
        ),
        (
            {"external_reply": {"origin": {"sender_user": OMAR}}, "quote": {"text": "elsewhere"}},
            Quote("elsewhere", "Omar"),
        ),
        ({"reply_to_message": {"message_id": 3, "from": OMAR, "photo": [{"file_id": "P"}]}}, None),
    ],
    ids=["other", "ours", "own", "marked", "other-chat", "no-words"],
)
def test_a_reply_says_what_it_quotes_and_whose_words_those_are(fields: dict[str, Any], quote: Quote | None) -> None:
    assert heard(private(text="and this?", **fields)).quote == quote


def test_the_picture_that_is_replied_to_comes_along() -> None:
    reply = {"message_id": 3, "from": OMAR, "photo": [{"file_id": "P"}]}
    message = heard(private(text="what is this?", reply_to_message=reply))
    assert [file.remote for file in message.attachments] == ["P"]
    ours = {"message_id": 3, "from": {"id": 4242, "is_bot": True}, "document": {"file_id": "D"}}
    assert heard(private(text="thanks", reply_to_message=ours)).attachments == ()


def test_reactions_are_lines_about_their_message() -> None:
    def reaction(number: int, *signs: dict[str, str]) -> InboundMessage:
        about = {"chat": {"id": 7, "type": "private"}, "message_id": 3, "user": SARA, "date": 1_790_000_000}
        return heard({"update_id": number, "message_reaction": about | {"old_reaction": [], "new_reaction": [*signs]}})

    added = reaction(1, {"type": "emoji", "emoji": "\U0001f44d"}, {"type": "custom_emoji", "custom_emoji_id": "5"})
    removed = reaction(2)
    assert (added.kind, added.edits, added.text) == ("reaction", "3", "\U0001f44d [emoji]")
    assert (removed.kind, removed.edits, removed.text) == ("reaction", "3", "")
    assert added.dedupe_key != removed.dedupe_key
    assert not added.wants_answer


def test_a_live_location_that_moves_is_no_edit() -> None:
    moved = private(location={"latitude": 1.0, "longitude": 2.0})["message"]
    assert read({"update_id": 4, "edited_message": moved}) is None


def test_a_post_of_a_listed_channel_may_be_answered() -> None:
    chat = {"id": -1001, "type": "channel", "title": "News"}
    post = {"message_id": 1, "chat": chat, "sender_chat": {"id": -1001}, "text": "hi"}
    assert heard({"update_id": 1, "channel_post": post}, GroupRules(frozenset({"-1001"}), False)).wants_answer


def test_media_in_a_group_that_is_not_for_the_bot_gets_no_notice() -> None:
    assert heard(group(photo=[{"file_id": "F"}])).notice is None


@pytest.mark.parametrize(
    ("fields", "kind", "text"),
    [
        ({"location": {"latitude": 24.5, "longitude": 46.5}}, "location", "24.5, 46.5"),
        ({"contact": {"first_name": "Omar", "phone_number": "+1555"}}, "contact", "Omar, +1555"),
        ({"poll": {"question": "Tea?", "options": [{"text": "Yes"}, {"text": "No"}]}}, "poll", "Tea?\n- Yes\n- No"),
    ],
)
def test_content_that_can_be_said_in_words_is(fields: dict[str, Any], kind: str, text: str) -> None:
    message = heard(private(**fields))
    assert (message.kind, message.text) == (kind, text)


@pytest.mark.parametrize(
    ("origin", "name"),
    [
        ({"type": "user", "sender_user": {"id": 1, "first_name": "Omar"}}, "Omar"),
        ({"type": "hidden_user", "sender_user_name": "Hidden"}, "Hidden"),
        ({"type": "channel", "chat": {"id": -1, "title": "News"}}, "News"),
    ],
)
def test_a_forward_names_its_author(origin: dict[str, Any], name: str) -> None:
    assert heard(private(text="look", forward_origin=origin)).forwarded_from == name


@pytest.mark.parametrize(
    "update",
    [
        {"update_id": 1, "callback_query": {"id": "x", "from": SARA}},
        {"update_id": 1, "poll": {"id": "x"}},
        group(new_chat_members=[SARA]),
        private(text="echo", **{"from": {"id": 4242, "is_bot": True, "first_name": "Demo"}}),
    ],
    ids=["button", "poll-state", "joined", "own"],
)
def test_what_is_no_message_of_a_person_is_nothing(update: dict[str, Any]) -> None:
    assert read(update) is None


def test_what_cannot_be_stored_is_replaced_without_moving_the_entities() -> None:
    message = heard(
        group("\ud83d\0 @demo_bot hi", entities=mention(3), chat={"id": GROUP, "type": "group", "title": "a\0"})
    )
    assert message.is_mention
    assert message.text == "\ufffd\ufffd hi"
    assert message.chat_title == "a\ufffd"


def test_a_broken_update_is_said_to_be_broken() -> None:
    for update in (private(text=5), private(photo="x"), {"update_id": 1, "message": "x"}, private(chat={"id": "7"})):
        with pytest.raises(BadUpdate):
            read(update)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=8), children, max_size=3),
    max_leaves=8,
)
FIELDS = [
    "message_id",
    "from",
    "chat",
    "date",
    "text",
    "caption",
    "entities",
    "photo",
    "voice",
    "location",
    "poll",
    "reply_to_message",
    "sender_chat",
    "forward_origin",
    "migrate_to_chat_id",
    "contact",
    "dice",
    "venue",
    "is_topic_message",
    "message_thread_id",
    "media_group_id",
    "quote",
    "external_reply",
    "sticker",
    "story",
]


@given(st.dictionaries(st.sampled_from(FIELDS), JSON))
def test_whatever_a_server_sends_is_read_or_refused_and_nothing_else(fields: dict[str, Any]) -> None:
    update = private(**fields)
    update_id(update)
    album_of(update)
    try:
        message = read(update)
    except BadUpdate:
        return
    if isinstance(message, InboundMessage):
        f"{message.text}{message.sender_name}{message.chat_title}".encode()
