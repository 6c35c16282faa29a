"""Folding and tokenising: one form for every way a word is written.

A text is cut into raw pieces by one pattern; each piece is folded by itself (NFKC, case, marks, letter forms) and
the result is kept in a cache, so a word costs one look-up after its first time. Because pieces are cut from the
original text, each token has its place in the original for free.

Two strings come of a text: its tokens in order, and extra tokens (stems, words without article and prefixes, whole
identifiers, single characters of unspaced scripts). Extra tokens never take the place of the word itself.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import add

import regex

from agent.cortex.stems import arabic_forms, english_stem

TOKEN_CHARS_MAX = 64
"""A longer run without a border is cut here: no person searches for more of it."""
_CACHED_CHARS_MAX = 32
_CACHE_ENTRIES_MAX = 200_000
_WHOLE_CHARS_MAX = 256
WHOLE_JOIN = "·"

UNSPACED = (
    r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Bopomofo}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}"
    r"\u30fc\uff70\uff9e\uff9f\u3099\u309a"
)
_APOSTROPHE_SIGNS = "’ʼ＇‘`´′‛ʻʾʿ׳"
_UNSEEN = r"\u200b\u200c\u00ad\u2060\ufeff"
_JOINERS = rf"\-_./:@'{_APOSTROPHE_SIGNS}״+&#~=?%\\{_UNSEEN}\u066b\u066c\u2010\u2011"
_SIGNS_OF_LETTERS = r"\u2100-\u2121\u2123-\u2138\u213a-\u214f\u3200-\u3296\u3298\u329a-\u33ff"
"""Signs that stand for letters: `℃`, `№`, `㎏`."""
_LETTERS = rf"[[\p{{L}}\p{{M}}\p{{N}}{_SIGNS_OF_LETTERS}]--[{UNSPACED}]]"
_ANY = regex.compile(
    rf"[{UNSPACED}][{UNSPACED}\p{{M}}]*"
    rf"|{_LETTERS}+(?:(?:[{_JOINERS}]{{1,3}}|(?<=\d)[,٬](?=\d\d\d)|(?<=\p{{Hebrew}})[\"”](?=\p{{Hebrew}})){_LETTERS}+)*"
    r"|\p{Extended_Pictographic}(?:[\ufe0f\U0001F3FB-\U0001F3FF]|\u200d\p{Extended_Pictographic})*"
    r"|[\U0001F1E6-\U0001F1FF]{2}",
    regex.V1,
)
_ASCII = re.compile(r"[A-Za-z0-9]+(?:(?:[-_./:@'`+&#~=?%\\]{1,3}|(?<=[0-9]),(?=[0-9]{3}))[A-Za-z0-9]+)*")
_LETTER = regex.compile(r"[\p{L}\p{M}\p{N}]")
_LETTER_OR_SIGN = regex.compile(rf"[\p{{L}}\p{{M}}\p{{N}}{_SIGNS_OF_LETTERS}]")
_UNSPACED_START = regex.compile(rf"[{UNSPACED}]", regex.V1)
_BORDER = regex.compile(rf"[{_JOINERS},٬\"”]+")
_SILENT_BORDER = frozenset(f"-_'{_APOSTROPHE_SIGNS}״\"”,٬\u200b\u200c\u00ad\u2060\ufeff\u066c\u2010\u2011")
_JOINED_PARTS_MAX = 8
_APOSTROPHES = str.maketrans(dict.fromkeys(_APOSTROPHE_SIGNS, "'"))
_DIGIT = re.compile(r"\d")
_FOREIGN_DIGITS = re.compile(r"[^\W\D0-9]")
_PHONE = re.compile(
    r"(?<![0-9A-Za-z])(?:[+(0][0-9()\-. ]{7,22}[0-9]|[1-9][0-9]{1,3}(?:[ .-][0-9]{2,4}){2,5})(?![0-9A-Za-z])"
)
_DATE = re.compile(r"(?:19|20)\d\d([-. ])\d\d?\1\d\d?|\d\d?([-. ])\d\d?\2(?:19|20)\d\d")
_DIGITS_OFF = re.compile(r"\D+")
_PHONE_TAILS_DIGITS = (9, 8, 7)
"""The parts of a phone number that its national and its international form share, in most countries and in some; and
how a neighbour writes it."""
_ASKED_TAILS_DIGITS = _PHONE_TAILS_DIGITS[:2]
_SURROGATES = re.compile("[\ud800-\udfff]")
_EMOJI_OFF = dict.fromkeys([0xFE0F, *range(0x1F3FB, 0x1F400)])
_PIECES = re.compile(r"[0-9]+|[a-z]+|[^0-9a-z]+")
_PLAIN = re.compile(r"[A-Za-z][a-z]*|[A-Z]+")
_HUMPS = re.compile(r"(?<=[a-z])(?=[A-Z0-9])|(?<=[0-9])(?=[A-Za-z])|(?<=[A-Z])(?=[A-Z][a-z]{2}|[0-9])")
_UMLAUT = re.compile("[äöüÄÖÜ]")
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue"})
_MARKS_ON_LETTER = re.compile("(?<=[a-z\u0370-\u03ff])[\u0300-\u036f]+")
_ARABIC = re.compile("[\u0620-\u06ff]")

_FOLD: dict[int, str | None] = {
    **dict.fromkeys([*range(0x0610, 0x061B), *range(0x064B, 0x0660), 0x0640, 0x0670]),  # Arabic marks, tatweel
    **dict.fromkeys([*range(0x06D6, 0x06DD), *range(0x06DF, 0x06E9), *range(0x06EA, 0x06EE), *range(0x08D3, 0x0900)]),
    **dict.fromkeys([*range(0x0591, 0x05BE), 0x05BF, 0x05C1, 0x05C2, 0x05C4, 0x05C5, 0x05C7]),  # Hebrew points
    **dict.fromkeys([0x200B, 0x200D, 0x2060, 0xFEFF]),
    **{katakana: chr(katakana - 0x60) for katakana in range(0x30A1, 0x30F7)},
    **{ord(letter): "ا" for letter in "أإآٱٲٳ"},
    **{ord(letter): "ي" for letter in "ىئیېے"},
    **{ord(letter): "ه" for letter in "ةۀہھە"},
    ord("ؤ"): "و",
    ord("ک"): "ك",
    **{ord(letter): plain for letter, plain in zip("øłđıħŧðё", "oldihtdе", strict=True)},
    ord("æ"): "ae",
    ord("œ"): "oe",
    ord("þ"): "th",
}


@dataclass(frozen=True, slots=True)
class Word:
    """One searchable word of a text: the token itself and the other forms that stand for it."""

    token: str
    forms: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Piece:
    """One raw piece, folded. `words` in order; `wholes` are tokens of the piece as one; `singles` its characters."""

    words: tuple[Word, ...]
    wholes: tuple[str, ...] = ()
    singles: tuple[str, ...] = ()
    unspaced: bool = False


class _Lines(dict[str, tuple[str, str]]):
    """Raw piece -> its tokens and its extra tokens, each as text ready to be joined."""

    def __missing__(self, raw: str) -> tuple[str, str]:
        if _PLAIN.fullmatch(raw):
            line = _plain_line(raw)
        elif len(raw) > _WHOLE_CHARS_MAX:
            line = _long_line(raw)
        else:
            line = _line(analyse(raw))
        if len(raw) <= _CACHED_CHARS_MAX:
            if len(self) >= _CACHE_ENTRIES_MAX:
                self.clear()
            self[raw] = line
        return line


_lines = _Lines()
_line_of = _lines.__getitem__


def _line(piece: Piece) -> tuple[str, str]:
    extras = [form for word in piece.words for form in word.forms]
    tokens = " ".join([word.token for word in piece.words])
    return tokens, " ".join(dict.fromkeys([*extras, *piece.wholes, *piece.singles]))


def _long_line(raw: str) -> tuple[str, str]:
    """The line of a piece that no person searches for as one, in a time that its length alone decides."""
    if _UNSPACED_START.match(raw):
        run = _run(raw)
        return " ".join(map(add, run, run[1:])) or run, " ".join(dict.fromkeys(run))
    parts = [part for part in _BORDER.split(raw) if part]
    lines = map(_line_of, parts) if len(parts) > 1 else [_line(analyse(raw))]
    tokens, extras = zip(*lines, strict=True)
    return " ".join(tokens), " ".join(filter(None, extras))


def _plain_line(raw: str) -> tuple[str, str]:
    """The line of a word of plain letters, which most words are: the same as by way of `analyse`, but quicker."""
    token = raw.lower()[:TOKEN_CHARS_MAX]
    stem = english_stem(token)
    return token, "" if stem == token else stem


def clean(text: str) -> str:
    """The text as SQLite and UTF-8 can hold it: surrogate pairs joined, lone surrogates and NUL replaced."""
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    if text.isascii() or not _SURROGATES.search(text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def fold(text: str) -> tuple[str, str]:
    """The tokens of a text in order, and its extra tokens; both separated by blanks.

    Tokens hold letters, digits and characters beyond ASCII only, so that white space alone separates them.
    """
    pattern = _ASCII if text.isascii() else _ANY
    lines = list(map(_line_of, pattern.findall(text)))
    extras = [extra for _, extra in lines if extra]
    for number in _phone_numbers(text):
        extras.extend(_phone_forms(number, _PHONE_TAILS_DIGITS))
    return " ".join([tokens for tokens, _ in lines]), " ".join(extras)


def tokens_of(text: str) -> list[str]:
    """The tokens of a text in order, without the extra ones."""
    return fold(text)[0].split()


def pieces(text: str) -> list[Piece]:
    """The folded pieces of a text in order; for queries, which want words and their forms kept together."""
    found = [analyse(raw) for raw in (_ASCII if text.isascii() else _ANY).findall(text)]
    found.extend(Piece((), tuple(_phone_forms(number, _ASKED_TAILS_DIGITS))) for number in _phone_numbers(text))
    return [piece for piece in found if piece.words or piece.wholes]


def places(text: str) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Start, end (offsets in the original text) and all tokens, extra ones too, of each place of a text."""
    for match in (_ASCII if text.isascii() else _ANY).finditer(text):
        raw, start = match.group(), match.start()
        piece = analyse(raw)
        if piece.unspaced and len(piece.words) == len(raw) - 1:
            for offset, word in enumerate(piece.words):
                yield start + offset, start + offset + 2, (word.token, *word.token)
        else:
            forms = [form for word in piece.words for form in (word.token, *word.forms)]
            yield start, match.end(), (*forms, *piece.wholes, *piece.singles)


