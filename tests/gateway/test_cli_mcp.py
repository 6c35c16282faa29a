"""`hudhud mcp`: the official client on the other end of its pipes."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import mcp_types as types
from mcp import StdioServerParameters
from mcp.client.client import Client
from mcp.client.stdio import stdio_client

from agent.limits import HISTORY_ANSWER_BYTES, SESSION_SEARCH_BYTES
from gateway.store import Store
from tests.bench.made_up import START, new_message
from tests.fakes.terminal import ROOT, Shell

Conversation = Callable[[Client], Awaitable[Any]]


def served(shell: Shell, talk: Conversation) -> Any:
    """Starts the server on the shell's home, as a client's settings would, and lets `talk` use it."""
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "gateway", "mcp", "--home", str(shell.home)],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]},
    )

    async def run() -> Any:
        async with Client(stdio_client(server)) as client:
            return await talk(client)

    return asyncio.run(run())


def text(result: types.CallToolResult) -> str:
    [content] = result.content
    assert isinstance(content, types.TextContent)
    return content.text


def test_the_retrieval_tools_are_offered_and_nothing_that_acts(shell: Shell) -> None:
    async def talk(client: Client) -> types.ListToolsResult:
        return await client.list_tools()

    tools = {tool.name: tool for tool in served(shell.prepared(), talk).tools}
    assert {"memory_search", "memory_get", "memory_save", "sessions_search", "conversation_read"} <= set(tools)
    assert not {"run_command", "write_file", "send_message", "read_file", "load_capability"} & set(tools)
    assert tools["memory_search"].input_schema["required"] == ["query"]
    hints = {name: tool.annotations.read_only_hint for name, tool in tools.items() if tool.annotations}
    assert (hints["memory_search"], hints["memory_save"]) == (True, False)


def test_what_is_saved_is_found_in_the_shapes_of_the_commands(shell: Shell) -> None:
    shell.prepared()
    shell("memory", "save", "The falcon is called Barq", "--type", "people")
    by_command = shell("memory", "search", "falcon", "--json").json

    async def talk(client: Client) -> list[types.CallToolResult]:
        found = await client.call_tool("memory_search", {"query": "falcon"})
        ref = found.structured_content["hits"][0]["ref"]
        opened = await client.call_tool("memory_get", {"ref": ref})
        saved = await client.call_tool("memory_save", {"fact": "The owl is called Layl", "type": "people"})
        return [found, opened, saved, await client.call_tool("memory_search", {"query": "owl"})]

    found, opened, saved, owl = served(shell, talk)
    assert found.structured_content == by_command
    assert "Barq" in text(opened)
    assert saved.structured_content["status"] == "saved"
    assert "Layl" in owl.structured_content["hits"][0]["snippet"]
    assert "Layl" in shell("memory", "search", "owl").out


def test_it_works_beside_a_running_gateway(shell: Shell) -> None:
    shell.prepared()
    with shell.gateway():

        async def talk(client: Client) -> list[types.CallToolResult]:
            before = await client.call_tool("memory_search", {"query": "heron"})
            await asyncio.to_thread(shell, "chat", "remember that the heron is called Nahr")
            after = await client.call_tool("memory_search", {"query": "heron"})
            return [before, after, await client.call_tool("channel_status", {})]

        before, after, channels = served(shell, talk)
    assert before.structured_content["hits"] == []
    assert "Nahr" in after.structured_content["hits"][0]["snippet"]
    states = {channel["channel"]: channel["state"] for channel in channels.structured_content["channels"]}
    assert states["inapp"] == "connected"


def test_failures_are_answers_and_what_needs_consent_is_refused(shell: Shell) -> None:
    shell.prepared('[safety]\nconfirm = "always"\n[channels.inapp]\nport = 0\n')

    async def talk(client: Client) -> list[types.CallToolResult]:
        calls: list[tuple[str, dict[str, Any]]] = [
            ("memory_search", {"words": "x"}),
            ("memory_get", {"ref": "file:../config.toml"}),
            ("no_such_tool", {}),
            ("memory_save", {"fact": "unasked"}),
        ]
        return [await client.call_tool(name, args) for name, args in calls]

    results = served(shell, talk)
    assert all(result.is_error for result in results)
    said = [text(result) for result in results]
    assert "memory_search" in said[0]
    assert "inside the workspace" in said[1] or "private" in said[1]
    assert "no_such_tool" in said[2]
    assert "consent" in said[3]
    assert "unasked" not in shell("memory", "search", "unasked").out


def test_a_missing_home_is_one_sentence(shell: Shell) -> None:
    said = shell("mcp")
    assert said.code == 3
    assert "hudhud init" in said.err


def test_an_answer_is_no_longer_than_its_limit_in_the_text_either(shell: Shell) -> None:
    shell.prepared()

    async def fill() -> None:
        store = Store(shell.home)
        await store.open()
        for at in range(110):
            await store.accept(new_message("1", at, f"zebra {at} " + "\U0001f44d" * 280, START + timedelta(minutes=at)))
        await store.close()

    asyncio.run(fill())

    async def talk(client: Client) -> list[types.CallToolResult]:
        return [
            await client.call_tool("sessions_search", {"query": "zebra", "limit": 25}),
            await client.call_tool("sessions_history", {"session_key": "telegram:1", "limit": 110}),
        ]

    found, history = served(shell, talk)
    assert len(text(found).encode()) <= SESSION_SEARCH_BYTES
    assert len(text(history).encode()) <= HISTORY_ANSWER_BYTES
    assert found.structured_content["truncated"] is history.structured_content["truncated"] is True
