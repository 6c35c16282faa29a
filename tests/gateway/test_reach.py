"""Nothing goes to anyone but the owner, people who are let in and listed groups; strangers may get a code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from channels.message import Address
from gateway.config import Settings
from gateway.people import CODE_CHARS
from tests.fakes.hub import GUEST, OWNER, Hub, hub, utc_now

STRANGER = "99"


def settings(**telegram: Any) -> Settings:
    section = {"enabled": True, "owner": OWNER, "allow": [GUEST], "groups": ["-5"], **telegram}
    return Settings.model_validate({"channels": {"telegram": section}})


async def told(core: Hub, chat: str) -> str:
    """What becomes of a word to that chat."""
    key = f"test:{chat}:{len(core.channel.delivered)}"
    notice = await core.store.notice(Address("telegram", chat), "idle", "hello", key, False, utc_now())
    core.outbox.put(notice)
    return (await core.outbox.settled(notice, 5)).state


async def test_only_known_chats_are_ever_written_to(tmp_path: Path) -> None:
    async with hub(tmp_path / "h", settings=settings()) as core:
        outcomes = {chat: await told(core, chat) for chat in (OWNER, GUEST, "-5", STRANGER, "-6")}
    assert outcomes == {OWNER: "sent", GUEST: "sent", "-5": "sent", STRANGER: "failed", "-6": "failed"}
    assert len(core.channel.delivered) == 3


async def test_a_listed_group_that_moved_is_the_same_group(tmp_path: Path) -> None:
    async with hub(tmp_path / "h", settings=settings()) as core:
        await core.store.move_chat("telegram", "-5", "-1005")
        assert await told(core, "-1005") == "sent"


async def test_letting_in_and_putting_out_work_at_once_also_from_another_program(tmp_path: Path) -> None:
    async with hub(tmp_path / "h", settings=settings()) as core:
        assert not (await core.say("hello", chat=STRANGER, sender=STRANGER)).will_answer
        await core.store.add_person("telegram", STRANGER, "Omar", utc_now())
        assert (await core.say("hello", chat=STRANGER, sender=STRANGER)).will_answer
        await core.quiet()
        assert core.channel.texts == ["re: hello"]
        await core.store.remove_person("telegram", STRANGER)
        assert not (await core.say("hello again", chat=STRANGER, sender=STRANGER)).will_answer
        assert await told(core, STRANGER) == "failed"
    assert len(core.channel.delivered) == 1


async def test_a_stranger_is_silently_logged_by_default(tmp_path: Path) -> None:
    async with hub(tmp_path / "h", settings=settings()) as core:
        await core.say("hello", chat=STRANGER, sender=STRANGER)
        await core.quiet()
        assert core.channel.delivered == []
        assert [line["text"] for line in core.log(STRANGER)] == ["hello"]


async def test_a_stranger_gets_one_code_and_the_owner_is_told(tmp_path: Path) -> None:
    async with hub(tmp_path / "h", settings=settings(strangers="pair")) as core:
        for text in ("hello", "hello?"):
            await core.say(text, chat=STRANGER, sender=STRANGER, sender_name="Omar `x`")
            await core.quiet()
        to_stranger, to_owner = core.channel.delivered
        assert (to_stranger.address.chat_id, to_owner.address.chat_id) == (STRANGER, OWNER)
        found = re.search(r"`([A-Z0-9]+)`", to_stranger.text)
        assert found is not None
        code = found[1]
        assert len(code) == CODE_CHARS
        assert not set(code) & set("0O1IL2Z5S8B")
        assert code in to_owner.text
        assert STRANGER in to_owner.text
        assert await core.store.pair(code, utc_now())
        assert (await core.say("thanks", chat=STRANGER, sender=STRANGER)).will_answer
        await core.quiet()


async def test_at_most_three_codes_are_open(tmp_path: Path) -> None:
    async with hub(tmp_path / "h", settings=settings(strangers="pair")) as core:
        for number in range(5):
            await core.say("hello", chat=str(100 + number), sender=str(100 + number))
            await core.quiet()
        assert len(await core.store.pairings(utc_now())) == 3
    assert len(core.channel.delivered) == 6


async def test_no_code_in_a_group_and_none_for_an_edit(tmp_path: Path) -> None:
    async with hub(tmp_path / "h", settings=settings(strangers="pair")) as core:
        await core.say("hello", chat="-5", sender=STRANGER, is_group=True, is_mention=True)
        await core.say("x", chat=STRANGER, sender=STRANGER, kind="edit", edits="m0", wants_answer=False)
        await core.quiet()
    assert core.channel.delivered == []


async def test_a_stranger_who_is_not_stored_gets_a_code_all_the_same(tmp_path: Path) -> None:
    section = {"enabled": True, "owner": OWNER, "strangers": "pair"}
    some = Settings.model_validate({"channels": {"telegram": section}, "readlog": {"keep": "allowed"}})
    async with hub(tmp_path / "h", settings=some) as core:
        await core.say("hello", chat=STRANGER, sender=STRANGER)
        await core.quiet()
    assert [one.address.chat_id for one in core.channel.delivered] == [STRANGER, OWNER]
