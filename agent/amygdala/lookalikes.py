"""Characters that hide or pass for others, and how the owner is shown them."""

from __future__ import annotations

import re
import unicodedata

_BLANK = frozenset("\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\u034f")
"""Letters and marks that show nothing."""
_LOOKALIKE_SCRIPTS = (
    "CYRILLIC",
    "GREEK",
    "ARMENIAN",
    "CHEROKEE",
    "COPTIC",
    "LISU",
    "GEORGIAN",
    "DESERET",
    "OSAGE",
    "VAI",
)
_LIKE_ASCII = frozenset(
    # Letters of other alphabets and of phonetics; hyphens, dashes, minus; slashes; quotation marks, accents and primes;
    # bars and colons.
    "\u0131\u017f\u0251\u0261\u026a\u0269\u1d04\u1d0f\u1d1c\u1d20\u1d21\u1d22"
    "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u2043\u2044\u2215\u2216"
    "\u2018\u2019\u201a\u201c\u201d\u2032\u2033\u00b4\u02ca\u02cb\u05f3\u05f4"
    "\u01c0\u2223\u02d0\u2236\ua789\u0589\u05c3\u2024"
)
_ASCII_LETTER = re.compile(r"[A-Za-z]")
_TOKEN = re.compile(r"\S+")
_LITERAL_ESCAPE = re.compile(r"\\(?=u\{)")


def hidden(char: str) -> bool:
    """True for a character that shows nothing or changes how others are shown: control and format characters (not
    line break and tab), spaces that are no space, fillers, variation selectors, what has no meaning."""
    if " " <= char <= "~" or char in "\n\t":
        return False
    category = unicodedata.category(char)
    if category in {"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"}:
        return True
    return (
        char in _BLANK
        or "\ufe00" <= char <= "\ufe0f"
        or "\U000e0100" <= char <= "\U000e01ef"
        or "\u180b" <= char <= "\u180f"
    )


def look_alike(char: str) -> bool:
    """True for a character outside ASCII that a reader may take for one inside."""
    if char.isascii():
        return False
    folded = unicodedata.normalize("NFKC", char)
    if len(folded) == 1 and folded.isascii():
        return True
    if char in _LIKE_ASCII:
        return True
    return unicodedata.name(char, "").startswith(_LOOKALIKE_SCRIPTS)


def visible(text: str, *, code: bool) -> str:
    """`text` with hidden characters as `\\u{...}`, and with those that pass for others where that could deceive: in
    `code` everywhere, else in a word that has ASCII letters too. A `\\u{` that was in the text is `\\u{5c}u{`."""
    text = _LITERAL_ESCAPE.sub(r"\\u{5c}", text)
    if text.isascii() and text.isprintable():
        return text
    return _TOKEN.sub(
        lambda token: _token(token[0], code), re.sub(r"[^\S \n\t]", lambda found: _escape(found[0]), text)
    )


def _token(token: str, code: bool) -> str:
    if token.isascii() and token.isprintable():
        return token
    mixed = code or _ASCII_LETTER.search(re.sub(r"\\u\{[0-9a-f]+\}", "", token)) is not None
    shown: list[str] = []
    before = " "
    for char in token:
        stray = before.isascii() and unicodedata.category(char) in {"Mn", "Me"}
        shown.append(_escape(char) if hidden(char) or stray or (mixed and deceives(char, code)) else char)
        before = char
    return "".join(shown)


def deceives(char: str, code: bool) -> bool:
    """In prose quotation marks and dashes are what they are; in code they pass for the ASCII ones."""
    return look_alike(char) and (
        code or unicodedata.category(char)[0] in "LN" or char in "\u2024\u2044\u2215\u2236\ua789"
    )


def _escape(char: str) -> str:
    return f"\\u{{{ord(char):x}}}"
