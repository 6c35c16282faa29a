"""Files that people send: safe names, whole files, honest limits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.channel import FileTooBig, NotAccepted
from gateway.uploads import NAME_BYTES_MAX, UploadFolder, safe_name


def now() -> datetime:
    return datetime(2026, 11, 30, 9, tzinfo=UTC)


async def bytes_of(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def test_a_file_is_kept_under_its_own_name(tmp_path: Path) -> None:
    uploads = UploadFolder(tmp_path, now)
    saved = await uploads.save("file", "تقرير 2026.pdf", "application/pdf", bytes_of(b"one ", b"two"), 100)
    assert saved.path is not None
    assert (tmp_path / saved.path).read_bytes() == b"one two"
    assert saved.name == "تقرير 2026.pdf"
    assert (saved.size_bytes, saved.mime, saved.path.startswith("uploads/261130-")) == (7, "application/pdf", True)
    assert uploads.find(saved.upload_id) == saved
    assert [path.name for path in (tmp_path / "uploads").iterdir()] == [saved.upload_id]


async def test_the_same_name_twice_is_two_files(tmp_path: Path) -> None:
    uploads = UploadFolder(tmp_path, now)
    names = [(await uploads.save("photo", "a.jpg", None, bytes_of(b"x"), 9)).path for _ in range(20)]
    assert len(set(names)) == 20


async def test_a_file_that_is_too_big_leaves_nothing(tmp_path: Path) -> None:
    uploads = UploadFolder(tmp_path, now)
    with pytest.raises(FileTooBig) as caught:
        await uploads.save("video", "film.mp4", None, bytes_of(b"x" * 600, b"x" * 600), 1000)
    assert caught.value.size_bytes_max == 1000
    assert list((tmp_path / "uploads").iterdir()) == []


async def test_a_file_that_breaks_off_leaves_nothing(tmp_path: Path) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"half"
        raise ConnectionResetError

    uploads = UploadFolder(tmp_path, now)
    with pytest.raises(NotAccepted):
        await uploads.save("file", "a.bin", None, broken(), 100)
    assert list((tmp_path / "uploads").iterdir()) == []


async def test_a_cancelled_download_leaves_nothing(tmp_path: Path) -> None:
    began = asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        yield b"x" * 400_000
        began.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(UploadFolder(tmp_path, now).save("file", "a.bin", None, slow(), 1_000_000))
    await began.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert list((tmp_path / "uploads").iterdir()) == []


def test_what_a_crash_left_is_taken_away_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "uploads").mkdir()
    (tmp_path / "uploads" / ".261130-0123456789ab-.part").write_bytes(b"half")
    (tmp_path / "uploads" / "261130-0123456789ab-whole.txt").write_bytes(b"whole")
    UploadFolder(tmp_path, now).clean()
    assert [path.name for path in (tmp_path / "uploads").iterdir()] == ["261130-0123456789ab-whole.txt"]


async def test_a_full_disk_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "uploads").write_text("not a folder")
    with pytest.raises(NotAccepted, match="cannot be written"):
        await UploadFolder(tmp_path, now).save("file", "a", None, bytes_of(b"x"), 9)


@pytest.mark.parametrize(
    "wanted", ["../config.toml", "261130-0123456789ab-../x", "x", "", "261130-0123456789ab-no", "\0"]
)
def test_only_uploads_are_found(tmp_path: Path, wanted: str) -> None:
    (tmp_path / "uploads").mkdir()
    (tmp_path / "config.toml").write_text("secret")
    assert UploadFolder(tmp_path, now).find(wanted) is None


@pytest.mark.parametrize(
    ("name", "mime", "safe"),
    [
        ("../../etc/passwd", None, "passwd"),
        ("C:\\Users\\me\\plan.txt", None, "plan.txt"),
        (".bashrc", None, "bashrc"),
        ("a\u202egpj.exe", None, "agpj.exe"),
        ("one\ntwo\0.txt", None, "one two.txt"),
        ("", "image/png", "photo.png"),
        ("...", None, "photo"),
        ("صورة", "image/png", "صورة.png"),
    ],
)
def test_safe_names(name: str, mime: str | None, safe: str) -> None:
    assert safe_name(name, "photo", mime) == safe


@given(st.text(max_size=600))
def test_every_name_is_safe(name: str) -> None:
    safe = safe_name(name, "file", None)
    assert 0 < len(safe.encode()) <= NAME_BYTES_MAX
    assert not safe.startswith(".")
    assert not set(safe) & set("/\\\0\n\r")
    assert safe_name(safe, "file", None) == safe
