"""The program as people start it: until it is ready, what it holds when idle, and its help."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from tests.bench.figures import figure
from tests.bench.processes import cpu_seconds, free_port, memory_megabytes, program, until_ready, wall_seconds
from tests.bench.server import TOKEN
from tests.fakes.bot_api import TOKEN as BOT_TOKEN
from tests.fakes.bot_api import BotApi

CONFIG = """\
[channels.inapp]
port = {port}
token = "{token}"
[channels.telegram]
enabled = true
token = "{bot_token}"
base_url = "{base_url}"
owner = 7
"""


async def run(starts: int, idle_seconds: float, warm_ups: int = 1) -> list[dict[str, Any]]:
    """Medians of so many starts, one of ours and one of the bare libraries by turns. Those before do not count: they
    make the home and the compiled files."""
    ready: dict[str, list[tuple[float, float, float]]] = {"ours": [], "bare": []}
    helped: dict[str, list[float]] = {"ours": [], "bare": []}
    with TemporaryDirectory() as folder:
        port = free_port()
        async with BotApi() as api:
            config = CONFIG.format(port=port, token=TOKEN, bot_token=BOT_TOKEN, base_url=api.base_url)
            (Path(folder) / "config.toml").write_text(config, encoding="utf-8")
            programs = {
                "ours": ("-m", "gateway", "run", "--home", folder),
                "bare": ("-m", "tests.bench.bare", "--port", str(port), "--telegram", api.base_url),
            }
            for at in range(-warm_ups, starts):
                for name, arguments in programs.items():
                    measured = await _start(arguments, port, api, 0 if at < 0 else idle_seconds)
                    if at >= 0:
                        ready[name].append(measured)
        for _ in range(starts + 2 * warm_ups):
            helped["ours"].append(await wall_seconds("-m", "gateway", "--help"))
            helped["bare"].append(await wall_seconds("-c", "print('help')"))
    seconds, cpu, megabytes = [median(values) for values in zip(*ready["ours"], strict=True)]
    bare_seconds, bare_cpu, bare_megabytes = [median(values) for values in zip(*ready["bare"], strict=True)]
    return [
        figure("start_until_ready", seconds, bare_seconds),
        figure("start_cpu", cpu, bare_cpu),
        figure("idle_memory", megabytes, bare_megabytes),
        figure("help", median(helped["ours"]), median(helped["bare"])),
    ]


async def _start(arguments: tuple[str, ...], port: int, api: BotApi, idle_seconds: float) -> tuple[float, float, float]:
    """Seconds until ready, CPU seconds until then, and megabytes in memory after `idle_seconds` more."""
    begun = time.perf_counter()
    async with program(*arguments) as process:
        await until_ready(process, port, TOKEN)
        seconds, cpu = time.perf_counter() - begun, cpu_seconds(process.pid)
        await api.until(lambda: api.polling, 30)
        await asyncio.sleep(idle_seconds)
        return seconds, cpu, memory_megabytes(process.pid)
