"""The commands a person may type: one table, the same on every channel. Bare words are never commands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from channels.channel import MenuCommand
from gateway.sentences import Language
from heartbeat.types import CannotRun

_COMMAND = re.compile(r"/([A-Za-z_]+)(?:\s+(.*))?\s*\Z", re.DOTALL)


class Desk(Protocol):
    """What commands steer."""

    async def stop(self, session_key: str, guest: str | None = None, /) -> bool:
        """Ends the running turn of a session, of a guest (a sender's id) only their own; False when none runs."""
        ...

    async def status(self) -> dict[str, Any]: ...

    async def run_job(self, name: str, kind: str | None = None, arguments: Mapping[str, str] | None = None, /) -> None:
        """Starts a job or procedure. Raises LookupError for a name that none has, and CannotRun."""
        ...

    async def more_budget(self) -> bool:
        """Raises today's budget by its own amount; False when there is no budget."""
        ...


@dataclass(frozen=True, slots=True)
class Request:
    """A command as it was typed: where, by whom, in which language its sender writes."""

    session_key: str
    sender_id: str
    argument: str
    is_owner: bool
    language: Language


Run = Callable[[Desk, Request], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Command:
    """One line of the table. `owner_only` commands answer others that they are the owner's."""

    name: str
    help: dict[Language, str]
    run: Run
    owner_only: bool = False


def parse(text: str) -> tuple[Command, str] | None:
    """The command and its argument, None when the text is not a command of the table."""
    found = _COMMAND.match(text)
    if found is None:
        return None
    command = COMMANDS.get(found.group(1).lower())
    return None if command is None else (command, (found.group(2) or "").strip())


async def run(command: Command, desk: Desk, request: Request) -> str:
    """The answer to a command."""
    if command.owner_only and not request.is_owner:
        return {"en": "This command is the owner's.", "ar": "هذا الأمر للمالك وحده."}[request.language]
    return await command.run(desk, request)


async def _new(desk: Desk, request: Request) -> str:
    # The conversation was closed in the transaction that saved the command: what came after it is in the new one.
    return {
        "en": "A new conversation begins with your next message.",
        "ar": "تبدأ محادثة جديدة مع رسالتك التالية.",
    }[request.language]


async def _stop(desk: Desk, request: Request) -> str:
    if await desk.stop(request.session_key, None if request.is_owner else request.sender_id):
        return {"en": "Stopped.", "ar": "توقّف."}[request.language]
    return {"en": "Nothing is running here.", "ar": "لا شيء قيد التنفيذ هنا."}[request.language]


async def _status(desk: Desk, request: Request) -> str:
    status = await desk.status()
    queue = status["queue"]
    lines = [
        {
            "en": f"Running for {_duration(status['uptime_seconds'])}, model: {status['model']}.",
            "ar": f"يعمل منذ {_duration(status['uptime_seconds'])}، النموذج: {status['model']}.",
        }[request.language],
        {
            "en": f"Waiting messages: {queue['waiting']}. Replies on their way: {queue['deliveries']}.",
            "ar": f"الرسائل المنتظرة: {queue['waiting']}. الردود في الطريق: {queue['deliveries']}.",
        }[request.language],
    ]
    lines += [
        f"- {channel['channel']}: {channel['state']}" + (f" ({channel['detail']})" if channel["detail"] else "")
        for channel in status["channels"]
        if channel["enabled"]
    ]
    return "\n".join(lines)


async def _budget(desk: Desk, request: Request) -> str:
    if request.argument.casefold() not in {"more", "المزيد"}:
        return {
            "en": "Send `/budget more` to raise today's budget for the model by its own amount.",
            "ar": "أرسل ‎`/budget more` لزيادة ميزانية النموذج لهذا اليوم بمقدارها نفسه.",
        }[request.language]
    if await desk.more_budget():
        return {"en": "Today's budget is raised until midnight.", "ar": "رُفعت ميزانية اليوم حتى منتصف الليل."}[
            request.language
        ]
    return {"en": "There is no budget to raise.", "ar": "لا توجد ميزانية لزيادتها."}[request.language]


async def _run(desk: Desk, request: Request) -> str:
    name, arguments = _named(request.argument)
    if not name:
        return {
            "en": "Send `/run NAME` to start a job or a procedure now, and `/run NAME word=value` to give it a value.",
            "ar": "أرسل ‎`/run NAME` لبدء مهمة أو إجراء الآن، و‎`/run NAME word=value` لإعطائه قيمة.",
        }[request.language]
    try:
        await desk.run_job(name, None, arguments)
    except LookupError:
        return {"en": f"No job is called {name}.", "ar": f"لا توجد مهمة باسم {name}."}[request.language]
    except CannotRun as error:
        return {"en": f"Not started: {error}", "ar": f"لم تبدأ: {error}"}[request.language]
    return {"en": f"Started: {name}.", "ar": f"بدأت: {name}."}[request.language]


def _named(argument: str) -> tuple[str, dict[str, str]]:
    """The name of a job, and the values after it: `report city="New York" week=46`."""
    try:
        words = shlex.split(argument)
    except ValueError:  # a quote that is not closed belongs to the name
        words = argument.split()
    first = next((n for n, word in enumerate(words) if "=" in word[1:]), len(words))
    pairs = (word.partition("=") for word in words[first:])
    return " ".join(words[:first]), {word: value for word, _, value in pairs}


async def _help(desk: Desk, request: Request) -> str:
    head = {
        "en": "Write to me as to a person. These commands help:",
        "ar": "اكتب لي كما تكتب لأي شخص. وهذه أوامر مساعدة:",
    }[request.language]
    shown = [
        f"/{command.name}: {command.help[request.language]}"
        for name, command in COMMANDS.items()
        if name == command.name and (request.is_owner or not command.owner_only)
    ]
    return "\n".join([head, "", *shown])


def _duration(seconds: float) -> str:
    minutes = int(seconds) // 60
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return f"{days}d {hours}h" if days else f"{hours}h {minutes:02}m"


_TABLE = (
    Command("new", {"en": "begin a new conversation", "ar": "بدء محادثة جديدة"}, _new),
    Command("stop", {"en": "stop what is running here", "ar": "إيقاف ما يجري هنا"}, _stop),
    Command(
        "status", {"en": "what runs, and how the channels are", "ar": "حالة العمل والقنوات"}, _status, owner_only=True
    ),
    Command(
        "budget",
        {"en": "`/budget more` raises today's budget", "ar": "‎`/budget more` يزيد ميزانية اليوم"},
        _budget,
        owner_only=True,
    ),
    Command(
        "run",
        {"en": "`/run NAME` starts a job or a procedure now", "ar": "‎`/run NAME` يبدأ مهمة أو إجراء الآن"},
        _run,
        owner_only=True,
    ),
    Command("help", {"en": "this list", "ar": "هذه القائمة"}, _help),
)
COMMANDS: dict[str, Command] = {command.name: command for command in _TABLE}
# What Telegram's own start button sends.
COMMANDS["start"] = COMMANDS["help"]
MENU = tuple(MenuCommand(command.name, dict(command.help.items()), command.owner_only) for command in _TABLE)
"""What a channel may show as a menu."""
