"""`hudhud people`: who may talk to the agent."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gateway.cli_options import Home, Json, Place, place

if TYPE_CHECKING:
    from gateway.store.persons import Known, Pairing

app = typer.Typer(help="Who may talk to the agent.")
Who = Annotated[str, typer.Argument(metavar="WHO", help="Channel and id, as in telegram:123456789.")]


@app.command("list")
def list_(home: Home = None, as_json: Json = False) -> None:
    """The owner, the people let in, and the codes that strangers were given."""
    from gateway.cli_output import print_json, table, when

    where = place(home)
    known, pairings = asyncio.run(_read(where))
    people = [*_from_settings(where), *({**_let_in(one), "from": "people"} for one in known.people)]
    codes = [_code(one) for one in pairings]
    if as_json:
        print_json({"people": people, "codes": codes})
        return
    rows = [(f"{one['channel']}:{one['id']}", one["rights"], one["name"], one["from"]) for one in people]
    if rows:
        table(("person", "rights", "name", "let in by"), rows)
    if codes:
        table(
            ("code", "for", "name", "good until"),
            [(one.code, f"{one.channel}:{one.id}", one.name, when(one.expires_at, where.zone)) for one in pairings],
        )


@app.command()
def pair(
    code: Annotated[str, typer.Argument(metavar="CODE", help="The code that the stranger was given.")],
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Let in whoever was given this code.

    It works at once, also in a gateway that runs.
    """
    from gateway.cli_errors import no_such
    from gateway.cli_output import print_json, remark

    found = asyncio.run(_pair(place(home), code))
    if found is None:
        raise no_such(f"No code {code} is good now.", "`hudhud people list` shows the codes there are.")
    if as_json:
        print_json({"channel": found.channel, "id": found.id, "name": found.name, "rights": "allowed"})
    else:
        remark(f"{found.name or found.id} ({found.channel}:{found.id}) may talk to the agent.")


@app.command()
def allow(
    who: Who,
    name: Annotated[str, typer.Option(help="What they are called, for the lists.")] = "",
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Let a person in by id.

    It works at once, also in a gateway that runs.
    """
    from gateway.cli_output import print_json

    where = place(home)
    channel, person = _person(where, who)
    asyncio.run(_allow(where, channel, person, name))
    if as_json:
        print_json({"channel": channel, "id": person, "name": name, "rights": "allowed"})


@app.command()
def remove(who: Who, home: Home = None, as_json: Json = False) -> None:
    """Put a person out again.

    It works at once, also in a gateway that runs. Who stands in the settings is taken out there.
    """
    from gateway.cli_errors import no_such, used_wrongly
    from gateway.cli_output import print_json

    where = place(home)
    channel, person = _person(where, who)
    if not asyncio.run(_remove(where, channel, person)):
        if any((one["channel"], one["id"]) == (channel, person) for one in _from_settings(where)):
            raise used_wrongly(f"{who} stands in config.toml.", f"Take it out of [channels.{channel}] there.")
        raise no_such(f"Nobody called {who} was let in.", "`hudhud people list` shows who was.")
    if as_json:
        print_json({"channel": channel, "id": person, "rights": "stranger"})


def _person(where: Place, who: str) -> tuple[str, str]:
    """Channel and id; an id in the form that the channel's own settings give it."""
    from gateway.cli_errors import used_wrongly

    channel, _, person = who.partition(":")
    known = _channels(where)
    if channel not in known or not person:
        names = ", ".join(known)
        raise used_wrongly(f"`{who}` is no person of a channel.", f"Write CHANNEL:ID with one of these: {names}.")
    settings: Any = where.settings.channel(channel)
    (found,) = settings.__class__.model_validate({"allow": [person]}).allowed_ids
    return channel, found


def _channels(where: Place) -> list[str]:
    """The channels on which others can be let in."""
    from channels.registry import CHANNELS

    return [name for name in CHANNELS if hasattr(where.settings.channel(name), "allow")]


def _from_settings(where: Place) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for name in _channels(where):
        settings = where.settings.channel(name)
        for rights, ids in (("owner", settings.owner_ids), ("allowed", settings.allowed_ids)):
            found += [
                {"channel": name, "id": one, "name": "", "rights": rights, "since": None, "from": "settings"}
                for one in sorted(ids)
            ]
    return found


def _let_in(one: Any) -> dict[str, Any]:
    since = one.since.isoformat(timespec="milliseconds")
    return {"channel": one.channel, "id": one.id, "name": one.name, "rights": "allowed", "since": since}


def _code(one: Pairing) -> dict[str, Any]:
    until = one.expires_at.isoformat(timespec="milliseconds")
    return {"code": one.code, "channel": one.channel, "id": one.id, "name": one.name, "expires_at": until}


async def _read(where: Place) -> tuple[Known, list[Pairing]]:
    from gateway.cli_library import opened
    from gateway.library import utc_now

    async with opened(where) as library:
        return await library.store.known_people(), await library.store.pairings(utc_now())


async def _pair(where: Place, code: str) -> Pairing | None:
    from gateway.cli_library import opened
    from gateway.library import utc_now
    from gateway.people import typed_code

    async with opened(where) as library:
        return await library.store.pair(typed_code(code), utc_now())


async def _allow(where: Place, channel: str, person: str, name: str) -> None:
    from gateway.cli_library import opened
    from gateway.library import utc_now

    async with opened(where) as library:
        await library.store.add_person(channel, person, name, utc_now())


async def _remove(where: Place, channel: str, person: str) -> bool:
    from gateway.cli_library import opened

    async with opened(where) as library:
        return await library.store.remove_person(channel, person)
