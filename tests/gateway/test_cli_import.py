"""`hudhud import`: an exported chat becomes a conversation, a read log and hits, once however often."""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from channels.message import Export, ExportedChat, ExportedMessage, InboundMessage
from gateway.importer import import_export
from gateway.library import utc_now
from gateway.readlog import ReadLog, read_lines
from gateway.store import Store
from gateway.store.types import NewMessage
from tests.fakes.terminal import Shell, Terminal

CHAT = (
    "1/9/24, 6:15\u202fPM - Ann: the spare key is at the bakery\n"
    "2/23/24, 1:40\u202fAM - Bo: ok\n"
    "2/23/24, 1:40\u202fAM - Bo: ok\n"
)


def message(number: int, **fields: Any) -> dict[str, Any]:
    known = {"id": number, "type": "message", "date_unixtime": "1612500000", "from": "Ann", "from_id": "user1"}
    return known | {"text": f"papaya {number}"} | fields


def group(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"name": "Tea", "type": "private_supergroup", "id": 1234567890, "messages": list(messages)} | fields


def whatsapp_file(folder: Path, text: str = CHAT) -> str:
    path = folder / "WhatsApp Chat with Ann.txt"
    path.write_text(text, encoding="utf-8")
    return str(path)


def telegram_file(folder: Path, what: Any) -> str:
    path = folder / "result.json"
    path.write_text(json.dumps(what), encoding="utf-8")
    return str(path)


def lines(shell: Shell, name: str) -> list[dict[str, Any]]:
    return list(read_lines(shell.home / "workspace" / "readlog" / name))


@pytest.mark.parametrize("beside_a_gateway", [False, True])
def test_a_chat_is_read_found_and_logged_with_its_own_times(
    shell: Shell, tmp_path: Path, beside_a_gateway: bool
) -> None:
    def use() -> None:
        file = whatsapp_file(tmp_path)
        said = shell("import", "whatsapp", file, "--me", "Bo", "--zone", "Asia/Riyadh", "--json")
        assert (said.code, said.json["added"], said.json["known"]) == (0, 3, 0)
        assert said.json["chats"] == [{"chat": "Ann", "title": "Ann", "messages": 3, "participants": ["Ann", "Bo"]}]
        (hit,) = shell("memory", "search", "bakery", "--channel", "whatsapp", "--sender", "Ann", "--json").json["hits"]
        assert (hit["at"][:16], hit["chat"], hit["role"]) == ("2024-01-09T15:15", "Ann", "user")
        assert "bakery" in shell("memory", "get", hit["ref"]).out
        (conversation,) = shell("conversations", "list", "--channel", "whatsapp", "--json").json["conversations"]
        assert (conversation["message_count"], conversation["sessionKey"]) == (3, "whatsapp:Ann")
        read = shell("conversations", "read", conversation["id"], "--json").json["messages"]
        assert [(item["n"], item["role"], item["state"]) for item in read] == [
            (1, "user", "observed"),
            (2, "owner", "observed"),
            (3, "owner", "observed"),
        ]
        logged = lines(shell, "whatsapp/Ann.jsonl")
        assert [(line["id"], line["dir"]) for line in logged] == [
            (item["id"], "in" if item["role"] == "user" else "out") for item in read
        ]
        assert logged[0]["at"] == "2024-01-09T15:15:00.000+00:00"

    shell.prepared()
    if beside_a_gateway:
        with shell.gateway():
            use()
    else:
        use()


def test_a_second_import_adds_nothing_and_a_later_export_adds_what_is_new(shell: Shell, tmp_path: Path) -> None:
    shell.prepared()
    file = whatsapp_file(tmp_path)
    shell("import", "whatsapp", file)
    before = lines(shell, "whatsapp/Ann.jsonl")
    again = shell("import", "whatsapp", file, "--json").json
    assert (again["added"], again["known"]) == (0, 3)
    assert lines(shell, "whatsapp/Ann.jsonl") == before
    whatsapp_file(tmp_path, f"{CHAT}2/24/24, 9:00\u202fAM - Ann: more\n")
    assert shell("import", "whatsapp", file, "--json").json["added"] == 1
    assert [line["text"] for line in lines(shell, "whatsapp/Ann.jsonl")][3:] == ["more"]
    assert len(shell("conversations", "list", "--json").json["conversations"]) == 1


