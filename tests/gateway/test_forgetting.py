"""Forgetting through the whole gateway: asked in the owner's chat, on the page, and nothing left that repeats it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from agent.types import StreamChunk, Usage
from channels.inapp.ports import UnknownConversation
from gateway.readlog import kept_lines
from tests.fakes.bot_api import BotApi
from tests.fakes.program import OWNER, EchoProvider, program, settings_for
from tests.fakes.scripted_provider import ScriptedProvider, said
from tests.fakes.waiting import until

FACT = "The quokka lives in Perth"
PEOPLE = "workspace/brain/hippocampus/knowledge/people.md"


def calling(what: str) -> tuple[StreamChunk, ...]:
    """A model's reply that asks to forget."""
    return (
        StreamChunk("call", index=0, call_id="f1", name="memory_forget", arguments_object={"what": what}),
        StreamChunk("usage", usage=Usage(requests=1)),
        StreamChunk("stop", text="calls"),
    )


@pytest.mark.parametrize("answer", ["yes", "no"])
async def test_the_owner_sees_what_goes_before_it_goes(tmp_path: Path, answer: str) -> None:
    home = tmp_path / "h"
    provider = ScriptedProvider(calling(FACT), said("As you wish."))
    async with BotApi() as api, program(home, api, settings=settings_for(api), provider=provider) as gateway:
        (home / PEOPLE).parent.mkdir(parents=True, exist_ok=True)
        (home / PEOPLE).write_text(f"# People\n- {FACT}\n- else\n", encoding="utf-8")
        await gateway.app.library.cortex.update_files()
        api.push_text(OWNER, "forget where it lives")
        await until(lambda: any(FACT in text for text in gateway.sent()))
        question = next(text for text in gateway.sent() if FACT in text)
        assert "people.md#L2" in question
        api.push_text(OWNER, answer)
        await gateway.quiet()
        text = (home / PEOPLE).read_text(encoding="utf-8")
        assert (FACT in text) is (answer == "no")
        asked = gateway.rows("SELECT text, flags FROM message WHERE role = 'system' AND kind = 'text'")
        assert asked == [("", '["removed"]')]
        assert gateway.rows("SELECT count(*) FROM message WHERE instr(text, 'Perth')") == [(0,)]
        (log,) = (home / "workspace" / "readlog" / "telegram").iterdir()
        assert not any("Perth" in line["text"] for line in kept_lines(log))


async def test_a_sentence_that_may_mean_several_things_asks_nobody(tmp_path: Path) -> None:
    home = tmp_path / "h"
    provider = ScriptedProvider(calling("quokka"), said("Which one?"))
    async with BotApi() as api, program(home, api, settings=settings_for(api), provider=provider) as gateway:
        (home / PEOPLE).parent.mkdir(parents=True, exist_ok=True)
        (home / PEOPLE).write_text("# People\n- quokka one\n- a quokka of Perth\n", encoding="utf-8")
        (home / "workspace/memory.md").write_text("- my quokka eats grass\n", encoding="utf-8")
        await gateway.app.library.cortex.update_files()
        api.push_text(OWNER, "forget it")
        await gateway.quiet()
        assert gateway.rows("SELECT outcome FROM tool_call") == [("failed",)]
        assert gateway.app.approvals.pending() == []
        ((output,),) = gateway.rows("SELECT output FROM tool_call")
        assert "memory.md#L1" in output


async def test_a_conversation_is_deleted_for_every_open_page(tmp_path: Path) -> None:
    home = tmp_path / "h"
    async with program(home, provider=EchoProvider()) as gateway:
        posted = await gateway.post("/api/messages", {"text": FACT})
        other = await gateway.post("/api/messages", {"text": "another", "conversation": "new"})
        await gateway.quiet()
        id_ = posted["conversation"]
        backend = gateway.app.backend
        version = await backend.version()
        assert (await backend.remove_conversation(id_))["messages"] == 2
        assert await backend.events_since(version) == []
        with pytest.raises(UnknownConversation):
            await backend.remove_conversation(id_)
        with pytest.raises(UnknownConversation):
            await backend.conversation_for_message(id_, "k")
        found = await backend.conversations({})
        assert [shown["id"] for shown in found["conversations"]] == [other["conversation"]]
        assert (await backend.search({"query": "quokka"}))["hits"] == []
    for folder in ("brain/hippocampus/episodes", "brain/prefrontal/.debug"):
        pages = [path.read_text(encoding="utf-8") for path in (home / "workspace" / folder).glob("*.md")]
        assert pages
        assert not any(FACT in page for page in pages)
    with sqlite3.connect(home / "index.db") as index:
        assert index.execute("SELECT count(*) FROM record WHERE instr(body, 'quokka')").fetchone() == (0,)


async def test_the_offline_model_forgets_on_request(tmp_path: Path) -> None:
    home = tmp_path / "h"
    async with program(home, settings=settings_for()) as gateway:
        await gateway.ask(f"Remember that {FACT}")
        (saved,) = (home / "workspace/brain/hippocampus/knowledge").glob("*.md")
        assert FACT in saved.read_text(encoding="utf-8")
        posted = await gateway.post("/api/messages", {"text": f"forget that {FACT}", "conversation": "new"})
        await until(lambda: gateway.app.approvals.pending())
        (question,) = gateway.app.approvals.pending()
        assert "technical.md#L" in question["what"]
        await gateway.post(f"/api/approvals/{question['id']}", {"approve": True}, 200)
        await gateway.quiet()
        assert FACT not in saved.read_text(encoding="utf-8")
        shown = await gateway.get(f"/api/conversations/{posted['conversation']}")
        assert shown["messages"][-1]["text"].startswith("Removed:")
