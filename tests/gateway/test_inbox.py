"""What people send: saved before it is acknowledged, once, whole, and answered only when it may be."""

from __future__ import annotations

import sqlite3
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from channels.channel import NotAccepted
from gateway.config import Settings
from gateway.store import DiskFull, Store
from tests.fakes.hub import GUEST, OWNER, hub, telegram_settings, utc_now


async def test_an_accepted_message_is_on_disk(tmp_path: Path) -> None:
    async with hub(tmp_path / "h") as core:
        accepted = await core.say("hello")
        with sqlite3.connect(tmp_path / "h" / "hudhud.db") as other:
            found = other.execute("SELECT text FROM message WHERE message_id = ?", (accepted.message_id,)).fetchall()
        assert found == [("hello",)]


async def test_the_same_message_twice_is_one_message_and_one_reply(tmp_path: Path) -> None:
    async with hub(tmp_path / "h") as core:
        first = await core.say("hello", message_id="1")
        await core.quiet()
        second = await core.say("hello", message_id="1")
        await core.quiet()
        assert (first.is_new, second.is_new) == (True, False)
        assert second.conversation_id == first.conversation_id
        assert core.channel.texts == ["re: hello"]
        assert [line["dir"] for line in core.log()] == ["in", "out"]


async def test_a_message_that_comes_again_after_a_restart_is_known(tmp_path: Path) -> None:
    async with hub(tmp_path / "h") as core:
        await core.say("hello", message_id="1")
        await core.quiet()
    async with hub(tmp_path / "h") as core:
        again = await core.say("hello", message_id="1")
        await core.quiet()
        assert not again.is_new
        assert not again.will_answer
        assert core.channel.texts == []


async def test_equal_ids_in_two_chats_are_two_messages(tmp_path: Path) -> None:
    async with hub(tmp_path / "h") as core:
        await core.say("one", message_id="1")
        await core.say("two", message_id="1", chat=GUEST, sender=GUEST)
        await core.quiet()
        assert sorted(core.channel.texts) == ["re: one", "re: two"]


async def test_strangers_are_logged_and_met_with_silence(tmp_path: Path) -> None:
    async with hub(tmp_path / "h") as core:
        accepted = await core.say("let me in", chat="99", sender="99", sender_name="person 7")
        await core.say("/status", chat="99", sender="99")
        await core.quiet()
        assert not accepted.will_answer
        assert core.channel.calls == 0
        assert [line["text"] for line in core.log("99")] == ["let me in", "/status"]


async def test_what_strangers_write_is_not_kept_when_the_setting_says_so(tmp_path: Path) -> None:
    settings = Settings.model_validate({**telegram_settings().model_dump(), "readlog": {"keep": "allowed"}})
    async with hub(tmp_path / "h", settings=settings) as core:
        await core.say("let me in", chat="99", sender="99")
        await core.quiet()
        assert core.log("99") == []
        assert await core.store.log_chats() == []


@pytest.mark.parametrize("text", ["", "   \n\t", "\u200b".strip("\u200b")])
async def test_a_blank_message_is_logged_and_starts_no_turn(tmp_path: Path, text: str) -> None:
    async with hub(tmp_path / "h") as core:
        accepted = await core.say(text)
        await core.quiet()
        assert not accepted.will_answer
        assert len(core.log()) == 1
        assert core.channel.calls == 0


@pytest.mark.parametrize("text", ["ok \udcb2 \ud83c end", "nul \x00 inside", "\ud83d\ude00 pair"])
async def test_characters_that_utf8_cannot_hold_damage_nothing(tmp_path: Path, text: str) -> None:
    async with hub(tmp_path / "h") as core:
        await core.say("before")
        await core.quiet()
        await core.say(text)
        await core.quiet()
        await core.say("after")
        await core.quiet()
        lines = core.log()
        assert [line["dir"] for line in lines] == ["in", "out"] * 3
        assert lines[0]["text"] == "before"
        assert lines[4]["text"] == "after"
        assert "\x00" not in lines[2]["text"]
        lines[2]["text"].encode("utf-8")
        core.channel.texts[1].encode("utf-8")


