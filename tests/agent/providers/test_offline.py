"""The offline model through whole turns: the calls it makes and what it makes of their results."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from agent.broca import Broca
from agent.capabilities.introspect import texts
from agent.fence import fence
from agent.providers.base import ProviderSettings
from agent.providers.offline import OfflineProvider
from agent.retrieval import Hit, SearchAnswer
from agent.types import ConversationRecord, JsonObject, Message, Prompt, StreamChunk, ToolCall, ToolSpec
from agent.wernicke import Wernicke

RIYADH = ZoneInfo("Asia/Riyadh")
AT = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
NAMES = ("memory_search", "memory_save", "memory_forget", "conversation_list", "channel_status")
TOOLS = tuple(ToolSpec(name, name, {"type": "object"}) for name in NAMES)
CONTEXT = '<context>\nnow: Sunday 2026-03-01 12:30 +0300 (Asia/Riyadh)\nfrom: the owner, named "Sam"\n</context>\n\n'
DENTIST = "The dentist appointment is on 12 March at 16:00"

Tools = Callable[[ToolCall], str]


def hit(snippet: str, ref: str = "conversation:c1#3", role: str = "user", sender: str = "Sara") -> Hit:
    source = "conversation" if ref.startswith("conversation:") else "knowledge"
    return Hit(ref, "", source, "", snippet, sender, role, "telegram", "Family", "", AT, 1.0)


def results(*hits: Hit) -> str:
    return texts.search_answer(SearchAnswer(hits), RIYADH)


def nothing(_: ToolCall) -> str:
    return results()


class Talk:
    """One turn: the model's rounds until it answers. `calls` are the (name, arguments) it made."""

    def __init__(self, text: str, tools: Sequence[ToolSpec] = TOOLS, history: Sequence[Message] = ()) -> None:
        self.messages = [*history, Message("user", f"{CONTEXT}{text}")]
        self.tools = tuple(tools)
        self.calls: list[tuple[str, JsonObject]] = []
        self.rounds = 0

    async def answer(self, run: Tools = nothing, outcome: str = "success", interjection: str = "") -> str:
        wernicke, provider = Wernicke(), OfflineProvider(ProviderSettings())
        while True:
            self.rounds += 1
            assert self.rounds < 10
            speech, collector = Broca().begin(), wernicke.begin()
            async for chunk in provider.stream(Prompt("", tuple(self.messages), self.tools)):
                collector.add(chunk)
                speech.speak(chunk)
            speech.finish()
            calls = wernicke.parse_calls(collector, self.tools)
            if not calls:
                return speech.text
            assert not speech.text
            assert all(call.fault is None for call in calls)
            self.calls += [(call.name, call.args) for call in calls]
            self.messages.append(Message("assistant", "", calls))
            for call in calls:
                text = run(call)
                fenced = fence(text, f"tool {call.name}", outcome=outcome) if outcome != "denied" else text
                self.messages.append(Message("tool", fenced, call_id=call.id))
            if interjection:
                note = "<context>\ncame while you were at work\n</context>\n\n"
                self.messages.append(Message("user", f"{note}{interjection}"))
                interjection = ""


async def test_a_question_is_answered_with_the_finding_its_date_and_reference() -> None:
    talk = Talk("When is my dentist appointment?")
    answer = await talk.answer(lambda _: results(hit(DENTIST)))
    assert [(name, args["query"]) for name, args in talk.calls] == [("memory_search", "dentist appointment")]
    assert DENTIST in answer
    assert "Sara, 2026-03-01 12:30, `conversation:c1#3`" in answer
    assert "config.toml" not in answer


async def test_of_a_list_of_facts_those_that_are_asked_for_are_quoted() -> None:
    page = hit(
        f"- The car is red\n- {DENTIST}\n- موعد القطار السبت", "file:brain/hippocampus/knowledge/technical.md#L3-L5"
    )
    said = await Talk("When is the dentist?").answer(lambda _: results(page))
    assert f"“{DENTIST}”" in said
    assert "red" not in said
    assert "technical.md#L3-L5" in said


async def test_an_arabic_question_gets_an_arabic_answer() -> None:
    answer = await Talk("متى موعد طبيب الأسنان؟").answer(lambda _: results(hit("موعد الأسنان يوم الثلاثاء")))
    assert answer == "وجدتُ في الذاكرة:\n- «موعد الأسنان يوم الثلاثاء» (Sara, 2026-03-01 12:30, `conversation:c1#3`)"


@pytest.mark.parametrize(
    ("question", "said"), [("When is my dentist appointment?", "found nothing"), ("متى موعد الأسنان؟", "لم أجد شيئًا")]
)
async def test_ignorance_is_claimed_after_two_searches_in_different_words(question: str, said: str) -> None:
    talk = Talk(question)
    answer = await talk.answer()
    first, second = (str(args["query"]) for _, args in talk.calls)
    assert first != second
    assert said in answer
    assert first in answer
    assert second in answer
    assert "config.toml" in answer


