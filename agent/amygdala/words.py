"""Words of a shell command as the shell would see them: quotes taken off, escapes read, what is expanded marked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple

from agent.amygdala.syntax import Syntax

if TYPE_CHECKING:
    from tree_sitter import Node

UNKNOWN = "\ue000"
"""Stands in a word for what is known only when the command runs."""
BRACES_MAX = 64
"""A word is spelt out into at most so many by its braces; the rest is unknown."""

LITERALS = frozenset(
    {
        "word",
        "number",
        "string",
        "raw_string",
        "ansi_c_string",
        "translated_string",
        "concatenation",
        "simple_expansion",
        "expansion",
        "command_substitution",
        "process_substitution",
        "arithmetic_expansion",
        "brace_expression",
        "extglob_pattern",
        "regex",
        "variable_name",
    }
)
"""The kinds of node that stand for words."""
_NESTED = frozenset({"command_substitution", "process_substitution"})
_EXPANSIONS = frozenset({"simple_expansion", "expansion", "arithmetic_expansion", *_NESTED})
_SIMPLE = re.compile(r"\$(?:([A-Za-z_][A-Za-z0-9_]*|[0-9*@#?$!-])|\{([A-Za-z_][A-Za-z0-9_]*|[0-9]+|[*@#?$!-])\})\Z")
_SEPARATOR = re.compile(r"\$(?:IFS\Z|\{IFS(?![A-Za-z0-9_]))")
_ESCAPED = re.compile(r"\\(.)|\\\n", re.DOTALL)
_ESCAPED_IN_STRING = re.compile(r'\\([$`"\\])|\\\n')
_ESCAPED_IN_HEREDOC = re.compile(r"\\([$`\\])|\\\n")
_ANSI = re.compile(
    r"\\(?:([abeEfnrtv\\'\"?])|([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|c(.))",
    re.DOTALL,
)
_ANSI_LETTERS = {"a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_GLOB = re.compile(r"[*?\[]")
_SPECIAL = re.compile(r"[\\*?\[{~]")
_SUMS = frozenset({"number", "binary_expression", "unary_expression", "parenthesized_expression"})


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a command.

    `text`: what the program gets, with UNKNOWN for what is expanded when it runs. `pattern`: the same as a file name
    pattern, UNKNOWN as `*`. `known`: nothing is expanded but file name patterns. `plain`: written as it is meant.
    `globs`: holds a file name pattern. `variables`: the names it expands.
    """

    text: str
    pattern: str
    known: bool = True
    plain: bool = True
    globs: bool = False
    variables: frozenset[str] = frozenset()


class _Piece(NamedTuple):
    text: str
    kind: Literal["bare", "quoted", "unknown", "separator"]


