"""The page in a real browser, as a person uses it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from channels.channel import NotAccepted
from tests.fakes.backend import FakeBackend, PageServer

pytestmark = pytest.mark.browser
expect: Any = pytest.importorskip("playwright.async_api", reason="the `playwright` package is not installed").expect
OpenPage = Callable[..., Awaitable[Any]]
DESK = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}


@pytest.fixture
def backend(tmp_path: Path) -> FakeBackend:
    return FakeBackend(tmp_path)


@pytest.fixture
async def server(backend: FakeBackend, tmp_path: Path) -> AsyncIterator[PageServer]:
    running = PageServer(backend, tmp_path)
    await running.start()
    yield running
    await running.stop()


@pytest.fixture
async def open_page(browser: Any, server: PageServer) -> AsyncIterator[OpenPage]:
    """Opens the page by a fresh link; at the end no page may have reported a fault of its own."""
    faults: list[str] = []
    contexts: list[Any] = []

    def failed(error: Any) -> None:
        faults.append(str(error))

    def said(message: Any) -> None:
        if "Content Security Policy" in message.text:
            faults.append(message.text)

    async def opened(*, locale: str = "en-GB", size: dict[str, int] = DESK, **options: Any) -> Any:
        context = await browser.new_context(locale=locale, viewport=size, **options)
        contexts.append(context)
        context.set_default_timeout(10_000)
        page = await context.new_page()
        page.on("pageerror", failed)
        page.on("console", said)
        await page.goto(server.link)
        return page

    yield opened
    for context in contexts:
        await context.close()
    assert faults == []


def session(page: Any, title: str) -> Any:
    return page.locator(".session", has_text=title)


async def send(page: Any, text: str) -> None:
    await page.fill("#text", text)
    await page.press("#text", "Enter")


async def test_write_see_the_answer_stream_in_reload_and_see_it_once(open_page: OpenPage, backend: FakeBackend) -> None:
    first, second = asyncio.Event(), asyncio.Event()
    search = {"n": 1, "name": "memory_search", "state": "running"}
    backend.steps = (search, first, {**search, "state": "success"}, "The code is ", second, "in the **blue** notebook.")
    backend.tool_calls = [
        {"n": 1, "name": "memory_search", "args": {"query": "code"}, "output": "1 hit", "outcome": "success"}
    ]
    page = await open_page()
    await send(page, "Where is the garage code?")
    await expect(page.locator(".message.person")).to_have_count(1)
    await expect(page.locator("#doing")).to_have_text("Searching memory…")
    await expect(page.locator(".tool.running")).to_contain_text("Search memory")
    first.set()
    await expect(page.locator(".message.live .plain")).to_have_text("The code is ")
    await expect(page.locator(".tool.success")).to_be_visible()
    await page.reload()
    await expect(page.locator(".message.live .plain")).to_have_text("The code is ")
    second.set()
    await expect(page.locator(".message.agent strong")).to_have_text("blue")
    await expect(page.locator("#doing")).to_have_text("")
    await page.reload()
    await expect(page.locator(".message.agent strong")).to_have_text("blue")
    await expect(page.locator(".message.person")).to_have_count(1)
    await expect(page.locator(".message.agent")).to_have_count(1)
    assert len(backend.inbound) == 1
    await page.locator(".tool").click()
    await expect(page.locator("#sheet")).to_contain_text("1 hit")
    await page.keyboard.press("Escape")
    await expect(page.locator("#sheet")).to_be_hidden()
    await expect(page.locator(".tool")).to_be_focused()


async def test_a_message_on_another_channel_appears_in_the_side_bar(open_page: OpenPage, backend: FakeBackend) -> None:
    backend.add_conversation("i1", title="Here")
    backend.save("i1", "user", "hello")
    page = await open_page()
    await expect(session(page, "Here")).to_be_visible()
    backend.add_conversation("t1", channel="telegram", title="سلمى")
    backend.save("t1", "user", "هل وصل الطرد؟", sender="نورة")
    row = session(page, "سلمى")
    await expect(row).to_contain_text("هل وصل الطرد؟")
    await expect(row.locator(".badge")).to_contain_text("1")
    await expect(page.locator(".session").first).to_contain_text("سلمى")
    await row.click()
    await expect(page.locator(".message .sender")).to_have_text("نورة")
    await expect(page.locator("#composer")).to_be_hidden()
    await expect(page.locator("#elsewhere")).to_contain_text("Telegram")
    await expect(row.locator(".badge")).to_have_count(0)


async def test_a_restart_of_the_server_loses_and_doubles_nothing(
    open_page: OpenPage, backend: FakeBackend, server: PageServer
) -> None:
    backend.add_conversation("i1", title="Here")
    backend.save("i1", "user", "before")
    page = await open_page()
    await expect(page.locator(".message")).to_have_count(1)
    await server.stop()
    await expect(page.locator("#line-state")).to_be_visible()
    backend.save("i1", "assistant", "saved while away")
    await send(page, "written while away")
    await expect(page.locator('.message [title="Waiting to be sent"]')).to_have_count(1)
    await server.start()
    await expect(page.locator("#line-state")).to_be_hidden()
    await expect(page.locator(".message.agent").last).to_contain_text("Hello from Hudhud.")
    await expect(page.locator(".message")).to_have_count(4)
    texts = await page.locator(".message .body").all_inner_texts()
    assert [text.strip() for text in texts] == [
        "before",
        "saved while away",
        "written while away",
        "Hello from Hudhud.",
    ]
    assert len(backend.inbound) == 1


async def test_a_turn_that_a_restart_broke_off_starts_again_from_nothing(
    open_page: OpenPage, backend: FakeBackend, server: PageServer
) -> None:
    backend.steps = ("Half an ans", asyncio.Event())
    page = await open_page()
    await send(page, "hello")
    await expect(page.locator(".message.live .plain")).to_have_text("Half an ans")
    await server.stop()
    for task in backend.tasks:
        task.cancel()
    await server.start()
    await expect(page.locator(".message.live")).to_have_count(0)
    backend.publish("delta", {"conversation": "c1", "turn": "t-c1-1", "text": "A whole answer."})
    await expect(page.locator(".message.live .plain")).to_have_text("A whole answer.")
    await expect(page.locator(".message.person")).to_have_count(1)


async def test_a_turn_whose_row_is_saved_before_its_end_is_shown_once(
    open_page: OpenPage, backend: FakeBackend
) -> None:
    call = {"n": 1, "name": "memory_search", "args": {"query": "code"}, "output": "", "outcome": "running"}
    about = {"conversation": "i1", "turn": "t"}
    backend.add_conversation("i1", title="Here")
    backend.save("i1", "user", "the code?", state="running")
    row = backend.save("i1", "assistant", "", state="running", tool_calls=[call])
    backend.publish("tool", {**about, "n": 1, "name": "memory_search", "state": "running"})
    page = await open_page()
    await expect(page.locator(".tool")).to_have_count(1)
    backend.publish("delta", {**about, "text": "It is "})
    await expect(page.locator(".message.agent")).to_have_count(1)
    final = {**row, "text": "It is **42**.", "state": "answered", "tool_calls": [{**call, "outcome": "success"}]}
    backend.saved["i1"]["messages"][1] = final
    summary = {"id": "i1", "channel": "inapp", "title": "", "message_count": 2, "last_text": "It is 42."}
    backend.publish("done", {**about, "message": {**final, "tool_calls": []}, "summary": summary, "version": 9})
    await expect(page.locator(".message.agent strong")).to_have_text("42")
    await expect(page.locator(".message.agent")).to_have_count(1)
    await expect(page.locator(".tool.success")).to_have_count(1)
    await expect(page.locator("#doing")).to_have_text("")
    await expect(page.locator("#chat-title")).to_have_text("Here")


async def test_a_message_that_could_not_be_saved_waits_and_is_taken_once(
    open_page: OpenPage, backend: FakeBackend
) -> None:
    backend.refusal = NotAccepted("The disk is full.")
    page = await open_page()
    await send(page, "keep this")
    await expect(page.locator('.message [title="Waiting to be sent"]')).to_have_count(1)
    await page.reload()
    await expect(page.locator(".message.person")).to_contain_text("keep this")
    backend.refusal = None
    await expect(page.locator(".message.agent")).to_contain_text("Hello from Hudhud.")
    await expect(page.locator(".message.person")).to_have_count(1)
    assert [message.text for message in backend.inbound] == ["keep this"]


async def test_keys_of_the_composer(open_page: OpenPage, backend: FakeBackend) -> None:
    page = await open_page()
    await page.fill("#text", "one")
    await page.press("#text", "Shift+Enter")
    await page.locator("#text").press_sequentially("two")
    composing = "new KeyboardEvent('keydown', {key: 'Enter', isComposing: true, bubbles: true, cancelable: true})"
    await page.evaluate(f"document.getElementById('text').dispatchEvent({composing})")
    await expect(page.locator("#text")).to_have_value("one\ntwo")
    heights: list[float] = []
    for lines in (1, 4, 30):
        await page.fill("#text", "\n".join("x" * lines))
        heights.append((await page.locator("#text").bounding_box())["height"])
    assert heights[0] < heights[1] < heights[2] == 8 * 24 + 16
    await send(page, "three")
    await expect(page.locator(".message.person")).to_contain_text("three")
    assert [message.text for message in backend.inbound] == ["three"]


async def test_a_draft_is_kept_for_its_conversation(open_page: OpenPage, backend: FakeBackend) -> None:
    for name in ("Alpha", "Beta"):
        backend.add_conversation(name, title=name)
        backend.save(name, "user", "x")
    page = await open_page()
    await session(page, "Alpha").click()
    await page.fill("#text", "half a thought")
    await session(page, "Beta").click()
    await expect(page.locator("#text")).to_have_value("")
    await session(page, "Alpha").click()
    await page.reload()
    await expect(page.locator("#text")).to_have_value("half a thought")


async def test_a_new_conversation_starts_with_its_first_message(open_page: OpenPage, backend: FakeBackend) -> None:
    backend.add_conversation("i1", title="Old")
    backend.save("i1", "user", "old")
    page = await open_page()
    await page.click("#new")
    await expect(page.locator(".empty")).to_contain_text("What can I do for you?")
    await send(page, "a new subject")
    await expect(page.locator(".message.agent")).to_contain_text("Hello from Hudhud.")
    assert [message.chat_id for message in backend.inbound] == ["c2"]
    await expect(page).to_have_url(re.compile("#/c/c2$"))
    await expect(page.locator(".session")).to_have_count(2)


async def test_new_messages_do_not_move_what_is_being_read(open_page: OpenPage, backend: FakeBackend) -> None:
    backend.add_conversation("i1", title="Long")
    for number in range(120):
        backend.save("i1", "assistant", f"message {number}\n\nwith a second line")
    page = await open_page()
    await expect(page.locator(".message").last).to_contain_text("message 119")
    await expect(page.locator(".message")).to_have_count(50)
    await page.evaluate("document.getElementById('scroller').scrollTop = 1200")
    await expect(page.locator("#pill")).to_have_text("Newest messages")
    top = await page.locator('[data-n="90"]').bounding_box()
    backend.save("i1", "assistant", "the newest")
    await expect(page.locator("#pill")).to_have_text("1 new message")
    assert await page.locator('[data-n="90"]').bounding_box() == top
    await page.click("#pill")
    await expect(page.locator("#pill")).to_be_hidden()
    await expect(page.locator(".message").last).to_be_in_viewport()
    for _ in range(2):
        count = await page.locator(".message").count()
        await page.evaluate("document.getElementById('scroller').scrollTop = 0")
        await expect(page.locator(".message")).not_to_have_count(count)
    await expect(page.locator(".message")).to_have_count(121)


async def test_a_search_leads_to_the_message(open_page: OpenPage, backend: FakeBackend) -> None:
    backend.add_conversation("i1", title="Long")
    for number in range(1, 121):
        backend.save("i1", "user", f"message {number}")
    backend.hits = [{"ref": "conversation:i1#7", "title": "Long", "snippet": "message 7", "at": None}]
    page = await open_page()
    await page.fill("#query", "message 7")
    await page.locator(".hit").click()
    await expect(page.locator('[data-n="7"]')).to_be_in_viewport()
    await page.fill("#query", "nothing like it")
    await expect(page.locator("#hits")).to_contain_text("Nothing found for “nothing like it”.")
    await page.press("#query", "Escape")
    await expect(page.locator(".session")).to_be_visible()


async def test_stop_and_a_failed_turn(open_page: OpenPage, backend: FakeBackend) -> None:
    backend.steps = ("Thinking about it", asyncio.Event())
    page = await open_page()
    await expect(page.locator("#stop")).to_be_hidden()
    await send(page, "a long task")
    await page.click("#stop")
    await expect(page.locator(".message.live")).to_be_visible()
    assert backend.stopped == ["c1"]
    backend.publish("error", {"conversation": "c1", "turn": "t-c1-1", "message": "The model did not answer."})
    await expect(page.locator(".fault")).to_contain_text("The model did not answer.")
    await expect(page.locator(".message.live")).to_have_count(0)
    for task in backend.tasks:
        task.cancel()


async def test_text_is_never_markup(open_page: OpenPage, backend: FakeBackend) -> None:
    attack = "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>"
    backend.steps = (attack, f"\n\n[x](javascript:document.title='taken') {attack}")
    backend.add_conversation("t1", channel="telegram", title=attack)
    backend.save("t1", "user", attack, sender=attack)
    page = await open_page()
    await session(page, "onerror").click()
    await expect(page.locator(".message .body")).to_have_text(attack)
    await page.click("#new")
    await send(page, attack)
    await expect(page.locator(".message.agent:not(.live)")).to_contain_text("onerror")
    assert await page.title() == "Hudhud"
    assert await page.locator(".app img, .app script").count() == 0


async def test_arabic_mirrors_the_page(open_page: OpenPage, backend: FakeBackend) -> None:
    backend.add_conversation("i1", title="Here")
    backend.save("i1", "user", "مرحبا")
    backend.save("i1", "assistant", "Hello")
    page = await open_page(locale="ar-EG")
    await expect(page.locator("html")).to_have_attribute("dir", "rtl")
    await expect(page.locator("#text")).to_have_attribute("placeholder", "رسالة")
    listed, chat = await page.locator(".list").bounding_box(), await page.locator(".chat").bounding_box()
    assert listed["x"] > chat["x"]
    own = await page.locator(".message.person .body").bounding_box()
    assert own["x"] - chat["x"] < chat["width"] / 2
    direction = "element => getComputedStyle(element).direction"
    assert await page.locator(".message.agent p").first.evaluate(direction) == "ltr"
    await page.click("#go-language")
    await expect(page.locator("html")).to_have_attribute("dir", "ltr")


@pytest.mark.parametrize("locale", ["en-GB", "ar"])
async def test_on_a_phone_nothing_scrolls_sideways(open_page: OpenPage, backend: FakeBackend, locale: str) -> None:
    long = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft" * 2
    table = "| a | b | c | d |\n|-|-|-|-|\n" + f"| {'word ' * 12} " * 4 + "|"
    call: dict[str, Any] = {"n": 1, "name": "web_fetch", "args": {}, "output": long, "outcome": "failed"}
    backend.add_conversation("i1", title=long)
    backend.save("i1", "user", long)
    backend.save("i1", "assistant", f"{long}\n\n{table}\n\n```\n{long}\n```\n`{long}`", tool_calls=[call])
    page = await open_page(locale=locale, size=PHONE, has_touch=True)
    wide = """[...document.querySelectorAll('body, .list, .sessions, .chat, .scroller')]
        .filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.className)"""
    await expect(page.locator(".chat")).to_be_hidden()
    assert await page.evaluate(wide) == []
    await page.locator(".session").click()
    await expect(page.locator(".scroll-box")).to_be_visible()
    await expect(page.locator(".list")).to_be_hidden()
    assert await page.evaluate(wide) == []
    assert await page.evaluate("document.querySelector('.scroll-box').scrollWidth > 390")
    await page.click("#back")
    await expect(page.locator(".list")).to_be_visible()
    await page.go_back()
    await expect(page.locator(".chat")).to_be_visible()


async def test_an_ended_access_is_said(open_page: OpenPage, server: PageServer) -> None:
    page = await open_page()
    await expect(page.locator("#line-state")).to_be_hidden()
    await page.context.clear_cookies()
    await server.stop()
    await server.start()
    await expect(page.locator("#line-state")).to_contain_text("hudhud status --link")


async def test_everything_can_be_reached_and_has_a_name(open_page: OpenPage, backend: FakeBackend) -> None:
    backend.add_conversation("i1", title="Here")
    backend.save("i1", "assistant", "Hello")
    page = await open_page()
    await expect(page.locator(".message")).to_have_count(1)
    nameless = """[...document.querySelectorAll('button, input, textarea, nav, main, section, aside:not([hidden])')]
        .filter((e) => !(e.innerText || '').trim() && !e.getAttribute('aria-label')).map((e) => e.outerHTML)"""
    assert await page.evaluate(nameless) == []
    await page.locator("#query").focus()
    reached: list[str] = []
    for _ in range(12):
        await page.keyboard.press("Tab")
        reached.append(await page.evaluate("document.activeElement.id || document.activeElement.className.trim()"))
    assert {"new", "session", "scroller", "text", "send"} <= set(reached)


@pytest.mark.parametrize("locale", ["en-GB", "ar-SA"])
async def test_a_conversation_is_deleted_after_a_question(
    open_page: OpenPage, backend: FakeBackend, locale: str
) -> None:
    for name in ("kept", "unwanted"):
        backend.add_conversation(name, title=f"The {name} one")
        backend.save(name, "user", f"words of {name}")
    page = await open_page(locale=locale)
    await page.locator('[data-id="unwanted"]').click()
    await page.locator("#remove").click()
    dialog = page.locator("#remove-confirm")
    await expect(dialog).to_contain_text("The unwanted one")
    await page.keyboard.press("Enter")
    await expect(dialog).to_be_hidden()
    assert set(backend.saved) == {"kept", "unwanted"}
    await page.locator("#remove").click()
    await page.locator("#remove-now").click()
    await expect(dialog).to_be_hidden()
    await expect(page.locator("[data-id]")).to_have_count(1)
    await expect(page.locator("#messages")).not_to_contain_text("words of unwanted")
    assert set(backend.saved) == {"kept"}


async def test_what_is_removed_elsewhere_leaves_the_open_page(open_page: OpenPage, backend: FakeBackend) -> None:
    backend.add_conversation("c", title="Notes")
    for text in ("first words", "second words"):
        backend.save("c", "user", text)
    page = await open_page()
    await expect(page.locator("#messages")).to_contain_text("first words")
    backend.publish("status", {"conversation": "c", "turn": None, "removed": [1]})
    await expect(page.locator("#messages")).not_to_contain_text("first words")
    await expect(page.locator("#messages")).to_contain_text("second words")


async def test_a_file_is_attached_sent_and_shown(open_page: OpenPage, backend: FakeBackend, tmp_path: Path) -> None:
    page = await open_page()
    document = tmp_path / "خطة السفر.txt"
    document.write_text("at nine")
    await page.set_input_files("#chooser", str(document))
    chip = page.locator("#files .file")
    await expect(chip).to_contain_text("خطة السفر.txt")
    await expect(page.locator("#files .going")).to_have_count(0)
    await page.press("#text", "Enter")
    await expect(page.locator("#files")).to_be_hidden()
    await expect(page.locator(".message.person .attached")).to_contain_text("خطة السفر.txt")
    (message,) = backend.inbound
    assert (message.text, [file.name for file in message.attachments]) == ("", ["خطة السفر.txt"])
