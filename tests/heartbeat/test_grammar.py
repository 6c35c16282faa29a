"""heartbeat.md as people write it."""

from __future__ import annotations

import re
from datetime import time
from pathlib import Path

import pytest

from heartbeat.grammar import parse_heartbeat
from heartbeat.headings import parse_schedule
from heartbeat.jobs import default_text
from heartbeat.procedures import parse_procedure
from heartbeat.types import Days, Job, Schedule, Startup


def names(text: str) -> list[str]:
    return [job.name for job in parse_heartbeat(text).jobs]


def faults(text: str) -> list[str]:
    return [str(fault) for fault in parse_heartbeat(text).faults]


def test_a_heading_is_a_job_and_the_text_below_its_instruction() -> None:
    parsed = parse_heartbeat(
        "# My jobs\nintro\n\n## Daily (08:00) ##\nname: morning\n\nSay good\n\n### now\nmorning\n\n"
    )
    (job,) = parsed.jobs
    assert (job.name, job.heading, job.line) == ("morning", "Daily (08:00)", 4)
    assert job.instruction == "Say good\n\n### now\nmorning"
    assert not parsed.faults


def test_markers_set_the_fields_and_leave_the_instruction() -> None:
    text = (
        "## يوميا (08:00)\nname: صباح الخير\nzone: Asia/Riyadh\nTarget: telegram:-100123\ngrace: 30m\ncatchup: skip\n"
        "First line.\n\nNote: this is text.\n"
    )
    (job,) = parse_heartbeat(text).jobs
    assert (job.name, job.zone, job.target) == ("صباح الخير", "Asia/Riyadh", "telegram:-100123")
    assert (job.grace_seconds, job.catchup) == (1_800.0, "skip")
    assert job.instruction == "First line.\n\nNote: this is text."


def test_unset_markers_leave_the_choice_to_the_settings() -> None:
    (job,) = parse_heartbeat("## Startup\nHello").jobs
    assert job.schedule == Startup()
    assert (job.zone, job.target, job.grace_seconds, job.catchup) == (None, None, None, None)


@pytest.mark.parametrize(
    ("marker", "reason"),
    [
        ("zone: UTC+3", "line 3: `UTC+3` is no IANA time zone"),
        ("zone: berlin", "line 3: `berlin` is no IANA time zone"),
        ("zone: Europe", "line 3: `Europe` is no IANA time zone"),
        ("zone: ../etc/passwd", "line 3: `../etc/passwd` is no IANA time zone"),
        ("zone:", "line 3: `zone:` is empty"),
        ("target: somebody", "line 3: `somebody` is no target"),
        ("grace: soon", "line 3: `soon` is no length of time"),
        ("catchup: twice", "line 3: `twice` is not allowed here; write once or skip"),
        ("name: again\nname: again", "line 4: `name:` stands here a second time"),
        ("Summary: what is new", "line 3: `summary:` is no marker"),
        ("ملاحظة: اقرأ البريد", "line 3: `ملاحظة:` is no marker"),
        ("name: " + "x" * 101, "line 3: a name is one line of at most 100 characters"),
        ("quiet: late", "line 3: `late` are no hours"),
    ],
)
def test_a_bad_marker_is_a_fault_with_its_line_and_stops_no_other_job(marker: str, reason: str) -> None:
    text = f"\n## Daily (08:00)\n{marker}\n\nDo it.\n\n## Daily (09:00)\nDo that.\n"
    assert names(text) == ["Daily (09:00)"]
    (fault,) = faults(text)
    assert fault.startswith(reason)


@pytest.mark.parametrize("zone", ["Asia/Calcutta", "Europe/Kiev", "UTC", "Australia/Lord_Howe"])
def test_old_and_odd_zone_names_work(zone: str) -> None:
    assert [job.zone for job in parse_heartbeat(f"## Daily (08:00)\nzone: {zone}\n\nx").jobs] == [zone]


def test_every_marker_of_the_grammar_has_its_place_in_a_job() -> None:
    markers = "quiet: 22:00-07:00\nurgent: yes\ntools: run_command, web_fetch\nfiles: a.md، b.md\nmodel: x"
    text = f"## Every (3d)\n{markers}\n\ngo"
    (job,) = parse_heartbeat(text).jobs
    assert job.schedule == Days(3)
    assert (job.quiet, job.urgent, job.model) == ((time(22), time(7)), True, "x")
    assert (job.tools, job.files) == (("run_command", "web_fetch"), ("a.md", "b.md"))


def test_a_marker_after_a_blank_line_is_text() -> None:
    (job,) = parse_heartbeat("## Daily (08:00)\n\nname: x\nhttps: no\n").jobs
    assert (job.name, job.instruction) == ("Daily (08:00)", "name: x\nhttps: no")


def test_an_address_or_a_time_right_under_the_heading_is_text() -> None:
    (job,) = parse_heartbeat(
        "## Daily (08:00)\nhttps://example.org has news\n10:30 is my meeting\nTell me: what?\n"
    ).jobs
    assert job.instruction.count("\n") == 2