async def test_surrogate_pairs_become_the_character_they_stand_for(tmp_path: Path) -> None:
    async with hub(tmp_path / "h") as core:
        await core.say("\ud83d\ude00")
        await core.quiet()
        assert core.log()[0]["text"] == "\U0001f600"


async def test_a_message_of_a_megabyte_is_kept_whole(tmp_path: Path) -> None:
    text = "كلمة word " * 80_000
    async with hub(tmp_path / "h") as core:
        accepted = await core.say(text)
        await core.quiet()
        assert (await core.messages(accepted.conversation_id))[0].text == text
        assert core.log()[0]["text"] == text
        assert len(core.channel.texts) == 1


async def test_an_edit_that_changes_nothing_leaves_no_trace(tmp_path: Path) -> None:
    """B15."""
    async with hub(tmp_path / "h") as core:
        await core.say("/stop", message_id="7")
        await core.quiet()
        before = core.channel.texts
        await core.say("/stop", message_id="7", kind="edit", edits="7", wants_answer=False)
        await core.quiet()
        assert core.channel.texts == before
        assert [line["kind"] for line in core.log()] == ["text", "text"]


async def test_an_edit_is_a_line_of_its_own_and_starts_nothing(tmp_path: Path) -> None:
    """B15."""
    async with hub(tmp_path / "h") as core:
        first = await core.say("helo", message_id="7")
        await core.quiet()
        await core.say("/stop", message_id="7", kind="edit", edits="7", wants_answer=False)
        await core.quiet()
        assert core.channel.texts == ["re: helo"]
        assert [(line["kind"], line["text"]) for line in core.log()] == [
            ("text", "helo"),
            ("text", "re: helo"),
            ("edit", "/stop"),
        ]
        assert (await core.messages(first.conversation_id))[0].text == "/stop"


async def test_a_notice_answers_what_cannot_be_understood_yet(tmp_path: Path) -> None:
    async with hub(tmp_path / "h") as core:
        await core.say("", kind="voice", wants_answer=False, notice="I cannot hear voice notes.")
        await core.say("", kind="voice", wants_answer=False, notice="not for strangers", chat="99", sender="99")
        await core.quiet()
        assert core.channel.texts == ["I cannot hear voice notes."]
        assert [(line["kind"], line["dir"]) for line in core.log()] == [("voice", "in"), ("text", "out")]


async def test_new_closes_the_conversation_for_what_comes_after_it(tmp_path: Path) -> None:
    async with hub(tmp_path / "h") as core:
        first = await core.say("one")
        await core.quiet()
        command = await core.say("/new")
        second = await core.say("two")
        await core.quiet()
        assert command.conversation_id == first.conversation_id != second.conversation_id
        assert sorted(core.channel.texts)[-2:] == ["re: one", "re: two"]


async def test_a_rest_begins_a_new_conversation(tmp_path: Path) -> None:
    async with hub(tmp_path / "h") as core:
        first = await core.say("one")
        soon = await core.say("two", sent_at=utc_now() + timedelta(hours=2))
        later = await core.say("three", sent_at=utc_now() + timedelta(hours=6))
        assert first.conversation_id == soon.conversation_id != later.conversation_id


async def test_a_rest_changes_nothing_when_switched_off(tmp_path: Path) -> None:
    async with hub(tmp_path / "h", settings=telegram_settings(idle_hours=0)) as core:
        first = await core.say("one")
        later = await core.say("two", sent_at=utc_now() + timedelta(days=40))
        assert first.conversation_id == later.conversation_id


async def test_commands_are_carried_out_once_and_bare_words_never(tmp_path: Path) -> None:
    async with hub(tmp_path / "h") as core:
        await core.say("/help", message_id="1")
        await core.say("/help", message_id="1")
        await core.say("stop")
        await core.say("/unheard of")
        await core.quiet()
        texts = core.channel.texts
        assert len([text for text in texts if "/new" in text]) == 1
        assert any(text in {"re: stop\n\n/unheard of", "re: stop"} for text in texts)


async def test_owner_commands_are_not_for_guests(tmp_path: Path) -> None:
    async with hub(tmp_path / "h") as core:
        await core.say("/status", chat=GUEST, sender=GUEST)
        await core.quiet()
        assert core.channel.texts == ["This command is the owner's."]


