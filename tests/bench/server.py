"""The whole gateway with a model that costs nothing, as a program: `python -m tests.bench.server --home DIR ...`.

Prints one line of JSON when it is ready. A line on stdin is answered with what the store has committed; SIGTERM or
the end of stdin stops it.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import json
import signal
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

from agent.types import Prompt, StreamChunk, Usage
from gateway.app import App
from gateway.config import Settings
from tests.bench.made_up import OWNER
from tests.fakes.bot_api import TOKEN as BOT_TOKEN

TOKEN = "bench-token"
REPLY = "An answer that was there at once."


class InstantModel:
    """Answers at once in one chunk. `silent`: never answers, so that nothing but accepting happens."""

    name = "instant"
    model = ""
    local = True

    def __init__(self, *, silent: bool = False) -> None:
        self._silent = silent

    async def stream(self, prompt: Prompt) -> AsyncGenerator[StreamChunk, None]:
        if self._silent:
            await asyncio.Event().wait()
        yield StreamChunk("text", text=REPLY)
        yield StreamChunk("usage", usage=Usage(requests=1))
        yield StreamChunk("stop", text="end")

    async def close(self) -> None:
        """There is nothing to close."""


def settings(telegram: str = "", port: int = 0) -> Settings:
    """Page and Telegram (when there is a Bot API), no clock."""
    channels: dict[str, object] = {"inapp": {"port": port, "token": TOKEN}}
    if telegram:
        channels["telegram"] = {"enabled": True, "token": BOT_TOKEN, "base_url": telegram, "owner": OWNER}
    return Settings.model_validate({"channels": channels, "heartbeat": {"enabled": False}})


async def _serve(home: Path, telegram: str, *, silent: bool) -> None:
    app = App(home, settings(telegram), provider=InstantModel(silent=silent))
    await app.start()
    assert app.server is not None
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)

    async def answer() -> None:
        while await reader.readline():
            _say({"commits": app.store.commits})
        stop.set()

    answering = asyncio.create_task(answer())
    _say({"port": int(app.server.address.rpartition(":")[2])})
    await stop.wait()
    answering.cancel()
    await app.stop()


def _say(fact: dict[str, int]) -> None:
    sys.stdout.write(json.dumps(fact) + "\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--telegram", default="", metavar="URL", help="the root of a Bot API")
    parser.add_argument("--silent", action="store_true", help="a model that never answers")
    parser.add_argument("--profile", type=Path, metavar="FILE", help="write what cProfile saw, for pstats")
    options = parser.parse_args()
    work = _serve(options.home, options.telegram, silent=options.silent)
    if options.profile is None:
        asyncio.run(work)
        return
    with cProfile.Profile() as profile:
        asyncio.run(work)
    profile.dump_stats(options.profile)


if __name__ == "__main__":
    main()
