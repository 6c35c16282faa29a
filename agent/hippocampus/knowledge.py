"""Keeps lasting facts, one bullet each, in a few Markdown files that the owner may edit by hand at any time."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from agent.characters import whole_characters
from agent.files import replace_file
from agent.hippocampus.pages import alone
from agent.types import ToolFailure

TYPES = ("projects", "people", "preferences", "technical", "decisions")
FOLDER = "brain/hippocampus/knowledge"
FACT_CHARS_MAX = 2_000
NEAR_WORDS_MIN = 3
"""So many words a fact must share with the sentence that names it, where it is not that sentence."""
_TRIES = 5
"""So often a change is made anew because a person wrote the file in between."""
_BULLET = re.compile(r"(\s*[-*+]\s+)(.*)$")
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]+(.*?)[ \t#]*$")
_LINE_REF = re.compile(rf"(?:file:)?{FOLDER}/(?P<type>[a-z]+)\.md#L(?P<line>[0-9]{{1,7}})\Z")


class FactIndex(Protocol):
    """What keeping facts needs of the memory index."""

    def sameness_key(self, text: str) -> str:
        """Equal for sentences that differ in case, spacing, punctuation or letter forms only."""
        ...

    async def file_changed(self, path: Path) -> None: ...


@dataclass(frozen=True, slots=True)
class Saved:
    """What came of a fact, and where it stands now (`file:...#L12`)."""

    status: Literal["saved", "known", "replaced"]
    ref: str

    def as_json(self) -> dict[str, Any]:
        """The JSON shape of `memory save`."""
        return {"status": self.status, "ref": self.ref}


@dataclass(frozen=True, slots=True)
class _Fact:
    """A bullet: its file, its line (from 0) and its text."""

    type: str
    line: int
    text: str


class Knowledge:
    """The knowledge files under `brain/hippocampus/knowledge/`."""

    def __init__(self, workspace: Path, index: FactIndex) -> None:
        self._folder = workspace / FOLDER
        self._index = index
        self._busy = asyncio.Lock()

    async def save(
        self, fact: str, type: str = "technical", topic: str | None = None, replaces: str | None = None
    ) -> Saved:
        """Keeps one fact, unless one of the files says the same already.

        `topic` names the section it goes into. `replaces` is a reference to a bullet, or its sentence: the new fact
        takes its place. Raises ToolFailure with one sentence.
        """
        text = " ".join(whole_characters(fact).replace("\0", " ").split())
        if type not in TYPES:
            raise ToolFailure(f"There is no type {type[:40]!r}. The types are: {', '.join(TYPES)}.")
        if not self._index.sameness_key(text):
            raise ToolFailure("The fact is empty. Give one sentence that can stand alone.")
        if len(text) > FACT_CHARS_MAX:
            raise ToolFailure(
                f"The fact has {len(text):,} characters; at most {FACT_CHARS_MAX:,}. Say it in one sentence."
            )
        heading = " ".join(whole_characters(topic or "").replace("\0", " ").split()).lstrip("# ")
        async with self._busy:
            try:
                saved, changed = await asyncio.to_thread(self._save, text, type, heading, replaces)
            except OSError as error:
                raise ToolFailure(f"The fact could not be written: {error.strerror}.", transient=True) from error
        for name in changed:
            await self._index.file_changed(self._folder / f"{name}.md")
        return saved

    def _save(self, text: str, type: str, topic: str, replaces: str | None) -> tuple[Saved, tuple[str, ...]]:
        """What came of it, and the types whose files changed."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with alone(self._folder):
            for _ in range(_TRIES):
                texts = {name: _read(self._path(name)) for name in TYPES}
                facts = [fact for name in TYPES for fact in _facts(name, texts[name] or "")]
                key = self._index.sameness_key(text)
                same = next((fact for fact in facts if self._index.sameness_key(fact.text) == key), None)
                old = self._replaced(replaces, facts) if replaces else None
                if same is not None and (old is None or (old == same and old.text == text)):
                    return Saved("known", _ref(same.type, same.line)), ()
                if old is not None and same is not None and old != same:
                    # The new sentence stands already; the one it replaces goes.
                    lines = _lines(texts[old.type] or "")
                    del lines[old.line]
                    if self._put(old.type, texts[old.type], lines):
                        line = same.line - (old.type == same.type and old.line < same.line)
                        return Saved("replaced", _ref(same.type, line)), (old.type,)
                    continue
                name = old.type if old is not None else type
                lines = _lines(texts[name] or "")
                line = _change(lines, text, old) if old is not None else _add(lines, text, topic, type)
                if self._put(name, texts[name], lines):
                    return Saved("replaced" if old is not None else "saved", _ref(name, line)), (name,)
        raise ToolFailure("The knowledge file is being edited just now; try again in a moment.", transient=True)

    def _replaced(self, replaces: str, facts: list[_Fact]) -> _Fact:
        """The fact that `replaces` names. Raises ToolFailure when there is none, or more than one."""
        at = _LINE_REF.match(replaces.strip().strip("`<>[]()"))
        if at:
            found = [fact for fact in facts if fact.type == at["type"] and fact.line == int(at["line"]) - 1]
        else:
            key = self._index.sameness_key(_without_bullet(replaces))
            found = [fact for fact in facts if self._index.sameness_key(fact.text) == key] or self._nearest(key, facts)
        if not found:
            raise ToolFailure(
                f"No saved fact is {replaces[:120]!r}; find it with memory_search and give its reference."
            )
        return found[0]

    def _nearest(self, key: str, facts: list[_Fact]) -> list[_Fact]:
        """The one fact that nearly says it: all words but one are the same, or one sentence holds the other. Of two
        that are as near nobody can say which is meant."""
        asked = set(key.split())
        near: list[tuple[int, _Fact]] = []
        for fact in facts:
            words = set(self._index.sameness_key(fact.text).split())
            shared = len(words & asked)
            if shared >= NEAR_WORDS_MIN and (
                shared >= max(len(words), len(asked)) - 1 or words <= asked or asked <= words
            ):
                near.append((shared, fact))
        best = max((shared for shared, _ in near), default=0)
        found = [fact for shared, fact in near if shared == best]
        return found if len(found) == 1 else []

    def _put(self, name: str, before: str | None, lines: list[str]) -> bool:
        """Replaces a file; False, and nothing is written, when it is not what it was when it was read."""
        path = self._path(name)
        if _read(path) != before:
            return False
        replace_file(path, "\n".join(lines) + "\n")
        return True

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.md"


