"""Files that a person, another program or the agent itself writes beside the conversation are found at once."""

from __future__ import annotations

import time
from pathlib import Path

from agent.types import StreamChunk, Usage
from tests.fakes.program import Program, program, settings_for
from tests.fakes.scripted_provider import ScriptedProvider, said
from tests.fakes.waiting import until

CALLED = (StreamChunk("usage", usage=Usage(requests=1)), StreamChunk("stop", text="calls"))


async def found(gateway: Program, query: str) -> tuple[list[str], float]:
    """References of what a search finds, once it finds something, and the seconds that took."""
    begun = time.perf_counter()
    refs: list[str] = []

    async def is_there() -> bool:
        refs[:] = [hit["ref"] for hit in (await gateway.get(f"/api/search?query={query}"))["hits"]]
        return bool(refs)

    await until(is_there, 10)
    return refs, time.perf_counter() - begun


def put(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


async def test_a_file_written_by_hand_is_found_within_a_second(tmp_path: Path) -> None:
    async with program(tmp_path / "h") as gateway:
        await gateway.app.watcher.settled.wait()
        workspace = gateway.home / "workspace"
        took: list[float] = []
        for word in ("walrus", "penguin", "ostrich"):
            put(workspace / "bank" / f"{word}.md", f"# Zoo\n\nA {word} was seen.\n")
            refs, seconds = await found(gateway, word)
            assert refs == [f"file:bank/{word}.md#L3"]
            took.append(seconds)
        assert min(took) < 1
        (workspace / "bank/walrus.md").unlink()

        async def is_gone() -> bool:
            return not (await gateway.get("/api/search?query=walrus"))["hits"]

        await until(is_gone, 10)


async def test_what_changed_while_the_program_was_down_is_seen(tmp_path: Path) -> None:
    async with program(tmp_path / "h") as gateway:
        put(gateway.home / "workspace/trip.md", "a walrus")
        await found(gateway, "walrus")
    put(tmp_path / "h/workspace/trip.md", "two penguins")
    put(tmp_path / "h/workspace/new.md", "an ostrich")
    async with program(tmp_path / "h") as gateway:
        assert (await found(gateway, "penguins"))[0] == ["file:trip.md#L1"]
        assert (await found(gateway, "ostrich"))[0] == ["file:new.md#L1"]
        assert (await gateway.get("/api/search?query=walrus"))["hits"] == []


async def test_a_configured_folder_that_was_absent_at_the_start_is_found_without_a_restart(tmp_path: Path) -> None:
    settings = settings_for(memory={"folders": ["kb", str(tmp_path / "notes")]})
    async with program(tmp_path / "h", settings=settings) as gateway:
        await gateway.app.watcher.settled.wait()
        put(gateway.home / "kb/new.md", "a walrus")
        assert (await found(gateway, "walrus"))[0] == ["file:folders/kb/new.md#L1"]
        put(tmp_path / "notes/deep/list.txt", "a penguin")
        assert (await found(gateway, "penguin"))[0] == ["file:folders/notes/deep/list.txt#L1"]


async def test_status_names_what_is_not_searched(tmp_path: Path) -> None:
    async with program(tmp_path / "h") as gateway:
        (gateway.home / "workspace/memories.md").symlink_to("/etc/hostname")

        async def is_named() -> bool:
            index = (await gateway.get("/api/status"))["index"]
            reason = "it is a link that leaves the workspace"
            return index["skipped"] == [{"path": "memories.md", "reason": reason}] and index["skipped_count"] == 1

        await until(is_named, 10)


async def test_a_file_that_the_agent_wrote_names_its_conversation(tmp_path: Path) -> None:
    args = '{"path": "files/walrus-report.txt", "text": "seen"}'
    call = (StreamChunk("call", index=0, call_id="1", name="write_file", arguments=args), *CALLED)
    async with program(tmp_path / "h", provider=ScriptedProvider(call, said("Done."))) as gateway:
        await gateway.ask("Write the report.")
        conversation = gateway.rows("SELECT conversation_id FROM tool_call JOIN message ON seq = message_seq")[0][0]

        async def says_so() -> bool:
            hits = (await gateway.get("/api/search?query=walrus-report&sources=artifact"))["hits"]
            return any(f"from conversation:{conversation}#2.1 (write_file)" in hit["snippet"] for hit in hits)

        await until(says_so, 10)
