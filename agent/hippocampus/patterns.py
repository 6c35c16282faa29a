"""Regular expressions that are compiled when they are first used: most starts of the program read no sentence."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property


class Pattern:
    """A regular expression with the methods of a compiled one that are used here."""

    def __init__(self, text: str, flags: int = 0) -> None:
        self._text = text
        self._flags = flags

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self._text, self._flags)

    def search(self, text: str, start: int = 0) -> re.Match[str] | None:
        return self._compiled.search(text, start)

    def match(self, text: str) -> re.Match[str] | None:
        return self._compiled.match(text)

    def fullmatch(self, text: str) -> re.Match[str] | None:
        return self._compiled.fullmatch(text)

    def finditer(self, text: str) -> list[re.Match[str]]:
        return list(self._compiled.finditer(text))

    def sub(self, by: str | Callable[[re.Match[str]], str], text: str) -> str:
        return self._compiled.sub(by, text)

    def split(self, text: str) -> list[str]:
        return self._compiled.split(text)
