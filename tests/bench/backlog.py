"""A backlog of Telegram updates, a chat that Telegram wants left alone, and memory over many messages."""

from __future__ import annotations

import asyncio
import json
import random
import time
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.bench.figures import figure
from tests.bench.made_up import OWNER, texts
from tests.bench.processes import memory_megabytes, program
from tests.fakes.bot_api import BotApi, flood
from tests.fakes.waiting import until

CHATS = 20
FLOODED_CHAT = 100
FLOOD_SECONDS = 60
LOGGED_GROUP = -500
TURN_EVERY = 50
"""In the long run every so many messages are one for the agent, the others are only logged."""


class _Telegram:
    """A Bot API and a gateway of its own process on a home."""

    def __init__(self, api: BotApi, pid: int) -> None:
        self.api = api
        self.pid = pid

    async def answered(self, chats: set[int], seconds_max: float = 120.0) -> None:
        """Until each of these chats has had a reply after everything was confirmed."""
        await self.api.until(lambda: not self.api.pending, seconds_max)
        await self.api.until(lambda: chats <= {message.chat_id for message in self.api.sent}, seconds_max)


async def _gateway(stack: AsyncExitStack, home: Path, api: BotApi) -> _Telegram:
    arguments = ("-m", "tests.bench.server", "--home", str(home), "--telegram", api.base_url)
    process = await stack.enter_async_context(program(*arguments))
    assert process.stdout is not None
    await process.stdout.readline()
    return _Telegram(api, process.pid)


async def _backlog(updates: int) -> tuple[float, float, bool]:
    """Seconds from the first poll until all is confirmed, and until all is answered; and whether each chat was taken in
    its order."""
    with TemporaryDirectory() as folder:
        async with AsyncExitStack() as stack:
            api = await stack.enter_async_context(BotApi())
            for number in range(updates):
                api.push_text(100 + number % CHATS, f"text {number}", user_id=OWNER)
            await _gateway(stack, Path(folder), api)
            await api.until(lambda: api.count("getUpdates") > 0, 60)
            begun = time.perf_counter()
            await api.until(lambda: not api.pending, 120)
            durable = time.perf_counter() - begun
            log = Path(folder) / "workspace" / "readlog" / "telegram"
            wanted = {100 + number for number in range(min(CHATS, updates))}
            await until(lambda: all(_is_answered(log / f"{chat}.jsonl", updates, chat - 100) for chat in wanted), 120)
            answered = time.perf_counter() - begun
            return durable, answered, all(_in_order(log / f"{chat}.jsonl", updates, chat - 100) for chat in wanted)


def _lines(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]


def _is_answered(path: Path, updates: int, first: int) -> bool:
    lines = _lines(path)
    heard = sum(line["dir"] == "in" for line in lines)
    return heard == len(range(first, updates, CHATS)) and bool(lines) and lines[-1]["dir"] == "out"


def _in_order(path: Path, updates: int, first: int) -> bool:
    heard = [line["text"] for line in _lines(path) if line["dir"] == "in"]
    return heard == [f"text {number}" for number in range(first, updates, CHATS)]


async def _flooded(chats: int) -> tuple[float, float]:
    """Seconds until all chats but one are answered: when no chat is flooded, and when that one is."""
    took: dict[bool, float] = {}
    for is_flooded in (False, True):
        with TemporaryDirectory() as folder:
            async with AsyncExitStack() as stack:
                api = await stack.enter_async_context(BotApi())
                telegram = await _gateway(stack, Path(folder), api)
                await api.until(lambda api=api: api.polling, 60)
                if is_flooded:
                    api.script("sendMessage", *[flood(FLOOD_SECONDS, FLOODED_CHAT)] * 3)
                begun = time.perf_counter()
                for chat in range(chats):
                    api.push_text(FLOODED_CHAT + chat, "hello", user_id=OWNER)
                await telegram.answered({FLOODED_CHAT + chat for chat in range(1, chats)})
                took[is_flooded] = time.perf_counter() - begun
                assert any(message.chat_id == FLOODED_CHAT for message in api.sent) is not is_flooded
    return took[False], took[True]


async def _memory(messages: int) -> tuple[float, float]:
    """Megabytes after a fifth of the messages, and after all."""
    seen: list[float] = []
    with TemporaryDirectory() as folder:
        async with AsyncExitStack() as stack:
            api = await stack.enter_async_context(BotApi())
            telegram = await _gateway(stack, Path(folder), api)
            await api.until(lambda: api.polling, 60)
            batch = max(1, min(1_000, messages // 20))
            words = texts(messages, random.Random(7))
            for number in range(messages):
                is_turn = number % TURN_EVERY == 0
                chat = 100 + number % CHATS if is_turn else LOGGED_GROUP - number % CHATS
                api.push_text(chat, next(words), user_id=OWNER if is_turn else 55)
                if (number + 1) % batch == 0:
                    await api.until(lambda: len(api.pending) < batch // 2, 120)
                    # What the server of the bench itself remembers is not to be measured by a slow bench.
                    api.calls.clear()
                if number + 1 in {messages // 5, messages}:
                    await api.until(lambda: not api.pending, 120)
                    await asyncio.sleep(1)
                    seen.append(memory_megabytes(telegram.pid))
    first, last = seen
    return first, last


async def run(updates: int, chats: int, messages: int) -> list[dict[str, Any]]:
    durable, answered, in_order = await _backlog(updates)
    if not in_order:
        raise RuntimeError("a chat of the backlog was not taken in its order")
    quiet, flooded = await _flooded(chats)
    first, last = await _memory(messages)
    return [
        figure("backlog_durable", durable),
        figure("backlog_answered", answered),
        figure("backlog_flood_others", flooded, quiet),
        figure("backlog_memory_growth", last - first),
        figure("backlog_memory", last),
    ]
