"""What a person asks of the offline model: each message becomes one or more `Ask`s. Pure, by patterns, no model."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from agent.providers.offline_words import fact_type, folded, is_arabic, keywords, other_wording
from agent.when import read_reminder, read_when

Kind = Literal[
    "search", "save", "forget", "correct", "status", "list", "time", "remind", "reminder", "plan", "jobs", "greeting",
    "wellbeing", "thanks", "bye", "agreed", "help", "cancel", "statement",
]  # fmt: skip
SMALL_TALK: frozenset[Kind] = frozenset({"greeting", "wellbeing", "thanks", "bye", "agreed", "help", "cancel"})
ASKS_MAX = 4
PARAGRAPHS_MAX = 40
"""A text of more paragraphs is a document: what follows is not looked at for things to do."""
_SCHEDULED = re.compile(r"\[scheduled run: [^\n]*\][ \t]*(?:\n|$)")


@dataclass(frozen=True, slots=True)
class Ask:
    """One thing to do. `fact` and `fact_type` for `save` and `correct`, `fact` for `forget`; `queries`, first and
    second wording, for `search`. Of the clock: `remind` and `plan` are to be written down, a `reminder` is due now and
    says `fact`, `jobs` are to be listed.
    """

    kind: Kind
    text: str
    arabic: bool
    fact: str = ""
    fact_type: str = ""
    queries: tuple[str, ...] = ()
    explicit: bool = False
    """A search that was asked for as such, not a question."""


def without_schedule_line(text: str) -> str | None:
    """The instruction of a scheduled run; None when the text is a person's."""
    found = _SCHEDULED.match(text.lstrip())
    return text.lstrip()[found.end() :].strip() if found else None


def asks_of(text: str) -> list[Ask]:
    """What a message asks for; paragraphs count apart, since messages that waited together come as one text.

    When anything is to be done, small talk and mere statements beside it are left out.
    """
    parts = [part.strip() for part in re.split(r"\n\s*?\n", text, maxsplit=PARAGRAPHS_MAX) if part.strip()]
    asks: list[Ask] = []
    for part in parts[:PARAGRAPHS_MAX]:
        ask = _ask(part)
        if all((ask.kind, ask.fact, ask.queries) != (known.kind, known.fact, known.queries) for known in asks):
            asks.append(ask)
    work = [ask for ask in asks if ask.kind not in SMALL_TALK and ask.kind != "statement"]
    if work:
        return work[:ASKS_MAX]
    statement = next((ask for ask in asks if ask.kind == "statement"), None)
    if statement is not None:
        return [statement]
    return asks[-1:] or [Ask("statement", text, is_arabic(text))]


def _tolerant(pattern: str) -> str:
    """A pattern whose plain Arabic letters also match with vowel marks and in their other forms."""
    forms = {"ا": "[اأإآٱ]", "ي": "[يىئ]", "ه": "[هة]", "و": "[وؤ]"}
    marks = "[\u0610-\u061a\u064b-\u065f\u0670\u0640]*"
    return "".join(
        f"(?:{forms.get(letter, letter)}{marks})" if "\u0620" <= letter <= "\u064a" else letter for letter in pattern
    )


