"""Dates in queries, however they are written."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent.cortex.dates import Date, read_dates
from tests.fakes.library import open_library


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("what was in May 2023?", Date(2023, 5)),
        ("on 8 May", Date(None, 5, 8)),
        ("May 8, 2023", Date(2023, 5, 8)),
        ("the 8th of May", Date(None, 5, 8)),
        ("2023-05-08", Date(2023, 5, 8)),
        ("٨ مايو ٢٠٢٣", Date(2023, 5, 8)),
        ("ماذا قلت في أيار", Date(None, 5)),
        ("كانون الثاني 2024", Date(2024, 1)),
        ("بمارس", Date(None, 3)),
        ("5月8日", Date(None, 5, 8)),
        ("2023年5月", Date(2023, 5)),
        ("2023년 5월 8일", Date(2023, 5, 8)),
        ("sometime in 2022", Date(2022)),
    ],
)
def test_a_date_is_read(text: str, expected: Date) -> None:
    assert read_dates(text)[0] == (expected,)


@pytest.mark.parametrize("text", ["may I go", "they march on", "Jan is here", "3.2023.1", "99999", "30 apples", ""])
def test_what_is_no_date_is_none(text: str) -> None:
    assert read_dates(text)[0] == ()


def test_an_ambiguous_date_is_read_both_ways() -> None:
    assert set(read_dates("8/5/2023")[0]) == {Date(2023, 5, 8), Date(2023, 8, 5)}


@pytest.mark.parametrize("query", ["8 May", "2023-05-08", "what was on 8 May 2023?", "٨ أيار", "5月8日", "8/5/2023"])
async def test_messages_are_found_by_their_day_in_the_owners_zone(tmp_path: Path, query: str) -> None:
    async with open_library(tmp_path) as library:
        # 22:30 UTC on the 7th is half past one on the 8th in Riyadh.
        wanted = await library.say("we planted the olive tree", at=datetime(2023, 5, 7, 22, 30, tzinfo=UTC))
        await library.say("we planted a fig tree", conversation="c2", at=datetime(2023, 5, 8, 22, 30, tzinfo=UTC))
        await library.say("nothing", conversation="c3", at=datetime(2023, 6, 8, 12, tzinfo=UTC))
        assert await library.find(query) == [wanted]


async def test_a_date_beside_words_lifts_what_was_said_then(tmp_path: Path) -> None:
    async with open_library(tmp_path) as library:
        await library.say("the dentist again", conversation="c1", at=datetime(2023, 7, 1, tzinfo=UTC))
        wanted = await library.say("the dentist again, sadly", conversation="c2", at=datetime(2023, 5, 9, tzinfo=UTC))
        await library.say("the dentist, again?", conversation="c3", at=datetime(2024, 7, 1, tzinfo=UTC))
        assert (await library.find("dentist in May 2023"))[0] == wanted
