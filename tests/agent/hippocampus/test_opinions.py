"""The page of opinions, and the formula of docs/memory.md as a table."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.hippocampus.opinions import LEAST, MOST, Evidence, confidence_of, holds, moved, parse_opinions

DAY = date(2026, 11, 1)


def evidence(spec: str) -> list[Evidence]:
    """`+` supports, `-` contradicts, each on the next day; `=` repeats the last on the same day; a digit: strength."""
    found: list[Evidence] = []
    day, strength = DAY, 0.7
    for sign in spec:
        if sign.isdigit():
            strength = int(sign) / 10
        elif sign == ".":
            day += timedelta(days=30)
        else:
            supports = sign == "+" if sign in "+-" else found[-1].supports
            day += timedelta(days=sign in "+-")
            found.append(Evidence(f"brain/hippocampus/episodes/{day}.md#L{len(found) + 1}", day, strength, supports))
    return found


@pytest.mark.parametrize(
    ("spec", "begin", "after"),
    [
        ("", 0.60, 0.60),
        ("+", 0.60, 0.628),  # 0.60 + 0.10 * 0.7 * 0.40
        ("9+", 0.60, 0.636),
        ("++", 0.60, 0.65404),
        ("-", 0.60, 0.537),  # 0.60 - 0.15 * 0.7 * 0.60
        ("9-", 0.60, 0.519),
        ("9--", 0.60, 0.448935),
        ("9---", 0.60, 0.267116),  # the third strong one in a row goes far: c - 0.45 * 0.9 * c
        ("7---", 0.60, 0.430150),  # weak ones never do
        ("9--+-", 0.60, 0.431229),  # support in between: the row begins anew
        ("9-==", 0.60, 0.388329),  # three on one day are one day
        ("9+........", 0.60, 0.636),  # time alone moves nothing
    ],
)
def test_the_formula(spec: str, begin: float, after: float) -> None:
    assert confidence_of(evidence(spec), begin) == pytest.approx(after, abs=1e-6)


def test_the_first_evidence_says_where_it_begins() -> None:
    day = Evidence("brain/hippocampus/episodes/2026-11-01.md#L1", DAY, 0.95, supports=True, stated=0.95)
    assert confidence_of([day]) == 0.95
    assert confidence_of(evidence("+")) == 0.60
    assert confidence_of(evidence("-")) is None


@given(st.text("+-=9753.", max_size=40).filter(lambda text: not text.lstrip("9753.").startswith("=")))
def test_it_stays_in_its_bounds_and_moves_the_right_way(spec: str) -> None:
    confidence = 0.6
    for item in evidence(spec):
        after = moved(confidence, item, 1)
        assert LEAST <= after <= MOST
        assert after >= confidence if item.supports else after <= confidence
        assert abs(after - confidence) <= 0.15
        confidence = after


def test_the_newest_evidence_decides_whether_it_holds() -> None:
    assert holds(evidence("--+"))
    assert not holds(evidence("+++-"))
    assert holds([])


PAGE = """# Opinions

What I keep here by hand.

## Prefers tea in the morning

- confidence: 0.85
- entities: @Peter, @سارة
- updated: 2026-11-27
- for: brain/hippocampus/episodes/2026-11-02.md#L12, brain/hippocampus/episodes/2026-11-27.md#L3
- against: brain/hippocampus/episodes/2026-11-10.md#L4
- my own remark

## Only a heading
"""


def test_the_page_is_read_and_written_as_it_is() -> None:
    page = parse_opinions(PAGE)
    tea, other = page.all
    assert (tea.statement, tea.confidence, tea.entities) == ("Prefers tea in the morning", 0.85, ("Peter", "سارة"))
    assert (tea.updated, len(tea.supporting), len(tea.against), tea.line) == (date(2026, 11, 27), 2, 1, 5)
    assert tea.extra == ["- my own remark"]
    assert not other.has_fields
    assert [line for line in page.text().splitlines() if line] == [line for line in PAGE.splitlines() if line]


@pytest.mark.parametrize("line", ["- confidence: high", "- updated: soon", "- for: somewhere", "free words", "- x: y"])
def test_a_field_that_cannot_be_read_is_kept_as_a_line(line: str) -> None:
    page = parse_opinions(f"## It rains\n- confidence: 0.5\n{line}\n")
    assert line in page.all[0].extra
    assert line in page.text()


def test_line_ends_of_windows_stay() -> None:
    text = "## It rains\r\n\r\n- confidence: 0.50\r\n"
    assert parse_opinions(text).text().count("\r\n") == parse_opinions(text).text().count("\n")


@given(st.text(max_size=400))
def test_no_line_of_a_person_is_lost(text: str) -> None:
    written = parse_opinions(text).text()
    for line in text.removeprefix("\ufeff").splitlines():
        words = line.strip().lstrip("#-*+ \t").rstrip("# \t")
        assert not words or ":" in words or words in written
