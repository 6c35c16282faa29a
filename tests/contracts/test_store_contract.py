"""What every store keeps to: the truth of messages, turns, deliveries, logs, facts and runs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from agent.types import Person, Viewer
from channels.message import Address, InboundMessage
from gateway.store import Store
from gateway.store.results import CallRow, Result
from gateway.store.types import NOWHERE, Claim, Delivery, LogLine, NewMessage, Saved

AT = datetime(2027, 1, 1, 8, 0, tzinfo=UTC)
HERE = Address("telegram", "7")
OWNER = Viewer(Person("owner", "owner", "owner"))


def new(text: str, number: int = 1, **fields: Any) -> NewMessage:
    """A message of person 7 in their own chat, that wants an answer."""
    values: dict[str, Any] = {
        "channel": "telegram",
        "chat_id": "7",
        "message_id": str(number),
        "sender_id": "7",
        "sender_name": "Sara",
        "text": text,
        "sent_at": AT + timedelta(seconds=number),
    }
    return NewMessage(
        message=InboundMessage(**(values | fields)),
        rights="owner",
        state="waiting",
        command=None,
        cut="idle",
        idle_ms=0,
        ends_conversation=False,
        notice=None,
        saved_is_sent=False,
        now=AT + timedelta(seconds=number),
    )


def result(turn_id: str, reply: str = "an answer", **fields: Any) -> Result:
    given = Result(turn_id, "done", reply, (reply,), None, 3, 4, HERE, "idle", "planned", None, AT)
    return replace(given, **fields)


class StoreContract:
    """Subclass it per store and give it the fixtures `store` (open, empty) and `reopen`, which closes and opens it."""

    async def taken(self, store: Store, session: str = "telegram:7") -> Claim:
        claim = await store.take(session, AT)
        assert claim is not None
        return claim

    async def lines(self, store: Store, chat: str = "7", after: int = 0) -> list[LogLine]:
        return await store.with_log_lines("telegram", chat, after, list)

    # Accepting

    async def test_a_message_is_saved_once_over_restarts(self, store: Store, reopen: Any) -> None:
        first = await store.accept(new("hello"))
        again = await store.accept(new("hello"))
        store = await reopen()
        late = await store.accept(new("hello"))
        assert (first.is_new, again.is_new, late.is_new) == (True, False, False)
        assert {saved.seq for saved in (first, again, late)} == {first.seq}
        assert await store.waiting_count() == 1

    async def test_numbers_count_from_one_in_the_order_of_saving(self, store: Store) -> None:
        saved = [await store.accept(new(f"m{n}", n)) for n in (1, 2, 3)]
        assert [one.n for one in saved] == [1, 2, 3]
        assert len({one.conversation_id for one in saved}) == 1
        assert [one.version for one in saved] == sorted({one.version for one in saved})

    async def test_a_key_stands_for_the_message_over_all_chats_of_its_channel(self, store: Store) -> None:
        first = await store.accept(new("a", key="k"))
        same = await store.accept(new("b", 2, chat_id="8", key="k"))
        other = await store.accept(new("c", 3, channel="heartbeat", key="k"))
        assert (same.is_new, same.conversation_id) == (False, first.conversation_id)
        assert other.is_new

    # Claim and finish

    async def test_nothing_is_taken_where_nothing_waits(self, store: Store) -> None:
        assert await store.take("telegram:7", AT) is None
        await store.accept(replace(new("only heard"), state="observed"))
        assert await store.take("telegram:7", AT) is None

    async def test_what_waits_is_taken_together_once_and_answered_once(self, store: Store) -> None:
        for n in (1, 2):
            await store.accept(new(f"m{n}", n))
        claim = await self.taken(store)
        assert [message.text for message in claim.messages] == ["m1", "m2"]
        assert await store.take("telegram:7", AT) is None
        finished = await store.finish(result(claim.turn_id))
        assert await store.waiting_count() == 0
        assert finished.delivery is not None
        assert (finished.delivery.state, finished.delivery.address) == ("planned", HERE)
        messages = await store.transcripts.messages(claim.conversation_id)
        assert [(m.n, m.role, m.state) for m in messages] == [
            (1, "user", "answered"),
            (2, "user", "answered"),
            (3, "assistant", "answered"),
        ]

    async def test_a_later_turn_gets_what_was_said_before(self, store: Store) -> None:
        await store.accept(new("one"))
        await store.finish(result((await self.taken(store)).turn_id, "first answer"))
        await store.accept(new("two", 2))
        claim = await self.taken(store)
        assert [(m.role, m.text) for m in claim.history] == [("user", "one"), ("assistant", "first answer")]

    async def test_a_turn_that_broke_off_is_taken_up_with_the_same_messages_and_counted(
        self, store: Store, reopen: Any
    ) -> None:
        await store.accept(new("one"))
        first = await self.taken(store)
        store = await reopen()
        assert await store.recover(AT) == 1
        assert await store.waiting_sessions() == [("telegram:7", "person")]
        again = await self.taken(store)
        assert (again.turn_id, again.attempts) == (first.turn_id, 2)
        assert [m.text for m in again.messages] == ["one"]

    async def test_a_turn_that_is_given_back_counts_no_try(self, store: Store) -> None:
        await store.accept(new("one"))
        first = await self.taken(store)
        await store.release(first.turn_id)
        again = await self.taken(store)
        assert (again.turn_id, again.attempts) == (first.turn_id, 1)

    async def test_calls_are_kept_from_before_they_ran_and_interrupted_by_a_crash(
        self, store: Store, reopen: Any
    ) -> None:
        await store.accept(new("one"))
        claim = await self.taken(store)
        calls = [CallRow("a", "look", '{"q":"x"}', None), CallRow("b", "keep", "{}", None)]
        await store.begin_calls(claim.turn_id, 1, ["I look"], calls, AT)
        await store.end_call(claim.turn_id, "a", "found", "success", 1, AT)
        store = await reopen()
        await store.recover(AT)
        so_far = (await self.taken(store)).reply_so_far
        assert so_far is not None
        assert so_far.rounds == ("I look",)
        assert [(c.call_id, c.output, c.outcome) for c in so_far.calls] == [
            ("a", "found", "success"),
            ("b", None, "interrupted"),
        ]

    async def test_what_came_meanwhile_belongs_to_the_turn_that_heard_it(self, store: Store) -> None:
        await store.accept(new("one"))
        claim = await self.taken(store)
        await store.accept(new("two", 2))
        await store.accept(new("someone else", 3, sender_id="9"))
        assert [m.text for m in await store.hear(claim.turn_id, 1)] == ["two"]
        assert await store.hear(claim.turn_id, 2) == ()
        await store.finish(result(claim.turn_id))
        assert [m.text for m in (await self.taken(store)).messages] == ["someone else"]

    async def test_a_run_of_the_clock_is_taken_alone(self, store: Store) -> None:
        for n in (1, 2):
            due = new(f"tick {n}", n, channel="heartbeat", chat_id="job", origin="scheduled", answers_nowhere=True)
            await store.accept(replace(due, cut="message"))
        claim = await self.taken(store, "heartbeat:job")
        assert [m.text for m in claim.messages] == ["tick 1"]
        assert claim.messages[0].answer_to == NOWHERE

    # Deliveries

    async def finished(self, store: Store) -> Delivery:
        await store.accept(new("one"))
        delivery = (await store.finish(result((await self.taken(store)).turn_id))).delivery
        assert delivery is not None
        return delivery

    async def test_a_delivery_is_open_until_it_has_an_end(self, store: Store, reopen: Any) -> None:
        delivery = await self.finished(store)
        await store.move_delivery(delivery, "sending", AT, attempts=1)
        assert [d.state for d in await store.open_deliveries()] == ["sending"]
        later = AT + timedelta(minutes=5)
        await store.move_delivery(delivery, "retry", AT, attempts=1, sent_ids=["p1"], reason="flood", next_at=later)
        store = await reopen()
        [waiting] = await store.open_deliveries()
        assert (waiting.state, waiting.attempts, waiting.sent_ids) == ("retry", 1, ("p1",))
        assert (waiting.reason, waiting.next_at, waiting.text) == ("flood", later, "an answer")
        await store.move_delivery(waiting, "sent", AT, attempts=2, sent_ids=["p1", "p2"])
        assert await store.open_deliveries() == []
        assert await store.shown_deliveries() == []

    @pytest.mark.parametrize("state", ["unknown", "failed"])
    async def test_what_did_not_end_well_is_shown_and_not_open(self, store: Store, state: Any) -> None:
        delivery = await self.finished(store)
        await store.move_delivery(delivery, state, AT, attempts=1, reason="why")
        assert await store.open_deliveries() == []
        assert [(d.state, d.reason) for d in await store.shown_deliveries()] == [(state, "why")]

    async def test_a_reply_to_nowhere_has_no_delivery(self, store: Store) -> None:
        await store.accept(new("one"))
        claim = await self.taken(store)
        finished = await store.finish(result(claim.turn_id, target=None))
        assert finished.delivery is None
        assert await store.shown_deliveries() == []

    # Logs

    async def test_a_log_has_a_line_for_what_was_heard_and_one_for_what_was_sent(self, store: Store) -> None:
        delivery = await self.finished(store)
        assert [line.fields["dir"] for line in await self.lines(store)] == ["in"]
        await store.move_delivery(delivery, "sent", AT, attempts=1, sent_ids=["p1"])
        lines = await self.lines(store)
        assert [(line.fields["dir"], line.fields["id"]) for line in lines] == [("in", "1"), ("out", "p1")]
        assert [line.seq for line in await self.lines(store, after=lines[0].seq)] == [lines[1].seq]

    async def test_marks_are_kept_per_chat(self, store: Store, reopen: Any) -> None:
        await store.accept(new("one"))
        await store.accept(new("two", 2, chat_id="8"))
        [seven, _] = await store.log_chats()
        await store.mark_log("telegram", "7", seven.last, 123)
        store = await reopen()
        assert [(c.chat, c.last == c.marked, c.size_bytes) for c in await store.log_chats()] == [
            ("7", True, 123),
            ("8", False, 0),
        ]

    # The rest

    async def test_commands_wait_until_they_are_carried_out(self, store: Store) -> None:
        saved: Saved = await store.accept(replace(new("/help"), command="help"))
        assert await store.take("telegram:7", AT) is None
        assert await store.waiting_commands() == [saved.seq]
        message = await store.message(saved.seq)
        delivery = await store.command_done(saved.seq, message.conversation_id, HERE, "answer", False, AT)
        assert delivery.text == "answer"
        assert await store.waiting_commands() == []

    async def test_facts_of_channels_are_apart_and_replaced(self, store: Store, reopen: Any) -> None:
        await store.put_fact("telegram", "offset", "1")
        await store.put_fact("telegram", "offset", "2")
        store = await reopen()
        assert await store.fact("telegram", "offset") == "2"
        assert await store.fact("inapp", "offset") is None

    async def test_nobody_sees_more_than_their_own_sessions(self, store: Store) -> None:
        mine = await store.accept(new("mine"))
        other = await store.accept(new("other", 2, chat_id="8"))
        guest = Viewer(Person("telegram:7", "Sara", "allowed"), frozenset({"telegram:7"}))
        assert [c.id for c in await store.transcripts.conversations(guest)] == [mine.conversation_id]
        assert await store.transcripts.conversation(guest, other.conversation_id) == []
        assert [c.id for c in await store.transcripts.session(guest, "telegram:7")] == [mine.conversation_id]
        assert await store.transcripts.session(guest, "telegram:8") == []
        assert {c.id for c in await store.transcripts.conversations(OWNER)} == {
            mine.conversation_id,
            other.conversation_id,
        }


class TestStore(StoreContract):
    @pytest.fixture
    async def opened(self) -> AsyncIterator[list[Store]]:
        stores: list[Store] = []
        yield stores
        await stores[-1].close()

    @pytest.fixture
    async def store(self, opened: list[Store], tmp_path: Path) -> Store:
        opened.append(Store(tmp_path))
        await opened[-1].open()
        return opened[-1]

    @pytest.fixture
    def reopen(self, opened: list[Store], tmp_path: Path) -> Any:
        async def again() -> Store:
            await opened[-1].close()
            opened.append(Store(tmp_path))
            await opened[-1].open()
            return opened[-1]

        return again
