"""The words of times in English and Arabic, folded, and the patterns of what is said with them. See `when`."""

from __future__ import annotations

import re

MORNING, NOON, AFTERNOON, EVENING, NIGHT = 8, 12, 15, 18, 21

NUMBERS = {
    word: number
    for number, words in enumerate(
        (
            "zero",
            "a an one واحد واحده",
            "two اثنين اثنتين ثانيه الثانيه",
            "three ثلاث ثلاثه الثالثه",
            "four اربع اربعه الرابعه",
            "five خمس خمسه الخامسه",
            "six ست سته السادسه",
            "seven سبع سبعه السابعه",
            "eight ثمان ثماني ثمانيه الثامنه",
            "nine تسع تسعه التاسعه",
            "ten عشر عشره العاشره",
            "eleven",
            "twelve",
        )
    )
    for word in words.split()
} | {"الواحده": 1, "fifteen": 15, "twenty": 20, "thirty": 30, "forty": 40, "forty-five": 45, "sixty": 60, "ninety": 90}
UNITS = {
    word: minutes
    for minutes, words in {
        1: "minute minutes min mins دقيقه دقائق",
        60: "hour hours hr hrs ساعه ساعات",
        1_440: "day days يوم ايام يوما",
        10_080: "week weeks اسبوع اسابيع",
    }.items()
    for word in words.split()
}
DUALS = {"دقيقتين": 2, "ساعتين": 120, "يومين": 2_880, "اسبوعين": 20_160}
DAYS = {
    word: number
    for number, words in enumerate(
        (
            "sunday sundays sun احد الاحد",
            "monday mondays mon اثنين الاثنين اتنين الاتنين",
            "tuesday tuesdays tue tues ثلاثاء الثلاثاء",
            "wednesday wednesdays wed اربعاء الاربعاء",
            "thursday thursdays thu thurs خميس الخميس",
            "friday fridays fri جمعه الجمعه",
            "saturday saturdays sat سبت السبت",
        )
    )
    for word in words.split()
}
DAY_NAMES = ("Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat")
MONTHS = {
    word: number
    for number, words in enumerate(
        (
            "january jan يناير",
            "february feb فبراير",
            "march mar مارس",
            "april apr ابريل",
            "may مايو",
            "june jun يونيو",
            "july jul يوليو",
            "august aug اغسطس",
            "september sep sept سبتمبر",
            "october oct اكتوبر",
            "november nov نوفمبر",
            "december dec ديسمبر",
        ),
        start=1,
    )
    for word in words.split()
}
PARTS = {
    word: hour
    for hour, words in {
        MORNING: "morning صباحا صباح الصباح",
        NOON: "ظهرا الظهر",
        AFTERNOON: "afternoon عصرا العصر",
        EVENING: "evening مساء المساء",
        NIGHT: "night ليلا ليله الليل",
    }.items()
    for word in words.split()
}


def _any(words: dict[str, int]) -> str:
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