_POLITE = re.compile(
    _tolerant(
        r"(?:(?:hey|hi|hello|ok(?:ay)?|well|so|and|also|now|then|please|pls|hudhud|(?:can|could|would|will) you"
        r"|i want you to|من فضلك|رجاء|لو سمحت|يا هدهد|هدهد|مرحبا|اهلا|السلام عليكم|ايضا|طيب|حسنا|هل يمكنك ان|اريدك ان)"
        r"[\s,،!.:]+)*+"
    ),
    re.IGNORECASE,
)
_SAVE_ENGLISH = re.compile(
    r"(?:(?:remember|don'?t forget|do not forget|keep in mind|bear in mind|memori[sz]e)"
    r"(?!\s+(?:when|how|what|who|where|why|which|if|whether|me)\b)"
    r"(?:\s+this)?(?:\s+that)?(?:\s*[:,]\s*|\s+)"
    r"|(?:(?:take|make) a note|note|save|store|record|write down|jot down)(?:\s+(?:this|down|the following|of this))?"
    r"(?:\s*:\s*|\s+that[\s:,]+)(?:that\s+)?)(?P<fact>.*\S)",
    re.IGNORECASE | re.DOTALL,
)
_SAVE_ARABIC = re.compile(
    _tolerant(
        r"و?(?:تذكري|تذكر|احفظي|احفظ|سجلي|سجل|دوني|دون|لا تنسي|لا تنس|لاحظ|ضع في بالك|اكتب عندك|خذ ملاحظه)"
        r"(?:\s+(?:لي|عندك|هذا|هذه المعلومه))*(?:\s*[:،,]\s*|\s+)"
        r"(?!(?:متي|ماذا|ما|من|اين|كيف|لماذا|كم|هل|اي)\s)(?:ب?(?:انني|اني|ان)\s+)?(?P<fact>.*\S)"
    ),
    re.DOTALL,
)
_FORGET_ENGLISH = re.compile(
    r"(?:forget|erase|delete from (?:your )?memory|remove from (?:your )?memory)"
    r"(?:\s+(?:that|about|the fact that|what i said about))?(?:\s*[:,]\s*|\s+)(?!(?:it|that|this)\W*$)(?P<fact>.*\S)",
    re.IGNORECASE | re.DOTALL,
)
_FORGET_ARABIC = re.compile(
    _tolerant(
        r"(?:انسي|انس|احذفي من (?:ال)?ذاكر(?:ه|تك)|احذف من (?:ال)?ذاكر(?:ه|تك)|امح من (?:ال)?ذاكر(?:ه|تك))"
        r"(?:\s*[:،,]\s*|\s+)(?:ان\s+|امر\s+|موضوع\s+)?(?!(?:ذلك|هذا|الامر)\W*$)(?P<fact>.*\S)"
    ),
    re.DOTALL,
)
_CORRECTS = re.compile(
    _tolerant(
        r"(?:(?:no|nope|wrong|actually|correction|i meant|that'?s (?:wrong|not right)"
        r"|لا|كلا|تصحيح|في الواقع|اقصد|قصدت|هذا خطا)"
        r"[\s,،.:;!-]+)+(?P<fact>\S.*)"
    ),
    re.IGNORECASE | re.DOTALL,
)
_NO_LONGER = re.compile(
    _tolerant(r"(?:.{0,60}?\b(?:no longer|any ?more|used to)\b|(?:لم اعد|ما عدت|لم يعد|لم تعد)\s).*"),
    re.IGNORECASE | re.DOTALL,
)
CORRECTION_CHARS_MAX = 400
CORRECTION_WORDS_MIN = 2
_WANTS_CHATS = r"(?:chats|conversations|sessions)"
_STATUS = re.compile(
    r"are you (?:still |really )?(?:connected|online)\b|\b(?:channels?|connection) status\b"
    r"|\bstatus of (?:the |your |my |all )*(?:channels?|connections?)\b"
    r"|^(?:is|are) (?:[\w-]+ ){1,4}connected\b|^which channels are\b"
    r"|^(?:هل )?(?:انت|انتي) متصله?\b|^هل (?:\w+ ){1,3}متصله?\b|(?:حاله|وضع) (?:القنوات|القناه|الاتصال)\b"
)
_LIST = re.compile(
    rf"^(?:list|show(?: me)?|display|what are|give me)(?: all| of)*(?: the| my| our| your)?"
    rf"(?: recent| latest| last| open| all)* {_WANTS_CHATS}\s*[?.!]*$|^my {_WANTS_CHATS}\s*[?.!]*$"
    r"|^(?:اعرض|اظهر|ارني|اسرد|عدد|هات|اعطني|ما هي|وريني|اريد)(?: لي)?(?: كل| جميع| اخر| قائمه)*"
    r" (?:ال)?(?:محادثاتي|محادثات|دردشاتي|دردشات)(?: الاخيره)?\s*[؟?.!]*$|^محادثاتي\s*[؟?.!]*$"
)
_TIME = re.compile(
    r"^(?:what(?:'s| is)? (?:the )?(?:time|date|day)(?: is it| is today| today| now)*|what time is it(?: now)?"
    r"|كم الساعه(?: الان)?|ما (?:هو )?(?:تاريخ اليوم|اليوم)|اي يوم (?:هذا|اليوم)|ما التاريخ(?: اليوم)?)\s*[?؟.!]*$"
)
_COMMANDS: tuple[tuple[Kind, re.Pattern[str]], ...] = (("status", _STATUS), ("list", _LIST), ("time", _TIME))
_SEARCH = re.compile(
    r"^(?:search|find|look up|look for|look through|ابحث|فتش|دور)\b(?!\s*[?؟.!]*$)"
    r"|^(?:remind me|tell me|show me) (?:what|when|where|who|which|how|why|about)\b"
    r"|^(?:ذكرني|اخبرني) (?:ما|متي|اين|من|كيف|عن|بما|ماذا)"
    r"|^what about\b|^(?:remember|recall) (?:when|how|what|who|where|why|which)\b"
    r"|^تذكر (?:متي|ماذا|ما|من|اين|كيف|لماذا|كم)\s"
)
_QUESTION = re.compile(
    r"^(?:what|whats|what's|when|when's|where|where's|who|who's|whom|whose|which|why|how|is|are|was|were|do|does|did"
    r"|have|has|had|can|could|should|would|will|am|any)\b"
    r"|^و?(?:ما|ماذا|متي|اين|من|كيف|لماذا|هل|كم|اي|ايش|شو|وش|ليش|فين|وين|بماذا|لمن|مع من|في اي|الي اين|من اين)\s"
    r"|什么|什麼|哪|谁|誰|怎么|怎麼|几点|幾點|多少|何|いつ|どこ|どう|なぜ|언제|어디|누구|무엇|뭐"
)
_MARK = re.compile(r"[?？؟]\s*$|[吗嗎呢か까][。.?？]?\s*$")
_EDGE = r"[\s,،.!؟?~:()\-\u2600-\u27bf\U0001f300-\U0001faff\ufe0f\u200d]*"
TALK_CHARS_MAX = 120

