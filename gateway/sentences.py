"""What the gateway itself says to people, in each of its languages."""

from __future__ import annotations

import re
from typing import Literal

Language = Literal["en", "ar"]

_SENTENCES: dict[str, dict[str, str]] = {
    "timed_out": {
        "en": "This took longer than {minutes} minutes, so I stopped. Nothing was lost; ask again in smaller steps.",
        "ar": "استغرق هذا أكثر من {minutes} دقيقة فتوقفت. لم يضع شيء؛ أعد السؤال، وربما على خطوات أصغر.",
    },
    "given_up": {
        "en": "I tried to answer this several times and broke off each time. Please put it differently.",
        "ar": "حاولت الإجابة عن هذا عدة مرات وانقطعت في كل مرة. أرجو صياغته بطريقة أخرى.",
    },
    "fault": {
        "en": "Something went wrong on my side. Your message is kept; please try again. The log says more.",
        "ar": "حدث خطأ من جهتي. رسالتك محفوظة؛ أرجو المحاولة مرة أخرى. التفاصيل في السجل.",
    },
}


def sentence(name: str, language: Language) -> str:
    """One sentence by name."""
    return _SENTENCES[name][language]


def language_of(text: str, setting: str) -> Language:
    """The language of a notice: the setting, else that of the message."""
    if setting in {"en", "ar"}:
        return "ar" if setting == "ar" else "en"
    return "ar" if re.search("[\u0600-\u06ff]", text) else "en"
