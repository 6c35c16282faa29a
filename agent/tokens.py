"""Rough token counts, by script, corrected by what a model bills, and texts cut to them.

No tokenizer: the model may be anyone's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import lru_cache

from agent.limits import CONTEXT_TOKENS_DEFAULT
from agent.types import Message, ToolSpec

_ARABIC = re.compile(r"[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]+")
_UNSPACED = re.compile(r"[\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]+")
_LATIN_CHARS_PER_TOKEN = 4.0
_ARABIC_CHARS_PER_TOKEN = 3.0
_UNSPACED_CHARS_PER_TOKEN = 1.5
_MESSAGE_TOKENS = 4
"""What a message or a call costs beside its text."""
_PICTURE_TOKENS = 1_600
"""A large picture at the service that counts most."""
_RATIO_MIN, _RATIO_MAX = 0.5, 2.0
_PLAUSIBLE = (0.25, 4.0)
_NEWEST_SHARE = 0.3
"""How much the newest call counts beside all before it."""
_TOKENS_TO_LEARN_FROM = 500
"""What a service adds to each request would outweigh a shorter one."""


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


def message_tokens(messages: Iterable[Message]) -> int:
    """Tokens of messages with their calls and pictures."""
    total = 0
    for message in messages:
        total += estimate_tokens(message.text) + _MESSAGE_TOKENS + len(message.images) * _PICTURE_TOKENS
        for call in message.calls:
            arguments = json.dumps(dict(call.args), ensure_ascii=False, default=str)
            total += estimate_tokens(call.name) + estimate_tokens(arguments) + _MESSAGE_TOKENS
    return total


def tool_tokens(tools: Iterable[ToolSpec]) -> int:
    """Tokens of a tool list."""
    return sum(estimate_tokens(f"{tool.name} {tool.description} {json.dumps(tool.parameters)}") for tool in tools)


class ModelContext:
    """How much one model takes, in tokens as they are estimated here.

    `tokens_max` is what the model is said to take, 0: a cautious default. `ratio` is how many tokens it bills for each
    that is estimated, learnt from its answered calls: 0.5 to 2, at first 1.
    """

    def __init__(self, tokens_max: int = 0) -> None:
        self.is_set = tokens_max > 0
        self._tokens_max = tokens_max or CONTEXT_TOKENS_DEFAULT
        self._learnt: float | None = None

    @property
    def ratio(self) -> float:
        return 1.0 if self._learnt is None else self._learnt

    def looked_up(self, tokens_max: int) -> None:
        """A list says what the model takes (0: it does not know). What was set stands."""
        if tokens_max and not self.is_set:
            self._tokens_max = tokens_max

    def share(self, part: float) -> int:
        """Estimated tokens that fill this part of the context."""
        return int(self._tokens_max * part / self.ratio)

    def note(self, estimated: int, billed: int) -> None:
        """One call came to `billed` tokens of input. A short one, and a figure nobody can mean, teach nothing."""
        if estimated < _TOKENS_TO_LEARN_FROM or not _PLAUSIBLE[0] <= billed / estimated <= _PLAUSIBLE[1]:
            return
        seen = billed / estimated
        ratio = seen if self._learnt is None else self._learnt + _NEWEST_SHARE * (seen - self._learnt)
        self._learnt = min(max(ratio, _RATIO_MIN), _RATIO_MAX)


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
