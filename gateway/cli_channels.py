"""`hudhud channels`: how they are, linking one with an account by QR or code, and logging it out.

Through the running gateway, else right here: what arrives meanwhile is kept for the next start.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gateway.cli_errors import CliError, failed, no_such, used_wrongly
from gateway.cli_options import Home, Json, Place, place
from gateway.cli_output import print_json, remark, say

if TYPE_CHECKING:
    from channels.channel import HasLink
    from channels.message import Accepted, InboundMessage
    from gateway.client import Client

app = typer.Typer(help="The channels: state, linking, logout.")
Name = Annotated[str, typer.Argument(metavar="NAME", help="A channel, such as whatsapp.")]
State = dict[str, Any]
POLL_SECONDS = 0.5
_OVER = frozenset({"linked", "expired", "failed"})


@app.command()
def status(
    probe: Annotated[bool, typer.Option("--probe", help="Ask each for a sign of life first.")] = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """How each channel is, and what to do about it."""
    where = place(home)
    client = where.needed_client() if probe else where.client()
    found = _off(where) if client is None else client.get("/api/channels", {"probe": "1"} if probe else None)
    if as_json:
        print_json(found)
        return
    from gateway.cli_status import channel_table

    channel_table(where, found["channels"])


def _off(where: Place) -> State:
    from channels.registry import CHANNELS
    from gateway.health import Health
    from gateway.library import utc_now

    health = Health(utc_now)
    for name in CHANNELS:
        report = health.add(name, enabled=where.settings.channel(name).enabled)
        report.state("off", "no gateway runs", "Start it with `hudhud run`.")
    return health.channels()


@app.command()
def link(
    name: Name,
    phone: Annotated[
        str | None, typer.Option(metavar="N", help="Link by a code that is typed on this phone, instead of a QR.")
    ] = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Link a channel with an account.

    The QR is renewed until nobody scanned any; scan it with the phone under Settings, Linked devices.
    """
    where = place(home)
    _known(name)
    client = where.client()
    if client is None:
        state = asyncio.run(_link_here(where, name, phone))
    else:
        state = asyncio.run(_watched(_asked(client, name), client.post(_path(name), {"phone": phone} if phone else {})))
    if state["state"] != "linked":
        said = (
            "Nobody used the codes in time."
            if state["state"] == "expired"
            else f"It was not linked: {state['detail']}."
        )
        raise failed("not_linked", said, f"Try again: hudhud channels link {name}")
    if as_json:
        print_json({"channel": name, "state": "linked", "detail": state["detail"]})
    else:
        say(f"{name} is {state['detail']}." if state["detail"] else f"{name} is linked.")
        if not where.settings.channel(name).enabled:
            say(f"It is not on yet: set `enabled = true` under [channels.{name}], then `hudhud run`.")


@app.command()
def logout(name: Name, home: Home = None, as_json: Json = False) -> None:
    """Give a channel's account up and forget the session."""
    where = place(home)
    _known(name)
    client = where.client()
    told = asyncio.run(_logout_here(where, name)) if client is None else client.post(_path(name, "logout"))["told"]
    if as_json:
        print_json({"channel": name, "state": "logged_out", "told": told})
        return
    say(f"{name} is logged out; its session is forgotten.")
    if not told:
        say("The platform could not be told: remove the device on the phone too, under Settings, Linked devices.")


def _path(name: str, what: str = "link") -> str:
    from gateway.client import quoted

    return f"/api/channels/{quoted(name)}/{what}"


def _known(name: str) -> None:
    from channels.registry import CHANNELS

    if name not in CHANNELS:
        raise no_such(f"There is no channel {name!r}.", f"There are {', '.join(CHANNELS)}.")


def _asked(client: Client, name: str) -> Callable[[], Awaitable[State]]:
    async def ask() -> State:
        return await asyncio.to_thread(client.get, _path(name))

    return ask


async def _watched(ask: Callable[[], Awaitable[State]], first: State) -> State:
    """Shows each code until the linking is over."""
    state, shown = first, -1
    while True:
        if state["version"] != shown:
            shown = state["version"]
            _show(state)
        if state["state"] in _OVER:
            return state
        await asyncio.sleep(POLL_SECONDS)
        state = await ask()


def _show(state: State) -> None:
    """The code, on stderr: it is for the eyes of whoever sits here."""
    if state["qr"]:
        import segno

        segno.make_qr(state["qr"]).terminal(out=sys.stderr, border=2, compact=True)
        remark("Scan it with the phone: Settings, Linked devices, Link a device. A new one follows when it is used up.")
    elif state["code"]:
        remark(
            f"Type this code on the phone: {state['code']} (Settings, Linked devices, Link a device, "
            "Link with phone number instead)."
        )
    elif state["state"] == "starting":
        remark("Asking for a code...")


async def _link_here(where: Place, name: str, phone: str | None) -> State:
    async with _channel(where, name) as channel:
        try:
            channel.link(phone)
        except ValueError as error:
            raise used_wrongly(f"--phone: {phone!r} is none; allowed: {error}.") from error
        listening = asyncio.ensure_future(_listen(channel))

        async def ask() -> State:
            return _state(channel)

        try:
            return await _watched(ask, _state(channel))
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)


def _state(channel: HasLink) -> State:
    from dataclasses import asdict

    return asdict(channel.link_state)


async def _listen(channel: Any) -> None:
    from channels.channel import ChannelDown

    with suppress(ChannelDown):
        await channel.run(_kept)


async def _kept(message: InboundMessage) -> Accepted:
    """Nobody saves messages here: what comes stays written down for the gateway."""
    del message
    await asyncio.Event().wait()
    raise AssertionError("nobody sets that event")


async def _logout_here(where: Place, name: str) -> bool:
    async with _channel(where, name) as channel:
        return await channel.logout()


@asynccontextmanager
async def _channel(where: Place, name: str) -> AsyncGenerator[HasLink]:
    """The channel alone, on a home that no gateway holds. Raises CliError for one that has no link."""
    from channels import registry
    from channels.channel import ChannelContext, HasLink
    from gateway.cli_library import opened
    from gateway.home import HomeLock
    from gateway.library import utc_now
    from gateway.uploads import UploadFolder
    from gateway.wiring import FactMemory

    lock = HomeLock(where.home)
    async with opened(where) as library:
        lock.acquire()
        try:
            channel = registry.create(
                name,
                ChannelContext(
                    settings=where.settings.channel(name),
                    home=where.home,
                    health=library.health.add(name, enabled=True),
                    memory=FactMemory(library.store, name),
                    uploads=UploadFolder(where.home / "workspace", utc_now),
                    backend=None,
                    now=utc_now,
                ),
            )
            if not isinstance(channel, HasLink):
                raise CliError(2, "no_link", f"{name} is not linked by a code.", "Its settings are in config.toml.")
            yield channel
        finally:
            lock.release()
