"""Parses a shell text with the bash grammar of tree-sitter, around what the grammar gets wrong."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

_SHAPE = bytes(byte if byte < 0x80 else ord("Z") for byte in range(256))
_IFS = re.compile(r"\$IFS(?![A-Za-z0-9_])")
_JOINED = re.compile(r"(?<![ \t])\\\n|\n[ \t]*\\|\A[ \t]*\\\n")
_LINE = re.compile(r"\n([ \t]*)\\")
PIECE_BYTES = 128
READS_MAX = 2_000
"""Pieces the grammar may ask for; a plain text of 10 kB takes about 100, and 2,000 about 5 ms."""


class Syntax:
    """A text, at most so long as the caller looks into, and its tree. `odd`: the grammar and the shell do not divide
    it into words alike; it was brought into a form they agree on."""

    def __init__(self, text: str) -> None:
        # The grammar loses a name before some marks.
        text = _IFS.sub("${IFS}", text)
        self.odd = _JOINED.search(text) is not None
        if self.odd:
            # It ends a word where the shell goes on with it, and goes on where the shell begins a line.
            text = _LINE.sub("\n \\1\\\\", text.replace("\\\n", ""))
        self._source = text.encode("utf-8", "replace")
        # Its scanner looks characters up in tables that end at 255 and reads, or crashes, beyond: it gets to see
        # ASCII only. Outside ASCII there is nothing a shell would not take for a letter.
        self._shape = self._source.translate(_SHAPE)
        self._reads = 0
        self.root: Node = _parser().parse(self._piece).root_node

    @property
    def cut(self) -> bool:
        """Whether the grammar was stopped: it goes back and forth over what it cannot read, for half a second if it is
        let. Counted, not timed: the same text is always cut or never."""
        return self._reads > READS_MAX

    def _piece(self, offset: int, _point: object) -> bytes:
        self._reads += 1
        return b"" if self.cut else self._shape[offset : offset + PIECE_BYTES]

    def raw(self, node: Node) -> bytes:
        """The bytes of a node, as they were written."""
        return self._source[node.start_byte : node.end_byte]

    def text(self, node: Node) -> str:
        return self.raw(node).decode("utf-8", "replace")


@cache
def _parser() -> Parser:
    # Loaded with the first command: most runs of the program never need it.
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))