@lru_cache(maxsize=50_000)
def analyse(raw: str) -> Piece:
    """Folds one raw piece."""
    if raw.isascii():
        return _spaced(raw)
    if _UNSPACED_START.match(raw):
        return _unspaced(raw)
    return _spaced(raw) if _LETTER_OR_SIGN.match(raw) else _emoji(raw)


def _emoji(raw: str) -> Piece:
    folded = raw.translate(_EMOJI_OFF)
    parts = tuple(folded.split("\u200d"))
    return Piece((Word(folded),), parts if len(parts) > 1 else ())


def _unspaced(raw: str) -> Piece:
    """A run of a script that is written without blanks: overlapping pairs, and each character by itself."""
    run = _run(raw)
    if len(run) < 2:
        return Piece((Word(run),) if run else (), unspaced=True)
    pairs = tuple(Word(run[at : at + 2]) for at in range(len(run) - 1))
    return Piece(pairs, singles=tuple(dict.fromkeys(run)), unspaced=True)


def _run(raw: str) -> str:
    run = "".join(unicodedata.normalize("NFKC", raw).casefold().translate(_FOLD).split())
    if not run.isalnum():  # signs that a compatibility character stands for, or marks
        run = "".join(_LETTER.findall(run))
    return run


def _spaced(raw: str) -> Piece:
    """A word, or an identifier made of several: each part, and the whole in one token."""
    parts = [part for part in _BORDER.split(raw) if part]
    if len(parts) <= 1:
        return _merge(map(_part, parts), ())
    borders = _BORDER.findall(raw.strip(raw[0] if _BORDER.match(raw) else ""))
    folded = [_fold_letters(part) for part in parts]
    if len(parts) == 2 and borders[0].translate(_APOSTROPHES) == "'":
        contraction = _contraction(folded[0], folded[1])
        if contraction is not None:
            return contraction
    wholes: list[str] = []
    if sum(map(len, folded)) <= TOKEN_CHARS_MAX:
        wholes.append(WHOLE_JOIN.join(folded))
        wholes.extend(form for joined in _joined(folded, borders) for form in _all_forms(joined))
    return _merge([_part(part) for part in parts], tuple(wholes))


