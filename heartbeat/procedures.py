"""Procedures: what is worth doing again, one Markdown file each, with a YAML head. Pure but for the reading.

`procedures/<name>.md`: between two lines of `---` the head (`title`, `schedule`, `arguments` and the markers of
heartbeat.md); after it the instruction, in which `- [ ] ...` lines are steps to tick off.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, cast

from heartbeat.grammar import read_marker
from heartbeat.headings import BadSchedule, parse_schedule
from heartbeat.limits import ARGUMENTS_MAX, FILE_BYTES_MAX, NAME_CHARS_MAX, PROCEDURES_MAX
from heartbeat.types import Argument, ByHand, Fault, Job, Kind, Parsed

_HEAD = re.compile(r"\A---[ \t]*\r?\n(?P<head>.*?)^---[ \t]*(?:\r?\n|\Z)(?P<body>.*)\Z", re.DOTALL | re.MULTILINE)
_STEP = re.compile(r"[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]+\[[ xX]\][ \t]+(\S.*?)[ \t]*")
_ARGUMENT = re.compile(r"[^\W\d]\w{0,39}")


def parse_procedure(name: str, text: str) -> Job | Fault:
    """One file's job, or what is wrong with it."""
    file = f"procedures/{name}.md"
    found = _HEAD.match(text.removeprefix("\ufeff"))
    if found is None:
        return Fault(name, "", 1, "it has no YAML head between two lines of ---", file)
    try:
        head = _head(found["head"])
        return _job(name, head, found["body"].strip())
    except _BadLine as error:
        return Fault(name, error.heading, error.line, str(error), file)


def steps(instruction: str) -> tuple[str, ...]:
    """The checklist of an instruction, in order."""
    return tuple(found[1] for line in instruction.splitlines() if (found := _STEP.fullmatch(line)))


class ProcedureFolder:
    """`procedures/` as a JobSource; a folder that is not there holds none."""

    kind: Kind = "procedure"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._loaded: object = None

    def changed(self) -> bool:
        """True when a file came, went or changed (by inode, size and time of change)."""
        return self._stamps() != self._loaded

    def load(self) -> Parsed:
        """Reads the folder. What cannot be read becomes a fault; it raises nothing."""
        stamps = self._loaded = self._stamps()
        read = [self._read(Path(path)) for path, _ in stamps]
        return Parsed(
            tuple(one for one in read if isinstance(one, Job)), tuple(one for one in read if isinstance(one, Fault))
        )

    def _read(self, path: Path) -> Job | Fault:
        name, file = path.stem, f"procedures/{path.name}"
        if len(name) > NAME_CHARS_MAX or not name.isprintable():
            return Fault(name[:NAME_CHARS_MAX], "", 1, f"a name has at most {NAME_CHARS_MAX} characters", file)
        try:
            raw = path.read_bytes()
        except OSError as error:
            return Fault(name, "", 1, f"the file cannot be read ({error.strerror})", file)
        if len(raw) > FILE_BYTES_MAX:
            return Fault(name, "", 1, f"the file is larger than {FILE_BYTES_MAX:,} bytes", file)
        try:
            return parse_procedure(name, raw.decode("utf-8-sig"))
        except UnicodeDecodeError:
            return Fault(name, "", 1, "the file is not UTF-8 text", file)

    def _stamps(self) -> tuple[tuple[str, tuple[int, int, int]], ...]:
        stamps: list[tuple[str, tuple[int, int, int]]] = []
        for path in sorted(self._folder.glob("*.md"))[:PROCEDURES_MAX]:
            try:
                stat = path.stat()
            except OSError:
                continue
            stamps.append((str(path), (stat.st_ino, stat.st_size, stat.st_mtime_ns)))
        return tuple(stamps)


class _BadLine(Exception):
    """One line of the head is wrong."""

    def __init__(self, line: int, reason: str, heading: str = "") -> None:
        super().__init__(reason)
        self.line = line
        self.heading = heading


def _head(text: str) -> dict[str, tuple[int, Any]]:
    """Each key with its line in the file and its value: a text, or a list of texts and (name, default) pairs."""
    import yaml

    try:
        root = cast("Any", yaml).compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        reason = str(getattr(error, "problem", None) or "it is not valid YAML")
        raise _BadLine(2 + (mark.line if mark else 0), f"the YAML head cannot be read: {reason}") from error
    if root is None:
        return {}
    if not isinstance(root, yaml.MappingNode):
        raise _BadLine(2, "the YAML head is no list of `word: value` lines")
    fields: dict[str, tuple[int, Any]] = {}
    for key, value in root.value:
        line, word = key.start_mark.line + 2, str(key.value).casefold()
        if word in fields:
            raise _BadLine(line, f"`{word}:` stands here a second time")
        if isinstance(value, yaml.ScalarNode):
            fields[word] = (line, value.value.strip())
        elif isinstance(value, yaml.SequenceNode):
            fields[word] = (line, [_item(item, line, word) for item in value.value])
        elif word == "arguments" and isinstance(value, yaml.MappingNode):
            fields[word] = (line, [(name.value, _default(given)) for name, given in value.value])
        else:
            raise _BadLine(line, f"`{word}:` takes one text, or a list")
    return fields


def _item(node: Any, line: int, word: str) -> Any:
    """An item of a list: a text, or in `arguments` also `name: default`."""
    if isinstance(node.value, str):
        return node.value.strip()
    if word == "arguments" and len(node.value) == 1 and isinstance(node.value[0], tuple):
        name, given = node.value[0]
        return name.value, _default(given)
    raise _BadLine(line, f"`{word}:` is a list of texts")


def _default(node: Any) -> str | None:
    return node.value if isinstance(node.value, str) and node.value else None


def _job(name: str, head: dict[str, tuple[int, Any]], body: str) -> Job:
    fields: dict[str, Any] = {"name": name, "title": name, "heading": "", "schedule": ByHand(), "arguments": ()}
    line = 1
    for word, (line, value) in head.items():
        try:
            match word:
                case "title":
                    fields["title"] = " ".join(str(value).split())
                case "schedule" if value:
                    fields["heading"] = str(value)
                    fields["schedule"] = parse_schedule(str(value))
                case "schedule":
                    pass
                case "arguments":
                    fields["arguments"] = _arguments(value)
                case "name":
                    raise BadSchedule("a procedure is called as its file is; take `name:` out")
                case _:
                    fields |= read_marker(word, value if isinstance(value, str) else ", ".join(map(str, value)))
        except BadSchedule as error:
            raise _BadLine(line, str(error), fields["heading"]) from error
    lacking = [argument.name for argument in fields["arguments"] if argument.default is None]
    if lacking and fields["heading"]:
        reason = f"by schedule nobody gives `{lacking[0]}`; write `- {lacking[0]}: value` under `arguments:`"
        raise _BadLine(head["arguments"][0], reason, fields["heading"])
    return Job(kind="procedure", instruction=body, line=1, **fields)


def _arguments(value: str | list[str | tuple[str, str | None]]) -> tuple[Argument, ...]:
    items = [part.strip() for part in value.split(",")] if isinstance(value, str) else value
    found = [Argument(item) if isinstance(item, str) else Argument(*item) for item in items if item]
    for argument in found:
        if not _ARGUMENT.fullmatch(argument.name):
            raise BadSchedule(f"`{argument.name}` is no name of an argument: a word of letters, digits and _")
    if len({argument.name for argument in found}) < len(found) or len(found) > ARGUMENTS_MAX:
        raise BadSchedule(f"arguments have names of their own, and are at most {ARGUMENTS_MAX}")
    return tuple(found)
