"""How a prompt keeps apart what a person says, what the program says and what is only data.

A user message of the running turn is `<data ...>` blocks (recalled hits), one `<context>` block (time, person), an
empty line, and then the person's own words to the end. The text of a tool message is one `<data ...>` block.
Text from outside can hold none of these tags: `escape` breaks each with a backslash (`<\\data>`).
"""

from __future__ import annotations

import re

from agent.lines import one_line

_TAGS = "data|context|notice"
# Between `<` and the name a reader might overlook white space and characters without width; we overlook them too.
_INVISIBLE = "\\s\u00ad\u034f\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
_TAG = re.compile(rf"<(?=[{_INVISIBLE}]*/?[{_INVISIBLE}]*(?:{_TAGS})\b)", re.IGNORECASE)
_ESCAPED = re.compile(rf"<\\(?=[{_INVISIBLE}]*/?[{_INVISIBLE}]*(?:{_TAGS})\b)", re.IGNORECASE)
_BLOCK = re.compile(r"<data [^\n]*>\n(?P<text>.*)\n</data>", re.DOTALL)
_CONTEXT_END = "\n</context>\n\n"
TURN_BEGINS = "<context>\nnow: "
"""Stands in the message that a turn answers, and in no other."""


def escape(text: str) -> str:
    """`text` with every tag of ours broken, so that it can neither close a fence nor open one."""
    return _TAG.sub(r"<\\", text) if "<" in text else text


def unescape(text: str) -> str:
    """Undoes `escape`."""
    return _ESCAPED.sub("<", text) if "<\\" in text else text


def fence(text: str, source: str, **attributes: str) -> str:
    """`text` as data, with where it comes from in the tag; empty attributes are left out."""
    marks = "".join(f' {name}="{one_line(value)}"' for name, value in attributes.items() if value)
    return f'<data source="{one_line(source)}"{marks}>\n{escape(text)}\n</data>'


def unfence(text: str) -> str:
    """The text inside a fence; a text that is no fence comes back as it is."""
    found = _BLOCK.fullmatch(text)
    return unescape(found["text"]) if found else text


def said_meanwhile(text: str) -> str:
    """A user message that came while the turn was running."""
    return f"<context>\ncame while you were at work{_CONTEXT_END}{escape(text)}"


def spoken(text: str) -> str:
    """The person's own words in a user message, without the blocks the program put before them.

    Empty for a message that is a notice of the program.
    """
    if text.startswith("<notice>"):
        return ""
    _, mark, words = text.partition(_CONTEXT_END)
    return unescape(words if mark else text)
