"""Reads a shell command as the shell would and says whether it may run: safe, to be confirmed, or blocked.

The text is parsed with the bash grammar of tree-sitter; what the grammar cannot read, and every form that is not
known here, must be confirmed. The work is bounded by the length and the marks of the text, never by the clock: the
same command always gets the same verdict.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from glob import escape
from typing import TYPE_CHECKING

from agent.amygdala.findings import Findings
from agent.amygdala.judge import Judge
from agent.amygdala.lookalikes import hidden
from agent.amygdala.places import Places
from agent.amygdala.reading import SILENT, UNSEEN, Reading, Stream
from agent.amygdala.redirects import Redirects
from agent.amygdala.special import SUMMING
from agent.amygdala.syntax import Syntax
from agent.amygdala.words import LITERALS, Word, WordReader
from agent.limits import COMMAND_BYTES_MAX, COMMAND_DEPTH_MAX, COMMAND_MARKS_MAX, COMMAND_NODES_MAX

if TYPE_CHECKING:
    from tree_sitter import Node

_MARKS = tuple("|<>($`[{&")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_CONTROLS_MAX = 4
"""A text with more of them is no command, but what something else was decoded to."""
_BACKQUOTED = re.compile(r'\\([$`"\\])')
_GROUPS = frozenset(
    {"program", "compound_statement", "subshell", "do_group", "if_statement", "elif_clause", "else_clause"}
)
_UNCHANGING = frozenset({"word", "number", "raw_string"})
"""Kinds of word that mean the same wherever they stand."""
_TESTING = frozenset({"[", "]", "[[", "]]", "!", "=", "==", "!="})


def classify_command(command: str, places: Places) -> Findings:
    """What is found in a command that a shell runs with the workspace as its folder. Never raises; reads the file
    system to follow links, changes nothing."""
    reading = Reading(places)
    reader = ShellReader(reading)
    reader.read(command)
    reading.settle()
    return reading.found


def classify_arguments(words: Sequence[str], places: Places) -> Findings:
    """The same for a program that is started with these arguments, without a shell."""
    reading = Reading(places)
    ShellReader(reading).run([Word(word, escape(word)) for word in words])
    reading.settle()
    return reading.found


@dataclass(frozen=True, slots=True)
class _Added:
    """What redirections that stand outside a statement give it: its input and further words."""

    stdin: Stream | None
    words: list[Word]


class ShellReader:
    """Walks the syntax tree of a command and of every text inside it that is a command too.

    Each method takes what a statement reads from its input and gives back what it writes, where that is known as
    text: so `echo ... | base64 -d | sh` is seen through.
    """

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._depth = 0
        self._words: dict[bytes, list[Word]] = {}
        self._added: dict[int, _Added] = {}
        self._syntax = Syntax("")
        self._judge = Judge(reading, self.read)
        self._redirects = Redirects(reading, self.words, self._nested, self.read, lambda: self._syntax)
        self._handlers = {
            **dict.fromkeys(_GROUPS, self._group),
            "list": self._list,
            "pipeline": self._pipeline,
            "negated_command": self._group,
            "command": self._command,
            "redirected_statement": self._redirected,
            "variable_assignment": self._assignment,
            "variable_assignments": self._group,
            "declaration_command": self._declaration,
            "test_command": self._test,
            "for_statement": self._for,
            "function_definition": self._function,
            "comment": self._nothing,
        }

    def read(self, text: str, feed: Stream | None = None) -> Stream:
        """Reads one text. Texts inside it come back here; together they have a bounded size."""
        reading = self._reading
        size = len(text.encode("utf-8", "replace"))
        reading.bytes_left -= size + 1
        long = size > COMMAND_BYTES_MAX or reading.bytes_left < 0
        if long or sum(map(text.count, _MARKS)) > COMMAND_MARKS_MAX:
            reading.found.add("confirm", "involved")
            return UNSEEN
        controls = len(_CONTROLS.findall(text))
        if controls:
            reading.found.add("confirm", "control")
            if controls > _CONTROLS_MAX or "\0" in text:
                return UNSEEN
        if not text.isascii() and any(map(hidden, text)):
            reading.found.add("confirm", "invisible")
        syntax = Syntax(text)
        if syntax.cut or syntax.root.descendant_count > COMMAND_NODES_MAX:
            reading.found.add("confirm", "involved")
            return UNSEEN
        if syntax.odd or syntax.root.has_error:
            reading.found.add("confirm", "unreadable")
        outer = self._syntax, self._added
        self._syntax, self._added = syntax, {}
        try:
            return self._visit(syntax.root, feed)
        finally:
            self._syntax, self._added = outer

    def run(self, words: list[Word]) -> None:
        """Judges one command whose words are known."""
        self._judge.command(words, None)

    def words(self, node: Node) -> list[Word]:
        """The words a node stands for, after the commands inside them were read."""
        raw = self._syntax.raw(node) if node.type in _UNCHANGING else b""
        if raw in self._words:
            return self._words[raw]
        reader = WordReader(self._reading.values, self._syntax)
        words = reader.read(node)
        odd = reader.odd
        if raw and not odd:
            self._words[raw] = words
        for inner in reader.nested:
            self._nested(inner)
        if odd:
            self._reading.found.add("confirm", "expansion")
        if node.type == "process_substitution" and len(words) == 1 and self._syntax.text(node).startswith("<("):
            # A stream the program reads; what runs to fill it was judged.
            return [Word("/dev/fd/63", "/dev/fd/63", plain=False)]
        return words

    def _nested(self, node: Node) -> None:
        text = self._syntax.text(node)
        if text.startswith(">("):
            self._reading.found.add("confirm", "form")
        if text.startswith("`") and "\\" in text:
            # The shell takes these escapes off before it reads what is inside; the grammar does not.
            self._reading.found.add("confirm", "unreadable")
            self.read(_BACKQUOTED.sub(r"\1", text.strip("`")))
        folders = self._reading.folders
        self._group(node, None)
        self._reading.folders = folders | self._reading.folders

    def _visit(self, node: Node, feed: Stream | None) -> Stream:
        self._depth += 1
        try:
            if self._depth > COMMAND_DEPTH_MAX:
                self._reading.found.add("confirm", "involved")
                return UNSEEN
            added = self._added.pop(node.id, None)
            if added is not None:
                feed = added.stdin or feed
                if node.type == "command":
                    return self._command(node, feed, added.words)
                if added.words:
                    self._reading.found.add("confirm", "form")
                    self._judge.command(added.words, feed)
            return self._handlers.get(node.type, self._other)(node, feed)
        finally:
            self._depth -= 1

    def _nothing(self, node: Node, feed: Stream | None) -> Stream:
        return SILENT

    def _group(self, node: Node, feed: Stream | None) -> Stream:
        """Statements one after the other."""
        said: list[Stream] = []
        self._gaps(node)
        for child in node.children:
            if child.is_named:
                said.append(self._visit(child, feed))
            elif child.type == "&":
                self._reading.found.add("confirm", "background")
        return _joined(said)

    def _list(self, node: Node, feed: Stream | None) -> Stream:
        """`a && b || c`: after a change of folder that worked, the new folder is the only one."""
        steps: list[tuple[str, Node]] = []
        while node.type == "list":
            self._gaps(node)
            parts = [child for child in node.children if child.type != "comment"]
            if len(parts) != 3:
                return self._other(node, feed)
            left, sign, step = parts
            steps.append((sign.type, step))
            node = left
        before = self._reading.folders
        self._reading.moved_to = None
        said = [self._visit(node, feed)]
        for sign, step in reversed(steps):
            if sign == "&&" and self._reading.moved_to is not None:
                self._reading.folders = self._reading.moved_to
            self._reading.moved_to = None
            said.append(self._visit(step, feed))
        self._reading.folders |= before
        return _joined(said)

    def _pipeline(self, node: Node, feed: Stream | None) -> Stream:
        self._gaps(node)
        for child in node.children:
            if child.is_named:
                feed = self._visit(child, feed)
        return feed or UNSEEN

    def _command(self, node: Node, feed: Stream | None, more: list[Word] | None = None) -> Stream:
        words: list[Word] = []
        self._gaps(node)
        end = -1
        for child in node.children:
            if child.start_byte == end:
                # Two words with nothing between them: the shell will see one.
                self._reading.found.add("confirm", "unreadable")
            end = child.end_byte
            if child.type == "command_name":
                words += self.words(child.children[0] if child.children else child)
            elif child.type == "variable_assignment":
                self._assignment(child, None)
            elif child.type == "herestring_redirect":
                feed = self._redirects.herestring(child)
            elif child.type in {"file_redirect", "heredoc_redirect"}:
                words += self._redirects.file(child)
            elif child.type in LITERALS or not child.is_named:
                words += self.words(child)
            else:
                self._reading.found.add("confirm", "form")
                self._visit(child, None)
        return self._judge.command([*words, *(more or ())], feed)

    def _redirected(self, node: Node, feed: Stream | None) -> Stream:
        """A statement with redirections. The grammar puts words, a pipe and what follows a heredoc's mark inside it."""
        self._gaps(node)
        body: Node | None = None
        stdin: Stream | None = None
        after: list[Node] = []
        words: list[Word] = []
        for child in node.children:
            if child.type == "file_redirect":
                words += self._redirects.file(child)
            elif child.type == "herestring_redirect":
                stdin = self._redirects.herestring(child)
            elif child.type == "heredoc_redirect":
                stdin = self._redirects.heredoc(child, words, after)
            elif child.is_named and body is None:
                body = child
            else:
                self._reading.found.add("confirm", "form")
        if self._redirects.feeds:
            stdin = UNSEEN
            self._redirects.feeds = False
        if body is None:
            out = self._judge.command(words, stdin or feed)
        else:
            self._added[_last(body).id] = _Added(stdin, words)
            out = self._visit(body, feed)
        for step in after:
            out = self._visit(step, out)
        return out

    def _assignment(self, node: Node, feed: Stream | None) -> Stream:
        """`name=value`; harmless when nothing obeys the name."""
        name = self._syntax.text(node.children[0]) if node.children else ""
        words = [word for child in node.children[1:] if child.is_named for word in self._value(child)]
        self._judge.assign(name, words, simple=all(child.type in LITERALS for child in node.children if child.is_named))
        return SILENT

    def _value(self, node: Node) -> list[Word]:
        if node.type in LITERALS:
            return self.words(node)
        self._reading.found.add("confirm", "form")
        return [word for child in node.children if child.type in LITERALS for word in self.words(child)]

    def _declaration(self, node: Node, feed: Stream | None) -> Stream:
        """`export`, `declare`, `local`, `readonly`: without a value they list what is set."""
        words: list[Word] = []
        assigned = False
        for child in node.children[1:]:
            if child.type == "variable_assignment":
                assigned = True
                self._assignment(child, None)
            elif child.type in LITERALS:
                words += self.words(child)
        if not assigned and all(word.text.startswith("-") and not set(word.text) & set("fFu") for word in words):
            self._reading.found.add("block", "environment")
        self._reading.found.add("confirm", "state", self._syntax.text(node.children[0]))
        return UNSEEN

    def _test(self, node: Node, feed: Stream | None) -> Stream:
        """`[ ... ]`: names of files inside the workspace, texts and whole numbers."""
        words: list[Word] = []
        summing = False
        waiting = list(node.children)
        while waiting:
            child = waiting.pop()
            if child.type in LITERALS:
                words += self.words(child)
            elif child.child_count:
                waiting += child.children
            else:
                sign = self._syntax.text(child)
                summing = summing or sign in SUMMING
                if child.type != "test_operator" and sign not in _TESTING:
                    self._reading.found.add("confirm", "form")
        self._judge.test(words, summing=summing)
        return SILENT

    def _for(self, node: Node, feed: Stream | None) -> Stream:
        for child in node.children:
            if child.type == "variable_name":
                name = self._syntax.text(child)
                self._judge.assign(name, [], simple=True)
            elif child.type in LITERALS:
                self.words(child)
            elif child.type == "do_group":
                self._visit(child, feed)
            elif child.is_named or child.type == "select":
                self._reading.found.add("confirm", "form")
                self._visit(child, feed)
        return UNSEEN

    def _function(self, node: Node, feed: Stream | None) -> Stream:
        """A function; one that calls itself side by side with itself never ends."""
        self._reading.found.add("confirm", "defines")
        name = next((self._syntax.text(child) for child in node.children if child.type == "word"), "")
        calls = splits = 0
        waiting = list(node.children)
        while waiting:
            child = waiting.pop()
            calls += child.type == "command_name" and self._syntax.text(child) == name
            splits += child.type in {"&", "|", "|&"}
            waiting += child.children
        if calls and (splits or calls > 1):
            self._reading.found.add("block", "fork_bomb")
        for child in node.children:
            if child.is_named and child.type != "word":
                self._visit(child, None)
        return UNSEEN

    def _other(self, node: Node, feed: Stream | None) -> Stream:
        """Any other form must be confirmed; what is in it is read all the same."""
        self._reading.found.add(
            "confirm", "loop" if node.type in {"while_statement", "c_style_for_statement"} else "form"
        )
        if node.type in LITERALS:
            self._judge.command(self.words(node), feed)
            return UNSEEN
        for child in node.children:
            if child.is_named:
                self._visit(child, feed)
        return UNSEEN

    def _gaps(self, node: Node) -> None:
        """Between the parts of a statement there is white space only: all of the text was read."""
        source, start = self._syntax.raw(node), node.start_byte
        end = start
        for child in node.children:
            gap = source[end - start : child.start_byte - start]
            if gap and gap.replace(b"\\\n", b"").strip(b" \t\n"):
                self._reading.found.add("confirm", "unreadable")
            end = child.end_byte


def _joined(streams: list[Stream]) -> Stream:
    texts = [stream.text for stream in streams if stream.text is not None]
    return Stream("".join(texts)) if len(texts) == len(streams) else UNSEEN


def _last(node: Node) -> Node:
    """The statement that a redirection after this one belongs to."""
    while node.type in {"pipeline", "list", "negated_command"}:
        named = [child for child in node.children if child.is_named and child.type != "comment"]
        if not named:
            break
        node = named[-1]
    return node
