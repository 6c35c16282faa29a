"""Linking a phone on the page: the code to scan, renewed, and what came of it."""

from __future__ import annotations

import pytest

from tests.browser.test_page import OpenPage, backend, expect, open_page, server, session
from tests.fakes.backend import FakeBackend

__all__ = ["backend", "open_page", "server", "session"]
pytestmark = pytest.mark.browser


@pytest.fixture
def unlinked(backend: FakeBackend) -> FakeBackend:
    """With a channel that is to be linked."""
    down = {"channel": "whatsapp", "enabled": True, "connected": False, "state": "logged_out", "detail": "no phone"}
    backend.state["channels"] = [down | {"remedy": "Link it.", "last_receive_at": None, "last_send_at": None}]
    backend.links["whatsapp"] = {
        "channel": "whatsapp",
        "state": "off",
        "qr": None,
        "code": None,
        "detail": "",
        "version": 0,
    }
    return backend


async def test_a_phone_is_linked_by_the_code_on_the_page(open_page: OpenPage, unlinked: FakeBackend) -> None:
    page = await open_page()
    await page.locator("#go-status").click()
    await page.get_by_role("button", name="Link a phone").click()
    await expect(page.locator("#sheet-title")).to_have_text("Link WhatsApp")
    show(unlinked, state="shown", qr="2@first")
    code = page.get_by_role("img", name="A code to scan with the phone")
    await expect(code).to_be_visible()
    first = await code.get_attribute("src")
    assert await code.evaluate("picture => picture.decode().then(() => picture.naturalWidth > 50)")
    show(unlinked, state="shown", qr="2@second")
    await expect(code).not_to_have_attribute("src", str(first))
    show(unlinked, state="linked", qr=None)
    await expect(page.locator("#sheet-body")).to_contain_text("The phone is linked.")
    await expect(code).to_have_count(0)


async def test_codes_that_nobody_used_can_be_asked_for_again(open_page: OpenPage, unlinked: FakeBackend) -> None:
    page = await open_page()
    await page.locator("#go-status").click()
    await page.get_by_role("button", name="Link a phone").click()
    show(unlinked, state="expired", qr=None)
    await expect(page.locator("#sheet-body")).to_contain_text("Nobody used the codes in time.")
    await page.get_by_role("button", name="Link a phone").click()
    await expect(page.locator("#sheet-body")).to_contain_text("Asking for a code…")


def show(backend: FakeBackend, **state: object) -> None:
    """What the channel says of its linking from now on."""
    known = backend.links["whatsapp"]
    backend.links["whatsapp"] = {**known, **state, "version": known["version"] + 1}
