"""Reported faults of searches elsewhere, by kind, in words of our own."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from agent.cortex import lookup
from agent.cortex.filters import Filters
from agent.cortex.sentences import sentences
from agent.cortex.text import places, tokens_of
from tests.fakes.library import OWNER, open_library


@pytest.mark.parametrize(
    "query", ["PO-7731", "po-7731", "-settled", "7731", "order PO-7731", "PO 7731", "po7731", "po–7731"]
)
async def test_hyphens_are_no_operators(tmp_path: Path, query: str) -> None:
    async with open_library(tmp_path) as library:
        ref = await library.say("order PO-7731 settled")
        assert await library.find(query) == [ref]


async def test_the_adjacent_pair_comes_before_its_parts_far_apart(tmp_path: Path) -> None:
    async with open_library(tmp_path) as library:
        await library.say("7731 is the number of the gate and nobody knows why the PO wanted it", conversation="a")
        near = await library.say("we need the number and the gate and somebody who knows PO-7731 by", conversation="b")
        assert (await library.find("PO-7731"))[0] == near
        assert (await library.find("cats -dogs")) == []


@pytest.mark.parametrize("query", ["memo: tasks", "09:45", "tasks at 09:45", "memo:tasks"])
async def test_colons_name_no_columns(tmp_path: Path, query: str) -> None:
    async with open_library(tmp_path) as library:
        ref = await library.say("memo: tasks for today at 09:45")
        assert await library.find(query) == [ref]


@pytest.mark.parametrize(
    "query", ["a::b", "text:zebra", "{text}: zebra", "head : zebra", "scope:zebra", "- text : zebra"]
)
async def test_no_query_selects_a_column(tmp_path: Path, query: str) -> None:
    async with open_library(tmp_path) as library:
        await library.say("memo for today", sender="zebra")
        column = await library.say("the text of the head is in scope", sender="Sana", conversation="c2")
        assert set(await library.find(query)) <= {column, "conversation:c1#1"}


@pytest.mark.parametrize(
    "query",
    ["AND", "hens OR geese", "NOT", "NEAR(a b, 3)", "hens AND", "(hens", "hens)", "hens*", "^hens", "a NEAR/2 b"],
)
async def test_operators_are_words(tmp_path: Path, query: str) -> None:
    async with open_library(tmp_path) as library:
        refs = {await library.say("hens and geese near the barn"), await library.say("NOT", conversation="c2")}
        found = await library.find(query)
        assert set(found) <= refs
        if query == "NOT":
            assert found == ["conversation:c2#1"]
        if "hens" in query:
            assert "conversation:c1#1" in found


async def test_words_that_begin_like_operators_stay_whole(tmp_path: Path) -> None:
    async with open_library(tmp_path) as library:
        ref = await library.say("ANDORRA is small")
        assert await library.find("ANDORRA") == [ref]
        assert await library.find("AND ORRA") == []


@pytest.mark.parametrize("query", ["", "   ", "?!?", "*", '"', '"""', "\u200b", "\0", "()", "--", "…", "\ud800"])
async def test_signs_alone_give_a_hint(tmp_path: Path, query: str) -> None:
    async with open_library(tmp_path) as library:
        await library.say("anything at all")
        answer = await library.cortex.search(OWNER, query)
        assert answer.hits == ()
        assert answer.hint


async def test_nul_parts_words_and_emoji_are_words(tmp_path: Path) -> None:
    async with open_library(tmp_path) as library:
        cake = await library.say("cake 🎂 at noon")
        hens = await library.say("hens", conversation="c2")
        assert await library.find("🎂") == [cake]
        assert set(await library.find("hens\0noon")) == {cake, hens}
        assert await library.find("y" * 100_000) == []


@pytest.mark.parametrize(
    ("said", "queries"),
    [
        ("明天下午会议取消", ["会议", "消", "会议 明天", "下午会议"]),
        ("来週カメラ修理の予定", ["カメラ", "修理", "来週"]),
        ("저녁식사예약변경", ["예약", "식사", "변경"]),
        ("พรุ่งนี้ประชุมเช้า", ["ประชุม", "เช้า"]),
        ("ខ្ញុំស្រលាញ់ភ្នំពេញ", ["ភ្នំពេញ"]),
        ("用iPhone15拍照", ["iphone15", "拍照", "iPhone"]),
    ],
)
async def test_parts_of_unspaced_text_are_found(tmp_path: Path, said: str, queries: list[str]) -> None:
    async with open_library(tmp_path) as library:
        ref = await library.say(said)
        for query in queries:
            assert await library.find(query) == [ref], query


@pytest.mark.parametrize(
    ("marked", "plain"),
    [
        ("בֹּקֶר טוֹב", "בוקר טוב"),
        ("בַּיִת", "בית"),
        ("كِتَابٌ", "كتاب"),
        ("مـــكتبة", "مكتبه"),
        ("أُخْتي", "اختي"),
        ("مبنى", "مبني"),
        ("آخر", "اخر"),
        ("l’hiver", "l'hiver"),
        ("naïve", "naive"),
        ("re\u0301sume\u0301", "résumé"),
        ("Straße", "STRASSE"),
        ("ＦＵＬＬ", "full"),
        ("۲۰۴۵", "2045"),
        ("٢٠٤٥", "2045"),
        ("Ελλάδα", "ελλαδα"),
        ("don’t-stop", "dont stop"),
        ("کتاب", "كتاب"),
    ],
)
async def test_spellings_meet_in_both_directions(tmp_path: Path, marked: str, plain: str) -> None:
    if marked == "בֹּקֶר טוֹב":  # full spelling adds letters: the pointed word meets the word without points
        plain = "בקר טוב"
    async with open_library(tmp_path) as library:
        one = await library.say(f"xx {marked} yy", conversation="c1")
        other = await library.say(f"zz {plain} ww qq", conversation="c2")
        assert set(await library.find(marked)) == {one, other}
        assert set(await library.find(plain)) == {one, other}
        hits = (await library.cortex.search(OWNER, plain)).hits
        assert marked in next(hit.snippet for hit in hits if hit.ref == one)


