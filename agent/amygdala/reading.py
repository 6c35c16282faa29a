"""What is known while one command is read: the findings, the folders it may be in, what it fetches and runs."""

from __future__ import annotations

import re
from dataclasses import dataclass

from agent.amygdala.findings import Findings
from agent.amygdala.places import PATH_CHARS_MAX, RESOLVED_MAX, Places, readings
from agent.amygdala.table import table
from agent.amygdala.words import UNKNOWN, Word
from agent.limits import COMMAND_BYTES_MAX, COMMAND_WORDS_MAX

_PATH_LIKE = re.compile(r"[/.~@=]|id_")
_DASHES = frozenset("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe63\uff0d\u00ad\u2043")
"""Would pass for the hyphen of an option."""
_HOST = re.compile(r"(?:://|^[^/]*@)([^/]*)")


@dataclass(frozen=True, slots=True)
class Stream:
    """What a program reads or writes: its text, or None where only running it would tell."""

    text: str | None


UNSEEN = Stream(None)
SILENT = Stream("")


class Reading:
    """The state of reading one command."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self.found = Findings()
        self.table = table()
        self._start = frozenset({places.workspace})
        self.folders = self._start
        """Where the command may be by now."""
        self.moved_to: frozenset[str] | None = None
        """The folders after the last step, where that step was a change of folder."""
        self.assigned: set[str] = set()
        self.bytes_left = 2 * COMMAND_BYTES_MAX
        self.words_left = COMMAND_WORDS_MAX
        self.scans_left = 16
        self.downloads = False
        self.sockets = False
        self.runs_shell = False
        self.runs_hidden = False
        self.fetched: set[str] = set()
        self.written: set[str] = set()
        self.ran: set[str] = set()
        self._resolved_left = RESOLVED_MAX
        self._seen: set[tuple[str, str, frozenset[str]]] = set()
        self._targets: dict[tuple[str, frozenset[str]], set[str]] = {}

    @property
    def values(self) -> dict[str, str]:
        """The variables whose value is known."""
        known = {"HOME": self.places.user_home}
        if len(self.folders) == 1:
            known["PWD"] = next(iter(self.folders))
        return known

    def settle(self) -> None:
        """What only the whole command shows: something fetched is run, a shell is tied to a socket."""
        if self.downloads and (self.runs_hidden or _names(self.ran) & _names(self.fetched | self.written)):
            self.found.add("block", "download_run")
        if self.sockets and self.runs_shell:
            self.found.add("block", "reverse_shell")

    def run_hidden(self) -> None:
        """Notes that a text is run which cannot be read before."""
        self.runs_hidden = True
        self.found.add("confirm", "runs_hidden")

    def run_file(self, name: str) -> None:
        """Notes that a file is run."""
        self.ran.add(name)
        self.found.add("confirm", "runs_file", name.replace(UNKNOWN, "…"))

    def expand(self, names: frozenset[str] | set[str]) -> bool:
        """Judges the variables a word expands; True when one of them is a secret of the environment."""
        secret = False
        for name in sorted(names):
            if name in self.table.plain_variables or name in self.assigned or name == "IFS":
                continue
            if self.table.secret_variable.search(name):
                secret = True
            self.found.add("confirm", "expansion")
        return secret

    def inspect(self, word: Word) -> None:
        """What must not stand among the arguments of any program: places of passwords, options and hosts that are
        not plain ASCII."""
        text = word.text
        if not text.isascii():
            host = _HOST.search(text)
            option = text.partition("=")[0] if text.startswith("-") else text[0] if text[0] in _DASHES else ""
            if not option.replace(UNKNOWN, "").isascii() or (host and not host[1].replace(UNKNOWN, "").isascii()):
                self.found.add("confirm", "foreign", text.replace(UNKNOWN, "…"))
        if len(text) > PATH_CHARS_MAX:
            return
        if not (_PATH_LIKE.search(text) or self.folders != self._start) or self._known("inspect", word):
            return
        if "://" in text:
            text = text.partition("file://")[2]
        for part in readings(text):
            for folder in sorted(self.folders):
                self._look(part, folder, word)

    def _look(self, part: str, folder: str, word: Word) -> None:
        places = self.places
        if part.startswith("~"):
            part = places.user_home + part.partition("/")[1] + part.partition("/")[2]
        path = places.absolute(part.replace(UNKNOWN, "*"), folder)
        if re.search(r"\s", path.removeprefix(folder)) and part != word.text:
            return
        found = places.credential(path) and not re.search(r"\s", path.removeprefix(places.workspace))
        if not found and (word.globs or not word.known):
            found = places.credential_by_pattern(places.absolute(word.pattern, folder))
        if not found and UNKNOWN not in part and self._may_resolve():
            found = places.credential(places.real(part, folder))
        if found:
            self.found.add("block", "credentials", part.replace(UNKNOWN, "…"))

    def check_path(self, word: Word) -> None:
        """A path that a safe program reads: it must be inside the workspace in every folder the command may be in."""
        if word.text == "-" or self.places.stream(word.text) or self._known("path", word):
            return
        if not word.known or len(word.text) > PATH_CHARS_MAX:
            self.found.add("confirm", "expansion")
            return
        for folder in sorted(self.folders):
            names = self.places.matches(word, folder) if word.globs else [word.text]
            if names is None:
                self.found.add("confirm", "expansion")
                return
            for name in names:
                if word.globs and name.startswith("-"):
                    self.found.add("confirm", "option", name)
                if not self._may_resolve():
                    return
                real = self.places.real(name, folder)
                if self.places.credential(real):
                    self.found.add("block", "credentials", name)
                elif not self.places.inside(real):
                    self.found.add("confirm", "outside", name)

    def check_text(self, word: Word) -> None:
        """A text that a safe program gets: known, and no file name pattern that stands for files."""
        folders = self.folders if word.globs else ()
        if not word.known or any(self.places.matches(word, folder) != [word.text] for folder in folders):
            self.found.add("confirm", "expansion")

    def targets(self, word: Word) -> set[str]:
        """The absolute paths a word may name, as written and with links followed."""
        found = self._targets.setdefault((word.pattern, self.folders), set())
        if found:
            return found
        for folder in self.folders:
            found.add(self.places.absolute(word.text, folder))
            head, _, last = word.text.rpartition("/")
            if not word.globs and UNKNOWN not in word.text and self._may_resolve():
                found.add(self.places.real(word.text, folder))
            elif word.globs and UNKNOWN not in head and self._may_resolve():
                found.add(
                    f"{self.places.real(head or ('/' if '/' in word.text else '.'), folder)}/{last}".replace("//", "/")
                )
        return found

    def _known(self, question: str, word: Word) -> bool:
        """Whether this was asked before of the same word in the same folders; it is noted."""
        key = (question, word.pattern, self.folders)
        if key in self._seen:
            return True
        self._seen.add(key)
        return False

    def _may_resolve(self) -> bool:
        self._resolved_left -= 1
        if self._resolved_left >= 0:
            return True
        self.found.add("confirm", "involved")
        return False


def _names(paths: set[str]) -> set[str]:
    return {name for path in paths if (name := path.rpartition("/")[2])}
