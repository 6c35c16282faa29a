"""The recipe of docs/add-a-channel.md, followed to the letter."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import channels
from channels.channel import Channel, SendRefused
from channels.message import Address, OutboundMessage
from channels.registry import Entry, load
from tests.contracts.test_channel_contract import ChannelContract, ChannelWorld
from tests.fakes.channel_ports import Inbox, at_once, context
from tests.fakes.waiting import until

RECIPE = (Path(__file__).parents[2] / "docs" / "add-a-channel.md").read_text(encoding="utf-8")
FILES = ("settings.py", "wire.py", "channel.py")


def written(place: str) -> str:
    """The text that the recipe gives for a file: the block after these words."""
    found = re.search(rf"{re.escape(place)}:\n\n```\w+\n(.*?)```", RECIPE, re.DOTALL)
    assert found, place
    return found[1]


@pytest.fixture
def letterbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The recipe's folder, importable as what it is."""
    folder = tmp_path / "recipe" / "letterbox"
    folder.mkdir(parents=True)
    for name in FILES:
        (folder / name).write_text(written(f"`letterbox/{name}`"), encoding="utf-8")
    monkeypatch.setattr(channels, "__path__", [*channels.__path__, str(folder.parent)])
    yield import_module("channels.letterbox.channel")
    for name in [name for name in sys.modules if name.startswith("channels.letterbox")]:
        del sys.modules[name]


class LetterboxWorld:
    chat = "sara"

    def __init__(self, module: Any, home: Path) -> None:
        self.home = home
        self.channel: Channel = module.LetterboxChannel(context(module.LetterboxSettings(), home), sleep=at_once)
        self._number = 0

    def heard(self, text: str) -> str:
        return text

    async def write(self, text: str) -> None:
        self._number += 1
        box = self.home / "letterbox" / "in"
        box.mkdir(parents=True, exist_ok=True)
        (box / f"sara.{self._number}.txt").write_text(text, encoding="utf-8")

    def acknowledged(self) -> bool:
        return not list((self.home / "letterbox" / "in").iterdir())

    async def until_acknowledged(self) -> None:
        await until(self.acknowledged)


class TestLetterbox(ChannelContract):
    @pytest.fixture
    def world(self, letterbox: Any, tmp_path: Path) -> ChannelWorld:
        return LetterboxWorld(letterbox, tmp_path / "home")


async def test_what_is_answered_lies_in_the_box(letterbox: Any, tmp_path: Path) -> None:
    world = LetterboxWorld(letterbox, tmp_path / "home")
    message = OutboundMessage("reply:1", Address("letterbox", "sara"), "hello")
    for _ in range(2):
        receipt = await world.channel.send(message)
    assert receipt.message_ids == ("sara.reply-1.txt",)
    (letter,) = (tmp_path / "home" / "letterbox" / "out").iterdir()
    assert letter.read_text() == "hello"
    with pytest.raises(SendRefused):
        await world.channel.send(OutboundMessage("reply:2", Address("letterbox", "sara"), " "))


async def test_what_is_no_letter_is_put_aside(letterbox: Any, tmp_path: Path) -> None:
    world = LetterboxWorld(letterbox, tmp_path / "home")
    box = tmp_path / "home" / "letterbox" / "in"
    box.mkdir(parents=True)
    (box / "note.txt").write_text("no number")
    inbox = Inbox()
    task = asyncio.create_task(world.channel.run(inbox))
    await world.write("a letter")
    await inbox.until_saved(1)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert inbox.texts == ["a letter"]
    assert [path.name for path in box.iterdir()] == ["note.bad"]


def test_the_line_of_the_registry_names_what_is_there(letterbox: Any) -> None:
    found = re.search(r'`"letterbox": (Entry\([^`]*\))`', RECIPE)
    assert found
    entry = Entry(*re.findall(r'"([^"]+)"', found[1]))
    assert load(entry.channel) is letterbox.LetterboxChannel
    assert load(entry.settings) is letterbox.LetterboxSettings
