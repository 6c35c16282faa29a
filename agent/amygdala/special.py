"""Programs with rules of their own: what deletes, what writes to devices, what changes the folder, find, git."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence

from agent.amygdala.reading import Reading, Stream
from agent.amygdala.words import UNKNOWN, Word

SUMMING = frozenset({"-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v", "-R", "=~"})
_FILTERS = re.compile(
    r"-(i?name|i?path|wholename|i?regex|size|[amc](time|min)|[ac]?newer.*|empty|user|perm|samefile|inum)\Z"
)
_LISTENERS = frozenset({"nc", "ncat", "netcat", "socat"})
_RUNS = re.compile(r"-\w*[ec]|--exec|--sh-exec|exec:|system:", re.IGNORECASE)
_SHELL_NAME = re.compile(r"(?:^|[\s:/,])(?:ba|da|z|k|a)?sh\b")


def dangerous(reading: Reading, low: str) -> bool:
    """Whether a program of this name can be refused outright."""
    return low in {"rm", "dd", "find"} or reading.table.refused(low) is not None or low in reading.table.writers["any"]


def delete(reading: Reading, args: Sequence[Word]) -> None:
    """rm: asked about; with all that is in them, the folders of the system and of people are refused."""
    reading.found.add("confirm", "deletes", "rm")
    operands: list[Word] = []
    recursive = unknown = False
    ended = False
    for word in args:
        text = word.text
        if not ended and text == "--":
            ended = True
        elif not ended and text.startswith("-") and text != "-":
            recursive = recursive or text.startswith("--r") or (text[1] != "-" and bool(set(text) & {"r", "R"}))
            unknown = unknown or UNKNOWN in text
        else:
            unknown = unknown or text.startswith(UNKNOWN)
            operands.append(word)
    if recursive or unknown:
        for word in operands:
            _wipe(reading, word)


def _wipe(reading: Reading, word: Word) -> None:
    for path in sorted(reading.targets(word)):
        if reading.places.vital(path):
            reading.found.add("block", "wipe", word.text.replace(UNKNOWN, "…"))
            return


def shred(reading: Reading, args: Sequence[Word]) -> None:
    """Deletes without asking back, whole disks too."""
    reading.found.add("confirm", "deletes", "shred")


def devices(reading: Reading, low: str, args: Sequence[Word]) -> None:
    """Raw devices: refused where the program writes, asked about where it reads."""
    writers = reading.table.writers
    for at, word in enumerate(args):
        text = word.text
        if "/dev" not in text and "dev/" not in text and not word.globs:
            continue
        target = text.startswith("of=") if low in writers["assign"] else low in writers["any"]
        target = target or (low in writers["last"] and (at == len(args) - 1 or args[at - 1].text == "-t"))
        for part in (text.partition("=")[2] or text, text[2:] if text.startswith("-") else text):
            shown = Word(part, part, word.known, False, word.globs)
            if any(reading.places.device(path) for path in reading.targets(shown)):
                reading.found.add("block" if target else "confirm", "raw_device" if target else "device", part)


def downloads(reading: Reading, low: str, args: Sequence[Word]) -> None:
    """What brings text from other machines, and the files it may leave here."""
    if low == "tee":
        reading.written.update(word.text for word in args if not word.text.startswith("-"))
    if low not in reading.table.downloads:
        return
    reading.downloads = True
    options = reading.table.download_output
    for at, word in enumerate(args):
        text = word.text
        name, equals, value = text.partition("=")
        if equals and name in options:
            reading.fetched.add(value)
        elif at and args[at - 1].text in options:
            reading.fetched.add(text)
        elif text[:2] in options and len(text) > 2:
            reading.fetched.add(text[2:])
        if "://" in text or "/" in text:
            reading.fetched.add(re.split(r"[?#]", text)[0])
    runs = low in _LISTENERS and any(_RUNS.match(word.text) for word in args)
    if runs and any(_SHELL_NAME.search(word.text) or UNKNOWN in word.text for word in args):
        reading.found.add("block", "reverse_shell")


def change_folder(reading: Reading, args: Sequence[Word]) -> None:
    """cd: from here on paths start elsewhere."""
    operands = [word for word in args if word.text not in {"-L", "-P", "--"}]
    if not operands:
        operands = [Word(reading.places.user_home, reading.places.user_home)]
    word = operands[0]
    if len(operands) > 1 or word.text.startswith("-") or not word.known or word.globs:
        reading.found.add("confirm", "option", f"cd {word.text}".replace(UNKNOWN, "…"))
        return
    reading.check_path(word)
    moved = frozenset(reading.places.real(word.text, folder) for folder in reading.folders)
    reading.folders |= moved
    reading.moved_to = moved


def push_folder(reading: Reading, args: Sequence[Word]) -> None:
    reading.found.add("confirm", "state", "pushd")
    if args:
        change_folder(reading, args)


def show_variables(reading: Reading, args: Sequence[Word]) -> None:
    """set, export, declare and their kin show all variables when nothing is set with them."""
    reading.found.add("confirm", "state", "set")
    if all(word.text in {"-p", "-x", "-px", "-xp"} for word in args):
        reading.found.add("block", "environment")


def print_variables(reading: Reading, args: Sequence[Word]) -> None:
    """printenv: all of them are refused, and the secret ones."""
    names = [word.text for word in args if not word.text.startswith("-")]
    if not names:
        reading.found.add("block", "environment")
    for name in names:
        if name in reading.table.plain_variables:
            continue
        secret = reading.table.secret_variable.search(name)
        reading.found.add("block" if secret else "confirm", "secret_variable", name)


def find(reading: Reading, args: Sequence[Word], run: Callable[[Sequence[Word]], Stream]) -> None:
    """find: its tests and what it does with the files it finds."""
    words = reading.table.find
    starts, at = list[Word](), 0
    while at < len(args) and not (args[at].text.startswith("-") or args[at].text in {"(", "!", ")", ","}):
        starts.append(args[at])
        at += 1
    for word in starts:
        reading.check_path(word)
    deletes = filtered = False
    while at < len(args):
        word = args[at]
        text = word.text
        at += 1
        filtered = filtered or _FILTERS.match(text) is not None
        if text in words.run:
            end = next((n for n in range(at, len(args)) if args[n].text in {";", "+"}), len(args))
            inner = [Word(UNKNOWN, "*", known=False, plain=False) if "{}" in one.text else one for one in args[at:end]]
            deletes = deletes or any(one.text.rpartition("/")[2] in {"rm", "shred", "unlink"} for one in inner)
            run(inner)
            reading.found.add("confirm", "option", f"find {text}")
            at = end + 1
        elif text in words.one or text in words.path:
            value = args[at] if at < len(args) else Word(UNKNOWN, "*", known=False)
            (reading.check_path if text in words.path else reading.check_text)(value)
            at += 1
        elif text not in words.none:
            deletes = deletes or text == "-delete"
            reading.found.add("confirm", "option", f"find {text}".replace(UNKNOWN, "…"))
    if deletes:
        reading.found.add("confirm", "deletes", "find")
        for word in () if filtered else starts:
            _wipe(reading, word)


def bare_repository(reading: Reading) -> None:
    """A folder that git takes for a repository without a .git folder can make it run programs: the owner is asked."""
    for start in reading.folders:
        folder = start
        while reading.places.inside(folder):
            if os.path.exists(os.path.join(folder, "HEAD")) and os.path.exists(os.path.join(folder, "objects")):
                reading.found.add("confirm", "option", "git")
            folder = os.path.dirname(folder)


HANDLERS: dict[str, Callable[[Reading, Sequence[Word]], None]] = {
    "rm": delete,
    "shred": shred,
    "cd": change_folder,
    "chdir": change_folder,
    "pushd": push_folder,
    "set": show_variables,
    "export": show_variables,
    "declare": show_variables,
    "typeset": show_variables,
    "readonly": show_variables,
    "printenv": print_variables,
}