class WordReader:
    """Reads words out of a syntax tree. `values` are the variables whose value is known.

    After each `read`, `nested` holds the substitutions that were met and `odd` says whether an expansion was met that
    can do more than give a value.
    """

    def __init__(self, values: Mapping[str, str], syntax: Syntax) -> None:
        self._values = values
        self._syntax = syntax
        self.nested: list[Node] = []
        self.names: set[str] = set()
        self.odd = False

    def read(self, node: Node) -> list[Word]:
        """The words one node stands for: more than one by braces or the field separator, none for an empty one."""
        self.nested, self.odd = [], False
        raw = self._syntax.text(node)
        if node.type in {"word", "number"} and not _SPECIAL.search(raw):
            return [Word(raw, raw)]
        pieces: list[_Piece] = []
        names: set[str] = set()
        self._pieces(node, pieces, names)
        if any(
            "$" in piece.text.removesuffix("$" if piece is pieces[-1] else "")
            for piece in pieces
            if piece.kind == "bare"
        ):
            # The grammar takes some forms that begin with a dollar for the sign itself.
            self.odd = True
            pieces.append(_Piece("", "unknown"))
        groups: list[list[_Piece]] = [[]]
        for piece in pieces:
            if piece.kind == "separator":
                groups.append([])
            else:
                groups[-1].append(piece)
        split = len(groups) > 1
        words: list[Word] = []
        for group in groups:
            if group or not split:
                spelt, cut = spell_out(group)
                words += [self._word(one, raw, split or cut or len(spelt) > 1, names) for one in spelt]
        return words

    def body(self, node: Node, *, literal: bool) -> str | None:
        """The text of a heredoc; None when something is expanded in it, which in a `literal` one nothing is. Sets
        `nested`, `odd` and, as `names`, the variables in it."""
        self.nested, self.names, self.odd = [], set(), False
        if literal:
            return self._syntax.text(node)
        pieces: list[_Piece] = []
        self._string(node, pieces, self.names, 0, 0, _ESCAPED_IN_HEREDOC)
        if any(piece.kind != "quoted" for piece in pieces):
            return None
        return "".join(piece.text for piece in pieces)

    def _word(self, pieces: list[_Piece], raw: str, split: bool, names: set[str]) -> Word:
        if pieces and pieces[0].kind == "bare" and pieces[0].text.startswith("~"):
            name, slash, rest = pieces[0].text.partition("/")
            pieces = [_Piece(self._home(name[1:]), "quoted"), _Piece(slash + rest, "bare"), *pieces[1:]]
        text = "".join(UNKNOWN if piece.kind == "unknown" else piece.text for piece in pieces)
        pattern = "".join(
            "*" if kind == "unknown" else part if kind == "bare" else _GLOB.sub(r"[\g<0>]", part)
            for part, kind in pieces
        )
        return Word(
            text=text,
            pattern=pattern,
            known=UNKNOWN not in text and not split,
            plain=text == raw,
            globs=any(piece.kind == "bare" and _GLOB.search(piece.text) for piece in pieces),
            variables=frozenset(names),
        )

    def _home(self, name: str) -> str:
        if not name:
            return self._values.get("HOME", UNKNOWN)
        if name == "root":
            return "/root"
        return f"/home/{name}" if name[:1].isalpha() else UNKNOWN

    def _pieces(self, node: Node, out: list[_Piece], names: set[str]) -> None:
        kind = node.type
        raw = self._syntax.text(node)
        if kind in {"word", "number", "variable_name", "file_descriptor"} and not node.named_child_count:
            _bare(raw, out)
            # No word of a shell holds the end of a line.
            self.odd = self.odd or "\n" in _ESCAPED.sub("", raw)
        elif kind == "raw_string":
            out.append(_Piece(raw[1:-1], "quoted"))
        elif kind == "ansi_c_string":
            out.append(_Piece(_ANSI.sub(_ansi, raw[2:-1]), "quoted"))
        elif kind == "string":
            self._string(node, out, names, 1, 1, _ESCAPED_IN_STRING)
        elif kind in {"concatenation", "translated_string", "command_name"}:
            end = node.start_byte
            for child in node.children:
                if child.start_byte > end:
                    out.append(_Piece("", "unknown"))
                if child.is_named or kind == "concatenation":
                    self._pieces(child, out, names)
                end = child.end_byte
        elif kind in _EXPANSIONS:
            self._expansion(node, out, names, quoted=False)
        elif not node.is_named and len(raw) == 1:
            out.append(_Piece(raw, "bare"))
        else:
            self._unknown(node, out)

    def _string(
        self, node: Node, out: list[_Piece], names: set[str], head: int, tail: int, escaped: re.Pattern[str]
    ) -> None:
        """A text in double quotes, or a heredoc: all between the expansions is literal."""
        source = self._syntax.raw(node)
        at = head
        for child in node.children:
            if child.type in _EXPANSIONS:
                start = child.start_byte - node.start_byte
                out.append(_Piece(_unescaped(source[at:start], escaped), "quoted"))
                self._expansion(child, out, names, quoted=True)
                at = child.end_byte - node.start_byte
        out.append(_Piece(_unescaped(source[at : len(source) - tail], escaped), "quoted"))

    def _expansion(self, node: Node, out: list[_Piece], names: set[str], *, quoted: bool) -> None:
        raw = self._syntax.text(node)
        if node.type in _NESTED:
            self.nested.append(node)
            out.append(_Piece("", "unknown"))
            return
        if node.type == "arithmetic_expansion":
            # Names in a sum can hold sums of their own, which can run commands.
            if any(child.type not in _SUMS for child in _below(node) if child.is_named):
                self._unknown(node, out)
            else:
                out.append(_Piece("", "unknown"))
            return
        simple = _SIMPLE.match(raw)
        if not quoted and _SEPARATOR.match(raw):
            names.add("IFS")
            out.append(_Piece("", "separator"))
        elif simple:
            name = simple[1] or simple[2]
            names.add(name)
            value = self._values.get(name)
            if value is None or (not quoted and re.search(r"[\s*?\[]", value)):
                out.append(_Piece("", "unknown"))
            else:
                out.append(_Piece(value, "quoted"))
        else:
            names.update(self._syntax.text(child) for child in _below(node) if child.type == "variable_name")
            self._unknown(node, out)

    def _unknown(self, node: Node, out: list[_Piece]) -> None:
        self.odd = True
        self.nested += [child for child in _below(node, _NESTED) if child.type in _NESTED]
        out.append(_Piece("", "unknown"))


