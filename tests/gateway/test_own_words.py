"""What the owner writes elsewhere, what is taken back, what is told of afterwards, who turns out to be one person."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from gateway.config import Settings
from tests.fakes.hub import GUEST, OWNER, Hub, hub


async def conversations(core: Hub) -> list[Any]:
    from gateway.backend import OWNER as VIEWER

    return list(await core.store.transcripts.conversations(VIEWER, limit=50))


async def test_what_the_owner_writes_to_others_is_logged_as_sent(tmp_path: Path) -> None:
    async with hub(tmp_path / "home") as core:
        accepted = await core.say("see you at 8", chat="999", sender=OWNER, is_own=True, wants_answer=False)
        await core.quiet()
        assert not accepted.will_answer
        (line,) = core.log("999")
        assert (line["dir"], line["sender"]["id"], line["text"]) == ("out", OWNER, "see you at 8")
        (message,) = await core.messages(accepted.conversation_id)
        assert (message.role, message.state) == ("owner", "observed")
        assert core.channel.delivered == []


async def test_it_counts_as_the_owners_where_strangers_are_not_stored(tmp_path: Path) -> None:
    settings = Settings.model_validate(
        {"readlog": {"keep": "allowed"}, "channels": {"telegram": {"enabled": True, "owner": OWNER}}}
    )
    async with hub(tmp_path / "home", settings=settings) as core:
        await core.say("hello", chat="999", sender="1", is_own=True, wants_answer=False)
        await core.say("who are you?", chat="999", sender="999")
        await core.quiet()
        assert [line["text"] for line in core.log("999")] == ["hello"]


async def test_what_is_taken_back_is_not_read_any_more(tmp_path: Path) -> None:
    """B45: it is not answered when it still waited, and neither the conversation nor the search shows it."""
    async with hub(tmp_path / "home") as core:
        said = await core.say("the secret plan is to leave", message_id="M2", wants_answer=False)
        await core.say("", kind="revoke", edits="M2", wants_answer=False)
        await core.quiet()
        (message,) = await core.messages(said.conversation_id)
        assert message.text == ""
        assert "secret" not in str(await conversations(core))
        assert [line["kind"] for line in core.log()] == ["text", "revoke"]
        indexed = await core.store._database.read(  # pyright: ignore[reportPrivateUsage]
            lambda c: c.execute("SELECT count(*) FROM message WHERE text LIKE '%secret%'").fetchone()[0]
        )
        assert indexed == 0


async def test_a_stranger_cannot_take_back_what_another_said(tmp_path: Path) -> None:
    async with hub(tmp_path / "home") as core:
        said = await core.say("keep this", message_id="M2", wants_answer=False)
        await core.say("", kind="revoke", edits="M2", sender="666", wants_answer=False)
        await core.quiet()
        (message,) = await core.messages(said.conversation_id)
        assert message.text == "keep this"


async def test_history_stands_apart_with_its_own_times(tmp_path: Path) -> None:
    """B49."""
    long_ago = datetime(2026, 1, 5, tzinfo=UTC)
    async with hub(tmp_path / "home") as core:
        live = await core.say("now", chat=GUEST, sender=GUEST)
        for number in range(5):
            old = await core.say(
                f"old {number}",
                chat=GUEST,
                sender=GUEST,
                sent_at=long_ago + timedelta(minutes=number),
                flags=("history",),
                wants_answer=False,
            )
        later = await core.say("again", chat=GUEST, sender=GUEST)
        await core.quiet()
        assert live.conversation_id == later.conversation_id != old.conversation_id
        found = {record.id: record for record in await conversations(core)}
        assert found[old.conversation_id].updated_at == long_ago + timedelta(minutes=4)
        assert len(await core.messages(old.conversation_id)) == 5
        assert len(core.channel.delivered) == 2
    async with hub(tmp_path / "second") as core:
        await core.say("old", chat=GUEST, sender=GUEST, sent_at=long_ago, flags=("history",), wants_answer=False)
        live = await core.say("now", chat=GUEST, sender=GUEST)
        await core.quiet()
        assert len(await core.messages(live.conversation_id)) == 2  # the question and its answer


async def test_a_chat_that_parts_from_another_is_one_of_its_own_again(tmp_path: Path) -> None:
    """A number that changed hands: what the earlier person writes is not filed under it any more."""
    async with hub(tmp_path / "home") as core:
        await core.say("first", chat="5@lid", sender="5@lid", message_id="M1", wants_answer=False)
        await core.store.move_chat("telegram", "5@lid", GUEST)
        assert await core.store.move_chat("telegram", "5@lid", "5@lid")
        await core.say("apart", chat="5@lid", sender="5@lid", message_id="M2", wants_answer=False)
        keys = [record.session_key for record in await conversations(core)]
        assert sorted(keys) == ["telegram:5@lid", f"telegram:{GUEST}"]


async def test_a_person_who_turns_out_to_be_another_can_still_change_old_messages(tmp_path: Path) -> None:
    """B37: the old id is the new one in chats and as the sender."""
    async with hub(tmp_path / "home") as core:
        said = await core.say("first", chat="5@lid", sender="5@lid", message_id="M1", wants_answer=False)
        await core.store.add_person("telegram", "6@lid", "Omar", datetime(2026, 1, 1, tzinfo=UTC))
        await core.store.move_chat("telegram", "5@lid", GUEST)
        await core.store.move_chat("telegram", "6@lid", "66")
        assert [person.id for person in (await core.store.known_people()).people] == ["66"]
        own = await core.say("own", chat=GUEST, sender=OWNER, is_own=True, wants_answer=False)
        await core.say("second", chat=GUEST, sender=GUEST, kind="edit", edits="M1", wants_answer=False)
        await core.quiet()
        assert own.conversation_id == said.conversation_id
        messages = await core.messages(said.conversation_id)
        assert [message.text for message in messages] == ["second", "own"]
        assert [record.session_key for record in await conversations(core)] == [f"telegram:{GUEST}"]
