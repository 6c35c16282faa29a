"""The library: imported only when it is needed, quiet, and missing with one sentence."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
import threading
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from channels.whatsapp import library
from tests.fakes.whatsapp import LIBRARY

ROOT = Path(__file__).parents[3]


def test_it_is_imported_only_when_the_channel_is_on() -> None:
    """B54: and importing the channel needs no loop."""
    text = (
        "import sys\n"
        "from gateway.config import Settings\n"
        "from channels.registry import settings_class\n"
        "import channels.whatsapp.settings, channels.whatsapp.channel, gateway.app\n"
        "assert not {'neonize', 'google.protobuf', 'magic', 'segno'} & set(sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", text], cwd=ROOT, capture_output=True, check=False, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr


def test_it_adds_no_handler_no_level_and_no_thread() -> None:
    text = (
        "import logging, threading, warnings\n"
        "warnings.simplefilter('ignore', ResourceWarning)\n"
        "root = logging.getLogger()\n"
        "before = (root.handlers[:], root.level)\n"
        "from channels.whatsapp.library import load\n"
        "load()\n"
        "assert (root.handlers[:], root.level) == before, root.handlers\n"
        "for thread in threading.enumerate():\n"
        "    thread is threading.main_thread() or thread.join(timeout=5)\n"
        "assert threading.active_count() == 1, threading.enumerate()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", text], cwd=ROOT, capture_output=True, check=False, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == done.stderr == ""


@pytest.mark.parametrize(
    ("module", "error", "says"),
    [
        ("magic", ImportError("failed to find libmagic.  Check your installation"), "apt install libmagic1"),
        ("magic", ModuleNotFoundError("No module named 'magic'"), "pip install 'hudhud[whatsapp]'"),
        ("neonize.aioze.client", ModuleNotFoundError("No module named 'neonize'"), "pip install 'hudhud[whatsapp]'"),
        ("neonize.aioze.client", OSError("neonize-linux-amd64.so: cannot open shared object"), "native part"),
        ("neonize.aioze.client", RuntimeError("failed to load goneonize after 3 attempts"), "native part"),
    ],
)
def test_what_is_missing_is_one_sentence_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch, module: str, error: Exception, says: str
) -> None:
    def fails(name: str) -> Any:
        if name == module:
            raise error
        return import_module(name)

    monkeypatch.setattr(library, "import_module", fails)
    with pytest.raises(ImportError) as caught:
        library.load()
    text = str(caught.value)
    assert says in text
    assert text.endswith(".")
    assert "\n" not in text


def test_what_the_native_side_logs_comes_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    import ctypes

    def log(level: str, text: str) -> None:
        data = LIBRARY.proto.LogEntry(Name="Client", Level=level, Message=text).SerializeToString()
        buffer = ctypes.create_string_buffer(data, len(data))
        LIBRARY.client.log_whatsmeow(ctypes.addressof(buffer), len(data))

    with caplog.at_level(logging.DEBUG):
        log("ERROR", "something is wrong")
        log("DEBUG", "a message of 15550002222")
        LIBRARY.client.log_whatsmeow(0, 0)
    assert [record.getMessage() for record in caplog.records] == ["Client: something is wrong"]


async def test_a_native_call_runs_in_a_thread_that_holds_up_no_end() -> None:
    seen: list[bool] = []

    def native(value: int) -> int:
        seen.append(threading.current_thread().daemon)
        return value + 1

    assert await library.in_thread("made-up", native, 1) == 2
    assert seen == [True]

    def broken() -> None:
        raise OSError("no")

    with pytest.raises(OSError, match="no"):
        await library.in_thread("made-up", broken)


def test_the_real_client_dials_fails_and_stops_at_once() -> None:
    """Nothing here reaches WhatsApp, on no machine: the way out leads to a closed door."""
    text = (
        "import asyncio, sys, tempfile, time, warnings\n"
        "warnings.simplefilter('ignore', ResourceWarning)\n"
        "from datetime import UTC, datetime\n"
        "from pathlib import Path\n"
        "from channels.whatsapp.library import load, Printed\n"
        "from channels.whatsapp.session import Session\n"
        "async def take(event, entry):\n"
        "    pass\n"
        "async def main():\n"
        "    library = load()\n"
        "    folder = Path(tempfile.mkdtemp(suffix=' odd?#%41'))\n"
        "    for _ in range(2):\n"
        "        client = library.new_client(folder / 's.db')\n"
        "        session = Session(library, client, lambda kind, data: None, take, lambda: datetime.now(UTC))\n"
        "        await session.start()\n"
        "        signal = await asyncio.wait_for(session.signals.get(), 20)\n"
        "        assert (signal.kind, signal.down.state) == ('down', 'unreachable'), signal\n"
        "        started = time.monotonic()\n"
        "        await session.stop()\n"
        "        assert time.monotonic() - started < 5\n"
        "    assert (folder / 's.db').is_file()\n"
        "    client = library.new_client(folder / 's.db')\n"
        "    session = Session(library, client, lambda kind, data: None, take, lambda: datetime.now(UTC))\n"
        "    await session.start()\n"
        "    await session.stop()\n"
        "asyncio.run(main())\n"
    )
    environment = {**os.environ, "HTTPS_PROXY": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}
    done = subprocess.run(
        [sys.executable, "-c", text], cwd=ROOT, env=environment, capture_output=True, check=False, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert done.stderr == ""


async def test_without_a_network_nothing_is_dialled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each dial of the native side leaves a file open."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{port}")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with pytest.raises(ConnectionRefusedError):
        await library.look_for_network()
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv("https_proxy", f"127.0.0.1:{server.getsockname()[1]}")
        await library.look_for_network()
