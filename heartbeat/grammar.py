"""The text of heartbeat.md to jobs and faults. Pure.

A level-2 heading is a schedule; the lines right under it, up to the first blank one, may be markers (`name: ...`);
the rest up to the next level-2 heading is the instruction. HTML comments switch off what they enclose.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import time
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from heartbeat.headings import BadSchedule, parse_clock, parse_duration, parse_schedule, strip_marks
from heartbeat.limits import NAME_CHARS_MAX
from heartbeat.types import Fault, Job, Kind, Parsed

_HEADING = re.compile(r" {0,3}##(?!#)[ \t]*(.*?)(?:[ \t]+#+)?[ \t]*")
_MARKER = re.compile(r" {0,3}([^\W\d_][\w-]*)[ \t]*:(?!//)(.*)")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_RULE = re.compile(r" {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*")


@dataclass(slots=True)
class _Section:
    """One heading and the lines under it: (number, text, whether inside a code block)."""

    line: int
    heading: str
    body: list[tuple[int, str, bool]] = field(default_factory=list[tuple[int, str, bool]])


def parse_heartbeat(text: str) -> Parsed:
    """All sound jobs and all faults of a heartbeat.md, in file order; a fault stops no other job."""
    sections, faults = _sections(text)
    jobs: list[Job] = []
    taken: dict[str, int] = {}
    seen: Counter[str] = Counter()
    for section in sections:
        seen[section.heading.casefold()] += 1
        ordinal = seen[section.heading.casefold()]
        own_name = section.heading if ordinal == 1 else f"{section.heading} #{ordinal}"
        job = _job(section, own_name)
        if isinstance(job, Job) and job.name.casefold() in taken:
            reason = f"the name `{job.name}` belongs to the job in line {taken[job.name.casefold()]}"
            job = Fault(own_name, section.heading, section.line, reason)
        if isinstance(job, Fault):
            faults.append(job)
        else:
            taken[job.name.casefold()] = job.line
            jobs.append(job)
    return Parsed(tuple(jobs), tuple(sorted(faults, key=lambda fault: fault.line)))


def read_marker(word: str, value: str) -> dict[str, Any]:
    """One marker as the fields of `Job` it sets. Raises BadSchedule with the reason."""
    if word not in _MARKERS:
        raise BadSchedule(f"`{word}:` is no marker; put a blank line before the instruction if it belongs to it")
    if not value:
        raise BadSchedule(f"`{word}:` is empty")
    return _MARKERS[word](value)


Lines = list[tuple[int, str]]


def lines_of_job(text: str, line: int) -> tuple[Lines, Lines]:
    """The visible lines, with their numbers, of the job whose heading stands in `line`: its head (heading and
    markers), and its instruction without the empty lines and rules around it."""
    section = next(one for one in _sections(text)[0] if one.line == line)
    head: Lines = [(line, re.split(r"\r\n|\r|\n", text)[line - 1])]
    body: Lines = []
    in_head = True
    for number, shown, in_fence in section.body:
        in_head = in_head and not in_fence and bool(shown.strip())
        in_head = in_head and _MARKER.fullmatch(strip_marks(shown)) is not None
        (head if in_head else body).append((number, shown))
    while body and _is_empty(body[0][1]):
        body.pop(0)
    while body and _is_empty(body[-1][1]):
        body.pop()
    return head, body


def _sections(text: str) -> tuple[list[_Section], list[Fault]]:
    sections: list[_Section] = []
    lines, faults = _visible(text)
    for number, line, in_fence in lines:
        found = None if in_fence else _HEADING.fullmatch(strip_marks(line))
        if found is not None:
            sections.append(_Section(number, " ".join(found[1].split())))
        elif sections:
            sections[-1].body.append((number, line, in_fence))
    return sections, faults


def _visible(text: str) -> tuple[list[tuple[int, str, bool]], list[Fault]]:
    """The lines outside of HTML comments with their numbers in the file; in code blocks nothing is a comment."""
    lines: list[tuple[int, str, bool]] = []
    fence, fence_line, comment_line = "", 0, 0
    for number, raw in enumerate(re.split(r"\r\n|\r|\n", text), start=1):
        if fence:
            lines.append((number, raw, True))
            closing = _FENCE.fullmatch(raw)
            if closing and closing[1].startswith(fence) and not closing[2].strip():
                fence = ""
            continue
        line, comment_line = _without_comments(raw, number, comment_line)
        if line is None:
            continue
        opening = _FENCE.fullmatch(line)
        if opening and not (opening[1][0] == "`" and "`" in opening[2]):
            fence, fence_line = opening[1], number
        lines.append((number, line, bool(fence)))
    faults: list[Fault] = []
    if comment_line:
        reason = "this comment is not closed with `-->`: everything after it is off"
        faults.append(Fault("(comment)", "", comment_line, reason))
    if fence:
        reason = f"this code block is not closed with `{fence}`: headings after it are not read"
        faults.append(Fault("(code block)", "", fence_line, reason))
    return lines, faults


def _without_comments(raw: str, number: int, comment_line: int) -> tuple[str | None, int]:
    """What is left of a line (None: it held nothing but comment), and the line where a still open comment began."""
    kept, rest, touched = "", raw, comment_line > 0
    while True:
        if comment_line:
            _, end, rest = rest.partition("-->")
            if not end:
                break
            comment_line = 0
        before, start, rest = rest.partition("<!--")
        kept += before
        if not start:
            break
        touched, comment_line = True, number
    return (None if touched and not kept.strip() else kept), comment_line


def _job(section: _Section, own_name: str) -> Job | Fault:
    line = section.line
    try:
        schedule = parse_schedule(section.heading)
        fields: dict[str, Any] = {"name": own_name}
        words: set[str] = set()
        instruction: list[str] = []
        in_head = True
        for number, text, in_fence in section.body:
            in_head = in_head and not in_fence and bool(text.strip())
            found = _MARKER.fullmatch(strip_marks(text)) if in_head else None
            if found is None:
                instruction.append(text)
                continue
            line, word = number, found[1].casefold()
            fields |= read_marker(word, found[2].strip())
            if word in words:
                raise BadSchedule(f"`{word}:` stands here a second time")
            words.add(word)
    except BadSchedule as error:
        return Fault(own_name or "(no heading)", section.heading, line, str(error))
    kind: Kind = "heartbeat"
    return Job(
        kind=kind,
        heading=section.heading,
        schedule=schedule,
        instruction=_trimmed(instruction),
        line=section.line,
        **fields,
    )


def _trimmed(lines: list[str]) -> str:
    """The text without blank lines and rules (`---`) at its ends: those only separate jobs."""
    first, last = 0, len(lines)
    while first < last and _is_empty(lines[first]):
        first += 1
    while last > first and _is_empty(lines[last - 1]):
        last -= 1
    return "\n".join(lines[first:last]).rstrip()


def _is_empty(line: str) -> bool:
    return not line.strip() or _RULE.fullmatch(line) is not None


def _name(value: str) -> dict[str, Any]:
    name = " ".join(value.split())
    if len(name) > NAME_CHARS_MAX or not name.isprintable():
        raise BadSchedule(f"a name is one line of at most {NAME_CHARS_MAX} characters")
    return {"name": name}


def _zone(value: str) -> dict[str, Any]:
    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise BadSchedule(f"`{value}` is no IANA time zone; write for example Asia/Riyadh") from error
    return {"zone": value}


def _target(value: str) -> dict[str, Any]:
    if value.casefold() in {"owner", "none"}:
        return {"target": value.casefold()}
    if not re.fullmatch(r"[a-z][a-z0-9_-]*:\S+", value):
        raise BadSchedule(f"`{value}` is no target; write owner, none or <channel>:<chat>")
    return {"target": value}


def _grace(value: str) -> dict[str, Any]:
    number, unit_seconds = parse_duration(value)
    return {"grace_seconds": float(number * unit_seconds)}


def _one_of(field_name: str, allowed: dict[str, Any]) -> Callable[[str], dict[str, Any]]:
    def read(value: str) -> dict[str, Any]:
        if value.casefold() not in allowed:
            raise BadSchedule(f"`{value}` is not allowed here; write {' or '.join(allowed)}")
        return {field_name: allowed[value.casefold()]}

    return read


def _quiet(value: str) -> dict[str, Any]:
    start, dash, end = value.partition("-")
    if not dash:
        raise BadSchedule(f"`{value}` are no hours; write for example 22:00-07:00")
    return {"quiet": (time(*parse_clock(start)), time(*parse_clock(end)))}


def _words(field_name: str) -> Callable[[str], dict[str, Any]]:
    def read(value: str) -> dict[str, Any]:
        return {field_name: tuple(word for part in re.split(r"[,،]", value) if (word := part.strip()))}

    return read


def _files(value: str) -> dict[str, Any]:
    files = _words("files")(value)
    for path in files["files"]:
        if path.startswith(("/", "~")) or "\\" in path or ".." in path.split("/"):
            raise BadSchedule(f"`{path}` leaves the workspace; write a path in it, such as files/plan.md")
    return files


def _model(value: str) -> dict[str, Any]:
    return {"model": value}


_MARKERS: dict[str, Callable[[str], dict[str, Any]]] = {
    "name": _name,
    "zone": _zone,
    "target": _target,
    "grace": _grace,
    "catchup": _one_of("catchup", {"once": "once", "skip": "skip"}),
    "quiet": _quiet,
    "urgent": _one_of("urgent", {"yes": True, "no": False, "نعم": True, "لا": False}),
    "tools": _words("tools"),
    "files": _files,
    "model": _model,
}
