"""What a person types, and what is found."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agent.types import ToolFailure
from tests.fakes.library import OWNER, START, Library, guest, open_library


@pytest.mark.parametrize(
    ("document", "query"),
    [
        ("invoice INV-2041 paid", "INV-2041"),
        ("invoice INV-2041 paid", "-paid"),
        ("invoice INV-2041 paid", "invoices"),
        ("note: todo list at 10:30", "note: todo"),
        ("note: todo list at 10:30", "10:30"),
        ("NOT", "NOT"),
        ("rock and roll", "rock and roll"),
        ("party 🎉", "🎉"),
        ("周末天气预报", "天气"),
        ("周末天气预报", "报"),
        ("周末天气预报", "天气 周末"),
        ("予定カレンダー更新", "カレンダー"),
        ("회의시간변경", "시간"),
        ("เจอกันวันจันทร์", "วันจันทร์"),
        ("שָׁלוֹם עולם", "שלום"),
        ("שלום עולם", "שָׁלוֹם"),
        ("مَدرسة جديدة", "مدرسة"),
        ("إجازة غدا", "اجازة"),
        ("قرأت والكتاب مفتوح", "كتاب"),
        ("هذا كتاب جديد", "والكتاب"),
        ("ذهبنا إلى المدارس", "للمدارس"),
        ("الموعد ٢٠٢٦/٧/١٨", "2026/7/18"),
        ("الموعد 18", "١٨"),
        ("l’été", "l'ete"),
        ("cafe\u0301", "café"),
        ("call +966 50 123 4567", "0501234567"),
        ("my books", "book"),
        ("my book", "books"),
        ("see src/app/main.py", "main.py"),
        ("see src/app/main.py", "src/app/main.py"),
    ],
)
async def test_a_document_is_found(tmp_path: Path, document: str, query: str) -> None:
    async with open_library(tmp_path) as library:
        await library.say("something else entirely", conversation="other")
        ref = await library.say(document)
        assert await library.find(query) == [ref]


@pytest.mark.parametrize(
    "query",
    [
        "AND",
        "cats OR dogs",
        "NEAR(a b, 3)",
        "foo AND",
        "(a",
        "a::b",
        "content:todo",
        "{content}: todo",
        "foo -bar",
        "",
        "   ",
        "???",
        "*",
        '"',
        '"""',
        '"a',
        "a\x00b",
        '"a\x00b c"',
        "\u200b",
        "x" * 100_000,
        "\ud800",
        "text : a",
        "^a",
        "a*",
        "' OR 1=1 --",
    ],
)
async def test_nothing_typed_is_syntax(tmp_path: Path, query: str) -> None:
    async with open_library(tmp_path) as library:
        await library.say("unrelated words only")
        answer = await library.cortex.search(OWNER, query)
        assert answer.hits == ()
        assert answer.hint


async def test_adjacent_parts_come_before_parts_far_apart(tmp_path: Path) -> None:
    async with open_library(tmp_path) as library:
        await library.say("inv for the year with number 2041 somewhere", conversation="a")
        whole = await library.say("about the year: INV-2041 is the number", conversation="b")
        assert (await library.find("INV-2041"))[0] == whole


async def test_quoted_words_must_stand_together(tmp_path: Path) -> None:
    async with open_library(tmp_path) as library:
        await library.say("the plan of my flight", conversation="a")
        ref = await library.say("the flight plan is ready", conversation="b")
        assert await library.find('"flight plan"') == [ref]
        assert await library.find("«flight plan»") == [ref]
        assert len(await library.find("flight plan")) == 2


async def test_common_words_leave_a_query_and_stay_when_alone(tmp_path: Path) -> None:
    async with open_library(tmp_path) as library:
        await library.say("what is the time", conversation="a")
        ref = await library.say("zeppelin", conversation="b")
        assert await library.find("what is the zeppelin") == [ref]
        assert await library.find("ما هو the zeppelin") == [ref]
        assert await library.find("what is the") == ["conversation:a#1"]


async def test_a_word_in_most_records_does_not_drown_a_rare_one(tmp_path: Path) -> None:
    async with open_library(tmp_path) as library:
        for n in range(600):
            await library.say(f"report {n}", conversation="many", n=n + 1)
        ref = await library.say("walrus", conversation="one")
        assert await library.find("report walrus") == [ref]
        assert len(await library.find("report", limit=50)) == 50


