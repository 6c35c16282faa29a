"""How the memory writes the pages that a person edits too: never over an edit, never half, never without a way back.

`Written` remembers which lines the program itself has put into which page. So a line that is on a page but was never
written by the program is a person's, and one that the program wrote and that is gone was taken out by a person.
It is derived and small; without it every line counts as a person's.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any, cast

from agent.files import replace_file
from agent.lines import lines_of

HISTORY = ".history"
VERSIONS_KEPT = 10
DROPPED_SHARE_MAX = 0.25
"""A rewrite that would take out a larger part of a page's lines is refused."""
BEING_EDITED = "is being edited just now"
_TRIES = 5
_STATE = Path("brain") / "hippocampus" / ".written.json"
_LOCK = Path("brain") / "hippocampus"


@contextmanager
def alone(folder: Path) -> Generator[None]:
    """Keeps other threads and processes of this program out of a folder meanwhile. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def locked(workspace: Path) -> AbstractContextManager[None]:
    """Held from loading `Written` to the end of `apply`: one run at a time, whoever began it. Raises OSError."""
    return alone(lock_folder(workspace))


def lock_folder(workspace: Path) -> Path:
    """The folder that `locked` holds."""
    return workspace / _LOCK


def line_key(text: str) -> str:
    """Names a line by what it says: spacing does not count."""
    return blake2b(" ".join(text.split()).encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


def read_text(path: Path) -> str | None:
    """The text of a page; None when there is none. Raises UnreadablePage for bytes that a write would not keep."""
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise UnreadablePage(f"{path.name} holds bytes that are not UTF-8; repair it first.") from None


class UnreadablePage(Exception):
    """A page that cannot be rewritten without harm; `str()` is one sentence."""


@dataclass(slots=True)
class Written:
    """What the program wrote: for each page the keys of its lines.

    `facts` are the Retain bullets the opinions have taken in, by file and content: where each stood at last.
    `settled`: opinions whose confidence a person set, with what was counted by then. `weeks` were consolidated.
    """

    pages: dict[str, set[str]] = field(default_factory=dict)
    pending: dict[str, set[str]] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)
    settled: dict[str, tuple[float, tuple[str, ...]]] = field(default_factory=dict)
    given: dict[str, float] = field(default_factory=dict)
    weeks: set[str] = field(default_factory=set)

    def knows(self, page: str) -> Collection[str]:
        return self.pages.get(page, ())


def load_written(workspace: Path) -> Written:
    """What is known of earlier writes; nothing when the file is gone or damaged.

    What was about to be written when the program was killed counts as written where it stands on its page now.
    """
    try:
        raw: Any = json.loads((workspace / _STATE).read_text(encoding="utf-8"))
        written = Written(
            pages=_sets(raw["pages"]),
            pending=_sets(raw["pending"]),
            facts=dict(raw["facts"]),
            settled={key: (float(c), tuple(known)) for key, (c, known) in raw["settled"].items()},
            given={key: float(c) for key, c in raw["given"].items()},
            weeks=set(raw["weeks"]),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return Written()
    for page, keys in written.pending.items():
        try:
            text = read_text(workspace / page) or ""
        except (OSError, UnreadablePage):
            text = ""
        written.pages.setdefault(page, set()).update(keys & set(keys_of(text)))
    written.pending = {}
    return written


def save_written(workspace: Path, written: Written) -> None:
    """Raises OSError."""
    data = {
        "pages": {page: sorted(keys) for page, keys in sorted(written.pages.items()) if keys},
        "pending": {page: sorted(keys) for page, keys in sorted(written.pending.items()) if keys},
        "facts": dict(sorted(written.facts.items())),
        "settled": {key: [c, list(known)] for key, (c, known) in sorted(written.settled.items())},
        "given": dict(sorted(written.given.items())),
        "weeks": sorted(written.weeks),
    }
    text = json.dumps(data, ensure_ascii=False, indent=0) + "\n"
    path = workspace / _STATE
    if not path.exists() or path.read_bytes() != text.encode():
        replace_file(path, text)


def _sets(raw: Mapping[str, Any]) -> dict[str, set[str]]:
    return {page: set(cast("list[str]", keys)) for page, keys in raw.items()}


def keys_of(text: str) -> Iterable[str]:
    """The keys of a page's lines, as `Written` keeps them."""
    return (line_key(without_source(line)) for line in lines_of(text) if line.strip())


def without_source(line: str) -> str:
    """A bullet without the sources behind it, which change when lines move: they do not make it another line."""
    line = line.strip()
    if line.endswith(")") and "#L" in line:
        begin = line.rfind(" (")
        if begin > 0 and "#L" in line[begin:]:
            return line[:begin]
    for name in _COUNTED:
        if line.startswith(name):
            return name
    return line


