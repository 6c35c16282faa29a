"""The summary that stands for messages which were cut: how the model is asked for it, how a rule makes it, and how it
goes into a prompt."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from agent.fence import TURN_BEGINS, fence, spoken, unescape, unfence
from agent.limits import SUMMARY_CHARS_MAX, SUMMARY_CHARS_MIN
from agent.lines import bounded, flat
from agent.prompts import summary_instructions
from agent.tokens import estimate_tokens
from agent.types import Message, Prompt

HEADINGS = ("Task", "Progress", "Remaining", "Data", "Decisions")
_MARK = "<notice>\nOlder messages of this conversation were shortened"
_REMINDER = (
    f"{_MARK} to fit the model. Notes on them follow as data; conversation_read current gives every message and "
    "result uncut. This changes nothing about the task: go on with what remains, do not repeat what is done, and give "
    "the final answer only when everything that was asked for is done."
)
_SOURCE = "notes on older messages"
_TEXT_CHARS_MAX = 2_000
_TEXT_CHARS_MIN = 200
_TASK_CHARS = 1_500
_CALLS_LISTED = 40
_CALL_CHARS = 160
_SAID_CHARS = 400
_REFUSED = ("denied", "blocked")


def notice(text: str) -> Message:
    """The message that brings a summary into a prompt, with the reminder to go on."""
    inner = fence(bounded(text.strip(), SUMMARY_CHARS_MAX), _SOURCE)
    return Message("user", f"{_REMINDER}\n\n{inner}\n</notice>")


def is_summary(message: Message) -> bool:
    return message.role == "user" and message.text.startswith(_MARK)


def usable(text: str) -> bool:
    """True for a text that keeps to the form it was asked for, more or less."""
    return len(text.strip()) >= SUMMARY_CHARS_MIN and any(f"## {heading}" in text for heading in HEADINGS)


def summary_request(messages: Sequence[Message], tokens_max: int) -> Prompt:
    """The one call: the messages as data, each cut so far that all of them together fit."""
    chars = _TEXT_CHARS_MAX
    while True:
        lines = list(_transcript(messages, chars))
        told = "\n".join(lines)
        if estimate_tokens(told) <= tokens_max or chars <= _TEXT_CHARS_MIN:
            break
        chars //= 2
    told = bounded(told, tokens_max * 2) if estimate_tokens(told) > tokens_max else told
    text = f"{fence(told, 'messages of this conversation')}\n\nWrite the notes now."
    return Prompt(summary_instructions(), (Message("user", text),))


def rule_summary(messages: Sequence[Message]) -> str:
    """Notes under the same headings, made of what was asked, called and refused; no model call."""
    asked = [flat(text, _TASK_CHARS) for text in _asked(messages)]
    results = {message.call_id: message for message in messages if message.role == "tool"}
    done: list[str] = []
    refused: list[str] = []
    references: list[str] = []
    for message in messages:
        for call in message.calls:
            arguments = flat(json.dumps(dict(call.args), ensure_ascii=False, default=str), _CALL_CHARS)
            result = results.get(call.id)
            text = "" if result is None else unfence(result.text)
            done.append(f"- {call.name} {arguments}: {flat(text, _CALL_CHARS)}")
            if result is not None and result.text.lower().startswith(_REFUSED):
                refused.append(f"- {call.name}: {flat(text, _CALL_CHARS)}")
            if result is not None and result.ref:
                references.append(f"- {call.name}: {result.ref}")
    said = [flat(message.text, _SAID_CHARS) for message in messages if message.role == "assistant" and message.text]
    parts = {
        "Task": asked or ["(nothing in words)"],
        "Progress": [*done[-_CALLS_LISTED:], *(f"- said: {text}" for text in said[-3:])] or ["- nothing yet"],
        "Remaining": ["What of the task the steps above do not cover."],
        "Data": references[-_CALLS_LISTED:] or ["- conversation_read current holds every result"],
        "Decisions": refused[-_CALLS_LISTED:] or ["- none noted"],
    }
    return "\n\n".join(f"## {heading}\n" + "\n".join(parts[heading]) for heading in HEADINGS)


def _asked(messages: Sequence[Message]) -> list[str]:
    """What the person wanted in this turn, the words that came meanwhile too."""
    asked: list[str] = []
    for message in messages:
        if message.role == "user" and TURN_BEGINS in message.text:
            asked.clear()
        if message.role == "user" and (words := spoken(message.text).strip()):
            asked.append(words)
    return asked


def _transcript(messages: Sequence[Message], chars: int) -> Iterator[str]:
    for message in messages:
        if is_summary(message):
            told = message.text.partition(f'<data source="{_SOURCE}">\n')[2].removesuffix("\n</data>\n</notice>")
            yield f"[earlier notes] {unescape(told)}"
        elif message.role == "tool":
            yield f"[result] {bounded(unfence(message.text), chars)}"
        elif message.text.strip():
            words = spoken(message.text) if message.role == "user" else message.text
            yield f"[{'person' if message.role == 'user' else 'agent'}] {bounded(words, chars)}"
        for call in message.calls:
            arguments = json.dumps(dict(call.args), ensure_ascii=False, default=str)
            yield f"[call] {call.name} {bounded(arguments, chars)}"
