"""The menu of commands that Telegram shows beside the message box."""

from __future__ import annotations

import hashlib
import json
import logging

import telegram
from telegram.error import TelegramError

from channels.channel import ChannelMemory, MenuCommand, NotAccepted
from channels.telegram.request import RawBot

log = logging.getLogger(__name__)
_LANGUAGES = {"": "en", "ar": "ar"}
"""Telegram's code of a language, and ours; the empty one is for everybody else."""


async def register(
    bot: RawBot, bot_id: str, commands: tuple[MenuCommand, ...], owner: str, memory: ChannelMemory
) -> None:
    """Shows everybody the common commands, and the owner all of them; nothing is asked when nothing changed.

    A menu is a convenience: when Telegram does not take it, that is logged and all.
    """
    wanted = json.dumps([[c.name, dict(c.help), c.owner_only] for c in commands]) + owner
    mark = hashlib.sha256(wanted.encode()).hexdigest()
    if not commands or await memory.get(f"menu:{bot_id}") == mark:
        return
    try:
        for code, language in _LANGUAGES.items():
            common = [_shown(command, language) for command in commands if not command.owner_only]
            await bot.set_my_commands(common, language_code=code or None)
            if owner.isdigit():
                everything = [_shown(command, language) for command in commands]
                scope = telegram.BotCommandScopeChat(int(owner))
                await bot.set_my_commands(everything, scope=scope, language_code=code or None)
        await memory.put(f"menu:{bot_id}", mark)
    except (TelegramError, NotAccepted, TypeError, ValueError) as error:
        # Whoever never wrote to the bot has no chat for a menu yet: the next start tries again.
        log.info("the menu of commands was not registered: %s", type(error).__name__)


def _shown(command: MenuCommand, language: str) -> telegram.BotCommand:
    return telegram.BotCommand(command.name, command.help[language].replace("`", ""))
