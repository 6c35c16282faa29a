"""Events through the library's own dispatch: order, who is who, what is own, what is old, what waits for whom."""

from __future__ import annotations

import asyncio
import json
import logging
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from channels.whatsapp.limits import ANSWER_AGE_SECONDS_MAX
from tests.channels.whatsapp.conftest import Rig, outbound
from tests.fakes.channel_ports import Inbox
from tests.fakes.waiting import until
from tests.fakes.whatsapp import (
    E2E,
    FRIEND,
    FRIEND_LID,
    GROUP,
    LAST_MONTH,
    ME,
    MY_LID,
    NOW,
    OWNER,
    PROTO,
    Platform,
    event,
    history,
)


async def test_callbacks_run_on_the_loop_of_the_gateway(rig: Rig) -> None:
    """B54."""
    loops: list[asyncio.AbstractEventLoop] = []
    accept = rig.inbox.__call__

    class Watching(Inbox):
        async def __call__(self, message: Any) -> Any:
            loops.append(asyncio.get_running_loop())
            await channel.send(outbound(OWNER, "an answer from the handler"))
            return await accept(message)

    channel = rig.channel()
    rig.inbox = Watching()
    async with rig.listening(channel):
        await rig.hear(event("hi", "M1"))
    assert loops == [asyncio.get_running_loop()]
    assert rig.platform.texts == ["an answer from the handler"]


async def test_the_callback_is_held_until_the_message_is_saved(rig: Rig) -> None:
    rig.inbox.open.clear()
    async with rig.listening():
        rig.platform.push(event("one", "M1"), event("two", "M2"))
        await rig.inbox.until_asked(1)
        taken = rig.platform.taken
        assert rig.platform.handed_over - taken == 2
        assert len(rig.inbox.asked) == 1
        rig.inbox.open.set()
        await rig.platform.until_taken()
    assert rig.inbox.texts == ["one", "two"]


async def test_what_was_written_down_is_brought_by_the_next_start(rig: Rig) -> None:
    rig.inbox.open.clear()
    async with rig.listening():
        rig.platform.push(event("one", "M1"), event("two", "M2"))
        await rig.inbox.until_asked(1)
    rig.inbox.open.set()
    async with rig.listening():
        await rig.platform.until_taken()
        assert rig.inbox.texts == ["one", "two"]
    assert not list((rig.home / "whatsapp" / "journal").iterdir())


async def test_what_comes_while_it_ends_is_written_down(rig: Rig) -> None:
    """The library acknowledged it already."""
    async with rig.listening():
        client = await rig.platform.until_up()
    rig.platform.push_to(client, event("at the last moment", "M9"))
    await rig.platform.until_taken()
    assert rig.inbox.texts == []
    async with rig.listening():
        assert rig.inbox.texts == ["at the last moment"]


