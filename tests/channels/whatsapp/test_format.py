"""Markdown to WhatsApp's marks."""

from __future__ import annotations

import pytest

from channels.whatsapp.format import convert, render
from gateway.approvals import fenced, literal
from gateway.sentences import sentence


def test_marks_are_made_and_code_names_and_sums_are_left_alone() -> None:
    """B57: and converting twice gives the same."""
    source = "Use `**kw**` and __init__ and **Note:** ~~old~~ 2 * 3 * 4\n* item\n## Head\n```\n**x**\n```"
    shown = "Use `**kw**` and __init__ and *Note:* ~old~ 2 * 3 * 4\n- item\n*Head*\n```\n**x**\n```"
    assert convert(source) == shown
    assert convert(shown) == shown


def test_bold_italic_leaves_no_asterisks() -> None:
    """B58."""
    assert convert("***start here*** and **_x_**") == "*_start here_* and *_x_*"


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("# **Bold** head #", "*Bold head*"),
        ("Head\n====", "*Head*"),
        ("**one\ntwo**", "*one*\n*two*"),
        ("**a** **b**", "*a* *b*"),
        ("**a *b* c**", "*a *b* c*"),
        ("__very bold__ and __main__", "*very bold* and __main__"),
        ("snake_case_name and a__b__c", "snake_case_name and a__b__c"),
        ("2**3**4 = 2**12", "2*3*4 = 2**12"),
        ("[the site](https://a.example/x_(y)) now", "the site (https://a.example/x_(y)) now"),
        ("[https://a.example](https://a.example)", "https://a.example"),
        ("![a cat](cat.png)", "a cat (cat.png)"),
        ("<https://a.example/__x__> or https://a.example/__x__", "https://a.example/__x__ or https://a.example/__x__"),
        ("costs $5 and $6", "costs $5 and $6"),
        ("note[^1]\n\n[^1]: the foot", "note[^1]\n\n[^1]: the foot"),
        ("<b>not ours</b><br>", "<b>not ours</b><br>"),
        ("> **quoted**\n> > deeper", "> *quoted*\n> deeper"),
        ("1. one\n2. two\n   - in", "1. one\n2. two\n   - in"),
        ("- [ ] todo\n- [x] done", "- ☐ todo\n- ☑ done"),
        ("a\n\n---\n\nb", "a\n\n―――\n\nb"),
        (r"\*literally\* \# \`x\`", "*literally* # `x`"),
        ("```python\nprint('**')\n```", "```\nprint('**')\n```"),
        ("~~~\ncode\n~~~", "```\ncode\n```"),
        ("``a`b``", "a`b"),
        ("**العنوان:** نصٌّ عربيّ `code`", "*العنوان:* نصٌّ عربيّ `code`"),
        ("* بند أول\n* بند ثان", "- بند أول\n- بند ثان"),
        ("**so ** it ~~was ~~", "*so*  it ~was~ "),
        ("**(a)**, then **(b)**", "*(a)*, then *(b)*"),
        ("`**kw **` and 2 ** 3 ** 4", "`**kw **` and 2 ** 3 ** 4"),
        ("unclosed **bold", "unclosed **bold"),
        ("a | b", "a | b"),
    ],
)
def test_every_form(source: str, shown: str) -> None:
    assert convert(source) == shown


def test_a_code_block_that_is_not_closed_goes_to_the_end() -> None:
    assert convert("```\n**x**\n# y") == "```\n**x**\n# y\n```"


def test_a_table_of_two_columns_is_a_list_of_pairs() -> None:
    assert convert("| Item | Price |\n|---|--:|\n| Tea | **5** |\n| قهوة | 7 |") == "*Tea*: *5*\n*قهوة*: 7"


def test_a_wider_table_names_each_cell() -> None:
    shown = convert("| Day | Low | High |\n|---|---|---|\n| Mon | 3 | 9 |\n| Tue | | 8 \\| 9 |\n\nafter")
    assert shown == "*Mon*\n- Low: 3\n- High: 9\n*Tue*\n- High: 8 | 9\n\nafter"


def test_bold_that_is_cut_is_closed_and_opened_again() -> None:
    parts = render(f"**{'word ' * 30}end**", 64)
    assert len(parts) > 1
    assert all(part.startswith("*") and part.endswith("*") and not part.endswith(" *") for part in parts)


def test_code_that_is_cut_is_closed_and_opened_again() -> None:
    parts = render("```\n" + "a line of code\n" * 30 + "```", 64)
    assert all(part.startswith("```\n") and part.endswith("\n```") for part in parts)


def test_a_question_for_consent_reads_well() -> None:
    """Numbered; what is to be run stands in a code block, and no backslash is seen."""
    for language in ("en", "ar"):
        text = sentence("may_i", language).format(  # pyright: ignore[reportArgumentType]
            what=fenced("rm -rf *"), reason=literal("it deletes `files` *for good*"), asked_by="Sara"
        )
        how = sentence("how_to_answer", language).format(minutes=10)  # pyright: ignore[reportArgumentType]
        (shown,) = render(f"{text}\n\n{how}")
        assert "```\nrm -rf *\n```" in shown
        assert "it deletes `files` *for good*" in shown
        assert "\\" not in shown
        assert "1" in shown
        assert "2" in shown
