"""Text from outside may hold halves of characters; this makes it whole."""

from __future__ import annotations


def whole_characters(text: str) -> str:
    """`text` without lone surrogates: halves of a pair are joined, others become U+FFFD. The result can be encoded."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
