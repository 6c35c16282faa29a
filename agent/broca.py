"""Output stream: turns a model's chunks into the pieces of text a person may see, as they come.

Never shown: thinking (also inline `<think>...</think>`), tool calls, half a user-perceived character.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

from agent.characters import whole_characters
from agent.limits import CLUSTER_CHARS_MAX
from agent.types import Segment, StreamChunk

_OPEN = re.compile(r"<(think|thinking)>", re.IGNORECASE)
_CLOSE = {name: re.compile(rf"</{name}>", re.IGNORECASE) for name in ("think", "thinking")}
_TAG_CHARS_MAX = len("</thinking>")
# A model that writes *about* the tag quotes it; that is not thinking.
_QUOTES = frozenset("`\"'“”«\\")


@cache
def _clusters() -> Callable[[str], Any]:
    """Matches extended grapheme clusters (Unicode annex 29). Loaded when the first text outside ASCII comes."""
    import regex

    return regex.compile(r"\X").finditer


class Speech:
    """What is said in one model round. `speak()` each chunk, `finish()` once; `text` is all that was shown."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._shown: list[str] = []
        self._held = ""  # the last character, which the next chunk may still add to
        self._inside = ""  # the thinking tag we are in
        self._tag = ""  # the end of the last chunk, when it may be the beginning of a tag
        self._before = ""  # the character before `_tag`
        self._said = False  # anything but white space was let through
        self._trim = False  # white space between leading thinking and the answer is no part of the answer

    @property
    def text(self) -> str:
        """The visible text of the round so far; all of it after `finish()`."""
        if len(self._shown) > 1:
            self._shown = ["".join(self._shown)]
        return self._shown[0] if self._shown else ""

    def speak(self, chunk: StreamChunk) -> list[Segment]:
        """The segments one chunk gives; most often one or none."""
        if chunk.kind == "text":
            text = chunk.text
            if self._inside or self._tag or self._trim or "<" in text:
                text = self._without_thinking(text)
            else:
                self._said = self._said or bool(text.strip())
            if not text:
                return []
            self._before = text[-1]
            return self._show(self._whole(text))
        if chunk.kind == "reset":
            self._begin()
            return [Segment("reset")]
        return []

    def finish(self) -> list[Segment]:
        """What was held back. Thinking that never ended stays hidden."""
        rest = self._held + ("" if self._inside else self._tag)
        self._held = self._tag = ""
        return self._show(whole_characters(rest))

    def _show(self, text: str) -> list[Segment]:
        if not text:
            return []
        self._shown.append(text)
        return [Segment("text", text)]

    def _whole(self, text: str) -> str:
        """`text` after what was held, up to the last character that is surely complete; the rest is held."""
        text = self._held + text
        if text.isascii():
            # Only a mark that follows can still change the last one, and none joins a line break.
            cut = len(text) - (text[-1] != "\n")
            self._held = text[cut:]
            return text[:cut]
        text = _joined_surrogates(text)
        cut = 0
        for found in _clusters()(text):
            cut = found.start()
        if len(text) - cut > CLUSTER_CHARS_MAX:
            cut = len(text)
        self._held = text[cut:]
        return text[:cut]

    def _without_thinking(self, text: str) -> str:
        """The part of `text` that is not thinking; a tag that may be cut by the chunk's end waits in `_tag`."""
        text, self._tag = self._tag + text, ""
        out: list[str] = []
        at = 0
        while at < len(text):
            if self._inside:
                closed = _CLOSE[self._inside].search(text, at)
                if closed is None:
                    self._tag = _tag_begun(text, at, f"</{self._inside}>")
                    break
                self._inside = ""
                self._trim = not self._said
                at = closed.end()
                continue
            opened = self._next_open(text, at)
            if opened is None:
                self._tag = _tag_begun(text, at, "<thinking>", "<think>")
                out.append(self._let_through(text[at : len(text) - len(self._tag)]))
                break
            out.append(self._let_through(text[at : opened.start()]))
            self._inside = opened.group(1).lower()
            at = opened.end()
        return "".join(out)

    def _next_open(self, text: str, at: int) -> re.Match[str] | None:
        while (opened := _OPEN.search(text, at)) is not None:
            before = text[opened.start() - 1] if opened.start() else self._before
            if before not in _QUOTES:
                return opened
            at = opened.end()
        return None

    def _let_through(self, text: str) -> str:
        if self._trim:
            text = text.lstrip()
            self._trim = not text
        self._said = self._said or bool(text.strip())
        return text


def _tag_begun(text: str, at: int, *tags: str) -> str:
    """The end of `text` that may be the beginning of one of `tags`, else nothing."""
    start = text.rfind("<", max(at, len(text) - _TAG_CHARS_MAX))
    tail = text[start:] if start >= 0 else ""
    return tail if any(tag.startswith(tail.lower()) for tag in tags) else ""


def _joined_surrogates(text: str) -> str:
    """Halves of a pair that came in two chunks become one character, other halves U+FFFD; a half at the very end may
    still be joined and stays."""
    if "\ud800" <= text[-1] <= "\udbff":
        return whole_characters(text[:-1]) + text[-1]
    return whole_characters(text)


class Broca:
    """The region: `begin()` a Speech for each model round."""

    def begin(self) -> Speech:
        """A Speech for one model round."""
        return Speech()
