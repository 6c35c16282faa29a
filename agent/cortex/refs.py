"""References: how a record is named to people and models, and how that name is read back."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

_SIGNS_TRIED = 16
_MESSAGE = re.compile(r"([0-9]{1,12})(?:\.([0-9]{1,6}))?\Z")
_LINES = re.compile(r"L([0-9]{1,9})(?:\s*-\s*L?([0-9]{1,9}))?\Z")


@dataclass(frozen=True, slots=True)
class Ref:
    """A reference, read.

    - `conversation`: `id`, `n` (None: all of it), `part` (None: the message itself).
    - `file`: `path`, and at most one of `lines` (first and last, from 1, inclusive) and `heading`.
    - `task`: `id`, and `detail` (None: the whole task).
    """

    kind: str
    id: str = ""
    n: int | None = None
    part: int | None = None
    path: str = ""
    lines: tuple[int, int] | None = None
    heading: str | None = None
    detail: int | None = None


def parse_ref(text: str, is_file: Callable[[str], bool] | None = None) -> Ref | None:
    """Reads a reference; a bare path counts as a file. None: it is none.

    `is_file` tells whether there is a file of that name: only so is a `#` within a name known from one after it.
    """
    text = text.strip().strip("`<>[]()\"'").strip()
    kind, colon, rest = text.partition(":")
    if colon and kind == "conversation":
        return _conversation(rest)
    if colon and kind == "task":
        return _task(rest)
    path = rest if colon and kind == "file" else text
    if "\n" in path or "\0" in path:
        return None
    name, sign, anchor = path.partition("#")
    if is_file is not None and sign:
        # The longest name that there is: `a#b.md#L3` is line 3 of `a#b.md`.
        ends = [at for at, letter in enumerate(path) if letter == "#"][::-1][:_SIGNS_TRIED]
        for end in (len(path), *ends):
            if is_file(path[:end].strip()):
                name, anchor = path[:end], path[end + 1 :]
                break
    path = name.strip()
    if not path:
        return None
    if not sign or not anchor.strip():
        return Ref("file", path=path)
    lines = _LINES.match(anchor.strip())
    if lines:
        first = int(lines[1])
        return Ref("file", path=path, lines=(first, int(lines[2] or first)))
    return Ref("file", path=path, heading=anchor.strip())


def _conversation(rest: str) -> Ref | None:
    id_, sign, number = rest.rpartition("#")
    if not sign:
        return Ref("conversation", id=rest) if rest else None
    if not id_:
        return None
    if not number:
        return Ref("conversation", id=id_)
    match = _MESSAGE.match(number)
    if not match:
        return None
    return Ref("conversation", id=id_, n=int(match[1]), part=int(match[2]) if match[2] else None)


def _task(rest: str) -> Ref | None:
    id_, sign, anchor = rest.partition("#")
    if not id_:
        return None
    if not sign:
        return Ref("task", id=id_)
    match = re.fullmatch(r"detail([0-9]{1,6})", anchor)
    return Ref("task", id=id_, detail=int(match[1])) if match else None


def record_ref(owner: str, n: int, part: int, last: int) -> str:
    """The reference of a record: `conversation:<id>#3`, `conversation:<id>#3.1`, `file:<path>#L10-L24`."""
    if owner.startswith("conversation:"):
        return f"{owner}#{n}.{part}" if part else f"{owner}#{n}"
    if n == 0:
        return owner
    return f"{owner}#L{n}" if last <= n else f"{owner}#L{n}-L{last}"