_COUNTED = ("- confidence:", "- updated:", "- for:", "- against:")


Make = Callable[[str | None, bool], str | None]


@dataclass(frozen=True, slots=True)
class Change:
    """A page that a job wants to be otherwise. `make(before, may_drop)` gives its text, None: it is to go.

    It is called again when a person saved the page in between, and without leave to drop lines when too many would go.
    `moves`: its lines go to another page, so that any number may leave this one.
    """

    page: str
    make: Make
    moves: bool = False


@dataclass(slots=True)
class Outcome:
    """What came of a set of changes: the pages that changed, and what was refused and why."""

    changed: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


def apply(
    workspace: Path,
    written: Written,
    changes: Iterable[Change],
    now: datetime,
    finish: Callable[[Outcome], None] = lambda outcome: None,
) -> Outcome:
    """Makes the changes, each page at once or not at all; `written` is kept up to date, before and after. The caller
    holds `locked` since it loaded `written`.

    `finish` notes in `written` what the pages do not show, before it is saved. A run that is killed in between leaves
    whole pages, and the next run goes on from them. Raises OSError.
    """
    outcome = Outcome()
    planned: list[tuple[Change, str | None, str | None]] = []
    for change in changes:
        try:
            before = read_text(workspace / change.page)
            after = _allowed(change, before, outcome)
        except UnreadablePage as error:
            outcome.refused.append(f"{change.page}: {error}")
            continue
        if after == before:
            _note(written, change.page, before, after)
            continue
        planned.append((change, before, after))
        written.pending[change.page] = set(keys_of(after or "")) - set(keys_of(before or ""))
    if planned:
        save_written(workspace, written)
    for change, before, after in planned:
        put = _put(workspace, change, before, after, now, outcome)
        if put is not None:
            _note(written, change.page, *put)
            outcome.changed.append(change.page)
    written.pending = {}
    finish(outcome)
    save_written(workspace, written)
    return outcome


def _allowed(change: Change, before: str | None, outcome: Outcome) -> str | None:
    """The new text; without dropping anything where too much would go."""
    after = change.make(before, True)
    gone = dropped(before or "", after or "")
    lines = sum(1 for line in lines_of(before or "") if line.strip())
    if not before or change.moves or gone <= DROPPED_SHARE_MAX * lines:
        return after
    reason = f"{change.page}: {gone} of its {lines} lines would have gone; they were left in place"
    if reason not in outcome.refused:
        outcome.refused.append(reason)
    return change.make(before, False)


def dropped(before: str, after: str) -> int:
    """How many lines of a page are not on it any more; a counted line that changed its figure is still there."""
    left = Counter(without_source(line) for line in lines_of(after))
    gone = Counter(without_source(line) for line in lines_of(before) if line.strip())
    return sum((gone - left).values())


def _put(
    workspace: Path, change: Change, before: str | None, after: str | None, now: datetime, outcome: Outcome
) -> tuple[str | None, str | None] | None:
    """Replaces one page, made anew from what a person saved meanwhile; what stood before and stands now."""
    path = workspace / change.page
    for _ in range(_TRIES):
        if read_text(path) == before:
            if before is not None:
                keep_version(workspace, change.page, before, now)
            if read_text(path) == before:
                if after is None:
                    path.unlink(missing_ok=True)
                else:
                    replace_file(path, after)
                return before, after
        before = read_text(path)
        after = _allowed(change, before, outcome)
        if after == before:
            return None
    outcome.refused.append(f"{change.page}: it {BEING_EDITED}; the next run takes it up")
    return None


def _note(written: Written, page: str, before: str | None, after: str | None) -> None:
    """What is new on a page is the program's, what the program took out itself may come back; what the program wrote
    once and a person took out stays known."""
    old, new = set(keys_of(before or "")), set(keys_of(after or ""))
    if after is None:
        written.pages.pop(page, None)
    elif old != new:
        written.pages[page] = (written.pages.get(page, set()) - (old - new)) | (new - old)


def keep_version(workspace: Path, page: str, text: str, now: datetime) -> None:
    """Keeps what a page said before, in `.history/<page>/`, the newest few. Raises OSError."""
    folder = workspace / HISTORY / page
    name = f"{now.astimezone(UTC):%Y%m%dT%H%M%S}-{line_key(text)}.md"
    if not (folder / name).exists():
        replace_file(folder / name, text, durable=False)
    for old in sorted(folder.glob("*.md"))[:-VERSIONS_KEPT]:
        old.unlink(missing_ok=True)
