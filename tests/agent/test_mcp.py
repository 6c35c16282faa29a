"""Servers of tools over the Model Context Protocol, each a real process made with the official SDK."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
import pytest_asyncio

from agent.cerebellum import Cerebellum
from agent.mcp import McpServer, McpServers
from agent.motor import call_context
from agent.skills import Capability
from agent.types import ToolCall, ToolFailure
from tests.fakes.skills import Notes, skill_folder
from tests.fakes.turns import MONDAY, a_turn
from tests.fakes.waiting import until

pytest.importorskip("mcp")
PROGRAM = Path(__file__).parents[1] / "fakes" / "mcp_server.py"
SHELF = McpServer("shelf", sys.executable, (str(PROGRAM),), {"SHELF_KEY": "k"})
CONTEXT = call_context(a_turn(), MONDAY)


class Pauses:
    """In the place of sleeping: notes the pauses and ends each when the test lets it."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.go_on = asyncio.Event()

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)
        await self.go_on.wait()
        self.go_on.clear()


class Running:
    """Servers that run, and a registry that knows them."""

    def __init__(self, servers: McpServers, registry: Cerebellum, pauses: Pauses) -> None:
        self.servers, self.registry, self.pauses = servers, registry, pauses

    def capability(self, name: str = "shelf") -> Capability:
        self.registry.refresh()
        return next(one for one in self.registry.capabilities() if one.name == name)

    async def there(self, name: str = "shelf") -> None:
        await until(lambda: self.capability(name).fault is None, 30)

    async def gone(self, name: str = "shelf") -> str:
        def fault() -> bool:
            return "tried again" in (self.capability(name).fault or "")

        await until(fault, 30)
        return self.capability(name).fault or ""

    async def call(self, name: str, **args: object) -> str:
        return await self.registry.execute_tool(CONTEXT, ToolCall("1", name, args))


