"""The words the offline model knows, in one folded form (see `folded`): lower case, Arabic without vowel marks."""

from __future__ import annotations

import re

_MARKS = re.compile("[\u0610-\u061a\u064b-\u065f\u0670\u0640\u06d6-\u06ed]")
_LETTERS = str.maketrans("أإآٱىةؤئ’", "اااايهوي'")
# Letters of Persian and Urdu that Arabic does not write: such a text is answered in English.
_NOT_ARABIC = re.compile("[پچژگکیٹڈڑےں]")
_ARABIC_WORD = re.compile("[\u0620-\u064a]{2,}")
_LATIN_WORD = re.compile("[A-Za-z]{2,}")
_WORD = re.compile(r"[^\W_]+(?:['’._@/:+-]+[^\W_]+)*")
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff]+")
_HAN_OR_KATAKANA = re.compile("[\u30a0-\u30ff\u3400-\u9fff]+")
_HAN_FILLERS = re.compile(
    "什么时候|什麼時候|什么|什麼|时候|時候|哪里|哪裡|哪儿|为什么|怎么|多少|我们|你们|吗|嗎|呢|的|了|是|在|我|你|谁|誰|何時|何|いつ"
)


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


STOP_WORDS = _set(
    """
    a about after again all also am an and any anything are as at be because been before being but by can could did do
    does doing done down ever find for from get give had has have he her here hers him his how i if in into is it its
    just know last like let look lately may me might mine more most much my no not now of off ok on once one only or
    our ours out over please remember recall said say search see she should show so some something such tell than that
    the their them then there these they thing this those to today told too under until up us use very want was we
    were what whats when whens where wheres which while who whom whos whose why will with would yesterday you your
    yours i'm i've don't didn't what's who's where's when's it's memory up hey hi hello hudhud

    من في علي الي عن مع هذا هذه ذلك تلك هولاء التي الذي الذين ما ماذا متي كيف لماذا اين هل كم اي ايه ان انا انت انتم
    نحن هو هي هم كان كانت كانوا يكون تكون قد لقد لا لم لن ليس لكن بل او ام ثم حتي اذا لو كل بعض بعد قبل عند عندي عندما
    لدي لديك بين منذ كما ايضا فقط هناك هنا به بها له لها فيه فيها عليه منه عنه اليه لي لك لنا بان وان انه انها يا ايش شو
    وش ليش فين وين اما وما ولا وفي ومن تذكر تعرف قلت قال اخبرني قل ابحث فتش ذكرني عما ماهو ماهي مما هدهد من فضلك امس
    اليوم الامس الذاكره ذاكرتك

    제 내 나의 언제 언제인가요 언제야 어디 어디야 누구 무엇 뭐 왜 어떻게
    """
)

_ALIKE = (
    "car vehicle سياره مركبه",
    "phone mobile number هاتف جوال رقم",
    "email mail بريد ايميل",
    "wife husband spouse زوجه زوجتي زوج زوجي",
    "doctor physician clinic طبيب دكتور عياده",
    "dentist dental teeth tooth اسنان ضرس",
    "birthday birth born ميلاد مولد",
    "meeting appointment call اجتماع موعد لقاء",
    "job work office عمل وظيفه مكتب دوام",
    "house home flat apartment بيت منزل شقه سكن",
    "password code pin سر رمز مرور",
    "buy bought purchase shopping شراء اشتري اشتريت",
    "food meal eat restaurant طعام اكل وجبه مطعم",
    "price cost paid سعر ثمن تكلفه",
    "trip travel flight journey سفر رحله طيران",
    "favourite favorite prefer love مفضل مفضله المفضل المفضله احب افضل",
    "son daughter child children kid kids ابن ابني بنت ابنتي طفل اولاد",
    "brother sister siblings اخ اخي اخت اختي",
    "mother father parents mom dad ام امي اب ابي والد والدتي",
    "live lives living address city يسكن يعيش اسكن عنوان مدينه",
    "deadline due delivery تسليم مهله استحقاق",
    "name called اسم يدعي",
    "drink coffee tea شراب قهوه شاي اشرب",
    "school university study مدرسه جامعه دراسه",
    "friend colleague صديق صديقي زميل",
    "friday الجمعه",
    "saturday السبت",
    "sunday الاحد",
    "monday الاثنين الاتنين",
    "tuesday الثلاثاء",
    "wednesday الاربعاء",
    "thursday الخميس",
    "plan plans schedule خطه جدول",
    "budget money salary ميزانيه مال راتب",
    "contract agreement عقد اتفاق",
    "bill invoice receipt فاتوره ايصال",
    "medicine pills medication دواء علاج",
    "key keys مفتاح مفاتيح",
    "server machine host خادم سيرفر",
)
ALIKE: dict[str, tuple[str, ...]] = {
    word: tuple(other for other in group.split() if other != word) for group in _ALIKE for word in group.split()
}

