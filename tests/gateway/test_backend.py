"""The owner's view of the running gateway, as the page and its API get it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from channels.inapp.ports import BadQuery, UnknownConversation
from channels.message import InboundMessage
from gateway.backend import OwnerBackend
from gateway.store.types import NewMessage
from heartbeat.types import UnknownJob
from tests.fakes.program import EchoProvider, Program, program

AT = datetime(2027, 1, 1, tzinfo=UTC)


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Program]:
    async with program(tmp_path / "h", provider=EchoProvider()) as running:
        yield running


@pytest.fixture
def backend(gateway: Program) -> OwnerBackend:
    return gateway.app.backend


async def test_a_message_goes_to_the_latest_open_conversation_else_to_a_new_one(gateway: Program) -> None:
    first = await gateway.post("/api/messages", {"text": "one"})
    again = await gateway.post("/api/messages", {"text": "two"})
    new = await gateway.post("/api/messages", {"text": "three", "conversation": "new"})
    latest = await gateway.post("/api/messages", {"text": "four"})
    named = await gateway.post("/api/messages", {"text": "five", "conversation": first["conversation"]})
    assert first["conversation"] == again["conversation"] == named["conversation"]
    assert new["conversation"] == latest["conversation"] != first["conversation"]
    await gateway.quiet()


@pytest.mark.parametrize("wanted", ["new", None])
async def test_a_repeated_key_is_the_same_message_wherever_it_is_posted_again(
    gateway: Program, wanted: str | None
) -> None:
    body = {"text": "hello", "key": "k1"} | ({} if wanted is None else {"conversation": wanted})
    first = await gateway.post("/api/messages", body)
    await gateway.post("/api/messages", {"text": "elsewhere", "conversation": "new"})
    second = await gateway.post("/api/messages", body)
    assert second == first
    other = await gateway.post("/api/messages", {**body, "conversation": first["conversation"]})
    assert other == first
    await gateway.quiet()
    assert gateway.rows("SELECT count(*) FROM message WHERE role = 'user'") == [(2,)]


async def test_what_was_spent_is_told_by_period(backend: OwnerBackend) -> None:
    found = await backend.usage({"period": "month"})
    assert (found["period"], found["requests"], found["models"]) == ("month", 0, [])
    assert (await backend.usage({"period": "all", "after": "2027-01-01"}))["period"] == "2027-01-01/"
    for odd in ({"period": "year"}, {"before": "soon"}):
        with pytest.raises(BadQuery):
            await backend.usage(odd)


async def test_equal_keys_at_the_same_moment_are_one_message(gateway: Program) -> None:
    body = {"text": "hello", "key": "k1", "conversation": "new"}
    posted = await asyncio.gather(*(gateway.post("/api/messages", body) for _ in range(8)))
    assert all(one == posted[0] for one in posted)
    await gateway.quiet()
    assert gateway.rows("SELECT count(*) FROM conversation") == [(1,)]
    assert gateway.rows("SELECT role FROM message") == [("user",), ("assistant",)]


@pytest.mark.parametrize("wanted", ["", "2", "new!"])
async def test_a_part_of_an_id_is_no_conversation(gateway: Program, backend: OwnerBackend, wanted: str) -> None:
    await gateway.ask("hello")
    with pytest.raises(UnknownConversation):
        await backend.conversation_for_message(wanted, "k")
    with pytest.raises(UnknownConversation):
        await backend.conversation(wanted, None, None)


async def test_an_end_of_a_conversation_on_the_page_begins_a_new_one(gateway: Program) -> None:
    first = await gateway.post("/api/messages", {"text": "one"})
    await gateway.quiet()
    await gateway.post("/api/messages", {"text": "/new"})
    await gateway.quiet()
    second = await gateway.post("/api/messages", {"text": "two"})
    await gateway.quiet()
    assert second["conversation"] != first["conversation"]


@pytest.mark.parametrize("query", [{"limit": "x"}, {"limit": "1.5"}, {"after": "yesterday"}, {"limit": "9" * 5_000}])
async def test_a_bad_query_is_one_sentence(backend: OwnerBackend, query: dict[str, str]) -> None:
    for ask in (backend.conversations, backend.search):
        with pytest.raises(BadQuery) as caught:
            await ask({"query": "x", **query})
        assert "\n" not in str(caught.value)


async def test_what_is_listed_is_what_was_said(gateway: Program) -> None:
    await gateway.ask("the falcon sleeps")
    [listed] = (await gateway.get("/api/conversations"))["conversations"]
    assert listed["last_text"] == "re: the falcon sleeps"
    assert listed["message_count"] == 2
    assert listed["channel"] == "inapp"
    found = await gateway.get("/api/search?query=falcon&sources=conversation")
    assert found["hits"]
    assert {hit["ref"].partition("#")[0] for hit in found["hits"]} == {f"conversation:{listed['id']}"}


async def test_the_state_is_told_in_one_object(gateway: Program) -> None:
    status = await gateway.get("/api/status")
    assert status["version"]
    assert status["uptime_seconds"] >= 0
    assert status["queue"] == {"waiting": 0, "running": 0, "deliveries": 0}
    states = {item["channel"]: item["state"] for item in status["channels"]}
    assert states["inapp"] == states["heartbeat"] == "connected"
    assert states["telegram"] == "off"
    assert status["next_jobs"] == []


async def test_a_job_that_there_is_not_is_no_job(backend: OwnerBackend) -> None:
    with pytest.raises(UnknownJob):
        await backend.run_job("no such job")


# Files


async def test_files_of_the_workspace_and_nothing_else(tmp_path: Path, backend: OwnerBackend) -> None:
    workspace = tmp_path / "h" / "workspace"
    (workspace / "files" / "صورة.txt").write_text("x")
    assert backend.workspace_file("files/صورة.txt").read_text() == "x"
    assert backend.workspace_file("files/../files/صورة.txt")
    (workspace / "brain" / "prefrontal" / ".debug" / "a.md").write_text("prompt")
    (workspace / ".hidden").write_text("x")
    (workspace / "files" / "way-out").symlink_to(tmp_path / "h" / "config.toml")
    (workspace / "files" / "round").symlink_to(workspace / "files" / "round")
    (workspace / "files" / "secretly").symlink_to(workspace / ".hidden")
    for path in (
        "../config.toml",
        "../hudhud.db",
        str(tmp_path / "h" / "config.toml"),
        "files/way-out",
        "files/round",
        "files/secretly",
        "brain/prefrontal/.debug/a.md",
        ".hidden",
        "files",
        "",
        ".",
        "no/such/file",
        "files/\0",
        "files/\ud800",
        "a" * 5_000,
        "files/صورة.txt/more",
    ):
        with pytest.raises(FileNotFoundError):
            backend.workspace_file(path)


# Events


async def test_who_was_away_for_long_misses_nothing(gateway: Program, backend: OwnerBackend) -> None:
    before = await backend.version()
    many = [
        InboundMessage("telegram", f"{n % 7}", f"{n}", "9", "Sara", f"m{n}", AT, wants_answer=False)
        for n in range(1_100)
    ]
    store = gateway.app.store
    await asyncio.gather(
        *(
            store.accept(NewMessage(message, "stranger", "observed", None, "idle", 0, False, None, False, AT))
            for message in many
        )
    )
    missed = await backend.events_since(before)
    assert [data["message"]["text"] for _, data in missed] == [message.text for message in many]
    assert [at for at, _ in missed] == sorted({at for at, _ in missed})
    assert missed[-1][0] == await backend.version()
    assert await backend.events_since(await backend.version()) == []


async def test_the_answer_to_a_command_is_an_event_and_a_line_of_the_log(gateway: Program) -> None:
    seen: list[tuple[str, Any]] = []
    gateway.app.observers.add(lambda kind, data: seen.append((kind, data)))
    posted = await gateway.post("/api/messages", {"text": "/help"})
    await gateway.quiet()
    told = [(data["message"]["role"], data["message"]["n"]) for kind, data in seen if kind == "message"]
    assert told == [("user", 1), ("system", 2)]
    [_, notice] = [data for kind, data in seen if kind == "message"]
    assert notice["conversation"] == posted["conversation"]
    assert notice["version"] == await gateway.app.backend.version()
    assert "/new" in notice["message"]["text"]
    assert [line["dir"] for line in gateway.log(posted["conversation"], "inapp")] == ["in", "out"]
