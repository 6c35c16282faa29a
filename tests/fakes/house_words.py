"""How the house folds words, without an index; and a reader of sentences."""

from __future__ import annotations

from agent.cortex.words import FoldedWords
from agent.hippocampus.claims import Reader
from agent.hippocampus.lexicon import Lexicon

HouseWords = FoldedWords


def a_reader() -> Reader:
    words = HouseWords()
    return Reader(Lexicon(words), words.sameness_key)