async def test_filters(tmp_path: Path) -> None:
    async with open_library(tmp_path) as library:
        mine = await library.say("tea at noon", conversation="a", sender="Sana Ali", sender_id="8")
        other = await library.say(
            "tea at noon, again",
            conversation="b",
            sender="Omar",
            sender_id="9",
            role="owner",
            channel="whatsapp",
            chat="77",
            session_key="whatsapp:77",
        )
        assert set(await library.find("tea")) == {mine, other}
        assert await library.find("tea", channel="telegram") == [mine]
        assert await library.find("tea", chat="77") == [other]
        assert await library.find("tea", role="owner") == [other]
        assert await library.find("tea", sender="sana") == [mine]
        assert await library.find("tea", sender="Ali Sana") == [mine]
        assert await library.find("tea", sender="9") == [other]
        assert await library.find("tea", sender="nobody") == []
        assert await library.find("tea", sources="episode,doc") == []
        assert set(await library.find("tea", sources=" Conversation ")) == {mine, other}


async def test_days_are_inclusive_and_those_of_the_owners_zone(tmp_path: Path) -> None:
    async with open_library(tmp_path) as library:
        # 00:30 on the 18th in Riyadh is 21:30 on the 17th in UTC.
        ref = await library.say("midnight tea", at=datetime(2026, 7, 17, 21, 30, tzinfo=UTC))
        assert await library.find("tea", after="2026-07-18", before="2026-07-18") == [ref]
        assert await library.find("tea", before="2026-07-17") == []
        assert await library.find("tea", after="2026-07-19") == []


@pytest.mark.parametrize("filters", [{"after": "yesterday"}, {"before": "2026-13-01"}, {"after": "9999-99-99"}])
async def test_a_date_that_is_none_is_refused(tmp_path: Path, filters: dict[str, str]) -> None:
    async with open_library(tmp_path) as library:
        with pytest.raises(ToolFailure, match="YYYY-MM-DD"):
            await library.find("tea", **filters)


async def test_an_unknown_source_names_the_eleven(tmp_path: Path) -> None:
    async with open_library(tmp_path) as library:
        with pytest.raises(ToolFailure, match=r"episode, knowledge, .*artifact, doc") as caught:
            await library.find("tea", sources="episode,emails")
        assert "emails" in str(caught.value)


async def test_others_see_their_own_sessions_only_and_limits_come_after(tmp_path: Path) -> None:
    async with open_library(tmp_path) as library:
        for n in range(60):
            await library.say(f"secret garden {n}", conversation="owner", n=n + 1)
        theirs = await library.say("my garden", conversation="g", session_key="telegram:8", chat="8")
        library.file("memory.md", "the garden gate code")
        await library.cortex.update_files()
        viewer = guest("telegram:8")
        assert await library.find("garden", viewer=viewer, limit=5) == [theirs]
        assert await library.find("garden", viewer=viewer, sources="doc") == []
        assert await library.find("garden", viewer=guest()) == []
        assert [hit.ref for hit in await library.cortex.candidates(viewer, "the garden", 5)] == [theirs]
        assert await library.cortex.candidates(guest(), "the garden", 5) == ()
        assert await library.cortex.conversations(viewer, "garden") == ["g"]
        covered = await library.cortex.coverage(viewer)
        assert (covered.conversations, [item.source for item in covered.sources]) == (1, ["conversation"])


async def test_many_sessions_narrow_a_search_too(tmp_path: Path) -> None:
    async with open_library(tmp_path) as library:
        await library.say("garden of others", conversation="o")
        theirs = await library.say("my garden", conversation="g", session_key="telegram:8")
        keys = {f"telegram:{n}" for n in range(8, 200)}
        assert await library.find("garden", viewer=guest(*keys)) == [theirs]


async def test_the_answer_beside_a_question_is_found_with_it(tmp_path: Path) -> None:
    async with open_library(tmp_path) as library:
        await library.say("Which restaurant did Layla book for the birthday dinner?", n=1)
        answer = await library.say("The Olive Tree, at eight.", n=2)
        for n in range(40):
            await library.say(f"other talk number {n}", conversation="x", n=n + 1)
        assert answer in await library.find("which restaurant was booked for the birthday dinner")


async def test_the_same_question_asked_before_is_no_answer(tmp_path: Path) -> None:
    async with open_library(tmp_path) as library:
        answer = await library.say("The wifi code is falcon-9, kept in the drawer", conversation="a")
        await library.say("what is the wifi code", conversation="b")
        assert (await library.find("What is the wifi code?"))[0] == answer
        found = await library.cortex.candidates(OWNER, "What is the wifi code?", 8)
        assert [hit.ref for hit in found] == [answer]


async def test_a_person_named_in_the_query_lifts_their_messages(tmp_path: Path) -> None:
    async with open_library(tmp_path) as library:
        await library.say("the picnic was lovely", conversation="a", sender="Omar", at=START + timedelta(days=9))
        ref = await library.say("the picnic was lovely indeed", conversation="b", sender="Layla")
        assert (await library.find("what did Layla say of the picnic"))[0] == ref


