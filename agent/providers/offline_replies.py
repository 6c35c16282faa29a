"""What the offline model says, in English and Arabic."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

SNIPPET_CHARS_MAX = 300
LISTING_CHARS_MAX = 2_000

OFFLINE = {
    False: "I am the offline model: I search, save and list, but I do not write or reason. To connect a real model, "
    'set `provider = "openai"`, `name`, `base_url` and `api_key` under `[model]` in `config.toml`.',
    True: "أنا النموذج المحلي الذي يعمل دون اتصال: أبحث وأحفظ وأعرض القوائم، لكنني لا أؤلف ولا أستنتج. لتوصيل نموذج "
    'حقيقي عيّن `provider = "openai"` و`name` و`base_url` و`api_key` في القسم `[model]` من الملف `config.toml`.',
}
_ABLE = {
    False: "You can ask about anything said or kept before (“When is the dentist?”), have something kept (“Remember "
    "that ...”) or removed (“Forget that ...”), or say “Are you connected?” and “List my chats”.",
    True: "يمكنك أن تسأل عن أي شيء قيل أو حُفظ من قبل («متى موعد طبيب الأسنان؟»)، أو أن تطلب حفظ شيء («تذكّر "
    "أن ...») أو حذفه («انسَ أن ...»)، أو أن تقول «هل أنت متصل؟» و«اعرض محادثاتي».",
}
_TALK = {
    "greeting": {False: "Hello!", True: "أهلًا وسهلًا!"},
    "wellbeing": {False: "All is well here, thank you.", True: "أنا بخير، شكرًا لسؤالك."},
    "thanks": {False: "You are welcome.", True: "على الرحب والسعة."},
    "bye": {False: "Goodbye!", True: "في أمان الله."},
    "agreed": {False: "All right.", True: "حسنًا."},
    "cancel": {False: "All right, I leave it at that.", True: "حسنًا، لن أتابع."},
}
_FOUND = {False: "From memory:", True: "وجدتُ في الذاكرة:"}
_NOTHING = {False: "I found nothing about this. I searched twice", True: "لم أجد شيئًا عن ذلك. بحثتُ مرتين"}
_NOTHING_ONCE = {False: "I found nothing about this. I searched", True: "لم أجد شيئًا عن ذلك. بحثتُ"}
_SAVED = {False: "Saved:", True: "حفظتُ:"}
_KNOWN = {False: "I had that already:", True: "هذا محفوظ لديّ من قبل:"}
_FORGOTTEN = {False: "Removed:", True: "حُذف:"}
_KEPT_FILES = {False: "The files as they were:", True: "الملفات كما كانت:"}
_WHICH = {
    False: "Several things may be meant; nothing was removed. Say “forget” with one of these references:",
    True: "قد يكون المقصود أكثر من شيء، ولم يُحذف شيء. قل «انسَ» مع أحد هذه المراجع:",
}
_STATUS_WORDS = (
    ("No channel is switched on.", "لا توجد قناة مفعّلة."),
    ("not connected (", "غير متصلة ("),
    (": connected (", ": متصلة ("),
    ("switched off", "معطّلة"),
    ("last receive never", "لم تستقبل شيئًا بعد"),
    ("last send never", "لم ترسل شيئًا بعد"),
    ("last receive ", "آخر استقبال "),
    ("last send ", "آخر إرسال "),
    ("to do: ", "المطلوب: "),
    ("; ", "؛ "),
)
_STATUS = {False: "State of the channels:", True: "حالة القنوات:"}
_CHATS = {False: "Your conversations, newest first:", True: "محادثاتك، الأحدث أولًا:"}
_NO_CHATS = {False: "There are no conversations yet.", True: "لا توجد محادثات بعد."}
_KEPT = {
    False: "I have kept your message and can find it again. Say “remember that ...” to have it saved as a fact.",
    True: "رسالتك محفوظة وأستطيع العثور عليها لاحقًا. قل «تذكّر أن ...» لأحفظها حقيقةً مستقلة.",
}
_DAYS = {
    "Monday": "الاثنين",
    "Tuesday": "الثلاثاء",
    "Wednesday": "الأربعاء",
    "Thursday": "الخميس",
    "Friday": "الجمعة",
    "Saturday": "السبت",
    "Sunday": "الأحد",
}
OWN_OPENINGS = tuple(
    text
    for both in (_FOUND, _NOTHING, _NOTHING_ONCE, _SAVED, _KNOWN, _WHICH, _STATUS, _CHATS, OFFLINE, _KEPT)
    for text in both.values()
)
"""How the answers begin that only repeat what is stored elsewhere."""
OWN_MARKS = tuple(text.partition(":")[0] for text in OFFLINE.values())
"""What shows that a text is this model's, wherever it stands."""


