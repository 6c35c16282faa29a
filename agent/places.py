"""Paths a model gives: each is led to its real place inside the workspace, or refused."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

from agent.types import ToolFailure

NOT_ALLOWED = "That path is not allowed: give one inside the workspace, such as files/plan.md."
NAME_BYTES_MAX = 255
_DECODINGS_MAX = 5


def inside(workspace: Path, path: str) -> Path:
    """The real place of `path`, links resolved; it need not exist yet. `file:<path>` is as good.

    Raises ToolFailure, with the same sentence for all that leads out, is hidden (a part that begins with a dot), or
    hides what it is (encoded dots and slashes, backslashes, NUL).
    """
    path = path.removeprefix("file:")
    if not path.strip() or _hides(path) or path.startswith("~"):
        raise ToolFailure(NOT_ALLOWED)
    root = workspace.resolve()
    try:
        real = (root / path).resolve()
        parts = real.relative_to(root).parts
        longest = max((len(part.encode()) for part in parts), default=0)
    except (ValueError, OSError, RuntimeError) as error:
        # RuntimeError: links in a circle.
        raise ToolFailure(NOT_ALLOWED) from error
    if longest > NAME_BYTES_MAX or any(part.startswith(".") for part in parts):
        raise ToolFailure(NOT_ALLOWED)
    return real


def shown(workspace: Path, place: Path) -> str:
    """A place as the model writes it: relative to the workspace."""
    return place.relative_to(workspace.resolve()).as_posix()


def _hides(path: str) -> bool:
    if "\\" in path or "\0" in path:
        return True
    decoded = path
    for _ in range(_DECODINGS_MAX):
        again = unquote(decoded)
        if again == decoded:
            return _parts(decoded) != _parts(path)
        decoded = again
    return True


def _parts(path: str) -> tuple[int, bool, bool]:
    """What decoding must not change: a name may hold a percent sign, but no way out behind one."""
    return path.count("/"), ".." in path, "\\" in path or "\0" in path
