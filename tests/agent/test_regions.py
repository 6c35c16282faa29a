"""docs/regions.md tells what agent/brain.py holds."""

from __future__ import annotations

import ast
import re
from dataclasses import fields
from itertools import pairwise
from pathlib import Path

from agent.brain import Brain
from agent.turn import PIPELINE

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs/regions.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (\w+) \| ([^|]+) \| `([^`]+)` \| ([^|]+) \|$", TEXT, re.MULTILINE)
OTHERS = {"chosen", "compaction", "corpus", "ledger", "rounds_max", "trace"}


def test_each_region_of_the_brain_has_its_row_and_no_other() -> None:
    regions = [field.name for field in fields(Brain) if field.name not in OTHERS]
    assert sorted(row[0] for row in ROWS) == sorted(regions)
    assert len(regions) == 11


def test_the_file_of_each_region_is_there_and_named_after_it() -> None:
    for name, _, file, _ in ROWS:
        path = ROOT / file
        assert path.is_dir() if file.endswith("/") else path.is_file(), file
        assert path.stem == name


def test_the_plain_name_is_the_one_in_the_brain() -> None:
    body = next(
        node.body
        for node in ast.parse((ROOT / "agent/brain.py").read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and node.name == "Brain"
    )
    notes: dict[str, str] = {}
    for field, note in pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(note, ast.Expr):
            notes[field.target.id] = ast.literal_eval(note.value)
    assert {name: plain for name, plain, _, _ in ROWS} == {name: note.partition(":")[0] for name, note in notes.items()}


def test_the_order_of_the_pipeline_is_told() -> None:
    assert tuple(re.findall(r"^\d+\. `([\w.]+)`$", TEXT, re.MULTILINE)) == PIPELINE
