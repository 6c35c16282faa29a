"""Tells the options of a command line from its operands."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from agent.amygdala.table import Options
from agent.amygdala.words import UNKNOWN, Word

_NUMBER = re.compile(r"-[0-9]+[bkm]?\Z")
EVERYWHERE = frozenset({"help", "version"})
"""Long options that every listed program takes to say something about itself."""


@dataclass(slots=True)
class Split:
    """The options that were given, with their values, and the operands. `bad`: an option that is not known."""

    given: list[tuple[str, Word | None]] = field(default_factory=list[tuple[str, "Word | None"]])
    operands: list[Word] = field(default_factory=list[Word])
    bad: str = ""

    def values(self, names: frozenset[str]) -> list[Word]:
        """The values of these options."""
        return [value for name, value in self.given if name in names and value is not None]


def split(options: Options, words: Sequence[Word], *, stop: bool = False) -> Split:
    """Reads the arguments of a program. `stop`: the first operand ends its options, as with programs that run another
    command. Options are known by their whole name: a shortened long option is not."""
    found = Split()
    at = 0
    while at < len(words) and not found.bad:
        word = words[at]
        text = word.text
        at += 1
        if text == "--":
            found.operands += words[at:]
            break
        if text == "-" or not text.startswith("-"):
            if text.startswith(UNKNOWN) and not stop:
                found.bad = "…"
            found.operands.append(word)
            if stop:
                found.operands += words[at:]
                break
        elif text.startswith("--"):
            at += _long(options, text[2:], words[at : at + 1], found)
        elif not (options.numbers and _NUMBER.match(text)):
            at += _short(options, text, words[at : at + 1], found)
    return found


def _long(options: Options, text: str, following: Sequence[Word], found: Split) -> int:
    name, equals, value = text.partition("=")
    if equals and name in options.long_values:
        found.given.append((name, Word(value, value, known=UNKNOWN not in value)))
    elif not equals and name in options.long | EVERYWHERE:
        found.given.append((name, None))
    elif not equals and name in options.long_values and following:
        found.given.append((name, following[0]))
        return 1
    else:
        found.bad = f"--{text}"
    return 0


def _short(options: Options, text: str, following: Sequence[Word], found: Split) -> int:
    for at, letter in enumerate(text[1:], 2):
        rest = text[at:]
        if letter in options.flags:
            found.given.append((letter, None))
        elif letter in options.attached or (letter in options.values and rest):
            found.given.append((letter, Word(rest, rest, known=UNKNOWN not in rest)))
            return 0
        elif letter in options.values and following:
            found.given.append((letter, following[0]))
            return 1
        else:
            found.bad = text
            return 0
    return 0
