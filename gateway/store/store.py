"""Store: every sentence the gateway has to say to its database, by subject."""
# long because: it is the list of all that can be asked of the database, and holds nothing else

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, TypeVar

from agent.usage import ModelCall
from channels.message import Address, Attachment, ExportedMessage
from gateway.limits import MERGE_ROUNDS_MAX, REMOVE_BATCH_MESSAGES
from gateway.store import arriving, deliveries, imported, inbound, loglines, persons, removal, reports, results, turns
from gateway.store.alerts import StoredAlerts
from gateway.store.conversations import chat_conversation
from gateway.store.database import Database, size_bytes
from gateway.store.indexing import Indexer
from gateway.store.inspecting import IndexFacts, index_facts, index_faults
from gateway.store.moves import current_address
from gateway.store.rebuilding import Files, Rebuild, is_unfinished
from gateway.store.runs import StoredRuns
from gateway.store.sql import SQL
from gateway.store.transcripts import StoredTranscripts
from gateway.store.types import Claim, Delivery, DeliveryState, LogLine, NewMessage, Saved, TakenMessage, from_ms, to_ms

T = TypeVar("T")


class Store:
    """One open home's database. `open` before, `close` after; every method raises StoreError when it cannot."""

    def __init__(self, home: Path) -> None:
        self._database = Database(home / "hudhud.db")
        self._indexer = Indexer(home / "index.db")
        self.transcripts = StoredTranscripts(self._database)
        self.runs = StoredRuns(self._database)
        self.alerts = StoredAlerts(self._database, self._indexer)

    @property
    def commits(self) -> int:
        """How many group commits were made since the start."""
        return self._database.commits

    async def open(self) -> None:
        await self._database.open(self._indexer)

    async def close(self) -> None:
        await self._database.close()

    # The index

    async def write(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """For the index's own writes: `agent.cortex` hands in work on the attached index. None: it is no good."""
        return await self._database.write(lambda c: self._indexer.guarded(c, work))

    async def catch_up_index(self) -> bool:
        """Indexes the next rows that a crash left out of the index; True when there may be more."""
        more = await self._database.write(self._indexer.catch_up)
        if not more and self._indexer.on:
            self._indexer.behind = False
        return more

    @property
    def index_trouble(self) -> str | None:
        """Why index.db has to be built anew: messages are saved without it. None: all is well."""
        return self._indexer.trouble

    @property
    def index_behind(self) -> bool:
        """Whether `catch_up_index` has something to do."""
        return self._indexer.behind

    def when_index_lacks(self, told: Callable[[], object]) -> None:
        """`told` is called, in any thread, whenever there is new trouble with the index or it falls behind."""
        self._indexer.told = told

    async def look_at_index(self) -> None:
        """Has the writer look which index.db is there now: it may be a new one, or gone."""
        await self._database.write(lambda _: None)

    async def distrust_index(self, reason: str) -> None:
        """A reader found the index to be no good."""
        await self._database.write(lambda c: self._indexer.distrust(c, reason))

    @property
    def has_unfinished_index(self) -> bool:
        """Whether a new index was begun and broke off."""
        return is_unfinished(self._indexer.path)

    def index_bytes(self) -> int:
        """The size of index.db; 0 when there is none."""
        return size_bytes(self._indexer.path)

    def rebuild(self, files: Files) -> Rebuild:
        """A new index, to be run in a thread."""
        return Rebuild(self._database.path, self._indexer.path, files, lambda: self._database.asked)

    def facts(self) -> IndexFacts:
        """What there is of the index, read in the thread that calls. Raises StoreError."""
        return index_facts(self._database.path, self._indexer.path)

    def faults(self, *, whole: bool) -> list[str]:
        """What is wrong with the index, checked in the thread that calls; `whole`: all of it. Raises StoreError."""
        return index_faults(self._database.path, self._indexer.path, whole=whole)

    # Messages

    async def accept(self, new: NewMessage) -> Saved:
        return await self._database.write(lambda c: inbound.accept(c, self._indexer, new))

    async def add_imported(self, batch: Sequence[ExportedMessage], now: datetime) -> imported.BatchSaved:
        """Saves a batch of an export file in one transaction; what is there already is left as it is."""
        return await self._database.write(lambda c: imported.add_batch(c, self._indexer, batch, now))

    async def messages_saying(self, text: str) -> list[tuple[str, int]]:
        """Conversation and number of every message with just this text; a walk over all messages."""
        return await self._database.read(
            lambda c: [(row[0], row[1]) for row in c.execute(SQL["messages_saying"], {"text": text}).fetchall()]
        )

    async def remove_messages(
        self, conversation_id: str, numbers: Sequence[int] | None, now: datetime
    ) -> tuple[int, frozenset[tuple[str, str]]]:
        """Takes messages of these numbers, or all and the conversation with them (None), out for good, batch by batch.

        How many went, and the chats whose logs have a new line. Raises StillUsed while one of them is in use; what
        was removed before stays so. The text is overwritten in the files, not only let go.
        """
        count, chats = 0, frozenset[tuple[str, str]]()
        while True:
            done = await self._database.write(
                lambda c: removal.remove(c, self._indexer, conversation_id, numbers, now, REMOVE_BATCH_MESSAGES)
            )
            count, chats = count + done.messages, chats | done.chats
            if not done.more:
                break
        await self._database.maintain(lambda c: c.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall())
        return count, chats

    async def message(self, seq: int) -> TakenMessage:
        """A saved message of a person."""
        return await self._database.read(
            lambda c: turns.taken(c.execute(SQL["message_by_seq"], {"seq": seq}).fetchone())
        )

    async def unfetched(self) -> list[TakenMessage]:
        """Waiting messages whose files were not fetched, or whose recording has no words yet."""
        return await self._database.read(arriving.unfetched)

    async def arrived(self, result: arriving.Arrived, saved_is_sent: bool) -> Delivery | None:
        """What came of a message's files, and the notice about it, if there is one."""
        return await self._database.write(lambda c: arriving.arrived(c, self._indexer, result, saved_is_sent))

    async def command_done(
        self, seq: int, conversation_id: str, address: Address, text: str, saved_is_sent: bool, now: datetime
    ) -> Delivery:
        """A command was carried out: it is answered, with a notice on its way."""

        def work(connection: sqlite3.Connection) -> Delivery:
            connection.execute(
                SQL["finish_message"],
                {"seq": seq, "state": "answered", "version": inbound.next_version(connection)},
            )
            return inbound.add_notice(
                connection,
                self._indexer,
                conversation_id,
                current_address(connection, address),
                text,
                f"command:{seq}",
                now,
                saved_is_sent,
            )

        return await self._database.write(work)

    async def notice(
        self,
        address: Address,
        cut: Literal["idle", "chat", "message"],
        text: str,
        key: str,
        saved_is_sent: bool,
        now: datetime,
        *,
        role: Literal["system", "assistant"] = "system",
        attachments: Sequence[Attachment] = (),
        flags: Sequence[str] = (),
    ) -> Delivery:
        """A message of the agent's side in a chat, in its open conversation or else a new one, and its delivery."""

        def work(connection: sqlite3.Connection) -> Delivery:
            there = current_address(connection, address)
            conversation_id = chat_conversation(connection, there, cut, now)
            return inbound.add_notice(
                connection,
                self._indexer,
                conversation_id,
                there,
                text,
                key,
                now,
                saved_is_sent,
                role,
                attachments,
                flags,
            )

        return await self._database.write(work)

    async def address_of(self, session_key: str) -> Address | None:
        """Where a session is; None when nothing was ever said there."""

        def work(connection: sqlite3.Connection) -> Address | None:
            row = connection.execute(SQL["address_of"], {"session_key": session_key}).fetchone()
            return None if row is None else Address(row["channel"], row["chat"], row["thread"])

        return await self._database.read(work)

    async def name_in(self, session_key: str) -> str:
        """What the person of a private chat was called at last; empty when nobody wrote there yet."""

        def work(connection: sqlite3.Connection) -> str:
            row = connection.execute(SQL["name_in"], {"session_key": session_key}).fetchone()
            return "" if row is None else row[0]

        return await self._database.read(work)

    async def waiting_commands(self) -> list[int]:
        return await self._database.read(lambda c: [row[0] for row in c.execute(SQL["waiting_commands"]).fetchall()])

    # Turns

    async def recover(self, now: datetime) -> int:
        return await self._database.write(lambda c: turns.recover(c, now))

    async def waiting_sessions(self) -> list[tuple[str, str]]:
        """Each session in which messages wait, with the origin of its people or clock, oldest first."""
        return await self._database.read(
            lambda c: [(row[0], row[1]) for row in c.execute(SQL["waiting_sessions"]).fetchall()]
        )

    async def take(self, session_key: str, now: datetime) -> Claim | None:
        return await self._database.write(lambda c: turns.take(c, session_key, now))

    async def hear(self, turn_id: str, round_number: int) -> tuple[TakenMessage, ...]:
        return await self._database.write(lambda c: turns.hear(c, turn_id, round_number))

    async def begin_calls(
        self,
        turn_id: str,
        round_number: int,
        rounds: Sequence[str],
        calls: Sequence[results.CallRow],
        now: datetime,
    ) -> tuple[str, int, int]:
        return await self._database.write(
            lambda c: results.begin_calls(c, self._indexer, turn_id, round_number, rounds, calls, now)
        )

    async def end_call(
        self, turn_id: str, call_id: str, output: str, outcome: str, attempts: int, now: datetime
    ) -> None:
        await self._database.write(
            lambda c: results.end_call(c, self._indexer, turn_id, call_id, output, outcome, attempts, now)
        )

    async def finish(self, result: results.Result) -> results.Finished:
        return await self._database.write(lambda c: results.finish(c, self._indexer, result))

    async def put_back(self, session_key: str, *, counts: bool) -> None:
        """What runs in a session waits again; `counts`: as one of the tries after which it is given up."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(SQL["put_back"], {"session_key": session_key})
            if not counts:
                connection.execute(SQL["uncount_turn"], {"session_key": session_key})

        await self._database.write(work)

    async def release(self, turn_id: str) -> None:
        await self._database.write(lambda c: turns.release(c, turn_id))

    async def waiting(self) -> list[dict[str, object]]:
        """The waiting and running messages, oldest first: message_id, sessionKey, state, since."""
        return await self._database.read(
            lambda c: [
                {"message_id": row[0], "sessionKey": row[1], "state": row[2], "since": from_ms(row[3])}
                for row in c.execute(SQL["waiting_list"]).fetchall()
            ]
        )

    async def waiting_count(self) -> int:
        return await self._database.read(lambda c: c.execute(SQL["waiting_count"]).fetchone()[0])

    async def drop_message(self, message_id: str) -> int:
        """Cancels a waiting message; how many were cancelled."""
        return await self._database.write(lambda c: c.execute(SQL["drop_message"], {"message_id": message_id}).rowcount)

    # Deliveries

    async def move_delivery(
        self,
        delivery: Delivery,
        state: DeliveryState,
        now: datetime,
        *,
        attempts: int,
        sent_ids: Sequence[str] = (),
        reason: str | None = None,
        next_at: datetime | None = None,
    ) -> None:
        await self._database.write(
            lambda c: deliveries.move(
                c,
                delivery.key,
                state,
                now,
                attempts=attempts,
                sent_ids=sent_ids,
                reason=reason,
                next_at=next_at,
            )
        )

    async def open_deliveries(self) -> list[Delivery]:
        return await self._database.read(deliveries.still_open)

    async def shown_deliveries(self) -> list[Delivery]:
        return await self._database.read(deliveries.shown)

    async def delivery(self, key: str) -> Delivery | None:
        return await self._database.read(lambda c: deliveries.by_key(c, key))

    async def last_sent(self, channel: str) -> datetime | None:
        """When a channel last sent something for certain."""

        def work(connection: sqlite3.Connection) -> datetime | None:
            row = connection.execute(SQL["last_sent"], {"channel": channel}).fetchone()
            return None if row is None else from_ms(row["at"])

        return await self._database.read(work)

    async def last_received(self, channel: str) -> datetime | None:
        """When the last message of a channel was saved."""

        def work(connection: sqlite3.Connection) -> datetime | None:
            row = connection.execute(SQL["last_received"], {"channel": channel}).fetchone()
            return None if row is None else from_ms(row["at"])

        return await self._database.read(work)

    async def set_draft(self, turn_id: str, address: Address, message_id: str | None) -> None:
        """The live draft of a running turn: on its way (None), or the platform's id of it."""
        draft = json.dumps([address.channel, address.chat_id, address.thread_id, message_id])
        await self._database.write(lambda c: c.execute(SQL["set_draft"], {"id": turn_id, "draft": draft}))

    # People

    async def known_people(self) -> persons.Known:
        return await self._database.read(persons.known)

    async def speakers(self, session_key: str) -> list[str]:
        """The ids of those who spoke in a session and were no strangers then."""
        return await self._database.read(
            lambda c: [row[0] for row in c.execute(SQL["speakers"], {"session_key": session_key}).fetchall()]
        )

    async def add_person(self, channel: str, person_id: str, name: str, now: datetime) -> None:
        await self._database.write(lambda c: persons.add(c, channel, person_id, name, now))

    async def remove_person(self, channel: str, person_id: str) -> bool:
        return await self._database.write(lambda c: persons.remove(c, channel, person_id))

    async def pairings(self, now: datetime) -> list[persons.Pairing]:
        return await self._database.read(lambda c: persons.pairings(c, now))

    async def open_pairing(self, wanted: persons.Pairing, now: datetime, open_max: int) -> bool:
        return await self._database.write(lambda c: persons.open_pairing(c, wanted, now, open_max))

    async def pair(self, code: str, now: datetime) -> persons.Pairing | None:
        return await self._database.write(lambda c: persons.pair(c, code, now))

    async def tidy(self) -> int:
        """Merges the search index step by step, then checkpoints; bytes that the write-ahead log gave back."""

        def merge(connection: sqlite3.Connection) -> bool:
            before = connection.total_changes
            connection.execute(SQL["merge_words"])
            return connection.total_changes - before > 1

        rounds = 0
        while rounds < MERGE_ROUNDS_MAX and await self.write(merge):
            rounds += 1
        before = self._database.log_bytes()
        await self._database.maintain(lambda c: (c.execute(SQL["optimize"]), c.execute(SQL["checkpoint"]).fetchall()))
        return max(0, before - self._database.log_bytes())

    # Spending

    async def add_usage(self, call: ModelCall, turn_id: str, conversation_id: str, origin: str) -> None:
        values = {
            "at": to_ms(call.at),
            "provider": call.provider,
            "model": call.model,
            "input_tokens": call.usage.input_tokens,
            "output_tokens": call.usage.output_tokens,
            "cache_read_tokens": call.usage.cache_read_tokens,
            "cache_write_tokens": call.usage.cache_write_tokens,
            "cost_usd": None if call.cost_usd is None else float(call.cost_usd),
            "turn_id": turn_id,
            "conversation_id": conversation_id,
            "origin": origin,
        }
        await self._database.write(lambda c: c.execute(SQL["add_usage"], values))

    async def spent_since(self, since: datetime) -> tuple[float, int]:
        """US dollars of the calls whose price is known, and tokens (cache reads not counted), since a time."""

        def work(connection: sqlite3.Connection) -> tuple[float, int]:
            row = connection.execute(SQL["spent_since"], {"since": to_ms(since)}).fetchone()
            return row["cost_usd"], row["tokens"]

        return await self._database.read(work)

    async def usage(self, after: datetime | None, before: datetime | None) -> dict[str, Any]:
        """What the model calls from `after` to `before` (exclusive) came to, in all and by model."""
        return await self._database.read(lambda c: reports.usage(c, after, before))

    async def performance(self, since: datetime) -> dict[str, Any]:
        """How the turns and calls since a time went."""
        return await self._database.read(lambda c: reports.performance(c, since))

    # Read logs

    async def log_chats(self) -> list[loglines.LogChat]:
        return await self._database.read(loglines.chats)

    async def with_log_lines(self, channel: str, chat: str, after: int, consume: Callable[[list[LogLine]], T]) -> T:
        """Gives the lines of a chat after entry `after` to `consume`, in the reader's thread: one hop for both."""
        return await self._database.read(lambda c: consume(loglines.lines(c, channel, chat, after)))

    async def mark_log(self, channel: str, chat: str, seq: int, size_bytes: int) -> None:
        await self._database.write(lambda c: loglines.set_mark(c, channel, chat, seq, size_bytes))

    # Facts of the channels

    async def fact(self, channel: str, key: str) -> str | None:
        def work(connection: sqlite3.Connection) -> str | None:
            row = connection.execute(SQL["get_fact"], {"channel": channel, "key": key}).fetchone()
            return None if row is None else row[0]

        return await self._database.read(work)

    async def put_fact(self, channel: str, key: str, value: str) -> None:
        await self._database.write(
            lambda c: c.execute(SQL["put_fact"], {"channel": channel, "key": key, "value": value})
        )

    async def moved_chat(self, channel: str, chat: str) -> str | None:
        """The new id of a chat that moved, else None."""

        def work(connection: sqlite3.Connection) -> str | None:
            row = connection.execute(SQL["moved_chat"], {"channel": channel, "chat": chat}).fetchone()
            return None if row is None else row[0]

        return await self._database.read(work)

    async def move_chat(self, channel: str, old_chat: str, new_chat: str, *, renumbered: bool = False) -> bool:
        """From now on `old_chat` means `new_chat`: history, waiting replies and what comes in, also as the id of a
        person. `renumbered`: the new one counts its messages anew, so equal ids are two messages. False: known already.
        """

        def work(connection: sqlite3.Connection) -> bool:
            known = connection.execute(SQL["moved_chat"], {"channel": channel, "chat": old_chat}).fetchone()
            if known is not None and known[0] == new_chat:
                return False
            values = {
                "channel": channel,
                "old_chat": old_chat,
                "new_chat": new_chat,
                "old_key": f"{channel}:{old_chat}",
                "new_key": f"{channel}:{new_chat}",
                "old_prefix": f"{old_chat}/%",
                "renumbered": renumbered,
            }
            for name in (
                "move_chat",
                "move_conversations",
                "move_messages",
                "move_turns",
                "move_senders",
                "move_people",
                "move_deliveries",
            ):
                connection.execute(SQL[name], values)
            if renumbered:
                fact = {"channel": channel, "key": f"renumbered:{old_chat}", "value": new_chat}
                connection.execute(SQL["put_fact"], fact)
            return True

        return await self._database.write(work)
