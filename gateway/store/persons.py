"""People who were let in while the program ran, and the codes that strangers were given."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from datetime import datetime

from gateway.store.sql import SQL
from gateway.store.types import from_ms, safe_text, to_ms


@dataclass(frozen=True, slots=True)
class LetIn:
    """A person beside those of the settings."""

    channel: str
    id: str
    name: str
    since: datetime


@dataclass(frozen=True, slots=True)
class Pairing:
    """A code that a stranger was given and nobody has typed yet."""

    code: str
    channel: str
    id: str
    name: str
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Known:
    """All that decides who may be talked to, besides the settings: people, and the old id of each chat that moved."""

    people: tuple[LetIn, ...]
    moves: dict[tuple[str, str], str]


def known(connection: sqlite3.Connection) -> Known:
    rows = connection.execute(SQL["people"]).fetchall()
    moves = connection.execute(SQL["chat_moves"]).fetchall()
    return Known(
        tuple(LetIn(row["channel"], row["id"], row["name"], from_ms(row["since"])) for row in rows),
        {(row["channel"], row["new_chat"]): row["old_chat"] for row in moves},
    )


def add(connection: sqlite3.Connection, channel: str, person_id: str, name: str, now: datetime) -> None:
    values = {"channel": channel, "id": safe_text(person_id), "name": safe_text(name), "now": to_ms(now)}
    connection.execute(SQL["add_person"], values)


def remove(connection: sqlite3.Connection, channel: str, person_id: str) -> bool:
    """False: nobody of that id was let in."""
    return bool(connection.execute(SQL["remove_person"], {"channel": channel, "id": person_id}).rowcount)


def pairings(connection: sqlite3.Connection, now: datetime) -> list[Pairing]:
    """The codes that are good now, the oldest first."""
    rows = connection.execute(SQL["pairings"], {"now": to_ms(now)}).fetchall()
    return [Pairing(row["code"], row["channel"], row["id"], row["name"], from_ms(row["expires_at"])) for row in rows]


def open_pairing(connection: sqlite3.Connection, wanted: Pairing, now: datetime, open_max: int) -> bool:
    """Keeps a new code; False when this person has one already, or so many of the channel are open."""
    connection.execute(SQL["remove_pairing"], {"code": "", "now": to_ms(now)})
    there = [one for one in pairings(connection, now) if one.channel == wanted.channel]
    if len(there) >= open_max or any(one.id == wanted.id for one in there):
        return False
    connection.execute(
        SQL["add_pairing"],
        {
            "code": wanted.code,
            "channel": wanted.channel,
            "id": safe_text(wanted.id),
            "name": safe_text(wanted.name),
            "expires_at": to_ms(wanted.expires_at),
        },
    )
    return True


def pair(connection: sqlite3.Connection, code: str, now: datetime) -> Pairing | None:
    """Lets in whoever was given this code, once; None when no such code is good now."""
    found = next((one for one in pairings(connection, now) if one.code == code), None)
    if found is not None:
        add(connection, found.channel, found.id, found.name, now)
        connection.execute(SQL["remove_pairing"], {"code": code, "now": to_ms(now)})
    return found