def test_places_cover_the_word_in_the_original() -> None:
    text = "قال: مَدرَسَةٌ كبيرة"
    start, end = next((start, end) for start, end, forms in places(text) if tokens_of("مدرسة")[0] in forms)
    assert text[start:end] == "مَدرَسَةٌ"


@pytest.mark.parametrize(
    ("said", "queries"),
    [
        ("call +966 50 123 4567 now", ["+966501234567", "0501234567", "501234567", "4567"]),
        ("see /home/sana/notes_v2.txt", ["/home/sana/notes_v2.txt", "notes_v2", "sana", "notes"]),
        ("upgrade to v2.10.3 soon", ["v2.10.3", "2.10.3", "2.10"]),
        ("mail sana.b@example.org", ["sana.b@example.org", "example.org", "sana"]),
        ("set max_retry_count here", ["max_retry_count", "retry"]),
        ("the getUserName call", ["getUserName", "getusername", "user"]),
    ],
)
async def test_identifiers_are_found_whole_and_in_parts(tmp_path: Path, said: str, queries: list[str]) -> None:
    async with open_library(tmp_path) as library:
        ref = await library.say(said)
        for query in queries:
            assert await library.find(query) == [ref], query


async def test_what_the_owner_wrote_down_comes_before_generated_notes(tmp_path: Path) -> None:
    async with open_library(tmp_path) as library:
        library.file("memory.md", "# Memory\n\n- the alarm code is under the clock\n")
        for day in range(1, 29):
            for month in (1, 2):
                text = f"# 2026-{month:02}-{day:02}\n\nThe alarm went off again, the alarm code was asked for twice.\n"
                library.file(f"memory/2026-{month:02}-{day:02}.md", text)
        await library.cortex.update_files()
        hits = (await library.cortex.search(OWNER, "alarm code")).hits
        assert "memory.md" in [hit.ref.removeprefix("file:").partition("#")[0] for hit in hits[:3]]
        line = next(hit for hit in hits if hit.ref.startswith("file:memory.md"))
        assert "under the clock" in await library.cortex.get(OWNER, line.ref, 50)


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("we went home", "go"),
        ("two tickets", "2"),
        ("my kids", "children"),
        ("he bought it", "buy"),
        ("running", "runs"),
    ],
)
async def test_words_of_one_family_meet(tmp_path: Path, said: str, asked: str) -> None:
    async with open_library(tmp_path) as library:
        ref = await library.say(said)
        assert await library.find(asked) == [ref]
        assert await library.find(said) == [ref]


@pytest.mark.parametrize(
    ("said", "asked"), [("المدارس", "مدرسة"), ("كتب", "كتاب"), ("بالبيت", "بيت"), ("والمعلمين", "معلم")]
)
async def test_arabic_words_meet_across_their_forms(tmp_path: Path, said: str, asked: str) -> None:
    async with open_library(tmp_path) as library:
        ref = await library.say(f"قرأت {said} أمس")
        assert await library.find(asked) == [ref]


async def test_a_question_that_quotes_finds_the_answer_beside_the_quotation(tmp_path: Path) -> None:
    async with open_library(tmp_path) as library:
        await library.say("I finished the book The Long Walk yesterday")
        answer = await library.say("it taught me patience")
        assert answer in await library.find('what did Sana learn from the book "The Long Walk" in the end?')
        assert answer not in await library.find('"The Long Walk"')


async def test_scores_of_another_kind_are_mixed_with_those_of_the_words(tmp_path: Path) -> None:
    async with open_library(tmp_path) as library:
        await library.say("the red kite flew over the hill", conversation="a")
        await library.say("a kite", conversation="b")
        await library.say("birds of prey", conversation="c", session_key="telegram:9", chat="9")
        ids = {owner: id_ for id_, owner in library.conn.execute("SELECT id, owner FROM idx.record")}
        kite, birds = ids["conversation:b"], ids["conversation:c"]

        def refs(other: dict[int, float], chat: str | None = None) -> list[str]:
            hits = lookup.search(reader, "red kite", Filters(chat=chat), 5, other=other)
            return [hit.ref.removeprefix("conversation:") for hit in hits]

        reader = sqlite3.connect(library.path)
        reader.execute(sentences("reads.sql")["create-terms"])
        assert refs({}) == ["a#1", "b#1"]
        assert refs({birds: 0.1}) == ["a#1", "b#1"], "a weak likeness alone is none"
        assert set(refs({birds: 0.5})) == {"a#1", "b#1", "c#1"}
        assert refs({birds: 1.0})[0] == "a#1"
        assert set(refs({birds: 1.0})) == {"a#1", "b#1", "c#1"}
        assert refs({birds: 0.5, kite: 1.0}) == ["b#1", "a#1", "c#1"]
        assert "c#1" not in refs({birds: 1.0}, chat="1")
        reader.close()


async def test_characters_that_stand_apart_count_where_words_are_not_spaced(tmp_path: Path) -> None:
    async with open_library(tmp_path) as library:
        await library.say("天气不好，我们改天再说吧，大家都同意了", conversation="one")
        apart = await library.say("明日出门记得看天气，海边有风，要带厚衣服", conversation="two")
        assert (await library.find("明天海边的天气怎么样"))[0] == apart
