"""Reads what a person typed into words to search for. No typed text is ever query syntax."""

from __future__ import annotations

import re
from dataclasses import dataclass

import regex

from agent.cortex.dates import Date, read_dates
from agent.cortex.stop_words import STOP_WORDS
from agent.cortex.text import UNSPACED, WHOLE_JOIN, clean, pieces, tokens_of
from agent.limits import QUERY_CHARS_MAX

WORDS_MAX = 48
PHRASES_MAX = 4
ASKED_WORDS_MIN = 3
ASKED_TOKENS_MIN = 4
"""What has so many words is a question."""
_QUOTED = regex.compile(
    rf'(?<![[\p{{L}}\p{{M}}\p{{N}}]--[{UNSPACED}]])"([^"]{{1,300}})"|“([^”]{{1,300}})”|«([^»]{{1,300}})»|„([^“”]{{1,300}})[“”]|「([^」]{{1,300}})」',
    regex.V1,
)
"""A sign after a letter or digit opens nothing: `צה"ל`, `5" pipe`."""
_ARABIC = re.compile("[\u0620-\u06ff]")


@dataclass(frozen=True, slots=True)
class QueryWord:
    """One word to search for. `forms`: all tokens that stand for it, itself first; `asked`: those that find it."""

    forms: tuple[str, ...]
    asked: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Query:
    """`words` in the order typed, each once; `phrases` are token sequences that must occur as they are.
    `is_question`: so many words that a message beside the right one may be its answer, though it shares none.

    `said`: every token of what was typed, common words too. `signs`: its characters of unspaced scripts. `dates` are
    those typed; `only_dates`: nothing else was.
    """

    words: tuple[QueryWord, ...]
    phrases: tuple[tuple[str, ...], ...] = ()
    said: frozenset[str] = frozenset()
    signs: frozenset[str] = frozenset()
    dates: tuple[Date, ...] = ()
    only_dates: bool = False
    is_question: bool = False


def parse_query(text: str) -> Query:
    """Any text to a Query; one without a letter, digit or emoji to a Query without words.

    Only the first QUERY_CHARS_MAX characters count, and of their words the first WORDS_MAX.
    """
    text = clean(text[:QUERY_CHARS_MAX])
    words: dict[str, QueryWord] = {}
    common: dict[str, QueryWord] = {}
    signs: set[str] = set()
    for piece in pieces(text):
        signs.update(piece.singles)
        tokens = [word.token for word in piece.words]
        for word in piece.words:
            kept = common if word.token in STOP_WORDS else words
            kept.setdefault(word.token, _query_word((word.token, *word.forms)))
        if piece.wholes and not (tokens and STOP_WORDS.issuperset(tokens)):
            whole = piece.wholes[0]
            known = words[whole].asked if whole in words else ()
            forms = tuple(dict.fromkeys([*known, *piece.wholes]))
            words[whole] = QueryWord(forms, forms)
    phrases = [tokens_of(next(filter(None, match.groups()))) for match in _QUOTED.finditer(text)]
    unquoted = tokens_of(_QUOTED.sub(" ", text))
    if len(frozenset(unquoted) - STOP_WORDS) >= ASKED_WORDS_MIN:
        phrases = []  # a question that quotes: its answer need not repeat the quotation
    chosen = words or common
    dates, written = read_dates(text)
    return Query(
        tuple(chosen.values())[:WORDS_MAX],
        tuple(tuple(phrase) for phrase in phrases if len(phrase) > 1)[:PHRASES_MAX],
        frozenset([*words, *common]),
        frozenset(signs),
        dates,
        bool(dates) and all(word.forms[0] in written or WHOLE_JOIN in word.forms[0] for word in words.values()),
        not phrases and len(tokens_of(text)) >= ASKED_TOKENS_MIN,
    )


def _query_word(forms: tuple[str, ...]) -> QueryWord:
    # The stem of a word is indexed with it, so the stem alone finds every form of it; Arabic forms do not all lead
    # to one stem, so each is asked for, and so is each of the ways to write an umlaut.
    word, *others = forms
    is_each_asked = len(others) > 1 or _ARABIC.search(word) is not None
    return QueryWord(forms, forms if is_each_asked else forms[-1:])
