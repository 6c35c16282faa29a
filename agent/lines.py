"""Text from anywhere made fit for one line, or for a bounded space."""

from __future__ import annotations

import re

_BREAK = re.compile(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
"""Whatever `str.splitlines` or a reader may take for the end of a line."""
_UNSAFE_IN_NAMES = re.compile(r'[\x00-\x1f\x7f-\x9f"<>&]|[\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\u061c]')


def one_line(text: str, chars_max: int = 120) -> str:
    """A name from outside, fit to stand in a tag or a line: no breaks, no invisible characters, no quotes."""
    line = " ".join(_UNSAFE_IN_NAMES.sub(" ", text[: chars_max * 4]).split())
    return line if len(line) <= chars_max else f"{line[: chars_max - 1]}…"


def flat(text: str, chars_max: int) -> str:
    """The text on one line, at most so many characters; a cut one ends in `…`."""
    # A long text is cut before it is split: its rest would be thrown away anyway.
    line = " ".join(text[: chars_max * 4].split())
    return line if len(line) <= chars_max and len(text) <= chars_max * 4 else f"{line[: chars_max - 1].rstrip()}…"


def bounded(text: str, chars_max: int) -> str:
    """The text, or its head (two thirds) and tail with a line that says how much is left out; at most `chars_max`."""
    if len(text) <= chars_max:
        return text
    mark = f"\n\n[... {len(text) - chars_max:,} characters or a little more left out ...]\n\n"
    head = (chars_max - len(mark)) * 2 // 3
    tail = chars_max - len(mark) - head
    return f"{text[:head]}{mark}{text[-tail:]}"


def body(text: str) -> str:
    """What somebody wrote, each line set in by two spaces: none can look like the line that names its author."""
    return "  " + _BREAK.sub("\n  ", text) if text else ""


def lines_of(text: str) -> list[str]:
    """Lines as references number them, without their ends: `\\n` and `\\r\\n` end one, no other sign does.

    The empty piece after a last line break is none.
    """
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    return lines[:-1] if lines[-1] == "" else lines
