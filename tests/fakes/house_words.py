"""How the house folds words, without an index."""

from __future__ import annotations

from collections.abc import Collection

from agent.cortex.stop_words import STOP_WORDS
from agent.cortex.text import pieces, sameness_key
from agent.hippocampus.claims import Reader
from agent.hippocampus.lexicon import Lexicon


class HouseWords:
    """`agent.hippocampus.types.Words`."""

    @property
    def common_words(self) -> Collection[str]:
        return STOP_WORDS

    def sameness_key(self, text: str) -> str:
        return sameness_key(text)

    def word_forms(self, text: str) -> list[tuple[str, ...]]:
        return [(word.token, *word.forms) for piece in pieces(text) for word in piece.words]


def a_reader() -> Reader:
    words = HouseWords()
    return Reader(Lexicon(words), words.sameness_key)
