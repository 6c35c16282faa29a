"""`hudhud tasks`: what the agent did, a task for each turn that called tools."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from gateway.cli_errors import no_such
from gateway.cli_options import Place
from gateway.cli_output import print_json, say, table, when

FOLDER = "workspace/brain/motor/tasks"
_FACT = re.compile(r"- (ID|Status|Conversation|Created|Updated|Steps): (.*)")
_HEAD_LINES = 12


def tasks(place: Place, id_: str | None, *, limit: int, as_json: bool) -> None:
    """The latest tasks, or one with its steps. Raises CliError when there is no such one."""
    folder = place.home / FOLDER
    if id_ is not None:
        _one(place, folder, id_.removeprefix("task:"), as_json)
        return
    newest = sorted(folder.glob("TASK-*.md"), key=lambda path: path.stat().st_mtime_ns, reverse=True)[:limit]
    found = [_facts(path) for path in newest]
    if as_json:
        print_json({"tasks": found})
        return
    rows = [
        (task["id"], task["status"], task["steps"], when(task["updated"] or None, place.zone), task["conversation"])
        for task in found
    ]
    if rows:
        table(("task", "state", "steps", "last step", "conversation"), rows, state="state")


def _one(place: Place, folder: Path, part: str, as_json: bool) -> None:
    from agent.redaction import Redactor
    from gateway.config import known_secrets

    matches = [path for path in _pages(folder) if part in unquote(path.stem)]
    exact = [path for path in matches if unquote(path.stem) == f"TASK-{part}"] or matches
    if len(exact) != 1:
        names = ", ".join(unquote(path.stem).removeprefix("TASK-") for path in exact[:8])
        raise no_such(
            f"Several tasks match {part!r}: {names}." if exact else f"There is no task {part!r}.",
            "`hudhud tasks` shows which there are.",
        )
    text = Redactor(known_secrets(place.settings))(exact[0].read_text(encoding="utf-8", errors="replace"))
    if as_json:
        print_json({**_facts(exact[0]), "text": text})
    else:
        say(text.rstrip("\n"))


def _pages(folder: Path) -> Iterator[Path]:
    yield from sorted(folder.glob("TASK-*.md"))


def _facts(path: Path) -> dict[str, str]:
    """The head of a task's page."""
    facts = {"id": "", "status": "", "conversation": "", "created": "", "updated": "", "steps": ""}
    with path.open(encoding="utf-8", errors="replace") as file:
        for _ in range(_HEAD_LINES):
            if match := _FACT.match(file.readline().rstrip("\n")):
                facts[match[1].lower()] = match[2]
    return facts
