"""How the house folds words, for those who compare sentences: the same as the index does."""

from __future__ import annotations

from agent.cortex.stop_words import STOP_WORDS
from agent.cortex.text import pieces, sameness_key


class FoldedWords:
    """`agent.hippocampus.types.Words`."""

    @property
    def common_words(self) -> frozenset[str]:
        """Words too common to compare sentences by, folded."""
        return STOP_WORDS

    def sameness_key(self, text: str) -> str:
        """Equal for sentences that differ in case, spacing, punctuation or letter forms only."""
        return sameness_key(text)

    def word_forms(self, text: str) -> list[tuple[str, ...]]:
        """Each word of a text in order: its folded token, then the forms that stand for it."""
        return [(word.token, *word.forms) for piece in pieces(text) for word in piece.words]
