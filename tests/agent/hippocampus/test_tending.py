"""A page is brought up to date around what a person wrote on it."""

from __future__ import annotations

import pytest

from agent.hippocampus.pages import dropped, keys_of
from agent.hippocampus.tending import Part, Wanted, tended, without_proposals

REF = "brain/hippocampus/episodes/2026-11-27.md#L"
FIRST = Wanted("# Peter", ("aliases:",), "Likes tea.", (Part("Facts", (f"- [W] one ({REF}1, 2026-11-27)",)),))
LATER = Wanted(
    "# Peter",
    ("aliases:",),
    "Likes coffee.",
    (Part("Facts", (f"- [W] one ({REF}9, 2026-11-27)", f"- [W] two ({REF}2, 2026-11-28)")),),
)


@pytest.fixture
def page() -> str:
    return tended(None, FIRST, ())


def test_a_new_page(page: str) -> None:
    assert page == f"# Peter\naliases:\n\nLikes tea.\n\n## Facts\n\n- [W] one ({REF}1, 2026-11-27)\n"


def test_the_programs_lines_change_and_a_second_time_nothing_does(page: str) -> None:
    after = tended(page, LATER, set(keys_of(page)))
    assert "Likes coffee." in after
    assert "Likes tea." not in after
    assert f"one ({REF}9" in after
    assert f"two ({REF}2" in after
    assert tended(after, LATER, set(keys_of(page)) | set(keys_of(after))) == after


def test_a_persons_lines_stay_where_they_are(page: str) -> None:
    mine = page.replace("## Facts\n\n", "## Facts\n\n- my own fact\n").replace("aliases:", "aliases: Pete")
    mine += "\n## My section\n\nmy words\n"
    after = tended(mine, LATER, set(keys_of(page)))
    assert all(line in after for line in ("- my own fact", "aliases: Pete", "## My section", "my words"))
    assert after.index("my own fact") < after.index("one (")


def test_what_a_person_took_out_or_reworded_is_not_put_back(page: str) -> None:
    known = set(keys_of(page))
    without = "\n".join(line for line in page.splitlines() if "one (" not in line) + "\n"
    assert "one (" not in tended(without, LATER, known)
    assert "two (" in tended(without, LATER, known)
    reworded = page.replace("] one", "] just one")
    after = tended(reworded, LATER, known)
    assert "just one" in after
    assert f"] one ({REF}9" not in after


def test_a_persons_summary_wins_and_the_programs_is_proposed(page: str) -> None:
    known = set(keys_of(page))
    mine = page.replace("Likes tea.", "A dear friend.")
    after = tended(mine, LATER, known)
    assert "A dear friend." in after
    assert "## Proposed\n\n- Summary: Likes coffee." in after
    again = tended(after, LATER, known | set(keys_of(after)) - set(keys_of(mine)))
    assert again == after
    rejected = after.partition("\n## Proposed")[0]
    known |= set(keys_of(after)) - set(keys_of(mine))
    assert "Likes coffee" not in tended(rejected, LATER, known)


def test_stale_lines_go_unless_they_may_not(page: str) -> None:
    known = set(keys_of(page))
    nothing = Wanted("# Peter", ("aliases:",), "", (Part("Facts", ()),))
    assert "one (" not in tended(page, nothing, known)
    assert "one (" in tended(page, nothing, known, may_drop=False)
    assert "one (" in tended(page, nothing, ())


def test_line_ends_of_windows_stay(page: str) -> None:
    windows = page.replace("\n", "\r\n")
    after = tended(windows, LATER, set(keys_of(page)))
    assert after.count("\n") == after.count("\r\n") > 5


def test_what_counts_as_dropped() -> None:
    before = "# O\n\n## tea\n- confidence: 0.5\n- for: a#L1\n- [W] one (a#L1, 2026-11-27)\nmine\n"
    moved = (
        "# O\n\n## tea\n- confidence: 0.7\n- for: a#L9, b#L2\n- [W] one (a#L9, 2026-11-27; b#L2, 2026-11-28)\nmine\n"
    )
    assert dropped(before, moved) == 0
    assert dropped(before, before.replace("mine\n", "")) == 1
    assert dropped(before, "") == 6


def test_proposals_count_for_nothing_yet() -> None:
    text = "# M\n\nkept\n\n## Proposed\n\n- maybe\n\n## After\n\nalso kept\n"
    assert without_proposals(text) == "# M\n\nkept\n\n## After\n\nalso kept\n"
    assert without_proposals("# M\n\nkept\n") == "# M\n\nkept\n"


def test_proposals_count_for_nothing_whatever_the_ends_of_lines() -> None:
    page = "# Memory\n- Tea\n\n## Proposed\n\n- Coffee\n\n## Mine\n- Milk\n"
    left = without_proposals(page)
    assert "Coffee" not in left
    assert "Milk" in left
    assert without_proposals(page.replace("\n", "\r\n")) == left.replace("\n", "\r\n")
