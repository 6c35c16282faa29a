"""Markdown as Telegram shows it."""

from __future__ import annotations

from typing import Any

import pytest

from channels.telegram.format import Part, render


def shown(markdown: str) -> str:
    return "".join(part.text for part in render(markdown))


def runs(part: Part) -> set[tuple[str, str]]:
    """Type and text of each formatted run."""
    units = part.text.encode("utf-16-le")
    return {(e.type, units[2 * e.offset : 2 * (e.offset + e.length)].decode("utf-16-le")) for e in part.entities}


def test_everyday_formatting() -> None:
    (part,) = render("\U0001f680 **مهم** and *soft*, `code`, ~~gone~~, [site](https://e.org/a_b)")
    assert part.text == "\U0001f680 مهم and soft, code, gone, site"
    wanted = {("bold", "مهم"), ("italic", "soft"), ("code", "code"), ("strikethrough", "gone"), ("text_link", "site")}
    assert runs(part) == wanted


def test_reserved_signs_and_a_ruler_under_a_line_stay_as_they_are() -> None:
    """B12."""
    (part,) = render("**Sum**\n---\nTotal (net): 3.5 - 1 = 2.5! [x] {y} #1 | a>b ~ _z")
    assert part.text == "Sum\n---\nTotal (net): 3.5 - 1 = 2.5! [x] {y} #1 | a>b ~ _z"
    assert runs(part) == {("bold", "Sum")}


def test_backticks_inside_a_sentence_are_inline_code() -> None:
    """B10."""
    (part,) = render("Use ```x``` inline, then **bold** and a_b_c.")
    assert part.text == "Use x inline, then bold and a_b_c."
    assert runs(part) == {("code", "x"), ("bold", "bold")}


@pytest.mark.parametrize(
    "text",
    [
        "a\n<div>hi</div>\nb",
        "<b>x</b> <!-- note --> y",
        "x [^1]\n[^1]: note",
        "2*3*4 and 2**3**4",
        "https://e.org/_a_/b_c_?q=*x* costs $5 or $6",
        "either || or || both",
        "[note]: word",
        "Omar <omar@example.org>",
    ],
)
def test_prose_is_shown_letter_by_letter(text: str) -> None:
    assert shown(text) == text


def test_code_is_left_alone() -> None:
    (part,) = render("`a*b*c <b> $x`\n\n```sh\necho $HOME || <x>\n---\n```")
    assert ("code", "a*b*c <b> $x") in runs(part)
    assert ("pre", "echo $HOME || <x>\n---") in runs(part)


def test_lists_headings_and_tables_are_readable() -> None:
    (part,) = render("# Title\n- [ ] open\n- [x] done\n- plain\n\n| a | b |\n|---|---|\n| 1 | 2 |\n")
    assert part.text.startswith("Title\n☐ open\n☑ done\n• plain")
    assert ("bold", "Title") in runs(part)
    assert any(kind == "pre" and "1 | 2" in text for kind, text in runs(part))


def test_a_bold_run_over_the_limit_is_bold_in_both_parts() -> None:
    """B06."""
    parts = render("word " * 805 + "**" + "bold " * 59 + "bold**")
    assert len(parts) == 2
    bold = [text for part in parts for kind, text in runs(part) if kind == "bold"]
    assert len(bold) == 2
    assert " ".join(bold).split() == ["bold"] * 60
    assert " ".join(part.text for part in parts).split() == ["word"] * 805 + ["bold"] * 60


@pytest.mark.parametrize("blank", ["", " ", "\t", "   "])
@pytest.mark.parametrize(("mark", "kind"), [("**", "bold"), ("~~", "strikethrough")])
def test_a_run_that_ends_in_a_blank_is_formatted_on_both_sides_of_a_cut(blank: str, mark: str, kind: str) -> None:
    """B06: `**so **` is what models write."""
    parts = render("word " * 810 + mark + "bold " * 59 + "bold" + blank + mark)
    assert len(parts) == 2
    marked = [text for part in parts for found, text in runs(part) if found == kind]
    assert " ".join(marked).split() == ["bold"] * 60
    assert " ".join(part.text for part in parts).split() == ["word"] * 810 + ["bold"] * 60