def spell_out(pieces: list[_Piece]) -> tuple[list[list[_Piece]], bool]:
    """The words that braces make of one: `a{b,c}` is `ab` and `ac`. True: it was too much, or a range; then an
    unknown part stands for the braces."""
    if not any(piece.kind == "bare" and "{" in piece.text for piece in pieces):
        return [pieces], False
    if any(piece.kind == "bare" and ".." in piece.text for piece in pieces):
        return [[*pieces, _Piece("", "unknown")]], True
    items: list[_Piece] = []
    for piece in pieces:
        items += (_Piece(char, "bare") for char in piece.text) if piece.kind == "bare" else (piece,)
    return _braces(items, BRACES_MAX)


def _braces(items: list[_Piece], most: int) -> tuple[list[list[_Piece]], bool]:
    found = _first_braces(items)
    if found is None:
        return [_joined(items)], False
    start, commas, end = found
    if most < len(commas) + 1:
        return [_joined([*items[:start], _Piece("", "unknown"), *items[end + 1 :]])], True
    words: list[list[_Piece]] = []
    cut = False
    marks = [start, *commas, end]
    for left, right in pairwise(marks):
        more, over = _braces([*items[:start], *items[left + 1 : right], *items[end + 1 :]], most // (len(commas) + 1))
        words += more
        cut = cut or over
    return words, cut


def _first_braces(items: list[_Piece]) -> tuple[int, list[int], int] | None:
    """Where the first pair of braces with a comma begins, its commas and its end."""
    opened: list[tuple[int, list[int]]] = []
    best: tuple[int, list[int], int] | None = None
    for at, piece in enumerate(items):
        if piece.kind != "bare":
            continue
        if piece.text == "{":
            opened.append((at, []))
        elif piece.text == "," and opened:
            opened[-1][1].append(at)
        elif piece.text == "}" and opened:
            start, commas = opened.pop()
            if commas and (best is None or start < best[0]):
                best = (start, commas, at)
    return best


def _joined(items: Iterable[_Piece]) -> list[_Piece]:
    joined: list[_Piece] = []
    for piece in items:
        if joined and piece.kind == joined[-1].kind and piece.kind in {"bare", "quoted"}:
            joined[-1] = _Piece(joined[-1].text + piece.text, piece.kind)
        else:
            joined.append(piece)
    return joined


def decode_escapes(text: str) -> str:
    """The escapes of `$'...'`, which `echo -e` and `printf` know too."""
    return _ANSI.sub(_ansi, text)


def _bare(raw: str, out: list[_Piece]) -> None:
    at = 0
    for found in _ESCAPED.finditer(raw):
        if found.start() > at:
            out.append(_Piece(raw[at : found.start()], "bare"))
        if found[1] is not None and found[1] != "\n":
            out.append(_Piece(found[1], "quoted"))
        at = found.end()
    if at < len(raw):
        out.append(_Piece(raw[at:], "bare"))


def _unescaped(source: bytes, escaped: re.Pattern[str]) -> str:
    return escaped.sub(lambda found: found[1] or "", source.decode("utf-8", "replace"))


def _ansi(found: re.Match[str]) -> str:
    letter, octal, hexadecimal, short, long, control = found.groups()
    if letter:
        return _ANSI_LETTERS.get(letter, letter)
    if control:
        return chr(ord(control) & 0x1F)
    number = int(octal, 8) & 0xFF if octal else int(hexadecimal or short or long, 16)
    return chr(number) if number <= 0x10FFFF else UNKNOWN


def _below(node: Node, stop: frozenset[str] = frozenset()) -> Iterable[Node]:
    """All nodes under one; not those inside a node of a type in `stop`."""
    waiting = list(node.children)
    while waiting:
        child = waiting.pop()
        yield child
        if child.type not in stop:
            waiting += child.children
