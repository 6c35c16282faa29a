"""Chats that have another id now."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

from channels.message import Address
from gateway.store.sql import SQL


def current_chat(connection: sqlite3.Connection, channel: str, chat: str) -> tuple[str, str]:
    """What a chat id means now, and what the keys of its messages begin with: the id that they came with, where the
    chat that it became counts its messages anew."""
    moved = connection.execute(SQL["moved_chat"], {"channel": channel, "chat": chat}).fetchone()
    if moved is None:
        return chat, f"{chat}/"
    return moved["new_chat"], f"{chat if moved['renumbered'] else moved['new_chat']}/"


def current_address(connection: sqlite3.Connection, address: Address) -> Address:
    """Where an address is now: what is said there belongs to the one chat that both ids stand for."""
    chat, _ = current_chat(connection, address.channel, address.chat_id)
    return address if chat == address.chat_id else replace(address, chat_id=chat)
