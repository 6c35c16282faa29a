"""How commands speak: data on stdout, remarks on stderr, nothing when there is nothing to say."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TextIO
from zoneinfo import ZoneInfo

if TYPE_CHECKING:
    from rich.console import Console

PIPE_COLUMNS = 10_000
"""Width of a table that no terminal shows: nothing is cut."""

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]")
_COLOURS = {
    "connected": "green",
    "ok": "green",
    "success": "green",
    "waiting": "",
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
    "logged_out": "red",
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


def say(text: str = "") -> None:
    """A line of data."""
    _write(sys.stdout, clean(text))


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
        self._gap = self._word = ""
        if not word:
            return ""
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
        if on_one_line:
            from rich.cells import cell_len, set_cell_size

            if cell_len(text) > columns():
                text = f"{set_cell_size(text, columns() - 1).rstrip()}…"
        _write(sys.stderr, f"\x1b[2m{clean(text)}\x1b[0m" if _colours(sys.stderr) else clean(text))


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
    whole: Sequence[str] = (),
    right: Sequence[str] = (),
    state: str = "",
) -> None:
    """Aligned columns under a dim head. On a terminal long cells are cut, but never those of the columns `whole`.
    Columns in `right` hold numbers. The column `state` is coloured by what it says. Columns that are empty throughout
    are left out."""
    from rich.table import Table
    from rich.text import Text

    shown = [at for at in range(len(head)) if any(row[at] for row in rows)]
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", show_header=any(head))
    for at in shown:
        fixed = head[at] in whole
        width = max(_cells(head[at]), *(_cells(row[at]) for row in rows)) if fixed else None
        grid.add_column(
            head[at],
            no_wrap=True,
            overflow="ellipsis",
            min_width=width,
            justify="right" if head[at] in right else "left",
        )
    for row in rows:
        cells = (
            Text(
                one_line(row[at]), _COLOURS.get(row[at].split()[0] if row[at] else "", "") if head[at] == state else ""
            )
            for at in shown
        )
        grid.add_row(*cells)
    _print(grid)


def _cells(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(one_line(text))


def styled(*parts: tuple[str, str]) -> None:
    """One line of (text, style) pieces."""
    from rich.text import Text

    _print(Text.assemble(*((clean(text), style) for text, style in parts)))


def coloured(state: str) -> tuple[str, str]:
    """A state with its colour, for `styled`."""
    return state, _COLOURS.get(state, "")


def _print(thing: Any) -> None:
    console = _console()
    with console.capture() as captured:
        console.print(thing, soft_wrap=not hasattr(thing, "columns"))
    # The grid fills its last column with blanks; nobody needs them.
    for line in captured.get().splitlines():
        _write(sys.stdout, line.rstrip())


def _console() -> Console:
    from rich.console import Console

    return Console(file=sys.stdout, width=None if sys.stdout.isatty() else PIPE_COLUMNS, highlight=False, markup=False)


def _colours(stream: Any) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