# In the order in which they count when one message holds several ("ok thanks").
_TALK: tuple[tuple[Kind, str], ...] = (
    ("cancel", r"stop|cancel|never ?mind|forget it|leave it|توقف|الغ|الغاء|لا داعي|دعك من ذلك|انس الامر"),
    (
        "help",
        r"/?help(?: me)?|what can you do(?: for me)?|what do you do|who are you|what are you|how do you work"
        r"|how (?:do|can) i (?:connect|add|use|set up) an?(?:other| real)? model"
        r"|مساعده|ساعدني|ماذا (?:تستطيع|يمكنك)(?: ان تفعل)?|ماذا تفعل|من انت|ما انت|عرف بنفسك"
        r"|كيف (?:اوصل|اضيف|اربط) نموذجا(?: حقيقيا)?",
    ),
    (
        "wellbeing",
        r"how (?:are|r) (?:you|u)(?: doing)?(?: today)?|how's it going|are you there|what's up|sup"
        r"|كيف (?:حالك|الحال|انت)(?: اليوم)?|كيفك|شلونك|اخبارك|ما اخبارك|هل انت هنا",
    ),
    (
        "thanks",
        r"thanks?(?: you)?(?: so| very)?(?: much)?(?: a lot)?|many thanks|thx|ty|cheers"
        r"|شكرا(?: لك)?(?: جزيلا)?|مشكور|تسلم|جزاك الله(?: كل)? خيرا?|بارك الله فيك|يعطيك العافيه",
    ),
    (
        "bye",
        r"bye(?: bye)?|goodbye|good night|see you(?: later| soon| tomorrow)?"
        r"|مع السلامه|وداعا|الي اللقاء|تصبح علي خير|في امان الله",
    ),
    (
        "greeting",
        r"hi+|hey+|hello+|howdy|hiya|yo|greetings|good (?:morning|afternoon|evening|day)|salam(?: alaikum)?|/start"
        r"|(?:و?عليكم )?السلام(?: عليكم)?(?: ورحمه الله)?(?: وبركاته)?|سلام(?: عليكم)?|مرحبا|مرحبتين|اهلا(?: وسهلا)?"
        r"|هلا(?: والله)?|هاي|صباح (?:الخير|النور)|مساء (?:الخير|النور)|حياك الله|تحيه طيبه",
    ),
    (
        "agreed",
        r"ok(?:ay)?|k|fine|great|good|nice|cool|perfect|yes|yeah|yep|no|nope|sure|got it|i see|alright|all right|lol"
        r"|(?:ha){2,}+|حسنا|تمام|طيب|نعم|اجل|ايوه|لا|جيد|ممتاز|رائع|فهمت|اوك|اوكي|موافق|ههه++",
    ),
)
_NAME = r"(?:\s*[,،]?\s*\b(?:hudhud|there|all|everyone|friend|يا هدهد|هدهد|يا صديقي|يا صاحبي)\b)?"
_ANY_TALK = re.compile(rf"{_EDGE}(?:(?:{'|'.join(words for _, words in _TALK)})(?!\w){_NAME}{_EDGE})+")
_TALK_KINDS: tuple[tuple[Kind, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(rf"(?<!\w)(?:{words})(?!\w)")) for kind, words in _TALK
)


