"""Stems and forms: further tokens under which a word is also found. They are never shown to anybody.

English: the Snowball stemmer (M. F. Porter, "Snowball", 2001), after words that no rule joins were led to one of their
family: `went` to `go`, `children` to `kid`, `2` to `two`. Arabic: the article and joined prefixes come off, then the
common endings, after L. S. Larkey et al., "Light stemming for Arabic information retrieval" (2007).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import Stemmer

_FAMILIES = Path(__file__).with_name("word_families.txt")
"""A family a line, its first word the one that stands for all."""

_PREFIXES = ("وبال", "وكال", "فبال", "وال", "فال", "بال", "كال", "ولل", "فلل", "لل", "ال")
_LETTER_PREFIXES = ("وب", "ول", "وس", "فس", "و", "ف", "ب", "ك", "ل", "س")
_SUFFIXES = (
    "تهما",
    "تها",
    "هما",
    "تهم",
    "تنا",
    "تين",
    "ها",
    "هم",
    "هن",
    "كم",
    "نا",
    "ات",
    "ان",
    "ون",
    "ين",
    "وا",
    "يه",
    "ته",
    "تي",
    "تك",
    "ه",
    "ي",
    "ك",
)


def _heads() -> dict[str, str]:
    families = [line.split() for line in _FAMILIES.read_text(encoding="utf-8").splitlines()]
    return {word: family[0] for family in families for word in family[1:]}


class _Snowball(threading.local):
    """A stemmer works in one thread only."""

    def __init__(self) -> None:
        self.stem: Callable[[str], str] = Stemmer.Stemmer("english", 0).stemWord  # pyright: ignore[reportUnknownMemberType]


_SNOWBALL = _Snowball()
_HEADS = _heads()


SKELETON = "√"
"""Begins a form that is not spelled out: only the letters that stay when an Arabic word is bent from within."""
_SKELETON_CHARS_MIN = 3
_WEAK = dict.fromkeys(map(ord, "اويىء"))


def english_stem(word: str) -> str:
    """The stem of a folded word of Latin letters or digits; the word itself where nothing comes off."""
    return _SNOWBALL.stem(_HEADS.get(word, word))


def arabic_forms(word: str) -> tuple[str, ...]:
    """Other forms of a folded Arabic word: without hamza, article and prefixes, and the stem of that."""
    bare = word.replace("ء", "")
    forms = [bare] if bare != word and len(bare) > 1 else []
    rest = _without_prefix(bare)
    if rest != bare:
        forms.append(rest)
    forms.append(_without_suffix(rest))
    if len(bare) - len(rest) == 1:  # one letter may as well be the word's own
        forms.append(_without_suffix(bare))
    skeletons = [form.translate(_WEAK) for form in dict.fromkeys((_without_suffix(rest), _without_suffix(bare)))]
    forms.extend(SKELETON + skeleton for skeleton in skeletons if len(skeleton) >= _SKELETON_CHARS_MIN)
    return tuple(dict.fromkeys(form for form in forms if form != word))


def _without_prefix(word: str) -> str:
    for prefix in _PREFIXES:
        if word.startswith(prefix) and len(word) - len(prefix) >= 2:
            return word[len(prefix) :]
    for prefix in _LETTER_PREFIXES:
        if word.startswith(prefix) and len(word) - len(prefix) >= 3:
            return word[len(prefix) :]
    return word


def _without_suffix(word: str) -> str:
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            return word[: -len(suffix)]
    return word
