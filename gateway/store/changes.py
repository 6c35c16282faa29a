"""What a person's edit or removal does to a message, whichever of the two came first."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from typing import Any

from gateway.store.indexing import Indexer
from gateway.store.sql import SQL
from gateway.store.types import MessageState

TRANSCRIPT = "transcript"
"""The flag of a message whose text is what was understood of a recording."""


def next_version(connection: sqlite3.Connection) -> int:
    return connection.execute(SQL["next_version"]).fetchone()[0]


def changed_before(
    connection: sqlite3.Connection, indexer: Indexer, row: Mapping[str, Any], place: str, seq: int
) -> MessageState:
    """What its sender has changed or taken back is so from the start, when the word of it came first; its state.

    `place` begins the keys of its chat: after a move, equal ids may stand for two messages.
    """
    values = {"edits": row["message_id"], "place": place}
    changes = connection.execute(SQL["changes_of"], {**row, **values}).fetchall()
    if not changes:
        return row["state"]
    for one in changes:
        change(connection, indexer, connection.execute(SQL["message_by_seq"], {"seq": seq}).fetchone(), one)
    return connection.execute(SQL["message_by_seq"], {"seq": seq}).fetchone()["state"]


def change(connection: sqlite3.Connection, indexer: Indexer, earlier: sqlite3.Row, about: Mapping[str, Any]) -> None:
    """An edit or a removal by its own sender changes the earlier message."""
    version = next_version(connection)
    if about["kind"] == "edit":
        values = {"seq": earlier["seq"], "text": about["text"], "version": version}
        connection.execute(SQL["edit_message"], values)
    elif about["kind"] == "revoke":
        connection.execute(SQL["revoke_message"], {"seq": earlier["seq"], "version": version})
        connection.execute(SQL["hide_text"], {"id": earlier["conversation_id"], "text": earlier["text"]})
    indexer.message(connection, connection.execute(SQL["message_by_seq"], {"seq": earlier["seq"]}).fetchone())


def is_same(earlier: sqlite3.Row, text: str) -> bool:
    """Whether an edit changes no words; a recording has none of its own, those of its transcript are ours."""
    is_transcript = TRANSCRIPT in json.loads(earlier["flags"] or "[]")
    return earlier["text"] == text or (is_transcript and not text)
