"""Kills the gateway again and again while people write, and proves that nothing is lost and nothing comes twice.

    python -m tests.journeys.kill --seed 1 --chats 50 --messages 20 --kills 20 [--way telegram|http] [--keep DIR]

Prints the figures as JSON; exit 1 when a promise is broken. The home of a run that broke one is kept for a look.
The seed decides what is written when, what is slow or breaks, and where the kills aim; where in the program a kill
hits is left to the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import aiohttp

from tests.journeys.echo_model import EchoModel
from tests.journeys.gateway_process import GatewayFailed, GatewayProcess
from tests.journeys.moments import Moments
from tests.journeys.verdict import Verdict, is_quiet, judge, own_word, saved_keys
from tests.journeys.ways import HttpWay, TelegramWay, Way

WAYS = ("telegram", "http")
AIMS = {
    "start": 0.0,
    "any": 0.0,
    "written": 0.03,
    "asked": 0.15,
    "called": 0.03,
    "answered": 0.03,
    "sending": 0.06,
}
"""Where a kill aims: while the gateway starts, at any time, or up to so many seconds after a moment."""
LIFE_SECONDS_MAX = 2.0
"""A life goes on at most this long before its kill looks for its moment."""
MOMENT_SECONDS_MAX = 2.0
WRITING_SECONDS = 3.5
"""What is written in one life is spread over this long."""
QUIET_SECONDS_MAX = 150.0
TORN_SHARE, INDEX_GONE_SHARE = 0.4, 0.15
"""After so many kills the last line of a read log is torn (as by a power cut), or index.db is deleted."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One run. `pace`: how long the lives and the writing take, as a multiple of the usual."""

    way: str
    seed: int
    chats: int
    messages: int
    kills: int
    pace: float = 1.0


@dataclass(slots=True)
class Run:
    """One run that is under way, and what it found."""

    plan: Plan
    folder: Path
    random: Random
    moments: Moments
    way: Way
    gateway: GatewayProcess
    ready_seconds: list[float] = field(default_factory=list[float])
    aims: Counter[str] = field(default_factory=Counter[str])
    missed: Counter[str] = field(default_factory=Counter[str])
    harm: Counter[str] = field(default_factory=Counter[str])
    broken: list[str] = field(default_factory=list[str])

    @property
    def home(self) -> Path:
        return self.folder / "home"

    async def go(self) -> Verdict:
        """From the first message to the verdict."""
        writing = asyncio.create_task(self._write(), name="people")
        try:
            for aim in self._choose_aims():
                await self._live(aim)
            await self._start()
            self.ready_seconds.append(await self.gateway.ready())
            async with asyncio.timeout(QUIET_SECONDS_MAX):
                await writing
            await self._quiet()
        finally:
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)
        journey = await self.way.journey()
        code = await self.gateway.stop()
        verdict = judge(self.home, journey)
        verdict.check(code == 0, f"the last gateway stopped with {code}")
        verdict.broken += self.broken
        return verdict

    def see_logged(self, names: Sequence[str]) -> None:
        """A turn has begun: the lines of its messages must be in the read log by now."""
        missing = {f"{name} " for name in names}
        for path in (self.home / "workspace" / "readlog" / self.way.channel).glob("*.jsonl"):
            text = path.read_text(encoding="utf-8", errors="replace")
            missing = {name for name in missing if name not in text}
            if not missing:
                return
        self.broken.append(f"a turn began before its messages were in the read log: {sorted(missing)}")

    def _choose_aims(self) -> list[str]:
        """Each aim about equally often, in random order."""
        possible = [aim for aim in AIMS if aim != "sending" or self.plan.way == "telegram"]
        aims = [possible[n % len(possible)] for n in range(self.plan.kills)]
        self.random.shuffle(aims)
        return aims

    async def _write(self) -> None:
        """People write: chats in turn by chance, each in its order, some in bursts; the pace is that of the kills."""
        turns = [chat for chat in range(1, self.plan.chats + 1) for _ in range(self.plan.messages)]
        self.random.shuffle(turns)
        numbers: Counter[int] = Counter()
        lives = self.plan.kills + 1
        per_life = len(turns) / lives
        for count, chat in enumerate(turns):
            while count >= per_life * self.gateway.starts:
                await self.moments.next("started", WRITING_SECONDS)
            numbers[chat] += 1
            name = f"m{chat}-{numbers[chat]}"
            self.way.submit(chat, name, f"This is {name} with its own word {own_word(name)}. اكتبها من فضلك.")
            if self.random.random() < 0.7:
                await asyncio.sleep(self.random.expovariate(0.7 * per_life / (WRITING_SECONDS * self.plan.pace)))
        await self.way.all_in()

    async def _start(self) -> None:
        await self.gateway.start()
        self.moments.happened("started")

    async def _live(self, aim: str) -> None:
        """One life of the gateway, with its kill, and what must be on the disk after it."""
        await self._start()
        if aim == "start":
            usual = statistics.median(self.ready_seconds) if self.ready_seconds else 1.0
            await asyncio.sleep(self.random.uniform(0.2, 1.0) * usual)
        else:
            self.ready_seconds.append(await self.gateway.ready())
            await asyncio.sleep(self.random.uniform(0.0, LIFE_SECONDS_MAX * self.plan.pace))
        if AIMS[aim]:
            if not await self.moments.next(aim, MOMENT_SECONDS_MAX * self.plan.pace):
                self.missed[aim] += 1
            await asyncio.sleep(self.random.uniform(0.0, AIMS[aim]))
        self.gateway.check_alive()
        await self.gateway.kill()
        self.aims[aim] += 1
        acknowledged = self.way.acknowledged()
        if acknowledged:
            saved = await asyncio.to_thread(saved_keys, self.home, self.way.channel, self.folder / "copy")
            gone = [name for name, key in acknowledged.items() if key not in saved]
            if gone:
                self.broken.append(f"after kill {self.aims.total()} acknowledged and not on the disk: {gone[:5]}")
        self._harm()

    def _harm(self) -> None:
        """What a kill does not do, but a power cut or a person may: it must be made good at the next start."""
        logs = sorted((self.home / "workspace" / "readlog" / self.way.channel).glob("*.jsonl"))
        if logs and self.random.random() < TORN_SHARE:
            log = self.random.choice(logs)
            size = log.stat().st_size
            os.truncate(log, max(0, size - self.random.randint(1, 60)))
            self.harm["torn"] += 1
        if self.random.random() < INDEX_GONE_SHARE:
            for path in self.home.glob("index.db*"):
                path.unlink()
            self.harm["index_gone"] += 1

    async def _quiet(self) -> None:
        """Waits until everything is answered and on its way no more."""
        expected = self.plan.chats * self.plan.messages
        deadline = time.monotonic() + QUIET_SECONDS_MAX
        while not await asyncio.to_thread(is_quiet, self.home, expected):
            self.gateway.check_alive()
            if time.monotonic() > deadline:
                self.broken.append(f"not everything was answered {QUIET_SECONDS_MAX:g} s after the last kill")
                return
            await asyncio.sleep(0.1)


