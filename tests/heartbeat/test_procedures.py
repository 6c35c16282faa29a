"""Procedures: the YAML head, arguments, steps, faults with their lines, and the folder as it changes."""

from __future__ import annotations

from datetime import time
from pathlib import Path

import pytest

from heartbeat.headings import parse_schedule
from heartbeat.procedures import ProcedureFolder, parse_procedure, steps
from heartbeat.types import Argument, ByHand, CannotRun, Fault, Job, filled

TEXT = """---
title: Weekly report
schedule: Weekly (Sun 10:00)
target: telegram:7
zone: Asia/Riyadh
tools: [run_command, web_fetch]
files: files/plan.md, bank/world.md
quiet: 22:00-07:00
urgent: yes
grace: 12h
catchup: skip
model: small
arguments:
  - city: Riyadh
  - week: "46"
---

Report on {city}, week {week}. Leave {this} alone.

- [ ] read the plan
1. [x] write the report
   - [ ] send it
"""


def job_of(text: str) -> Job:
    job = parse_procedure("report", text)
    assert isinstance(job, Job), job
    return job


def fault_of(text: str) -> str:
    fault = parse_procedure("report", text)
    assert isinstance(fault, Fault), fault
    return str(fault)


def test_the_head_sets_everything_that_heartbeat_md_may_set() -> None:
    job = job_of(TEXT)
    assert (job.kind, job.name, job.title, job.heading) == (
        "procedure",
        "report",
        "Weekly report",
        "Weekly (Sun 10:00)",
    )
    assert job.schedule == parse_schedule("Weekly (Sun 10:00)")
    assert (job.target, job.zone, job.catchup, job.model) == ("telegram:7", "Asia/Riyadh", "skip", "small")
    assert (job.tools, job.files) == (("run_command", "web_fetch"), ("files/plan.md", "bank/world.md"))
    assert (job.quiet, job.urgent, job.grace_seconds) == ((time(22), time(7)), True, 43_200)
    assert job.arguments == (Argument("city", "Riyadh"), Argument("week", "46"))


def test_arguments_are_filled_in_once_and_only_where_declared() -> None:
    job = job_of(TEXT)
    assert filled(job, {"city": "{week}"}).startswith("Report on {week}, week 46. Leave {this} alone.")
    with pytest.raises(CannotRun, match="no argument `place`"):
        filled(job, {"place": "x"})
    needy = job_of("---\narguments: [city]\n---\nGo to {city}")
    assert filled(needy, {"city": "Kathmandu"}) == "Go to Kathmandu"
    with pytest.raises(CannotRun, match="needs city"):
        filled(needy, {})


def test_the_steps_are_the_checklist() -> None:
    assert steps(job_of(TEXT).instruction) == ("read the plan", "write the report", "send it")
    assert steps("- a\n- [] b\n[ ] c") == ()


def test_without_a_schedule_it_runs_by_hand() -> None:
    job = job_of("---\ntitle: x\n---\ngo")
    assert (job.schedule, job.heading, job.instruction) == (ByHand(), "", "go")
    assert job_of("---\n---\ngo").title == "report"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("go", "line 1: it has no YAML head"),
        ("---\nschedule: Daily (25:00)\n---\ngo", "line 2: `25:00` is no time of day"),
        ("---\ntitle: x\ncolour: red\n---\n", "line 3: `colour:` is no marker"),
        ("---\nzone: berlin\n---\n", "line 2: `berlin` is no IANA time zone"),
        ("---\ntitle: [a\n---\n", "the YAML head cannot be read"),
        ("---\n- a\n---\n", "line 2: the YAML head is no list"),
        ("---\nname: x\n---\n", "line 2: a procedure is called as its file"),
        ("---\nzone: UTC\nzone: UTC\n---\n", "line 3: `zone:` stands here a second time"),
        ("---\nschedule: Hourly (5)\narguments: [city]\n---\n", "line 3: by schedule nobody gives `city`"),
        ("---\narguments: [a b]\n---\n", "line 2: `a b` is no name of an argument"),
        ("---\ntools: {a: b}\n---\n", "line 2: `tools:` takes one text"),
        ("---\narguments: [a, a]\n---\n", "line 2: arguments have names of their own"),
    ],
)
def test_a_fault_is_told_with_file_and_line(text: str, said: str) -> None:
    assert said in fault_of(text)
    assert fault_of(text).startswith("procedures/report.md line ")


def test_the_folder_is_read_again_when_it_changes(tmp_path: Path) -> None:
    folder = ProcedureFolder(tmp_path / "procedures")
    assert folder.changed()
    assert folder.load().jobs == ()
    assert not folder.changed()
    (tmp_path / "procedures").mkdir()
    (tmp_path / "procedures" / "a.md").write_text("---\ntitle: A\n---\ngo", encoding="utf-8")
    (tmp_path / "procedures" / "b.md").write_bytes(b"---\n---\n\xff")
    assert folder.changed()
    parsed = folder.load()
    assert [job.name for job in parsed.jobs] == ["a"]
    assert [str(fault) for fault in parsed.faults] == ["procedures/b.md line 1: the file is not UTF-8 text"]
    (tmp_path / "procedures" / "a.md").unlink()
    assert folder.changed()
