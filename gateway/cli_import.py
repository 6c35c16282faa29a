"""`hudhud import`: exported chats become conversations, read logs and search; beside a running gateway or without."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from gateway.cli_options import Home, Json, Place, place

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from channels.message import Export
    from gateway.importer import Imported

app = typer.Typer(help="Take in exported chats.")

Zone = Annotated[
    str | None, typer.Option(metavar="IANA", help="Where its times were written, such as Asia/Riyadh; else your zone.")
]
Told = Callable[[int, int], None]


@app.command()
def whatsapp(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The exported chat, .txt or .zip.")],
    chat: Annotated[
        str | None, typer.Option(metavar="NAME", help="The chat's name; else that in the file name.")
    ] = None,
    me: Annotated[str | None, typer.Option(metavar="NAME", help="Your own name in it.")] = None,
    dates: Annotated[
        Literal["dmy", "mdy", "ymd"] | None, typer.Option(help="Order of day, month, year; else found out.")
    ] = None,
    zone: Zone = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Take in a chat that WhatsApp exported.

    A second import of the same file adds nothing.
    """
    _import(place(home), "whatsapp", file, as_json, zone=zone, chat=chat, me=me, dates=dates)


@app.command()
def telegram(
    file: Annotated[str, typer.Argument(metavar="FILE", help="result.json, of a whole account or of one chat.")],
    zone: Zone = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Take in what Telegram Desktop exported as JSON.

    A second import of the same file adds nothing.
    """
    _import(place(home), "telegram", file, as_json, zone=zone)


def _import(where: Place, app_name: str, file: str, as_json: bool, *, zone: str | None, **given: Any) -> None:
    from channels.message import ExportError, ExportOptions
    from channels.registry import CHANNELS, export_reader
    from gateway.cli_errors import failed, no_such
    from gateway.cli_progress import Progress

    path = Path(file).expanduser()
    if not path.is_file():
        raise no_such(f"There is no file {path}.", "Name the exported file.")
    times_zone = where.zone if zone is None else _zone(zone)
    owner_ids = where.settings.channel(app_name).owner_ids if app_name in CHANNELS else frozenset[str]()
    with Progress("Importing") as told:
        options = ExportOptions(times_zone, owner_ids=owner_ids, progress=told, **given)
        try:
            export = export_reader(app_name)(path, options)
            result = asyncio.run(_saved(where, export))
        except ExportError as error:
            message, stop, remedy = str(error).rpartition(". ")
            raise failed("export", message + stop.rstrip(), f"{remedy} Nothing was imported.") from error
    _report(path, export, result, as_json)


async def _saved(where: Place, export: Export) -> Imported:
    from gateway.cli_library import opened
    from gateway.home import is_held
    from gateway.importer import import_export
    from gateway.library import utc_now
    from gateway.readlog import ReadLog

    async with opened(where) as library:
        readlog = ReadLog(where.home / "workspace" / "readlog", library.store)
        if not is_held(where.home):
            await readlog.start()
        return await import_export(export, library.store, readlog, utc_now)


def _zone(name: str) -> ZoneInfo:
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    from gateway.cli_errors import used_wrongly

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise used_wrongly(f"{name!r} is no time zone.", "Give an IANA name such as Asia/Riyadh.") from error


def _report(path: Path, export: Export, result: Imported, as_json: bool) -> None:
    from gateway.cli_output import print_json, say

    skipped = {reason: count for reason, count in export.skipped.items() if count}
    unsupported = {kind: count for kind, count in export.unsupported.items() if count}
    if as_json:
        print_json(
            {
                "file": str(path),
                "messages": result.messages,
                "added": result.added,
                "known": result.known,
                "skipped": skipped,
                "unsupported": unsupported,
                "notes": list(export.notes),
                "chats": [
                    {
                        "chat": chat.chat_id,
                        "title": chat.title,
                        "messages": chat.messages,
                        "participants": list(chat.participants),
                    }
                    for chat in export.chats
                ],
            }
        )
        return
    chats = "1 chat" if len(export.chats) == 1 else f"{len(export.chats)} chats"
    say(f"{result.added} messages added, {result.known} were there already ({chats}).")
    for reason, count in skipped.items():
        say(f"Skipped: {reason} ({count}).")
    for kind, count in unsupported.items():
        say(f"Not fully supported, kept as text: {kind} ({count}).")
    for note in export.notes:
        say(note)