def test_equal_headings_are_two_jobs() -> None:
    text = "## Daily (08:00)\na\n## Daily (08:00)\nb\n## daily (08:00)\nc\n## Daily (09:00)\nd"
    assert names(text) == ["Daily (08:00)", "Daily (08:00) #2", "daily (08:00) #3", "Daily (09:00)"]


def test_naming_one_of_two_equal_headings_renames_no_other() -> None:
    assert names("## Daily (08:00)\nname: first\n\na\n## Daily (08:00)\nb") == ["first", "Daily (08:00) #2"]


def test_a_name_belongs_to_one_job() -> None:
    text = "## Daily (08:00)\nname: Mail\n\na\n## Daily (09:00)\nname: mail\n\nb"
    assert names(text) == ["Mail"]
    assert faults(text) == ["line 5: the name `mail` belongs to the job in line 1"]


def test_comments_switch_off_what_they_enclose_and_lines_stay_right() -> None:
    text = (
        "## Daily (08:00)\n<!-- a remark -->\nname: a\n\nDo <!-- not --> it.\n<!--\n## Daily (09:00)\n\n```\nx\n-->\n"
        "## Nonsense\n"
    )
    parsed = parse_heartbeat(text)
    assert [(job.name, job.instruction) for job in parsed.jobs] == [("a", "Do  it.")]
    assert [(fault.line, fault.name) for fault in parsed.faults] == [(12, "Nonsense")]


def test_a_comment_that_is_not_closed_is_a_fault_and_its_jobs_are_off() -> None:
    text = "## Daily (08:00)\na\n<!-- later\n## Daily (09:00)\nb"
    assert names(text) == ["Daily (08:00)"]
    assert faults(text) == ["line 3: this comment is not closed with `-->`: everything after it is off"]


def test_a_heading_in_a_code_block_is_text() -> None:
    text = "## Daily (08:00)\nWrite this\n```\n## Daily (09:00)\n<!-- kept -->\n```\n## Daily (10:00)\nx"
    parsed = parse_heartbeat(text)
    assert [job.name for job in parsed.jobs] == ["Daily (08:00)", "Daily (10:00)"]
    assert "<!-- kept -->" in parsed.jobs[0].instruction


def test_a_code_block_that_is_not_closed_is_a_fault() -> None:
    assert faults("## Daily (08:00)\n~~~\n## Daily (09:00)\n```\n") == [
        "line 2: this code block is not closed with `~~~`: headings after it are not read"
    ]


def test_an_instruction_of_blank_lines_and_rules_is_empty() -> None:
    text = "## Daily (08:00)\n\n---\n\n## Daily (09:00)\nname: b\n\n## Daily (10:00)"
    assert [job.instruction for job in parse_heartbeat(text).jobs] == ["", "", ""]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_of_all_systems_count_alike(end: str) -> None:
    text = end.join(["", "## Daily (08:00)", "name: a", "", "one\u2028two", "## Bad"])
    assert names(text) == ["a"]
    assert faults(text)[0].startswith("line 6:")


def test_a_heading_without_space_or_text_is_not_swallowed() -> None:
    parsed = parse_heartbeat("##Daily (08:00)\na\n##\nb\n#### Daily (09:00)\n")
    assert [job.name for job in parsed.jobs] == ["Daily (08:00)"]
    assert [fault.name for fault in parsed.faults] == ["(no heading)"]


def test_a_new_workspace_has_no_job_and_its_examples_work() -> None:
    text = default_text()
    parsed = parse_heartbeat(text)
    assert (parsed.jobs, parsed.faults) == ((), ())
    examples = parse_heartbeat(text.replace("<!--", "").replace("-->", ""))
    assert len(examples.jobs) == 4
    assert not examples.faults
    assert all(job.instruction for job in examples.jobs)


def test_the_examples_of_the_documentation_work() -> None:
    text = (Path(__file__).parents[2] / "docs" / "heartbeat.md").read_text(encoding="utf-8")
    blocks = [block.removeprefix("markdown\n") for block in text.split("```")[1::2] if block.startswith("markdown\n")]
    (procedure,) = [block for block in blocks if block.startswith("---")]
    assert isinstance(parse_procedure("report", procedure), Job)
    blocks.remove(procedure)
    assert [len(parse_heartbeat(block).jobs) for block in blocks] == [1, 10]
    assert not [fault for block in blocks for fault in parse_heartbeat(block).faults]
    rows = [line.split("|")[1:3] for line in text.splitlines() if line.startswith("|")]
    forms = [form for row in rows if re.search("[؀-ۿ]", row[1]) for cell in row for form in re.findall("`(.+?)`", cell)]
    assert len(forms) > 30
    assert all(isinstance(parse_schedule(form), Schedule) for form in forms)


@pytest.mark.parametrize("path", ["/etc/passwd", "../secret", "files/../../x", "~/x"])
def test_a_file_outside_the_workspace_is_a_fault(path: str) -> None:
    (fault,) = faults(f"## Daily (08:00)\nfiles: {path}\n\ngo")
    assert fault.startswith(f"line 2: `{path}` leaves the workspace")
