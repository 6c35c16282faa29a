"""Brings a page up to what the program wants on it, around what a person wrote there.

A page is a head, a paragraph, and sections of lines. A line of the program's that is wanted no more goes; one that a
person took out or wrote anew is not put back; a person's own lines stay where they are. Where the program wants a
paragraph that a person has written, the person's stays and the program's goes to `## Proposed`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from agent.hippocampus.pages import line_key, without_source

PROPOSED = "Proposed"
_HEADING = re.compile(r" {0,3}##[ \t]+(.*?)[ \t#]*$")


@dataclass(frozen=True, slots=True)
class Part:
    """A section as the program wants it: its heading and its lines. `newest_first`: new lines go to its top."""

    heading: str
    lines: tuple[str, ...]
    newest_first: bool = False


@dataclass(frozen=True, slots=True)
class Wanted:
    """A page as the program wants it. `title` is the line of a new page; `head` lines stand under it (aliases), each
    known by the word before its colon; `summary` is one paragraph, empty for none, None to leave what there is."""

    title: str
    head: tuple[str, ...] = ()
    summary: str | None = None
    parts: tuple[Part, ...] = ()


def key_of(line: str) -> str:
    """How a line is known in `Written`."""
    return line_key(without_source(line))


def tended(before: str | None, wanted: Wanted, known: Collection[str], *, may_drop: bool = True) -> str:
    """The page's new text. `known`: keys of the lines that the program wrote on it earlier."""
    if not (before or "").strip():
        return _new(wanted)
    end = "\r\n" if "\r\n" in str(before) else "\n"
    lines = [line.rstrip("\r") for line in str(before).split("\n")]
    while lines and not lines[-1].strip():
        lines.pop()
    top, sections = _cut(lines)
    proposals: list[str] = []
    top = _top(top, wanted, known, proposals)
    parts = list(wanted.parts)
    has_proposals = bool(proposals) or any(name.casefold() == PROPOSED.casefold() for name, _ in sections)
    if has_proposals and not any(part.heading == PROPOSED for part in parts):
        parts.append(Part(PROPOSED, tuple(proposals)))
    for part in parts:
        at = next((i for i, (name, _) in enumerate(sections) if name.casefold() == part.heading.casefold()), None)
        if at is not None:
            sections[at] = (sections[at][0], _section(sections[at][1], part, known, may_drop=may_drop))
        elif fresh := [line for line in part.lines if key_of(line) not in known]:
            sections.append((part.heading, [f"## {part.heading}", "", *fresh]))
    out = list(top)
    for name, body in sections:
        if name.casefold() == PROPOSED.casefold() and not any(line.strip() for line in body[1:]):
            continue
        while out and not out[-1].strip():
            out.pop()
        out += ["", *body] if out else body
    while out and not out[-1].strip():
        out.pop()
    return end.join([*out, ""])


def _new(wanted: Wanted) -> str:
    lines = [wanted.title, *wanted.head]
    if wanted.summary:
        lines += ["", wanted.summary]
    for part in wanted.parts:
        if part.lines:
            lines += ["", f"## {part.heading}", "", *part.lines]
    return "\n".join([*lines, ""])


def _cut(lines: Sequence[str]) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """What stands before the first level-2 heading, and the sections with their heading lines."""
    top: list[str] = []
    sections: list[tuple[str, list[str]]] = []
    fenced = False
    for line in lines:
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        found = None if fenced else _HEADING.match(line)
        if found:
            sections.append((found[1].strip(), [line]))
        elif sections:
            sections[-1][1].append(line)
        else:
            top.append(line)
    return top, sections


def _top(top: list[str], wanted: Wanted, known: Collection[str], proposals: list[str]) -> list[str]:
    """Title and head lines as they are, new ones added; the paragraph replaced where it is the program's own."""
    out = list(top)
    title = next((at for at, line in enumerate(out) if line.startswith("# ")), None)
    place = 0 if title is None else title + 1
    for line in wanted.head:
        name = line.partition(":")[0].strip().casefold() + ":"
        at = next((i for i, other in enumerate(out) if other.strip().casefold().startswith(name)), None)
        if at is None:
            if key_of(line) not in known:
                out.insert(place, line)
        elif key_of(out[at]) in known:
            out[at] = line
    heads = {line.partition(":")[0].strip().casefold() + ":" for line in wanted.head} | {"aliases:"}
    body = [
        i
        for i, line in enumerate(out)
        if i != title and line.strip() and not line.strip().casefold().startswith(tuple(heads))
    ]
    if wanted.summary is None:
        return out
    own = [i for i in body if key_of(out[i]) in known]
    if not wanted.summary:
        return [line for i, line in enumerate(out) if i not in own]
    if not body:
        if key_of(wanted.summary) not in known:
            out = [*_without_blanks(out), "", wanted.summary]
    elif any(out[i].strip() == wanted.summary for i in body):
        pass
    elif own:
        out[own[0]] = wanted.summary
        for i in reversed(own[1:]):
            del out[i]
    else:
        proposals.append(f"- Summary: {wanted.summary}")
    return out


def _section(body: list[str], part: Part, known: Collection[str], *, may_drop: bool) -> list[str]:
    """A section with the wanted lines in the place of their earlier forms, new ones added, stale ones left out."""
    wanted = {key_of(line): line for line in part.lines}
    out: list[str] = [body[0]]
    seen: set[str] = set()
    for line in body[1:]:
        key = key_of(line) if line.strip() else ""
        if key in wanted:
            if key not in seen:
                out.append(wanted[key])
            seen.add(key)
        elif key and key in known and may_drop:
            continue
        else:
            out.append(line)
    fresh = [line for key, line in wanted.items() if key not in seen and key not in known]
    if not fresh:
        return out
    out = _without_blanks(out)
    if part.newest_first:
        at = 2 if len(out) > 1 and not out[1].strip() else 1
        return [*out[:at], *([""] if at == 1 and len(out) > 1 else []), *fresh, *out[at:]]
    return [*out, *([""] if len(out) == 1 else []), *fresh]


def _without_blanks(lines: list[str]) -> list[str]:
    end = len(lines)
    while end and not lines[end - 1].strip():
        end -= 1
    return lines[:end]


def without_proposals(text: str) -> str:
    """A page without its `## Proposed` section: what the owner has not agreed to counts for nothing yet."""
    return re.sub(r"(?ims)^ {0,3}##[ \t]+Proposed[ \t#]*\r?$.*?(?=^ {0,3}#{1,2}[ \t]|\Z)", "", text)
