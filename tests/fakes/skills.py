"""A capability folder for tests: one tool everyone may use, two of the owner."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from agent.cerebellum import BUILT_IN, LOADER, Cerebellum
from agent.skills import read_skill
from agent.types import CallContext, JsonObject, ToolFailure, ToolFunction

SKILL = """---
name: notes
description: Looks things up and keeps them.
version: "1"
always: true
tools:
  - name: look
    description: Looks a word up.
    read_only: true
    repeatable: true
    rights: allowed
    parameters:
      type: object
      properties: {word: {type: string}}
      required: [word]
  - name: keep
    description: Keeps a sentence.
    parameters:
      type: object
      properties: {text: {type: string}}
      required: [text]
  - name: peek
    description: Looks at the owner's shelf.
    read_only: true
danger_patterns:
  - {pattern: "wipe .* disk", level: block, reason: It would wipe a disk.}
confirm_patterns:
  - {pattern: "everyone", reason: It concerns everyone.}
---
Look before you keep.
"""


def skill_folder(root: Path, text: str = SKILL, name: str = "notes") -> Path:
    """Writes a SKILL.md below `root` and returns `root`."""
    (root / name).mkdir(parents=True, exist_ok=True)
    (root / name / "SKILL.md").write_text(text, encoding="utf-8")
    return root


class Notes:
    """The code of the tools. `ran` is each call that ran; `texts` what `look` finds for a word."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, JsonObject]] = []
        self.texts: dict[str, str] = {}

    async def look(self, context: CallContext, args: JsonObject) -> str:
        self.ran.append(("look", args))
        if args["word"] == "broken":
            raise ToolFailure("The shelf is broken.")
        return self.texts.get(args["word"], f"nothing about {args['word']}")

    async def keep(self, context: CallContext, args: JsonObject) -> str:
        self.ran.append(("keep", args))
        return "kept"

    async def peek(self, context: CallContext, args: JsonObject) -> str:
        self.ran.append(("peek", args))
        return "a vase"

    def functions(self) -> Mapping[str, Mapping[str, ToolFunction]]:
        return {"notes": {"look": self.look, "keep": self.keep, "peek": self.peek}}


def a_registry(root: Path, notes: Notes | None = None) -> Cerebellum:
    return Cerebellum((notes or Notes()).functions(), [skill_folder(root)])


async def _nothing(context: CallContext, args: JsonObject) -> str:
    return ""


def shipped_functions() -> Mapping[str, Mapping[str, ToolFunction]]:
    """For every tool that is shipped code that does nothing: what a prompt shows does not depend on more."""
    shipped = [read_skill(file) for file in sorted(BUILT_IN.glob("*/SKILL.md"))]
    return {one.name: {tool.name: _nothing for tool in one.tools} for one in shipped if one.name != LOADER}
