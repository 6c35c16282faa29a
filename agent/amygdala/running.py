"""Programs that run other commands or texts: wrappers, shells, interpreters, eval, source, trap, alias."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from agent.amygdala.options import split
from agent.amygdala.reading import UNSEEN, Reading, Stream
from agent.amygdala.table import Interpreter, Wrap
from agent.amygdala.words import UNKNOWN, Word

if TYPE_CHECKING:
    from agent.amygdala.findings import Findings

Read = Callable[[str, "Stream | None"], Stream]
Command = Callable[[Sequence[Word], "Stream | None"], Stream]
Scan = Callable[[Sequence[Word], "Stream | None"], None]

_ASSIGNED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\+?=(.*)\Z", re.DOTALL)
_INPUT = frozenset({"-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"})
_MOVES = frozenset({"C", "chdir"})
_PLACEHOLDERS = frozenset({"I", "replace"})
_SAFE_SHELLS = frozenset({"sh", "bash", "dash"})
_UNKNOWN_WORD = Word(UNKNOWN, "*", known=False, plain=False)


class Running:
    """Judges what runs something else. `read` reads a text as a shell would, `command` judges a command, `scan` looks
    for commands among words."""

    def __init__(self, reading: Reading, read: Read, command: Command, scan: Scan) -> None:
        self._reading = reading
        self._read = read
        self._command = command
        self._scan = scan
        self._own: dict[str, Callable[[Sequence[Word], Stream | None], Stream]] = {
            "eval": self._eval,
            "source": self._source,
            ".": self._source,
            "trap": self._trap,
            "alias": self._alias,
            "at": self._later,
            "batch": self._later,
            "crontab": self._later,
        }

    @property
    def _found(self) -> Findings:
        return self._reading.found

    def knows(self, low: str) -> bool:
        """Whether a program of this name runs others."""
        table = self._reading.table
        return low in self._own or low in table.wrap or table.is_shell(low) or table.interpreter(low) is not None

    def run(self, low: str, args: Sequence[Word], feed: Stream | None) -> Stream | None:
        """Judges a program that runs others; None when it is no such one."""
        table = self._reading.table
        if low in self._own:
            return self._own[low](args, feed)
        if table.is_shell(low):
            return self._shell(low, args, feed)
        wrap = table.wrap.get(low)
        if wrap is not None and not (low == "command" and args and args[0].text in {"-v", "-V"}):
            return self._wrap(low, wrap, args, feed)
        interpreter = table.interpreter(low)
        if interpreter is not None and [word.text for word in args] not in (["--version"], ["-V"]):
            return self._interpreter(low, interpreter, args, feed)
        return None

    def _wrap(self, low: str, rule: Wrap, args: Sequence[Word], feed: Stream | None) -> Stream:
        parts = split(rule.options, args, stop=not rule.code_only)
        if rule.ask:
            self._found.add("confirm", rule.ask, low)
        if parts.bad:
            self._unread(low, parts.bad, args, feed)
            return UNSEEN
        codes = parts.values(rule.code)
        rest = parts.operands[rule.skip :]
        if len(rest) > 1 and rest[0].text.startswith("-") and rest[0].text.strip("-") in rule.code:
            codes, rest = [*codes, rest[1]], rest[2:]
        before = self._reading.folders
        if low == "env":
            self._move(parts.values(_MOVES))
        try:
            return self._wrapped(low, rule, codes, rest, parts.values(_PLACEHOLDERS), feed)
        finally:
            self._reading.folders = before

    def _wrapped(
        self,
        low: str,
        rule: Wrap,
        codes: Sequence[Word],
        rest: list[Word],
        placeholders: Sequence[Word],
        feed: Stream | None,
    ) -> Stream:
        for code in codes:
            self._text(code, feed)
        while rule.assign and rest and (found := _ASSIGNED.match(rest[0].text)):
            self._assign(found[1], found[2])
            rest = rest[1:]
        if rule.input:
            rest = _with_input(rest, placeholders, low)
        if rest and not rule.code_only:
            return self._text_of(rest, feed) if rule.joined else self._command(rest, feed)
        if low == "env" and not codes:
            self._found.add("block", "environment")
        elif not codes and not rule.ask:
            self._found.add("confirm", "option", low)
        return UNSEEN

    def _move(self, targets: Sequence[Word]) -> None:
        """`env -C` runs its command in another folder."""
        reading = self._reading
        for target in targets:
            reading.check_path(target)
            reading.folders = frozenset(reading.places.real(target.text, folder) for folder in reading.folders)

    def _unread(self, low: str, option: str, args: Sequence[Word], feed: Stream | None) -> None:
        """A wrapper with an option that is not known: a command may begin anywhere."""
        self._found.add("confirm", "option", f"{low} {option}".replace(UNKNOWN, "…"))
        self._scan(args, feed)
        for word in args:
            if re.search(r"\s", word.text):
                self._text(word)

    def _assign(self, name: str, value: str) -> None:
        table = self._reading.table
        if not table.settable.fullmatch(name) or (name.isupper() and not table.settable_value.fullmatch(value)):
            self._found.add("confirm", "assigns", name)

    def _shell(self, low: str, args: Sequence[Word], feed: Stream | None) -> Stream:
        self._reading.runs_shell = True
        texts = [word.text for word in args]
        if low in {"pwsh", "powershell", "cmd"}:
            self._reading.run_hidden()
            for word in args:
                self._rules(word.text)
                self._text(word)
            return UNSEEN
        if texts in (["--version"], ["--help"]):
            return UNSEEN
        at = 0
        code = from_input = False
        while at < len(texts) and texts[at][:1] in {"-", "+"} and texts[at] != "-":
            text = texts[at]
            at += 1
            if text == "--":
                break
            if text in self._reading.table.shell_values:
                at += 1
            elif not text.startswith("--"):
                code = code or "c" in text or UNKNOWN in text
                from_input = from_input or "s" in text
        if code:
            if texts[:-1] != ["-c"] or low not in _SAFE_SHELLS:
                self._found.add("confirm", "runs_code", low)
            if at >= len(args):
                self._reading.run_hidden()
                return UNSEEN
            return self._text(args[at], feed)
        self._found.add("confirm", "runs_code", low)
        if at < len(args) and not from_input and texts[at] not in _INPUT:
            return self._file(args[at])
        return self._input(feed)

    def _file(self, word: Word) -> Stream:
        if UNKNOWN in word.text or word.text.startswith("/dev/fd/"):
            self._reading.run_hidden()
        else:
            self._reading.run_file(word.text)
        return UNSEEN

    def _input(self, feed: Stream | None) -> Stream:
        """A shell runs what it reads."""
        if feed is None:
            return UNSEEN
        if feed.text is None:
            self._reading.run_hidden()
            return UNSEEN
        return self._read(feed.text, None)

    def _text(self, word: Word, feed: Stream | None = None) -> Stream:
        """A word that is run as shell text."""
        if UNKNOWN in word.text:
            self._reading.run_hidden()
        return self._read(word.text.replace(UNKNOWN, "${_}"), feed)

    def _text_of(self, words: Sequence[Word], feed: Stream | None) -> Stream:
        text = " ".join(word.text for word in words)
        known = all(word.known and not word.globs for word in words)
        return self._text(Word(text, text, known=known), feed)

    def _interpreter(self, low: str, rule: Interpreter, args: Sequence[Word], feed: Stream | None) -> Stream:
        self._found.add("confirm", "runs_code", low)
        at = 0
        while at < len(args):
            text = args[at].text
            at += 1
            if text in _INPUT:
                break
            if not text.startswith("-"):
                if text not in rule.words:
                    return self._program(args[at - 1])
                if text == "eval":
                    return self._code("", args, at)
                continue
            found = _program_option(rule, text)
            if found == "module":
                return UNSEEN
            if found is not None:
                return self._code(found, args, at)
            at += not text.startswith("--") and text[-1] in rule.values
        if feed is not None and feed.text is None:
            self._reading.run_hidden()
        elif feed is not None and feed.text:
            self._rules(feed.text)
        return UNSEEN

    def _program(self, word: Word) -> Stream:
        if "://" in word.text:
            self._reading.downloads = True
            self._reading.run_hidden()
        return self._file(word)

    def _code(self, attached: str, args: Sequence[Word], at: int) -> Stream:
        text = attached or (args[at].text if at < len(args) else UNKNOWN)
        if UNKNOWN in text:
            self._reading.run_hidden()
        self._rules(text)
        return UNSEEN

    def _rules(self, text: str) -> None:
        for rule in self._reading.table.code:
            found = rule.pattern.search(text)
            if found and (rule.also is None or rule.also.search(text)):
                self._found.add(rule.level, rule.reason, found[0])

    def _eval(self, args: Sequence[Word], feed: Stream | None) -> Stream:
        self._found.add("confirm", "runs_code", "eval")
        return self._text_of(args, feed) if args else UNSEEN

    def _source(self, args: Sequence[Word], feed: Stream | None) -> Stream:
        if args and args[0].text in _INPUT:
            self._found.add("confirm", "runs_code", "source")
            return self._input(feed)
        return self._file(args[0]) if args else UNSEEN

    def _trap(self, args: Sequence[Word], feed: Stream | None) -> Stream:
        self._found.add("confirm", "state", "trap")
        if len(args) > 1:
            self._text(args[0])
        return UNSEEN

    def _alias(self, args: Sequence[Word], feed: Stream | None) -> Stream:
        self._found.add("confirm", "defines")
        for word in args:
            _, equals, value = word.text.partition("=")
            if equals:
                self._text(Word(value, value, known=UNKNOWN not in value))
        return UNSEEN

    def _later(self, args: Sequence[Word], feed: Stream | None) -> Stream:
        self._found.add("confirm", "schedules", "at")
        if feed is not None:
            self._input(feed)
        return UNSEEN


def _program_option(rule: Interpreter, text: str) -> str | None:
    """What an option of an interpreter gives: "module", or the text written on to a code option (empty: it is the
    next argument). None for other options."""
    if text.startswith("--"):
        name, _, value = text[2:].partition("=")
        return value if name in rule.code else None
    for at, letter in enumerate(text[1:], 2):
        if letter in rule.code:
            return text[at:]
        if letter in rule.module:
            return "module"
        if letter in rule.values:
            break
    return None


def _with_input(words: Sequence[Word], placeholders: Sequence[Word], low: str) -> list[Word]:
    """The command of xargs and its like, with what comes in where it is put: unknown, at the end too."""
    marks = [word.text for word in placeholders if word.text] or ["{}"]
    filled = [_without(word, marks) for word in words]
    return [*filled, _UNKNOWN_WORD] if filled or low != "xargs" else filled


def _without(word: Word, placeholders: Sequence[str]) -> Word:
    """The word with what is put in for a placeholder unknown."""
    text = word.text
    for placeholder in placeholders:
        text = text.replace(placeholder, UNKNOWN)
    return word if text == word.text else Word(text, text, known=False, plain=False)
