"""The recipe docs/add-a-provider.md, followed to the letter."""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.providers.base import PROVIDERS, ProviderSettings, create
from agent.types import Provider, ProviderError, Usage
from tests.contracts.provider_suite import SMALL_TALK, ProviderContract, RemoteContract, chunks_of, outcome_of
from tests.fakes import openai_server
from tests.fakes.ollama_server import lines
from tests.fakes.stream_server import DROP, Json, Reply, StreamServer

RECIPE = Path(__file__).parents[2] / "docs" / "add-a-provider.md"


def code() -> dict[str, str]:
    """The modules of the recipe by the place their first line names."""
    blocks = re.findall(
        r"```python\n# agent/providers/(\w+)\.py\n(.*?)```", RECIPE.read_text(encoding="utf-8"), re.DOTALL
    )
    return dict(blocks)


@pytest.fixture
def registered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The recipe's modules, importable, and its lines in the registry."""
    for name, text in code().items():
        (tmp_path / f"recipe_{name}.py").write_text(text, encoding="utf-8")
        monkeypatch.setitem(PROVIDERS, name, f"recipe_{name}:{name.title()}Provider")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    yield
    for name in code():
        sys.modules.pop(f"recipe_{name}", None)


class ThrushService:
    """The chat-completions fake under another name."""

    PROVIDER = "thrush"

    def __getattr__(self, name: str) -> Any:
        return getattr(openai_server, name)


@pytest.mark.usefixtures("registered")
class TestThrush(RemoteContract):
    service = ThrushService()
    library = "openai"


class ParrotServer(StreamServer):
    path = "/talk"
    base_path = ""


@pytest.mark.usefixtures("registered")
class TestParrot(ProviderContract):
    @pytest.fixture
    async def provider(self, registered: None) -> AsyncIterator[Provider]:
        def answer(body: Json) -> Reply:
            last = body["messages"][-1]
            if last["role"] == "user" and "dentist" in last["text"]:
                call = {"id": "p1", "tool": "memory_search", "with": {"query": "dentist"}}
                return Reply((lines({"call": call}, {"end": "call"}),))
            return Reply((lines({"say": "Good"}, {"say": " day"}, {"end": "done", "read": 12, "written": 3}),))

        async with ParrotServer(answer) as server:
            provider = create(ProviderSettings("parrot", "m", server.base_url))
            yield provider
            await provider.close()

    async def test_its_format_is_read(self, provider: Provider) -> None:
        assert outcome_of(await chunks_of(provider, SMALL_TALK)) == ("Good day", (), [Usage(12, 3, 0, 0, 1)], ["end"])

    @pytest.mark.parametrize(
        "reply",
        [
            Reply((lines({"say": "Go"}), DROP)),
            Reply((lines({"say": "Go"}, {"error": "busy"}),)),
            Reply((b"no",), 503),
        ],
    )
    async def test_its_failures_are_ours(self, reply: Reply) -> None:
        async with ParrotServer([reply]) as server:
            provider = create(ProviderSettings("parrot", "m", server.base_url))
            with pytest.raises(ProviderError) as caught:
                await chunks_of(provider, SMALL_TALK)
            assert caught.value.transient
            await provider.close()


def test_the_lines_to_register_are_those_of_the_recipe() -> None:
    text = RECIPE.read_text(encoding="utf-8")
    assert '`"parrot": "agent.providers.parrot:ParrotProvider"`' in text
    assert {"thrush", "parrot"} == set(code())
