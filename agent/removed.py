"""What a read log still says: `removed` lines take others out, and whoever reads a log honours them.

The log itself is append-only, so what was taken out still stands there.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any, cast

FOLDER = "readlog"
_KIND = "removed"
_KEPT = ("id", "at", "dir")


def is_log(name: str) -> bool:
    """True for the path of a read log, relative to the workspace."""
    return name.startswith(f"{FOLDER}/") and PurePath(name).suffix == ".jsonl"


def without_removed(text: str) -> str:
    """A log with an empty line of kind `removed` in the place of each line that was taken out; numbers stay true."""
    if f'"{_KIND}"' not in text:
        return text
    raws = text.split("\n")
    found = [_parsed(raw) for raw in raws]
    gone = removed_ids([line for line in found if line is not None])
    if not gone:
        return text
    return "\n".join(raw if line is None else _told(raw, line, gone) for raw, line in zip(raws, found, strict=True))


def _told(raw: str, line: Mapping[str, Any], gone: Collection[Any]) -> str:
    if line.get("kind") == _KIND or not is_about(line, gone):
        return raw
    kept = {name: line[name] for name in _KEPT if name in line}
    return json.dumps({**kept, "kind": _KIND, "text": ""}, ensure_ascii=False, separators=(",", ":"))


def is_about(line: Mapping[str, Any], gone: Collection[Any]) -> bool:
    """Whether a line is one of those taken out, or says something about one of them (an edit, a reaction)."""
    return not _names(line.get("id"), line.get("edits"), *_list(line.get("parts"))).isdisjoint(gone)


def _parsed(raw: str) -> dict[str, Any] | None:
    try:
        value: Any = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def removed_ids(lines: Sequence[Mapping[str, Any]]) -> set[Any]:
    """The ids of the messages that the `removed` lines among these take out.

    `ids` names them one by one; each pair of `ranges` names the lines from the first with one id to the next with the
    other, both included.
    """
    gone: set[Any] = set()
    places: dict[Any, list[int]] = {}
    for at, line in enumerate(lines):
        if line.get("kind") == "removed":
            gone.update(_names(*_list(line.get("ids"))))
            for pair in _list(line.get("ranges")):
                if isinstance(pair, list) and len(cast("list[Any]", pair)) == 2:
                    gone.update(_between(lines, places, *cast("list[Any]", pair)))
        for name in _names(line.get("id")):
            places.setdefault(name, []).append(at)
    return gone


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _between(
    lines: Sequence[Mapping[str, Any]], places: Mapping[Any, Sequence[int]], first: Any, last: Any
) -> Iterator[Any]:
    """The ids of the lines from the one to the other; nothing when one of them is not at the `places` so far."""
    if not _names(first) or not _names(last) or first not in places:
        return
    begin = places[first][0]
    end = next((at for at in places.get(last, ()) if at >= begin), None)
    if end is not None:
        for line in lines[begin : end + 1]:
            yield from _names(line.get("id"), *_list(line.get("parts")))


def _names(*ids: Any) -> set[str | int]:
    return {id_ for id_ in ids if isinstance(id_, (str, int))}
