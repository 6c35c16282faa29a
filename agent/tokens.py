"""Rough token counts, by script, and texts cut to them. No tokenizer: the model may be anyone's."""

from __future__ import annotations

import re
from functools import lru_cache

_ARABIC = re.compile(r"[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]+")
_UNSPACED = re.compile(r"[\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]+")
_LATIN_CHARS_PER_TOKEN = 4.0
_ARABIC_CHARS_PER_TOKEN = 3.0
_UNSPACED_CHARS_PER_TOKEN = 1.5


def estimate_tokens(text: str) -> int:
    """Tokens a model is likely to count: characters / 4, Arabic and Hebrew / 3, Chinese, Japanese, Korean / 1.5."""
    if text.isascii():
        return round(len(text) / _LATIN_CHARS_PER_TOKEN + 0.499)
    arabic = sum(map(len, _ARABIC.findall(text)))
    unspaced = sum(map(len, _UNSPACED.findall(text)))
    other = len(text) - arabic - unspaced
    tokens = other / _LATIN_CHARS_PER_TOKEN + arabic / _ARABIC_CHARS_PER_TOKEN + unspaced / _UNSPACED_CHARS_PER_TOKEN
    return round(tokens + 0.499)


@lru_cache(maxsize=256)
def lasting_tokens(text: str) -> int:
    """The same, remembered: for texts that come again and again."""
    return estimate_tokens(text)


def clip(text: str, tokens_max: int, hint: str) -> str:
    """The text when it fits, else its head (three quarters) and tail around a line that tells how much is missing.

    `hint` ends that line: where the whole text is. The outcome is at most `tokens_max` plus the line's own tokens.
    """
    tokens = estimate_tokens(text)
    if tokens <= tokens_max:
        return text
    kept = int(len(text) * max(0, tokens_max) / tokens)
    head = kept * 3 // 4
    while True:
        tail = kept - head
        ends = f"{text[:head]}{text[len(text) - tail :]}"
        if not ends or estimate_tokens(ends) <= tokens_max:
            break
        # The ends may be denser than the whole: take less until they fit.
        kept = kept * 9 // 10
        head = kept * 3 // 4
    return f"{text[:head]}\n[... {len(text) - kept:,} characters left out; {hint} ...]\n{text[len(text) - tail :]}"