_DUE = re.compile(r"(?:Remind me|ذكّرني)(?::\s*(?P<of>.*\S)|\.)", re.DOTALL)
_JOBS = re.compile(
    r"^(?:list|show(?: me)?|what are)(?: all| of| my| the)* (?:reminders?|schedules?|scheduled jobs|jobs)\s*[?.!]*$"
    r"|^(?:اعرض|اظهر|ارني|ما هي)(?: لي)? (?:تذكيراتي|مواعيدي|التذكيرات|المواعيد|المهام المجدوله)\s*[؟?.!]*$"
)
_SOME_DAY = datetime(2027, 1, 6, 10, 30, tzinfo=UTC)
"""Whether a text names a time does not depend on the day."""


def _clock(body: str, plain: str) -> tuple[Kind, str] | None:
    """What is asked of the clock, if anything is."""
    due = _DUE.fullmatch(body)
    if due:
        return "reminder", due["of"] or ""
    if _JOBS.search(plain):
        return "jobs", ""
    if read_reminder(body, _SOME_DAY) is not None:
        return "remind", ""
    when = read_when(body, _SOME_DAY)
    if when is None or not when.rest or not body.startswith(when.said) or when.heading.startswith("Once"):
        return None
    # Only what can be done: "every sunday at 9 we meet" is something to know, not to do.
    return ("plan", "") if re.match(r"(?:search|find|ابحث|فتش)\b", folded(when.rest)) else None


def _small_talk(plain: str) -> Kind | None:
    if len(plain) > TALK_CHARS_MAX or not _ANY_TALK.fullmatch(plain):
        return None
    return next((kind for kind, pattern in _TALK_KINDS if pattern.search(plain)), None)


def _correction(body: str) -> str:
    """What holds from now on; empty for anything but a correction."""
    if len(body) > CORRECTION_CHARS_MAX:
        return ""
    found = _CORRECTS.match(body)
    fact = (found["fact"] if found else body if _NO_LONGER.match(body) else "").strip().strip('"“”«»').strip()
    plain = " ".join(folded(fact).split())
    is_one = len(keywords(fact)) >= CORRECTION_WORDS_MIN and not _QUESTION.search(plain) and not _SEARCH.search(plain)
    return fact if is_one else ""


def _ask(text: str) -> Ask:
    arabic = is_arabic(text)
    plain = " ".join(folded(text).split())
    if not re.search(r"\w", plain):
        return Ask("agreed" if plain and not _MARK.search(plain) else "help", text, arabic)
    talk = _small_talk(plain)
    if talk is not None:
        return Ask(talk, text, arabic)
    body = _POLITE.sub("", text.strip(), count=1) or text
    plain = " ".join(folded(body).split())
    clock = _clock(body, plain)
    if clock is not None:
        return Ask(clock[0], text, arabic, fact=clock[1])
    for kind, pattern in _COMMANDS:
        if pattern.search(plain):
            return Ask(kind, text, arabic)
    is_question = bool(_MARK.search(body))
    saved = None if is_question else _SAVE_ENGLISH.match(body) or _SAVE_ARABIC.match(body)
    if saved:
        fact = saved["fact"].strip().strip('"“”«»').strip()
        return Ask("save", text, arabic, fact=fact, fact_type=fact_type(fact))
    forgotten = None if is_question else _FORGET_ENGLISH.match(body) or _FORGET_ARABIC.match(body)
    if forgotten:
        return Ask("forget", text, arabic, fact=forgotten["fact"].strip().strip('"“”«».!').strip())
    corrected = "" if is_question else _correction(body)
    if corrected:
        return Ask("correct", text, arabic, fact=corrected, fact_type=fact_type(corrected))
    explicit = bool(_SEARCH.search(plain))
    words = keywords(body) if is_question or explicit or _QUESTION.search(plain) else None
    if words is None:
        return Ask("statement", text, arabic)
    if not words:
        return Ask("help", text, arabic)
    queries = (" ".join(words), " ".join(other_wording(words)))
    return Ask("search", text, arabic, queries=queries, explicit=explicit)
