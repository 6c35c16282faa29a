"""Edits of heartbeat.md by the program: one job in, changed or out; every other byte of the file is kept. Pure.

Each edit is read back before it counts: when any other job would be another one, nothing is changed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from heartbeat.grammar import Lines, lines_of_job, parse_heartbeat
from heartbeat.headings import BadSchedule, parse_schedule
from heartbeat.types import Job, Parsed

BY_HAND = "change heartbeat.md by hand"


def with_job(text: str, heading: str, markers: Mapping[str, str], instruction: str) -> tuple[str, Job]:
    """The file with one more job at its end. Raises BadSchedule with the reason why that cannot be."""
    parse_schedule(heading)
    before = parse_heartbeat(text)
    if unclosed := [fault for fault in before.faults if fault.heading == ""]:
        raise BadSchedule(f"line {unclosed[0].line}: {unclosed[0].reason}")
    end = _line_end(text)
    lines = [f"## {heading}", *(f"{word}: {value}" for word, value in markers.items()), "", *instruction.splitlines()]
    gap = "" if not text else end if text.endswith(("\n", "\r")) else end * 2
    changed = f"{text}{gap}{end.join(lines)}{end}"
    after = parse_heartbeat(changed)
    added = [job for job in after.jobs if job not in before.jobs]
    if (
        len(added) != 1
        or len(after.faults) != len(before.faults)
        or added[0].instruction.splitlines() != instruction.strip().splitlines()
    ):
        raise BadSchedule(_why_not(after, before))
    _same(before.jobs, tuple(job for job in after.jobs if job is not added[0]))
    return changed, added[0]


def with_heading(text: str, name: str, heading: str) -> str:
    """The file with another schedule for one job. Raises BadSchedule, KeyError when there is no such job."""
    parse_schedule(heading)
    job = _job(text, name)
    lines = _split(text)
    old = lines[job.line - 1]
    keep = re.match(r"( {0,3}##[ \t]*)", old)
    assert keep is not None
    new = [keep[1] + heading + _ending(old)]
    if job.name == job.heading or re.fullmatch(re.escape(job.heading) + r" #\d+", job.name):
        new.append(f"name: {job.name}{_line_end(text)}")  # it keeps its name, and with it its history
    changed = "".join([*lines[: job.line - 1], *new, *lines[job.line :]])
    _others_stay(text, changed, name, kept=True)
    return changed


def with_instruction(text: str, name: str, instruction: str) -> str:
    """The file with another instruction for one job. Raises BadSchedule, KeyError."""
    lines, end = _split(text), _line_end(text)
    head, body = _lines(text, name)
    gone = {number for number, _ in body}
    first = body[0][0] if body else head[-1][0] + 1
    before = [line for number, line in enumerate(lines, start=1) if number < first]
    after = [line for number, line in enumerate(lines, start=1) if number >= first and number not in gone]
    if not _ending(before[-1]):
        before[-1] += end
    new = [*([] if body else [end]), *(f"{line}{end}" for line in instruction.strip().splitlines())]
    changed = "".join([*before, *new, *after])
    _others_stay(text, changed, name, kept=True)
    if _job(changed, name).instruction.splitlines() != instruction.strip().splitlines():
        raise BadSchedule(f"this text cannot stand in heartbeat.md as it is; {BY_HAND}")
    return changed


def without_job(text: str, name: str) -> str:
    """The file without one job; comments that stand in it stay. Raises BadSchedule, KeyError."""
    head, body = _lines(text, name)
    gone = {number for number, _ in (*head, *body)}
    lines = _split(text)
    for number in range(head[-1][0] + 1, body[0][0] if body else head[-1][0] + 1):
        if not lines[number - 1].strip():  # the blank lines between the two
            gone.add(number)
    changed = "".join(line for number, line in enumerate(lines, start=1) if number not in gone)
    _others_stay(text, changed, name, kept=False)
    return changed


def _job(text: str, name: str) -> Job:
    found = next((job for job in parse_heartbeat(text).jobs if job.name == name), None)
    if found is None:
        raise KeyError(name)
    return found


def _lines(text: str, name: str) -> tuple[Lines, Lines]:
    """The job's own lines. Raises BadSchedule when one is half a comment."""
    head, body = lines_of_job(text, _job(text, name).line)
    lines = _split(text)
    for number, shown in (*head, *body):
        if lines[number - 1].rstrip("\r\n") != shown:
            raise BadSchedule(f"line {number} is half a comment; {BY_HAND}")
    return head, body


def _others_stay(before: str, after: str, name: str, *, kept: bool) -> None:
    """Raises BadSchedule when the edit would touch anything but the one job."""
    old, new = parse_heartbeat(before), parse_heartbeat(after)
    if kept != any(job.name == name for job in new.jobs):
        raise BadSchedule(_why_not(new, old))
    _same(_but(old, name), _but(new, name))
    if len(old.faults) != len(new.faults):
        raise BadSchedule(_why_not(new, old))


def _but(parsed: Parsed, name: str) -> tuple[Job, ...]:
    return tuple(job for job in parsed.jobs if job.name != name)


def _same(old: tuple[Job, ...], new: tuple[Job, ...]) -> None:
    """Raises BadSchedule when the jobs are not the same, but for the lines they stand in."""
    if [_bare(job) for job in old] != [_bare(job) for job in new]:
        raise BadSchedule(f"another job of the file would change with it; {BY_HAND}")


def _bare(job: Job) -> tuple[object, ...]:
    return job.name, job.heading, job.instruction, job.target, job.zone, job.tools


def _why_not(after: Parsed, before: Parsed) -> str:
    new = [fault for fault in after.faults if fault.reason not in {known.reason for known in before.faults}]
    if new:
        return new[0].reason
    return f"this text cannot stand in heartbeat.md as it is (a heading or a comment in it?); {BY_HAND}"


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _split(text: str) -> list[str]:
    """The lines with their ends, as the grammar counts them."""
    return re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", text)


def _ending(line: str) -> str:
    return line[len(line.rstrip("\r\n")) :]
