"""Loads the named SQL sentences of this folder. Each starts at `-- name: its-name` and ends at the next name."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

_NAME = re.compile(r"^-- name: ([a-z-]+)$", re.MULTILINE)


@cache
def sentences(file_name: str) -> dict[str, str]:
    """The sentences of one file by name, in the order of the file."""
    text = Path(__file__).with_name(file_name).read_text(encoding="utf-8")
    parts = _NAME.split(text)[1:]
    return {name: sentence.strip() for name, sentence in zip(parts[::2], parts[1::2], strict=True)}