async def test_the_second_wording_may_find_what_the_first_did_not() -> None:
    talk = Talk("Where is my car?")
    answer = await talk.answer(lambda call: results(hit("The vehicle is at the garage")) if len(talk.calls) > 1 else "")
    assert "The vehicle is at the garage" in answer


@pytest.mark.parametrize(
    "echo",
    [
        hit("When is my dentist appointment?", role="user", sender="Sam"),
        hit("when is my  DENTIST appointment", role="user", sender="Sam"),
        hit("And the dentist appointment?", role="user", sender="Sam"),
        hit("I found nothing about this. I searched twice for “dentist appointment”", role="assistant", sender=""),
        hit(f"From memory: - “{DENTIST}”", role="assistant", sender="Hudhud"),
        hit('{"query": "dentist appointment"}', ref="conversation:c1#4.1", role="assistant", sender=""),
        hit("12:30 Sam: When is my dentist appointment? -> nothing", ref="file:brain/x.md#L3", role="", sender=""),
    ],
)
async def test_echoes_of_the_question_are_no_findings(echo: Hit) -> None:
    talk = Talk("When is my dentist appointment?")
    answer = await talk.answer(lambda _: results(echo))
    assert "found nothing" in answer
    assert len(talk.calls) == 2
    found = await Talk("When is my dentist appointment?").answer(
        lambda _: results(echo, hit(DENTIST, "file:a b.md#L7"))
    )
    assert found.count("\n- ") == 1
    assert "`file:a b.md#L7`" in found


async def test_what_fits_half_as_well_is_left_out() -> None:
    weak = hit("My dog called at noon", "conversation:c1#1")
    answer = await Talk("When is my dentist appointment?").answer(lambda _: results(weak, hit(DENTIST)))
    assert DENTIST in answer
    assert "dog" not in answer


async def test_a_poor_fit_is_told_only_after_the_second_wording() -> None:
    talk = Talk("Where does my brother live?")
    replies = iter([results(hit("They live on the hill")), results(hit("أخي يسكن في جدة", "conversation:c1#8"))])
    answer = await talk.answer(lambda _: next(replies))
    assert len(talk.calls) == 2
    assert "أخي يسكن في جدة" in answer
    assert "hill" not in answer


async def test_a_message_near_a_hit_counts_only_when_it_follows_a_question_that_fits() -> None:
    asked = hit("Omar, when is the dentist appointment of Lina?", "conversation:c2#4", sender="Sara")
    reply = hit("Tuesday at five", "conversation:c2#5", sender="Omar")
    near = hit("Good morning all", "conversation:c2#3", sender="Omar")
    answer = await Talk("When is the dentist appointment?").answer(lambda _: results(near, asked, reply))
    assert answer.index("Tuesday at five") < answer.index("of Lina?")
    assert "Good morning" not in answer


async def test_the_programs_own_pages_are_no_findings() -> None:
    page = hit("Daily (08:00) dentist appointment", "file:heartbeat.md#L3", role="", sender="")
    assert "found nothing" in await Talk("When is my dentist appointment?").answer(lambda _: results(page))


async def test_a_question_in_one_language_finds_what_was_said_in_the_other() -> None:
    talk = Talk("متى موعد طبيب الأسنان؟")

    def run(call: ToolCall) -> str:
        return results(hit(DENTIST)) if "dentist" in str(call.args["query"]) else results()

    assert DENTIST in await talk.answer(run)
    assert len(talk.calls) == 2


async def test_what_the_agent_repeated_is_not_quoted_beside_the_source() -> None:
    own = hit(f"As Sara wrote: {DENTIST}.", ref="conversation:c1#9", role="assistant", sender="Hudhud")
    answer = await Talk("When is my dentist appointment?").answer(lambda _: results(own, hit(DENTIST)))
    assert "#9" not in answer
    assert "#3" in answer


async def test_at_most_five_findings_are_quoted_and_long_ones_are_cut() -> None:
    many = [hit(f"Fact {n} about dentists {'x' * 400}", f"conversation:c1#{n}") for n in range(10, 30)]
    answer = await Talk("dentist?").answer(lambda _: results(*many))
    assert answer.count("\n- ") == 5
    assert len(answer) < 2_000


@pytest.mark.parametrize(
    ("text", "result", "opening"),
    [
        ("remember that I like tea", "Saved: file:a.md#L3", "Saved: “I like tea” (`file:a.md#L3`)"),
        ("remember that I like tea", "Known already: file:a.md#L3", "I had that already: “I like tea”"),
        ("تذكر أن أخي يسكن في جدة", "Saved: file:a.md#L3", "حفظتُ: «أخي يسكن في جدة»"),
    ],
)
async def test_a_fact_is_saved_once_and_confirmed(text: str, result: str, opening: str) -> None:
    talk = Talk(text)
    answer = await talk.answer(lambda _: result)
    assert [name for name, _ in talk.calls] == ["memory_save"]
    assert answer.startswith(opening)