N = rf"(?P<n>\d{{1,4}}|{_any(NUMBERS)})"
END = r"(?=\s|$|[,،.!?؟;؛])"
DAY_LIST = rf"(?P<days>(?:{_any(DAYS)})(?:(?:\s*[,،]\s*|\s+)(?:and\s+|و\s?)?(?:يوم\s+)?(?:{_any(DAYS)}))*)"
ELEMENTS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern + END))
    for name, pattern in (
        ("half", r"(?:in|after) half an hour|بعد نصف ساعه"),
        ("quarter", r"(?:in|after) (?:a )?quarter of an hour|بعد ربع ساعه"),
        ("after", rf"(?:in|after) (?:about )?{N} (?P<unit>{_any(UNITS)})|{N.replace('<n>', '<n2>')} (?P<unit2>{_any(UNITS)}) from now"),  # noqa: E501
        ("after", rf"بعد (?:{N} )?(?P<unit>{_any(UNITS)})"),
        ("dual", rf"بعد (?P<dual>{_any(DUALS)})"),
        ("workdays", r"(?:every|each) (?:weekday|workday|work day)|(?:on )?weekdays|كل يوم عمل"),
        ("part", rf"(?:every|each|كل) (?P<every>)(?P<part>{_any(PARTS)})"),
        ("month", r"(?:every|each) month(?: on the (?P<dom>\d{1,2})(?:st|nd|rd|th)?)?|monthly(?: on the (?P<dom2>\d{1,2})(?:st|nd|rd|th)?)?"),  # noqa: E501
        ("month", r"(?:كل شهر|شهريا)(?: (?:في )?(?:ال)?يوم (?P<dom>\d{1,2}))?"),
        ("weekly", rf"(?:every|each) (?:week on )?{DAY_LIST}|weekly on {DAY_LIST.replace('<days>', '<days2>')}|كل (?:اسبوع )?(?:يوم )?{DAY_LIST.replace('<days>', '<days3>')}"),  # noqa: E501
        ("weekly", r"on (?P<days>(?:sun|mon|tues|wednes|thurs|fri|satur)days)"),
        ("daily", r"(?:every|each) day|daily|everyday|كل يوم|يوميا"),
        ("week", r"(?:every|each) week|weekly|كل اسبوع|اسبوعيا"),
        ("every", rf"(?:every|each|كل) (?:{N} )?(?P<unit>{_any(UNITS)})"),
        ("every_dual", rf"كل (?P<dual>{_any(DUALS)})"),
        ("hourly", r"hourly"),
        ("in_two_days", r"(?:the )?day after tomorrow|بعد (?:ال)?غد|بعد بكره"),
        ("tomorrow", r"tomorrow|غدا|غد|بكره|بكرا"),
        ("tonight", r"tonight|الليله"),
        ("today", r"today|اليوم"),
        ("date", r"(?:on )?(?P<iso>\d{4}-\d{1,2}-\d{1,2})"),
        ("date", rf"(?:on )?(?:the )?(?P<d>\d{{1,2}})(?:st|nd|rd|th)? (?:of )?(?P<mon>{_any(MONTHS)})(?: (?P<y>\d{{4}}))?"),  # noqa: E501
        ("date", rf"(?:on )?(?P<mon>{_any(MONTHS)}) (?P<d>\d{{1,2}})(?:st|nd|rd|th)?(?:,? (?P<y>\d{{4}}))?"),
        ("day", rf"(?:on |this |next )?(?P<day>{_any(DAYS)})(?: (?:القادم|القادمه|المقبل|المقبله))?"),
        ("day", rf"(?:في )?يوم (?P<day>{_any(DAYS)})(?: (?:القادم|القادمه|المقبل|المقبله))?"),
        ("clock", r"(?:at )?(?P<h>\d{1,2})(?:[:.](?P<m>\d{2}))? ?(?P<half>am|pm|a\.m\.?|p\.m\.?)"),
        ("clock", r"(?:at |في |عند )?(?:الساعه )?(?P<h>\d{1,2}):(?P<m>\d{2})"),
        ("clock", r"at (?P<h>\d{1,2})(?: o'?clock)?"),
        ("clock", rf"(?:في |عند )?الساعه (?P<h>\d{{1,2}}|{_any(NUMBERS)})(?: (?P<more>والنصف|والربع|والثلث|و نصف|و ربع|ونصف|وربع|وثلث))?"),  # noqa: E501
        ("noon", r"(?:at )?(?:noon|midday)|الظهر"),
        ("midnight", r"(?:at )?midnight|منتصف الليل"),
        ("part", rf"(?:in the |this |at |في )?(?P<part>{_any(PARTS)})|بعد (?P<after>الظهر)"),
    )
)  # fmt: skip
BETWEEN = re.compile(r"(?:on|at|in|the|and|من|في|و)(?=\s)\s+|[,،]\s*")
MORE = {"النصف": 30, "نصف": 30, "الربع": 15, "ربع": 15, "الثلث": 20, "ثلث": 20}
ASKS = re.compile(
    r"(?:(?:please|pls|hey|can you|could you|would you|من فضلك|رجاء|لو سمحت)[\s,،]+)*"
    r"(?:remind me|ذكرني|ذكريني|فكرني|فكريني|نبهني|نبهيني)(?=\s|$)"
)
QUESTION = re.compile(
    r"\s*(?:what|when|where|who|whose|which|how|why|if|whether|ما|ماذا|متي|اين|من|كيف|كم|لماذا|هل|بما)(?=\s|$)"
)
LINK = re.compile(r"(?:to|that|about|of|بان|ان|بـ|عن|ب)(?=\s)\s+")
