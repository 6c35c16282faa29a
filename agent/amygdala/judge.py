"""Judges one simple command: which program it is, and whether these arguments of it are harmless."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from agent.amygdala import outputs, special
from agent.amygdala.findings import Findings
from agent.amygdala.options import split
from agent.amygdala.reading import SILENT, UNSEEN, Reading, Stream
from agent.amygdala.running import Running
from agent.amygdala.table import Refuse, Safe
from agent.amygdala.words import UNKNOWN, Word
from agent.limits import COMMAND_DEPTH_MAX

Read = Callable[[str, "Stream | None"], Stream]

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_.+:\[-]+\Z")
_KEYED = frozenset({"ssh", "scp", "sftp", "rsync"})
"""Use a key that is named with -i, and do not show it."""
_TESTED = re.compile(r"[$`\[]")


class Judge:
    """Judges commands. `read` reads a text that a shell would run."""

    def __init__(self, reading: Reading, read: Read) -> None:
        self._reading = reading
        self._depth = 0
        self._running = Running(reading, read, self.command, self._scan)

    def command(self, words: Sequence[Word], feed: Stream | None) -> Stream:
        """One program with its arguments; `feed` is what it reads. Gives back what it writes."""
        if not words:
            return SILENT
        self._reading.moved_to = None
        self._depth += 1
        try:
            self._reading.words_left -= len(words)
            if self._depth > COMMAND_DEPTH_MAX or self._reading.words_left < 0:
                self._reading.found.add("confirm", "involved")
                return UNSEEN
            return self._command(words[0], words[1:], feed)
        finally:
            self._depth -= 1

    def assign(self, name: str, values: Sequence[Word], *, simple: bool) -> None:
        """`name=value`: harmless for names that nothing obeys."""
        reading = self._reading
        plain = reading.table.settable.fullmatch(name) is not None
        for word in values:
            plain = plain and (not name.isupper() or reading.table.settable_value.fullmatch(word.text) is not None)
            if reading.expand(word.variables):
                reading.found.add("confirm", "expansion")
        if not plain or not simple:
            reading.found.add("confirm", "assigns", name)
        reading.assigned.add(name)

    def test(self, words: Sequence[Word], *, summing: bool) -> None:
        """The words of a test: literal, no sums that could run something, files inside the workspace."""
        reading = self._reading
        for word in words:
            reading.inspect(word)
            if not word.known or word.globs or _TESTED.search(word.text) or (summing and not _number(word)):
                reading.expand(word.variables)
                reading.found.add("confirm", "expansion")
            elif "/" in word.text or word.text.startswith((".", "~")):
                reading.check_path(word)

    def _command(self, head: Word, args: Sequence[Word], feed: Stream | None) -> Stream:
        reading = self._reading
        secret = reading.expand(head.variables)
        name = head.text
        base = name.rpartition("/")[2]
        low = base.lower()
        for at, word in enumerate(args):
            if word.variables:
                secret = reading.expand(word.variables) or secret
            if not (low in _KEYED and (word.text.startswith("-i") or (at and args[at - 1].text == "-i"))):
                reading.inspect(word)
        if UNKNOWN in name or head.globs:
            reading.found.add("confirm", "made_up")
            reading.runs_hidden = reading.runs_hidden or UNKNOWN in name
            self._scan(args, feed)
            return UNSEEN
        if not head.known:
            reading.found.add("confirm", "made_up")
        elif not name.isascii():
            reading.found.add("confirm", "foreign", name)
        elif not head.plain:
            reading.found.add("confirm", "disguised", name)
        if secret and base in reading.table.safe:
            reading.found.add("block", "secret_variable", " ".join(sorted({v for w in args for v in w.variables})))
        self._programs(name, base, low, args)
        return self._dispatch(name, base, low, args, feed)

    def _programs(self, name: str, base: str, low: str, args: Sequence[Word]) -> None:
        """What counts for any program by its name: refused ones, writing to devices, bringing text from elsewhere."""
        reading = self._reading
        refused = reading.table.refused(low)
        if refused is not None and _is_refused(refused, args):
            reading.found.add("block", refused.reason, base)
        special.devices(reading, low, args)
        special.downloads(reading, low, args)
        if "/" in name:
            reading.run_file(name)

    def _dispatch(self, name: str, base: str, low: str, args: Sequence[Word], feed: Stream | None) -> Stream:
        reading = self._reading
        table = reading.table
        texts = [word.text for word in args]
        handled = self._running.run(low, args, feed)
        if handled is not None:
            return handled
        if low in special.HANDLERS:
            special.HANDLERS[low](reading, args)
        elif low == "find":
            special.find(reading, args, lambda words: self.command(words, None))
        elif name in table.version_programs and len(texts) == 1 and texts[0] in table.version_words:
            return UNSEEN
        elif name in {"[", "test"}:
            self.test(args, summing=any(text in special.SUMMING for text in texts))
        else:
            key, rest = _key(name, args, table.safe, table.ask)
            if name.startswith("git"):
                special.bare_repository(reading)
            rule = table.safe.get(key)
            if rule is not None and self._fits(key, rule, rest):
                return outputs.written(key, rest, feed)
            if rule is None or key in table.ask:
                self._ask(key, low, args, feed)
        return outputs.written(low, args, feed)

    def _ask(self, key: str, low: str, args: Sequence[Word], feed: Stream | None) -> None:
        ask = self._reading.table.ask
        reason = ask.get(key) or ask.get(low)
        shown = key if _PLAIN_NAME.match(key.replace(" ", "")) else "…"
        self._reading.found.add("confirm", reason or "unlisted", shown)
        if reason is None:
            self._scan(args, feed)

    def _fits(self, name: str, rule: Safe, args: Sequence[Word]) -> bool:
        """Whether a listed program is used in a listed way; what speaks against it is noted."""
        reading = self._reading
        before = reading.found
        reading.found = Findings()
        if rule.free:
            self._free(name, rule, args)
        else:
            self._listed(name, rule, args)
        fits = reading.found.decision == "safe"
        before.take(reading.found)
        reading.found = before
        return fits

    def _free(self, name: str, rule: Safe, args: Sequence[Word]) -> None:
        if args and rule.operand_first and not rule.operand_first.fullmatch(args[0].text):
            self._reading.found.add("confirm", "option", f"{name} {args[0].text}".replace(UNKNOWN, "…"))
        for word in args:
            if word.globs:
                self._reading.check_path(word)

    def _listed(self, name: str, rule: Safe, args: Sequence[Word]) -> None:
        found = self._reading.found
        if rule.only:
            wrong = next((word.text for word in args if word.text not in rule.only), "")
            if wrong:
                found.add("confirm", "option", f"{name} {wrong}".replace(UNKNOWN, "…"))
            return
        parts = split(rule.options, args)
        if parts.bad or (rule.needs and not any(option in rule.needs for option, _ in parts.given)):
            found.add("confirm", "option", f"{name} {parts.bad}".rstrip().replace(UNKNOWN, "…"))
            return
        texts, paths = parts.operands, list[Word]()
        if rule.operands == "paths":
            texts, paths = [], parts.operands
        elif rule.operands == "pattern":
            given = [option for option, _ in parts.given if option in rule.pattern_by]
            texts = parts.values(rule.pattern_by) if given else parts.operands[:1]
            paths = parts.operands if given else parts.operands[1:]
        if (rule.operands == "none" and parts.operands) or (rule.most is not None and len(parts.operands) > rule.most):
            found.add("confirm", "option", name)
        for _, value in parts.given:
            if value is not None:
                self._reading.check_text(value)
        for word in texts:
            self._reading.check_text(word)
            if (rule.operand and not rule.operand.fullmatch(word.text)) or (
                rule.unlike and rule.unlike.search(word.text)
            ):
                found.add("confirm", "option", f"{name} {word.text}".replace(UNKNOWN, "…"))
        for word in paths:
            self._reading.check_path(word)

    def _scan(self, words: Sequence[Word], feed: Stream | None) -> None:
        """Arguments of a program that may run them: only what would be refused as a command of its own counts."""
        reading = self._reading
        for at, word in enumerate(words):
            if reading.scans_left <= 0:
                return
            low = word.text.rpartition("/")[2].lower()
            if not (special.dangerous(reading, low) or self._running.knows(low)):
                continue
            reading.scans_left -= 1
            outer = reading.found
            reading.found = Findings()
            self.command(words[at:], feed)
            outer.take(reading.found, blocks_only=True)
            reading.found = outer


def _is_refused(rule: Refuse, args: Sequence[Word]) -> bool:
    texts = [word.text for word in args]
    if rule.when:
        return any(text.lower() in rule.when or text.lower().partition("=")[0] in rule.when for text in texts)
    options = [text for text in texts if text.startswith("-")]
    return not options or any(option not in rule.unless for option in options)


def _key(name: str, args: Sequence[Word], *known: object) -> tuple[str, Sequence[Word]]:
    """The name under which a program is listed, with its first words where these decide: `git stash list`."""
    if name == "git" and args and args[0].text in {"--no-pager", "-P"}:
        args = args[1:]
    for count in (2, 1):
        head = args[:count]
        key = " ".join((name, *(word.text for word in head)))
        if (
            len(head) == count
            and all(word.plain for word in head)
            and any(key in one for one in known if isinstance(one, dict))
        ):
            return key, args[count:]
    return name, args


def _number(word: Word) -> bool:
    return re.fullmatch(r"-?[0-9]+|-[a-z]{2}|[!()<>=-]+|-[a-zA-Z]", word.text) is not None
