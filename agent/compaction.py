"""Keeps the messages of a turn within what the model takes: older ones are cut in proportion, a summary stands for
them. The database is untouched, so `conversation_read` gives everything back uncut."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from agent.fence import TURN_BEGINS
from agent.limits import (
    COMPACT_ABOVE_SHARE,
    COMPACT_CHARS_MIN,
    COMPACT_KEPT_SHARE,
    COMPACT_TO_SHARE,
)
from agent.summaries import is_summary, notice, rule_summary, summary_request, usable
from agent.tokens import ModelContext, clip, estimate_tokens, lasting_tokens, message_tokens, tool_tokens
from agent.types import JsonObject, Message, Prompt, ProviderError, Usage

_LAST_KEPT = 3
"""So many messages of each role are not cut, from the end."""
_ERROR_CHARS_MAX = 4_000
_MARK_TOKENS = 30
"""What the line costs that stands where text was left out."""
_SUMMARY_TOKENS = 1_500
"""Kept free for the summary."""
Ask = Callable[[Prompt], Awaitable[str]]
"""One call of the model whose text nobody sees. Raises ProviderError."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """A prompt that fits. `estimated` are its tokens as counted here; `before` what they were. `summary` says who
    summed up what was cut: the model, a rule, or nobody where nothing was."""

    prompt: Prompt
    estimated: int
    before: int
    summary: Literal["", "model", "rule"] = ""

    @property
    def cut(self) -> bool:
        return self.estimated != self.before or bool(self.summary)


class Compaction:
    """Fits prompts to one model. `writes` False: the model cannot sum up, so a rule does."""

    def __init__(self, context: ModelContext, *, writes: bool = True) -> None:
        self.context = context
        self._writes = writes

    async def fit(self, prompt: Prompt, ask: Ask, *, force: bool = False) -> Fitted:
        """The prompt itself up to three quarters of the model's context, else one that is cut to a half.

        `force`: the service found it too long, whatever is counted here; it is cut to half of what it is, or to half
        the context where that is less. Kept whole are the first message, the one the turn answers, the last three of
        each role, and errors. The same prompt is always cut in the same way; only the summary comes from the model,
        in one call at most, and from a rule where that fails.
        """
        fixed = lasting_tokens(prompt.system) + tool_tokens(prompt.tools)
        before = fixed + message_tokens(prompt.messages)
        if not force and before <= self.context.share(COMPACT_ABOVE_SHARE):
            return Fitted(prompt, before, before)
        target = self.context.share(COMPACT_TO_SHARE)
        if force:
            target = min(target, int(before * COMPACT_TO_SHARE))
        cut = _Cut(prompt.messages)
        cut.leave_out_pictures()
        if fixed + cut.tokens <= target:
            return Fitted(replace(prompt, messages=tuple(cut.messages)), fixed + cut.tokens, before)
        cut.leave_out_summaries()
        notes_tokens = min(_SUMMARY_TOKENS, target // 5)
        cut.down_to(max(target - fixed - notes_tokens, notes_tokens))
        text, by = await self._summary(prompt.messages, ask)
        messages = (*cut.messages[: cut.place], notice(text), *cut.messages[cut.place :])
        fitted = replace(prompt, messages=messages)
        return Fitted(fitted, fixed + message_tokens(messages), before, by)

    def billed(self, fitted: Fitted, usage: Usage) -> None:
        """Learns from what one answered call of this prompt came to."""
        billed = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
        self.context.note(fitted.estimated, billed)

    async def _summary(self, messages: tuple[Message, ...], ask: Ask) -> tuple[str, Literal["model", "rule"]]:
        if self._writes:
            try:
                text = await ask(summary_request(messages, self.context.share(COMPACT_TO_SHARE)))
            except ProviderError:
                # The turn does not fail for its notes; what is wrong with the service the next call will tell.
                text = ""
            if usable(text):
                return text, "model"
        return rule_summary(messages), "rule"


class _Cut:
    """A message list that is made shorter step by step. Calls keep their results: texts are cut, and of the messages
    before this turn whole exchanges given up."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self.messages = list(messages)
        self._measure()

    def _measure(self) -> None:
        self._sizes = [message_tokens((message,)) for message in self.messages]
        self._begin = _turn_begin(self.messages)

    @property
    def tokens(self) -> int:
        return sum(self._sizes)

    @property
    def place(self) -> int:
        """Where the summary goes: to the end, but never between a person's words and the answer to them."""
        return self._begin if self._begin == len(self.messages) - 1 else len(self.messages)

    def leave_out_pictures(self) -> None:
        """Takes the pictures out of all messages but the turn's own, which gets no shorter."""
        for index, message in enumerate(self.messages):
            if message.images and index != self._begin:
                paths = ", ".join(message.images)
                self._put(index, replace(message, images=(), text=f"{message.text}\n[pictures left out: {paths}]"))

    def leave_out_summaries(self) -> None:
        """Takes out an earlier summary: the new one holds what it said."""
        self.messages = [message for message in self.messages if not is_summary(message)]
        self._measure()

    def down_to(self, target: int) -> None:
        """Cuts until the target is met, or nothing more may be cut."""
        kept = self._protected()
        old = [index for index in range(len(self.messages)) if index not in kept]
        for role in ("tool", "assistant", "user"):
            same = [index for index in old if self.messages[index].role == role]
            self._shrink(same, target, COMPACT_KEPT_SHARE)
        self._shrink(old, target, 0.0)
        self._give_up_exchanges(target)
        newest = [index for index, message in enumerate(self.messages) if message.role != "user"]
        self._shrink(newest, target, 0.0)

    def _put(self, index: int, message: Message) -> None:
        self.messages[index] = message
        self._sizes[index] = message_tokens((message,))

    def _protected(self) -> set[int]:
        kept = {0, self._begin}
        for role in ("user", "assistant", "tool"):
            same = [index for index, message in enumerate(self.messages) if message.role == role]
            kept.update(same[-_LAST_KEPT:])
        return kept | {index for index, message in enumerate(self.messages) if _is_error(message)}

    def _shrink(self, indexes: Iterable[int], target: int, floor: float) -> None:
        """Cuts these by the same share each, as far as it is needed, but never below `floor` of their length."""
        long = [index for index in indexes if _chars(self.messages[index]) > COMPACT_CHARS_MIN]
        size = sum(self._sizes[index] for index in long)
        need = self.tokens - target + _MARK_TOKENS * len(long)
        if not long or need <= _MARK_TOKENS * len(long):
            return
        share = max(floor, 1 - need / size)
        for index in long:
            shorter = _shortened(self.messages[index], share)
            if message_tokens((shorter,)) < self._sizes[index]:
                self._put(index, shorter)

    def _give_up_exchanges(self, target: int) -> None:
        """Drops the oldest exchanges before this turn, but not the first message of all."""
        while self.tokens > target:
            end = next((at for at in range(2, self._begin + 1) if self.messages[at].role == "user"), 0)
            if not end:
                return
            del self.messages[1:end], self._sizes[1:end]
            self._begin -= end - 1


