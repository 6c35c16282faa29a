"""The channels there are: one line each. Nothing of a channel is imported before it is switched on."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from channels.channel import Channel, ChannelContext


@dataclass(frozen=True, slots=True)
class Entry:
    """`settings` and `channel` are `module:attribute`: the settings class, and a callable ChannelContext -> Channel."""

    settings: str
    channel: str


CHANNELS: dict[str, Entry] = {
    "inapp": Entry("channels.inapp.settings:InAppSettings", "channels.inapp.channel:InAppChannel"),
    "telegram": Entry("channels.telegram.settings:TelegramSettings", "channels.telegram.channel:TelegramChannel"),
}

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