@asynccontextmanager
async def _prepared(plan: Plan, folder: Path) -> AsyncGenerator[Run]:
    """Everything a run needs, ended again whatever happens."""
    random = Random(f"{plan.way} {plan.seed}")
    moments = Moments()
    async with AsyncExitStack() as stack:
        model = await stack.enter_async_context(EchoModel(Random(random.random()), moments))
        way: Way
        if plan.way == "telegram":
            way = telegram = TelegramWay(Random(random.random()), moments, plan.chats)
            await stack.enter_async_context(telegram.api)
        else:
            session = await stack.enter_async_context(aiohttp.ClientSession())
            way = http = HttpWay(Random(random.random()), moments, session)
            stack.push_async_callback(http.close)
        home = folder / "home"
        home.mkdir(parents=True)
        (home / "config.toml").write_text(
            f'[model]\nprovider = "openai"\nname = "echo"\nbase_url = {json.dumps(model.base_url)}\n\n'
            f"[heartbeat]\nenabled = false\n\n{way.settings()}",
            encoding="utf-8",
        )
        gateway = await stack.enter_async_context(GatewayProcess(home, folder / "gateway-errors.txt"))
        run = Run(plan, folder, random, moments, way, gateway)
        model.witness = run.see_logged
        yield run


async def run(plan: Plan, folder: Path) -> dict[str, Any]:
    """One run in a folder of its own, which must not exist yet; its figures, with the broken promises."""
    began = time.monotonic()
    async with _prepared(plan, folder) as journey:
        try:
            verdict = await journey.go()
        except (GatewayFailed, AssertionError, TimeoutError) as error:
            verdict = Verdict({}, [*journey.broken, f"{type(error).__name__}: {error}"])
        starts = journey.gateway.starts
    return {
        "way": plan.way,
        "seed": plan.seed,
        "messages": plan.chats * plan.messages,
        "kills": journey.aims.total(),
        "restarts": starts - 1,
        "ready_median_seconds": round(statistics.median(journey.ready_seconds), 2) if journey.ready_seconds else None,
        "ready_max_seconds": round(max(journey.ready_seconds, default=0.0), 2),
        **verdict.figures,
        "aims": dict(journey.aims),
        "moments_missed": dict(journey.missed),
        "harm": dict(journey.harm),
        "broken": verdict.broken[:20],
        "seconds": round(time.monotonic() - began, 1),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Kills the gateway while people write, and checks what it promises.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--chats", type=int, default=50)
    parser.add_argument("--messages", type=int, default=20)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--way", choices=WAYS, help="without it: both")
    parser.add_argument("--keep", type=Path, help="keep the homes in this folder")
    options = parser.parse_args(arguments)
    folder = options.keep or Path(tempfile.mkdtemp(prefix="hudhud-journey-"))
    figures: list[dict[str, Any]] = []
    for way in [options.way] if options.way else WAYS:
        plan = Plan(way, options.seed, options.chats, options.messages, options.kills)
        figures.append(asyncio.run(run(plan, folder / f"{way}-{options.seed}")))
    broken = any(figure["broken"] for figure in figures)
    print(json.dumps({"runs": figures}, indent=2, ensure_ascii=False))
    if broken:
        print(f"A promise was broken. The homes are in {folder}.", file=sys.stderr)
    elif options.keep is None:
        shutil.rmtree(folder)
    return int(broken)


if __name__ == "__main__":
    sys.exit(main())