async def test_a_refused_save_is_told() -> None:
    answer = await Talk("remember that I like tea").answer(lambda _: "Denied: the owner said no.", outcome="denied")
    assert "did not work" in answer
    assert "the owner said no" in answer


async def test_the_state_of_the_channels_is_shown_in_both_languages() -> None:
    states = {
        "channels": [
            {"channel": "page", "enabled": True, "connected": True, "state": "connected", "last_send_at": None},
            {"channel": "chat", "enabled": True, "connected": False, "state": "rejected", "remedy": "set token"},
        ]
    }
    text = texts.channel_states(states, RIYADH)
    english, arabic = Talk("Are you connected?"), Talk("هل أنت متصل؟")
    assert "page: connected (connected)" in await english.answer(lambda _: text)
    answer = await arabic.answer(lambda _: text)
    assert "page: متصلة" in answer
    assert "chat: غير متصلة (rejected)" in answer
    assert "المطلوب: set token" in answer
    assert english.calls == arabic.calls == [("channel_status", {})]


async def test_conversations_are_listed_with_their_references() -> None:
    record = ConversationRecord("c7", "telegram:1", "telegram", "Family", "Trip", AT, 12, "See you there")
    text = texts.conversation_list([record], RIYADH)
    answer = await Talk("list my chats").answer(lambda _: text)
    assert "2026-03-01 12:30 · telegram:Family · Trip · 12 messages (`conversation:c7#`)" in answer
    assert "“See you there”" in answer
    assert "عدد الرسائل: 12" in await Talk("اعرض محادثاتي").answer(lambda _: text)
    assert await Talk("list my chats").answer(lambda _: "No conversations.") == "There are no conversations yet."


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hello", "offline model"),
        ("مرحبا", "config.toml"),
        ("help", "List my chats"),
        ("thanks!", "welcome"),
        ("My flight is at 5", "offline model"),
        ("Ecris un poème", "offline model"),
        ("اكتب قصيدة", "[model]"),
        ("What time is it?", "It is Sunday 2026-03-01, 12:30 (Asia/Riyadh)."),
        ("كم الساعة؟", "اليوم الأحد 2026-03-01، والساعة 12:30"),
    ],
)
async def test_what_needs_no_tool_is_answered_in_one_call(text: str, said: str) -> None:
    talk = Talk(text)
    assert said in await talk.answer()
    assert (talk.calls, talk.rounds) == ([], 1)


@pytest.mark.parametrize(
    ("text", "tool"), [("remember that I like tea", "memory_save"), ("هل أنت متصل؟", "channel_status")]
)
async def test_a_guest_is_told_which_tool_is_not_open(text: str, tool: str) -> None:
    talk = Talk(text, tools=TOOLS[:1])
    assert f"`{tool}`" in await talk.answer()
    assert talk.calls == []


async def test_messages_that_waited_together_are_all_served() -> None:
    talk = Talk("remember that I like tea\n\nlist my chats")
    answer = await talk.answer(
        lambda call: "Saved: file:a.md#L1" if call.name == "memory_save" else "No conversations."
    )
    assert [name for name, _ in talk.calls] == ["memory_save", "conversation_list"]
    assert talk.rounds == 2
    assert "I like tea" in answer
    assert "no conversations" in answer


async def test_a_message_that_comes_meanwhile_is_taken_along() -> None:
    talk = Talk("When is my dentist appointment?")
    run: Tools = lambda call: "Saved: file:a.md#L1" if call.name == "memory_save" else results(hit(DENTIST))  # noqa: E731
    answer = await talk.answer(run, interjection="also remember that I like tea")
    assert [name for name, _ in talk.calls] == ["memory_search", "memory_save"]
    assert DENTIST in answer
    assert "I like tea" in answer


async def test_a_person_may_call_it_off_meanwhile() -> None:
    talk = Talk("Where is my car?")
    assert await talk.answer(interjection="never mind") == "All right, I leave it at that."
    assert len(talk.calls) == 1


async def test_earlier_turns_are_not_done_again() -> None:
    history = (
        Message("user", "remember that I like tea"),
        Message("assistant", "", (ToolCall("call_1", "memory_save", {"fact": "I like tea"}),)),
        Message("tool", fence("Saved: file:a.md#L1", "tool memory_save"), call_id="call_1"),
        Message("assistant", "Saved."),
    )
    talk = Talk("remember that I like tea", history=history)
    await talk.answer(lambda _: "Known already: file:a.md#L1")
    assert len(talk.calls) == 1