def _joined(parts: Sequence[str], borders: Sequence[str]) -> Iterator[str]:
    """The parts that some people write as one word: `followup` of `follow-up`, `obrien` of `O'Brien's`."""
    first = 0
    for at in range(1, len(parts) + 1):
        if at < len(parts) and _SILENT_BORDER.issuperset(borders[at - 1]):
            continue
        if 1 < at - first <= _JOINED_PARTS_MAX:
            yield "".join(parts[first:at])
            if at - first > 2 and parts[at - 1] == "s":
                yield "".join(parts[first : at - 1])
        first = at


def _contraction(head: str, tail: str) -> Piece | None:
    """English: `Sana's` is `sana`, `don't` is `dont`, `we'll` is `we`. None: another language's apostrophe."""
    joined = head + tail
    if not joined.isascii() or not head:
        return None
    if tail == "t" and head.endswith("n"):
        return Piece((Word(joined),))
    if tail in ("s", "ll", "re", "ve", "d", "m"):
        return Piece((_with_forms(head),), (joined,))
    return None


def _merge(parts: Iterable[Piece], wholes: tuple[str, ...]) -> Piece:
    words: list[Word] = []
    more = list(wholes)
    for part in parts:
        words.extend(part.words)
        more.extend(part.wholes)
    known = {word.token for word in words}
    return Piece(tuple(words), tuple(dict.fromkeys(whole for whole in more if whole not in known)))


