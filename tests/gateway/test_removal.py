"""What the owner removes is gone: from the database, the index, prompts, tools, and from whatever is made again."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agent.removed import removed_ids, without_removed
from agent.types import CallContext, ToolFailure, Turn, TurnPort, TurnResult
from channels.message import Export, ExportedMessage, InboundMessage
from gateway.backend import OWNER
from gateway.config import Settings
from gateway.importer import import_export
from gateway.library import Library, utc_now
from gateway.readlog import ReadLog, file_name, kept_lines, read_lines
from gateway.removal import Remover
from gateway.store import Store
from tests.fakes.hub import OWNER as OWNER_CHAT
from tests.fakes.hub import hub


def log_of(home: Path) -> Path:
    return home / "workspace" / "readlog" / "telegram" / file_name(OWNER_CHAT)


async def removed(home: Path, store: Store, conversation_id: str, numbers: Sequence[int] | None) -> int:
    readlog = ReadLog(home / "workspace" / "readlog", store)
    await readlog.start()
    return await Remover(store, readlog, utc_now).remove(conversation_id, numbers)


async def conversation_of(store: Store) -> str:
    return (await store.transcripts.conversations(OWNER))[0].id


def bytes_of(home: Path) -> bytes:
    return b"".join(path.read_bytes() for path in home.glob("*.db*"))


async def spoken(home: Path, *texts: str) -> None:
    async with hub(home) as core:
        for text in texts:
            await core.say(text)
            await core.quiet()


def indexed(home: Path) -> list[str]:
    with sqlite3.connect(home / "index.db") as connection:
        return [body for (body,) in connection.execute("SELECT body FROM record ORDER BY id")]


async def reopened(home: Path) -> Store:
    store = Store(home)
    await store.open()
    while await store.catch_up_index():
        pass
    return store


SECRET, OTHER = "the quokka code is 7719", "and the papaya"


async def test_the_text_is_in_no_file_of_the_home_but_the_append_only_log_and_numbers_stay(tmp_path: Path) -> None:
    await spoken(tmp_path, SECRET, OTHER)
    store = await reopened(tmp_path)
    id_ = await conversation_of(store)
    assert SECRET.encode() in bytes_of(tmp_path)
    assert await removed(tmp_path, store, id_, [1, 2]) == 2  # the message, and the answer that repeats it
    assert [message.n for message in await store.transcripts.messages(id_)] == [3, 4]
    record = (await store.transcripts.conversations(OWNER))[0]
    assert (record.title, record.message_count, record.last_text) == ("", 4, f"re: {OTHER}")
    assert indexed(tmp_path) == [OTHER, f"re: {OTHER}"]
    await store.close()
    assert SECRET.encode() not in bytes_of(tmp_path)
    assert b"7719" not in (tmp_path / "hudhud.db").read_bytes()


async def test_nothing_that_is_made_again_brings_it_back(tmp_path: Path) -> None:
    await spoken(tmp_path, SECRET, OTHER)
    store = await reopened(tmp_path)
    await removed(tmp_path, store, await conversation_of(store), [1, 2])
    await store.close()
    line = list(read_lines(log_of(tmp_path)))[-1]
    assert (line["kind"], line["text"], len(line["ids"])) == ("removed", "", 2)
    assert [kept["text"] for kept in kept_lines(log_of(tmp_path))] == [OTHER, f"re: {OTHER}", ""]
    before = log_of(tmp_path).read_bytes()
    await spoken(tmp_path)
    assert log_of(tmp_path).read_bytes() == before
    (tmp_path / "index.db").unlink()
    log_of(tmp_path).unlink()
    await spoken(tmp_path)
    assert indexed(tmp_path) == [OTHER, f"re: {OTHER}"]
    assert b"7719" not in log_of(tmp_path).read_bytes()
    assert [line["kind"] for line in read_lines(log_of(tmp_path))] == ["text", "text", "removed"]


async def test_the_next_prompt_does_not_hold_it(tmp_path: Path) -> None:
    heard: list[str] = []

    async def turn(turn: Turn, port: TurnPort) -> TurnResult:
        heard.append(" | ".join(message.text for message in turn.history))
        return TurnResult(turn.id, "done", "ok", ("ok",))

    async with hub(tmp_path, turn) as core:
        await core.say(SECRET)
        await core.quiet()
        id_ = await conversation_of(core.store)
        await Remover(core.store, core.readlog, utc_now).remove(id_, [1])
        await core.say(OTHER)
        await core.quiet()
    assert len(heard) == 2
    assert SECRET not in heard[1]
    assert [line["kind"] for line in core.log()] == ["text", "text", "removed", "text", "text"]


async def test_what_is_being_answered_is_refused_and_what_waits_is_cancelled(tmp_path: Path) -> None:
    began, go_on = asyncio.Event(), asyncio.Event()
    seen: list[str] = []

    async def turn(turn: Turn, port: TurnPort) -> TurnResult:
        seen.append(turn.text)
        began.set()
        await go_on.wait()
        return TurnResult(turn.id, "done", "ok", ("ok",))

    async with hub(tmp_path, turn) as core:
        await core.say("first")
        await began.wait()
        await core.say(SECRET)
        id_ = await conversation_of(core.store)
        remover = Remover(core.store, core.readlog, utc_now)
        with pytest.raises(ToolFailure, match="is being answered just now"):
            await remover.remove(id_, None)
        with pytest.raises(ToolFailure, match="#1 is being answered"):
            await remover.remove(id_, [1, 2])
        assert await remover.remove(id_, [2]) == 1
        go_on.set()
        await core.quiet()
        assert seen == ["first"]
        assert await remover.remove(id_, None) == 2
        assert await core.store.transcripts.conversations(OWNER) == []
        assert await core.store.transcripts.conversation(OWNER, id_) == []
        await core.say("afresh")
        await core.quiet()
        assert await conversation_of(core.store) != id_


async def test_an_edit_goes_with_its_message_and_a_later_one_brings_nothing_back(tmp_path: Path) -> None:
    async with hub(tmp_path) as core:
        await core.say("the quokka", message_id="a")
        await core.quiet()
        await core.say("the quokka code 7719", message_id="a2", kind="edit", edits="a")
        id_ = await conversation_of(core.store)
        await Remover(core.store, core.readlog, utc_now).remove(id_, [1, 2])
        await core.say("the quokka code 7719 again", message_id="a3", kind="edit", edits="a")
        await core.quiet()
        assert await core.messages(id_) == []
        assert indexed(tmp_path) == []
        kept = kept_lines(log_of(tmp_path))
        assert "7719" not in json.dumps(kept)
    assert b"7719" not in (tmp_path / "hudhud.db").read_bytes()


def exported(number: int) -> ExportedMessage:
    sent_at = datetime(2024, 3, 1, 12, number % 60, tzinfo=UTC)
    return ExportedMessage(
        InboundMessage("telegram", "-100", f"e{number}", "5", "Ann", f"melon {number}", sent_at, chat_title="Tea"),
        shares_ids=True,
    )


def lose_databases(home: Path) -> None:
    for path in home.glob("*.db*"):
        path.unlink()


def export(*numbers: int) -> Export:
    return Export((), {}, {}, (), lambda: iter([exported(number) for number in numbers]))


@pytest.mark.parametrize("database_lost", [False, True])
async def test_another_import_of_the_same_export_does_not_bring_it_back(tmp_path: Path, database_lost: bool) -> None:
    store = await reopened(tmp_path)
    folder = tmp_path / "workspace" / "readlog"
    await import_export(export(*range(40)), store, ReadLog(folder, store), utc_now)
    id_ = await conversation_of(store)
    assert await removed(tmp_path, store, id_, [3, *range(11, 31)]) == 21
    if database_lost:
        await store.close()
        lose_databases(tmp_path)
        store = await reopened(tmp_path)
    again = await import_export(export(*range(40)), store, ReadLog(folder, store), utc_now)
    assert again.added == (19 if database_lost else 0)
    assert len(indexed(tmp_path)) == 19
    assert "melon 2" not in indexed(tmp_path)
    line = next(line for line in read_lines(folder / "telegram" / file_name("-100")) if line["kind"] == "removed")
    assert (line["ids"], line["ranges"]) == (["e2"], [["e10", "e29"]])
    await store.close()


async def test_a_whole_imported_chat_goes_in_batches(tmp_path: Path) -> None:
    store = await reopened(tmp_path)
    folder = tmp_path / "workspace" / "readlog"
    await import_export(export(*range(700)), store, ReadLog(folder, store), utc_now)
    id_ = await conversation_of(store)
    assert await removed(tmp_path, store, id_, None) == 700
    assert await store.transcripts.conversations(OWNER) == []
    assert indexed(tmp_path) == []
    assert (await import_export(export(*range(700)), store, ReadLog(folder, store), utc_now)).added == 0
    await store.close()


ODD_LINES: list[tuple[dict[str, Any], set[Any]]] = [
    ({"kind": "removed", "ids": ["b", 3]}, {"b", 3}),
    ({"kind": "removed", "ranges": [["b", "d"]]}, {"b", "c", "d", "d2"}),
    ({"kind": "removed", "ranges": [["b", "zz"], ["a"], "x", None], "ids": "a"}, set()),
    ({"kind": "removed", "ids": [["a"], None, {}]}, set()),
    ({"kind": "text", "ids": ["a"]}, set()),
]


@pytest.mark.parametrize(("line", "gone"), ODD_LINES)
def test_a_removed_line_is_read_as_it_is_meant_or_not_at_all(line: dict[str, Any], gone: set[Any]) -> None:
    lines: list[dict[str, Any]] = [{"id": name} for name in "abc"]
    lines += [{"id": "d", "parts": ["d", "d2"]}, {"id": "e"}, line, {"id": "b"}]
    assert removed_ids(lines) == gone


async def test_no_tool_and_no_page_shows_what_was_removed_from_a_read_log(tmp_path: Path) -> None:
    await spoken(tmp_path, "first", SECRET, OTHER)
    store = await reopened(tmp_path)
    id_ = await conversation_of(store)
    await removed(tmp_path, store, id_, [3, 4])
    await store.close()
    name = log_of(tmp_path).relative_to(tmp_path / "workspace").as_posix()
    library = await Library.open(tmp_path, Settings())
    try:
        ctx = CallContext(OWNER, "telegram:1", id_, "turn-1", datetime.now(UTC))
        tools = library.functions()
        shown = [
            await tools["introspect"]["memory_get"](ctx, {"ref": f"file:{name}"}),
            await tools["introspect"]["memory_get"](ctx, {"ref": f"file:{name}#L1-L6"}),
            await tools["files"]["read_file"](ctx, {"path": name}),
        ]
    finally:
        await library.close()
    for text in shown:
        assert "quokka" not in text
        assert "first" in text
        assert OTHER in text
    assert [line.split()[0] for line in shown[1].split("\n") if line.startswith("[L")] == [
        f"[L{n}]" for n in range(1, 7)
    ]


@pytest.mark.parametrize(
    "text", ["", "{}", "no JSON\n[1]\n", '{"id":"a","kind":"removed","ids":"a","ranges":[[1]]}\n', "[" * 5000]
)
def test_a_log_that_takes_nothing_out_is_shown_as_it_is(text: str) -> None:
    assert without_removed(text) == text
