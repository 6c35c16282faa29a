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
    "may_i": {
        "en": "May I run this?\n\n{what}\n\n{reason}\nAsked by: {asked_by}",
        "ar": "هل يُسمح بتنفيذ هذا؟\n\n{what}\n\n{reason}\nبطلب من: {asked_by}",
    },
    "how_to_answer": {
        "en": "Reply 1 (yes) or 2 (no). Without an answer within {minutes} minutes it is not run.",
        "ar": "الجواب: 1 (نعم) أو 2 (لا). إن لم يصل جواب قبل انقضاء المهلة ({minutes} د) فلن يُنفَّذ.",
    },
    "yes": {"en": "1 · Yes", "ar": "1 · نعم"},
    "no": {"en": "2 · No", "ar": "2 · لا"},
    "question_allowed": {"en": "**Allowed.**", "ar": "**سُمح به.**"},
    "question_denied": {"en": "**Not allowed.** It was not run.", "ar": "**لم يُسمح به.** ولم يُنفَّذ."},
    "question_expired": {
        "en": "**Closed without an answer.** It was not run.",
        "ar": "**أُغلق بلا جواب.** ولم يُنفَّذ.",
    },
    "pairing_code": {
        "en": "I do not know you yet. To be let in, give my owner this code: `{code}`. It is good for one hour.",
        "ar": "لا أعرفك بعد. إن أردت أن يسمح لك صاحبي بالحديث معي فأعطه هذا الرمز: `{code}`. الرمز صالح لساعة واحدة.",
    },
    "pairing_asked": {
        "en": "{name} ({id}) wrote to me on {channel} and got the code `{code}`. To let them in, run "
        "`hudhud people pair {code}` within an hour; otherwise do nothing.",
        "ar": "كتب إليّ {name} ({id}) عبر {channel} وحصل على الرمز `{code}`. للسماح له نفّذ "
        "`hudhud people pair {code}` خلال ساعة، وإلا فلا حاجة إلى فعل شيء.",
    },
    "channel_ended": {
        "en": "{channel} has stopped: {detail}. {remedy}",
        "ar": "توقفت قناة {channel}: {detail}. {remedy}",
    },
    "stale_button": {
        "en": "This question is no longer open.",
        "ar": "لم يعد هذا السؤال مفتوحًا.",
    },
    "no_line": {
        "en": "There is no network here at the moment. Your message is kept and answered when the line is back.",
        "ar": "لا توجد شبكة هنا الآن. رسالتك محفوظة وسيأتي الرد حين يعود الاتصال.",
    },
    "budget_used": {
        "en": "Today's budget for the model is used up. It starts again at midnight, or send /budget more.",
        "ar": "استُنفدت ميزانية النموذج لهذا اليوم. تتجدد عند منتصف الليل، أو أرسل ‎/budget more.",
    },
    "budget_nearly": {
        "en": "Four fifths of today's budget for the model are spent.",
        "ar": "صُرفت أربعة أخماس ميزانية النموذج لهذا اليوم.",
    },
    "no_transcriber": {
        "en": "I received your recording, but I cannot understand recordings here. Please write it as text.",
        "ar": "وصلني تسجيلك الصوتي، لكنني لا أفهم التسجيلات الصوتية هنا. من فضلك اكتبه نصًّا.",
    },
    "not_understood": {
        "en": "I received your recording, but could not put it into words. Please write it as text.",
        "ar": "وصلني تسجيلك الصوتي، لكنني لم أستطع تحويله إلى نص. من فضلك اكتبه نصًّا.",
    },
    "file_too_big": {
        "en": "I could not take {name}: it is larger than {limit} MB.",
        "ar": "لم أستطع أخذ {name}: حجمه أكبر من {limit} ميغابايت.",
    },
    "file_gone": {
        "en": "I could not fetch {name}. Please send it again.",
        "ar": "لم أستطع جلب {name}. من فضلك أرسله مرة أخرى.",
    },
    "run_used_up": {
        "en": "This run has used its {tokens:,} tokens and was stopped. Make its task smaller, or split it into steps.",
        "ar": "استهلك هذا التنفيذ حصته ({tokens:,} رمزًا) فتوقف. يمكن تصغير المهمة أو تقسيمها.",
    },
    "repeated": {
        "en": "(The alert before this one came {count} more times.)",
        "ar": "(تكرر التنبيه السابق {count} مرة أخرى.)",
    },
    "held": {
        "en": "Held back during quiet hours: {count} messages.",
        "ar": "رسائل أُجّلت أثناء ساعات الهدوء: {count}.",
    },
    "missed": {
        "en": "While I was not running or the machine slept, these did not run:",
        "ar": "أثناء توقفي أو سكون الجهاز لم يُنفَّذ ما يلي:",
    },
    "missed_job": {
        "en": "- {job}: missed {count} times, last due {at}",
        "ar": "- {job}: فات {count} مرة، آخرها كان مستحقًا في {at}",
    },
    "channel_down": {
        "en": "{channel} has been down for {minutes} minutes: {detail}. {remedy}",
        "ar": "قناة {channel} متوقفة منذ {minutes} دقيقة: {detail}. {remedy}",
    },
    "channel_back": {
        "en": "{channel} is back.",
        "ar": "عادت قناة {channel} إلى العمل.",
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
