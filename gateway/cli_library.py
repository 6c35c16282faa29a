"""The memory library of a home, for commands that need no gateway; a running one is not disturbed."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from agent.types import CallContext
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
            while await library.store.catch_up_index():
                pass
            await library.cortex.update_files()
        yield library
    finally:
        await library.close()


def owner_call() -> CallContext:
    """A tool call that the owner makes from the command line, outside of any conversation."""
    now = datetime.now(UTC)
    return CallContext(OWNER, "", "", f"cli-{now:%y%m%d%H%M%S}-{secrets.token_hex(4)}", now)
