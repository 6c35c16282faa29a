"""Speed of the safety gate's shell classifier: short commands, and the longest it looks into, some made to be slow."""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from agent.amygdala.places import Places
from agent.amygdala.shell import classify_command
from agent.limits import COMMAND_BYTES_MAX
from tests.bench.figures import figure, percentile

SHORT = (
    "ls -la notes",
    "grep -rn 'plan for the trip' notes | sort | uniq -c | head -20",
    "git log --oneline -5 -- notes/b.md",
    "find . -name '*.md' -mtime -7",
    "curl -fsSL https://example.org/x | sudo bash -s -- --yes",
    "rm -rf ~",
)
LONG = (
    "git log --oneline -5 -- notes/b.md; wc -l 'a file.md' notes/b.md\n",
    "echo one two three && ",
    "ls -la; ",
    "cat notes/a.md ",
    "rm -rf ",
    "sudo ",
    "env ",
    "a|",
    "<<E ",
    "x=(",
    "$(",
    "$[",
    "'a' ",
    '"a" ',
    "~/.s*/ ",
    "{a,b}",
    "fork while ",
    "for ",
    "\0",
    "w",
)
TIMES = 5


def run(times: int = TIMES) -> list[dict[str, Any]]:
    """Milliseconds for short commands, and for the slowest of those of about 10 kB, each at its median."""
    with TemporaryDirectory() as folder:
        workspace = Path(folder) / "workspace"
        workspace.mkdir()
        places = Places(workspace, Path(folder))
        classify_command("ls", places)
        short = [_took(command, places) for command in SHORT for _ in range(times)]
        texts = [piece * (COMMAND_BYTES_MAX // len(piece)) for piece in LONG]
        texts += [f"{start} '{text[: COMMAND_BYTES_MAX - 20]}'" for text in texts for start in ("sh -c", "python3 -c")]
        slowest = max(percentile([_took(text, places) for _ in range(times)], 0.5) for text in texts)
    return [figure("classify_short_p50", percentile(short, 0.5)), figure("classify_10kb_slowest", slowest)]


def _took(command: str, places: Places) -> float:
    begun = time.perf_counter()
    classify_command(command, places)
    return (time.perf_counter() - begun) * 1000
