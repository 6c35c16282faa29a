"""Files that came with messages: fetched, bounded, and saved under safe names."""

from __future__ import annotations

from pathlib import Path

import pytest

from channels.channel import ChannelDown, FileGone, FileTooBig
from channels.message import Attachment
from channels.telegram import files as fetching
from tests.channels.telegram.conftest import Rig
from tests.fakes.bot_api import TOKEN, Fault, flood


def remote(name: str = "plan.pdf", size_bytes: int | None = 7) -> Attachment:
    return Attachment("file", name, None, "application/pdf", size_bytes, remote="F1")


async def test_a_file_is_fetched_and_saved(rig: Rig) -> None:
    rig.api.files["F1"] = b"content"
    saved = await rig.channel().fetch(remote("../../خطة.pdf"))
    assert saved.path is not None
    assert (rig.home / "workspace" / saved.path).read_bytes() == b"content"
    assert (saved.name, saved.size_bytes, saved.mime, saved.remote) == ("خطة.pdf", 7, "application/pdf", None)


async def test_a_big_file_is_refused_before_and_while_it_comes(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "DOWNLOAD_BYTES_MAX", 1_000_000)
    rig.api.files["F1"] = b"x" * 1_000_001
    for size_bytes in (1_000_001, None):
        with pytest.raises(FileTooBig) as caught:
            await rig.channel().fetch(remote(size_bytes=size_bytes))
        assert caught.value.size_bytes_max == 1_000_000
    assert list((rig.home / "workspace" / "uploads").iterdir()) == []
    assert rig.api.count("download") == 1


async def test_telegrams_own_server_is_not_even_asked_for_what_it_does_not_give(rig: Rig) -> None:
    with pytest.raises(FileTooBig) as caught:
        await rig.channel(base_url="https://api.telegram.org").fetch(remote(size_bytes=20 * 1024 * 1024 + 1))
    assert caught.value.size_bytes_max // 1_000_000 == 20


async def test_what_the_bot_api_itself_finds_too_big_is_said_so(rig: Rig) -> None:
    rig.api.script("getFile", Fault(400, "Bad Request: file is too big"))
    with pytest.raises(FileTooBig):
        await rig.channel().fetch(remote())


async def test_a_file_that_is_not_given_out_is_gone(rig: Rig) -> None:
    with pytest.raises(FileGone):
        await rig.channel().fetch(remote())


async def test_a_busy_or_absent_server_is_asked_again_later(rig: Rig) -> None:
    rig.api.script("getFile", flood(9))
    with pytest.raises(ChannelDown) as caught:
        await rig.channel().fetch(remote())
    assert caught.value.retry_after_seconds == 9
    with pytest.raises(ChannelDown) as caught:
        await rig.channel(base_url="http://127.0.0.1:1").fetch(remote())
    assert not caught.value.terminal
    assert TOKEN not in str(caught.value)


async def test_a_server_of_ones_own_may_share_its_disk(rig: Rig, tmp_path: Path) -> None:
    there = tmp_path / "server" / "documents" / "file_1.pdf"
    there.parent.mkdir(parents=True)
    there.write_bytes(b"from the disk")
    rig.api.files["F1"] = there
    saved = await rig.channel().fetch(remote(size_bytes=30_000_000))
    assert (rig.home / "workspace" / str(saved.path)).read_bytes() == b"from the disk"
    rig.api.files["F1"] = tmp_path / "elsewhere"
    with pytest.raises(FileGone):
        await rig.channel().fetch(remote())