def _turn_begin(messages: list[Message]) -> int:
    """Where the message stands that the turn answers; in a list without one, the last of a person."""
    own = [index for index, message in enumerate(messages) if message.role == "user" and TURN_BEGINS in message.text]
    asked = [index for index, message in enumerate(messages) if message.role == "user"]
    return own[-1] if own else asked[-1] if asked else len(messages) - 1


def _is_error(message: Message) -> bool:
    """A result that failed, or the program's own word in the place of one."""
    if message.role != "tool" or len(message.text) > _ERROR_CHARS_MAX:
        return False
    head = message.text.partition("\n")[0]
    return not head.startswith("<data ") or ' outcome="' in head


def _chars(message: Message) -> int:
    return len(message.text) + sum(len(str(value)) for call in message.calls for value in call.args.values())


def _shortened(message: Message, share: float) -> Message:
    """The message with about this share of its text and of the arguments of its calls."""
    rest = f"memory_get {message.ref}" if message.ref else "conversation_read current"
    text = message.text
    head, body, tail = _parts(text)
    if len(text) > COMPACT_CHARS_MIN:
        text = f"{head}{clip(body, int(estimate_tokens(body) * share), f'the rest: {rest}')}{tail}"
    calls = tuple(replace(call, args=_shorter_args(call.args, share)) for call in message.calls)
    return replace(message, text=text, calls=calls)


def _parts(text: str) -> tuple[str, str, str]:
    """A fence apart from what is inside, so that a cut never opens it."""
    head, line, body = text.partition("\n")
    if not (head.startswith("<data ") and body.endswith("\n</data>")):
        return "", text, ""
    return f"{head}{line}", body.removesuffix("\n</data>"), "\n</data>"


def _shorter_args(args: JsonObject, share: float) -> JsonObject:
    return {
        name: clip(str(value), int(estimate_tokens(str(value)) * share), "as it was given")
        if len(str(value)) > COMPACT_CHARS_MIN
        else value
        for name, value in args.items()
    }
