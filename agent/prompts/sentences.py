"""Sentences of the program: those for people in Arabic and English, those for the model in English."""

from __future__ import annotations

import re

_ARABIC = re.compile(r"[\u0620-\u064a\u0671-\u06d3]")
_LATIN = re.compile(r"[A-Za-z]")

_EMPTY = {
    "en": "The model gave no answer this time. Please ask again or say it differently.",
    "ar": "لم يُعطِ النموذج جوابًا هذه المرة. أعد السؤال أو صُغه بعبارة أخرى من فضلك.",
}
_CUT = {
    "en": "(The answer ends here because it reached the model's length limit. Ask me to go on.)",
    "ar": "(ينتهي الجواب هنا لأنه بلغ الحد الأقصى لطول ردّ النموذج. اطلب مني المتابعة.)",
}

_CUT_CALLS = {
    "en": "I could not finish: the model's tool calls were cut off at its length limit again and again, so nothing "
    "more was run. Ask for a smaller step.",
    "ar": "لم أستطع إتمام ذلك: انقطعت استدعاءات الأدوات مرة بعد مرة لبلوغها حدّ طول ردّ النموذج، فلم يُنفَّذ شيء آخر. "
    "اطلب خطوة أصغر.",
}

LAST_ROUND = (
    "<notice>\nThat was the last round of tools in this turn. Answer now with what you have, and say what is missing.\n"
    "</notice>"
)
INTERRUPTED = "interrupted, not known whether it ran"
DENIED = "Denied: the owner does not allow this call. It did not run."
UNANSWERED = "Denied: the owner was asked and did not answer in time. It did not run."


def is_arabic(text: str) -> bool:
    """True when the text has more Arabic letters than Latin ones."""
    return len(_ARABIC.findall(text)) > len(_LATIN.findall(text))


def empty_answer(asked: str) -> str:
    """What a person reads instead of an empty answer, in the language of `asked`."""
    return _EMPTY["ar" if is_arabic(asked) else "en"]


def cut_answer(asked: str) -> str:
    """The end of an answer that reached the model's length limit, in the language of `asked`."""
    return _CUT["ar" if is_arabic(asked) else "en"]


def cut_calls(asked: str) -> str:
    """What a person reads when the model's calls were cut off too often, in the language of `asked`."""
    return _CUT_CALLS["ar" if is_arabic(asked) else "en"]


def cannot_ask(reason: str) -> str:
    """What the model reads when a call would need consent and nobody can be asked."""
    return f"Denied: this needs the owner's consent, and nobody can be asked in this run. {reason} It did not run."


def blocked(reason: str) -> str:
    """What the model reads when the safety gate refused a call."""
    return f"Blocked: {reason} It did not run."
