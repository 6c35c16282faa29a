"""The words of dates in English and Arabic, folded: months, weekdays, numbers, units."""

from __future__ import annotations

_MONTHS = (
    "january jan يناير كانون_الثاني جانفي",
    "february feb فبراير شباط فيفري",
    "march mar مارس اذار",
    "april apr ابريل نيسان افريل",
    "may مايو ايار ماي",
    "june jun يونيو حزيران جوان",
    "july jul يوليو تموز جويليه",
    "august aug اغسطس اب اوت",
    "september sept sep سبتمبر ايلول شتنبر",
    "october oct اكتوبر تشرين_الاول",
    "november nov نوفمبر تشرين_الثاني نونبر",
    "december dec ديسمبر كانون_الاول دجنبر",
)
_WEEKDAYS = (
    "monday mon الاثنين الاتنين اثنين",
    "tuesday tue tues الثلاثاء ثلاثاء",
    "wednesday wed الاربعاء اربعاء",
    "thursday thu thur thurs الخميس خميس",
    "friday fri الجمعه جمعه",
    "saturday sat السبت",
    "sunday sun الاحد",
)
_NUMBERS = (
    "one a an واحد واحده",
    "two couple اثنين اثنان اثنتين",
    "three ثلاثه ثلاث",
    "four اربعه اربع",
    "five خمسه خمس",
    "six سته ست",
    "seven سبعه سبع",
    "eight ثمانيه ثماني ثمان",
    "nine تسعه تسع",
    "ten عشره عشر",
    "eleven",
    "twelve",
)
_UNITS = {
    "day": "day days يوم ايام يوما",
    "week": "week weeks اسبوع اسابيع اسبوعا",
    "month": "month months شهر اشهر شهور شهرا",
    "year": "year years سنه سنوات سنين عام اعوام عاما",
}
_PAIRS = {"day": "يومين يومان", "week": "اسبوعين اسبوعان", "month": "شهرين شهران", "year": "سنتين سنتان عامين عامان"}


def _numbered(groups: tuple[str, ...], first: int) -> dict[str, int]:
    return {word.replace("_", " "): at for at, group in enumerate(groups, first) for word in group.split()}


MONTHS = _numbered(_MONTHS, 1)
SHORT_MONTHS = frozenset({"may", "mar", "march", "اب", "ماي", "jan", "jun", "sep", "dec", "oct"})
"""Names that are words of other meaning too: without a day, a year or a preposition before them they are no date."""
WEEKDAYS = _numbered(_WEEKDAYS, 0)
NUMBERS = _numbered(_NUMBERS, 1)
UNITS = {word: unit for unit, words in _UNITS.items() for word in words.split()}
PAIRS = {word: unit for unit, words in _PAIRS.items() for word in words.split()}


def either(words: dict[str, int] | dict[str, str]) -> str:
    """The words as an alternative of a regular expression, the longest first."""
    return "|".join(sorted(words, key=len, reverse=True)).replace(" ", r"\s+")
