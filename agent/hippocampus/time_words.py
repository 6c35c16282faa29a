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
_ORDINALS = (
    "first 1st الاول", "second 2nd الثاني", "third 3rd الثالث", "fourth 4th الرابع", "fifth الخامس", "sixth السادس",
    "seventh السابع", "eighth الثامن", "ninth التاسع", "tenth العاشر", "eleventh الحادي_عشر", "twelfth الثاني_عشر",
    "thirteenth الثالث_عشر", "fourteenth الرابع_عشر", "fifteenth الخامس_عشر", "sixteenth السادس_عشر",
    "seventeenth السابع_عشر", "eighteenth الثامن_عشر", "nineteenth التاسع_عشر", "twentieth العشرين العشرون",
    "twenty-first الحادي_والعشرين", "twenty-second الثاني_والعشرين", "twenty-third الثالث_والعشرين",
    "twenty-fourth الرابع_والعشرين", "twenty-fifth الخامس_والعشرين", "twenty-sixth السادس_والعشرين",
    "twenty-seventh السابع_والعشرين", "twenty-eighth الثامن_والعشرين", "twenty-ninth التاسع_والعشرين",
    "thirtieth الثلاثين الثلاثون", "thirty-first الحادي_والثلاثين",
)  # fmt: skip
_PARTS = {
    "early": "early start_of beginning_of اوايل بدايه مطلع اول",
    "mid": "mid middle_of منتصف اواسط وسط",
    "late": "late end_of اواخر نهايه اخر",
}
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
ORDINALS = _numbered(_ORDINALS, 1)
PARTS = {word.replace("_", " "): part for part, words in _PARTS.items() for word in words.split()}
"""The parts of a month: days 1 to 10, 11 to 20, and from 21 on."""
UNITS = {word: unit for unit, words in _UNITS.items() for word in words.split()}
PAIRS = {word: unit for unit, words in _PAIRS.items() for word in words.split()}


def either(words: dict[str, int] | dict[str, str]) -> str:
    """The words as an alternative of a regular expression, the longest first."""
    return "|".join(sorted(words, key=len, reverse=True)).replace(" ", r"\s+")
