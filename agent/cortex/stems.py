"""Light stems and forms: further tokens under which a word is also found. They are never shown to anybody.

English: plural, past, -ing and a few common endings come off, in the spirit of M. F. Porter, "An algorithm for suffix
stripping" (1980), shortened to what helps short messages. Arabic: the article and joined prefixes come off, then the
common endings, after L. S. Larkey et al., "Light stemming for Arabic information retrieval" (2007).
"""

from __future__ import annotations

import re

_VOWEL = re.compile("[aeiouy]")
_ENDINGS = (
    ("ational", "ate"),
    ("ization", "ize"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("iveness", "ive"),
    ("ation", "ate"),
    ("ement", ""),
    ("ness", ""),
    ("ment", ""),
    ("ally", "al"),
    ("able", ""),
    ("ful", ""),
    ("ity", ""),
    ("ly", ""),
)
_STEM_CHARS_MIN = 3

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


def english_stem(word: str) -> str:
    """The stem of a folded word of Latin letters; the word itself where nothing comes off."""
    if len(word) <= _STEM_CHARS_MIN:
        return word
    stem = _without_plural(word)
    stem = _without_tense(stem)
    for ending, instead in _ENDINGS:
        if stem.endswith(ending) and len(stem) - len(ending) > _STEM_CHARS_MIN - 1:
            stem = stem[: len(stem) - len(ending)] + instead
            break
    if stem.endswith("e") and len(stem) > _STEM_CHARS_MIN:
        stem = stem[:-1]
    if stem.endswith("y") and len(stem) > _STEM_CHARS_MIN and stem[-2] not in "aeiou":
        stem = stem[:-1] + "i"
    return stem


def _without_plural(word: str) -> str:
    if word.endswith("sses"):
        return word[:-2]
    if word.endswith("ies"):
        return word[:-3] + ("y" if len(word) > 4 else "ie")
    if word.endswith(("xes", "ches", "shes", "zzes")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _without_tense(word: str) -> str:
    if word.endswith("ied") and len(word) > 4:
        return word[:-3] + "y"
    for ending in ("ing", "ed"):
        stem = word[: -len(ending)]
        if word.endswith(ending) and len(stem) >= _STEM_CHARS_MIN - (ending == "ed") and _VOWEL.search(stem):
            if len(stem) > _STEM_CHARS_MIN and stem[-1] == stem[-2] and stem[-1] not in "lsz":
                return stem[:-1]
            return stem
    return word


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
