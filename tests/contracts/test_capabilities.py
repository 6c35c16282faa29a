"""The built-in capabilities beside introspect keep to the contract of every capability."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from aiohttp import web

from agent.capabilities.files.tools import Files
from agent.capabilities.memory.tools import MemoryTools
from agent.capabilities.messages.tools import Messages, Recipient
from agent.capabilities.schedule.tools import Schedule
from agent.capabilities.shell.tools import Shell
from agent.capabilities.web_fetch.tools import WebFetch
from agent.cerebellum import BUILT_IN, Cerebellum
from agent.types import CallContext, Person, ToolFunction, Viewer
from tests.contracts.test_capability_contract import AT, CapabilityContract, World
from tests.fakes.a_memory import a_memory
from tests.fakes.messenger import FakeMessenger
from tests.fakes.schedules import FakeSchedules
from tests.fakes.skills import skill_folder

OWNER = CallContext(Viewer(Person("telegram:7", "Omar", "owner")), "telegram:7", "c-1", "t", AT, "1")
GUEST = CallContext(
    Viewer(Person("telegram:8", "Guest", "allowed"), frozenset({"telegram:8"})), "telegram:8", "c-2", "t", AT, "1"
)


def owners_world(name: str, functions: Mapping[str, ToolFunction], calls: Mapping[str, Mapping[str, Any]]) -> World:
    """A capability that is the owner's alone."""
    return World(name, Cerebellum({name: functions}), functions, OWNER, GUEST, "quokka", "quokka", calls)


class TestFiles(CapabilityContract):
    @pytest.fixture
    def world(self, tmp_path: Path) -> World:
        (tmp_path / "plan.md").write_text("The quokka pays.\n", encoding="utf-8")
        calls: dict[str, dict[str, Any]] = {
            "read_file": {"path": "plan.md"},
            "write_file": {"path": "files/quokka.md", "text": "Paid."},
            "list_files": {"path": "."},
        }
        return owners_world("files", Files(tmp_path, ZoneInfo("UTC")).functions(), calls)


class TestMemory(CapabilityContract):
    seconds_max = 300

    @pytest.fixture
    async def world(self, tmp_path: Path) -> AsyncIterator[World]:
        async with a_memory(tmp_path) as memory:
            memory.day("2026-11-20", "- W @Peter: The quokka pays.")
            calls: dict[str, dict[str, Any]] = {
                "recall": {"query": "quokka"},
                "retain": {"bullet": "W: The quokka pays again."},
                "reflect": {},
            }
            yield owners_world("memory", MemoryTools(lambda: memory.reflection).functions(), calls)


class TestShell(CapabilityContract):
    seconds_max = 615

    @pytest.fixture
    def world(self, tmp_path: Path) -> World:
        return owners_world("shell", Shell(tmp_path).functions(), {"run_command": {"command": "echo quokka"}})


class TestMessages(CapabilityContract):
    @pytest.fixture
    def world(self, tmp_path: Path) -> World:
        (tmp_path / "quokka.txt").write_text("paid")
        messenger = FakeMessenger(Recipient("telegram:9", ("quokka",)))
        calls = {
            "send_message": {"text": "hello", "to": "quokka"},
            "send_file": {"path": "quokka.txt", "to": "quokka"},
        }
        return owners_world("messages", Messages(messenger, tmp_path).functions(), calls)


class TestSchedule(CapabilityContract):
    @pytest.fixture
    def world(self) -> World:
        calls: dict[str, dict[str, Any]] = {
            "schedule_create": {"when": "tomorrow at 9", "instruction": "feed the quokka"},
            "schedule_list": {},
            "schedule_edit": {"name": "quokka", "when": "Daily (08:00)"},
            "schedule_delete": {"name": "quokka"},
            "schedule_run": {"name": "quokka"},
            "procedure_step": {"step": 1, "note": "quokka"},
        }
        return owners_world("schedule", Schedule(FakeSchedules("quokka"), ZoneInfo("UTC")).functions(), calls)


class TestWebFetch(CapabilityContract):
    @pytest.fixture
    async def world(self) -> AsyncIterator[World]:
        async def page(request: web.Request) -> web.Response:
            return web.Response(text="<p>The quokka pays.", content_type="text/html")

        async def look_up(host: str, port: int) -> list[str]:
            return ["127.0.0.1"]

        app = web.Application()
        app.router.add_get("/", page)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://news.example:{runner.addresses[0][1]}/"
        fetch = WebFetch(look_up=look_up, allowed=lambda address: address.is_loopback)
        yield owners_world("web_fetch", fetch.functions(), {"web_fetch": {"url": url}})
        await runner.cleanup()


class TestLoader(CapabilityContract):
    @pytest.fixture
    def world(self, tmp_path: Path) -> World:
        skill = (
            "---\nname: poems\ndescription: Makes poems.\ntools:\n"
            "  - {name: marmot, description: Rhymes., command: [cat], rights: allowed, read_only: true}\n"
            "  - {name: quokka, description: Prints., command: [cat]}\n---\n"
        )
        registry = Cerebellum({}, [BUILT_IN, skill_folder(tmp_path, skill, "poems")])

        async def load(context: CallContext, args: Mapping[str, Any]) -> str:
            raise NotImplementedError  # The registry has its own; this stands for its name.

        calls = {"load_capability": {"name": "poems"}}
        return World("loader", registry, {"load_capability": load}, OWNER, GUEST, "quokka", "marmot", calls)