@pytest.mark.parametrize(
    ("source", "text", "formatted"),
    [
        ("**Note: ** then", "Note:  then", {("bold", "Note:")}),
        ("**مهم ** نص", "مهم  نص", {("bold", "مهم")}),
        ("**(a)**, then **(b)**", "(a), then (b)", {("bold", "(a)"), ("bold", "(b)")}),
        ("**a** and **b **", "a and b", {("bold", "a"), ("bold", "b")}),
        ("**use `x ** y` now **", "use x ** y now", {("bold", "use x ** y now"), ("code", "x ** y")}),
        ("`**kw **` and 2 ** 3 ** 4", "**kw ** and 2 ** 3 ** 4", {("code", "**kw **")}),
        ("```\n**x **\n```", "**x **", {("pre", "**x **")}),
    ],
)
def test_only_a_run_that_ends_in_a_blank_is_put_right(source: str, text: str, formatted: set[tuple[str, str]]) -> None:
    (part,) = render(source)
    assert part.text == text
    assert runs(part) == formatted


def test_many_links_are_spread_over_parts_and_none_is_lost() -> None:
    """B13."""
    parts = render(("[w](https://example.org/" + "a" * 80 + ") ") * 120)
    assert all(len(part.entities) <= 100 for part in parts)
    assert sum(len(part.entities) for part in parts) == 120
    assert " ".join(part.text for part in parts).split() == ["w"] * 120


def test_the_limit_counts_what_is_seen_and_not_the_source() -> None:
    """B13."""
    assert [part.text for part in render("<" * 4096)] == ["<" * 4096]


def test_an_emoji_at_the_limit_stays_whole() -> None:
    """B01."""
    assert [part.text for part in render("q" * 4095 + "\U0001f680 end")] == ["q" * 4095, "\U0001f680 end"]


@pytest.mark.parametrize(
    ("before", "cluster"),
    [
        (4090, "\U0001f468\u200d\U0001f469\u200d\U0001f467"),
        (4095, "e\u0301"),
        (4095, "\U0001f1f8\U0001f1e6"),
        (4094, "1\ufe0f\u20e3"),
        (4093, "\U0001f44d\U0001f3fd"),
        (4094, "\u0915\u094d\u0937\u093f"),
        (4095, "\u0639\u064e\u0651"),
    ],
)
def test_what_is_seen_as_one_sign_is_never_cut(before: int, cluster: str) -> None:
    """B03: joined emoji, accents, flags, keycaps, skin tones, conjuncts, vowel signs."""
    assert [part.text for part in render("a" * before + cluster)] == ["a" * before, cluster]


@pytest.mark.parametrize("lines", [600, 601, 1200])
@pytest.mark.parametrize(("fence", "language"), [("```", "python"), ("~~~", "js"), ("````", "sh")])
def test_a_long_code_block_is_one_in_every_part_and_what_follows_is_outside(
    lines: int, fence: str, language: str
) -> None:
    """B09: entities open and close the block in each message; no line is broken."""
    parts = render(f"{fence}{language}\n" + "print(1)\n" * lines + f"{fence}\nafter")
    code = [text for part in parts for kind, text in runs(part) if kind == "pre"]
    assert len(parts) == len(code) > 1
    assert {e.language for part in parts for e in part.entities} == {language}
    assert "\n".join(code).split("\n") == ["print(1)"] * lines
    assert parts[-1].text.endswith("\nafter")
    assert "after" not in "".join(code)


def test_a_link_telegram_cannot_open_is_plain_text() -> None:
    (part,) = render("[here](notes.md#L3)")
    assert part == Part("here")


def test_nothing_visible_has_no_parts() -> None:
    assert render(" \n\t ") == ()
    assert shown("\n\n" * 3000 + "x") == "x"


def test_when_the_converter_fails_the_source_is_shown() -> None:
    def broken(markdown: str) -> tuple[str, list[Any]]:
        raise IndexError(markdown)

    assert render("**a** b", broken) == (Part("**a** b"),)


def test_surrogates_and_nul_are_replaced() -> None:
    assert shown("a\ud83d **b\0**") == "a\ufffd b\ufffd"
