"""What watchers are told: everything that is saved, in order, to all of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gateway.observe import Observers
from tests.fakes.program import EchoProvider, program


def test_all_watchers_are_told_in_the_order_they_came() -> None:
    seen: list[str] = []
    observers = Observers()
    assert not observers.any
    observers("status", {})
    observers.add(lambda kind, data: seen.append(f"first {kind} {data['n']}"))
    observers.add(lambda kind, data: seen.append(f"second {kind} {data['n']}"))
    assert observers.any
    observers("done", {"n": 1})
    assert seen == ["first done 1", "second done 1"]


async def test_a_message_and_its_answer_are_told_with_what_the_database_holds(tmp_path: Path) -> None:
    async with program(tmp_path / "h", provider=EchoProvider()) as gateway:
        seen: list[tuple[str, Any]] = []
        gateway.app.observers.add(lambda kind, data: seen.append((kind, data)))
        posted = await gateway.post("/api/messages", {"text": "hello"})
        await gateway.quiet()
        kinds = [kind for kind, _ in seen if kind != "status"]
        assert (kinds[0], kinds[-1], set(kinds[1:-1])) == ("message", "done", {"delta"})
        assert "".join(data["text"] for kind, data in seen if kind == "delta") == "re: hello"
        saved = {version: data for version, data in await gateway.app.backend.events_since(0)}
        for kind, data in seen:
            if kind not in {"message", "done"}:
                continue
            assert data["conversation"] == posted["conversation"]
            stored = saved[data["version"]] if kind == "done" else None
            if stored is not None:
                for key in ("n", "id", "role", "text", "flags", "state"):
                    assert data["message"][key] == stored["message"][key]
                for key in ("id", "sessionKey", "channel", "chat", "message_count", "last_text"):
                    assert data["summary"][key] == stored["summary"][key]
