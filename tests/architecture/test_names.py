"""The name of a channel or provider lives in its folder; elsewhere code asks what a thing can do, not who it is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import get_args

from channels.registry import ALIASES, CHANNELS
from gateway.config import ProviderName
from tests.architecture.tree import PACKAGES, ROOT, check, modules, source_files, words_in_code

COMMANDS_AND_SETTINGS = ("gateway/cli", "gateway/cli_*", "gateway/config", "gateway/home")
"""What a person types: command words, the values of settings, the first config.toml."""

CHANNEL_NAMES = {*CHANNELS, *ALIASES}
CHANNEL_PLACES = ("channels/registry", *COMMANDS_AND_SETTINGS)

PROVIDER_NAMES = set(get_args(ProviderName))


def test_a_channel_is_named_in_its_own_folder_only() -> None:
    faults: list[str] = []
    for name in sorted(CHANNEL_NAMES):
        folder = f"channels/{ALIASES.get(name, name)}"
        faults += _foreign_words(name, {folder, *CHANNEL_PLACES}, suffixes=(".js", ".html", ".sql"))
    check(
        "Code outside a channel's folder does not know its name: let it read a fact of ChannelInfo (add one when "
        "it is missing). Names are free in channels/registry.py, in the commands and in gateway/config.py:",
        faults,
    )


def test_a_provider_is_named_in_its_own_folder_only() -> None:
    faults: list[str] = []
    for name in sorted(PROVIDER_NAMES):
        faults += _foreign_words(name, {"agent/providers", *COMMANDS_AND_SETTINGS}, suffixes=(".sql",))
    check(
        "Code outside agent/providers does not know a provider's name: let it read a fact of the Provider "
        "(`local`, `model`). Names are free in the commands and in gateway/config.py:",
        faults,
    )


def _foreign_words(name: str, places: set[str], suffixes: tuple[str, ...]) -> Iterator[str]:
    """Where `name` stands in code outside `places`.

    In Python: a literal or identifier with the name as one of its words; `offline` is also plain English, so it
    counts only when it is the whole literal, and `channels.<name>` is the name of a setting. In other files: a
    quoted name.
    """
    word = re.compile(rf"(?<![^\W_])(?<!channels\.){re.escape(name)}(?![^\W_])", re.IGNORECASE)
    is_name = word.fullmatch if name == "offline" else word.search
    for module in modules():
        if module.is_in(*places):
            continue
        for text, line in words_in_code(module):
            if is_name(text):
                yield f"{module.place}:{line} {text[:60]!r}"
    quoted = re.compile(rf"""["'`]{re.escape(name)}[:"'`]""")
    for path in source_files(*suffixes):
        place = path.relative_to(ROOT).as_posix()
        if not place.startswith(tuple(f"{folder}/" for folder in places)):
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
                if quoted.search(line):
                    yield f"{place}:{number} {line.strip()[:60]!r}"


def test_every_channel_has_its_folder_and_no_folder_lacks_a_use() -> None:
    folders = {path.parent.name for path in (ROOT / "channels").glob("*/channel.py")}
    missing = sorted(set(CHANNELS) - folders)
    check("A channel of channels/registry.py has the folder channels/<name>/ with channel.py in it:", missing)
    idle = sorted(folders - set(CHANNELS) - {"scheduled"})
    check("These folders look like channels but are not in channels/registry.py (scheduled is not a platform):", idle)


def test_the_tree_has_the_four_packages_and_no_fifth() -> None:
    found = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"tests"}
    check("The product is gateway, channels, agent and heartbeat:", sorted(found ^ set(PACKAGES)))
