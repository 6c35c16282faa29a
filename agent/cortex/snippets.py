"""Cuts out of a text the part that answers a query, as it stands in the original."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping

from agent.cortex.text import places

_LOOKED_AT_CHARS = 60_000
_BORDER_CHARS = 24
"""So far a cut moves to fall between words."""
_REPEAT_SHARE = 0.1
_CUT = "…"


def snippet(text: str, weights: Mapping[str, float], chars_max: int) -> str:
    """At most `chars_max` characters around the best cluster of weighted tokens; all of a text that is shorter."""
    text = text.strip()
    if len(text) <= chars_max:
        return text
    start, end = _best_window(text[:_LOOKED_AT_CHARS], weights, chars_max - 2 * len(_CUT))
    start, end = _between_words(text, start, end)
    return f"{_CUT if start > 0 else ''}{text[start:end].strip()}{_CUT if end < len(text) else ''}"


def _best_window(text: str, weights: Mapping[str, float], width: int) -> tuple[int, int]:
    """Where the distinct weighted tokens that fit into `width` characters weigh most; the beginning without any."""
    found: list[tuple[int, int, str]] = []
    for start, end, forms in places(text):
        best = max((form for form in forms if form in weights), key=lambda form: weights[form], default=None)
        if best is not None:
            found.append((start, end, best))
    if not found:
        return 0, min(len(text), width)
    best_value, best_span = -1.0, (0, width)
    counts: dict[str, int] = {}
    value, first = 0.0, 0
    for start, end, form in found:
        known = counts.get(form, 0)
        value += weights[form] * (_REPEAT_SHARE if known else 1.0)
        counts[form] = known + 1
        while end - found[first][0] > width and found[first][0] < start:
            gone = found[first][2]
            counts[gone] -= 1
            value -= weights[gone] * (_REPEAT_SHARE if counts[gone] else 1.0)
            first += 1
        if value > best_value + 1e-9:
            best_value, best_span = value, (found[first][0], end)
    spare = max(0, width - (best_span[1] - best_span[0]))
    start = max(0, min(best_span[0] - spare // 3, len(text) - width))
    return start, min(len(text), start + width)


def _between_words(text: str, start: int, end: int) -> tuple[int, int]:
    """Moves both cuts inwards to white space, or at least off the middle of a character with marks."""
    if start > 0 and not text[start - 1].isspace():
        near = next((at for at in range(start, min(start + _BORDER_CHARS, end)) if text[at].isspace()), None)
        start = start if near is None else near + 1
        while start < end and _joins_on(text[start]):
            start += 1
    if end < len(text) and not text[end].isspace():
        near = next((at for at in range(end - 1, max(end - _BORDER_CHARS, start), -1) if text[at].isspace()), None)
        end = end if near is None else near
        while end > start and end < len(text) and _joins_on(text[end]):
            end -= 1
    return start, end


def _joins_on(character: str) -> bool:
    """True for what belongs to the character before it."""
    return unicodedata.category(character).startswith("M") or character in "\u200d\ufe0f"
