"""How commands speak: data on stdout, remarks on stderr, nothing when there is nothing to say."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Sequence
from datetime import datetime
from typing import Any, TextIO
from zoneinfo import ZoneInfo

PIPE_COLUMNS = 10_000
"""Width of a table that no terminal shows: nothing is cut."""
SHORT_CELLS = 22
LAST_CELLS_MIN = 24

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]")
_CODES = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33}
_COLOURS = {
    "connected": "green",
    "ok": "green",
    "success": "green",
    "off": "dim",
    "starting": "yellow",
    "degraded": "yellow",
    "retry": "yellow",
    "skipped": "yellow",
    "missed": "yellow",
    "interrupted": "yellow",
    "unknown": "yellow",
    "unreachable": "red",
    "conflict": "red",
    "replaced": "red",
    "rejected": "red",
    "logged out": "red",
    "banned": "red",
    "outdated": "red",
    "failed": "red",
    "error": "red",
    "blocked": "red",
    "denied": "red",
}
"""A state's colour says whether a person should look: green well, yellow wait, red act."""


def print_json(value: Any) -> None:
    """One document: indented for a person, on one line for a program."""
    text = json.dumps(value, ensure_ascii=False, indent=2 if sys.stdout.isatty() else None)
    _write(sys.stdout, _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


def say(text: str = "", style: str = "", *, head: str = "") -> None:
    """A line of data; `head` stands dim before it."""
    _write(sys.stdout, painted(head, "dim") + painted(clean(text), style))


def prose(text: str, indent: str = "") -> None:
    """Text to be read: on a terminal its lines break between words."""
    lines = clean(text)
    if sys.stdout.isatty():
        wrap = Wrap(columns() - len(indent))
        lines = wrap.feed(lines) + wrap.rest()
    _write(sys.stdout, "\n".join(f"{indent}{line}".rstrip() for line in lines.split("\n")))


def columns() -> int:
    """How wide the terminal is."""
    return shutil.get_terminal_size().columns


class Wrap:
    """Breaks running text between words as it comes; a terminal alone breaks inside them. A word that is longer than
    a line is left to the terminal."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._column = 0
        self._gap = ""
        self._word = ""

    def feed(self, text: str) -> str:
        """What can be shown now; the last word is held back, as it may go on."""
        return "".join(self._take(piece) for piece in re.split(r"(\s)", text))

    def rest(self) -> str:
        """The word that was held back."""
        from rich.cells import cell_len

        gap, word, length = self._gap, self._word, cell_len(self._word)
        if not word:
            return ""
        self._gap = self._word = ""
        if self._column > 0 and self._column + len(gap) + length > self._width >= length:
            self._column = length
            return f"\n{word}"
        self._column += len(gap) + length
        return f"{gap}{word}"

    def _take(self, piece: str) -> str:
        if not piece.isspace():
            self._word += piece
            return ""
        shown = self.rest()
        if piece == "\n":
            self._column, self._gap = 0, ""
            return f"{shown}\n"
        self._gap += " " if piece == "\r" else piece
        return shown


def complain(text: str = "") -> None:
    """A line about what is wrong."""
    _write(sys.stderr, clean(text))


def remark(text: str, *, on_one_line: bool = False) -> None:
    """A line for a person who is watching; programs do not see it. `on_one_line`: cut to the terminal's width."""
    if sys.stderr.isatty():
        text = cut(text, columns()) if on_one_line else "\n".join(wrapped(text, columns()))
        _write(sys.stderr, painted(clean(text), "dim", sys.stderr))


def _write(stream: TextIO, line: str) -> None:
    stream.write(f"{line}\n")
    stream.flush()


def clean(text: str) -> str:
    """Other people's text as a terminal may show it: no control sequences, no turned writing direction."""
    return _CONTROL.sub("\ufffd", text)


def one_line(text: str) -> str:
    return clean(" ".join(text.split()))


def when(at: datetime | str | None, zone: ZoneInfo) -> str:
    """A time in the owner's zone, to the minute; empty for none."""
    if at is None:
        return ""
    moment = datetime.fromisoformat(at) if isinstance(at, str) else at
    return moment.astimezone(zone).strftime("%Y-%m-%d %H:%M")


def lasted(seconds: float) -> str:
    """`12 s`, `5 min`, `2 h 05 min`, `3 d 4 h`."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes:02} min"
    return f"{minutes} min" if minutes else f"{rest} s"


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    short: Sequence[str] = (),
    right: Sequence[str] = (),
    state: str = "",
    wrap: bool = False,
) -> None:
    """Aligned columns under a dim head; columns that are empty throughout are left out.

    On a terminal the last column takes what room is left: its cells are cut, or with `wrap` go on below; where there
    is little room they stand below altogether. Cells of the columns `short` are cut to SHORT_CELLS there. Columns
    `right` hold numbers. The column `state` is coloured by what it says.
    """
    shown = [at for at in range(len(head)) if any(row[at] for row in rows)]
    names = [head[at] for at in shown]
    cells = [[one_line(row[at]) for at in shown] for row in rows]
    on_terminal = sys.stdout.isatty()
    if on_terminal:
        for row in cells:
            row[:] = [cut(cell, SHORT_CELLS) if name in short else cell for name, cell in zip(names, row, strict=True)]
    widths = [max(map(_length, column)) for column in zip(names, *cells, strict=True)]
    before = sum(widths[:-1]) + 2 * (len(widths) - 1)
    room = columns() - before if on_terminal else PIPE_COLUMNS
    below = wrap and len(names) > 1 and room < min(LAST_CELLS_MIN, widths[-1])
    if below:
        before, room = 2, columns() - 2
        names = names[:-1]
    _write(sys.stdout, _aligned(names, widths, names, right, ["dim"] * len(names)))
    for row in cells:
        styles = [_COLOURS.get(cell, "") if name == state else "" for name, cell in zip(names, row, strict=False)]
        lines = wrapped(row[-1], room) if wrap else [cut(row[-1], max(room, LAST_CELLS_MIN))]
        if not below:
            row[-1] = lines.pop(0)
        _write(sys.stdout, _aligned(row[: len(names)], widths, names, right, styles))
        for line in lines:
            if line:
                _write(sys.stdout, " " * before + line)


def _aligned(
    cells: Sequence[str], widths: Sequence[int], names: Sequence[str], right: Sequence[str], styles: Sequence[str]
) -> str:
    """One row of a table."""
    parts: list[str] = []
    for cell, width, name, style in zip(cells, widths, names, styles, strict=False):
        blanks = " " * (width - _length(cell))
        parts.append(f"{blanks}{painted(cell, style)}" if name in right else f"{painted(cell, style)}{blanks}")
    return "  ".join(parts).rstrip()


def _length(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(text)


def cut(text: str, width: int) -> str:
    """The text in at most `width` cells of a terminal, with a mark where something is left out."""
    from rich.cells import cell_len, set_cell_size

    return text if cell_len(text) <= width else f"{set_cell_size(text, width - 1).rstrip()}…"


def wrapped(text: str, width: int) -> list[str]:
    """The text as lines of at most `width` cells, broken between words."""
    wrap = Wrap(width)
    return (wrap.feed(text) + wrap.rest()).split("\n")


def painted(text: str, style: str, stream: TextIO | None = None) -> str:
    """The text in a style (`bold`, `dim` or a colour), where the stream (stdout) is a terminal that shows colours."""
    shown_on = stream or sys.stdout
    colourful = shown_on.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if text and style and colourful else text
