"""Edits of heartbeat.md: what a person wrote stays byte for byte, whatever the file looks like."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heartbeat.editing import with_heading, with_instruction, with_job, without_job
from heartbeat.grammar import parse_heartbeat
from heartbeat.headings import BadSchedule
from heartbeat.jobs import default_text

FILE = """# Mine\r
some words\r
\r
## Daily (08:00)\r
name: morning\r
\r
Good morning.\r
Second line.\r
\r
<!-- ## Daily (09:00)\r
off -->\r
---\r
\r
## Every (2h)\r
Look.\r
"""


def test_a_new_job_stands_at_the_end_and_the_rest_is_as_it_was() -> None:
    text, job = with_job(FILE, "Once (2027-01-31 09:00)", {"name": "call"}, "Call mom.\n\nTwice.")
    assert text.startswith(FILE)
    assert (job.name, job.heading, job.instruction) == ("call", "Once (2027-01-31 09:00)", "Call mom.\n\nTwice.")
    assert "\n" not in text.replace("\r\n", "")
    assert with_job("", "Daily (08:00)", {}, "x")[0] == "## Daily (08:00)\n\nx\n"
    assert with_job("no end", "Daily (08:00)", {}, "x")[0] == "no end\n\n## Daily (08:00)\n\nx\n"
    assert parse_heartbeat(with_job(default_text(), "Daily (08:00)", {}, "x")[0]).jobs


def test_a_job_goes_and_the_comment_in_it_stays() -> None:
    assert without_job(FILE, "morning") == (
        "# Mine\r\nsome words\r\n\r\n\r\n<!-- ## Daily (09:00)\r\noff -->\r\n---\r\n\r\n## Every (2h)\r\nLook.\r\n"
    )
    assert without_job(FILE, "Every (2h)") == FILE[: FILE.index("## Every")]


def test_another_schedule_keeps_name_text_and_history() -> None:
    assert with_heading(FILE, "morning", "Daily (07:00)") == FILE.replace("Daily (08:00)", "Daily (07:00)")
    changed = with_heading(FILE, "Every (2h)", "Every (3h)")
    assert changed == FILE.replace("## Every (2h)\r\n", "## Every (3h)\r\nname: Every (2h)\r\n")


def test_another_instruction() -> None:
    changed = with_instruction(FILE, "morning", "Good evening.")
    assert changed == FILE.replace("Good morning.\r\nSecond line.\r\n", "Good evening.\r\n")
    assert with_instruction("## Daily (08:00)\nname: a", "a", "go") == "## Daily (08:00)\nname: a\n\ngo\n"


@pytest.mark.parametrize("instruction", ["## Daily (10:00)\nx", "a <!-- b", "```\nopen", "<!-- x -->"])
def test_a_text_that_would_be_read_otherwise_is_refused(instruction: str) -> None:
    with pytest.raises(BadSchedule):
        with_job(FILE, "Daily (08:00)", {"name": "new"}, instruction)
    with pytest.raises(BadSchedule):
        with_instruction(FILE, "morning", instruction)


def test_what_cannot_be_edited_safely_is_left_alone() -> None:
    with pytest.raises(BadSchedule, match="not closed"):
        with_job("<!-- open\n", "Daily (08:00)", {}, "x")
    with pytest.raises(BadSchedule, match="belongs to the job in line 4"):
        with_job(FILE, "Daily (10:00)", {"name": "morning"}, "x")
    with pytest.raises(BadSchedule, match="no schedule"):
        with_heading(FILE, "morning", "Sometimes")
    with pytest.raises(BadSchedule, match="half a comment"):
        without_job("## Daily (08:00)\nname: a\n\ngo <!-- not --> on\n", "a")
    with pytest.raises(BadSchedule, match="by hand"):
        without_job("## Daily (08:00)\n\na\n## Daily (08:00)\n\nb\n", "Daily (08:00)")
    with pytest.raises(KeyError):
        without_job(FILE, "nobody")


PIECES = st.lists(
    st.sampled_from(
        [
            "## Daily (08:00)\n",
            "## Every (2h)\nname: watch\n",
            "## Nonsense\n",
            "text\n",
            "\n",
            "---\n",
            "<!-- off -->\n",
            "<!--\n",
            "-->\n",
            "```\n",
            "# Title\n",
            "سطر\r\n",
            "name: x\n",
        ]
    ),
    max_size=12,
).map("".join)


@given(PIECES, st.text(max_size=40))
def test_a_job_that_is_added_and_taken_out_leaves_all_other_jobs_and_lines(text: str, instruction: str) -> None:
    before = parse_heartbeat(text)
    try:
        changed, job = with_job(text, "Weekly (Sun 09:00)", {"name": "new one"}, instruction)
    except BadSchedule:
        return
    assert changed.startswith(text)
    assert [one.name for one in parse_heartbeat(changed).jobs] == [*[one.name for one in before.jobs], job.name]
    back = without_job(changed, "new one")
    assert back.startswith(text)
    assert not back[len(text) :].strip()


@given(PIECES)
def test_taking_out_any_job_changes_no_other(text: str) -> None:
    for job in parse_heartbeat(text).jobs:
        try:
            changed = without_job(text, job.name)
        except BadSchedule:
            continue
        left = [one.name for one in parse_heartbeat(changed).jobs]
        assert left == [one.name for one in parse_heartbeat(text).jobs if one.name != job.name]
        if "```" not in text:  # in a code block it is part of an instruction
            assert changed.count("<!--") == text.count("<!--")
