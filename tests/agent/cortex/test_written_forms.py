"""Words are found in whatever way people write them: each text by each of the queries beside it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from agent.cortex.text import fold
from tests.fakes.library import open_library

FOUND_BY = {
    "see src/core/parser_utils.py:120": ["parser_utils.py", "parserutils", "parser-utils", "src/core"],
    "order no. 4711-0815/22": ["4711-0815", "47110815", "4711-0815/22"],
    "the e-mail about re-entry": ["email", "reentry", "re entry"],
    "an email on reentry": ["e-mail", "re-entry"],
    "SmartHome2024Plan of HTTPServerError": ["home", "smart", "plan", "server", "http"],
    "call +966 50 123 4567": ["0501234567", "+966501234567", "٠٥٠١٢٣٤٥٦٧", "٠٥٠ ١٢٣ ٤٥٦٧", "1234567"],
    "الرقم ٠٥٠ ١٢٣ ٤٥٦٧": ["0501234567", "+966501234567", "٠٥٠١٢٣٤٥٦٧"],
    "my number is 555-867-5309": ["5558675309", "8675309", "(555) 867-5309", "+1 555 867 5309"],
    "my number is 555 867 5309": ["5558675309", "555.867.5309"],
    "ring 20123456 at home": ["+4520123456", "+45 20 12 34 56"],
    "Die Größe der Tür in Düsseldorf": ["groesse", "grosse", "tuer", "tur", "DUESSELDORF", "Du\u0308sseldorf"],
    "Strasse in Duesseldorf, Muenchen": ["straße", "düsseldorf", "münchen", "MÜNCHEN"],
    "The O’Brien’s dog and rock’n’roll": ["obrien", "O'Brien", "rocknroll", "rock'n'roll"],
    "ʻokina in Hawaiʻi": ["hawaii", "Hawai'i", "okina"],
    "oʻzbek va Qur’an, Ka‘ba": ["ozbek", "o'zbek", "quran", "kaba"],
    "צה״ל וארה״ב ד״ר כהן צ׳ק": ['צה"ל', "צהל", 'צה"ל וארה"ב', 'ארה"ב', "ד״ר", "צק", "צ'ק"],
    "co\u00adoperation zero\u200bwidth": ["cooperation", "zerowidth", "zero"],
    "㎏ ℃ № 5 ①②③ Ⅳ": ["kg", "5", "123", "iv"],
    "ひらがな と カタカナ": ["ヒラガナ", "かたかな", "ｶﾀｶﾅ", "ひらがな"],
    "データベース": ["ﾃﾞｰﾀ", "データ", "でーた"],
}


@pytest.mark.parametrize("text", FOUND_BY)
async def test_a_text_is_found_however_its_words_are_written(tmp_path: Path, text: str) -> None:
    async with open_library(tmp_path) as library:
        wanted = await library.say(text)
        await library.say("nothing of that kind", conversation="other")
        assert {query: await library.find(query) for query in FOUND_BY[text]} == {
            query: [wanted] for query in FOUND_BY[text]
        }


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ('a 5" pipe and another of 7" length', '5" pipe, 7" length'),
        ('הוא שירת בצה"ל', 'צה"ל או ארה"ב'),
        ('他说"你好"吗', '说"你好"'),
    ],
)
async def test_a_sign_within_a_word_begins_no_phrase(tmp_path: Path, text: str, query: str) -> None:
    async with open_library(tmp_path) as library:
        assert await library.find(query) == [] != [wanted := await library.say(text)]
        assert await library.find(query) == [wanted]


@pytest.mark.parametrize("unit", ["天气预报", "ประชุม", "ab-", "0-0-", "x.y_", "كتاب‌", "1,111", "2023-05-"])
def test_no_text_without_blanks_takes_long(unit: str) -> None:
    begin = time.process_time()
    fold(unit * (1_000_000 // len(unit)))
    assert time.process_time() - begin < 8.0