class Finding(Protocol):
    """What is quoted of a hit."""

    @property
    def ref(self) -> str: ...
    @property
    def snippet(self) -> str: ...
    @property
    def at(self) -> str: ...
    @property
    def sender(self) -> str: ...


def small_talk(kind: str, arabic: bool) -> str:
    """The answer to a greeting and the like; a greeting and a call for help also say what can be done."""
    if kind == "help":
        return f"{OFFLINE[arabic]}\n\n{_ABLE[arabic]}"
    words = _TALK[kind][arabic]
    return f"{words} {OFFLINE[arabic]}" if kind in ("greeting", "wellbeing") else words


def statement(arabic: bool) -> str:
    """The answer to everything that is nothing this model can do."""
    return f"{_KEPT[arabic]}\n\n{OFFLINE[arabic]}"


def found(hits: Sequence[Finding], arabic: bool) -> str:
    """The findings, each quoted with who, when and its reference."""
    lines = [_FOUND[arabic]]
    for hit in hits:
        where = ", ".join(part for part in (hit.sender, hit.at, f"`{hit.ref}`") if part)
        lines.append(f"- {_quoted(hit.snippet, arabic)} ({where})")
    return "\n".join(lines)


def nothing_found(queries: Sequence[str], arabic: bool) -> str:
    """That the searches brought nothing, with their words."""
    opening = _NOTHING[arabic] if len(queries) > 1 else _NOTHING_ONCE[arabic]
    joiner = "، ثم عن " if arabic else ", then for "
    words = joiner.join(_quoted(query, arabic) for query in queries)
    return f"{opening} {'عن' if arabic else 'for'} {words}.\n\n{OFFLINE[arabic]}"


def saved(fact: str, result: str, arabic: bool) -> str:
    """A short confirmation; `result` is the text of the tool: a word and a reference."""
    word, _, ref = result.strip().partition(": ")
    opening = _KNOWN[arabic] if word.startswith("Known") else _SAVED[arabic]
    return f"{opening} {_quoted(fact, arabic)}" + (f" (`{ref}`)" if ref.startswith("file:") else "")


def forgotten(result: str, arabic: bool) -> str:
    """What is gone, by its references alone, and where the files are as they were."""
    removed, _, rest = result.strip().partition("\n")
    _, _, kept = rest.partition("by hand: ")
    lines = [f"{_FORGOTTEN[arabic]} `{removed.removeprefix('Removed: ').rstrip('.')}`"]
    lines += [f"{_KEPT_FILES[arabic]} `{kept.rstrip('.')}`"] if kept else []
    return "\n".join(lines)


def not_forgotten(reason: str, arabic: bool) -> str:
    """Why nothing was removed; of several matches all are named."""
    _, several, listed = reason.partition("\n- ")
    if not several:
        return failed("memory_forget", reason, arabic)
    return f"{_WHICH[arabic]}\n- {listed[:LISTING_CHARS_MAX]}"