async def test_a_command_saved_before_a_crash_is_carried_out_after_it(tmp_path: Path) -> None:
    async with hub(tmp_path / "h") as core:
        core.inbox._run = lambda work: work.close()  # the program dies before it begins the command
        await core.say("/help")
    async with hub(tmp_path / "h") as core:
        await core.quiet()
        assert len(core.channel.texts) == 1


async def test_the_answer_to_a_command_outlasts_a_database_that_cannot_write_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("gateway.inbox.SEND_PAUSES_SECONDS", (0.001,))
    async with hub(tmp_path / "h") as core:
        done, tries = core.store.command_done, count(1)

        async def fails_twice(*values: Any) -> Any:
            if next(tries) < 3:
                raise DiskFull("no space left on the disk")
            return await done(*values)

        monkeypatch.setattr(core.store, "command_done", fails_twice)
        await core.say("/help")
        await core.quiet()
        assert len(core.channel.texts) == 1
        assert next(tries) == 4


async def test_a_full_disk_acknowledges_nothing_and_loses_nothing(tmp_path: Path) -> None:
    async with hub(tmp_path / "h") as core:
        pages = await core.store.write(lambda c: c.execute("PRAGMA page_count").fetchone()[0])
        await core.store.write(lambda c: c.execute(f"PRAGMA max_page_count = {pages}").fetchall())
        with pytest.raises(NotAccepted, match="no space left"):
            await core.say("x" * 100_000, message_id="1")
        await core.store.write(lambda c: c.execute("PRAGMA max_page_count = 1000000").fetchall())
        again = await core.say("x" * 100_000, message_id="1")
        await core.quiet()
        assert again.is_new
        assert len(core.channel.texts) == 1
        assert len(core.log()) == 2


async def test_a_database_held_by_another_program_acknowledges_nothing(tmp_path: Path) -> None:
    async with hub(tmp_path / "h") as core:
        await core.store.write(lambda c: c.execute("PRAGMA busy_timeout = 20").fetchall())
        other = sqlite3.connect(tmp_path / "h" / "hudhud.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(NotAccepted, match="another process holds the database"):
            await core.say("hello", message_id="1")
        other.execute("ROLLBACK")
        other.close()
        await core.say("hello", message_id="1")
        await core.quiet()
        assert core.channel.texts == ["re: hello"]


async def test_one_bad_message_of_a_group_commit_does_not_cost_the_others(tmp_path: Path) -> None:
    store = Store(tmp_path)
    await store.open()
    import asyncio

    def bad(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO channel_fact VALUES ('a', 'lost', 'x')")
        raise KeyError("bad")

    results = await asyncio.gather(
        store.put_fact("a", "1", "x"), store.write(bad), store.put_fact("a", "2", "y"), return_exceptions=True
    )
    assert isinstance(results[1], KeyError)
    assert (await store.fact("a", "1"), await store.fact("a", "2")) == ("x", "y")
    assert await store.fact("a", "lost") is None
    await store.close()


async def test_many_waiting_messages_share_commits(tmp_path: Path) -> None:
    import asyncio

    async with hub(tmp_path / "h") as core:
        before = core.store.commits
        await asyncio.gather(*(core.say(f"{n}", chat=f"c{n}", sender="99") for n in range(64)))
        assert core.store.commits - before <= 4


async def test_a_moved_chat_goes_on_under_its_new_id(tmp_path: Path) -> None:
    async with hub(tmp_path / "h") as core:
        first = await core.say("before", message_id="1")
        await core.quiet()
        assert await core.store.move_chat("telegram", OWNER, "-100")
        assert not await core.store.move_chat("telegram", OWNER, "-100")
        again = await core.say("before", message_id="1")
        late = await core.say("to the old id", chat=OWNER)
        new = await core.say("to the new id", chat="-100")
        await core.quiet()
        assert not again.is_new
        assert first.conversation_id == late.conversation_id == new.conversation_id
        assert {message.address.chat_id for message in core.channel.delivered[1:]} == {"-100"}