FACT_TYPES: tuple[tuple[str, frozenset[str]], ...] = (
    (
        "decisions",
        _set("decided decide decision agreed chose قررت قررنا قرار القرار اتفقنا اتفقت اخترنا اخترت"),
    ),
    (
        "preferences",
        _set(
            """
            like likes love loves prefer prefers preferred favourite favorite hate hates dislike enjoy allergic vegan
            vegetarian احب يحب تحب افضل يفضل تفضل المفضل المفضله مفضل مفضله اكره يكره حساسيه نباتي اشربها
            """
        ),
    ),
    (
        "people",
        _set(
            """
            brother sister wife husband mother father mom dad son daughter friend colleague boss neighbour neighbor
            uncle aunt cousin birthday married born اخي اختي زوجتي زوجي امي ابي والدي والدتي ابني ابنتي بنتي صديقي
            صديقتي زميلي مديري جاري عمي خالي خالتي عمتي ميلاد ميلاده ميلادها تزوج ولد اسمه اسمها
            """
        ),
    ),
    (
        "projects",
        _set(
            """
            project deadline launch release milestone sprint client deliverable proposal مشروع المشروع مشروعي تسليم
            التسليم اطلاق الاطلاق العميل عميل المهله مرحله
            """
        ),
    ),
)
"""The first type one of whose words stands in the fact; `technical` for none."""


def folded(text: str) -> str:
    """Case, Arabic vowel marks and letter forms taken away, for comparing."""
    return _MARKS.sub("", text.casefold()).translate(_LETTERS)


def same(text: str) -> str:
    """Only letters and digits of the folded text, blanks between: equal for texts that say the same."""
    return " ".join(_WORD.findall(folded(text)))


def is_arabic(text: str) -> bool:
    """True for a text to be answered in Arabic: names and words in Latin letters may stand in it."""
    arabic = len(_ARABIC_WORD.findall(text))
    return arabic > 0 and arabic * 2 >= len(_LATIN_WORD.findall(text)) and not _NOT_ARABIC.search(text)


def fact_type(fact: str) -> str:
    """The kind of knowledge a fact belongs to."""
    words = set(_WORD.findall(folded(fact)))
    return next((name for name, known in FACT_TYPES if words & known), "technical")


def keywords(text: str, words_max: int = 8) -> list[str]:
    """The words worth searching for, as written; empty when there are only common ones."""
    found: list[str] = []
    for word in _WORD.findall(text):
        if _UNSPACED.search(word):
            found.extend(_unspaced_keywords(word))
        elif folded(word) not in STOP_WORDS and (len(word) > 1 or word.isdigit()):
            found.append(word)
    unique = {folded(word): word for word in reversed(found)}
    return list(reversed(unique.values()))[:words_max]


def forms(word: str) -> frozenset[str]:
    """A word and its stem, folded: two words are the same when they share one."""
    word = folded(word)
    return frozenset((word, _stem(word)))


def alike_forms(word: str) -> frozenset[str]:
    """The forms of a word and of the words of like meaning; of a run without blanks also its pairs."""
    return frozenset(form for other in (word, *_alternatives(folded(word))) for form in forms(other))


def is_unspaced(word: str) -> bool:
    """True for a run of a script that is written without blanks."""
    return _UNSPACED.search(word) is not None


def other_wording(words: list[str], words_max: int = 14) -> list[str]:
    """Other words for the same thing: words of like meaning, in both languages, and stems; never the same list.

    Each word gives its best first, so that the limit leaves something of each.
    """
    first = [folded(word) for word in words]
    groups = [_alternatives(word) for word in first]
    longest_group = max(map(len, groups), default=0)
    other = [group[n] for n in range(longest_group) for group in groups if n < len(group)]
    other = [word for word in dict.fromkeys(other) if word][:words_max]
    if not other or set(other) == set(first):
        # Nothing else is known about these words: fewer of them, or the single one in its other form.
        longest = max(first, key=len, default="")
        other = [longest] if len(first) > 1 else [f"ال{longest}" if is_arabic(longest) else f"{longest}s"]
    return other


def _alternatives(word: str) -> list[str]:
    """For a folded word: words of like meaning, its stem, and the pairs of a run without blanks."""
    stem = _stem(word)
    pairs = [word[at : at + 2] for at in range(len(word) - 1)] if _UNSPACED.fullmatch(word) else []
    return [*(ALIKE.get(word) or ALIKE.get(stem) or ()), stem, *pairs]


def _unspaced_keywords(run: str) -> list[str]:
    """Chinese and Japanese are written without blanks: what is left without the question words and particles."""
    parts = [part for piece in _HAN_FILLERS.split(run) for part in _HAN_OR_KATAKANA.findall(piece)]
    return parts or [run]


def _stem(word: str) -> str:
    """A word without the commonest endings, and in Arabic without the article and joined prefixes."""
    if not word.isascii():
        for prefix in ("وال", "بال", "فال", "كال", "لل", "ال", "و", "ب", "ل"):
            if word.startswith(prefix) and len(word) - len(prefix) >= (3 if len(prefix) > 1 else 4):
                word = word[len(prefix) :]
                break
        for suffix in ("ها", "هم", "نا", "ات", "ون", "ين", "ي", "ك", "ه", *"은는이가을를에의로와과도"):
            if word.endswith(suffix) and len(word) - len(suffix) >= (3 if word < "ↀ" else 2):
                return word[: -len(suffix)]
        return word
    for ending, instead in (("ies", "y"), ("sses", "ss"), ("ing", ""), ("ed", ""), ("s", "")):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith(("ss", "us", "is")):
            return word[: -len(ending)] + instead
    return word
