"""Exported WhatsApp chats: every form of line, date and mark that phones are known to write."""

from __future__ import annotations

import zipfile
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.message import Export, ExportedMessage, ExportError, ExportOptions
from channels.whatsapp.export import read_export
from channels.whatsapp.export_content import content_of
from channels.whatsapp.export_lines import MARKS, head_of

UTC = ZoneInfo("UTC")


class Exported:
    """Writes a file with this text and reads it as an export."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "WhatsApp Chat with Ann.txt"

    def export(self, text: str, zone: ZoneInfo = UTC, **options: Any) -> Export:
        self.path.write_bytes(text.encode("utf-8"))
        return read_export(self.path, ExportOptions(zone, **options))

    def __call__(self, text: str, **options: Any) -> list[ExportedMessage]:
        return list(self.export(text, **options).messages())

    def said(self, text: str, **options: Any) -> list[tuple[str, str, str]]:
        """Time, author and text of each message."""
        return [
            (f"{item.message.sent_at:%Y-%m-%dT%H:%M:%S}", item.message.sender_name, item.message.text)
            for item in self(text, **options)
        ]


@pytest.fixture
def exported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Exported:
    for name in ("LC_ALL", "LC_TIME", "LANG"):
        monkeypatch.delenv(name, raising=False)
    return Exported(tmp_path)


@pytest.mark.parametrize("blank", ["\u202f", "\u00a0", " "])
def test_any_blank_may_stand_before_am_and_pm(exported: Exported, blank: str) -> None:
    assert exported.said(f"1/9/24, 6:15{blank}PM - Ann: hi\n2/23/24, 1:40{blank}AM - Bo: ok\n") == [
        ("2024-01-09T18:15:00", "Ann", "hi"),
        ("2024-02-23T01:40:00", "Bo", "ok"),
    ]


AMBIGUOUS = "3/4/24, 10:00 - A: x\n5/4/24, 10:00 - A: y\n"


def days(exported: Exported, text: str, **options: Any) -> list[str]:
    return [at[:10] for at, _, _ in exported.said(text, **options)]


def test_an_ambiguous_order_of_the_date_is_said_and_can_be_chosen(exported: Exported) -> None:
    (note,) = exported.export(AMBIGUOUS).notes
    assert "ambiguous" in note
    assert "dmy" in note
    assert days(exported, AMBIGUOUS) == days(exported, AMBIGUOUS) == ["2024-04-03", "2024-04-05"]
    assert exported.export(AMBIGUOUS, dates="mdy").notes == ()
    assert days(exported, AMBIGUOUS, dates="mdy") == ["2024-03-04", "2024-05-04"]


def test_an_american_environment_reads_the_month_first(exported: Exported, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANG", "en_US.UTF-8")
    (note,) = exported.export(AMBIGUOUS).notes
    assert "mdy" in note
    assert days(exported, AMBIGUOUS) == ["2024-03-04", "2024-05-04"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("3/4/24, 10:00 - A: x\n13/4/24, 10:00 - A: y\n", ["2024-04-03", "2024-04-13"]),
        ("3/4/24, 10:00 - A: x\n4/13/24, 10:00 - A: y\n", ["2024-03-04", "2024-04-13"]),
        ("3/4/24, 10:00 - A: x\n4/3/24, 10:00 - A: y\n", ["2024-03-04", "2024-04-03"]),
        ("05.04.24, 10:00 - A: x\n", ["2024-04-05"]),
        ("4/4/24, 10:00 - A: x\n", ["2024-04-04"]),
    ],
)
def test_a_high_day_or_the_run_of_time_or_dots_settle_the_order(
    exported: Exported, text: str, wanted: list[str]
) -> None:
    assert exported.export(text).notes == ()
    assert days(exported, text) == wanted


def test_an_order_that_the_file_contradicts_is_refused(exported: Exported) -> None:
    with pytest.raises(ExportError, match="2/23/24"):
        exported.export("2/23/24, 10:00 - A: x\n", dates="dmy")


@pytest.mark.parametrize(
    ("head", "wanted"),
    [
        ("2022-11-19, 4:31\u202fp.m. - ", "2022-11-19T16:31:00"),
        ("2022/11/19, 4:31 pm - ", "2022-11-19T16:31:00"),
        ("2022/11/19, 12:05 am - ", "2022-11-19T00:05:00"),
        ("2022/11/19, 12:05 PM - ", "2022-11-19T12:05:00"),
        ("19/11/2022, 4:31\u00a0p.\u00a0m. - ", "2022-11-19T16:31:00"),
        ("19/11/2022 à 16:31 - ", "2022-11-19T16:31:00"),
        ("2022. 11. 19. 오후 4:31 - ", "2022-11-19T16:31:00"),
        ("2022/11/19 16:31 - ", "2022-11-19T16:31:00"),
        ("19\u200f/11\u200f/2022، 4:31 م - ", "2022-11-19T16:31:00"),
        ("١٩\u200f/١١\u200f/٢٠٢٢، ٤:٣١ ص - ", "2022-11-19T04:31:00"),
        ("19/11/2565 16:31 - ", "2022-11-19T16:31:00"),
        ("[19.11.22, 16:31:09] ", "2022-11-19T16:31:09"),
        ("[19.11.22, 4:31:09 PM] ", "2022-11-19T16:31:09"),
        ("\ufeff\u200e[19/11/2022, 16:31:09] ", "2022-11-19T16:31:09"),
        ("19-11-2022 16:31 - ", "2022-11-19T16:31:00"),
        ("19.11.2022 klo 16.31 - ", "2022-11-19T16:31:00"),
        ("19.11.2022 г., 16:31 ч. - ", "2022-11-19T16:31:00"),
        ("19/11/2565 16:31 น. - ", "2022-11-19T16:31:00"),
        ("16:31, 19/11/2022 - ", "2022-11-19T16:31:00"),
        ("[16:31:09, 19/11/2022] ", "2022-11-19T16:31:09"),
        ("19/11/22, 4:31 अपराह्न - ", "2022-11-19T16:31:00"),
        ("19/11/22, 12:31 पूर्वाह्न - ", "2022-11-19T00:31:00"),
        ("2022-11-19 16 h 31 - ", "2022-11-19T16:31:00"),
        ("19/11/2022, 16h31 - ", "2022-11-19T16:31:00"),
        ("2022年11月19日 16:31 - ", "2022-11-19T16:31:00"),
        ("2022년 11월 19일 오후 4:31 - ", "2022-11-19T16:31:00"),
        ("2022. 11. 19. du. 4:31 - ", "2022-11-19T16:31:00"),
        ("19/11/2022, 4:31 CH - ", "2022-11-19T16:31:00"),
        ("۱۹/۱۱/۲۰۲۲،\u200f ۱۶:۳۱ - ", "2022-11-19T16:31:00"),
    ],
)
def test_the_heads_that_phones_write(exported: Exported, head: str, wanted: str) -> None:
    assert exported.said(f"{head}Fay: a - b: c\n") == [(wanted, "Fay", "a - b: c")]


def test_both_clocks_in_one_file(exported: Exported) -> None:
    said = exported.said("[08.04.25, 20:11:09] Ann: moin \U0001f600\r\n[08.04.25, 8:15:20 PM] Bo: na\r\n")
    assert said == [("2025-04-08T20:11:09", "Ann", "moin \U0001f600"), ("2025-04-08T20:15:20", "Bo", "na")]


def test_a_line_that_begins_with_a_direction_mark_is_a_message(exported: Exported) -> None:
    first, second = exported("[05/02/24, 10:00:00] Ann: hi\r\n\u200e[05/02/24, 10:00:05] Ann: \u200eimage omitted\r\n")
    assert first.message.text == "hi"
    assert (second.message.text, second.message.kind, len(second.message.attachments)) == ("", "photo", 1)


@pytest.mark.parametrize(
    "placeholder",
    [
        "<Media omitted>",
        "<Medien ausgeschlossen>",
        "<Médias omis>",
        "<تم استبعاد الوسائط>",
        "\u200evideo omitted",
        "<Без медиафайлов>",
        "<Ficheiro não revelado>",
        "<Media tidak disertakan>",
        "<Média kihagyva>",
        "<メディアなし>",
        "<미디어 생략됨>",
        "<המדיה הושמטה>",
        "<Uten vedlegg>",
    ],
)
def test_media_that_was_left_out_has_no_text(exported: Exported, placeholder: str) -> None:
    (item,) = exported(f"13/1/24, 10:00 - Ann: {placeholder}\n")
    assert item.message.text == ""
    assert item.message.kind in {"file", "video"}


def test_typed_words_about_media_stay_text(exported: Exported) -> None:
    assert exported.said("13/1/24, 10:00 - Ann: image omitted\n")[0][2] == "image omitted"


@pytest.mark.parametrize(
    "sentence",
    [
        'Ann changed the group name from "A: B" to "C: D"',
        "Ann hat den Gruppennamen von „A: B“ zu „C: D“ geändert",
        "Ann changed the subject to Lunch: today",
        "Messages and calls are end-to-end encrypted.",
        "غيّرت آن اسم المجموعة إلى «أ: ب»",
    ],
)
def test_what_the_app_says_has_no_author(exported: Exported, sentence: str) -> None:
    export = exported.export(f"12/31/23, 9:00\u202fPM - {sentence}\n12/31/23, 9:01\u202fPM - Ann: ok\n")
    assert export.chats[0].participants == ("Ann",)
    notice, words = export.messages()
    assert (notice.message.kind, notice.message.sender_name, notice.message.text) == ("system", "", sentence)
    assert words.message.kind == "text"


@pytest.mark.parametrize(
    "line",
    ["Tea: \u200eMessages and calls are end-to-end encrypted.", "Ann: \u200eAnn changed the group name to “A: B”"],
)
def test_the_app_may_speak_in_another_s_name(exported: Exported, line: str) -> None:
    notice, words = exported(f"[13.01.24, 10:00:00] {line}\r\n[13.01.24, 10:01:00] Bo: ok\r\n")
    assert (notice.message.kind, notice.message.sender_name) == ("system", "")
    assert (words.message.kind, words.message.sender_name) == ("text", "Bo")


def test_several_lines_a_blank_one_and_times_in_the_text(exported: Exported) -> None:
    said = exported.said(
        "09.03.21, 08:20 - Kim Doe: Train leaves 08:45.\nBring tea.\n\nLast thing: hat\n09.03.21, 08:21 - B: ok\n"
    )
    assert [words[1:] for words in said] == [
        ("Kim Doe", "Train leaves 08:45.\nBring tea.\n\nLast thing: hat"),
        ("B", "ok"),
    ]


@pytest.mark.parametrize(
    ("line", "text", "flags"),
    [
        ("04/07/2024, 7:25\u202fam - Ann: new plan <This message was edited>\n", "new plan", ("edited",)),
        ("[04/07/2024, 07:26:00] Ann: other \u200e<This message was edited>\r\n", "other", ("edited",)),
        ("[04.07.2024, 07:26:00] Ann: neu \u200e<Diese Nachricht wurde bearbeitet.>\r\n", "neu", ("edited",)),
        (
            "[04/07/2024, 07:26:00] Ann: in any language \u200e<Ujumbe huu umehaririwa>\r\n",
            "in any language",
            ("edited",),
        ),
        ("04/07/2024, 7:25 - Ann: plan <Сообщение изменено>\n", "plan", ("edited",)),
        ("04/07/2024, 7:25 - Ann: write <b>this one</b> <please now>\n", "write <b>this one</b> <please now>", ()),
        (
            "04/07/2024, 7:25 - Ann: it said <This message was edited> below\n",
            "it said <This message was edited> below",
            (),
        ),
    ],
)
def test_the_mark_of_an_edit_is_a_flag(exported: Exported, line: str, text: str, flags: tuple[str, ...]) -> None:
    (item,) = exported(line)
    assert (item.message.text, item.flags) == (text, flags)


@pytest.mark.parametrize(
    ("line", "name", "caption", "kind"),
    [
        (
            "24.11.22, 09:12 - Dee: \u200e7c1d9a0be4f2ab31.jpg (Datei angehängt)\nGute Reise\n",
            "7c1d9a0be4f2ab31.jpg",
            "Gute Reise",
            "photo",
        ),
        (
            "[21.07.20, 15:04:05] Lo: \u200e<attached: 00000012-AUDIO-2020-07-21-15-04-05.opus>\r\n",
            "00000012-AUDIO-2020-07-21-15-04-05.opus",
            "",
            "voice",
        ),
        ("[21.07.20, 15:04:30] Lo: \u200e<Anhang: 00000013-PHOTO.jpg>\r\n", "00000013-PHOTO.jpg", "", "photo"),
        ("21.07.20, 15:04 - Lo: my plan.pdf (file attached)\n", "my plan.pdf", "", "file"),
        ("21.07.20, 15:04 - Lo: \u200eIMG-1.mp4 (in no known language)\n", "IMG-1.mp4", "", "video"),
        ("21.07.20, 15:04 - Lo: IMG-2.jpg (添付ファイル)\n", "IMG-2.jpg", "", "photo"),
        ("21.07.20, 15:04 - Lo: IMG-2.jpg (file terlampir)\n", "IMG-2.jpg", "", "photo"),
        ("21.07.20, 15:04 - Lo: صورة.jpg (ملف مرفق)\n", "صورة.jpg", "", "photo"),
    ],
)
def test_files_are_attachments_with_their_exact_names(
    exported: Exported, line: str, name: str, caption: str, kind: str
) -> None:
    (item,) = exported(line)
    assert [file.name for file in item.message.attachments] == [name]
    assert (item.message.text, item.message.kind) == (caption, kind)


@pytest.mark.parametrize("name", ["../up.jpg", "a/b.jpg", "c:\\d.jpg", "...jpg"])
def test_a_name_that_leads_elsewhere_is_no_attachment(exported: Exported, name: str) -> None:
    export = exported.export(f"[21.07.20, 15:04:30] Lo: \u200e<attached: {name}>\r\n")
    (item,) = export.messages()
    assert item.message.attachments == ()
    assert name in item.message.text
    assert sum(export.skipped.values()) == 1


def test_names_that_are_no_contacts_lose_their_tilde(exported: Exported) -> None:
    first, second = exported(
        "[27/01/2023, 8:41:12\u202fPM] ~\u202fRO: hi\r\n[27/01/2023, 8:41:30\u202fPM] RO: me too\r\n"
    )
    assert first.message.sender_name == second.message.sender_name == "RO"
    assert (first.flags, second.flags) == (("not a saved contact",), ())


@pytest.mark.parametrize("text", ["hello\nworld\n", "", "\x00\x01\xff", "x" * 500 + "\n", "99/99/24, 10:00 - A: x\n"])
def test_a_file_that_is_no_chat_is_refused_with_its_first_line(exported: Exported, text: str) -> None:
    with pytest.raises(ExportError) as caught:
        exported.export(text)
    shown = str(caught.value).partition('first line is "')[2].partition('". Expected')[0]
    assert shown[:5] == text[:5].encode("unicode_escape").decode("ascii")[:5].partition("\\n")[0]
    assert len(shown) <= 80


def test_a_chat_is_not_searched_for_deep_in_another_file(exported: Exported) -> None:
    with pytest.raises(ExportError):
        exported.export("prose\n" * 200 + "13/1/24, 10:00 - Ann: quoted\n")


@pytest.mark.parametrize(
    ("name", "chat"),
    [
        ("WhatsApp Chat with Ann.txt", "Ann"),
        ("WhatsApp Chat - Tea: 5 (1).txt", "Tea: 5"),
        ("WhatsApp-Chat mit Dee.txt", "Dee"),
        ("Chat de WhatsApp con José.txt", "José"),
        ("محادثة واتساب مع علي.txt", "علي"),
        ("Ali ile WhatsApp Sohbeti.txt", "Ali"),
        ("WhatsApp Chat - Lo/_chat.txt", "Lo"),
        ("notes.txt", "notes"),
    ],
)
def test_the_chat_has_the_name_in_the_file_name(tmp_path: Path, name: str, chat: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("13/1/24, 10:00 - Ann: hi\n", encoding="utf-8")
    export = read_export(path, ExportOptions(UTC))
    assert export.chats[0].chat_id == chat
    assert bool(export.notes) is (chat == "notes")
    assert read_export(path, ExportOptions(UTC, chat="Other")).chats[0].chat_id == "Other"


def test_a_zip_is_read_with_the_sizes_of_its_files(tmp_path: Path) -> None:
    path = tmp_path / "WhatsApp Chat - Ann.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("_chat.txt", "[13/1/24, 10:00:00] Ann: \u200e<attached: p.jpg>\r\n")
        archive.writestr("notes.txt", "sent as a file")
        archive.writestr("p.jpg", b"12345")
    export = read_export(path, ExportOptions(UTC))
    (item,) = export.messages()
    assert (item.message.chat_id, item.message.attachments[0].size_bytes) == ("Ann", 5)


@pytest.mark.parametrize("names", [[], ["a.txt", "b.txt"]])
def test_a_zip_without_one_chat_is_refused(tmp_path: Path, names: list[str]) -> None:
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("p.jpg", b"12345")
        for name in names:
            archive.writestr(name, "13/1/24, 10:00 - Ann: hi\n")
    with pytest.raises(ExportError):
        read_export(path, ExportOptions(UTC))


def test_equal_messages_are_told_apart_and_keep_their_ids_in_a_later_export(exported: Exported) -> None:
    text = "13/1/24, 10:00 - Ann: ok\n13/1/24, 10:00 - Ann: ok\n13/1/24, 10:00 - Bo: ok\n"
    ids = [item.message.message_id for item in exported(text)]
    assert len(set(ids)) == 3
    assert [item.message.message_id for item in exported(f"{text}14/1/24, 10:00 - Ann: more\n")][:3] == ids
    assert not {item.message.message_id for item in exported(text, chat="Other")} & set(ids)


def test_times_are_those_of_the_zone_and_the_repeated_hour_runs_forwards(exported: Exported) -> None:
    berlin = ZoneInfo("Europe/Berlin")
    times = ["[27.10.24, 02:50:00]", "[27.10.24, 02:10:00]", "[27.10.24, 03:00:00]"]
    items = exported("".join(f"{at} Ann: x\n" for at in times), zone=berlin)
    assert [item.message.sent_at for item in items] == [
        datetime(2024, 10, 27, 0, 50, tzinfo=UTC),
        datetime(2024, 10, 27, 1, 10, tzinfo=UTC),
        datetime(2024, 10, 27, 2, 0, tzinfo=UTC),
    ]


def test_the_owner_is_the_name_that_is_given(exported: Exported) -> None:
    items = exported("13/1/24, 10:00 - Ann: hi\n13/1/24, 10:01 - Bo: ho\n", me="Bo")
    assert [item.is_owner for item in items] == [False, True]


@given(st.text(alphabet=f'{MARKS} \u202f[]<>:~-/.,،\n\r0123456789٣apm.AnnB"“حم(){{}}\\', max_size=60))
def test_no_line_breaks_the_reader_and_no_end_holds_a_mark(line: str) -> None:
    head = head_of(line)
    content = content_of(line if head is None else head.text, {})
    for text in [content.text, "" if head is None else head.author or "", *(file.name for file in content.attachments)]:
        assert text == text.strip(MARKS)


@pytest.mark.parametrize(
    "line",
    [
        "1/1/24" + " \u200e" * 200_000,
        "13/1/24, 10:00 - Ann: " + "\u200e" * 400_000,
        "13/1/24, 10:00 - Ann: " + " " * 400_000 + "x",
        "13/1/24, 10:00 - Ann: " + "a.b •" * 80_000,
        "13/1/24, 10:00 - Ann: " + "<a:b.c" * 60_000,
        "13/1/24, 10:00 - " + '"' * 400_000 + ": x",
    ],
)
@pytest.mark.timeout(10)
def test_a_line_made_to_take_long_does_not(line: str) -> None:
    head = head_of(line)
    content_of(line if head is None else head.text, {})
