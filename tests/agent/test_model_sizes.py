"""What a model takes is looked up where the settings do not say it."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from agent.brain import Brain, build_brain
from agent.model_sizes import listed_context_tokens
from agent.types import Message, Prompt
from tests.fakes.memory import FakeCortex
from tests.fakes.models import ScriptedModel
from tests.fakes.skills import Notes, skill_folder
from tests.fakes.turns import FakeClock

LONG = Prompt("s", (Message("user", "hello"), Message("assistant", "word " * 60_000), Message("user", "go on")))
"""75,000 tokens."""


class Known(ScriptedModel):
    """A model of a service that is on the list."""

    name = "anthropic"
    model = "claude-sonnet-4-5"
    local = False


def brain_of(root: Path, model: ScriptedModel, **given: Any) -> Brain:
    return build_brain(
        workspace=root / "workspace",
        provider=model,
        cortex=FakeCortex(),  # type: ignore[arg-type]
        functions=Notes().functions(),
        folders=[skill_folder(root / "skills")],
        zone=ZoneInfo("UTC"),
        now=FakeClock(),
        **given,
    )


async def notes(prompt: Prompt) -> str:
    return ""


@pytest.mark.parametrize(
    ("provider", "model", "tokens"),
    [("anthropic", "claude-sonnet-4-5", 200_000), ("openai", "gpt-4o", 128_000), ("openai", "my-own-model", 0)],
)
async def test_the_list_knows_the_models_of_the_services(provider: str, model: str, tokens: int) -> None:
    assert await listed_context_tokens(provider, model) == tokens


@pytest.mark.parametrize(
    ("model", "given", "cut"),
    [(Known, {}, False), (Known, {"context_tokens": 40_000}, True), (ScriptedModel, {}, True)],
)
async def test_a_listed_model_gets_its_whole_context_unless_the_settings_say_less(
    tmp_path: Path, model: type[ScriptedModel], given: dict[str, int], *, cut: bool
) -> None:
    brain = brain_of(tmp_path, model(), **given)
    await brain.warm()
    assert (await brain.compaction.fit(LONG, notes)).cut is cut
    brain.close()
