"""The catalogues: every string in every language, none missing, none left over."""

from __future__ import annotations

import re
from typing import cast

import pytest

from channels.inapp.page import front

FOLDER = front._FOLDER  # pyright: ignore[reportPrivateUsage]
SOURCES = [*FOLDER.glob("modules/*.js"), *FOLDER.glob("templates/*.html")]
# Strings whose key is put together from data: `wordOr("tool." + name, ...)`.
FAMILIES = ("channel.", "tool.", "doing.", "run.", "clock.")
PLURALS = {"en": {"one", "other"}, "ar": {"zero", "one", "two", "few", "many", "other"}}


def sources() -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in SOURCES)


def forms(value: str | dict[str, str]) -> list[str]:
    return [value] if isinstance(value, str) else list(value.values())


def test_every_language_has_the_same_strings_with_the_same_places() -> None:
    english = front.words("en")
    for language in front.LANGUAGES:
        catalogue = front.words(language)
        assert set(catalogue) == set(english)
        for key, value in catalogue.items():
            allowed = {place for text in forms(english[key]) for place in re.findall(r"\{\w+\}", text)}
            for text in forms(value):
                assert text.strip()
                assert set(re.findall(r"\{\w+\}", text)) <= allowed, key


def test_counted_strings_have_each_form_of_the_language() -> None:
    for language, names in PLURALS.items():
        for key, value in front.words(language).items():
            if isinstance(value, dict):
                assert set(cast("dict[str, str]", value)) == names, key


def test_no_string_is_missing() -> None:
    used = set(re.findall(r"\bword\(\s*\"([^\"]+)\"", sources()))
    used |= set(re.findall(r"words\[\"([^\"]+)\"\]", sources()))
    assert len(used) > 50
    assert used - set(front.words("en")) == set()


def test_no_string_is_left_over() -> None:
    text = sources()
    families = tuple(prefix for prefix in FAMILIES if f"`{prefix}" in text)
    left = {key for key in front.words("en") if f'"{key}"' not in text and not key.startswith(families)}
    assert left == set()


def test_arabic_strings_are_arabic() -> None:
    for key, value in front.words("ar").items():
        if key.startswith("language."):
            continue
        assert all(re.search(r"[\u0621-\u064a]", text) for text in forms(value)), key


@pytest.mark.parametrize(
    "pattern",
    [r"\binnerHTML\b", r"\bouterHTML\b", r"insertAdjacentHTML", r"\beval\(", r"https?://(?!www\.w3\.org)[a-z]"],
)
def test_the_page_puts_in_no_raw_html_and_names_no_other_server(pattern: str) -> None:
    assert re.findall(pattern, sources()) == []
