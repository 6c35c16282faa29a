"""Reads programs.toml: what the safety gate knows of programs, places and variables."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, cast

from agent.amygdala.findings import Level


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a program; what each field means is said in programs.toml."""

    flags: frozenset[str]
    values: frozenset[str]
    attached: frozenset[str]
    long: frozenset[str]
    long_values: frozenset[str]
    numbers: bool


@dataclass(frozen=True, slots=True)
class Safe:
    """How a program may be used without asking."""

    options: Options
    operands: Literal["paths", "text", "pattern", "none"]
    operand: re.Pattern[str] | None
    operand_first: re.Pattern[str] | None
    unlike: re.Pattern[str] | None
    most: int | None
    needs: frozenset[str]
    only: frozenset[str]
    pattern_by: frozenset[str]
    free: bool


@dataclass(frozen=True, slots=True)
class Wrap:
    """A program that runs another command."""

    options: Options
    skip: int
    assign: bool
    joined: bool
    input: bool
    code: frozenset[str]
    code_only: bool
    ask: str


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A program that runs a program text. `code` holds one letter or a long name for each option that gives it."""

    code: frozenset[str]
    module: frozenset[str]
    values: frozenset[str]
    words: frozenset[str]


@dataclass(frozen=True, slots=True)
class Refuse:
    """A program that is refused: always, `unless` all its options are among these, or only `when` one is there."""

    reason: str
    unless: frozenset[str]
    when: frozenset[str]


@dataclass(frozen=True, slots=True)
class CodeRule:
    """What must not stand in a program text, both where there are two."""

    level: Level
    reason: str
    pattern: re.Pattern[str]
    also: re.Pattern[str] | None


@dataclass(frozen=True, slots=True)
class Find:
    """The words of find."""

    none: frozenset[str]
    one: frozenset[str]
    path: frozenset[str]
    run: frozenset[str]


@dataclass(frozen=True, slots=True)
class Table:
    """All of programs.toml."""

    safe: Mapping[str, Safe]
    wrap: Mapping[str, Wrap]
    ask: Mapping[str, str]
    refuse: Mapping[str, Refuse]
    refuse_prefixes: Mapping[str, Refuse]
    prefixes: tuple[str, ...]
    find: Find
    version_programs: frozenset[str]
    version_words: frozenset[str]
    writers: Mapping[str, frozenset[str]]
    downloads: frozenset[str]
    download_output: frozenset[str]
    shells: frozenset[str]
    shell_values: frozenset[str]
    interpreters: Mapping[str, Interpreter]
    code: tuple[CodeRule, ...]
    credentials: tuple[str, ...]
    public: tuple[str, ...]
    devices: re.Pattern[str]
    vital: tuple[str, ...]
    streams: frozenset[str]
    plain_variables: frozenset[str]
    secret_variable: re.Pattern[str]
    settable: re.Pattern[str]
    settable_value: re.Pattern[str]

    def refused(self, name: str) -> Refuse | None:
        """The rule of a program that is refused."""
        found = self.refuse.get(name)
        if found is None and name.startswith(self.prefixes):
            found = next(rule for prefix, rule in self.refuse_prefixes.items() if name.startswith(prefix))
        return found

    def interpreter(self, name: str) -> Interpreter | None:
        """The rule of an interpreter, whatever version its name carries (`python3.12`)."""
        return self.interpreters.get(name) or self.interpreters.get(name.rstrip("-.0123456789"))

    def is_shell(self, name: str) -> bool:
        return name in self.shells or name.rstrip("-.0123456789") in self.shells


@cache
def table() -> Table:
    """The table, read once."""
    raw = tomllib.loads((Path(__file__).parent / "programs.toml").read_text(encoding="utf-8"))
    places, variables, refuse = raw["places"], raw["variables"], raw["refuse"]
    rules = [(group, Refuse(group["reason"], _set(group, "unless"), _set(group, "with"))) for group in refuse]
    return Table(
        safe={name: _safe(raw["safe"][fields.get("like", name)]) for name, fields in raw["safe"].items()},
        wrap={name: _wrap(raw["wrap"][fields.get("like", name)]) for name, fields in raw["wrap"].items()},
        ask={program: reason for reason, programs in raw["ask"].items() for program in programs},
        refuse={program: rule for group, rule in rules for program in group["programs"]},
        refuse_prefixes={prefix: rule for group, rule in rules for prefix in group.get("prefixes", [])},
        prefixes=tuple(prefix for group, _ in rules for prefix in group.get("prefixes", [])),
        find=Find(**{key: frozenset(words) for key, words in raw["find"].items()}),
        version_programs=_set(raw["version"], "programs"),
        version_words=_set(raw["version"], "words"),
        writers={key: frozenset(programs) for key, programs in raw["writers"].items()},
        downloads=_set(raw["downloads"], "programs"),
        download_output=_set(raw["downloads"], "output"),
        shells=_set(raw["shells"], "programs"),
        shell_values=_set(raw["shells"], "values"),
        interpreters={
            program: Interpreter(
                _set(rule, "code") | _set(rule, "code_long"),
                _set(rule, "module"),
                _set(rule, "values"),
                _set(rule, "words"),
            )
            for rule in raw["interpreters"].values()
            for program in rule["programs"]
        },
        code=tuple(
            CodeRule(
                rule["level"],
                rule["reason"],
                re.compile(rule["pattern"], re.IGNORECASE),
                re.compile(rule["also"], re.IGNORECASE) if "also" in rule else None,
            )
            for rule in raw["code"]
        ),
        credentials=tuple(places["credentials"]),
        public=tuple(places["public"]),
        devices=re.compile(places["devices"]),
        vital=tuple(places["vital"]),
        streams=_set(places, "streams"),
        plain_variables=_set(variables, "plain"),
        secret_variable=re.compile(variables["secret"]),
        settable=re.compile(variables["settable"]),
        settable_value=re.compile(variables["settable_value"]),
    )


def _set(fields: Mapping[str, Any], key: str) -> frozenset[str]:
    return frozenset(cast("list[str] | str", fields.get(key, ())))


def _pattern(fields: Mapping[str, Any], key: str) -> re.Pattern[str] | None:
    return re.compile(fields[key], re.DOTALL) if key in fields else None


def _options(fields: Mapping[str, Any]) -> Options:
    return Options(
        flags=_set(fields, "flags"),
        values=_set(fields, "values"),
        attached=_set(fields, "attached"),
        long=_set(fields, "long"),
        long_values=_set(fields, "long_values"),
        numbers=fields.get("numbers") is True,
    )


def _safe(fields: Mapping[str, Any]) -> Safe:
    return Safe(
        options=_options(fields),
        operands=fields.get("operands", "none"),
        operand=_pattern(fields, "operand"),
        operand_first=_pattern(fields, "operand_first"),
        unlike=_pattern(fields, "unlike"),
        most=fields.get("most"),
        needs=_set(fields, "needs"),
        only=_set(fields, "only"),
        pattern_by=_set(fields, "pattern_by"),
        free=fields.get("free") is True,
    )


def _wrap(fields: Mapping[str, Any]) -> Wrap:
    return Wrap(
        options=_options(fields),
        skip=fields.get("skip", 0),
        assign=fields.get("assign") is True,
        joined=fields.get("joined") is True,
        input=fields.get("input") is True,
        code=_set(fields, "code") | _set(fields, "code_long"),
        code_only=fields.get("code_only") is True,
        ask=fields.get("ask", ""),
    )
