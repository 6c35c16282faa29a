"""Takes the bytes of a streamed answer apart into JSON events, however the network cut them.

Two formats: server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html) and JSON lines. A
server that answers a stream request with one plain JSON document is understood by both: the document is one event.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Protocol, cast

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_END = b"[DONE]"
_NOTHING = object()
_raw_decode = json.JSONDecoder().raw_decode  # without the searches for blanks of json.loads: they cost a third


class Decoder(Protocol):
    """Bytes in, events out. What came before a fault is given out before the fault is raised, so that where the
    network cut the bytes changes nothing."""

    @property
    def done(self) -> bool:
        """The server said that nothing more comes; what comes all the same is ignored."""
        ...

    def feed(self, data: bytes) -> Iterator[object]:
        """The events that `data` completes. Raises ValueError for what is no JSON or no UTF-8."""
        ...

    def end(self) -> Iterator[object]:
        """The events that only the end of the stream completes. Raises ValueError too."""
        ...


class _Lines:
    """Cuts bytes into lines at LF, CR LF or CR; a line is given out as soon as its end begins."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._after_return = False  # a line feed that comes first now belongs to the line end before
        self._first = True

    def feed(self, data: bytes) -> list[bytes]:
        if self._after_return and data:
            self._after_return = False
            data = data.removeprefix(b"\n")
        if b"\n" not in data and b"\r" not in data:
            if data:
                self._parts.append(data)
            return []
        text = b"".join((*self._parts, data))
        lines = text.splitlines()
        self._parts = [] if text[-1] in b"\r\n" else [lines.pop()]
        self._after_return = text.endswith(b"\r")
        return self._without_mark(lines)

    def end(self) -> list[bytes]:
        rest, self._parts = b"".join(self._parts), []
        return self._without_mark([rest]) if rest else []

    def _without_mark(self, lines: list[bytes]) -> list[bytes]:
        if self._first and lines:
            self._first = False
            lines[0] = lines[0].removeprefix(_BYTE_ORDER_MARK)
        return lines


class ServerSentEvents:
    """`text/event-stream`. Comments, ids and empty events are left out; `data: [DONE]` ends the stream.

    An event that the server names `error` comes as an object with the member `error`, whatever its data is. An event
    whose closing blank line is missing at the end of the stream counts when its data is whole.
    """

    def __init__(self) -> None:
        self.done = False
        self._lines = _Lines()
        self._data: list[bytes] = []
        self._name = b""
        self._document: list[bytes] | None = None
        self._begun = False

    def feed(self, data: bytes) -> Iterator[object]:
        if not self.done:
            for line in self._lines.feed(data):
                event = self._take(line)
                if event is not _NOTHING:
                    yield event

    def end(self) -> Iterator[object]:
        if self.done:
            return
        for line in self._lines.end():
            self._take(line)
        if self._document is not None:
            yield _parsed(b"\n".join(self._document))
            return
        try:
            event = self._dispatch()
        except ValueError:
            return  # cut off: the reply lacks its end, and that is what is told
        if event is not _NOTHING:
            yield event

    def _take(self, line: bytes) -> object:
        """The event that a line completes."""
        if self._document is not None:
            self._document.append(line)
        elif not line:
            return self._dispatch()
        elif line.startswith(b"data:"):
            self._begun = True
            self._data.append(line[6:] if line[5:6] == b" " else line[5:])
        elif line.startswith(b"event:"):
            self._begun = True
            self._name = line[6:].strip()
        elif not self._begun and line.lstrip()[:1] in (b"{", b"["):
            # No line of an event stream begins like this: the server ignored that a stream was asked for.
            self._document = [line]
        return _NOTHING

    def _dispatch(self) -> object:
        data, name = b"\n".join(self._data), self._name
        self._data, self._name = [], b""
        if self.done or not data.strip():
            return _NOTHING
        if data.startswith(_END):
            self.done = True
            return _NOTHING
        return _error(data) if name == b"error" else _parsed(data)


class JsonLines:
    """A JSON value a line (https://jsonlines.org). A document spread over several lines is one event, at the end."""

    def __init__(self) -> None:
        self.done = False
        self._lines = _Lines()
        self._document: list[bytes] | None = None
        self._begun = False

    def feed(self, data: bytes) -> Iterator[object]:
        for line in self._lines.feed(data):
            event = self._take(line)
            if event is not _NOTHING:
                yield event

    def end(self) -> Iterator[object]:
        try:
            events = [self._take(line) for line in self._lines.end()]
        except ValueError:
            return  # cut off: the reply lacks its end, and that is what is told
        yield from (event for event in events if event is not _NOTHING)
        if self._document is not None:
            yield _parsed(b"\n".join(self._document))

    def _take(self, line: bytes) -> object:
        """The event that a line completes."""
        if self._document is not None:
            self._document.append(line)
            return _NOTHING
        text = line.strip()
        if not text:
            return _NOTHING
        if not self._begun and text in (b"{", b"["):
            self._document = [line]
            return _NOTHING
        self._begun = True
        return _parsed(line)


def _parsed(data: bytes) -> object:
    """Raises ValueError."""
    text = data.decode().strip()
    try:
        value, end = _raw_decode(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if end < len(text):
        raise ValueError("more than one JSON value in an event")
    return value


def _error(data: bytes) -> object:
    """What an event named `error` says, as an object with the member `error`."""
    try:
        value = _parsed(data)
    except ValueError:
        return {"error": {"message": data.decode("utf-8", "replace")}}
    return value if members(value).get("error") else {"error": value or {"message": ""}}


def members(value: object) -> Mapping[str, Any]:
    """The members of a JSON object; none of anything else."""
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}
