"""Secrets that were said are kept as they were said, and go nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.redaction import MARK
from gateway.cli_library import owner_call
from gateway.config import Settings, known_secrets
from tests.fakes.program import EchoProvider, Program, program, settings_for
from tests.fakes.terminal import Shell

KEY = "sk-proj-" + "aB3" * 16
OWN, SERVERS = "own-token-of-this-home", "sesame-of-the-shelf"
SAID = f"the melon key is {KEY}, password: hunter2, and {OWN} or {SERVERS}"
SECRETS = (KEY, "hunter2", OWN, SERVERS)


def settings() -> Settings:
    servers = {"shelf": {"command": "no-such-program", "env": {"SHELF_KEY": SERVERS}}}
    return settings_for(model={"api_key": OWN}, mcp={"servers": servers})


def leaks(text: object) -> list[str]:
    return [secret for secret in SECRETS if secret in str(text)]


async def told(gateway: Program) -> str:
    posted = await gateway.post("/api/messages", {"text": SAID})
    await gateway.quiet()
    return posted["conversation"]


async def test_no_tool_of_the_memory_shows_one_and_the_truth_keeps_it(tmp_path: Path) -> None:
    async with program(tmp_path / "h", settings=settings(), provider=EchoProvider()) as gateway:
        id_ = await told(gateway)
        tools, call = gateway.app.library.introspect, owner_call()
        session = {"session_key": f"inapp:{id_}"}
        answers = [
            await tools.memory_search(call, {"query": "melon"}),
            await tools.memory_search_json(call, {"query": "melon"}),
            await tools.memory_get(call, {"ref": f"conversation:{id_}#1"}),
            await tools.conversation_list(call, {}),
            await tools.conversation_read(call, {"id": id_}),
            await tools.conversation_read_json(call, {"id": id_}),
            await tools.wolffish_recall(call, {"query": "melon"}),
            await tools.sessions.sessions_search(call, {"query": "melon"}),
            await tools.sessions.sessions_history(call, session),
            await tools.sessions.sessions_history_json(call, session),
            await gateway.get("/api/search?query=melon"),
            await gateway.get("/api/conversations"),
        ]
        for answer in answers:
            assert MARK in str(answer)
            assert leaks(answer) == []
        assert gateway.rows("SELECT text FROM message WHERE n = 1") == [(SAID,)]
        shown = await gateway.get(f"/api/conversations/{id_}")
        assert shown["messages"][0]["text"] == SAID


async def test_what_is_recalled_and_what_is_kept_of_a_prompt_hold_none(tmp_path: Path) -> None:
    provider = EchoProvider()
    home = tmp_path / "h"
    async with program(home, settings=settings(), provider=provider) as gateway:
        await told(gateway)
        await gateway.post("/api/messages", {"text": "which melon key is it?", "conversation": "new"})
        await gateway.quiet()
        recalled = provider.prompts[-1].messages[-1].text
        assert MARK in recalled
        assert leaks(recalled) == []
        # What the person writes now reaches the model as it is.
        assert leaks(provider.prompts[0].messages[-1].text) == list(SECRETS)
    pages = [path.read_text(encoding="utf-8") for path in (home / "workspace/brain/prefrontal/.debug").glob("*.md")]
    assert any(MARK in page for page in pages)
    assert leaks(pages) == []


def test_every_secret_of_the_settings_is_known() -> None:
    assert {OWN, SERVERS} <= set(known_secrets(settings()))
    url = {"servers": {"shelf": {"url": "https://example.org/mcp?key=open-sesame"}}}
    assert "?key=open-sesame" in known_secrets(settings_for(mcp=url))


@pytest.mark.parametrize("command", [("memory", "search", "melon"), ("memory", "get", "file:memory.md")])
def test_commands_show_none_either(shell: Shell, command: tuple[str, ...]) -> None:
    shell.prepared()
    shell.write("workspace/memory.md", f"# Melons\n\nthe melon key is {KEY}, password: hunter2\n")
    for more in ((), ("--json",)):
        said = shell(*command, *more)
        assert MARK in said.out
        assert leaks(said.out) == []
