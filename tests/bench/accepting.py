"""From message to disk: the inbox alone, over HTTP, and the same transaction on a plain connection, one by one."""

from __future__ import annotations

import asyncio
import json
import random
import sqlite3
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count, cycle
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from channels.message import InboundMessage
from gateway.store import Store, inbound
from gateway.store.indexing import Indexer
from tests.bench.drivers import PageDriver
from tests.bench.figures import figure, percentile
from tests.bench.made_up import new_message, texts
from tests.bench.processes import program
from tests.fakes.hub import OWNER, Desk, Hub, echo, hub, telegram_settings

ROUNDS = 3
"""The ways take turns so often; the median of the rounds counts."""
CLIENTS = 64

Accept = Callable[[int], Awaitable[None]]
"""Saves one message of the client with this number; returns when it is on disk."""


@dataclass(slots=True)
class Measured:
    """One way of accepting. Seconds."""

    took: list[float] = field(default_factory=list[float])
    rates: list[float] = field(default_factory=list[float])
    rows: int = 0
    commits: int = 0


_numbers = count(1)


class _Asleep:
    """`gateway.inbox.Wake` for a queue that runs nothing: as if each message found its lane idle."""

    def wake(self, session_key: str, *, scheduled: bool) -> bool:
        return True


async def _load(accept: Accept, clients: int, messages: int, measured: Measured) -> None:
    """`messages` in all, from so many clients that each wait for theirs."""

    async def client(number: int) -> None:
        for _ in range(max(1, messages // clients)):
            begun = time.perf_counter()
            await accept(number)
            measured.took.append(time.perf_counter() - begun)

    before, begun = len(measured.took), time.perf_counter()
    await asyncio.gather(*(client(number) for number in range(clients)))
    measured.rates.append((len(measured.took) - before) / (time.perf_counter() - begun))
    measured.rows += len(measured.took) - before


class Bare:
    """The inbox's transaction on a connection of its own, without threads."""

    def __init__(self, home: Path, words: Sequence[str]) -> None:
        self._connection = sqlite3.connect(home / "hudhud.db", isolation_level=None, cached_statements=512)
        self._connection.row_factory = sqlite3.Row
        for setting in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON", "wal_autocheckpoint = 2000"):
            self._connection.execute(f"PRAGMA {setting}")
        self._indexer = Indexer(home / "index.db")
        self._indexer.attach(self._connection)
        self._words = cycle(words)
        self._numbers = count(1)

    def load(self, messages: int, measured: Measured) -> None:
        start = time.perf_counter()
        for _ in range(messages):
            number = next(self._numbers)
            begun = time.perf_counter()
            new = new_message(str(number % CLIENTS), number, next(self._words), datetime.now(UTC), waiting=True)
            self._connection.execute("BEGIN IMMEDIATE")
            inbound.accept(self._connection, self._indexer, new)
            self._connection.execute("COMMIT")
            measured.took.append(time.perf_counter() - begun)
        measured.rates.append(messages / (time.perf_counter() - start))

    def close(self) -> None:
        self._connection.close()


async def run(single: int, many: int) -> list[dict[str, Any]]:
    """`single`: messages of one client a round; `many`: of all 64 together."""
    words = list(texts(2_000, random.Random(13)))
    results = {name: Measured() for name in ("bare", "direct_1", "direct_64", "http_1", "http_64")}
    with TemporaryDirectory() as folder:
        homes = {name: Path(folder) / name for name in ("bare", "direct", "http")}
        homes["bare"].mkdir()
        await _make_database(homes["bare"])
        async with (
            hub(homes["direct"], echo, telegram_settings(), watched=False) as core,
            program("-m", "tests.bench.server", "--home", str(homes["http"]), "--silent") as process,
        ):
            core.inbox.connect(_Asleep(), Desk(core.queue))
            assert process.stdout is not None
            port = json.loads(await process.stdout.readline())["port"]
            async with PageDriver.open(port) as page:
                over_http = await _over_http(page, words)
                with closing(Bare(homes["bare"], words)) as bare:
                    for _ in range(ROUNDS):
                        bare.load(single, results["bare"])
                        await _direct(core, words, single, many, results)
                        await _http(process, over_http, single, many, results)
    return _figures(results)


async def _make_database(home: Path) -> None:
    store = Store(home)
    await store.open()
    await store.close()


async def _direct(core: Hub, words: Sequence[str], single: int, many: int, results: dict[str, Measured]) -> None:
    texts_again = cycle(words)

    async def accept(client: int) -> None:
        await core.inbox.accept(
            InboundMessage(
                "telegram", str(client), f"m{next(_numbers)}", OWNER, "Owner", next(texts_again), datetime.now(UTC)
            )
        )

    for clients, messages in ((1, single), (CLIENTS, many)):
        measured = results[f"direct_{clients}"]
        before = core.store.commits
        await _load(accept, clients, messages, measured)
        measured.commits += core.store.commits - before


async def _over_http(page: PageDriver, words: Sequence[str]) -> Accept:
    """Posts to a gateway whose model never answers: nothing but accepting happens there."""
    conversations = [await page.post(words[0]) for _ in range(CLIENTS)]
    texts_again = cycle(words)

    async def accept(client: int) -> None:
        await page.post(next(texts_again), conversations[client])

    return accept


async def _http(
    process: asyncio.subprocess.Process, accept: Accept, single: int, many: int, results: dict[str, Measured]
) -> None:
    for clients, messages in ((1, single), (CLIENTS, many)):
        measured = results[f"http_{clients}"]
        before = await _commits(process)
        await _load(accept, clients, messages, measured)
        measured.commits += await _commits(process) - before


async def _commits(process: asyncio.subprocess.Process) -> int:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"\n")
    return json.loads(await process.stdout.readline())["commits"]


def _figures(results: dict[str, Measured]) -> list[dict[str, Any]]:
    bare = results.pop("bare")
    rate = median(bare.rates)
    figures: list[dict[str, Any]] = []
    for name, measured in results.items():
        figures += [
            figure(
                f"accept_{name}_{what}", percentile(measured.took, share) * 1000, percentile(bare.took, share) * 1000
            )
            for what, share in (("p50", 0.5), ("p99", 0.99))
        ]
        figures.append(figure(f"accept_{name}_rows_per_second", median(measured.rates), rate))
        if name.endswith("_64"):
            figures.append(figure(f"accept_{name}_times_bare", median(measured.rates) / rate))
            figures.append(figure(f"accept_{name}_rows_per_commit", measured.rows / max(1, measured.commits), 1))
    return figures