def _part(raw: str) -> Piece:
    """One run of letters and digits: the token, its forms, and its runs of one kind (`inv2041`: `inv`, `2041`)."""
    token = _fold_letters(raw)
    if " " in token:  # a compatibility character that stands for several words
        return _merge([_part(part) for part in token.split()], ())
    if not token:
        return Piece(())
    wholes: list[str] = []
    if not token.isalpha() or not (token.isascii() or _PIECES.fullmatch(token)):
        runs = _PIECES.findall(token)
        if 1 < len(runs) <= 3:
            wholes.extend(form for run in runs if len(run) > 1 for form in _all_forms(run))
    humps = _HUMPS.split(raw) if not (raw.islower() or raw.isupper()) else []
    if 1 < len(humps) <= 6:
        wholes.extend(form for hump in map(_fold_letters, humps) if len(hump) > 1 for form in _all_forms(hump))
    word = _with_forms(token)
    if not raw.isascii() and _UMLAUT.search(composed := unicodedata.normalize("NFC", raw)):
        written_out = _fold_letters(composed.translate(_UMLAUTS))
        word = Word(token, tuple(dict.fromkeys((*word.forms, written_out, *_with_forms(written_out).forms))))
    return Piece((word,), tuple(wholes))


def _all_forms(token: str) -> tuple[str, ...]:
    word = _with_forms(token)
    return word.token, *word.forms


def _with_forms(token: str) -> Word:
    if token.isascii():
        stem = english_stem(token)
        return Word(token, (stem,) if stem != token else ())
    if _ARABIC.search(token):
        return Word(token, arabic_forms(token) if len(token) > 2 else ())
    stem = english_stem(token)
    return Word(token, (stem,) if stem != token else ())


@lru_cache(maxsize=50_000)
def _fold_letters(raw: str) -> str:
    """One spelling for all ways to write a run of letters and digits. At most TOKEN_CHARS_MAX characters."""
    if raw.isascii():
        return raw.lower()[:TOKEN_CHARS_MAX]
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", raw).casefold()).translate(_FOLD)
    text = _MARKS_ON_LETTER.sub("", unicodedata.normalize("NFD", text))
    text = unicodedata.normalize("NFC", text).translate(_FOLD)
    if not text.isalpha():
        text = "".join([_plain_character(character) for character in text])
    return " ".join(text.split())[:TOKEN_CHARS_MAX].strip()


def _plain_character(character: str) -> str:
    """Every decimal digit in ASCII; signs that normalising brought in become blanks."""
    if character.isascii():
        return character if character.isalnum() else " "
    if character.isdecimal():
        return str(unicodedata.decimal(character))
    return character if _LETTER.match(character) else " "


def _phone_numbers(text: str) -> list[str]:
    """What may be a phone number, in ASCII digits."""
    if not _DIGIT.search(text):
        return []
    if not text.isascii():
        text = _FOREIGN_DIGITS.sub(lambda found: str(unicodedata.decimal(found[0])), text)
    return [number for number in _PHONE.findall(text) if not _DATE.fullmatch(number)]


def _phone_forms(number: str, tails_digits: Sequence[int]) -> list[str]:
    digits = _DIGITS_OFF.sub("", number)
    if not 8 <= len(digits) <= 15:
        return []
    return [digits, *(digits[-tail:] for tail in tails_digits if len(digits) > tail)]


_INNER_APOSTROPHE = regex.compile(r"(?<=\w)['’ʼ](?=\w)")
_MINUS = regex.compile(r"(?<![\w])-(?=\d)")
_SAYS_NOTHING = regex.compile(r"[^\w\s\p{M}\p{S}#%−]|_")
_SIGNS = regex.compile(r"([\p{S}#%−]+)")


@lru_cache(maxsize=20_000)
def sameness_key(text: str) -> str:
    """What two sentences have in common that differ in case, spacing, punctuation or letter forms only.

    Signs that carry meaning stay: `C++`, `#4`, `$5`, `20%`, `-5`.
    """
    kept = _INNER_APOSTROPHE.sub("", clean(text))
    kept = _MINUS.sub("−", kept)
    kept = _SAYS_NOTHING.sub(" ", kept)
    words: list[str] = []
    for word in kept.split():
        letters = _SIGNS.split(word)
        words.append("".join(part if at % 2 else _fold_letters(part) for at, part in enumerate(letters)))
    return " ".join(word for word in words if word)
