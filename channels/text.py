"""Cutting text for platforms: by their own unit, at grapheme borders, with code blocks closed and reopened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import regex

Unit = Literal["utf16", "chars"]

LIMIT_MIN = 16
"""A smaller limit has no room for a code block's own fences."""
_FENCE_SHARE_MAX = 4
"""A fence line longer than this part of the limit is not repeated: its marker alone is, or nothing."""

_GRAPHEME = regex.compile(r"\X")
_FENCE_LINE = regex.compile(r"[ \t]*(?:(?P<marker>`{3,})(?P<info>[^`\n]*)|(?P<marker>~{3,})(?P<info>[^\n]*))")

# A better border is taken when at least this share of the room is used before it.
_BORDERS: tuple[tuple[regex.Pattern[str], float], ...] = (
    (regex.compile(r"\n[ \t]*\n\s*"), 0.5),
    (regex.compile(r"\n"), 0.5),
    (regex.compile(r"[.!?…؟۔।]+[\"'”’»)\]]*\s+|[。！？]+[」』”’）]*"), 0.5),
    (regex.compile(r"\s+|[，、；：]+"), 0.25),
)


def clean(text: str) -> str:
    """The text without what cannot be stored or sent: lone surrogates and NUL become U+FFFD.

    One unit becomes one unit, so UTF-16 offsets into the text stay right.
    """
    return "".join("\ufffd" if char == "\0" or "\ud800" <= char <= "\udfff" else char for char in text)


def length(text: str, unit: Unit) -> int:
    """How long the text is: in UTF-16 code units (one outside of the basic plane counts two) or in code points."""
    if unit == "chars" or text.isascii():
        return len(text)
    return len(text) + sum(char > "\uffff" for char in text)


def cut(text: str, start: int, limit: int, unit: Unit = "utf16") -> int:
    """Where a piece that starts at `start` and holds at most `limit` units ends: an index into `text`.

    Prefers the end of a paragraph, then of a line, a sentence, a word; else the last grapheme border. A single
    grapheme cluster larger than the limit is cut between code points. The result is always larger than `start`,
    unless nothing is left.
    """
    reach = _reach(text, start, limit, unit)
    if reach >= len(text):
        return len(text)
    borders: list[int] = []
    for cluster in _GRAPHEME.finditer(text, start):
        if cluster.end() > reach:
            break
        borders.append(cluster.end())
    if not borders:
        return reach
    last = borders[-1]
    allowed = frozenset(borders)
    for pattern, share in _BORDERS:
        least = start + max(1, int((last - start) * share))
        ends = [match.end() for match in pattern.finditer(text, start, last)]
        for end in reversed(ends):
            if end < least:
                break
            if end in allowed:
                return end
    return last


def _reach(text: str, start: int, limit: int, unit: Unit) -> int:
    """The largest index so that text[start:index] holds at most `limit` units; at least one code point further."""
    end = min(len(text), start + limit)
    if unit == "utf16" and not text.isascii():
        used = 0
        for index in range(start, end):
            used += 2 if text[index] > "\uffff" else 1
            if used > limit:
                end = index
                break
    return max(end, min(start + 1, len(text)))


@dataclass(frozen=True, slots=True)
class _Fence:
    """An open code block: its marker, and the line that opens it again in the next piece."""

    marker: str
    opening: str


def split(text: str, limit: int, unit: Unit = "utf16") -> list[str]:
    """Parts of at most `limit` units that together show the whole text; an empty text has no parts.

    Cuts as `cut` does. Where a cut falls inside a fenced code block the part is closed with the block's own
    marker and the next one opens it again with the same language; both count. Nothing else is added, and nothing
    is left out: white space stays at the end of its part. Raises ValueError for a limit under LIMIT_MIN.
    """
    if limit < LIMIT_MIN:
        raise ValueError(f"a part must have room for at least {LIMIT_MIN} units, not {limit}")
    parts: list[str] = []
    start = 0
    fence: _Fence | None = None
    while start < len(text):
        opening = fence.opening if fence else ""
        room = limit - length(opening, unit)
        end, after = _piece(text, start, room, unit, fence, limit // _FENCE_SHARE_MAX)
        body = text[start:end]
        closing = ""
        if after is not None:
            closing = after.marker if body.endswith("\n") else f"\n{after.marker}"
        parts.append(f"{opening}{body}{closing}")
        start, fence = end, after
    return parts


def _piece(
    text: str, start: int, room: int, unit: Unit, fence: _Fence | None, opening_max: int
) -> tuple[int, _Fence | None]:
    """Where the next piece ends, and the code block that is open there."""
    end = cut(text, start, room, unit)
    if end == len(text):
        return end, None
    after, line_start = _fence_after(text, start, end, fence, opening_max)
    if after is not None:
        end = cut(text, start, room - len(after.marker) - 1, unit)
        # Code is cut between lines only, unless one line alone is too long.
        end = text.rfind("\n", start, end) + 1 or end
        after, line_start = _fence_after(text, start, end, fence, opening_max)
    if line_start is not None and line_start > start:
        # The cut fell into a fence line, or just behind an opening one: the line goes with what follows it.
        end = line_start
        after, _ = _fence_after(text, start, end, fence, opening_max)
    return end, after


def _fence_after(
    text: str, start: int, end: int, fence: _Fence | None, opening_max: int
) -> tuple[_Fence | None, int | None]:
    """The code block open at `end`, and the start of the fence line that a cut at `end` would spoil, if any."""
    position = start if start == 0 or text[start - 1] == "\n" else text.find("\n", start) + 1
    while (position > 0 or start == 0) and position < end:
        line_end = text.find("\n", position)
        line_end = len(text) if line_end < 0 else line_end
        match = _FENCE_LINE.match(text, position, line_end)
        if match is not None:
            marker, info = match["marker"], match["info"].strip()
            opens = fence is None and len(marker) <= opening_max
            closes = fence is not None and not info and marker.startswith(fence.marker)
            if opens:
                line = f"{marker}{info}\n"
                fence = _Fence(marker, line if len(line) <= opening_max else f"{marker}\n")
            elif closes:
                fence = None
            if (opens and end <= line_end + 1) or (closes and end < line_end):
                return fence, position
        position = line_end + 1
    return fence, None