def channels(result: str, arabic: bool) -> str:
    """What the tool says about the channels, one a line: `name: fact; fact`."""
    lines = [f"- {line}" for line in result.strip().splitlines()]
    text = "\n".join([_STATUS[arabic], *lines])
    if arabic:
        for english, words in _STATUS_WORDS:
            text = text.replace(english, words)
    return text


def conversations(result: str, arabic: bool) -> str:
    """What the tool says about the conversations: `[id] when · where · title · 3 messages`, and a line of its text."""
    lines: list[str] = []
    for line in result.strip().splitlines():
        head = re.match(r"\[([^\]\s]+)\] (.*)", line)
        if head:
            facts = re.sub(r"(\d+) messages$", r"عدد الرسائل: \1" if arabic else r"\1 messages", head[2])
            lines.append(f"- {facts} (`conversation:{head[1]}#`)")
        elif lines and line.strip():
            lines[-1] += f"\n  {_quoted(line, arabic)}"
    if not lines:
        return _NO_CHATS[arabic]
    text = "\n".join([_CHATS[arabic], *lines])
    return text if len(text) <= LISTING_CHARS_MAX else f"{text[: text.rfind(chr(10) + '- ', 0, LISTING_CHARS_MAX)]}\n…"


def now(context: str, arabic: bool) -> str | None:
    """Day and time from the turn's `<context>` block; None when it does not say."""
    line = re.search(r"^now: (\w+) (\d{4}-\d\d-\d\d) (\d\d:\d\d)[^(\n]*(?:\(([^)\n]*)\))?", context, re.MULTILINE)
    if line is None:
        return None
    day, date, time, zone = line.groups()
    if arabic:
        return f"اليوم {_DAYS.get(day, day)} {date}، والساعة {time}" + (f" ({zone})." if zone else ".")
    return f"It is {day} {date}, {time}" + (f" ({zone})." if zone else ".")


def not_open(tool: str, arabic: bool) -> str:
    """That this person may not use the tool it would take."""
    if arabic:
        return f"لا يمكنني فعل ذلك هنا: الأداة `{tool}` غير متاحة لك في هذه المحادثة."
    return f"I cannot do that here: the tool `{tool}` is not open to you in this chat."


def failed(tool: str, reason: str, arabic: bool) -> str:
    """That a tool did not do it, with its own words."""
    reason = " ".join(reason.split())[:SNIPPET_CHARS_MAX]
    return f"تعذّر ذلك (`{tool}`): {reason}" if arabic else f"That did not work (`{tool}`): {reason}"


def _quoted(text: str, arabic: bool) -> str:
    line = " ".join(text.split())
    if len(line) > SNIPPET_CHARS_MAX:
        line = f"{line[:SNIPPET_CHARS_MAX]}…"
    return f"«{line}»" if arabic else f"“{line}”"


def at(context: str) -> datetime | None:
    """The time that the turn's `<context>` block says, in the owner's zone."""
    line = re.search(r"^now: \w+ (\d{4}-\d\d-\d\d \d\d:\d\d [+-]\d{4}) \(([^)\n]+)\)", context, re.MULTILINE)
    if line is None:
        return None
    try:
        return datetime.strptime(line[1], "%Y-%m-%d %H:%M %z").astimezone(ZoneInfo(line[2]))
    except (ValueError, ZoneInfoNotFoundError):
        return None


def planned(result: str, arabic: bool) -> str:
    """That a job is written down, and its next times."""
    times = result.partition("Next: ")[2].rstrip(".") or result
    return f"سُجّل الموعد. المواعيد القادمة: {times}." if arabic else f"It is written down. Next: {times}."


def reminder(of: str, arabic: bool) -> str:
    """A reminder that is due."""
    if not of:
        return "تذكير: حان الموعد الذي طلبته." if arabic else "Reminder: it is the time you asked for."
    return f"تذكير: {of}" if arabic else f"Reminder: {of}"


def jobs(result: str, arabic: bool) -> str:
    """The jobs, as the tool lists them."""
    return f"{'المهام المجدولة' if arabic else 'What runs by the clock'}:\n{result}"
