"""A question on Telegram, a model over its own protocol, a call the owner must allow, an answer: the whole program
with each provider, against servers that refuse what the services would refuse."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from agent.prompts.sentences import DENIED
from agent.providers import network
from agent.types import Usage
from agent.usage import price
from gateway.config import Settings
from tests.fakes import anthropic_server, deepseek_server, ollama_server, openai_server
from tests.fakes.bot_api import BotApi
from tests.fakes.program import OWNER, Json, Program, program, settings_for
from tests.fakes.stream_server import Reply, StreamServer
from tests.fakes.strict_api import signature
from tests.fakes.waiting import until

KEY = "sk-the-key-of-the-service-4711"
HOST = "models.example"
"""The name of the services that are not on this machine: a model on this machine costs nothing."""
ASKED = "Is the plumber in my notes? If not, delete notes.txt."
QUERY = "plumber phone"
COMMAND = "rm -- notes.txt # *only* this_one"
SHOWN = f"run_command:\ncommand: {COMMAND}"
LOOKS = "I look for it."
ANSWER = "The plumber is not there, سلام."
SECOND, SECOND_ANSWER = "And what did you delete?", "It was notes.txt."
THIRD, THIRD_ANSWER = "What did I ask first?", "You asked for the plumber."
TOKENS = {"input_tokens": 10, "output_tokens": 5}
"""What the fake servers say each answer took."""
ROUNDS = 3
MODELS = [
    pytest.param(openai_server, "gpt-5-mini", id="openai"),
    pytest.param(openai_server, "model-of-the-house", id="openai-unpriced"),
    pytest.param(deepseek_server, "deepseek-reasoner", id="deepseek"),
    pytest.param(anthropic_server, "claude-sonnet-4-5", id="anthropic"),
    pytest.param(ollama_server, "qwen3:8b", id="ollama"),
]


@pytest.fixture(autouse=True)
def _named_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that is on the network, where `HOST` is this machine."""
    look_up = socket.getaddrinfo

    def getaddrinfo(host: Any, *args: Any, **options: Any) -> Any:
        return look_up("127.0.0.1" if host in {HOST, HOST.encode()} else host, *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    monkeypatch.setattr(network, "has_route", lambda: True)


def script(fake: ModuleType) -> Callable[[Json], Reply]:
    """The model's answers, in the service's own format: it thinks before it calls, and the service signs that where it
    signs."""
    calls = (
        (
            ("call_1", "memory_search", {"query": QUERY}),
            ("call_2", "load_capability", {"name": "shell"}),
        ),
        (("call_3", "run_command", {"command": COMMAND}),),
    )

    def answers() -> Iterator[Callable[[Json], Reply]]:
        for made, text in zip(calls, (LOOKS, ""), strict=True):

            def call(body: Json, made: Any = made, text: str = text) -> Reply:
                signed = {"signed": signature(body, body["messages"])} if fake is anthropic_server else {}
                return fake.call_reply(*made, text=text, thought="One thing after the other.", **signed)

            yield call
        for text in (ANSWER, SECOND_ANSWER, THIRD_ANSWER):
            yield lambda _, text=text: fake.text_reply(text)

    waiting = answers()
    return lambda body: next(waiting)(body)


@dataclass(slots=True)
class Meeting:
    """The owner, the program and the service of the model."""

    home: Path
    api: BotApi
    server: StreamServer
    settings: Settings

    @asynccontextmanager
    async def started(self) -> AsyncGenerator[Program]:
        async with program(self.home, self.api, settings=self.settings) as gateway:
            yield gateway

    async def ask(self, gateway: Program, answer: str) -> str:
        """Asks, answers the question of consent, and gives back how that question read."""
        self.api.push_text(OWNER, ASKED)
        await until(lambda: any("Reply 1" in text for text in gateway.sent()))
        [question] = [text for text in gateway.sent() if "Reply 1" in text]
        assert (self.home / "workspace" / "notes.txt").exists()
        assert len(self.server.requests) == ROUNDS - 1
        self.api.push_text(OWNER, answer)
        await gateway.quiet()
        assert self.server.refused == []
        return question

    def file(self, folder: str) -> str:
        """The one file of a folder of the workspace."""
        [file] = (self.home / "workspace" / folder).glob("*.md")
        return file.read_text(encoding="utf-8")


@asynccontextmanager
async def meeting(tmp_path: Path, fake: ModuleType, model: str) -> AsyncGenerator[Meeting]:
    async with BotApi() as api, fake.Server(script(fake), strict=True) as server:
        local = fake is ollama_server
        chosen = {
            "provider": fake.PROVIDER,
            "name": model,
            "base_url": server.base_url if local else server.base_url.replace("127.0.0.1", HOST),
            "api_key": "" if local else KEY,
        }
        home = tmp_path / "h"
        (home / "workspace").mkdir(parents=True)
        (home / "workspace" / "notes.txt").write_text("milk\n")
        yield Meeting(home, api, server, settings_for(api, model=chosen, agent={"timezone": "UTC"}))


def told(api: BotApi) -> dict[int, str]:
    """What stands in the owner's chat: each message as it was last edited."""
    return {message.message_id: message.text for message in api.sent if message.chat_id == OWNER}


async def messages(gateway: Program) -> list[Json]:
    [listed] = (await gateway.get("/api/conversations"))["conversations"]
    return (await gateway.get(f"/api/conversations/{listed['id']}"))["messages"]


def events(corpus: str) -> list[tuple[str, Json]]:
    """Name and facts of each event of the log."""
    return [(name, json.loads(facts)) for name, facts in re.findall(r"^- (\w+) (\{.*\})$", corpus, flags=re.MULTILINE)]


async def cost(fake: ModuleType, model: str) -> Decimal | None:
    """What one answer must have cost."""
    return Decimal(0) if fake is ollama_server else await price(fake.PROVIDER, model, Usage(**TOKENS))


async def check_spending(at: Meeting, gateway: Program, fake: ModuleType, model: str) -> None:
    """A row and a line for each answer of the model."""
    each = await cost(fake, model)
    assert (each is None) == (model == "model-of-the-house")
    assert (each == 0) == (fake is ollama_server)
    columns = "provider, model, input_tokens, output_tokens, cost_usd, origin"
    row = (fake.PROVIDER, model, 10, 5, None if each is None else pytest.approx(float(each)), "person")
    assert gateway.rows(f"SELECT {columns} FROM usage") == [row] * ROUNDS
    ending = "unknown" if each is None else f"${each:.6f}"
    lines = [line for line in at.file("usage/daily").splitlines() if line.startswith("- ")]
    assert [line.partition(" | ")[2] for line in lines] == [
        f"{fake.PROVIDER} | {model} | in:10 out:5 cw:0 cr:0 | {ending}"
    ] * ROUNDS


def watched(gateway: Program) -> list[tuple[str, Json]]:
    """What the page is told from now on."""
    seen: list[tuple[str, Json]] = []

    def note(kind: str, data: Mapping[str, Any]) -> None:
        seen.append((kind, dict(data)))

    gateway.app.observers.add(note)
    return seen


def check_events(seen: list[tuple[str, Json]], reply: str) -> None:
    """The answer comes in pieces, and the call only after the owner's word."""
    pieces = [data["text"] for kind, data in seen if kind == "delta"]
    assert "".join(pieces) == reply
    assert len(pieces) > 2
    states = [("tool", data["state"]) for kind, data in seen if kind == "tool" and data["name"] == "run_command"]
    assert states == [("tool", "running"), ("tool", "success")]
    kinds = [
        (kind, data.get("state")) for kind, data in seen if kind == "approval" or data.get("name") == "run_command"
    ]
    assert kinds == [("approval", "open"), ("approval", "allowed"), *states]
    assert [data["message"]["text"] for kind, data in seen if kind == "done"] == [reply]


def check_notes(at: Meeting) -> None:
    """The files of the brain, as the agent itself reads them later."""
    episode = at.file("brain/hippocampus/episodes")
    assert f"- User: {ASKED}\n" in episode
    assert "- Tools: memory_search (success), load_capability (success), run_command (success)\n" in episode
    assert f"- Reply: {LOOKS} {ANSWER}\n" in episode
    outcomes = at.file("brain/basalganglia")
    assert re.findall(r"^- \d\d:\d\d \| (\w+) \| (\w+)$", outcomes, flags=re.MULTILINE) == [
        ("memory_search", "success"),
        ("load_capability", "success"),
        ("run_command", "success"),
    ]
    assert f'  - args: {{"command": "{COMMAND}"}}\n' in outcomes
    task = at.file("brain/motor/tasks")
    assert "- Status: done\n" in task
    assert "- Steps: 3/3\n" in task
    step = task.partition("## Step 3: run_command\n")[2]
    assert f'- Args: {{"command": "{COMMAND}"}}\n' in step
    assert "- Attempts: 1\n- Outcome: success\n" in step


def check_log_of_events(at: Meeting) -> None:
    corpus = events(at.file("brain/corpus"))
    assert [name for name, _ in corpus][:11] == [
        "context", "model", "verdict", "verdict", "tool", "tool", "model", "verdict", "tool", "model", "reply",
    ]  # fmt: skip
    verdicts = [(facts["tool"], facts["decision"]) for name, facts in corpus if name == "verdict"]
    assert verdicts == [("memory_search", "safe"), ("load_capability", "safe"), ("run_command", "confirm")]
    reply = next(facts for name, facts in corpus if name == "reply")
    assert (reply["status"], reply["calls"], reply["tokens"]) == ("done", 3, {"in": 30, "out": 15})


def check_key(at: Meeting, log: str) -> None:
    """The service was given its key, in the headers; it is in nothing else that was sent, and in nothing written."""
    for request in at.server.requests:
        assert (KEY in str(request.headers)) == (at.settings.model.provider != "ollama")
        assert KEY not in json.dumps(request.body)
    for file in at.home.rglob("*"):
        assert not file.is_file() or KEY.encode() not in file.read_bytes(), file
    assert KEY not in log


def accepted(at: Meeting, count: int) -> Json:
    """The newest request; the service took it and all before it."""
    assert at.server.refused == []
    assert len(at.server.requests) == count
    return at.server.requests[-1].body


@pytest.mark.parametrize(("fake", "model"), MODELS)
async def test_what_the_owner_allows_runs_once_and_the_answer_arrives_once(
    tmp_path: Path, fake: ModuleType, model: str, caplog: pytest.LogCaptureFixture
) -> None:
    reply = f"{LOOKS}\n\n{ANSWER}"
    async with meeting(tmp_path, fake, model) as at:
        async with at.started() as gateway:
            seen = watched(gateway)
            question = await at.ask(gateway, "1")
            check_events(seen, reply)
            assert SHOWN in question
            assert not (at.home / "workspace" / "notes.txt").exists()
            closed = f"{question.rpartition(chr(10) * 2)[0]}\n\nAllowed."
            await until(lambda: sorted(told(at.api).values()) == sorted([closed, reply]))
            log = gateway.logged()
            assert [log[0], *log[2:]] == [("in", ASKED), ("in", "1"), ("out", reply)]
            assert (log[1][0], COMMAND in log[1][1]) == ("out", True)
            assert gateway.rows("SELECT state FROM delivery") == [("sent",)] * 2
            said = await messages(gateway)
            [answer] = [message for message in said if message["role"] == "assistant"]
            assert (answer["text"], answer["state"]) == (reply, "answered")
            assert [(call["name"], call["args"], call["outcome"]) for call in answer["tool_calls"]] == [
                ("memory_search", {"query": QUERY}, "success"),
                ("load_capability", {"name": "shell"}, "success"),
                ("run_command", {"command": COMMAND}, "success"),
            ]
            assert answer["tool_calls"][2]["output"] == "exit code 0"
            assert gateway.rows("SELECT round FROM tool_call ORDER BY n") == [(1,), (1,), (2,)]
            await check_spending(at, gateway, fake, model)
            check_notes(at)
            at.api.push_text(OWNER, SECOND)
            await gateway.quiet()
            body = json.dumps(accepted(at, ROUNDS + 1), ensure_ascii=False)
            assert all(text in body for text in (ASKED, QUERY, COMMAND, ANSWER, SECOND))
            assert gateway.logged()[-2:] == [("in", SECOND), ("out", SECOND_ANSWER)]
        check_log_of_events(at)
        [first, _] = sorted((at.home / "workspace" / "brain" / "prefrontal" / ".debug").glob("*.md"))
        assert ASKED in first.read_text(encoding="utf-8")
        async with at.started() as gateway:
            at.api.push_text(OWNER, THIRD)
            await gateway.quiet()
            body = json.dumps(accepted(at, ROUNDS + 2), ensure_ascii=False)
            assert all(text in body for text in (ASKED, QUERY, COMMAND, ANSWER, SECOND_ANSWER, THIRD))
            assert list(told(at.api).values())[-1] == THIRD_ANSWER
            assert len(await messages(gateway)) == len(said) + 4
        check_key(at, caplog.text)


@pytest.mark.parametrize(("fake", "model"), [model for model in MODELS if model.id != "openai-unpriced"])
async def test_what_the_owner_denies_does_not_run_and_the_model_is_told(
    tmp_path: Path, fake: ModuleType, model: str
) -> None:
    async with meeting(tmp_path, fake, model) as at, at.started() as gateway:
        await at.ask(gateway, "2")
        assert (at.home / "workspace" / "notes.txt").read_text() == "milk\n"
        assert DENIED in json.dumps(accepted(at, ROUNDS))
        assert gateway.rows("SELECT name, outcome, output FROM tool_call WHERE round = 2") == [
            ("run_command", "denied", DENIED)
        ]
        assert list(told(at.api).values()).count(f"{LOOKS}\n\n{ANSWER}") == 1
        assert "run_command (denied)" in at.file("brain/hippocampus/episodes")
        assert " | run_command | denied\n" in at.file("brain/basalganglia")
        assert "- Outcome: denied\n" in at.file("brain/motor/tasks").partition("## Step 3: run_command\n")[2]
        at.api.push_text(OWNER, SECOND)
        await gateway.quiet()
        assert DENIED in json.dumps(accepted(at, ROUNDS + 1))
        assert list(told(at.api).values())[-1] == SECOND_ANSWER
