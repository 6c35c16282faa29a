"""Debug snapshots: for each prompt a Markdown file that shows exactly what the model got and what it cost."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from urllib.parse import quote

from agent.files import replace_file
from agent.limits import SNAPSHOT_PAUSE_SECONDS, SNAPSHOTS_KEPT
from agent.types import Prompt, Turn

_log = logging.getLogger(__name__)
PROMPTS = Path("brain") / "prefrontal" / ".debug"
_HEAD_BYTES = 2_048
"""In so much of a page stands which conversation it is of."""


@dataclass(frozen=True, slots=True)
class Source:
    """A part of a prompt: the kind whose budget it used, where it came from, its estimated tokens and why it is in."""

    kind: str
    name: str
    tokens: int
    why: str


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """`at` is the local time in the file's name."""

    at: datetime
    turn: Turn
    prompt: Prompt
    sources: tuple[Source, ...]
    budget: Mapping[str, int]


class Snapshots:
    """Keeps the newest 50 as files, without secrets. They are written in a thread, some time after the turn: no answer
    waits for them, and what a busy second would write only to delete it again is never written."""

    def __init__(self, workspace: Path, redact: Callable[[str], str]) -> None:
        self._folder = workspace / PROMPTS
        self._redact = redact
        self._waiting: deque[_Snapshot] = deque(maxlen=SNAPSHOTS_KEPT)
        self._timer: asyncio.TimerHandle | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="snapshots")
        self._names: deque[str] | None = None

    def write(
        self, at: datetime, turn: Turn, prompt: Prompt, sources: Sequence[Source], budget: Mapping[str, int]
    ) -> None:
        """Notes what to write; `at` is the local time in the file's name. Called on the running event loop."""
        self._waiting.append(_Snapshot(at, turn, prompt, tuple(sources), budget))
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(SNAPSHOT_PAUSE_SECONDS, self._hand_over)

    def forget(self, conversation_id: str) -> None:
        """Deletes what was kept of a conversation, and what is still to be written of it."""
        self._waiting = deque(
            (waiting for waiting in self._waiting if waiting.turn.conversation_id != conversation_id), SNAPSHOTS_KEPT
        )
        self._thread.submit(drop_prompts, self._folder, conversation_id)

    def close(self) -> None:
        """Writes what waits and returns when it is on disk."""
        if self._timer is not None:
            self._timer.cancel()
            self._hand_over()
        self._thread.shutdown(wait=True)

    def _hand_over(self) -> None:
        self._timer = None
        waiting = tuple(self._waiting)
        self._waiting.clear()
        self._thread.submit(self._write_all, waiting)

    def _write_all(self, snapshots: Sequence[_Snapshot]) -> None:
        try:
            for snapshot in snapshots:
                self._write(snapshot)
        except OSError as error:
            _log.warning("prompts could not be written to .debug: %s", error)

    def _write(self, snapshot: _Snapshot) -> None:
        if self._names is None:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._names = deque(sorted(path.name for path in self._folder.glob("*.md")))
        at = snapshot.at
        turn_id = quote(snapshot.turn.id, safe="")
        name = f"{at:%Y-%m-%d_%H-%M-%S}.{at.microsecond // 1000:03}-{turn_id}.md"
        # Made for looking into, not for keeping: no fsync.
        replace_file(self._folder / name, self._redact(_page(snapshot)), durable=False)
        if name not in self._names:
            self._names.append(name)
        while len(self._names) > SNAPSHOTS_KEPT:
            (self._folder / self._names.popleft()).unlink(missing_ok=True)


def drop_prompts(folder: Path, conversation_id: str) -> None:
    """Deletes the kept prompts of a conversation: each holds what was said before it."""
    line = f"- Conversation: {conversation_id}\n".encode()
    for path in folder.glob("*.md"):
        try:
            with path.open("rb") as file:
                is_of = line in file.read(_HEAD_BYTES)
            if is_of:
                path.unlink()
        except OSError as error:
            _log.warning("a kept prompt could not be deleted: %s", error)


def _page(snapshot: _Snapshot) -> str:
    at, turn, prompt, sources, budget = (snapshot.at, snapshot.turn, snapshot.prompt, snapshot.sources, snapshot.budget)
    lines = [
        f"# Prompt of turn {turn.id}",
        "",
        f"- Time: {at.isoformat(timespec='milliseconds')}",
        f"- Session: {turn.session_key}",
        f"- Conversation: {turn.conversation_id}",
        f"- Estimated tokens: {sum(source.tokens for source in sources)}",
        f"- Budget: {', '.join(f'{kind} {tokens}' for kind, tokens in budget.items())}",
        "",
        "| kind | source | tokens | why |",
        "| --- | --- | --- | --- |",
        *(f"| {item.kind} | {item.name.replace('|', '/')} | {item.tokens} | {item.why} |" for item in sources),
        "",
        "## System",
        "",
        prompt.system,
    ]
    for number, message in enumerate(prompt.messages, 1):
        lines += ["", f"## Message {number}: {message.role}{f' {message.call_id}' if message.call_id else ''}", ""]
        lines.append(message.text)
        lines += [f"- call {call.id} {call.name} {json.dumps(dict(call.args), default=str)}" for call in message.calls]
    lines += ["", "## Tools", ""]
    lines += [
        f"- {tool.name}: {tool.description} {json.dumps(tool.parameters, ensure_ascii=False, default=str)}"
        for tool in prompt.tools
    ]
    return "\n".join(lines) + "\n"