async def test_what_the_owner_wrote_comes_before_passing_mentions(tmp_path: Path) -> None:
    async with open_library(tmp_path) as library:
        library.file("memory.md", "# Memory\n\n- wifi code is in the drawer\n")
        for day in range(1, 51):
            name = f"brain/hippocampus/episodes/2026-{5 + day // 29:02}-{day % 28 + 1:02}.md"
            library.file(name, f"## 10:00\nSomebody asked about the wifi again, visit {day}.\n")
        await library.cortex.update_files()
        found = await library.find("wifi code")
        assert "file:memory.md#L3" in found[:3]
        assert await library.cortex.get(OWNER, "file:memory.md#L3", 1) == "- wifi code is in the drawer"


async def test_near_doubles_are_folded_but_other_numbers_are_not(tmp_path: Path) -> None:
    async with open_library(tmp_path) as library:
        for at in range(4):
            await library.say("the standing reminder for the weekly report is due today", conversation=f"d{at}")
        assert len(await library.find("weekly report reminder")) == 1
        await library.say("invoice 2041 of the long list of invoices was paid in full today", conversation="i1")
        await library.say("invoice 2042 of the long list of invoices was paid in full today", conversation="i2")
        assert len(await library.find("invoice paid")) == 2


async def test_the_same_search_gives_the_same_answer(tmp_path: Path) -> None:
    async with open_library(tmp_path) as library:
        for n in range(80):
            await library.say(f"meeting about topic {n % 7}", conversation=f"c{n % 9}", n=n + 1)
        first = await library.cortex.search(OWNER, "meeting topic 3", limit=50)
        assert first == await library.cortex.search(OWNER, "meeting topic 3", limit=50)


async def test_a_hit_has_every_field_of_the_contract(tmp_path: Path) -> None:
    async with open_library(tmp_path) as library:
        await library.say("flight plan", context="file:readlog/telegram/1.jsonl#L3-L9", message_id="77")
        answer = (await library.cortex.search(OWNER, "flight")).as_json()
        hit = answer["hits"][0]
        assert hit.pop("score") > 0
        assert answer == {"hits": [hit], "indexing": False, "hint": None}
        assert hit == {
            "ref": "conversation:c1#1",
            "context": "file:readlog/telegram/1.jsonl#L3-L9",
            "source": "conversation",
            "title": "",
            "snippet": "flight plan",
            "sender": "Sana",
            "role": "user",
            "channel": "telegram",
            "chat": "1",
            "message_id": "77",
            "at": "2026-07-01T09:01:00+00:00",
        }


async def test_an_empty_answer_says_what_is_covered(tmp_path: Path) -> None:
    async with open_library(tmp_path) as library:
        assert "Nothing is indexed yet" in str((await library.cortex.search(OWNER, "tea")).hint)
        await library.say("hello")
        hint = str((await library.cortex.search(OWNER, "zebra")).hint)
        assert "conversation 1 (2026-07-01 to 2026-07-01)" in hint
        assert "no proof" in hint


async def test_before_there_is_an_index_nothing_is_found_and_nothing_breaks(tmp_path: Path) -> None:
    library = Library(tmp_path)
    await library.cortex.open()
    library.cortex.indexing = True
    answer = await library.cortex.search(OWNER, "tea")
    assert (answer.hits, answer.indexing) == ((), True)
    assert await library.cortex.candidates(OWNER, "tea", 5) == ()
    assert (await library.cortex.coverage()).conversations == 0
    await library.cortex.close()
    library.conn.close()


async def test_a_new_file_in_the_place_of_the_index_is_noticed(tmp_path: Path) -> None:
    async with open_library(tmp_path) as library:
        await library.say("old words")
        assert await library.find("old")
        library.conn.execute("DETACH DATABASE idx")
        for name in ("index.db", "index.db-wal", "index.db-shm"):
            (tmp_path / name).unlink(missing_ok=True)
        assert await library.find("old") == []


async def test_a_damaged_index_is_a_sentence_not_a_crash(tmp_path: Path) -> None:
    async with open_library(tmp_path) as library:
        await library.say("some words")
        await library.write(lambda conn: conn.execute("DELETE FROM idx.words_data"))
        with pytest.raises(ToolFailure, match="index cannot be read"):
            await library.find("words")


async def test_candidates_prefer_the_rare_word_and_stay_few(tmp_path: Path) -> None:
    async with open_library(tmp_path) as library:
        ref = await library.say("the flamingo visa needs two photos", conversation="old")
        for n in range(300):
            await library.say(f"the plan of day {n} and its visa", conversation="many", n=n + 1)
        found = await library.cortex.candidates(OWNER, "send me the flamingo plan", 3)
        assert found[0].ref == ref
        assert len(found) <= 3


async def test_conversations_are_ordered_by_match(tmp_path: Path) -> None:
    async with open_library(tmp_path) as library:
        await library.say("a word about the budget", conversation="less")
        await library.say("the budget of the garden project", conversation="more", n=1)
        await library.say("the garden budget again", conversation="more", n=2)
        assert await library.cortex.conversations(OWNER, "garden budget") == ["more", "less"]
