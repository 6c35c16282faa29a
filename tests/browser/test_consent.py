"""Consent on the page: the card shows exactly what would run, and an answer is never an accident."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.browser.test_page import PHONE, OpenPage, backend, expect, open_page, server, session
from tests.fakes.backend import FakeBackend, PageServer

__all__ = ["backend", "open_page", "server"]
pytestmark = pytest.mark.browser
COMMAND = "run_command:\ncommand: rm -r   old/ && echo '<b>done</b>'  # ```"


@pytest.fixture
def asking(backend: FakeBackend) -> FakeBackend:
    """With a conversation in which a turn runs."""
    backend.add_conversation("i1", title="Here")
    backend.save("i1", "user", "clean up", state="running")
    return backend


def button(page: Any, name: str) -> Any:
    return page.get_by_role("button", name=name)


async def ready(page: Any) -> None:
    """Returns when the buttons can be pressed."""
    await expect(page.locator('.consent-buttons [aria-disabled="false"]')).to_have_count(2)


@pytest.mark.parametrize(
    ("name", "allow", "said"), [("Allow once", True, "Allowed once."), ("Deny", False, "Not allowed. It was not run.")]
)
async def test_the_owner_sees_what_would_run_and_answers(
    open_page: OpenPage, asking: FakeBackend, name: str, allow: bool, said: str
) -> None:
    page = await open_page()
    await expect(page.locator(".message")).to_have_count(1)
    asking.ask("i1", COMMAND, **{"from": "Sara (telegram:8)"})
    card = page.get_by_role("article", name="May I run this?")
    assert await card.locator("pre").text_content() == COMMAND
    await expect(card).to_contain_text("It deletes files.")
    await expect(card).to_contain_text("Asked by Sara (telegram:8)")
    await expect(page.locator("#doing")).to_have_text("Waiting for your consent…")
    await expect(page.locator("#stop")).to_be_visible()
    await ready(page)
    await button(page, name).click()
    await expect(card).to_contain_text(said)
    await expect(button(page, name)).to_have_count(0)
    await expect(page.locator("#doing")).not_to_have_text("Waiting for your consent…")
    assert asking.answers == [("q1", allow)]
    message = asking.save("i1", "assistant", "Done.")
    asking.publish("done", {"conversation": "i1", "turn": "t-i1", "message": message, "version": 9})
    await expect(card).to_have_count(0)


async def test_a_press_that_was_meant_for_something_else_does_not_count(
    open_page: OpenPage, asking: FakeBackend
) -> None:
    page = await open_page()
    await page.clock.install()
    await expect(page.locator(".message")).to_have_count(1)
    await page.focus("#text")
    await page.clock.pause_at(await page.evaluate("Date.now() + 1000"))
    asking.ask("i1", COMMAND)
    async with asyncio.timeout(10):
        while not await page.locator(".consent").count():
            await page.clock.run_for(20)
    await page.keyboard.press("Enter")
    await expect(page.locator("#text")).to_be_focused()
    await button(page, "Allow once").click(force=True)
    await button(page, "Allow once").press("Enter")
    await expect(page.locator('.consent-buttons [aria-disabled="true"]')).to_have_count(2)
    assert asking.answers == []
    await page.clock.resume()
    await ready(page)
    await button(page, "Deny").click()
    await expect(page.locator(".consent")).to_contain_text("Not allowed")
    assert asking.answers == [("q1", False)]


async def test_with_the_keyboard_alone(open_page: OpenPage, asking: FakeBackend) -> None:
    asking.ask("i1", COMMAND)
    page = await open_page()
    await ready(page)
    await page.focus("#text")
    for _ in range(3):
        await page.keyboard.press("Shift+Tab")
    await expect(button(page, "Allow once")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.locator(".consent")).to_contain_text("Allowed once.")
    await expect(page.locator(".consent")).to_be_focused()
    assert asking.answers == [("q1", True)]


async def test_a_question_whose_time_is_over_says_so(open_page: OpenPage, asking: FakeBackend) -> None:
    asking.ask("i1", COMMAND)
    page = await open_page()
    await ready(page)
    asking.close_question("q1", "expired")
    await expect(page.locator(".consent")).to_contain_text("This question is closed. It was not run.")
    await expect(button(page, "Allow once")).to_have_count(0)
    await page.reload()
    await expect(page.locator(".message")).to_have_count(1)
    await expect(page.locator(".consent")).to_have_count(0)


async def _no_line(route: Any) -> None:
    await route.abort()


async def test_an_answer_that_comes_too_late_or_not_at_all(
    open_page: OpenPage, asking: FakeBackend, server: PageServer
) -> None:
    asking.ask("i1", COMMAND)
    page = await open_page()
    await ready(page)
    await page.route("**/api/approvals/*", _no_line)
    await button(page, "Deny").click()
    await expect(page.locator(".consent [role=alert]")).to_have_text("The answer did not arrive. Try again.")
    await ready(page)
    await page.unroute("**/api/approvals/*")
    del asking.questions["q1"]
    await button(page, "Allow once").click()
    await expect(page.locator(".consent")).to_contain_text("This question is no longer open.")
    assert asking.answers == []


async def test_an_open_question_is_there_after_a_reload_and_gone_after_a_restart(
    open_page: OpenPage, asking: FakeBackend, server: PageServer
) -> None:
    page = await open_page()
    await expect(page.locator(".message")).to_have_count(1)
    asking.ask("i1", COMMAND)
    await expect(page.locator(".consent")).to_be_visible()
    await page.reload()
    await expect(page.locator(".consent")).to_be_visible()
    await server.stop()
    await server.start()
    await expect(page.locator(".consent")).to_have_count(0)


async def test_a_question_about_another_conversation_is_announced_and_led_to(
    open_page: OpenPage, asking: FakeBackend
) -> None:
    page = await open_page()
    await expect(page.locator(".message")).to_have_count(1)
    asking.add_conversation("t1", channel="telegram", title="Sara")
    asking.save("t1", "user", "clean up", sender="Sara", state="running")
    asking.ask("t1", COMMAND, **{"from": "Sara (telegram:8)"})
    await expect(page.locator("#asks")).to_contain_text("Hudhud asks for your consent in")
    await expect(page.locator("#asks")).to_contain_text("Sara")
    await expect(page.locator(".consent")).to_have_count(0)
    await button(page, "Show").click()
    await expect(page.locator("#asks")).to_be_hidden()
    await ready(page)
    await session(page, "Here").click()
    await expect(page.locator("#asks")).to_be_visible()
    asking.close_question("q1", "denied")
    await expect(page.locator("#asks")).to_be_hidden()


async def test_what_was_asked_on_another_channel_is_shown_as_it_was_sent(
    open_page: OpenPage, asking: FakeBackend
) -> None:
    page = await open_page()
    await expect(page.locator(".message")).to_have_count(1)
    asking.save("i1", "system", "May I run this?\n\n```\nrm -r old\n```\n\nReply 1 (yes) or 2 (no).")
    await expect(page.locator(".message.notice pre")).to_have_text("rm -r old\n")


async def test_in_arabic_and_on_a_phone(open_page: OpenPage, asking: FakeBackend) -> None:
    long = "write_file:\npath: " + "a-very-long-name/" * 20 + "\ntext:\n" + "\n".join(f"    سطر {n}" for n in range(80))
    page = await open_page(locale="ar-EG", size=PHONE, has_touch=True)
    await page.locator(".session").click()
    asking.ask("i1", long, reason="يغيّر ملفات.", **{"from": "سارة (telegram:8)"})
    card = page.get_by_role("article", name="هل يُسمح بتنفيذ هذا؟")
    assert await card.locator("pre").text_content() == long
    direction = "element => getComputedStyle(element).direction"
    assert await card.locator("pre").evaluate(direction) == "ltr"
    assert await card.evaluate(direction) == "rtl"
    wide = """[...document.querySelectorAll('.consent, .consent pre, .scroller')]
        .filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.className)"""
    assert await page.evaluate(wide) == []
    await ready(page)
    await expect(button(page, "السماح مرة واحدة")).to_be_in_viewport()
    await button(page, "رفض").click()
    await expect(card).to_contain_text("لم يُسمح به ولم يُنفَّذ.")
    assert asking.answers == [("q1", False)]
