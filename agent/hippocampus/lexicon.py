"""Words of one meaning, and words of which one holds at a time: a small list that may be added to (lexicon.txt)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from agent.hippocampus.types import Words

_FILE = Path(__file__).with_name("lexicon.txt")
_CACHED_MAX = 100_000


@dataclass(frozen=True, slots=True)
class Word:
    """A word for comparing: two are the same when they share a form. `forms` holds the meaning (`=tea`) too.

    `respects`: in what respects it is one of several that exclude each other.
    """

    token: str
    forms: frozenset[str]
    respects: frozenset[str] = frozenset()


class Lexicon:
    """Makes words of texts. `words` is how the house folds them."""

    def __init__(self, words: Words) -> None:
        self._words = words
        self._common = frozenset(words.common_words)
        self._meaning: dict[str, str] = {}
        self._respects: dict[str, set[str]] = {}
        self._topics: set[str] = set()
        self._lists: dict[str, frozenset[str]] = {}
        self._read()
        self.word = lru_cache(maxsize=_CACHED_MAX)(self._word)

    def _read(self) -> None:
        for part, line in _lines(_FILE.read_text(encoding="utf-8")):
            first, *others = line.split()
            name = self._folded(first)
            if part == "same":
                for other in (first, *others):
                    self._meaning.setdefault(self._folded(other), name)
            elif part == "instead":
                self._topics.add(name)
                for other in others:
                    self._respects.setdefault(self._meaning.get(self._folded(other), self._folded(other)), set()).add(
                        name
                    )
            else:
                words = frozenset(self._folded(word) for word in line.split())
                self._lists[part] = self._lists.get(part, frozenset()) | words

    def of(self, part: str) -> frozenset[str]:
        """The folded words of a list: `one`, `how`, `asking`, `no_names`."""
        return self._lists[part]

    def _folded(self, word: str) -> str:
        return self._words.word_forms(word)[0][0]

    def terms(self, text: str) -> list[Word]:
        """Every word of a text in order, common ones too."""
        return [self.word(forms) for forms in self._words.word_forms(text)]

    def content(self, text: str) -> list[Word]:
        """The words of a text that say something."""
        return [word for word in self.terms(text) if not self.is_common(word)]

    def is_common(self, word: Word) -> bool:
        return word.token in self._common or (len(word.token) < 2 and not word.token.isdigit())

    def _word(self, forms: tuple[str, ...]) -> Word:
        meaning = next((self._meaning[form] for form in forms if form in self._meaning), None)
        if meaning is None:
            return Word(forms[0], frozenset(forms))
        respects = frozenset(self._respects.get(meaning, ()))
        topic = {f"~{meaning}"} if meaning in self._topics else set[str]()
        return Word(forms[0], frozenset({*forms, f"={meaning}", *topic}), respects)


def shared(some: list[Word] | tuple[Word, ...], others: frozenset[str]) -> int:
    """How many of the words are among the forms of others."""
    return sum(not word.forms.isdisjoint(others) for word in some)


def forms_of(words: list[Word] | tuple[Word, ...]) -> frozenset[str]:
    """All forms of some words."""
    return frozenset(form for word in words for form in word.forms)


def _lines(text: str) -> Iterator[tuple[str, str]]:
    part = ""
    for line in text.splitlines():
        if line.startswith("["):
            part = line.strip("[] ")
        elif line.strip() and not line.startswith("#"):
            yield part, line