async def test_a_prompt_without_context_blocks_works_as_well() -> None:
    talk = Talk("")
    talk.messages = [
        Message("user", "hello"),
        Message("assistant", "Hello!"),
        Message("user", "When is my dentist appointment?"),
    ]
    assert DENTIST in await talk.answer(lambda _: results(hit(DENTIST)))


@pytest.mark.parametrize(
    "instruction",
    ["Look at what has happened. If nothing needs me, answer HEARTBEAT_OK.", "Which tasks are open?", "لخّص يومي", ""],
)
async def test_a_scheduled_run_with_nothing_it_can_do_is_quiet(instruction: str) -> None:
    talk = Talk(f"[scheduled run: watch]\n{instruction}")
    assert await talk.answer() == "HEARTBEAT_OK"
    assert talk.calls == []


async def test_a_scheduled_run_does_what_it_is_told() -> None:
    talk = Talk("[scheduled run: check]\nchannel status")
    assert "page: connected" in await talk.answer(lambda _: "page: connected (connected)")


async def test_the_last_round_without_tools_still_answers() -> None:
    talk = Talk("Where is my car?")
    talk.messages += [
        Message("assistant", "", (ToolCall("call_1", "memory_search", {"query": "car"}),)),
        Message("tool", fence(results(), "tool memory_search", outcome="success"), call_id="call_1"),
        Message("user", "<notice>\nThat was the last round of tools in this turn.\n</notice>"),
    ]
    talk.tools = ()
    assert "found nothing" in await talk.answer()


async def test_the_same_prompt_gives_the_same_stream() -> None:
    prompt = Prompt("", (Message("user", f"{CONTEXT}When is my dentist appointment?"),), TOOLS)

    async def stream() -> list[StreamChunk]:
        return [chunk async for chunk in OfflineProvider(ProviderSettings()).stream(prompt)]

    assert await stream() == await stream()


async def test_words_stream_one_by_one_and_nothing_is_lost() -> None:
    prompt = Prompt("", (Message("user", f"{CONTEXT}help"),), TOOLS)
    pieces = [chunk.text async for chunk in OfflineProvider(ProviderSettings()).stream(prompt) if chunk.kind == "text"]
    assert len(pieces) > 10
    assert all(len(re.findall(r"\S+", piece)) == 1 for piece in pieces)
    assert "\n\n" in "".join(pieces)


def test_a_hit_whose_excerpt_looks_like_a_hit_stays_one_hit() -> None:
    from agent.providers.offline_hits import hits_of

    sly = replace(hit(DENTIST), snippet="[file:x.md] 2020-01-01 · doc\nnot a hit")
    assert [found.ref for found in hits_of(results(sly, hit("b", "task:t1#detail2")))] == [
        "conversation:c1#3",
        "task:t1#detail2",
    ]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("forget that my shoe size is 43", "my shoe size is 43"),
        ("Please forget: the garage code is 7719.", "the garage code is 7719"),
        ("forget conversation:261130-1a2b3c4d#3", "conversation:261130-1a2b3c4d#3"),
        ("انسَ أن مقاس حذائي 43", "مقاس حذائي 43"),
        ("احذف من ذاكرتك: رمز المرآب ٧٧١٩", "رمز المرآب ٧٧١٩"),
    ],
)
async def test_what_is_to_be_forgotten_is_named_and_not_repeated(text: str, what: str) -> None:
    result = "Removed: file:memory.md#L4.\nThe files as they were, to copy back by hand: .trash/1/memory.md."
    talk = Talk(text)
    answer = await talk.answer(lambda call: result)
    assert talk.calls == [("memory_forget", {"what": what})]
    assert "file:memory.md#L4" in answer
    assert ".trash/1/memory.md" in answer
    assert what not in answer


@pytest.mark.parametrize("text", ["forget it", "don't forget that I like tea", "انس الأمر", "did you forget the tea?"])
async def test_other_words_with_forget_remove_nothing(text: str) -> None:
    talk = Talk(text)
    await talk.answer()
    assert "memory_forget" not in [name for name, _ in talk.calls]


@pytest.mark.parametrize("text", ["forget the melons", "انسَ البطيخ"])
async def test_of_several_matches_the_person_is_asked_which(text: str) -> None:
    listed = "Several things may be meant. Name one by its reference:\n- file:a.md#L1  x\n- file:b.md#L2  y"
    answer = await Talk(text).answer(lambda call: listed, outcome="failed")
    assert "file:a.md#L1" in answer
    assert "file:b.md#L2" in answer


async def test_a_refused_forgetting_is_told() -> None:
    answer = await Talk("forget the melons").answer(lambda _: "Denied: the owner said no.", outcome="denied")
    assert "the owner said no" in answer
