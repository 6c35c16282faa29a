"""The workspace folder: what a new one holds, and its files as the prompt reads them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from agent.files import replace_file
from agent.prompts import default_soul, operating_contract
from agent.tokens import estimate_tokens

_FOLDERS = (
    "identity",
    "bank/entities",
    "procedures",
    "skills",
    "brain/hippocampus/episodes",
    "brain/hippocampus/knowledge",
    "brain/motor/tasks",
    "brain/basalganglia",
    "brain/prefrontal/.debug",
    "readlog",
    "files",
    "uploads",
)


def prepare_workspace(workspace: Path, agent_name: str = "Hudhud") -> None:
    """Makes the folders, writes `agents.core.md` anew and the default `identity/soul.md` where there is none.

    Nothing else that is there is touched. Raises OSError.
    """
    for folder in _FOLDERS:
        (workspace / folder).mkdir(parents=True, exist_ok=True)
    contract = workspace / "agents.core.md"
    text = f"{operating_contract()}\n"
    if not contract.exists() or contract.read_bytes() != text.encode():
        replace_file(contract, text)
    soul = workspace / "identity" / "soul.md"
    if not soul.exists():
        replace_file(soul, f"{default_soul(agent_name)}\n")


@dataclass(frozen=True, slots=True)
class Page:
    """A file's text and what it costs in a prompt."""

    text: str
    tokens: int


@dataclass(frozen=True, slots=True)
class _Kept:
    stamp: tuple[int, int, int]
    page: Page


class Pages:
    """Workspace files, read again only when they have changed (time, size or file number)."""

    def __init__(self, workspace: Path) -> None:
        self._root = str(workspace)
        self._kept: dict[str, _Kept] = {}

    def read(self, path: str, default: str = "") -> Page:
        """The file at `path`, relative to the workspace; `default` where there is none or it cannot be read.

        Bytes that are no UTF-8 become U+FFFD: a file that a person saved badly still counts for the rest.
        """
        whole = f"{self._root}/{path}"
        try:
            stat = os.stat(whole)
            stamp = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
            kept = self._kept.get(path)
            if kept is None or kept.stamp != stamp:
                with open(whole, encoding="utf-8", errors="replace") as file:
                    text = file.read().strip()
                kept = self._kept[path] = _Kept(stamp, Page(text, estimate_tokens(text)))
        except OSError:
            return Page(default, estimate_tokens(default))
        return kept.page
