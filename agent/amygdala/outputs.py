"""What simple programs write, worked out from arguments and input: enough to see through `echo ... | base64 -d`."""

from __future__ import annotations

import base64
import binascii
import codecs
import re
from collections.abc import Callable, Sequence

from agent.amygdala.reading import SILENT, UNSEEN, Stream
from agent.amygdala.words import Word, decode_escapes
from agent.limits import COMMAND_BYTES_MAX

_SPECIFIER = re.compile(r"%(?:[-+0 #]*[0-9.]*)([sbdqxXoucfeg%])")
_SILENT = frozenset({"cd", "true", "false", ":", "sleep", "test", "[", "rm", "mkdir", "cp", "mv", "touch", "chmod"})


def written(name: str, args: Sequence[Word], feed: Stream | None) -> Stream:
    """What the program writes; UNSEEN where only running it would tell."""
    if name in _SILENT:
        return SILENT
    make = _WRITERS.get(name)
    if make is None or not all(word.known and not word.globs for word in args):
        return UNSEEN
    text = make([word.text for word in args], feed.text if feed else None)
    return Stream(text) if text is not None and len(text) <= COMMAND_BYTES_MAX else UNSEEN


def _echo(args: list[str], _feed: str | None) -> str | None:
    ending, escapes = "\n", False
    while args and re.fullmatch(r"-[neE]+", args[0]):
        ending = "" if "n" in args[0] else ending
        escapes = escapes or "e" in args[0]
        args = args[1:]
    text = " ".join(args)
    return (decode_escapes(text) if escapes else text) + ending


def _printf(args: list[str], _feed: str | None) -> str | None:
    args = args[1:] if args[:1] == ["--"] else args
    if not args:
        return ""
    form, values = decode_escapes(args[0]), args[1:]
    taken = 0

    def fill(found: re.Match[str]) -> str:
        nonlocal taken
        if found[1] == "%":
            return "%"
        value = values[taken] if taken < len(values) else ""
        taken += 1
        return decode_escapes(value) if found[1] == "b" else value

    text = _SPECIFIER.sub(fill, form)
    while 0 < taken < len(values) and len(text) <= COMMAND_BYTES_MAX:
        text += _SPECIFIER.sub(fill, form)
    return text


def _cat(args: list[str], feed: str | None) -> str | None:
    return feed if not args or args == ["-"] else None


def _base64(args: list[str], feed: str | None) -> str | None:
    if feed is None or any(arg not in {"-d", "-D", "--decode", "-i", "-di", "-id", "-"} for arg in args):
        return None
    if not args:
        return base64.b64encode(feed.encode("utf-8", "replace")).decode()
    try:
        return base64.b64decode(re.sub(r"[^A-Za-z0-9+/=]", "", feed)).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return None


def _base32(args: list[str], feed: str | None) -> str | None:
    if feed is None or not set(args) <= {"-d", "--decode", "-i"} or not args:
        return None
    try:
        return base64.b32decode(re.sub(r"\s", "", feed)).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return None


def _xxd(args: list[str], feed: str | None) -> str | None:
    if feed is None or set("".join(args)) - set("-rp ") or "r" not in "".join(args):
        return None
    try:
        return bytes.fromhex(re.sub(r"\s", "", feed)).decode("utf-8", "replace")
    except ValueError:
        return None


def _rev(args: list[str], feed: str | None) -> str | None:
    return None if feed is None or args else "".join(line[::-1] + "\n" for line in feed.splitlines())


def _tac(args: list[str], feed: str | None) -> str | None:
    return None if feed is None or args else "".join(line + "\n" for line in reversed(feed.splitlines()))


def _tr(args: list[str], feed: str | None) -> str | None:
    if feed is None or not 1 <= len(args) <= 2:
        return None
    if args[0] in {"-d", "--delete"}:
        return feed.translate(dict.fromkeys(map(ord, _spread(args[1])))) if len(args) == 2 else None
    if len(args) == 1 or args[0].startswith("-"):
        return None
    source, target = _spread(args[0]), _spread(args[1])
    if not target:
        return None
    return feed.translate(dict(zip(map(ord, source), target.ljust(len(source), target[-1]), strict=False)))


def _spread(letters: str) -> str:
    return re.sub(
        r"(.)-(.)",
        lambda found: "".join(map(chr, range(ord(found[1]), min(ord(found[2]), ord(found[1]) + 256) + 1))),
        decode_escapes(letters),
        flags=re.DOTALL,
    )


def _rot13(args: list[str], feed: str | None) -> str | None:
    return None if feed is None or args else codecs.encode(feed, "rot13")


def _openssl(args: list[str], feed: str | None) -> str | None:
    return _base64(["-d"], feed) if "-d" in args and ("base64" in args or "-base64" in args or "-a" in args) else None


_WRITERS: dict[str, Callable[[list[str], str | None], str | None]] = {
    "echo": _echo,
    "printf": _printf,
    "cat": _cat,
    "base64": _base64,
    "base32": _base32,
    "xxd": _xxd,
    "rev": _rev,
    "tac": _tac,
    "tr": _tr,
    "rot13": _rot13,
    "openssl": _openssl,
    "tee": lambda args, feed: feed,
}
