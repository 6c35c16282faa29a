"""`hudhud chat`: one message and its answer, or a chat in the terminal."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from gateway.cli_errors import FAILED, CliError, failed, used_wrongly
from gateway.cli_lines import Line, line_to
from gateway.cli_options import Place
from gateway.cli_output import Wrap, clean, columns, complain, one_line, print_json, remark, say

OPEN = {"waiting", "running"}
LEAVE = {"/quit", "/exit"}
CONSENT = {"y", "yes", "نعم", "1"}


def chat(place: Place, text: str | None, *, as_json: bool) -> int:
    """The exit code: 1 when the answer could not be made. Raises what the line raises."""
    if text is None and not sys.stdin.isatty():
        text = sys.stdin.read()
    if text is None and as_json:
        raise used_wrongly("hudhud chat: --json needs a message.", "Write it behind `chat`, or pipe it in.")
    if text is not None and not text.strip():
        raise used_wrongly("hudhud chat: the message is empty.", "Write something first.")
    line = line_to(place)
    try:
        if text is None:
            _talk(line)
            return 0
        answer = ask(line, text, None, Answer(live=sys.stdout.isatty(), silent=as_json))
        if as_json:
            print_json({"conversation": answer.conversation, "message": answer.message})
        return FAILED if answer.failed else 0
    finally:
        line.close()


class Answer:
    """One answer as it comes. `live`: its pieces are printed as they arrive; else the whole when it is there.
    `silent`: nothing is printed."""

    def __init__(self, *, live: bool, silent: bool = False) -> None:
        self._live = live and not silent
        self._silent = silent
        self._shown = ""
        self._wrap = Wrap(columns()) if self._live else None
        self.conversation = ""
        self.message: Mapping[str, Any] | None = None
        self.failed = False

    def piece(self, kind: str, data: Mapping[str, Any]) -> None:
        """A `delta`, `reset`, `tool` or `approval` event."""
        if kind == "approval":
            self._line_end()
        elif kind == "tool":
            if data["state"] == "running":
                self._line_end()
                remark(one_line(f"· {data['name']} {data.get('detail', '')}"), on_one_line=True)
        elif not self._live:
            return
        elif kind == "reset":
            self._line_end()
            self._shown = ""
        else:
            self._write(data["text"])

    def whole(self, message: Mapping[str, Any]) -> None:
        """The saved answer: prints what of it was not shown yet."""
        self.message = message
        self.failed = self.failed or "failed" in message["flags"]
        text: str = message["text"]
        if "".join(self._shown.split()) != "".join(text.split()):
            if text.startswith(self._shown):
                self._write(text[len(self._shown) :])
            else:
                self._line_end()
                self._write(text)
        self._line_end()
        self._shown = ""

    def _write(self, text: str) -> None:
        self._shown += text
        if not self._silent:
            sys.stdout.write(clean(text) if self._wrap is None else self._wrap.feed(clean(text)))
            sys.stdout.flush()

    def _line_end(self) -> None:
        if self._shown and not self._shown.endswith("\n"):
            self._write("\n")


def ask(line: Line, text: str, conversation: str | None, answer: Answer) -> Answer:
    """Posts a message and follows the events until it is answered. Raises CliError when the turn broke off."""
    message_id, answer.conversation = line.post(text, conversation)
    n: int | None = None
    for kind, data in line.events():
        if not kind and n is not None and not _is_open(line, answer.conversation, n):
            return _read(line, answer, n)  # it was answered, and the event was lost
        if data.get("conversation") != answer.conversation:
            continue
        if kind == "message" and data["message"]["id"] == message_id:
            n = data["message"]["n"]
        elif n is None:
            continue  # what went on before the message
        elif kind in {"delta", "reset", "tool", "approval"}:
            answer.piece(kind, data)
            if data.get("state") == "open" and not line.consent(data["id"], _agrees(data)):
                complain("This question is no longer open.")
        elif kind == "done":
            if data["message"] is not None:
                answer.whole(data["message"])
            if not _is_open(line, answer.conversation, n):
                return answer
        elif kind == "error" and (data.get("kept") or not _is_open(line, answer.conversation, n)):
            raise _broken_off(data)
        elif kind == "status" and data.get("state") == "command":
            return _read(line, answer, n)
    raise failed("line", "The line broke off before the answer came.", "The message is kept and will be answered.")


def _broken_off(data: Mapping[str, Any]) -> CliError:
    """The failure for an `error` event; `kept`: the message waits for the network."""
    if data.get("kept"):
        return failed("network", data["message"], "It is answered by the gateway: hudhud run.")
    return failed("turn", f"The answer broke off: {data.get('message', '')}.", "The message is kept; ask again.")


def _agrees(question: Mapping[str, Any]) -> bool:
    """Shows what would run and asks for consent at the terminal; without a terminal nobody agrees."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        complain(f"Not run: it needs your consent, and there is no terminal to ask at. {question['reason']}")
        return False
    complain(f"\nThis needs your consent: {question['reason']} Asked by {question['from']}.\n")
    complain("\n".join(f"    {line}" for line in question["what"].split("\n")))
    _forget_typed()
    sys.stderr.write("\nRun it? [y/N] ")
    sys.stderr.flush()
    try:
        return input().strip().casefold() in CONSENT
    except EOFError:
        complain()
        return False


def _forget_typed() -> None:
    """What was typed before a question was seen is no answer to it."""
    import termios

    termios.tcflush(sys.stdin, termios.TCIFLUSH)


def _read(line: Line, answer: Answer, n: int) -> Answer:
    """The answer from the saved conversation: what stands there after message `n`."""
    for message in line.messages(answer.conversation, n + 1):
        if message["role"] != "user":
            answer.whole(message)
    return answer


def _is_open(line: Line, conversation: str, n: int) -> bool:
    """Whether the message is still to be answered: what was `done` may have been the turn before it."""
    return any(message["n"] == n and message["state"] in OPEN for message in line.messages(conversation, n))


def _talk(line: Line) -> None:
    """Until Ctrl-D, or Ctrl-C at the prompt. Ctrl-C during an answer stops that answer."""
    import readline  # noqa: F401  # pyright: ignore[reportUnusedImport] - gives input() its line editing

    remark("Ctrl-D leaves, /help lists the commands.")
    conversation: str | None = None
    while True:
        try:
            text = input("\n› ").strip()
        except (EOFError, KeyboardInterrupt):
            say()
            return
        if text in LEAVE:
            return
        if not text:
            continue
        answer = Answer(live=True)
        try:
            ask(line, text, conversation, answer)
        except KeyboardInterrupt:
            say()
            line.renew()
            line.stop(answer.conversation)
        conversation = "new" if text == "/new" else answer.conversation
