"""Consent: the owner alone gives it, where the owner is, with a plain word or on the page; silence means no."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from agent.types import Person, Question, StreamChunk, Turn, TurnPort, TurnResult, Usage
from channels.channel import ChannelDown
from channels.message import Address, Attachment, InboundMessage
from channels.telegram.format import render
from gateway.approvals import fenced, literal
from tests.fakes.bot_api import BotApi
from tests.fakes.channel import FakeChannel
from tests.fakes.hub import GUEST, OWNER, Hub, crashed_copy, hub, utc_now
from tests.fakes.program import program, settings_for
from tests.fakes.scripted_provider import ScriptedProvider, said
from tests.fakes.waiting import until

PAGE = "c1"
"""A conversation of the page, where a question is seen without being sent."""
COMMAND = "run_command:\ncommand: rm -r old/"


class Asks:
    """A turn that asks and answers with what it heard: `True`, `False` or `None`."""

    def __init__(self, *, what: str = COMMAND, hears: bool = False) -> None:
        self.what = what
        self.hears = hears
        self.turns: list[Turn] = []

    async def __call__(self, turn: Turn, port: TurnPort) -> TurnResult:
        self.turns.append(turn)
        answer = await port.ask(Question(self.what, "It deletes files.", turn.person.name))
        heard: Sequence[str] = await port.heard(1) if self.hears else ()
        reply = " / ".join([f"{turn.text}: {answer}", *heard])
        return TurnResult(turn.id, "done", reply, (reply,))


async def asked(core: Hub, count: int = 1) -> dict[str, Any]:
    """The newest question, as soon as `count` of them were asked and the last stands in its chat."""
    await until(lambda: len(questions(core, "open")) == count)
    question = questions(core, "open")[-1]
    if question["conversation"] != PAGE:
        sent = {"delivery": f"approval:{question['turn']}:{question['id']}", "state": "sent"}
        await until(lambda: any(kind == "status" and sent.items() <= data.items() for kind, data in core.events))
    return question


def questions(core: Hub, state: str) -> list[dict[str, Any]]:
    return [data for kind, data in core.events if kind == "approval" and data["state"] == state]


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("1", True),
        ("Yes", True),
        (" yes. ", True),
        ("نعم", True),
        ("موافق!", True),
        ("١", True),
        ("2", False),
        ("no", False),
        ("لا.", False),
        ("٢", False),
    ],
)
async def test_the_owner_answers_in_the_same_chat(tmp_path: Path, said: str, answer: bool) -> None:
    asks = Asks()
    async with hub(tmp_path / "h", asks) as core:
        await core.say("clean up")
        question = await asked(core)
        assert [message.address.chat_id for message in core.channel.delivered] == [OWNER]
        assert f"```\n{COMMAND}\n```" in core.channel.texts[0]
        answered = await core.say(said)
        assert not answered.will_answer
        await core.quiet()
        assert core.channel.texts[1:] == [f"clean up: {answer}"]
        saved = await core.messages(answered.conversation_id)
        assert [(message.role, message.state) for message in saved if message.text == said] == [("user", "observed")]
        assert [line["text"] for line in core.log() if line["dir"] == "in"] == ["clean up", said]
        assert core.approvals.pending() == []
        closed = questions(core, "allowed" if answer else "denied")
        assert closed == [{**question, "state": closed[0]["state"]}]
        assert len(asks.turns) == 1
        assert asks.turns[0].may_ask


async def test_the_owner_is_asked_in_the_language_of_the_message(tmp_path: Path) -> None:
    async with hub(tmp_path / "h", Asks()) as core:
        await core.say("نظّف المجلد")
        await asked(core)
        assert "هل يُسمح بتنفيذ هذا؟" in core.channel.texts[0]
        await core.say("لا")
        await core.quiet()


async def test_a_guests_turn_asks_the_owner_at_home_and_names_the_guest(tmp_path: Path) -> None:
    async with hub(tmp_path / "h", Asks()) as core:
        await core.say("clean up", chat=GUEST, sender=GUEST, sender_name="Owner *7*")
        question = await asked(core)
        assert question["from"] == f"Owner *7* (telegram:{GUEST})"
        (sent,) = core.channel.delivered
        assert sent.address.chat_id == OWNER
        assert rf"Owner \*7\* (telegram:{GUEST})" in sent.text
        assert question["conversation"] != sent.key
        await core.say("yes")
        await core.quiet()
        assert [(m.address.chat_id, m.text) for m in core.channel.delivered[1:]] == [(GUEST, "clean up: True")]


@pytest.mark.parametrize("sender", [GUEST, "99"])
async def test_a_yes_of_anybody_else_counts_for_nothing(tmp_path: Path, sender: str) -> None:
    async with hub(tmp_path / "h", Asks()) as core:
        await core.say("clean up", chat="-5", is_group=True, is_mention=True)
        question = await asked(core)
        await core.say("yes", chat="-5", sender=sender, is_group=True, is_mention=True)
        await core.say("", chat="-5", sender=sender, action=f"approval:{question['id']}:yes")
        assert core.approvals.pending() == [question]
        await core.say("no", chat="-5", is_group=True, is_mention=True)
        if sender == GUEST:  # whose word is a message like any other
            await until(lambda: len(questions(core, "open")) == 2)
            core.approvals.answer(questions(core, "open")[1]["id"], False)
        await core.quiet()
        assert "clean up: False" in core.channel.texts


@pytest.mark.parametrize(
    "fields",
    [
        {"forwarded_from": "Sara"},
        {"kind": "photo", "attachments": (Attachment("photo", "yes.jpg", "uploads/yes.jpg"),)},
        {"kind": "voice"},
        {"kind": "edit", "edits": "m1", "wants_answer": False},
        {"is_group": True},
        {"wants_answer": False},
        {"chat_id": "-5"},
        {"thread_id": "3"},
        {"channel": "inapp", "chat_id": "elsewhere", "sender_id": "owner"},
        {"origin": "scheduled"},
        {"text": "yes please"},
        {"text": "y e s"},
        {"text": "12"},
        {"text": "no, not this; rather list them"},
        {"text": ""},
    ],
)
async def test_only_a_plain_word_written_to_the_agent_there_and_then_is_an_answer(
    tmp_path: Path, fields: dict[str, Any]
) -> None:
    async with hub(tmp_path / "h", Asks()) as core:
        await core.say("clean up")
        question = await asked(core)
        values: dict[str, Any] = {
            "channel": "telegram",
            "chat_id": OWNER,
            "message_id": "x",
            "sender_id": OWNER,
            "sender_name": "Layla",
            "text": "yes",
            "sent_at": utc_now(),
        }
        assert core.approvals.answered_by(InboundMessage(**(values | fields)), "owner") is None
        assert core.approvals.answered_by(InboundMessage(**values), "owner") == (question["id"], True)
        numbered: dict[str, Any] = values | {"text": "2", "is_group": True}
        assert core.approvals.answered_by(InboundMessage(**numbered), "owner") == (question["id"], False)
        core.approvals.answer(question["id"], False)
        await core.quiet()


async def test_other_words_are_an_ordinary_message_for_the_turn_that_asks(tmp_path: Path) -> None:
    async with hub(tmp_path / "h", Asks(hears=True)) as core:
        await core.say("clean up")
        await asked(core)
        assert (await core.say("yes, but keep the pictures")).will_answer
        await core.say("forwarded yes", forwarded_from="Sara")
        assert len(core.approvals.pending()) == 1
        await core.say("yes")
        await asked(core, 2)
        await core.say("no")
        await core.quiet()
        assert core.channel.texts[1] == "clean up: True / yes, but keep the pictures"
        # Words of others are not heard in passing: they get a turn in which they are fenced.
        assert core.channel.texts[3] == "[forwarded a message of Sara]: False"


async def test_a_yes_before_the_question_was_sent_is_not_for_it(tmp_path: Path) -> None:
    async with hub(tmp_path / "h", Asks(hears=True)) as core:
        core.channel.outcomes.append(ChannelDown("unreachable", "no line", retry_after_seconds=0.3))
        await core.say("clean up")
        await until(lambda: ("status", "retry") in [(kind, data.get("state")) for kind, data in core.events])
        assert (await core.say("yes")).will_answer
        assert len(core.approvals.pending()) == 1
        await asked(core)
        await core.say("no")
        await core.quiet()
        assert core.channel.texts[1:] == ["clean up: False / yes"]


async def test_whoever_answers_before_the_platform_has_confirmed_the_question_is_heard(tmp_path: Path) -> None:
    async with hub(tmp_path / "h", Asks()) as core:
        core.channel.gate = asyncio.Event()
        await core.say("clean up")
        await until(lambda: bool(core.channel.calls))
        await core.say("yes")
        core.channel.gate.set()
        await core.quiet()
        assert core.channel.texts[1:] == ["clean up: True"]


async def test_two_questions_in_one_chat_come_one_after_the_other(tmp_path: Path) -> None:
    async with hub(tmp_path / "h", Asks()) as core:
        await core.say("first")
        await asked(core)
        await core.say("second", chat=GUEST, sender=GUEST)
        await until(lambda: core.queue.running == 2)
        assert len(core.approvals.pending()) == 1
        await core.say("no")
        await asked(core, 2)
        await core.say("yes")
        await core.quiet()
        assert {"first: False", "second: True"} <= set(core.channel.texts)


async def test_no_answer_in_time_means_no(tmp_path: Path) -> None:
    async with hub(tmp_path / "h", Asks(), approval_seconds_max=0.05) as core:
        await core.say("clean up")
        await core.quiet()
        assert core.channel.texts[-1] == "clean up: None"
        (closed,) = questions(core, "expired")
        assert not core.approvals.answer(closed["id"], True)
        assert (await core.say("yes")).will_answer
        await core.quiet()


async def test_an_owner_who_can_be_asked_nowhere_is_not_asked(tmp_path: Path) -> None:
    async with hub(tmp_path / "h", Asks()) as core:
        del core.channels["telegram"]
        answer = await core.approvals.ask(
            Question(COMMAND, "It deletes files.", "Sara"),
            person=Person(f"telegram:{GUEST}", "Sara", "allowed"),
            spoken_at=Address("telegram", GUEST),
            conversation_id="c",
            turn_id="t",
            language="en",
        )
        assert answer is None
        assert core.events == []


async def test_stop_closes_the_question(tmp_path: Path) -> None:
    async with hub(tmp_path / "h", Asks()) as core:
        await core.say("clean up")
        question = await asked(core)
        await core.say("/stop")
        await core.quiet()
        assert core.approvals.pending() == []
        assert questions(core, "expired") == [{**question, "state": "expired"}]
        assert core.channel.texts[1:] == ["Stopped."]


async def test_a_turn_that_takes_too_long_closes_its_question(tmp_path: Path) -> None:
    async with hub(tmp_path / "h", Asks(), turn_seconds_max=0.05) as core:
        await core.say("clean up")
        await core.quiet()
        assert core.approvals.pending() == []
        assert "longer than" in core.channel.texts[-1]


async def test_a_question_that_was_not_sent_before_it_closed_is_never_sent(tmp_path: Path) -> None:
    async with hub(tmp_path / "h", Asks()) as core:
        core.channel.outcomes.append(ChannelDown("unreachable", "no line", retry_after_seconds=0.2))
        await core.say("clean up")
        await until(lambda: bool(core.channel.calls))
        assert core.approvals.answer(core.approvals.pending()[0]["id"], True)
        await core.quiet()
        assert core.channel.texts == ["clean up: True"]


async def test_a_button_answers_and_one_that_is_stale_says_so(tmp_path: Path) -> None:
    async with hub(tmp_path / "h", Asks()) as core:
        await core.say("clean up")
        question = await asked(core)
        pressed = await core.say("Allow once", action=f"approval:{question['id']}:yes")
        await core.quiet()
        assert core.channel.texts[1:] == ["clean up: True"]
        await core.say("Allow once", action=f"approval:{question['id']}:yes")
        await core.quiet()
        assert core.channel.texts[2:] == ["This question is no longer open."]
        notices = [m for m in await core.messages(pressed.conversation_id) if m.role == "system"]
        assert notices[-1].text == "This question is no longer open."
        assert ("message", "system") in [(kind, data.get("message", {}).get("role")) for kind, data in core.events]


async def test_a_scheduled_run_cannot_ask(tmp_path: Path) -> None:
    asks = Asks()
    async with hub(tmp_path / "h", asks) as core:
        await core.say("tick", channel="heartbeat", chat="job", origin="scheduled", answers_nowhere=True)
        await until(lambda: bool(asks.turns))
        assert not asks.turns[0].may_ask
        for question in core.approvals.pending():
            core.approvals.answer(question["id"], False)
        await core.quiet()


async def test_on_the_page_the_question_is_a_card_and_a_typed_answer_counts_too(tmp_path: Path) -> None:
    async with hub(tmp_path / "h", Asks()) as core:
        here: dict[str, Any] = {"channel": "inapp", "chat": PAGE, "sender": "owner"}
        first = await core.say("clean up", **here)
        question = await asked(core)
        assert question == {
            "conversation": PAGE,
            "turn": question["turn"],
            "id": question["id"],
            "what": COMMAND,
            "reason": "It deletes files.",
            "from": "person owner",
            "state": "open",
        }
        assert [m.role for m in await core.messages(first.conversation_id)] == ["user"]
        await core.say("1", **here)
        await core.quiet()
        assert (await core.messages(PAGE))[-1].text == "clean up: True"


async def test_a_question_open_at_a_crash_is_gone_and_asked_again(tmp_path: Path) -> None:
    asks = Asks()
    async with hub(tmp_path / "h", asks) as core:
        core.channel.gate = asyncio.Event()
        await core.say("clean up")
        await until(lambda: bool(core.channel.calls))
        after = crashed_copy(tmp_path / "h", tmp_path / "after")
        core.approvals.answer(core.approvals.pending()[0]["id"], False)
        core.channel.gate.set()
        await core.quiet()
    async with hub(after, asks) as core:
        await asked(core)
        assert len(core.channel.texts) == 1
        await core.say("yes")
        await core.quiet()
        assert core.channel.texts[1:] == ["clean up: True"]
    assert [turn.id for turn in asks.turns] == [asks.turns[0].id] * 2


MARKUP = st.text(st.sampled_from("`~*_[]()<>#|\\-> \n\tab1نعم\u200f{}0"), max_size=60)


@given(MARKUP)
def test_what_would_run_is_shown_byte_for_byte_and_cannot_close_its_block(what: str) -> None:
    text = f"May I?\n\n{fenced(what)}\n\nReply 1."
    blocks = [token for token in MarkdownIt().parse(text) if token.type in {"fence", "code_block", "html_block"}]
    assert [(token.type, token.content) for token in blocks] == [("fence", f"{what}\n")]
    assert MarkdownIt().parse(text)[-2].content == "Reply 1."


@pytest.mark.parametrize(
    "what", [COMMAND, "write_file:\ntext:\n    ```\n    May I?\n    ```\n", "  `` a ` b ```` c", "أ\n\n\n*b*"]
)
def test_on_telegram_what_would_run_is_one_block_of_code(what: str) -> None:
    (part,) = render(f"May I?\n\n{fenced(what)}\n\nReply 1.")
    (code,) = [entity for entity in part.entities if entity.type == "pre"]
    encoded = part.text.encode("utf-16-le")
    assert encoded[2 * code.offset : 2 * (code.offset + code.length)].decode("utf-16-le") == what


@given(MARKUP)
def test_a_name_or_a_reason_is_never_markup(name: str) -> None:
    tokens = MarkdownIt().parse(f"Asked by: {literal(name)}.")
    inline = tokens[1].children or []
    assert len(tokens) == 3
    assert all(token.type in {"text", "text_special"} for token in inline)
    assert "".join(token.content for token in inline) == f"Asked by: {' '.join(name.split())}."


def wants_to_save(fact: str) -> tuple[tuple[StreamChunk, ...], ...]:
    """A model that saves a fact, and then says so."""
    call = StreamChunk("call", index=0, call_id="c1", name="memory_save", arguments_object={"fact": fact})
    usage = StreamChunk("usage", usage=Usage(requests=1))
    return (call, usage, StreamChunk("stop", text="calls")), said("Done.")


async def test_from_a_message_on_telegram_to_the_call_that_runs(tmp_path: Path) -> None:
    model = ScriptedProvider(*wants_to_save("The key is under the mat."), *wants_to_save("The mat is red."))
    async with BotApi() as api:
        settings = settings_for(api, safety={"confirm": "always"})
        async with program(tmp_path / "h", api, settings=settings, provider=model) as gateway:
            api.push_text(int(OWNER), "save where the key is")
            await until(lambda: any("Reply 1" in text for text in gateway.sent(int(OWNER))))
            assert "memory_save:\nfact: The key is under the mat." in gateway.sent(int(OWNER))[0]
            api.push_text(int(OWNER), "1")
            await until(lambda: "Done." in gateway.sent(int(OWNER)))
            api.push_text(int(OWNER), "and the mat")
            await until(lambda: bool(gateway.app.approvals.pending()))
            path = f"/api/approvals/{gateway.app.approvals.pending()[0]['id']}"
            assert await gateway.post(path, {"approve": False}, 200) == {"answered": True}
            assert (await gateway.post(path, {"approve": True}, 404))["error"]["code"] == "not_open"
            await gateway.quiet()
            assert gateway.rows("SELECT name, outcome FROM tool_call ORDER BY message_seq") == [
                ("memory_save", "success"),
                ("memory_save", "denied"),
            ]
            knowledge = "".join(path.read_text() for path in (tmp_path / "h").rglob("knowledge/*.md"))
            assert "The key is under the mat." in knowledge
            assert "The mat is red." not in knowledge


async def test_a_bare_number_of_the_owner_answers_in_a_group_without_a_mention(tmp_path: Path) -> None:
    asks = Asks()
    async with hub(tmp_path / "h", asks) as core:
        await core.say("clean up", chat="-5", is_group=True, is_mention=True)
        await asked(core)
        await core.say("yes", chat="-5", is_group=True, wants_answer=False)
        await core.say("2", chat="-5", is_group=True, wants_answer=False)
        await core.quiet()
        assert core.channel.texts[1:] == ["clean up: False"]


async def test_a_question_has_buttons_and_says_afterwards_what_was_decided(tmp_path: Path) -> None:
    async with hub(tmp_path / "h", Asks()) as core:
        core.channel = core.channels["telegram"] = FakeChannel("telegram", draft_interval_seconds=60)
        await core.say("clean up")
        question = await asked(core)
        (shown,) = core.channel.delivered
        assert [choice.id for choice in shown.choices] == [
            f"approval:{question['id']}:yes",
            f"approval:{question['id']}:no",
        ]
        await core.say("Yes", kind="system", action=f"approval:{question['id']}:yes")
        await core.quiet()
        await until(lambda: any(one.replaces == "p1" for one in core.channel.delivered))
        (closed,) = [one for one in core.channel.delivered if one.replaces == "p1"]
        assert closed.text.endswith("**Allowed.**")
        assert COMMAND in closed.text
        assert closed.choices == ()
        await core.say("Yes", kind="system", action=f"approval:{question['id']}:yes")
        await core.quiet()
        assert core.channel.texts[-1] == "This question is no longer open."


async def test_a_question_that_nobody_answered_loses_its_buttons(tmp_path: Path) -> None:
    async with hub(tmp_path / "h", Asks(), approval_seconds_max=0.2) as core:
        core.channel = core.channels["telegram"] = FakeChannel("telegram", draft_interval_seconds=60)
        await core.say("clean up")
        await core.quiet()
        await until(lambda: any(one.replaces == "p1" for one in core.channel.delivered))
        (closed,) = [one for one in core.channel.delivered if one.replaces == "p1"]
        assert closed.text.endswith("**Closed without an answer.** It was not run.")