async def test_a_damaged_note_or_event_holds_nothing_up(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    journal = rig.home / "whatsapp" / "journal"
    journal.mkdir(parents=True)
    (journal / "000000000001.17").write_bytes(b"\xff\xff\xff")
    (journal / "000000000002.99").write_bytes(b"")
    (journal / "000000000003.17.tmp").write_bytes(b"")
    broken = event("x", "", chat=OWNER)
    async with rig.listening():
        await rig.hear(broken, event("after it", "M1"))
    assert rig.inbox.texts == ["after it"]
    assert not list(journal.iterdir())
    assert "left out" in caplog.text


async def test_an_allowed_person_is_known_by_the_hidden_id(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    """B36: what only the library knows of the mapping counts too; who stays unknown is named in one log line."""
    channel = rig.channel(allow=["+1 555 000 2222", "15550003333:7@s.whatsapp.net"])
    rig.platform.phones[FRIEND_LID] = FRIEND
    with caplog.at_level(logging.WARNING):
        async with rig.listening(channel):
            await rig.hear(
                event("known", "M1", chat=FRIEND_LID, sender=FRIEND_LID),
                event("unknown", "M2", chat="5555555@lid", sender="5555555@lid"),
                event("unknown again", "M3", chat="5555555@lid", sender="5555555@lid"),
            )
    # Whom the gateway knows is the gateway's to say; this one answers nobody.
    assert [message.sender_id for message in rig.inbox.saved] == [FRIEND, "5555555@lid", "5555555@lid"]
    lines = [record.getMessage() for record in caplog.records if "not answered" in record.getMessage()]
    assert len(lines) == 1
    assert "5555555@lid" in lines[0]


async def test_two_chats_of_one_person_become_one(rig: Rig) -> None:
    """B37: also over a restart, and for lines from before."""
    async with rig.listening():
        await rig.hear(event("first", "M1", chat=FRIEND_LID, sender=FRIEND_LID))
        assert rig.memory.migrations == []
        await rig.hear(event("own", "M2", chat=FRIEND, from_me=True, recipient_alt=FRIEND_LID))
    assert rig.memory.migrations == [(FRIEND_LID, FRIEND)]
    async with rig.listening():
        await rig.hear(event("later", "M3", chat=FRIEND_LID, sender=FRIEND_LID))
    assert [message.chat_id for message in rig.inbox.saved] == [FRIEND_LID, FRIEND, FRIEND]
    assert rig.memory.migrations == [(FRIEND_LID, FRIEND)]


async def test_a_number_that_got_another_hidden_id_is_not_given_to_the_first_again(rig: Rig) -> None:
    """Over a restart, too: the last word of the platform counts."""
    async with rig.listening():
        await rig.hear(event("I am the first", "M1", chat="1@lid", sender="1@lid", sender_alt=FRIEND))
    async with rig.listening():
        await rig.hear(event("I am the second", "M2", chat="2@lid", sender="2@lid", sender_alt=FRIEND))
    async with rig.listening():
        await rig.hear(event("who am I?", "M3", chat="1@lid", sender="1@lid"))
        await rig.hear(event("and I?", "M4", chat="2@lid", sender="2@lid"))
    assert [message.sender_id for message in rig.inbox.saved] == [FRIEND, FRIEND, "1@lid", FRIEND]
    assert rig.memory.migrations[-1] == ("1@lid", "1@lid")  # a chat of its own again


async def test_what_the_owner_writes_to_others_is_logged_and_not_answered(rig: Rig) -> None:
    """B48."""
    async with rig.listening():
        await rig.hear(event("see you", "P1", chat="15550004444@s.whatsapp.net", from_me=True))
    message = rig.inbox.saved[0]
    assert (message.is_own, message.wants_answer, message.text) == (True, False, "see you")


async def test_our_own_words_are_known_again_after_a_restart(rig: Rig) -> None:
    async with rig.listening() as channel:
        receipt = await channel.send(outbound(OWNER, "mine"))
        await rig.hear(event("mine", receipt.message_ids[0], chat=OWNER, from_me=True))
    async with rig.listening():
        await rig.hear(event("mine", receipt.message_ids[0], chat=OWNER, from_me=True))
    assert rig.inbox.saved == []


async def test_the_chat_with_oneself_asks_the_agent(rig: Rig) -> None:
    channel = rig.channel(owner=ME)
    async with rig.listening(channel):
        await rig.hear(event("remind me", "S1", chat=MY_LID, sender=MY_LID, from_me=True))
        receipt = await channel.send(outbound(ME, "I will"))
        await rig.hear(event("I will", receipt.message_ids[0], chat=ME, from_me=True))
    assert [(message.text, message.chat_id, message.wants_answer) for message in rig.inbox.saved] == [
        ("remind me", ME, True)
    ]


async def test_what_was_missed_is_answered_once_and_history_never(rig: Rig) -> None:
    """B49."""
    missed = [event(f"missed {n}", f"M{n}", at=NOW - timedelta(minutes=5 - n)) for n in range(3)]
    old = [(f"H{n}", f"old {n}", n % 2 == 0, LAST_MONTH + timedelta(minutes=n)) for n in range(200)]
    rig.clock.time = NOW
    async with rig.listening():
        await rig.hear(*missed, *missed, history((OWNER, old)))
        await rig.hear(PROTO.OfflineSyncCompleted(Count=3), event("live", "L1"))
    wanted = [message for message in rig.inbox.saved if message.wants_answer]
    assert [message.text for message in wanted] == ["missed 0", "missed 1", "missed 2", "live"]
    # They wait for each other, so that one answer is for all of them.
    assert [message.more_may_come for message in wanted] == [True, True, True, False]
    logged = [message for message in rig.inbox.saved if "history" in message.flags]
    assert len(logged) == 200
    assert [message.sent_at for message in logged] == [LAST_MONTH + timedelta(minutes=n) for n in range(200)]
    assert {message.is_own for message in logged} == {True, False}


async def test_what_is_too_old_is_logged_only(rig: Rig) -> None:
    rig.clock.time = NOW
    async with rig.listening():
        await rig.hear(event("long ago", "M1", at=NOW - timedelta(seconds=ANSWER_AGE_SECONDS_MAX + 60)))
    assert [(message.text, message.wants_answer) for message in rig.inbox.saved] == [("long ago", False)]


async def test_history_tells_who_is_who(rig: Rig) -> None:
    async with rig.listening():
        await rig.hear(event("before", "M1", chat=FRIEND_LID, sender=FRIEND_LID))
        await rig.hear(history((FRIEND, [("H1", "old", False, LAST_MONTH)]), lids={FRIEND_LID: FRIEND}))
        await rig.hear(event("after", "M2", chat=FRIEND_LID, sender=FRIEND_LID))
    assert [message.chat_id for message in rig.inbox.saved] == [FRIEND_LID, FRIEND, FRIEND]
    assert rig.memory.migrations == [(FRIEND_LID, FRIEND)]


async def test_a_group_has_its_name(rig: Rig) -> None:
    rig.platform.titles[GROUP] = "Family"
    async with rig.listening():
        await rig.hear(event("@15550001111 hi", "M1", chat=GROUP, sender=OWNER))
        renamed = PROTO.GroupInfoEvent(
            JID=PROTO.JID(
                User=GROUP.partition("@")[0], Server="g.us", RawAgent=0, Device=0, Integrator=0, IsEmpty=False
            ),
            Notify="",
            Timestamp=0,
            PrevParticipantsVersionID="",
            ParticipantVersionID="",
            JoinReason="",
        )
        renamed.Name.Name, renamed.Name.NameSetAt = "The family", 0
        renamed.Name.NameSetBy.CopyFrom(renamed.JID)
        renamed.Ephemeral.IsEphemeral, renamed.Ephemeral.DisappearingTimer = True, 86400
        await rig.hear(renamed, event("more", "M2", chat=GROUP, sender=OWNER))
    assert [message.chat_title for message in rig.inbox.saved] == ["Family", "The family"]
    assert rig.memory.values[f"timer:{GROUP}"] == "86400"


async def test_a_full_disk_keeps_the_order_and_is_told(rig: Rig) -> None:
    rig.inbox.refusals = 2
    async with rig.listening():
        rig.platform.push(event("one", "M1"), event("two", "M2"))
        await until(lambda: 1.0 in rig.clock.sleeps)
        rig.clock.advance(1)
        await until(lambda: 2.0 in rig.clock.sleeps)
        rig.clock.advance(2)
        await rig.platform.until_taken()
        assert ("degraded", "the disk is full") in [state[:2] for state in rig.health.states]
        assert rig.health.states[-1][0] == "connected"
    assert rig.inbox.texts == ["one", "two"]


async def test_the_typing_sign_is_shown_until_the_answer(rig: Rig) -> None:
    rig.inbox.will_answer = True
    async with rig.listening() as channel:
        await rig.hear(event("hi", "M1"))
        await until(lambda: 0.3 in rig.clock.sleeps)
        rig.clock.advance(0.3)
        await until(lambda: rig.platform.typing == [OWNER])
        await channel.send(outbound(OWNER, "done"))
        rig.clock.advance(60)
        await asyncio.sleep(0)
        assert rig.platform.typing == [OWNER]


async def test_files_are_fetched_later_and_once_more_after_a_restart(rig: Rig) -> None:
    rig.platform.files["/p"] = b"a picture"
    picture = E2E.Message(imageMessage=E2E.ImageMessage(mimetype="image/jpeg", fileLength=9, directPath="/p"))
    async with rig.listening():
        await rig.hear(event(picture, "M1"))
    file = rig.inbox.saved[0].attachments[0]
    async with rig.listening() as channel:
        saved = await channel.fetch(file)
    assert saved.path is not None
    assert (rig.home / "workspace" / saved.path).read_bytes() == b"a picture"


SCRIPT: list[Any] = [
    event("one", "A1", chat=FRIEND_LID, sender=FRIEND_LID),
    event("two", "A2", chat=FRIEND, sender=FRIEND, sender_alt=FRIEND_LID),
    event("own", "A3", chat=FRIEND, from_me=True),
    event("group", "A4", chat=GROUP, sender=FRIEND_LID, sender_alt=FRIEND),
    event("self", "A5", chat=ME, from_me=True),
    history((FRIEND, [("A1", "one", False, NOW), ("H1", "old", False, LAST_MONTH)])),
]


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    order=st.lists(st.integers(0, len(SCRIPT) - 1), min_size=1, max_size=12),
    restarts=st.sets(st.integers(0, 11), max_size=2),
)
async def test_whatever_the_order_the_repeats_and_the_restarts_the_log_is_the_same(
    tmp_path_factory: pytest.TempPathFactory, order: list[int], restarts: set[int]
) -> None:
    """Each message is once in the log, and says the same; nothing of it depends on when it came."""
    platform = Platform()
    rig = Rig(platform, tmp_path_factory.mktemp("order"))
    rig.memory.values["lid:77001122334455"] = FRIEND
    rig.clock.time = NOW
    order = [*order, *range(len(SCRIPT))]
    try:
        cuts = sorted({*(cut for cut in restarts if cut < len(order)), len(order)})
        start = 0
        for cut in cuts:
            async with rig.listening():
                await rig.hear(*(SCRIPT[number] for number in order[start:cut]))
            start = cut
    finally:
        platform.close()
    log = {message.message_id: (message.chat_id, message.sender_id, message.text) for message in rig.inbox.saved}
    assert log == {
        "A1": (FRIEND, FRIEND, "one"),
        "A2": (FRIEND, FRIEND, "two"),
        "A3": (FRIEND, ME, "own"),
        "A4": (GROUP, FRIEND, "group"),
        "A5": (ME, ME, "self"),
        "H1": (FRIEND, FRIEND, "old"),
    }
    assert len(rig.inbox.saved) == len(log)
    assert json.loads(rig.memory.values.get("unmapped", "[]")) == []
