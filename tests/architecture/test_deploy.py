"""What deploy/ starts is what there is."""

from __future__ import annotations

import configparser
import json
import os
import re
import subprocess
import sys

from gateway.cli_service import UNIT
from tests.architecture.tree import ROOT, check

DEPLOY = ROOT / "deploy"
HEAVY = {
    "aiohttp",
    "aiosqlite",
    "apscheduler",
    "ijson",
    "jinja2",
    "markdown_it",
    "nh3",
    "openai",
    "pydantic",
    "telegram",
    "yaml",
}


def test_the_unit_starts_the_gateway() -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # pyright: ignore[reportAttributeAccessIssue]
    unit.read(DEPLOY / "hudhud.service", encoding="utf-8")
    assert unit["Service"]["ExecStart"].endswith("/hudhud run")
    assert unit["Install"]["WantedBy"] == "default.target"
    written = UNIT.format(command=unit["Service"]["ExecStart"])
    assert (DEPLOY / "hudhud.service").read_text(encoding="utf-8").endswith(written)


def test_the_image_starts_the_gateway_as_an_ordinary_user() -> None:
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    command = re.search(r"^CMD (.+)$", text, re.MULTILINE)
    assert command
    assert json.loads(command.group(1)) == ["hudhud", "run"]
    assert re.search(r"^USER (?!root|0)", text, re.MULTILINE)


def test_ci_calls_make_test() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert script.startswith("#!")
    assert script.rstrip().endswith("\nmake test")
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_asking_for_help_loads_no_heavy_library() -> None:
    program = "import sys, gateway.cli as c; c.main(['--help']); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, check=True, timeout=60, text=True
    )
    assert "hudhud" in done.stdout
    loaded = HEAVY & set(done.stderr.split())
    check("`hudhud --help` must be quick: import these inside the functions that use them:", sorted(loaded))
