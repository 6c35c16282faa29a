"""Shell commands in the workspace. Whether one may run is the safety gate's word, before it comes here."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from agent.limits import COMMAND_SECONDS_DEFAULT, COMMAND_SECONDS_MAX, TOOL_OUTPUT_CHARS
from agent.programs import child_environment, run_program
from agent.types import CallContext, JsonObject, ToolFailure, ToolFunction

_ROOM_CHARS = 200
"""For what is said of the output."""


class Shell:
    """The tool's code. `environ`: what harmless variables are taken from."""

    def __init__(self, workspace: Path, environ: Mapping[str, str] = os.environ) -> None:
        self._workspace = workspace
        self._environ = environ

    def functions(self) -> dict[str, ToolFunction]:
        """Each tool by its name in SKILL.md."""
        return {"run_command": self.run_command}

    async def run_command(self, ctx: CallContext, args: JsonObject) -> str:
        """How the command ended, on the first line, and what it printed. Any exit code is an answer: what it means is
        the command's business."""
        seconds = max(1, min(int(args.get("timeout_seconds") or COMMAND_SECONDS_DEFAULT), COMMAND_SECONDS_MAX))
        try:
            ended = await run_program(
                ("bash", "--noprofile", "--norc", "-c", str(args["command"])),
                folder=self._workspace,
                environment=child_environment(self._environ),
                chars_max=TOOL_OUTPUT_CHARS - _ROOM_CHARS,
                timeout_seconds=seconds,
            )
        except (OSError, ValueError) as error:
            raise ToolFailure(f"The command could not be started: {error}.") from error
        how = f"not finished within {seconds} seconds, so it was ended" if ended.timed_out else ended.how
        return f"{how}\n{ended.output}".rstrip()
