"""Redirections of a shell command: what is read and written beside the arguments."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from agent.amygdala.reading import SILENT, UNSEEN, Reading, Stream
from agent.amygdala.syntax import Syntax
from agent.amygdala.words import LITERALS, UNKNOWN, Word, WordReader

if TYPE_CHECKING:
    from tree_sitter import Node

_READS = frozenset({"<"})
_STREAM = re.compile(r"[0-9]+-?|-")
_ESCAPED = re.compile(r"\\.", re.DOTALL)
_COPIES = frozenset({">&", "<&", "<&-", ">&-"})


class Redirects:
    """Judges redirections. `words` reads the words of a node, `nested` a substitution, `read` a text that a shell
    runs, `syntax` gives the text that is read. `feeds`: the last redirection gave the program its input."""

    def __init__(
        self,
        reading: Reading,
        words: Callable[[Node], list[Word]],
        nested: Callable[[Node], None],
        read: Callable[[str], Stream],
        syntax: Callable[[], Syntax],
    ) -> None:
        self._reading = reading
        self._words = words
        self._nested = nested
        self._read = read
        self._syntax = syntax
        self._heredocs = 0
        self.feeds = False

    def file(self, node: Node) -> list[Word]:
        """One redirection. The grammar takes words after its target into it: they are given back, for they are
        arguments of the command."""
        sign = ""
        words: list[Word] = []
        for child in node.children:
            if not child.is_named and not sign:
                sign = child.type
            elif child.type != "file_descriptor":
                words += self._words(child)
        if not words:
            if sign not in _COPIES:
                self._reading.found.add("confirm", "form")
            return []
        target = words[0]
        if not (sign in _COPIES and target.plain and _STREAM.fullmatch(target.text)):
            self._target(sign, target)
        return words[1:]

    def heredoc(self, node: Node, more: list[Word], after: list[Node]) -> Stream:
        """A heredoc: gives back its text. Words of the command that the grammar takes into it are added to `more`,
        what comes after the command (a pipe, `&&`) to `after`."""
        stream = SILENT
        literal = False
        start = end = b""
        for child in node.children:
            if child.type == "heredoc_start":
                start = self._syntax().raw(child)
                literal = any(mark in start for mark in (b"'", b'"', b"\\"))
            elif child.type == "heredoc_end":
                end = self._syntax().raw(child)
            elif child.type == "heredoc_body":
                stream = Stream(self._body(child, literal=literal))
            elif child.type == "file_redirect":
                more += self.file(child)
            elif child.type == "herestring_redirect":
                stream = self.herestring(child)
            elif child.type in LITERALS:
                more += self._words(child)
            elif child.is_named and child.type != "file_descriptor":
                after.append(child)
        self._heredocs += 1
        if self._heredocs > 1 or re.sub(rb"['\"\\]", b"", start) != end.strip():
            # Where one ends and the next begins the grammar and the shell need not agree.
            self._reading.found.add("confirm", "form")
        return stream

    def _body(self, node: Node, *, literal: bool) -> str | None:
        reader = WordReader(self._reading.values, self._syntax())
        text = reader.body(node, literal=literal)
        for inner in reader.nested:
            self._nested(inner)
        if self._reading.expand(reader.names):
            self._reading.found.add("block", "secret_variable", " ".join(sorted(reader.names)))
        if reader.odd:
            self._reading.found.add("confirm", "expansion")
        if literal:
            return text
        # The shell runs what stands in backquotes; to the grammar they are text.
        raw = _ESCAPED.sub("", self._syntax().text(node))
        if "`" not in raw:
            return text
        self._reading.found.add("confirm", "expansion")
        for command in raw.split("`")[1::2]:
            self._read(command)
        return None

    def herestring(self, node: Node) -> Stream:
        """`<<< words`: gives back the text."""
        words = [word for child in node.children if child.is_named for word in self._words(child)]
        for word in words:
            if self._reading.expand(word.variables):
                self._reading.found.add("block", "secret_variable", " ".join(sorted(word.variables)))
        if words and all(word.known for word in words):
            return Stream("".join(word.text for word in words) + "\n")
        return UNSEEN

    def _target(self, sign: str, target: Word) -> None:
        reading, places = self._reading, self._reading.places
        reads = sign in _READS
        if reads:
            self.feeds = True
        reading.inspect(target)
        if target.text.startswith(("/dev/tcp/", "/dev/udp/")):
            reading.sockets = True
            reading.found.add("confirm", "network", target.text.replace(UNKNOWN, "…"))
            return
        if reads:
            reading.check_path(target)
            return
        if places.stream(target.text) and sign != "<>":
            return
        shown = target.text.replace(UNKNOWN, "…")
        reading.found.add("confirm", "redirect", shown)
        paths = reading.targets(target)
        if any(places.device(path) for path in paths):
            reading.found.add("block", "raw_device", shown)
        if not all(places.inside(path) for path in paths):
            reading.found.add("confirm", "outside", shown)
        reading.written.add(target.text)
