"""The whole program with WhatsApp behind neonize's interface: asked and answered, consent by number, restarts, linking.
And the real library where nothing can be reached."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from agent.types import Provider, ToolCall
from channels.message import Address
from gateway.home import prepare
from tests.fakes.models import Say, ScriptedModel
from tests.fakes.program import EchoProvider, Program, program, rows, settings_for
from tests.fakes.waiting import until
from tests.fakes.whatsapp import E2E, FRIEND, FRIEND_LID, GROUP, OWNER, PROTO, Platform, event, history, installed

ROOT = Path(__file__).parents[2]
STRANGER = "15550007777@s.whatsapp.net"


@pytest.fixture
async def platform(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Platform]:
    made = Platform()
    installed(monkeypatch, made)
    yield made
    made.close()


def settings(**more: Any) -> Any:
    given = {"enabled": True, "owner": OWNER, "allow": [FRIEND], "groups": [GROUP]} | more
    return settings_for(channels={"whatsapp": given})


async def linked(gateway: Program) -> None:
    """The phone scans the code that the page shows."""
    await gateway.post("/api/channels/whatsapp/link", {}, 200)
    await until_state(gateway, "connected")


async def until_state(gateway: Program, state: str) -> None:
    async def is_so() -> bool:
        return (await gateway.channel("whatsapp"))["state"] == state

    await until(is_so)


async def said(gateway: Program, platform: Platform, *events: Any) -> None:
    platform.push(*events)
    await platform.until_taken()
    await gateway.quiet()


def at(message: Any, message_id: str, **about: Any) -> Any:
    return event(message, message_id, **({"at": datetime.now(UTC)} | about))


async def test_a_question_on_whatsapp_is_answered_from_memory(tmp_path: Path, platform: Platform) -> None:
    home = tmp_path / "h"
    async with program(home, settings=settings()) as gateway:
        await until_state(gateway, "logged_out")
        await linked(gateway)
        await said(gateway, platform, at("Remember that my passport is in the blue folder.", "M1", chat=OWNER))
        await said(gateway, platform, at("Where is my passport?", "M2", chat=OWNER))
        await said(gateway, platform, at("Where is my passport?", "M2", chat=OWNER))
        assert len(platform.sent) == 2
        assert "blue folder" in platform.texts[-1]
        assert [direction for direction, _ in gateway.logged(OWNER, "whatsapp")] == ["in", "out", "in", "out"]
        found = await gateway.channel("whatsapp")
        assert found["last_send_at"]
        assert found["last_receive_at"]
    # After a restart it is connected without a code, knows its own words, and answers nothing twice.
    own = rows(home, "SELECT sent_ids FROM delivery WHERE channel = 'whatsapp' ORDER BY created_at")
    async with program(home, settings=settings()) as gateway:
        await until_state(gateway, "connected")
        await said(
            gateway,
            platform,
            at("Where is my passport?", "M2", chat=OWNER),
            at("my own words", json.loads(own[0][0])[0], chat=OWNER, from_me=True),
        )
        assert len(platform.sent) == 2
        assert [line["text"] for line in gateway.log(OWNER, "whatsapp")][4:] == []


async def test_who_gets_an_answer_and_who_does_not(tmp_path: Path, platform: Platform) -> None:
    async with program(tmp_path / "h", settings=settings(), provider=EchoProvider()) as gateway:
        await linked(gateway)
        await said(
            gateway,
            platform,
            at("stranger", "M1", chat=STRANGER),
            at("friend", "M2", chat=FRIEND_LID, sender=FRIEND_LID, sender_alt=FRIEND),
            at("in the group", "M3", chat=GROUP, sender=OWNER),
            at("@15550001111 called", "M4", chat=GROUP, sender=FRIEND),
            at("@15550001111 called", "M5", chat=GROUP, sender=STRANGER),
            at("to somebody", "M6", chat=STRANGER, from_me=True),
        )
        assert sorted(
            (chat, "friend" in text or "called" in text)
            for (chat, _), text in zip(platform.sent, platform.texts, strict=True)
        ) == [
            (GROUP, True),
            (FRIEND, True),
        ]
        assert gateway.logged(STRANGER, "whatsapp") == [("in", "stranger"), ("out", "to somebody")]
        for chat in (STRANGER, "120363000000000009@g.us", "5@lid"):
            assert await told(gateway, chat) == "failed"
        assert {chat for chat, _ in platform.sent} == {GROUP, FRIEND}
        assert len(gateway.log(GROUP, "whatsapp")) == 4


async def test_a_picture_is_kept_and_shown_to_the_model(tmp_path: Path, platform: Platform) -> None:
    picture = E2E.ImageMessage(caption="what is this?", mimetype="image/png", fileLength=8, directPath="/p")
    platform.files["/p"] = b"\x89PNG\r\n\x1a\n"
    model = EchoProvider()
    async with program(tmp_path / "h", settings=settings(), provider=model) as gateway:
        await linked(gateway)
        await said(gateway, platform, at(E2E.Message(imageMessage=picture), "M1", chat=OWNER))
        (line,) = (line for line in gateway.log(OWNER, "whatsapp") if line["dir"] == "in")
        (file,) = line["attachments"]
        assert "remote" not in file
        assert (tmp_path / "h" / "workspace" / file["path"]).read_bytes() == platform.files["/p"]
        assert file["path"] in str(model.prompts[-1])
        assert len(platform.sent) == 1


async def test_a_file_that_is_gone_is_said_to_be(tmp_path: Path, platform: Platform) -> None:
    picture = E2E.ImageMessage(caption="and this?", mimetype="image/png", fileLength=8, directPath="/gone")
    huge = E2E.DocumentMessage(fileName="film.mkv", fileLength=10**9, directPath="/huge")
    async with program(tmp_path / "h", settings=settings(), provider=EchoProvider()) as gateway:
        await linked(gateway)
        await said(
            gateway,
            platform,
            at(E2E.Message(imageMessage=picture), "M1", chat=OWNER),
            at(E2E.Message(documentMessage=huge), "M2", chat=OWNER),
        )
        told_of = " ".join(platform.texts)
        assert "could not fetch photo" in told_of
        assert "and this?" in told_of
        assert "film.mkv: it is larger than 100 MB" in told_of


async def told(gateway: Program, chat: str) -> str:
    """What becomes of a word of a tool to that chat."""
    app = gateway.app
    key = f"test:{chat}"
    notice = await app.store.notice(Address("whatsapp", chat), "idle", "hello", key, False, datetime.now(UTC))
    app.outbox.put(notice)
    return (await app.outbox.settled(notice, 10)).state


async def test_consent_is_a_number(tmp_path: Path, platform: Platform) -> None:
    model = _risky_model()
    async with program(tmp_path / "h", settings=settings(), provider=model) as gateway:
        await linked(gateway)
        platform.push(at("make the folder", "M1", chat=OWNER))
        await until(lambda: any("May I run this?" in text for text in platform.texts))
        question = platform.texts[-1]
        assert "```" in question
        assert "Reply 1 (yes) or 2 (no)." in question
        await said(gateway, platform, at("1", "M2", chat=OWNER))
        assert platform.texts[-1] == "Done."
        assert (tmp_path / "h" / "workspace" / "made-by-consent").is_dir()
        assert gateway.rows("SELECT outcome FROM tool_call WHERE name = 'run_command'") == [("success",)]


def _risky_model() -> Provider:
    load = ToolCall("c1", "load_capability", {"name": "shell"})
    run = ToolCall("c2", "run_command", {"command": "mkdir made-by-consent"})
    return ScriptedModel(Say(calls=[load]), Say(calls=[run]), Say("Done."))  # pyright: ignore[reportReturnType]


async def test_what_was_missed_gets_one_answer_and_history_none(tmp_path: Path, platform: Platform) -> None:
    """B49."""
    now = datetime.now(UTC)
    model = EchoProvider()
    async with program(tmp_path / "h", settings=settings(), provider=model) as gateway:
        await linked(gateway)
        old = [(f"H{n}", f"old {n}", False, now - timedelta(days=30, minutes=n)) for n in range(200)]
        await said(gateway, platform, history((OWNER, old)))
        missed = [at(f"missed {n}", f"M{n}", chat=OWNER, at=now - timedelta(minutes=3 - n)) for n in range(3)]
        model.gate.clear()
        platform.push(*missed, *missed, PROTO.OfflineSyncCompleted(Count=3))
        await platform.until_taken()
        model.gate.set()
        await gateway.quiet()
        assert len(gateway.log(OWNER, "whatsapp")) == 200 + 3 + len(platform.sent)
        assert len(platform.sent) == 1
        assert len(gateway.rows("SELECT DISTINCT conversation_id FROM message WHERE text LIKE 'old %'")) == 1


async def test_a_message_taken_back_is_not_found_any_more(tmp_path: Path, platform: Platform) -> None:
    """B45."""
    async with program(tmp_path / "h", settings=settings(), provider=EchoProvider()) as gateway:
        await linked(gateway)
        await said(gateway, platform, at("the zebra plan", "M2", chat=STRANGER))
        assert (await gateway.get("/api/search?query=zebra"))["hits"]
        revoke = E2E.ProtocolMessage(type=0)
        revoke.key.ID = "M2"
        await said(gateway, platform, at(E2E.Message(protocolMessage=revoke), "R1", chat=STRANGER))
        assert (await gateway.get("/api/search?query=zebra"))["hits"] == []
        assert [line["kind"] for line in gateway.log(STRANGER, "whatsapp")] == ["text", "revoke"]
        assert platform.sent == []


async def test_logged_out_and_linked_again_without_a_restart(tmp_path: Path, platform: Platform) -> None:
    """B52: the rest of the program goes on meanwhile."""
    async with program(tmp_path / "h", settings=settings(), provider=EchoProvider()) as gateway:
        await linked(gateway)
        platform.is_paired = False
        platform.push(PROTO.LoggedOut(OnConnect=True, Reason=2))
        await until_state(gateway, "logged_out")
        assert await gateway.ask("still there?") == "re: still there?"
        await gateway.post("/api/channels/whatsapp/link", {}, 200)
        client = await platform.until_up()
        await client.show_qr("2@new")

        async def is_shown() -> bool:
            return (await gateway.get("/api/channels/whatsapp/link"))["qr"] == "2@new"

        await until(is_shown)
        await client.pair()
        await until_state(gateway, "connected")
        await said(gateway, platform, at("hello again", "M9", chat=OWNER))
        assert sorted(platform.texts) == ["re: hello again", "whatsapp is back."]


# The real library: nothing here reaches WhatsApp, on no machine.

NOWHERE = {"HTTPS_PROXY": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_the_real_library_without_a_line_is_unreachable_and_stops_at_once(tmp_path: Path) -> None:
    """It dials, fails, says so and is tried again by the supervisor; nothing of it is printed; Ctrl-C ends it."""
    home = tmp_path / "home"
    prepare(
        home,
        config="[channels.inapp]\nport = 0\n[heartbeat]\nenabled = false\n"
        '[channels.whatsapp]\nenabled = true\nowner = "15550009999"\n',
    )
    with subprocess.Popen(
        [sys.executable, "-m", "gateway", "run", "--home", str(home), "--json"],
        cwd=ROOT,
        env={**os.environ, **NOWHERE},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            facts = json.loads(process.stdout.readline())
            link = _hudhud(home, "channels", "link", "whatsapp")
            assert link.returncode == 1
            assert "cannot be reached" in link.stderr
            states = json.loads(_hudhud(home, "channels", "status", "--json").stdout)["channels"]
            states = {item["channel"]: item for item in states}
            assert states["whatsapp"]["state"] in {"unreachable", "logged_out"}
            assert states["whatsapp"]["remedy"]
            started = time.monotonic()
            process.send_signal(signal.SIGINT)
            rest, errors = process.communicate(timeout=20)
            assert time.monotonic() - started < 5
        finally:
            if process.poll() is None:
                process.kill()
    assert process.returncode == 0
    assert rest == ""
    assert facts["address"]
    assert "Traceback" not in errors
    log = (home / "workspace" / "logs" / "gateway.log").read_text(encoding="utf-8")
    assert "cannot be reached" in log


def test_linking_without_a_gateway_and_without_a_line_says_so(tmp_path: Path) -> None:
    home = tmp_path / "home"
    prepare(home)
    started = time.monotonic()
    said = _hudhud(home, "channels", "link", "whatsapp", "--json")
    assert said.returncode == 1
    assert json.loads(said.stdout)["error"]["code"] == "not_linked"
    assert "cannot be reached" in json.loads(said.stdout)["error"]["message"]
    assert "Traceback" not in said.stderr
    assert time.monotonic() - started < 20
    out = _hudhud(home, "channels", "logout", "whatsapp")
    assert out.returncode == 0
    assert not (home / "whatsapp" / "auth").exists()
    assert _hudhud(home, "channels", "link", "telegram").returncode == 2
    assert _hudhud(home, "channels", "link", "pigeon").returncode == 3


def _hudhud(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gateway", *arguments, "--home", str(home)],
        cwd=ROOT,
        env={**os.environ, **NOWHERE},
        capture_output=True,
        timeout=60,
        text=True,
        check=False,
    )


async def test_what_the_native_side_prints_goes_to_the_log() -> None:
    program_text = (
        "import asyncio, logging, os, sys\n"
        "from channels.whatsapp.library import Printed\n"
        "logging.basicConfig(level=logging.DEBUG, stream=sys.stderr)\n"
        "async def main():\n"
        "    printed = Printed()\n"
        "    printed.open(asyncio.get_running_loop())\n"
        "    os.write(1, b'Login event: code\\n')\n"
        "    print('ours')\n"
        "    await asyncio.sleep(0.1)\n"
        "    printed.close()\n"
        "    print('after')\n"
        "asyncio.run(main())\n"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        program_text,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, errors = await process.communicate()
    assert out == b"ours\nafter\n"
    assert b"neonize printed: Login event: code" in errors
