"""The documentation names what there is, with its default, and nothing else."""

from __future__ import annotations

import itertools
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, SecretStr

from channels.registry import CHANNELS
from gateway.config import Settings, load_settings
from tests.architecture.tree import PACKAGES, ROOT, check

RUN_IT = ROOT / "docs" / "run-it.md"
EXAMPLE = ROOT / "deploy" / "settings.example.toml"


def _settings(section: BaseModel, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every setting as its dotted key and its default."""
    for name in type(section).model_fields:
        value = getattr(section, name)
        if isinstance(value, BaseModel):
            yield from _settings(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _toml(value: Any) -> str:
    """A default as config.toml would say it."""
    if isinstance(value, SecretStr):
        return '""'
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value)


def _rows(path: Path) -> dict[str, list[str]]:
    """Table rows of a Markdown file whose first cell is one code word, by that word."""
    rows: dict[str, list[str]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if found := re.match(r"\| `([^`]+)` \|(.*)\|\s*$", line):
            rows[found.group(1)] = [cell.strip() for cell in re.split(r"(?<!\\)\|", found.group(2))]
    return rows


def test_every_setting_has_its_row_with_its_default() -> None:
    rows = _rows(RUN_IT)
    faults: list[str] = []
    for key, default in _settings(Settings()):
        wanted = f"`{_toml(default)}`"
        if key not in rows:
            faults.append(f"{key}: no row; write | `{key}` | {wanted} | what it does |")
        elif rows[key][0] != wanted:
            faults.append(f"{key}: the row says {rows[key][0]}, the default is {wanted}")
        elif not rows[key][-1]:
            faults.append(f"{key}: the row does not say what it does")
    check("Every setting has a row in docs/run-it.md:", faults)


def test_no_row_speaks_of_a_setting_that_is_gone() -> None:
    sections = tuple(f"{name}." for name in Settings.model_fields)
    known = {key for key, _ in _settings(Settings())}
    stale = [key for key in _rows(RUN_IT) if key.startswith(sections) and key not in known]
    check("docs/run-it.md speaks of settings that do not exist:", stale)


def test_the_example_settings_are_complete_and_the_defaults() -> None:
    given = dict(_flat(tomllib.loads(EXAMPLE.read_text(encoding="utf-8"))))
    loaded = dict(_settings(load_settings(EXAMPLE)))
    faults: list[str] = []
    for key, default in _settings(Settings()):
        if key not in given:
            faults.append(f"{key} is missing")
        elif loaded[key] != default:
            faults.append(f"{key} is {loaded[key]!r}, the default is {default!r}")
    check("deploy/settings.example.toml holds every setting with its default:", faults)


def test_every_example_setting_has_a_comment() -> None:
    lines = EXAMPLE.read_text(encoding="utf-8").splitlines()
    bare = [
        f"line {number}: {line}"
        for number, line in enumerate(lines, start=1)
        if re.match(r"\w+ *=", line) and "#" not in line and not lines[number - 2].startswith("#")
    ]
    check("Each setting of deploy/settings.example.toml has a comment beside or above it:", bare)


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def test_every_channel_has_its_row() -> None:
    rows = _rows(RUN_IT)
    check("Every channel has a row in docs/run-it.md:", [name for name in CHANNELS if name not in rows])


def test_the_commands_of_the_document_are_those_there_are() -> None:
    from typer.main import get_command

    from gateway.cli_app import app

    there_are = set(_commands(get_command(app), "hudhud"))
    documented = {_command(row) for row in _rows(RUN_IT) if row.startswith("hudhud ")}
    check("Every command has a row in docs/run-it.md, | `hudhud ...` |:", sorted(there_are - documented))
    check("docs/run-it.md speaks of commands that do not exist:", sorted(documented - there_are))


def _command(row: str) -> str:
    """`hudhud memory get REF` is the command `hudhud memory get`."""
    return " ".join(itertools.takewhile(str.islower, row.split()))


def _commands(command: Any, path: str) -> Iterator[str]:
    children: dict[str, Any] = getattr(command, "commands", {})
    if not children:
        yield path
    for name, child in children.items():
        if not child.hidden:
            yield from _commands(child, f"{path} {name}")


def test_every_tool_is_described() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").rglob("*.md")))
    missing = [name for name in _tool_names() if f"| `{name}` |" not in text]
    check("Every tool has a row | `name` | ... | in docs/:", missing)


def _tool_names() -> Iterator[str]:
    """Tools of the built-in capabilities, from the YAML heads of their SKILL.md."""
    import yaml

    for skill in sorted((ROOT / "agent" / "capabilities").glob("*/SKILL.md")):
        head = yaml.safe_load(skill.read_text(encoding="utf-8").split("---")[1])
        for tool in head.get("tools", []):
            yield tool["name"]


def test_links_between_documents_lead_somewhere() -> None:
    faults = [
        f"{document.relative_to(ROOT).as_posix()} -> {target}"
        for document in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("deploy/*.md")]
        for target in re.findall(r"\]\(([^)#\s]+)", document.read_text(encoding="utf-8"))
        if not re.match(r"[a-z]+:", target) and not (document.parent / target).exists()
    ]
    check("These links lead nowhere:", faults)


def test_places_that_documents_name_exist() -> None:
    place = re.compile(rf"`((?:{'|'.join((*PACKAGES, 'tests', 'deploy', 'docs'))})/[\w./-]*)`")
    faults = [
        f"{document.relative_to(ROOT).as_posix()} -> {named}"
        for document in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("deploy/*.md")]
        for named in place.findall(document.read_text(encoding="utf-8"))
        if not (ROOT / named).exists()
    ]
    check("Documents name files and folders that are not there:", faults)


def test_the_pipeline_is_the_one_in_the_architecture() -> None:
    from agent.turn import PIPELINE

    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    section = re.search(r"^#+ [^\n]*\bpipeline\b[^\n]*$(.*?)(?=^#|\Z)", text, re.IGNORECASE | re.MULTILINE | re.DOTALL)
    assert section, "docs/architecture.md needs a heading with the word pipeline and a numbered list under it"
    listed = re.findall(r"^\d+\. `([\w.]+)`", section.group(1), re.MULTILINE)
    assert list(PIPELINE) == listed, (
        "agent.turn.PIPELINE and the numbered list under the pipeline heading of docs/architecture.md differ. "
        "Decide which is right; the list's items begin with the step in backticks."
    )
