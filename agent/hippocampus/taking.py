"""Takes facts out of a day by rule: what somebody asked to have remembered, preferences, decisions, moves, corrections.

Only what a person said counts, in the lines `- User: ...` of the day's entries; questions never. What others than the
owner said becomes a fact about what they said, with its origin, and no opinion.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date

from agent.hippocampus.claims import Reader
from agent.hippocampus.entities import Entities
from agent.hippocampus.facts import FACT_CHARS_MAX, MENTION, write_bullet
from agent.hippocampus.patterns import Pattern
from agent.hippocampus.retain import TAKEN
from agent.hippocampus.times import with_dates
from agent.hippocampus.types import OWNER, said_by

FACTS_A_DAY_MAX = 40
FACT_CHARS_MIN = 6
OPINION_CONFIDENCE = 0.80
"""What somebody says of a liking outright is taken as sure as this."""
_ENTRY = Pattern(r"## \d\d:\d\d \[(?P<channel>[^\]]*)\]")
_SAID = Pattern(r"- User(?: \((?P<who>.*?)\))?: (?P<text>.*\S)\s*$")
_NOT_PEOPLE = frozenset({"heartbeat", "procedure"})
_SENTENCE = Pattern(
    r"(?<!\b[Dd]r\.)(?<!\b[MS][rt]\.)(?<!\bMrs\.)(?<!\bProf\.)(?<!\be\.g\.)(?<!\bi\.e\.)(?<=[.!?؟…])\s+(?=\S)"
)
_REQUEST = Pattern(r"\b(?:would|i'?d|we'?d) (?:like|love)\b", re.IGNORECASE)
_QUESTION = Pattern(
    r"[?؟]\s*$|^(?:who|do|does|did|is|are|was|were|can|could|should|would|will)\b(?! .*\bremember that\b)"
    # "When I fly I prefer ...", "What we like is ..." say something; so do "ما عدت ..." and "من اليوم ...".
    r"|^(?:what|when|where|which|why|how)\b(?!\s+(?:i|we|he|she|they|you|my|our)\b)(?! .*\bremember that\b)"
    r"|^(?:هل|ماذا|متى|أين|اين|كيف|لماذا|كم|أي)\s|^من\s+(?:هو|هي|هم|الذي|التي|[يت]\w+)(?!\w)"
    r"|^ما\s+(?!(?:عا?د|زا?ل|كا?ن|دمت|دام|[أايتن](?:حب|فض|عجب|ريد|كره|شرب|كل|سكن|عيش|عمل|ستعمل|ستخدم))\w*)",
    re.IGNORECASE,
)
_SECRET = Pattern(
    r"pass ?word|passcode|\bpin\b|api.?key|secret|\btoken\b|\bcvv\b|credit card|كلمة (?:ال)?(?:سر|مرور)"
    r"|الرقم السري|رمز (?:ال)?(?:دخول|مرور|تحقق)",
    re.IGNORECASE,
)
_POLITE = Pattern(
    r"^(?:(?:hey|hi|hello|ok(?:ay)?|well|so|and|also|please|pls|by the way|btw|fyi|oh|hudhud|yes|thanks"
    r"|من فضلك|رجاءً?|لو سمحت|يا هدهد|هدهد|مرحبا|أيضا|ايضا|طيب|حسنا|بالمناسبة|نعم|شكرا)[\s,،!.:]+)+",
    re.IGNORECASE,
)
_CORRECTION = Pattern(
    r"^(?:no|nope|wrong|not quite|actually|correction|sorry|i meant|i was wrong|rather|scratch that"
    r"|(?:i|we)(?:'ve|’ve| have)? changed (?:my|our) minds?|لا|كلا|خطأ|تصحيح|غي[ّ]?رت رأيي|غي[ّ]?رنا رأينا"
    r"|في الواقع|بل|أقصد|اقصد|قصدت|عفوا)"
    r"(?:[\s,،.:;!-]+(?:that'?s (?:wrong|not right)|not any ?more|that is wrong|actually|i meant|هذا خطأ"
    r"|ليس كذلك))?[\s,،.:;!-]+(?=\S)",
    re.IGNORECASE,
)
_REMEMBER = Pattern(
    r"^(?:(?:please )?(?:remember|keep in mind|bear in mind|note(?=\s+that\b|\s+this:|\s*[:,])|don'?t forget"
    r"|do not forget|for the record"
    r"|make a note|take note|memori[sz]e)"
    r"(?!\s+(?:when|how|what|who|where|why|which|if|whether|me|to)\b)(?:\s+(?:this"
    r"|down))?(?:\s*[:,]\s*(?:that\s+)?|\s+that[\s:,]+|\s+))(?P<fact>.*\S)"
    r"|^و?(?:تذك[ّ]?ري?|احفظي?|سج[ّ]?لي?|دو[ّ]?ني?|لا تنس[َىي]?|لاحظي?|ضع في بالك|اكتب عندك)(?:\s+(?:لي|عندك"
    r"|هذا|هذه المعلومة))*"
    r"(?:\s*[:،,]\s*|\s+)(?!(?:متى|ماذا|ما|من|أين|كيف|لماذا|كم|هل|أي)\s)(?:ب?[أا]ن[ّ]?(?=\s)\s+"
    r"|(?=[بأا]ن))?(?P<fact_>.*\S)",
    re.IGNORECASE,
)
_POINTS = Pattern(r"^(?:it|that|this|there|these|those|they|هذا|هذه|ذلك|تلك)(?:'s|’s)?\b", re.IGNORECASE)
"""What only points at something said before cannot be understood alone."""
DECISION = Pattern(
    r"\b(?:(?:we|i)(?:'ve| have)? (?:just |finally |now )?(?:decided|agreed|chose|chosen|settled on"
    r"|will go with|are going with|picked)"
    r"|let'?s (?:go with|use|stick (?:with|to))|the decision is)\b"
    r"|(?<!\w)(?:قررت|قررنا|قرّرنا|قرّرت|اتفقنا|اتفقت|اخترنا|اخترت|سنعتمد|اعتمدنا|القرار هو|استقر رأينا|سنستخدم)(?!\w)",
    re.IGNORECASE,
)
_FIRST = Pattern(
    r"^(?:(?:[\w'’-]+[\s,،]+){0,3}?|(?:for|on|in|at|when|after|since|from|with"
    r"|during)\s(?:[\w'’-]+[\s,،]+){0,8}?)(?:\b(?:i|i'?m|i'?ve|i'?d|my|mine|we|our)\b"
    r"|(?<!\w)(?:[وف]?(?:أ|ا)(?:فض[ّ]?ل|حب[ّ]?|كره|سكن|عيش|عمل|شتغل|قيم|ميل|ريد|تجنب|عشق)|(?:لم|لن) أعد"
    r"|ما عدت|كنت|يعجبني|تعجبني|انتقلت|سكنت|انضممت"
    r"|\w+ي المفض[ّ]?لة?|مفض[ّ]?لتي|مفض[ّ]?لي|لدي|عندي|صرت|أصبحت|نحن|نسكن|نفضل|نحب|بطّ?لت|تركت|توقفت|أنا|انا)(?!\w))",
    re.IGNORECASE,
)
_NAMED = Pattern(
    r"^(?P<name>[A-Z][\w'’-]+(?: [A-Z][\w'’-]+)?)(?:'s|’s)? (?=(?:no longer|used to|now|really|does(?:n't|n’t"
    r"| not)|also|still|always|never"
    r"|has|is|was|moved|lives?|works?|joined|prefers?|likes?|loves?|hates?|dislikes?|enjoys?|favou?rite"
    r"|switched|stopped|wants?)\b)"
)
_NAME_FIRST = Pattern(r"^([A-Z][\w-]+) (?=[a-z])")
"""Before any verb a capitalised word is a name where it has a page."""
_NAMED_ARABIC = Pattern(
    r"^(?:لم (?:يعد|تعد) )?(?:(?:[يت]فض[ّ]?ل|[يت]حب[ّ]?|[يت]كره|[يت]سكن|[يت]عيش|[يت]عمل|انتقلت?|صارت?|أصبحت?"
    r"|فضلت?) )(?P<name>[\u0621-\u064a]{2,})(?!\w)"
    r"|^(?P<name_>[\u0621-\u064a]{2,}) (?:لم |لا |ما |صارت? |أصبحت? )?(?:يعد |تعد )?(?:[يت]فض[ّ]?ل|[يت]حب[ّ]?"
    r"|[يت]كره|[يت]سكن|[يت]عيش|[يت]عمل|انتقلت?)(?!\w)"
)


_KIN = Pattern(
    r"^(?:my|our) (?P<kin>(?:[a-z][\w-]+ ){0,2}?[a-z][\w-]+)(?:,? (?-i:(?P<name>[A-Z][\w-]+(?: [A-Z][\w-]+)?)),?)?"
    r" (?=(?:no longer|used to|now|really|does(?:n't|n’t| not)|doesn|also|still|always|never|has|is|was|recently|just"
    r"|moved|live[sd]?|works?|worked|joined|prefers?|likes?|loves?|hates?|dislikes?|enjoys?|switched|stopped|quit"
    r"|relocated|wants?|eats?|drinks?|uses?)\b)",
    re.IGNORECASE,
)
_KIN_ARABIC = Pattern(
    r"^(?:(?:لم (?:يعد|تعد)|انتقلت?|صارت?|أصبحت?|[يت]\w+) )?(?P<kin>[أا]خي|[أا]ختي|زوجي|زوجتي|[أا]مي|[أا]بي|ابني|ابنتي"
    r"|بنتي|صديقي|صديقتي|والدي|والدتي|جدي|جدتي|عمي|عمتي|خالي|خالتي|جاري|جارتي|مديري|مديرتي|زميلي|زميلتي)(?!\w)"
    r"(?: (?!(?:لم|لا|ما|صارت?|أصبحت?|انتقلت?|انضمت?|تركت?|في|من|إلى|هو|هي|الآن)(?!\w)|[يت]\w{2,} )"
    r"(?P<name>[\u0621-\u064a]{2,})(?= ))?"
)


@dataclass(frozen=True, slots=True)
class Said:
    """What a person said in the day's log, from 1: its line, who (empty: the owner), on which channel."""

    line: int
    who: str
    channel: str
    text: str


