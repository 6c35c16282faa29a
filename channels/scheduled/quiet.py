"""Whether an answer says that all is well, so that nobody needs to be told."""

from __future__ import annotations

import re

QUIET_TOKEN = "HEARTBEAT_OK"
QUIET_OTHER_CHARS_MAX = 300
"""How much else a quiet answer may say beside the token."""

_DRESS = " \t\r\n*_`~\"'«»“”#>.!:،-\u200e\u200f\u061c\u2066\u2067\u2068\u2069"
"""Space, Markdown, quotation marks, full stops and direction marks around the token; they count as nothing."""
_AT_START = re.compile(rf"{QUIET_TOKEN}(?!\w)")
_AT_END = re.compile(rf"(?<!\w){QUIET_TOKEN}$")


def is_quiet(reply: str) -> bool:
    """True for `HEARTBEAT_OK` alone, or at the start or end of at most 300 other characters.

    In the middle of a text, inside a word, or in other letter case it is ordinary text.
    """
    bare = reply.strip(_DRESS)
    if not (_AT_START.match(bare) or _AT_END.search(bare)):
        return False
    other = bare.removeprefix(QUIET_TOKEN).removesuffix(QUIET_TOKEN).strip(_DRESS)
    return len(other) <= QUIET_OTHER_CHARS_MAX