def _read(path: Path) -> str | None:
    """The text of a file; None when there is none. Raises ToolFailure for bytes that a write would not keep."""
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise ToolFailure(f"{path.name} holds bytes that are not UTF-8; repair it first.") from None


def _lines(text: str) -> list[str]:
    """Lines without their ends, as they stand; the empty piece after a last line break is none."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return lines


def _facts(name: str, text: str) -> Iterator[_Fact]:
    """The bullets of a file, comments and fenced code left out."""
    fenced = False
    for number, line in enumerate(_lines(text)):
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        match = None if fenced else _BULLET.match(line.rstrip("\r"))
        if match and match[2].strip():
            yield _Fact(name, number, match[2].strip())


def _without_bullet(line: str) -> str:
    match = _BULLET.match(line)
    return match[2] if match else line


def _change(lines: list[str], text: str, old: _Fact) -> int:
    match = _BULLET.match(lines[old.line].rstrip("\r"))
    end = "\r" if lines[old.line].endswith("\r") else ""
    lines[old.line] = f"{match[1] if match else '- '}{text}{end}"
    return old.line


def _add(lines: list[str], text: str, topic: str, type: str) -> int:
    """Adds a bullet at the end of its section, or at the end of what stands before the first one; its line."""
    if not any(line.strip() for line in lines):
        lines[:] = [f"# {type.capitalize()}", ""]
    headings = [(at, match[1]) for at, line in enumerate(lines) if (match := _HEADING.match(line.rstrip("\r")))]
    if topic:
        at = next((at for at, heading in headings if heading.casefold() == topic.casefold()), None)
        if at is None:
            lines += ["", f"## {topic}", ""] if lines[-1].strip() else [f"## {topic}", ""]
            at = len(lines) - 2
    else:
        at = next((at for at, _ in headings if lines[at].lstrip().startswith("# ")), -1)
    end = next((other for other, _ in headings if other > at), len(lines))
    while end > at + 1 and not lines[end - 1].strip():
        end -= 1
    bullet = [f"- {text}"]
    if end == at + 1 and at >= 0:
        bullet = ["", *bullet]
        if end < len(lines) and not lines[end].strip():
            end, bullet = end + 1, bullet[1:]
    follows_heading = end < len(lines) and _HEADING.match(lines[end])
    lines[end:end] = [*bullet, ""] if follows_heading else bullet
    return end + len(bullet) - 1


def _ref(name: str, line: int) -> str:
    return f"file:{FOLDER}/{name}.md#L{line + 1}"
