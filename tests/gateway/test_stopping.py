"""What a stopped turn leaves behind."""

from __future__ import annotations

from pathlib import Path

from agent.types import StreamChunk
from tests.fakes.program import program
from tests.fakes.scripted_provider import END, ScriptedProvider
from tests.fakes.waiting import until


async def test_a_call_that_ran_when_its_turn_was_stopped_is_interrupted(tmp_path: Path) -> None:
    sleeps = StreamChunk("call", index=0, call_id="c1", name="run_command", arguments='{"command": "sleep 500"}')
    async with program(tmp_path / "home", provider=ScriptedProvider((sleeps, *END))) as gateway:
        posted = await gateway.post("/api/messages", {"text": "sleep"})
        await until(lambda: bool(gateway.rows("SELECT 1 FROM tool_call")))
        await gateway.post("/api/stop", {"conversation": posted["conversation"]}, status=200)
        await gateway.quiet()
        reply = (await gateway.get(f"/api/conversations/{posted['conversation']}"))["messages"][-1]
        assert [call["outcome"] for call in reply["tool_calls"]] == ["interrupted"]