def test_messages_of_the_same_time_keep_their_order(shell: Shell, tmp_path: Path) -> None:
    shell.prepared()
    file = telegram_file(tmp_path, group(*(message(number) for number in range(1, 21))))
    assert shell("import", "telegram", file, "--json").json["added"] == 20
    assert shell("import", "telegram", file, "--json").json["added"] == 0
    logged = lines(shell, "telegram/-1001234567890.jsonl")
    assert [line["id"] for line in logged] == [str(number) for number in range(1, 21)]
    assert {line["at"] for line in logged} == {"2021-02-05T04:40:00.000+00:00"}


def test_a_deleted_account_can_be_searched(shell: Shell, tmp_path: Path) -> None:
    shell.prepared()
    shell("import", "telegram", telegram_file(tmp_path, group(message(1, **{"from": None, "from_id": "user3"}))))
    for sender in ("Deleted account (user3)", "3"):
        (hit,) = shell("memory", "search", "papaya", "--sender", sender, "--json").json["hits"]
        assert hit["sender"] == "Deleted account (user3)"


def test_a_whole_account_says_what_was_skipped_and_why(shell: Shell, tmp_path: Path) -> None:
    shell.prepared()
    strange = message(2, hologram={"blob": 1})
    del strange["text"]
    account = {
        "chats": {"list": [group(message(1), strange, {"type": "message"}), group(message(1), id=9, type="bot_chat")]}
    }
    said = shell("import", "telegram", telegram_file(tmp_path, account))
    assert said.out.splitlines()[0] == "3 messages added, 0 were there already (2 chats)."
    assert "message without an id (1)" in said.out
    assert "hologram (1)" in said.out
    assert said.err == ""
    assert sorted(path.name for path in (shell.home / "workspace/readlog/telegram").iterdir()) == [
        "-1001234567890.jsonl",
        "9.jsonl",
    ]


def test_an_ambiguous_date_is_said(shell: Shell, tmp_path: Path) -> None:
    file = whatsapp_file(tmp_path, "3/4/24, 10:00 - A: x\n5/4/24, 10:00 - A: y\n")
    shell.prepared()
    assert "ambiguous" in shell("import", "whatsapp", file).out
    assert "ambiguous" not in shell("import", "whatsapp", file, "--dates", "mdy", "--chat", "Other").out
    assert lines(shell, "whatsapp/Other.jsonl")[0]["at"].startswith("2024-03-04")


@pytest.mark.parametrize("app", ["whatsapp", "telegram"])
@pytest.mark.parametrize(
    "content", [b"hello\nworld\n", b"", b"\x00\xff\n", b"PK\x03\x04", b'{"name": "Ann", "messages": []']
)
def test_a_file_that_is_something_else_changes_nothing(shell: Shell, tmp_path: Path, app: str, content: bytes) -> None:
    shell.prepared()
    path = tmp_path / "WhatsApp Chat with Ann.txt"
    path.write_bytes(content)
    said = shell("import", app, str(path))
    assert (said.code, said.out, said.err.count("\n")) == (1, "", 1)
    assert "Nothing was imported" in said.err
    assert shell("conversations", "list", "--json").json == {"conversations": []}
    assert not (shell.home / "workspace" / "readlog" / app).exists()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["whatsapp", "absent.txt"], 3),
        (["telegram", "{file}", "--zone", "No/Where"], 2),
        (["whatsapp", "{file}", "--dates", "ydm"], 2),
        (["telegram", "{file}", "--me", "Ann"], 2),
    ],
)
def test_what_cannot_be_meant_is_wrong_use(shell: Shell, tmp_path: Path, arguments: list[str], code: int) -> None:
    file = whatsapp_file(tmp_path)
    said = shell.prepared()("import", *(argument.format(file=file) for argument in arguments))
    assert (said.code, said.out, said.err.count("\n")) == (code, "", 1)


