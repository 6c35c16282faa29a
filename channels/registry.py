"""The channels there are: one line each. Nothing of a channel is imported before it is switched on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from channels.channel import Channel, ChannelContext
from channels.message import Export, ExportOptions


@dataclass(frozen=True, slots=True)
class Entry:
    """`settings`, `channel` and `export` are `module:attribute`: the settings class, a callable
    ChannelContext -> Channel, and what reads that app's export files: (Path, ExportOptions) -> Export."""

    settings: str
    channel: str
    export: str | None = None


CHANNELS: dict[str, Entry] = {
    "inapp": Entry("channels.inapp.settings:InAppSettings", "channels.inapp.channel:InAppChannel"),
    "telegram": Entry(
        "channels.telegram.settings:TelegramSettings",
        "channels.telegram.channel:TelegramChannel",
        "channels.telegram.export:read_export",
    ),
    "whatsapp": Entry(
        "channels.whatsapp.settings:WhatsAppSettings",
        "channels.whatsapp.channel:WhatsAppChannel",
        "channels.whatsapp.export:read_export",
    ),
}

SERVER = "inapp"
"""Whose settings say where the one HTTP server listens."""

ALIASES = {"electron": "inapp"}


def load(target: str) -> Any:
    """The object behind `module:attribute`."""
    module, _, attribute = target.partition(":")
    return getattr(import_module(module), attribute)


def settings_class(name: str) -> Any:
    """The pydantic class of `[channels.<name>]`; raises KeyError for a name that is not here."""
    return load(CHANNELS[name].settings)


def create(name: str, context: ChannelContext) -> Channel:
    """Imports the channel and builds it. Raises ImportError with the remedy when a library is missing."""
    return load(CHANNELS[name].channel)(context)


def export_reader(name: str) -> Callable[[Path, ExportOptions], Export]:
    """Reads and checks the export files of an app; raises KeyError where none can be read.

    What it returns raises ExportError for a file that is none of that app's, OSError when it cannot be read.
    """
    target = CHANNELS[name].export
    if target is None:
        raise KeyError(name)
    return load(target)
