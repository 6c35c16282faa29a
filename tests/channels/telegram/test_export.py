"""What Telegram Desktop writes into result.json, of a whole account and of one chat."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.message import Export, ExportedMessage, ExportError, ExportOptions
from channels.telegram.export import bot_api_id, read_export
from channels.telegram.export_content import content_of

Record = dict[str, Any]


def message(**fields: Any) -> Record:
    known = {"id": 1, "type": "message", "date_unixtime": "1700000000", "from": "Ann", "from_id": "user1", "text": "x"}
    return known | fields


def chat(*messages: Any, **fields: Any) -> Record:
    return {"name": "Ann", "type": "personal_chat", "id": 1, "messages": list(messages)} | fields


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "result.json"


def read(path: Path, what: Any, **options: Any) -> Export:
    path.write_text(what if isinstance(what, str) else json.dumps(what), encoding="utf-8")
    return read_export(path, ExportOptions(ZoneInfo("UTC"), **options))


def only(path: Path, *records: Any, **options: Any) -> ExportedMessage:
    (item,) = read(path, chat(*records), **options).messages()
    return item


def test_formatted_text_is_joined(path: Path) -> None:
    said = only(path, message(text=["see ", {"type": "link", "text": "https://example.org"}, " now"])).message
    assert said.text == "see https://example.org now"
    assert said.sent_at == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)


@pytest.mark.parametrize(
    ("fields", "kind", "name"),
    [
        ({"photo": "photos/p.jpg"}, "photo", "p.jpg"),
        ({"photo": "(File not included.)"}, "photo", "photo"),
        ({"file": "v/a.ogg", "media_type": "voice_message", "duration_seconds": 3}, "voice", "a.ogg"),
        ({"file": "(File exceeds maximum size.)", "file_name": "plan.pdf"}, "file", "plan.pdf"),
        ({"media_type": "video_file"}, "video", "video_file"),
        ({"file": "s.webp", "media_type": "hologram"}, "file", "s.webp"),
    ],
)
def test_a_file_without_words_is_a_media_record(path: Path, fields: Record, kind: str, name: str) -> None:
    said = only(path, message(text="", **fields)).message
    assert (said.text, said.kind, [file.name for file in said.attachments]) == ("", kind, [name])


def test_a_missing_text_is_an_empty_one(path: Path) -> None:
    record = message()
    del record["text"]
    assert only(path, record).message.text == ""


@pytest.mark.parametrize(
    ("fields", "kind", "text"),
    [
        (
            {"location_information": {"latitude": 1.5, "longitude": 2.5}, "place_name": "Café"},
            "location",
            "Café, 1.5, 2.5",
        ),
        ({"contact_information": {"first_name": "Bo", "phone_number": "+49 1"}}, "contact", "Bo +49 1"),
        ({"poll": {"question": "Tea?", "answers": [{"text": "yes"}, {"text": "no"}]}}, "poll", "Tea?\n- yes\n- no"),
        ({"file": "s.webp", "media_type": "sticker", "sticker_emoji": "😀"}, "sticker", "😀"),
    ],
)
def test_places_contacts_polls_and_stickers_are_words(path: Path, fields: Record, kind: str, text: str) -> None:
    said = only(path, message(text="", **fields)).message
    assert (said.kind, said.text) == (kind, text)


def test_a_sender_without_a_name_is_still_somebody(path: Path) -> None:
    deleted, unknown = message(**{"from": None, "from_id": "user3"}), message(id=2)
    del unknown["from"], unknown["from_id"]
    export = read(path, chat(deleted, unknown))
    first, second = (item.message for item in export.messages())
    assert (first.sender_name, first.sender_id) == ("Deleted account (user3)", "3")
    assert (second.sender_name, second.sender_id) == ("Unknown", "")
    assert export.chats[0].participants == ("Deleted account (user3)", "Unknown")


def test_an_account_and_a_single_chat_are_both_read(path: Path) -> None:
    account: Record = {
        "about": "a",
        "chats": {
            "about": "b",
            "list": [chat(message()), {"id": 2, "name": None, "type": "private_group", "messages": []}],
        },
        "left_chats": {"list": [chat(message(id=5), id=77, type="public_channel", name="News")]},
    }
    export = read(path, account)
    assert [(found.chat_id, found.title, found.messages) for found in export.chats] == [
        ("1", "Ann", 1),
        ("-2", "private_group 2", 0),
        ("-1000000000077", "News", 1),
    ]
    assert [(item.message.chat_id, item.message.message_id) for item in export.messages()] == [
        ("1", "1"),
        ("-1000000000077", "5"),
    ]
    assert [found.title for found in read(path, chat()).chats] == ["Ann"]


@pytest.mark.parametrize(
    "what",
    [
        {"a": 1},
        [],
        {"messages": []},
        {"chats": []},
        {"chats": {"list": {}}},
        {"id": 1, "messages": {}},
        "hello",
        "",
        "\ufeff",
    ],
)
def test_an_unknown_shape_is_refused_with_the_keys_that_are_expected(path: Path, what: Any) -> None:
    with pytest.raises(ExportError) as caught:
        read(path, what)
    assert all(key in str(caught.value) for key in ("`chats`", "`list`", "`id`", "`type`", "`messages`"))


def test_a_file_that_ends_too_soon_is_refused(path: Path) -> None:
    whole = json.dumps(chat(message(), message(id=2)))
    with pytest.raises(ExportError, match="JSON"):
        read(path, whole[:-5])


@pytest.mark.parametrize(
    ("fields", "flags"),
    [
        ({"reactions": [{"type": "emoji", "count": 1, "emoji": "\u2764"}]}, ("edited or reacted",)),
        ({}, ("edited",)),
    ],
)
def test_a_reaction_is_no_edit(path: Path, fields: Record, flags: tuple[str, ...]) -> None:
    item = only(path, message(edited_unixtime="1700009999", **fields))
    assert item.flags == flags
    assert item.message.sent_at == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)


def test_content_that_is_newer_than_the_program_keeps_its_words_and_is_counted(path: Path) -> None:
    rich, strange = message(), message(id=2)
    del rich["text"], strange["text"]
    rich["rich_message"] = {
        "blocks": [{"type": "paragraph", "text": "todo"}, {"text": ["buy ", {"type": "bold", "text": "tea"}]}]
    }
    strange["hologram"] = {"blob": 1}
    export = read(path, chat(rich, strange, message(id=3)))
    assert [item.message.text for item in export.messages()] == ["todo\nbuy tea", "unsupported content", "x"]
    assert dict(export.unsupported) == {"rich_message": 1, "hologram": 1}


def test_records_that_cannot_be_messages_are_counted_by_reason(path: Path) -> None:
    export = read(path, chat(5, None, {"x": [{}]}, {"id": 4}, message(date_unixtime="soon"), message(id=9)))
    assert [item.message.message_id for item in export.messages()] == ["9"]
    assert sum(export.skipped.values()) == 5


def test_what_happened_in_a_group_is_a_notice(path: Path) -> None:
    record = {
        "id": 1,
        "type": "service",
        "date_unixtime": "1",
        "actor": "Ann",
        "action": "create_group",
        "title": "Tea",
    }
    said = only(path, record | {"members": ["Ann", None], "text": ""}).message
    assert (said.kind, said.text) == ("system", 'Ann: create group "Tea" (Ann)')


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        ("personal_chat", "1234567890"),
        ("bot_chat", "1234567890"),
        ("saved_messages", "1234567890"),
        ("private_group", "-1234567890"),
        ("private_supergroup", "-1001234567890"),
        ("public_channel", "-1001234567890"),
    ],
)
def test_ids_are_those_of_the_bot_api(kind: str, wanted: str) -> None:
    assert bot_api_id(kind, 1234567890) == wanted


def test_the_owner_is_whose_account_it_is_or_who_the_settings_name(path: Path) -> None:
    account = {"personal_information": {"user_id": 1}, "chats": {"list": [chat(message())]}}
    assert [item.is_owner for item in read(path, account).messages()] == [True]
    assert not only(path, message()).is_owner
    assert only(path, message(), owner_ids=frozenset({"1"})).is_owner


def test_a_time_without_its_number_is_read_in_the_zone(path: Path) -> None:
    record = message(date="2023-11-14T22:13:20")
    del record["date_unixtime"]
    path.write_text(json.dumps(chat(record)), encoding="utf-8")
    (item,) = read_export(path, ExportOptions(ZoneInfo("Asia/Riyadh"))).messages()
    assert item.message.sent_at == datetime(2023, 11, 14, 19, 13, 20, tzinfo=UTC)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["text", "type", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)
FIELDS = [
    "text",
    "photo",
    "file",
    "media_type",
    "poll",
    "contact_information",
    "location_information",
    "type",
    "members",
    "x",
]


@given(st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=5))
def test_no_value_of_any_field_breaks_the_reader(record: Record) -> None:
    assert (
        "None" not in content_of({name: value for name, value in record.items() if name != "location_information"}).text
    )
    assert isinstance(content_of(record).text, str)