def test_a_database_that_stays_locked_is_said(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.store.database.DATABASE_BUSY_SECONDS", 0.05)
    file = whatsapp_file(tmp_path)
    shell.prepared()("conversations", "list")
    with contextlib.closing(sqlite3.connect(shell.home / "hudhud.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        said = shell("import", "whatsapp", file)
    assert (said.code, said.out) == (1, "")
    assert "Close the program" in said.err
    assert shell("import", "whatsapp", file, "--json").json["added"] == 3


def test_the_progress_is_shown_at_a_terminal(
    shell: Shell, tmp_path: Path, at_terminal: Callable[..., Terminal]
) -> None:
    shell.prepared()
    terminal = at_terminal("import", "whatsapp", whatsapp_file(tmp_path))
    terminal.wait_for("Importing")
    terminal.wait_for("3 messages added")
    assert terminal.ended() == 0


def exported(chat: str, number: int, *, shares_ids: bool) -> ExportedMessage:
    said = InboundMessage("telegram", chat, str(number), "1", "Ann", f"papaya {number}", utc_now())
    return ExportedMessage(said, shares_ids=shares_ids)


def one_chat(*items: ExportedMessage) -> Export:
    return Export((ExportedChat("7", "Ann", len(items), ("Ann",)),), {}, {}, (), lambda: iter(items))


async def test_an_import_that_broke_off_goes_on_and_its_log_is_made_up(tmp_path: Path) -> None:
    items = [exported("7", number, shares_ids=False) for number in range(1, 701)]

    def breaks() -> Any:
        yield from items[:600]
        raise OSError("the disk was taken out")

    store = Store(tmp_path)
    await store.open()
    try:
        folder = tmp_path / "readlog"
        with pytest.raises(OSError, match="taken out"):
            await import_export(Export((), {}, {}, (), breaks), store, ReadLog(folder, store), utc_now)
        shutil.rmtree(folder)
        readlog = ReadLog(folder, store)
        await readlog.start()
        result = await import_export(one_chat(*items), store, readlog, utc_now)
        assert (result.added, result.known) == (200, 500)
        logged = [line["id"] for line in read_lines(folder / "telegram" / "7.jsonl")]
        assert logged == [str(number) for number in range(1, 701)]
    finally:
        await store.close()


def heard(chat: str, number: int, text: str) -> NewMessage:
    """A message that the channel itself brings."""
    said = InboundMessage("telegram", chat, str(number), "1", "Ann", text, utc_now())
    return NewMessage(said, "stranger", "observed", None, "idle", 10_800_000, False, None, False, utc_now())


def test_what_a_running_gateway_writes_into_an_imported_chat_stands_in_its_log_once(
    shell: Shell, tmp_path: Path
) -> None:
    shell.prepared()
    chat = "-1001234567890"
    with shell.gateway() as gateway:
        gateway.do(gateway.app.store.accept(heard(chat, 99, "a live word")))
        gateway.do(gateway.app.readlog.caught_up("telegram", chat))
        file = telegram_file(tmp_path, group(message(1), message(99, text="a live word")))
        assert shell("import", "telegram", file, "--json").json["added"] == 1
        gateway.do(gateway.app.readlog.mark())
        gateway.do(gateway.app.store.accept(heard(chat, 100, "a later word")))
        gateway.do(gateway.app.readlog.caught_up("telegram", chat))
    with shell.gateway():
        pass
    assert [line["id"] for line in lines(shell, f"telegram/{chat}.jsonl")] == ["99", "1", "100"]
    assert len(shell("conversations", "list", "--json").json["conversations"]) == 2


async def test_what_is_said_later_in_an_imported_chat_is_new_and_begins_its_own_conversation(tmp_path: Path) -> None:
    store = Store(tmp_path)
    await store.open()
    try:
        readlog = ReadLog(tmp_path / "readlog", store)
        await import_export(one_chat(exported("7", 5, shares_ids=False)), store, readlog, utc_now)
        assert await store.last_received("telegram") is None
        saved = await store.accept(heard("7", 5, "another word"))
        assert saved.is_new
        assert not saved.conversation_id.startswith("import-")
    finally:
        await store.close()


async def test_in_a_shared_chat_what_the_channel_heard_is_not_saved_again(tmp_path: Path) -> None:
    store = Store(tmp_path)
    await store.open()
    try:
        await store.accept(heard("-1001", 5, "papaya 5"))
        items = (exported("-1001", 5, shares_ids=True), exported("-1001", 6, shares_ids=True))
        result = await import_export(one_chat(*items), store, ReadLog(tmp_path / "readlog", store), utc_now)
        assert (result.added, result.known) == (1, 1)
        assert not (await store.accept(heard("-1001", 6, "papaya 6"))).is_new
    finally:
        await store.close()