def fresh_lines(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Number and text of the lines that no job has looked through yet."""
    begin = max((at for at, line in enumerate(lines, 1) if line.strip() == TAKEN), default=0)
    return ((at, line) for at, line in enumerate(lines, 1) if at > begin)


def said(lines: Iterable[tuple[int, str]]) -> Iterator[Said]:
    """The people's words in a day's entries; what the clock was told to do is none."""
    channel = ""
    for number, line in lines:
        if line.startswith("#"):
            entry = _ENTRY.match(line)
            channel = entry["channel"] if entry else ""
        elif channel and channel not in _NOT_PEOPLE and (found := _SAID.match(line)):
            who = "" if found["who"] is None else found["who"].strip() or "someone"
            yield Said(number, who, channel, found["text"])


class Taking:
    """Makes bullets of what was said. `entities` know the names that have a page."""

    def __init__(self, reader: Reader, entities: Entities) -> None:
        self._reader = reader
        self._entities = entities

    def bullets(self, lines: Iterable[tuple[int, str]], day: date) -> list[str]:
        """The facts of a day by rule, as Retain bullets, in the order they were said."""
        found: dict[str, None] = {}
        for item in said(lines):
            for sentence in sentences(item.text):
                bullet = self.bullet(sentence, item, day)
                if bullet is not None:
                    found[bullet] = None
        return list(found)[:FACTS_A_DAY_MAX]

    def bullet(self, sentence: str, item: Said, day: date) -> str | None:
        """The bullet of one sentence; None when it is none to keep."""
        text = _POLITE.sub("", sentence).strip()
        corrects = _CORRECTION.match(text)
        if corrects:
            text = text[corrects.end() :].strip()
        remember = _REMEMBER.match(text)
        if remember:
            text = (remember["fact"] or remember["fact_"] or "").strip().strip('"“”«»').strip()
        if (
            len(text) < FACT_CHARS_MIN
            or _SECRET.search(text)
            or (not remember and _REQUEST.search(text))
            or (not remember and _QUESTION.search(text))
        ):
            return None
        reading = self._reader.read(text)
        likes = any(claim.stance == "like" for claim in reading.claims)
        lives = any(claim.stance in {"live", "work"} for claim in reading.claims)
        states = any(claim.stance == "is" and (claim.strong or claim.now or corrects) for claim in reading.claims)
        states = states and not (corrects and _POINTS.match(text))
        ends = any(claim.ends for claim in reading.claims)
        decides = bool(DECISION.search(text))
        name, first = self._name(text), bool(_FIRST.search(text))
        kept = (
            bool(remember)
            or decides
            or ((first or name) and (likes or lives or states or ends))
            or (bool(corrects) and (likes or lives or states or ends))
        )
        if not kept:
            return None
        text = text.rstrip(" .")
        if not likes:
            text = with_dates(text, day)[:FACT_CHARS_MAX]  # of a liking a day is part: "reports on Sundays"
        text = MENTION.sub(lambda found: found[1], text)
        if item.who:
            who = re.sub(r"[^\w-]+", "-", item.who).strip("-") or "someone"
            return write_bullet("W", said_by(f"“{text}”", f"{item.who}, {item.channel}"), (who,))
        mentioned = (name,) if name else () if remember and not first and not likes else (OWNER,)
        if likes and not decides:
            return write_bullet("O", text, mentioned, OPINION_CONFIDENCE)
        return write_bullet("W", text, mentioned)

    def _is_common(self, word: str) -> bool:
        terms = self._reader.lexicon.terms(word)
        return not terms or terms[0].token in self._reader.lexicon.of("no_names")

    def _is_thing(self, text: str) -> bool:
        """True for "my address is ...": it says something of the speaker."""
        return not any(claim.stance in {"like", "live", "work"} for claim in self._reader.read(text).claims)

    def _name(self, text: str) -> str:
        """Whom a sentence is about, where it begins with a name or with "my brother"; empty for anybody else."""
        kin = _KIN.match(text)
        if kin and (kin["name"] or not self._is_thing(text)):
            return re.sub(r"[^\w-]+", "-", kin["name"] or f"my {kin['kin']}")
        if kin := _KIN_ARABIC.match(text):
            return kin["name"] or kin["kin"]
        found = _NAMED.match(text)
        if found and not self._is_common(found["name"].partition(" ")[0]):
            return re.sub(r"['’]s?$", "", found["name"]).replace(" ", "-").replace("’", "").replace("'", "")
        found = _NAME_FIRST.match(text)
        if found and not self._is_common(found[1]) and self._entities.find(found[1]):
            return found[1]
        arabic = _NAMED_ARABIC.match(text)
        name = (arabic["name"] or arabic["name_"] or "") if arabic else ""
        if not name or self._is_common(name):
            return ""
        # After a verb a name looks like a thing ("he likes coffee"), so there it must have a page.
        return name if arabic and (arabic["name_"] or self._entities.find(name)) else ""


def sentences(text: str) -> list[str]:
    """The sentences of what somebody said."""
    return [part.strip() for part in _SENTENCE.split(text) if part.strip()]
