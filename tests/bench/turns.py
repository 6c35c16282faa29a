"""From message to reply with a model that answers at once: in an empty home, in a full one, and the bare libraries."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from tests.bench.drivers import BotDriver, Driver, PageDriver
from tests.bench.figures import figure
from tests.bench.made_up import fill, texts
from tests.bench.processes import cpu_seconds, free_port, program, until_ready
from tests.fakes.bot_api import BotApi

TURNS_A_CONVERSATION = 20
SETTLE_SECONDS = 0.3
"""What a gateway does after the reply counts as the turn's too: so long is waited for it."""


@dataclass(slots=True)
class Measured:
    """The turns of one program over one channel. Times in seconds."""

    took: list[float] = field(default_factory=list[float])
    cpu: float = 0.0

    @property
    def cpu_a_turn(self) -> float:
        return self.cpu / len(self.took)

    @property
    def p50(self) -> float:
        return median(self.took)


@dataclass(frozen=True, slots=True)
class Running:
    """A program under measurement, and who talks to it."""

    pid: int
    drivers: dict[str, Driver]


@asynccontextmanager
async def gateway(home: Path, profile: str = "") -> AsyncIterator[Running]:
    """A gateway of its own process on a home, with page and Telegram. `profile`: where to write what cProfile saw."""
    options = ("--profile", profile) if profile else ()
    async with (
        BotApi() as api,
        program(
            *("-m", "tests.bench.server", "--home", str(home), "--telegram", api.base_url, *options),
            clean_stop=bool(profile),
        ) as process,
    ):
        assert process.stdout is not None
        port = json.loads(await process.stdout.readline())["port"]
        async with PageDriver.open(port) as page:
            await api.until(lambda: api.polling, 30)
            yield Running(process.pid, {"inapp": page, "telegram": BotDriver(api)})


@asynccontextmanager
async def bare_libraries() -> AsyncIterator[Running]:
    port = free_port()
    async with (
        BotApi() as api,
        program("-m", "tests.bench.bare", "--port", str(port), "--telegram", api.base_url) as process,
    ):
        await until_ready(process, port)
        async with PageDriver.open(port) as page:
            await api.until(lambda: api.polling, 30)
            yield Running(process.pid, {"inapp": page, "telegram": BotDriver(api)})


async def measure(
    running: Running, channel: str, words: Iterator[str], measured: Measured, turns: int, settle_seconds: float
) -> None:
    """So many turns one after the other in a conversation of their own."""
    driver = running.drivers[channel]
    conversation = await driver.begin(next(words))
    await asyncio.sleep(settle_seconds)
    cpu = cpu_seconds(running.pid)
    for _ in range(turns):
        measured.took.append(await driver.turn(conversation, next(words)))
    await asyncio.sleep(settle_seconds)
    measured.cpu += cpu_seconds(running.pid) - cpu


async def one_by_one(messages: int, turns: int, settle_seconds: float = SETTLE_SECONDS) -> list[dict[str, Any]]:
    """Overhead a turn. The three programs run side by side and take turns, so that noise meets them alike."""
    words = texts(20 * turns + 1_000, random.Random(11))
    results = {(who, channel): Measured() for who in ("empty", "full", "bare") for channel in ("inapp", "telegram")}
    with TemporaryDirectory() as folder:
        await fill(Path(folder) / "full", messages)
        async with AsyncExitStack() as stack:
            running = {
                "empty": await stack.enter_async_context(gateway(Path(folder) / "empty")),
                "full": await stack.enter_async_context(gateway(Path(folder) / "full")),
                "bare": await stack.enter_async_context(bare_libraries()),
            }
            for who, channel in results:
                await measure(running[who], channel, words, Measured(), min(turns, 10), settle_seconds)
            for done in range(0, turns, TURNS_A_CONVERSATION):
                for (who, channel), measured in results.items():
                    some = min(TURNS_A_CONVERSATION, turns - done)
                    await measure(running[who], channel, words, measured, some, settle_seconds)
    figures: list[dict[str, Any]] = []
    for channel in ("inapp", "telegram"):
        empty, full, bare = (results[who, channel] for who in ("empty", "full", "bare"))
        figures += [
            figure(f"turn_{channel}_p50", empty.p50 * 1000, bare.p50 * 1000),
            figure(f"turn_{channel}_cpu", empty.cpu_a_turn, bare.cpu_a_turn),
            figure(f"turn_{channel}_full_p50", full.p50 * 1000, bare.p50 * 1000),
            figure(f"turn_{channel}_full_cpu", full.cpu_a_turn, bare.cpu_a_turn),
            figure(f"turn_{channel}_full_times_empty", full.p50 / empty.p50),
            figure(f"turn_{channel}_full_times_empty_cpu", full.cpu_a_turn / max(empty.cpu_a_turn, 1e-6)),
        ]
    return figures


async def side_by_side(chats: int, turns_a_chat: int) -> list[dict[str, Any]]:
    """Chats that each write again as soon as they have their reply."""
    words = list(texts(1_000, random.Random(12)))
    rates: dict[tuple[str, str], float] = {}
    with TemporaryDirectory() as folder:
        async with gateway(Path(folder)) as ours, bare_libraries() as bare:
            for who, running in (("ours", ours), ("bare", bare)):
                for channel, driver in running.drivers.items():
                    rates[who, channel] = await _rate(driver, chats, turns_a_chat, words)
    return [
        figure(f"chats_{channel}_turns_per_second", rates["ours", channel], rates["bare", channel])
        for channel in ("inapp", "telegram")
    ]


async def _rate(driver: Driver, chats: int, turns_a_chat: int, words: Sequence[str]) -> float:
    conversations = await asyncio.gather(*(driver.begin(words[at % len(words)]) for at in range(chats)))
    await asyncio.sleep(SETTLE_SECONDS)

    async def talk(start: int, conversation: str) -> None:
        for at in range(turns_a_chat):
            await driver.turn(conversation, words[(start * turns_a_chat + at) % len(words)])

    begun = time.perf_counter()
    await asyncio.gather(*(talk(at, conversation) for at, conversation in enumerate(conversations)))
    return chats * turns_a_chat / (time.perf_counter() - begun)
