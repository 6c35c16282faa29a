"""The memory library of a home, for commands that need no gateway; a running one is not disturbed."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from agent.types import CallContext
from channels.registry import CHANNELS
from gateway.backend import OWNER
from gateway.cli_errors import no_such
from gateway.cli_options import Place
from gateway.home import CONFIG, prepare
from gateway.library import Library


@asynccontextmanager
async def opened(place: Place, *, fresh: bool = False) -> AsyncGenerator[Library]:
    """Opens the library; `fresh`: what changed by hand, or is not indexed yet, is found too.

    Raises CliError when there is no home, HomeError and StoreError when it cannot be used.
    """
    if not (place.home / CONFIG).exists():
        raise no_such(f"There is no home at {place.home}.", "Make one with `hudhud init`, or name another with --home.")
    prepare(place.home, place.settings.agent.name)
    library = await Library.open(place.home, place.settings)
    try:
        if fresh:
            await library.upkeep.settle()
        await library.open_meaning(place.settings.memory.embeddings)
        yield library
    finally:
        await library.close()


def owner_call() -> CallContext:
    """A tool call that the owner makes from the command line, outside of any conversation."""
    now = datetime.now(UTC)
    return CallContext(OWNER, "", "", f"cli-{now:%y%m%d%H%M%S}-{secrets.token_hex(4)}", now)


def show_channels(place: Place, library: Library) -> None:
    """Tells the library how the channels are: as the running gateway says, else that they are off."""
    client = place.client()
    if client is None:
        for name in CHANNELS:
            library.health.add(name, enabled=place.settings.channel(name).enabled).state(
                "off", "no gateway runs", "Start it with `hudhud run`."
            )
        return
    found = client.get("/api/status")

    async def running() -> dict[str, Any]:
        return found

    library.state.running = running
    for channel in found["channels"]:
        report = library.health.add(channel["channel"], enabled=channel["enabled"])
        report.state(channel["state"], channel["detail"], channel["remedy"])
        library.health.known(
            channel["channel"], received=_time(channel["last_receive_at"]), sent=_time(channel["last_send_at"])
        )


def _time(at: str | None) -> datetime | None:
    return None if at is None else datetime.fromisoformat(at)