@asynccontextmanager
async def running(tmp_path: Path, *settings: McpServer, notes: bool = False) -> AsyncIterator[Running]:
    pauses = Pauses()
    servers = McpServers(settings, tmp_path, sleep=pauses)
    folders = [skill_folder(tmp_path / "skills")] if notes else []
    registry = Cerebellum(Notes().functions(), folders, sources=[servers])
    task = asyncio.create_task(servers.run())
    try:
        yield Running(servers, registry, pauses)
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def children() -> list[int]:
    found: list[int] = []
    for listing in Path(f"/proc/{os.getpid()}/task").glob("*/children"):
        found += [int(pid) for pid in listing.read_text().split()]
    return found


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shelf(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    """A server for the tests that leave it as it is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OUR_TOKEN", "t")
        async with running(tmp_path_factory.mktemp("shelf"), SHELF) as on:
            assert on.capability().fault == "it is being started."
            with pytest.raises(ToolFailure, match="no tool named look"):
                await on.call("look", word="plan")
            await on.there()
            yield on


@pytest.mark.asyncio(loop_scope="module")
async def test_a_server_is_a_capability_whose_tools_can_be_called(shelf: Running) -> None:
    look = shelf.registry.spec("look")
    assert look is not None
    assert (look.description, look.read_only, look.outside, look.asks) == ("Looks a word up.", True, True, "")
    assert look.parameters["required"] == ["word"]
    assert await shelf.call("look", word="الخطة") == "about الخطة"
    assert "- shelf: Tools of the server shelf" in shelf.registry.lines("owner")
    assert shelf.registry.lines("allowed") == ""
    assert shelf.registry.tools("allowed") == ()


@pytest.mark.asyncio(loop_scope="module")
async def test_a_tool_that_does_not_call_itself_harmless_is_asked_about(shelf: Running) -> None:
    wipe = shelf.registry.spec("wipe")
    assert wipe is not None
    assert not wipe.read_only
    assert wipe.asks == "It may change something at the server shelf."


@pytest.mark.asyncio(loop_scope="module")
async def test_odd_names_long_results_and_pictures_are_made_fit(shelf: Running) -> None:
    text = await shelf.call("read_all")
    assert len(text) <= 100_000
    assert "left out" in text
    assert await shelf.call("picture") == "the vase\n[image/png, 3 bytes, not shown]"


@pytest.mark.asyncio(loop_scope="module")
async def test_what_the_server_calls_a_failure_is_one(shelf: Running) -> None:
    with pytest.raises(ToolFailure, match="the shelf fell"):
        await shelf.call("fall")
    assert await shelf.call("look", word="a") == "about a"


@pytest.mark.asyncio(loop_scope="module")
async def test_a_server_gets_its_own_variables_and_none_of_ours(shelf: Running) -> None:
    names = (await shelf.call("secrets")).split()
    assert "SHELF_KEY" in names
    assert "OUR_TOKEN" not in names


async def test_a_name_that_is_taken_gets_the_server_before_it(tmp_path: Path) -> None:
    other = McpServer("cellar", SHELF.command, SHELF.args)
    async with running(tmp_path, SHELF, other, notes=True) as on:
        await on.there("shelf")
        await on.there("cellar")
        names = [tool.name for tool in on.capability("shelf").tools]
        assert "shelf_look" in names  # the notes have a tool look
        assert "wipe" in names
        assert "cellar_wipe" in [tool.name for tool in on.capability("cellar").tools]
        assert await on.call("cellar_wipe", shelf=3) == "shelf 3 is clear"


async def test_a_server_that_cannot_be_started_says_why_and_is_tried_with_growing_pauses(tmp_path: Path) -> None:
    absent = McpServer("absent", "no-such-program-here")
    broken = McpServer("broken", sys.executable, (str(PROGRAM), "--broken"), {"SHELF_KEY": "sesame-1"})
    async with running(tmp_path, absent) as on:
        assert "no-such-program-here" in await on.gone("absent")
        for wanted in ([1.0, 5.0], [1.0, 5.0, 15.0], [1.0, 5.0, 15.0, 60.0]):
            on.pauses.go_on.set()
            await until(lambda wanted=wanted: on.pauses.seconds == wanted, 10)
    async with running(tmp_path, broken, SHELF) as on:
        assert "shelf: no wood for [redacted: secret]" in await on.gone("broken")
        await on.there("shelf")
        assert "Not available" in on.registry.lines("owner")


async def test_a_server_that_falls_is_reported_and_comes_back(tmp_path: Path) -> None:
    async with running(tmp_path, SHELF) as on:
        await on.there()
        with pytest.raises(ToolFailure, match="nobody knows whether it did it"):
            await on.call("leave")
        await on.gone()
        assert on.registry.spec("look") is None
        on.pauses.go_on.set()
        await on.there()
        assert await on.call("look", word="again") == "about again"


async def test_a_server_that_is_killed_while_idle_is_noticed(tmp_path: Path) -> None:
    before = set(children())
    async with running(tmp_path, SHELF) as on:
        await on.there()
        (pid,) = set(children()) - before
        os.kill(pid, signal.SIGKILL)
        await on.gone()
        assert on.registry.spec("look") is None


async def test_the_programs_end_with_us(tmp_path: Path) -> None:
    before = set(children())
    async with running(tmp_path, SHELF) as on:
        await on.there()
        assert set(children()) - before
    assert not set(children()) - before


async def test_a_server_over_http(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]

    async def start() -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            sys.executable, str(PROGRAM), str(port), stderr=asyncio.subprocess.DEVNULL
        )

    process = await start()
    try:
        async with running(tmp_path, McpServer("far", url=f"http://127.0.0.1:{port}/mcp")) as on:
            await _let_go_on_until(on, lambda: on.capability("far").fault is None)
            assert await on.call("look", word="plan") == "about plan"
            process.kill()
            await process.wait()
            with pytest.raises(ToolFailure):
                await on.call("look", word="plan")
            await on.gone("far")
            process = await start()
            await _let_go_on_until(on, lambda: on.capability("far").fault is None)
            assert await on.call("look", word="plan") == "about plan"
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def _let_go_on_until(on: Running, condition: Callable[[], bool]) -> None:
    def there() -> bool:
        on.pauses.go_on.set()
        return condition()

    await until(there, 30)
