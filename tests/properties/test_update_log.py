"""Telegram's updates in any order, any of them again, the program killed in between: the log is the same."""

from __future__ import annotations

import asyncio
import json
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from channels.message import InboundMessage
from channels.telegram.wire import Bot, GroupRules, read_update
from tests.fakes.hub import Hub, crashed_copy, echo, telegram_settings

BOT = Bot("4242", "demo_bot")
RULES = GroupRules(frozenset(), require_mention=True)
NOW = datetime(2026, 11, 2, 9, tzinfo=UTC)
CHATS = (101, -1001)
TEXT = st.text(st.sampled_from("ab \n\u0627\U0001f600\ud83d"), min_size=1, max_size=6).map(lambda text: f"t{text}")


def update(number: int, chat_id: int, kind: str, text: str, about: int) -> dict[str, Any]:
    """One update; `about` is the message that an edit or a reaction is about."""
    chat = {"id": chat_id, "type": "private" if chat_id > 0 else "supergroup"}
    person = {"id": 55, "is_bot": False, "first_name": "Sara"}
    if kind == "reaction":
        signs = [{"type": "emoji", "emoji": text}]
        found = {
            "chat": chat,
            "message_id": about,
            "user": person,
            "date": 1_790_000_000 + number,
            "new_reaction": signs,
        }
        return {"update_id": number, "message_reaction": found}
    message = {"message_id": number, "chat": chat, "from": person, "date": 1_790_000_000 + number, "text": text}
    if kind == "edit":
        return {"update_id": number, "edited_message": message | {"message_id": about, "text": f"{text} #{number}"}}
    if kind == "photo":
        photo = {"photo": [{"file_id": f"F{number}"}], "caption": text}
        return {"update_id": number, "message": {key: value for key, value in message.items() if key != "text"} | photo}
    return {"update_id": number, "message": message}


UPDATES = st.lists(
    st.tuples(
        st.sampled_from(CHATS), st.sampled_from(("text", "text", "photo", "edit", "reaction")), TEXT, st.integers(1, 9)
    ),
    min_size=1,
    max_size=9,
).map(lambda rows: [update(number, *row) for number, row in enumerate(rows, start=1)])


async def log_of(home: Path, batches: list[list[dict[str, Any]]]) -> list[str]:
    """The lines of all chats after the batches, each taken by a program that is killed after it."""
    for number, batch in enumerate(batches):
        core = Hub(home, echo, telegram_settings(), {}, watched=False)
        await core.start()
        for one in batch:
            found = read_update(one, BOT, RULES, NOW)
            if isinstance(found, InboundMessage):
                await core.inbox.accept(found)
        after = home.with_name(f"{home.name}-{number}")
        crashed_copy(home, after)
        await core.stop()
        home = after
    core = Hub(home, echo, telegram_settings(), {}, watched=False)
    await core.start()
    await core.stop()
    lines = [line for chat in CHATS for line in core.log(str(chat))]
    assert core.channel.delivered == []
    return sorted(json.dumps(line, sort_keys=True) for line in lines)


@settings(max_examples=15, deadline=None)
@given(UPDATES, st.data())
def test_the_log_is_the_same(updates: list[dict[str, Any]], data: st.DataObject) -> None:
    mixed = data.draw(st.permutations(updates + data.draw(st.lists(st.sampled_from(updates), max_size=4))))
    cut = data.draw(st.integers(0, len(mixed)))
    with tempfile.TemporaryDirectory() as folder:
        once = asyncio.run(log_of(Path(folder) / "once", [updates]))
        again = asyncio.run(log_of(Path(folder) / "again", [mixed[:cut], mixed[cut:]]))
    assert once == again
    assert len(once) == len(set(once))
