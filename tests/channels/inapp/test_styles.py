"""The colours of both themes are readable, and the layout has no side of its own."""

from __future__ import annotations

import re

import pytest

from channels.inapp.page import front

STYLES = front._FOLDER / "styles"  # pyright: ignore[reportPrivateUsage]
TEXT = 4.5
CONTROL = 3.0
PAIRS = [
    *[
        ("text", ground, TEXT)
        for ground in ("ground", "surface", "panel", "raised", "hover", "chosen", "bubble", "code")
    ],
    *[("quiet", ground, TEXT) for ground in ("ground", "surface", "panel", "raised", "hover", "chosen", "code")],
    *[("accent", ground, TEXT) for ground in ("surface", "panel", "raised", "chosen", "bubble")],
    ("on-accent", "accent", TEXT),
    ("on-accent", "accent-hover", TEXT),
    ("crest", "crest-ground", TEXT),
    ("crest", "raised", CONTROL),
    ("bad", "surface", TEXT),
    ("bad", "panel", TEXT),
    ("good", "panel", CONTROL),
    ("line-strong", "raised", CONTROL),
    ("mark-text", "mark-ground", CONTROL),
]


def themes() -> dict[str, dict[str, list[str]]]:
    """Light, and dark over light: each colour by its name, all of them where a name is given more than once."""
    text = (STYLES / "base.css").read_text(encoding="utf-8")
    found: dict[str, dict[str, list[str]]] = {"light": {}, "dark": {}}
    dark = [
        text[match.start() :].split("\n}\n")[0] for match in re.finditer(r"@media \(prefers-color-scheme: dark\)", text)
    ]
    light = text
    for part in dark:
        light = light.replace(part, "")
    for name, part in (("light", light), ("dark", "\n".join(dark))):
        for key, value in re.findall(r"--([\w-]+): (#[0-9a-f]{6});", part):
            found[name].setdefault(key, []).append(value)
    return found


def luminance(colour: str) -> float:
    """Relative luminance, WCAG 2.2."""
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_everything_can_be_read(theme: str) -> None:
    colours = themes()[theme]
    weak: list[str] = []
    for front_name, ground, least in PAIRS:
        for one, other in zip(colours[front_name], colours[ground], strict=True):
            if contrast(one, other) < least:
                weak.append(f"{front_name} {one} on {ground} {other}: {contrast(one, other):.2f}")
    assert weak == []


def test_the_layout_mirrors_by_itself() -> None:
    for path in STYLES.glob("*.css"):
        text = path.read_text(encoding="utf-8")
        sided = re.findall(r"(?:margin|padding|border)-(?:left|right)|float: *(?:left|right)", text)
        assert sided == [], path.name


def test_motion_stops_for_who_asked_for_it() -> None:
    assert "prefers-reduced-motion: reduce" in (STYLES / "base.css").read_text(encoding="utf-8")
